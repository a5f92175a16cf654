"""Noise: exact losses where the distribution is known, confidence bounds where it is run.

Each pair of databases is one that attains the stated epsilon, or nearly, and each score tells the
two apart. OpenDP's noise has no seed; a confidence of 1 - 1e-6 makes a false alarm as rare as that.
The control is the same mechanism with less noise, which must be refuted.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import pyhybrid as ph
from pyhybrid.primitives import (
    dp_kmeans,
    exponential_mechanism,
    laplace_counts,
    laplace_histogram,
    laplace_mean,
    laplace_sum,
    laplace_vector,
    randomized_response,
)
from pyhybrid.privacy.histogram import perturbed_probabilities
from tests.audits.enumeration import EPSILON, Array
from tests.audits.epsilon_audit import audit_epsilon, epsilon_lower_bound

CONFIDENCE = 1 - 1e-6
needs_opendp = pytest.mark.usefixtures("opendp")


def test_the_bound_covers_the_true_epsilon_exactly() -> None:
    """Coverage over every outcome of two binomials: never below the stated confidence."""
    n, p, q, confidence = 30, 0.6, 0.3, 0.9
    outcomes = np.arange(n + 1)
    joint = np.outer(binom.pmf(outcomes, n, p), binom.pmf(outcomes, n, q))
    bounds = np.array([
        [epsilon_lower_bound(int(k), n, int(j), n, confidence=confidence) for j in outcomes]
        for k in outcomes
    ])  # fmt: skip
    assert joint[bounds <= math.log(p / q)].sum() >= confidence
    assert (bounds > math.log(p / q) / 2).any(), "it does exceed smaller values at times"


def test_the_audit_finds_the_event_in_either_direction() -> None:
    rng = np.random.default_rng(1)
    low, high = rng.normal(0, 1, 4000), rng.normal(3, 1, 4000)
    for one, other in ((low, high), (high, low), (-low, -high)):
        assert 2 < audit_epsilon(one, other) < 20
    assert audit_epsilon(low, rng.normal(size=4000), confidence=CONFIDENCE) == 0
    assert audit_epsilon(np.zeros(10), np.zeros(10)) == 0


def histogram_loss(scale: float, n: int) -> float:
    """Largest loss over neighbors of n records in two bins, noise cut at +-8 for both."""
    worst = 0.0
    for k in range(n):
        one, other = _law_of_shares((k, n - k), scale), _law_of_shares((k + 1, n - k - 1), scale)
        for shares in (1.0, 0.0), (0.0, 1.0), (0.5, 0.5):
            worst = max(worst, abs(math.log(one[shares] / other[shares])))
    return worst


def _law_of_shares(counts: tuple[int, ...], scale: float) -> dict[tuple[float, ...], float]:
    """Exact distribution of the released bin probabilities."""
    values, probability = _discrete_laplace(scale, reach=8)
    law: dict[tuple[float, ...], float] = {}
    for places in itertools.product(range(values.size), repeat=len(counts)):
        shares = perturbed_probabilities(np.array(counts), values[list(places)])
        key = tuple(np.round(shares, 12))
        law[key] = law.get(key, 0.0) + float(np.prod(probability[list(places)]))
    return law


def _discrete_laplace(scale: float, reach: int) -> tuple[Array, Array]:
    """Values and probabilities of OpenDP's integer noise; the ends hold the tails."""
    q = math.exp(-1 / scale)
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    probability: Array = (1 - q) / (1 + q) * q ** np.abs(values)
    probability[[0, -1]] = q**reach / (1 + q)
    return values, probability


@needs_opendp
@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.log(3), 5.0])
def test_randomized_response_exactly(epsilon: float) -> None:
    """Of the two reports of the one person who differs: the loss is epsilon, not above it."""
    p = randomized_response([True], epsilon=epsilon).keep_probability
    assert epsilon * (1 - 1e-9) <= math.log(p / (1 - p)) <= epsilon * (1 + 1e-12)


def test_perturbed_histogram_exactly() -> None:
    """One record in either of two bins attains epsilon: all mass in its own bin, none in the other.
    Each of the two counts contributes epsilon / 2, which is why the sensitivity is 2."""
    assert histogram_loss(2 / EPSILON, n=1) == pytest.approx(EPSILON, rel=1e-9)
    assert histogram_loss(2 / EPSILON, n=3) <= EPSILON * (1 + 1e-9)
    assert histogram_loss(1 / EPSILON, n=1) == pytest.approx(2 * EPSILON, rel=1e-9)


RUNS = 3000
Score = Callable[[Any, float, int], Array]
"""From a database, an epsilon and a number of runs to one score per run."""


def _once(primitive: Callable[..., Any], pick: Callable[[Any], float] = float, **how: Any) -> Score:
    return lambda database, epsilon, n: np.array(
        [pick(primitive(database, epsilon=epsilon, **how).value) for _ in range(n)], dtype=float
    )


def _response(answer: bool, epsilon: float, runs: int) -> Array:
    """Every person is a run."""
    return np.asarray(
        randomized_response(np.full(runs, answer), epsilon=epsilon).value, dtype=float
    )


def _centers(rows: list[list[float]], epsilon: float, runs: int) -> Array:
    """Which of two corners the one row is in, by noisy counts and by noisy sums."""

    def score() -> float:
        clusters = dp_kmeans(rows, n_clusters=2, n_rounds=1, epsilon=epsilon, start=[[1.0], [-1.0]])
        counts, sums = clusters.counts, clusters.counts * clusters.value[:, 0]
        by_counts = abs(counts[0]) + abs(counts[1] - 1) - abs(counts[0] - 1) - abs(counts[1])
        # The center of an empty cluster tells nothing of its sum.
        by_sum = np.where(counts >= 1, np.abs(sums) - np.abs(sums - [1, -1]), 0.0)
        return float(by_counts + by_sum[0] - by_sum[1])

    return np.array([score() for _ in range(runs)])


def _shares(own_bin: int, epsilon: float, runs: int) -> Array:
    """Share of the first bin in `runs` noisy histograms of one record."""
    mechanism = ph.PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    return np.array([mechanism._noisy_shares(np.array([own_bin]))[0] for _ in range(runs)])


def _releases(value: int, epsilon: float, runs: int) -> Array:
    """Over whole releases of many sets from one histogram: the share of values in the first bin."""
    df = pd.DataFrame({"y": [value]})
    mechanism = ph.PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    sets = (mechanism.release(df, n_synthetic=5).synthetic for _ in range(runs))
    return np.array([np.mean([t["y"].iloc[0] < 0.5 for t in five]) for five in sets])


def _answer_tables(answer: int, epsilon: float, runs: int) -> Array:
    """The noisy table of one record's answer, as of counts."""
    domain = {"y": ph.mechanisms.ColumnDomain(levels=(0, 1))}
    mechanism, df = ph.NoisyMarginals(domain=domain, epsilon=epsilon), pd.DataFrame({"y": [answer]})
    measuring = mechanism._counted(df)
    tables = [measuring.all_tables().answers[-1].tables()[0].ravel() for _ in range(runs)]
    return np.array([min(cells[0], 1 - cells[1]) for cells in tables])


UNIT: dict[str, Any] = {"lower": 0, "upper": 1}
_FAVORED = [1.0] + [0.0] * 6, [0.0] + [1.0] * 6
NOISE: dict[str, tuple[tuple[Any, Any], Score, float, float, float]] = {
    "randomized_response": ((True, False), _response, 1, 1, 2),
    "laplace_counts, remove": (
        ([0], []), _once(laplace_counts, lambda c: c[0], n_categories=2, relation="remove"),
        1, 1, 2,
    ),
    "laplace_counts, replace": (
        ([0], [1]),
        _once(laplace_counts, lambda c: min(c[0], 1 - c[1]), n_categories=2, relation="replace"),
        1, 1, 2,
    ),
    "laplace_histogram": (
        ([0.25, 0.75], [0.75]), _once(laplace_histogram, lambda c: c[0], n_bins=2, **UNIT), 1, 1, 2,
    ),
    "laplace_sum, remove": (
        ([1, 1], [1]), _once(laplace_sum, relation="remove", **UNIT), 0.4, 1, 3,
    ),
    "laplace_sum, replace": (
        ([1], [0]), _once(laplace_sum, relation="replace", **UNIT), 0.4, 1, 3,
    ),
    "laplace_vector": (
        ([1.0, 0.0], [0.0, 1.0]),
        _once(laplace_vector, lambda v: min(v[0], 1 - v[1]), sensitivity=2, relation="replace"),
        1, 1, 2,
    ),
    "laplace_mean": (([1], [0]), _once(laplace_mean, **UNIT), 0.4, 1, 3),
    # What these two show is only a part of their noise: a weaker control would not be seen.
    "exponential_mechanism": (
        _FAVORED,
        _once(exponential_mechanism, lambda v: v == 0, sensitivity=1, relation="replace"),
        0.5, 1, 4,
    ),
    "dp_kmeans": (([[1.0]], [[-1.0]]), _centers, 0.35, 1, 6),
    "NoisyMarginals, its tables": ((0, 1), _answer_tables, 1, 1, 2),
    "PerturbedHistogram, its shares": ((0, 1), _shares, 1, 1, 2),
    "PerturbedHistogram, whole releases": ((0, 1), _releases, 0.1, 1, 5),
}  # fmt: skip
"""Every mechanism whose noise comes from OpenDP: two neighbors, a score of outputs, the share of
`RUNS` that is run, epsilon, and the control, with so many times less noise."""


def test_every_mechanism_with_noise_has_its_case() -> None:
    names = {name.split(",")[0] for name in NOISE}
    primitives = {name for name in ph.primitives.__all__ if name.islower()}
    assert primitives | {"PerturbedHistogram", "NoisyMarginals"} == names


@pytest.mark.long
@needs_opendp
@pytest.mark.parametrize("case", NOISE)
def test_noise_keeps_to_epsilon_and_less_of_it_is_refuted(case: str) -> None:
    databases, score, share, epsilon, times = NOISE[case]

    def bound(spent: float) -> float:
        one, other = (score(database, spent, int(share * RUNS)) for database in databases)
        return audit_epsilon(one, other, confidence=CONFIDENCE)

    assert bound(epsilon) <= epsilon < bound(times * epsilon)
