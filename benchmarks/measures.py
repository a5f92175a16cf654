"""Utility and risk measures at n = 10^4 and 10^5, and matching against a plain double loop."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks.measure import best_of, line
from pyhybrid.measures.arrays.matching import match_counts

_SETUP = """
import time
import numpy as np, pandas as pd, pyhybrid as ph
rng = np.random.default_rng(1)
n = {n}
age = rng.integers(18, 90, n)
income = np.exp(9 + age / 60 + rng.normal(0, 0.8, n))
real = pd.DataFrame(dict(age=age, sex=rng.choice(["f", "m"], n), income=income))
synthetic = real.assign(age=age + rng.integers(-1, 2, n))
synthetic["income"] *= np.exp(rng.normal(0, 0.3, n))
started = time.perf_counter()
{call}
print(time.perf_counter() - started)
"""
_CALLS = {
    "imports and data only": "pass",
    "matching risk, age within 2, sex, income within 10 %": (
        'ph.measures.matching_risk(real, synthetic, keys=["age", "sex", "income"], '
        'radius=dict(age=2, income=0.1), kind=dict(income="relative"))'
    ),
    "matching risk, wide: age within 10, income within 50 %": (
        'ph.measures.matching_risk(real, synthetic, keys=["age", "sex", "income"], '
        'radius=dict(age=10, income=0.5), kind=dict(income="relative"))'
    ),
    "pMSE by CART, 20 permutations, 3 columns": (
        'ph.measures.propensity_utility(real, synthetic, classifier="cart", rng=1)'
    ),
    "pMSE by logistic regression, 3 columns": "ph.measures.propensity_utility(real, synthetic)",
}


def double_loop(targets: np.ndarray, candidates: np.ndarray, radius: np.ndarray) -> list[int]:
    """Matches of each target, as the definition reads."""
    return [
        sum(
            all(abs(z - x) <= r for z, x, r in zip(other, own, reach, strict=True))
            for other in candidates
        )
        for own, reach in zip(targets, radius, strict=True)
    ]


def run() -> None:
    """Each call in a process of its own; seconds of the call, peak memory of the process."""
    print("Measures: one synthetic set, three columns; memory of the whole process")
    for n in (10_000, 100_000):
        for label, call in _CALLS.items():
            seconds, memory = _timed(_SETUP.format(n=n, call=call))
            line(f"n = {n:,}: {label}", seconds, f"{memory:,.0f} MB")
    rng = np.random.default_rng(2)
    ages, sexes = rng.integers(18, 90, 1000), rng.integers(0, 2, 1000)
    x = np.column_stack([ages, sexes, rng.normal(size=1000)])
    z = x[rng.permutation(1000)]
    reach = np.broadcast_to([2.0, 0.0, 0.2], x.shape)
    ours = best_of(lambda: match_counts(x, z, reach))
    loop = best_of(lambda: double_loop(x, z, reach), 1)
    same = match_counts(x, z, reach).tolist() == double_loop(x, z, reach)
    line("n = 1,000: match_counts", ours)
    line("n = 1,000: double loop", loop, f"ratio {loop / ours:,.0f}; counts equal: {same}")


def _timed(code: str) -> tuple[float, float]:
    """Seconds that the code prints of itself, and peak memory in MB."""
    probe = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    done = subprocess.run(
        [sys.executable, "-c", code + probe], capture_output=True, text=True, check=True
    )
    seconds, memory = done.stdout.split()[-2:]
    return float(seconds), float(memory)
