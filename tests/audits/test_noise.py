"""Noise: exact losses where the distribution is known, confidence bounds where it is run.

Each pair of databases is one that attains the stated epsilon, or nearly, and each score tells the
two apart. OpenDP's noise has no seed; a confidence of 1 - 1e-6 makes a false alarm as rare as that.
The control is the same mechanism with less noise, which must be refuted.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.mechanisms.marginals.select import CountedFrame
from pyhybrid.primitives import (
    dp_kmeans,
    exponential_mechanism,
    laplace_counts,
    laplace_histogram,
    laplace_mean,
    laplace_sum,
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
    from scipy.stats import binom

    joint = np.outer(binom.pmf(outcomes, n, p), binom.pmf(outcomes, n, q))
    covered = sum(
        joint[k, j]
        for k, j in itertools.product(outcomes, outcomes)
        if epsilon_lower_bound(int(k), n, int(j), n, confidence=confidence) <= math.log(p / q)
    )
    assert covered >= confidence
    nearer = math.log(p / q) / 2  # the bound is not empty: it does exceed smaller values at times
    assert any(
        epsilon_lower_bound(int(k), n, int(j), n, confidence=confidence) > nearer
        for k, j in itertools.product(outcomes, outcomes)
    )


def test_bounds_by_hand() -> None:
    assert epsilon_lower_bound(0, 100, 0, 100) == 0
    assert epsilon_lower_bound(50, 100, 50, 100) == 0
    assert epsilon_lower_bound(100, 100, 100, 100) == 0
    # All against none of n: Clopper-Pearson gives a^(1/n) and 1 - a^(1/n), a = (1 - c) / 2.
    edge = 0.005 ** (1 / 200)
    assert epsilon_lower_bound(200, 200, 0, 200, confidence=0.99) == pytest.approx(
        math.log(edge / (1 - edge))
    )


def test_the_audit_finds_the_event_in_either_direction() -> None:
    rng = np.random.default_rng(1)
    low, high = rng.normal(0, 1, 4000), rng.normal(3, 1, 4000)
    for one, other in ((low, high), (high, low), (-low, -high)):
        found = audit_epsilon(one, other)
        assert found.lower_bound > 2
        assert found.refutes(2)
        assert not found.refutes(20)
    same = audit_epsilon(rng.normal(size=4000), rng.normal(size=4000), confidence=CONFIDENCE)
    assert same.lower_bound == 0
    constant = audit_epsilon(np.zeros(10), np.zeros(10))
    assert constant.lower_bound == 0


def response_loss(keep: float, *, persons: int = 2) -> float:
    """Largest loss of randomized response over all reports and all neighbors."""

    def log_probability(report: tuple[bool, ...], truth: tuple[bool, ...]) -> float:
        alike = sum(r == t for r, t in zip(report, truth, strict=True))
        return alike * math.log(keep) + (persons - alike) * math.log(1 - keep)

    everyone = list(itertools.product([True, False], repeat=persons))
    return max(
        log_probability(report, x) - log_probability(report, y)
        for report, x, y in itertools.product(everyone, repeat=3)
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1
    )


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
    """All reports of two persons, all neighbors: the largest loss is epsilon, not above it."""
    p = ph.primitives.randomized_response([True], epsilon=epsilon).keep_probability

    assert response_loss(p) == pytest.approx(epsilon, rel=1e-9)
    assert response_loss(p) <= epsilon * (1 + 1e-12)
    assert response_loss(1 / (1 + math.exp(-2 * epsilon))) > 1.9 * epsilon, (
        "half the noise must show"
    )


def test_perturbed_histogram_exactly() -> None:
    """One record in either of two bins attains epsilon: all mass in its own bin, none in the other.
    Each of the two counts contributes epsilon / 2, which is why the sensitivity is 2."""
    assert histogram_loss(2 / EPSILON, n=1) == pytest.approx(EPSILON, rel=1e-9)
    assert histogram_loss(2 / EPSILON, n=3) <= EPSILON * (1 + 1e-9)
    assert histogram_loss(1 / EPSILON, n=1) == pytest.approx(2 * EPSILON, rel=1e-9)


@needs_opendp
def test_replacing_a_record_under_the_noise_of_remove_is_refuted() -> None:
    """The reason for Laplace(2 / epsilon): with scale 1 / epsilon a replacement costs twice."""

    def shares(code: int) -> Array:
        found = [
            laplace_counts([code], n_categories=2, epsilon=EPSILON, relation="remove").value
            for _ in range(3000)
        ]
        return np.array([perturbed_probabilities(f, np.zeros(2))[0] for f in found])

    assert audit_epsilon(shares(0), shares(1), confidence=CONFIDENCE).refutes(EPSILON)


# --- Mechanisms as they run -----------------------------------------------------------------------

RUNS, _CANDIDATES = 3000, 6
Score = Callable[[Any, float, int], Array]
"""From a database, an epsilon and a number of runs to one score per run."""


@dataclass(frozen=True)
class NoiseCase:
    """A mechanism, two neighbors and a score of outputs, run a `share` of the runs asked for (whole
    releases take longer); the control at `control_times` epsilon, with so many times less noise."""

    mechanism: str
    relation: str
    databases: tuple[Any, Any]
    score: Score
    share: float = 1.0
    epsilon: float = EPSILON
    control_times: float = 2.0


def _repeated(run: Callable[[Any, float], float]) -> Score:
    return lambda database, epsilon, n: np.array([run(database, epsilon) for _ in range(n)])


def _response(answer: bool, epsilon: float, runs: int) -> Array:
    """Every person is a run."""
    return np.asarray(
        randomized_response(np.full(runs, answer), epsilon=epsilon).value, dtype=np.float64
    )


def _counts(relation: str) -> Score:
    def run(codes: list[int], epsilon: float) -> float:
        c = laplace_counts(codes, n_categories=2, epsilon=epsilon, relation=relation).value
        # Count 0 is there (and, for a replacement, count 1 is not).
        return float(c[0] if relation == "remove" else min(c[0], 1 - c[1]))

    return _repeated(run)


def _histogram(values: list[float], epsilon: float) -> float:
    return float(laplace_histogram(values, lower=0, upper=1, n_bins=2, epsilon=epsilon).value[0])


def _sum(relation: str) -> Score:
    def run(values: list[float], epsilon: float) -> float:
        how: Any = {"lower": 0, "upper": 1, "epsilon": epsilon, "relation": relation}
        return float(laplace_sum(values, **how).value)

    return _repeated(run)


def _mean(values: list[float], epsilon: float) -> float:
    return float(laplace_mean(values, lower=0, upper=1, epsilon=epsilon).value)


def _choice(scores: list[float], epsilon: float) -> float:
    """1 if the first candidate was chosen."""
    chosen = exponential_mechanism(scores, sensitivity=1, epsilon=epsilon, relation="replace")
    return float(chosen.value == 0)


def _centers(rows: list[list[float]], epsilon: float) -> float:
    """Which of two corners the one row is in, by noisy counts and by noisy sums."""
    clusters = dp_kmeans(rows, n_clusters=2, n_rounds=1, epsilon=epsilon, start=[[1.0], [-1.0]])
    counts, sums = clusters.counts, clusters.counts * clusters.value[:, 0]
    by_counts = abs(counts[0]) + abs(counts[1] - 1) - abs(counts[0] - 1) - abs(counts[1])
    filled = counts >= 1  # the center of an empty cluster tells nothing of its sum
    by_sum = np.where(filled, np.abs(sums) - np.abs(sums - [1, -1]), 0.0)
    other = np.where(filled, np.abs(sums) - np.abs(sums - [1, -1]), 0.0)
    return float(by_counts + by_sum[0] - other[1])


def released_shares(own_bin: int, epsilon: float, runs: int) -> Array:
    """Share of the first bin in `runs` noisy histograms of one record."""
    mechanism = ph.PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    return np.array([mechanism._noisy_shares(np.array([own_bin]))[0] for _ in range(runs)])


def share_in_first_bin(value: int, epsilon: float, runs: int) -> Array:
    """Over whole releases of many sets from one histogram: the share of values in the first bin."""
    df = pd.DataFrame({"y": [value]})
    mechanism = ph.PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    return np.array(
        [
            np.mean([t["y"].iloc[0] < 0.5 for t in mechanism.release(df, n_synthetic=5).synthetic])
            for _ in range(runs)
        ]
    )


def _answer_tables(answer: int, epsilon: float, runs: int) -> Array:
    """The noisy table of one record's answer, as in `_counts`."""
    domain = {"y": ph.mechanisms.ColumnDomain(levels=(0, 1))}
    mechanism, df = ph.NoisyMarginals(domain=domain, epsilon=epsilon), pd.DataFrame({"y": [answer]})
    measuring = mechanism._measuring(df)
    data = CountedFrame(table=df, public=measuring.public)
    tables = [measuring.all_tables(data).answers[-1].tables()[0].ravel() for _ in range(runs)]
    return np.array([min(cells[0], 1 - cells[1]) for cells in tables])


_FAVORED = [1.0] + [0.0] * _CANDIDATES, [0.0] + [1.0] * _CANDIDATES
_SLOW = {"share": 0.4, "control_times": 3}
_RELEASES = {"share": 0.25, "epsilon": 2.0, "control_times": 3}
# What these two show is only a part of their noise: a weaker control would not be seen.
_CHOICE = {"share": 0.5, "control_times": 4}
_CLUSTERS = {"share": 0.35, "control_times": 6}
NOISE = (
    NoiseCase("randomized_response", "replace", (True, False), _response),
    NoiseCase("laplace_counts", "remove", ([0], []), _counts("remove")),
    NoiseCase("laplace_counts", "replace", ([0], [1]), _counts("replace")),
    NoiseCase("laplace_histogram", "remove", ([0.25, 0.75], [0.75]), _repeated(_histogram)),
    NoiseCase("laplace_sum", "remove", ([1, 1], [1]), _sum("remove"), **_SLOW),
    NoiseCase("laplace_sum", "replace", ([1], [0]), _sum("replace"), **_SLOW),
    NoiseCase("laplace_mean", "replace", ([1], [0]), _repeated(_mean), **_SLOW),
    NoiseCase("exponential_mechanism", "replace", _FAVORED, _repeated(_choice), **_CHOICE),
    NoiseCase("dp_kmeans", "replace", ([[1.0]], [[-1.0]]), _repeated(_centers), **_CLUSTERS),
    NoiseCase("NoisyMarginals, its tables", "replace", (0, 1), _answer_tables),
    NoiseCase("PerturbedHistogram, its shares", "replace", (0, 1), released_shares),
    NoiseCase(
        "PerturbedHistogram, whole releases", "replace", (0, 1), share_in_first_bin, **_RELEASES
    ),
)
"""Every mechanism whose noise comes from OpenDP."""


def test_every_mechanism_with_noise_has_its_case() -> None:
    names = {case.mechanism.split(",")[0] for case in NOISE}
    primitives = {name for name in ph.primitives.__all__ if name.islower()}
    assert primitives | {"PerturbedHistogram", "NoisyMarginals"} == names


def bound(case: NoiseCase, epsilon: float) -> float:
    """Lower confidence bound on the loss at this epsilon."""
    runs = max(8, int(case.share * RUNS))
    one, other = (case.score(database, epsilon, runs) for database in case.databases)
    return audit_epsilon(one, other, confidence=CONFIDENCE).lower_bound


@pytest.mark.long
@needs_opendp
@pytest.mark.parametrize("case", NOISE, ids=lambda case: f"{case.mechanism}, {case.relation}")
def test_noise_keeps_to_epsilon_and_less_of_it_is_refuted(case: NoiseCase) -> None:
    assert bound(case, case.epsilon) <= case.epsilon
    assert bound(case, case.control_times * case.epsilon) > case.epsilon
