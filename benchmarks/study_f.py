"""Study F [C25 sec. 4] on 20 databases, timed; and the beta likelihood through its three sums."""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.engines import SamplerSettings, engine_by_name
from pyhybrid.studies import STUDIES, run_study
from pyhybrid.studies.runner import reproduce
from pyhybrid.studies.strict import beta_database


def run(n_databases: int = 20, workers: int = 2) -> None:
    """Print bounds and counts beside the published ones."""
    study = STUDIES["F"]
    print(f"Study F, {n_databases} databases, n = 2000")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        result = run_study(
            study, out=folder, size="paper", replicates=n_databases, engine="embedded",
            workers=workers,
        )  # fmt: skip
        line(f"{n_databases} databases, {workers} processes", time.perf_counter() - started)
    print(result.summary.to_string(index=False, float_format="{:.4g}".format))
    for each in reproduce(study, result.summary):
        verdict = "agrees" if each.agrees else "differs"
        print(f"  {each.quantity}: published {each.published}, ours {each.ours}: {verdict}")
    _sums()


def _sums() -> None:
    """The beta likelihood through three sums, against record by record."""
    bound = ph.Beta("y ~ 1").bind(beta_database(np.random.default_rng(1)))
    engine, times = engine_by_name("embedded"), []
    settings = SamplerSettings(parallel_chains=1)
    # A cap that nothing meets takes the record-by-record path to the same posterior.
    for cap in (None, 1e9):
        data = bound.stan_data(np.ones(bound.n), cap=cap)
        draws = engine.sample(bound.program, data, seed=1, settings=settings)
        times.append(draws.provenance.seconds)
    line("unweighted beta fit, through its sufficient statistics", times[0])
    line("the same, record by record", times[1], f"ratio {times[1] / times[0]:,.0f}")


if __name__ == "__main__":
    run(*(int(value) for value in sys.argv[1:]))
