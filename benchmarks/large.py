"""A continuous outcome with n = 10^5; and two workers against one on sixteen fits."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.measure import in_own_process, line
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session
from pyhybrid.running.tasks import run_tasks

CODE = """
import time, numpy as np, pandas as pd, pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session
table = pd.DataFrame({"y": np.random.default_rng(1).beta(0.5, 3, 100_000)})
model = ph.Beta("y ~ 1")
session = open_session(model.bind(table), seed=1, engine="embedded",
                       settings=SamplerSettings(draws=250))
started = time.perf_counter()
alpha = ph.LipschitzWeighted(model).weights(session)
print("SECONDS", time.perf_counter() - started)
"""


def _fit(seed: int) -> float:
    """One regression fit that takes a few seconds, on one core."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"x": rng.normal(size=500)})
    table["y"] = rng.poisson(np.exp(1 + 0.3 * table["x"]))
    session = open_session(
        ph.NegativeBinomial("y ~ x").bind(table), seed=seed, engine="embedded",
        settings=SamplerSettings(parallel_chains=1, warmup=300, draws=300),
    )  # fmt: skip
    return session.unweighted().bounds.overall


def _batch(workers: int) -> float:
    started = time.perf_counter()
    for done in run_tasks(_fit, range(1, 17), workers=workers):
        if done.error is not None:
            raise done.error
    return time.perf_counter() - started


def run() -> None:
    """Print both measurements."""
    print("Large data and several workers")
    seconds, megabytes = in_own_process(CODE)
    line("Beta, n = 10^5: fit, bounds and weights of 1000 draws, all", seconds,
         f"{megabytes:,.0f} MB at most, import and data included")  # fmt: skip
    one, two = _batch(1), _batch(2)
    line("16 fits, one worker", one)
    line("16 fits, two workers", two, f"{two / one:.2f} of one worker's time")
