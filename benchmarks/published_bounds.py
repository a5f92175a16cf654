"""The papers' programs (``program="published"``), in their own parametrization: bounds beside ours.

The negative binomial of [V25] supp. 2 on the counts of study C, and the censored beta of [C25]
supp. 2 on Beta(0.5, 3): the programs that stan/published holds, in the embedded engine and, where
it is found, in rstan. Bounds are largest values over draws: they differ by what chains do, and two
seeds of ours say by how much.

    python -m benchmarks published_bounds
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings, engine_by_name
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms import Censored, LipschitzWeighted, PseudoPosteriorMechanism, Unweighted
from pyhybrid.models import Model
from pyhybrid.studies.counts import mixture_counts
from pyhybrid.studies.strict import beta_database

_SETTINGS = SamplerSettings(chains=2, warmup=300, draws=300, parallel_chains=1)
_RUNS = (
    ("built-in, embedded, seed 1", "embedded", 1),
    ("built-in, embedded, seed 2", "embedded", 2),
    ("as published, embedded", "embedded", 1),
    ("as published, rstan", "rstan", 1),
)


def run() -> None:
    """Bounds of both models by each program and engine."""
    counts = mixture_counts(1000, np.random.default_rng(1)).astype(int)
    _side_by_side(
        "counts of study C, negative binomial",
        pd.DataFrame({"y": counts}),
        ph.NegativeBinomial("y ~ 1"),
        ph.NegativeBinomial("y ~ 1", program="published"),
        rstan=True,
    )  # fmt: skip
    _side_by_side(
        "Beta(0.5, 3), beta",
        beta_database(np.random.default_rng(1)),
        ph.Beta("y ~ 1"),
        ph.Beta("y ~ 1", program="published"),
        rstan=False,  # its n = 2000 records, one by one, take rstan minutes a fit
    )


def _side_by_side(
    title: str, table: pd.DataFrame, built_in: Model, published: Model, *, rstan: bool
) -> None:
    print(title)
    for label, engine, seed in _RUNS:
        if engine == "rstan" and not rstan:
            continue
        status = engine_by_name(engine).status()
        if not status.available:
            print(f"  {label:<28} skipped, {status.cause}")
            continue
        started = time.perf_counter()
        model = published if label.startswith("as published") else built_in
        session = open_session(
            model.bind(table), seed=seed, engine=engine, settings=_SETTINGS,
            on_not_converged="warn",
        )  # fmt: skip
        mechanisms: dict[str, PseudoPosteriorMechanism] = {
            "Unweighted": Unweighted(model),
            "LW": LipschitzWeighted(model),
        }
        if not rstan:
            mechanisms["Censor_uw at 5"] = Censored(
                model, epsilon=5, inner=Unweighted(model), sampling="chains", check_modes=False
            )
        fits = {name: each.fit(session).fit for name, each in mechanisms.items()}
        found = [f"{name} {fit.bounds.overall:.2f}" for name, fit in fits.items()]
        found += [
            f"{name}: {int(fit.censored.sum())} records at the cap"
            for name, fit in fits.items()
            if fit.censored is not None
        ]
        print(
            f"  {label:<28} {', '.join(found)}; {time.perf_counter() - started:.0f} s", flush=True
        )


if __name__ == "__main__":
    run()
