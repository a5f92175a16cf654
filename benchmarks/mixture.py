"""Finite mixture of normal regressions on the February CE file: one converged fit, cost against n.

Log income of the 4,469 consumer units with positive income, ten predictors, K = 5 [S22 sec. 5].
R-hat is that of log densities at 28 fixed points, which do not depend on the components' labels.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.engines import Engine, SamplerSettings, diagnose, engine_by_name
from pyhybrid.models import BoundModel
from pyhybrid.studies.income import CE_FORMULA, ce_incomes

FILE = Path(__file__).resolve().parents[2] / "shared" / "data" / "ce_2015_february.csv"
MODEL = ph.MixtureRegression(CE_FORMULA, n_components=5, transform="log", unit=10_000, min_sd=0.01)
SETTINGS = SamplerSettings(warmup=500, draws=1000)
SIZES = (500, 1000, 2000, 4000)


def incomes() -> pd.DataFrame | None:
    """The February CE file as study E reads it; None where it is absent."""
    if FILE.exists():
        return ce_incomes(FILE)
    print(f"  skipped: {FILE.name} was not found beside the project")
    return None


def run(sizes: tuple[int, ...] = SIZES) -> None:
    """The whole fit, then short fits at growing n."""
    table = incomes()
    if table is None:
        return
    engine = engine_by_name("embedded")
    print(f"Mixture regression, K = 5, February CE file, {len(table)} records")
    bound = MODEL.bind(table)
    _whole_fit(bound, engine)
    reference = engine_by_name("cmdstan")
    if reference.status().available:
        _whole_fit(bound, reference)
    else:
        print(f"  cmdstan: skipped, {reference.status().cause}")
    short = SamplerSettings(chains=2, warmup=150, draws=100, max_treedepth=7)
    for n in sizes:
        part = MODEL.bind(table.sample(n, random_state=1))
        data = part.stan_data(np.ones(n))
        draws = engine.sample(part.program, data, seed=1, settings=short)
        steps = float((2.0**draws.treedepth).sum())
        per_step = 1e3 * draws.provenance.seconds / (steps * 2.5)  # warm-up: 150 more of 100
        line(f"n = {n:>5,}: 2 chains x (150 + 100)", draws.provenance.seconds,
             f"about {per_step:.2f} ms per gradient")  # fmt: skip


def _whole_fit(bound: BoundModel, engine: Engine) -> None:
    draws = engine.sample(
        bound.program, bound.stan_data(np.ones(bound.n)), seed=1, settings=SETTINGS
    )
    found = diagnose(draws, None, bound.monitored(draws))
    seconds = draws.provenance.seconds
    line(f"{engine.name}: {len(bound.design_columns)} columns, 4 chains x "
         f"({SETTINGS.warmup} + {SETTINGS.draws})", seconds)  # fmt: skip
    print(f"    worst R-hat {found.max_rhat:.4f}, bulk ESS {found.min_ess_bulk:.0f}, "
          f"tail ESS {found.min_ess_tail:.0f}, {found.n_divergent} divergent, "
          f"{1000 * seconds / found.min_ess_bulk:.0f} ms per effective draw")  # fmt: skip


if __name__ == "__main__":
    run(tuple(int(value) for value in sys.argv[1:]) or SIZES)
