"""How often `pyhybrid.verify` says yes, by how far the synthetic estimate is off and by epsilon.

The tolerance is two standard errors of the mean of 2,000 records; the synthetic mean is off by a
known number of them, so that up to 2 the right answer is yes and beyond it is no. Beside each rate,
what the noise alone would give, from the distribution function of the Laplace noise: what blocks
lose against all records, and clipping, are in the difference of the two.

    python -m benchmarks verification
    python -c "from benchmarks.verification import run; run(50, 'coefficient:y ~ x:x', (1.0,))"
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.verification import read_query

N, TOLERANCE = 2000, 2.0  # the tolerance in standard errors
OFF = (0.0, 1.0, 1.5, 2.5, 3.0, 4.0, 6.0)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
QUERIES = {"mean:y": 1.0, "quantile:y:0.9": 1.71, "share:g:a": 0.458}
"""Standard error of each, in those of a mean; of the quantile by the density of the outcome."""


def records(rng: np.random.Generator) -> pd.DataFrame:
    """A skewless outcome of deviation near 1 given a standard normal predictor, and groups."""
    x = rng.normal(size=N)
    return pd.DataFrame(
        {"y": 5 + rng.normal(size=N), "x": x, "g": rng.choice(["a", "b"], N, p=[0.3, 0.7])}
    )


def by_noise_alone(off: float, epsilon: float, blocks: int) -> float:
    """Probability that off + Laplace noise is within the tolerance, all in standard errors."""
    scale = 2 * (1 + math.sqrt(blocks)) * TOLERANCE / (blocks * epsilon)

    def below(z: float) -> float:
        return 0.5 * math.exp(z) if z < 0 else 1 - 0.5 * math.exp(-z)

    return below((TOLERANCE - off) / scale) - below((-TOLERANCE - off) / scale)


def rate(query: str, off: float, epsilon: float, runs: int, seed: int = 1) -> tuple[float, int]:
    """Share of yes, and the number of blocks."""
    rng, asked, held = np.random.default_rng([seed, int(10 * off)]), read_query(query), []
    for _ in range(runs):
        data = records(rng)
        error = QUERIES.get(query, 1.0) / math.sqrt(N)
        shifted = _off_by(data, query, asked.of(data), off * error)
        answer = ph.verify(shifted, data, query, tolerance=TOLERANCE * error, epsilon=epsilon)
        held.append(answer.within)
    return float(np.mean(held)), answer.blocks


def _off_by(data: pd.DataFrame, query: str, truth: float, distance: float) -> pd.DataFrame:
    """Synthetic records whose estimate is `truth` less `distance`."""
    if query.startswith("coefficient"):
        x = np.array([-1.0, 0.0, 1.0])
        return pd.DataFrame({"x": x, "y": (truth - distance) * x + np.array([0.1, -0.2, 0.1])})
    if query.startswith("share"):
        ones = round(1e5 * (truth - distance))
        return pd.DataFrame({"g": ["a"] * ones + ["b"] * (100_000 - ones)})
    return pd.DataFrame({"y": [truth - distance]})


def run(
    runs: int = 300, query: str | None = None, epsilons: Sequence[float] = EPSILONS
) -> pd.DataFrame:
    """Print the share of yes by query, distance and epsilon, with that of the noise alone."""
    names = [query] if query is not None else list(QUERIES)
    rows = []
    for name in names:
        for off in OFF:
            cells = {}
            for epsilon in epsilons:
                found, blocks = rate(name, off, epsilon, runs)
                cells[f"{epsilon:g}"] = f"{found:.2f} ({by_noise_alone(off, epsilon, blocks):.2f})"
            right = "yes" if off <= TOLERANCE else "no"
            rows.append({"query": name, "off by": off, "right": right, **cells})
    shown = pd.DataFrame(rows).set_index(["query", "off by", "right"])
    print(
        f"Share of yes of {runs} answers (what the noise alone gives) by epsilon; {N} records in "
        f"{blocks} blocks, tolerance {TOLERANCE:g} standard errors; Monte Carlo error at most "
        f"{0.5 / math.sqrt(runs):.3f}"
    )
    print(shown.to_string())
    return shown


if __name__ == "__main__":
    run()
