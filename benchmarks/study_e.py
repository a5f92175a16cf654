"""Bounds of study E [S22 sec. 5] on the February CE file, fit by fit as they finish.

`python -m benchmarks.study_e [RECORDS [COMPONENTS [DRAWS [CHAINS]]]]`: on a random part of the
records and with fewer components, by default 500, 2, 500 and 4; 0 records are all 4,469. Chains are
sampled once: a worst R-hat above 1.05 is printed, not mended. The order that matters is that of the
weights: at every risk r, c (1 - r) + g falls along the lines printed.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

from benchmarks.measure import line
from benchmarks.mixture import MODEL, incomes
from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms import LipschitzWeighted, PseudoPosteriorMechanism, Unweighted
from pyhybrid.studies.income import PUBLISHED_BOUNDS

ONCE = ConvergenceRule(rhat=np.inf, ess_per_chain=1)  # bounds only: nothing is released


def run(n: int = 500, n_components: int = 2, draws: int = 500, chains: int = 4) -> None:
    """Print each bound beside the published one."""
    table = incomes()
    if table is None:
        return
    table = table.sample(n, random_state=1) if n else table
    print(f"Study E: {len(table)} records of the February CE file, K = {n_components}, log income")
    model = replace(MODEL, n_components=n_components)
    settings = SamplerSettings(chains=chains, warmup=draws, draws=draws)
    session = open_session(
        model.bind(table), seed=1, engine="embedded", settings=settings, rule=ONCE,
        on_not_converged="warn",
    )  # fmt: skip
    _bound("Unweighted", Unweighted(model), session, "78.7")
    pairs = sorted(PUBLISHED_BOUNDS, key=lambda pair: (sum(pair), pair[1]), reverse=True)
    for scale, shift in pairs:
        mechanism = LipschitzWeighted(model, scale=scale, shift=shift)
        published = f"{PUBLISHED_BOUNDS[scale, shift]:.2f}"
        _bound(f"LW ({scale:g}, {shift:g})", mechanism, session, published)


def _bound(
    label: str, mechanism: PseudoPosteriorMechanism, session: FitSession, published: str
) -> None:
    started = time.perf_counter()
    fit = mechanism.fit(session).fit
    line(
        f"{label}, worst R-hat {fit.diagnostics.max_rhat:.3f}",
        time.perf_counter() - started,
        f"bound {fit.bounds.overall:.2f}, published {published}",
    )


if __name__ == "__main__":
    run(*(int(value) for value in sys.argv[1:5]))
