"""Audits of noise: exact where the distribution is known, by confidence bounds where it is run.

Each audit has a negative control: the same mechanism with half the noise, which it must refute.
OpenDP's noise has no seed; a confidence of 1 - 1e-6 makes a false alarm as rare as that.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.privacy.epsilon_audit import audit_epsilon, epsilon_lower_bound
from pyhybrid.privacy.histogram import perturbed_probabilities
from pyhybrid.validation.audits.enumeration import histogram_loss, response_loss
from pyhybrid.validation.audits.noise import marginals_audits, share_in_first_bin
from tests.refusals import refuses

Array = np.ndarray
CONFIDENCE = 1 - 1e-6
EPSILON = 1.0
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
        assert found.shares[0] > found.shares[1]
        assert found.refutes(2)
        assert not found.refutes(20)
    same = audit_epsilon(rng.normal(size=4000), rng.normal(size=4000), confidence=CONFIDENCE)
    assert same.lower_bound == 0
    constant = audit_epsilon(np.zeros(10), np.zeros(10))
    assert constant.lower_bound == 0


@pytest.mark.parametrize(("call", "message"), [
    (lambda: epsilon_lower_bound(3, 2, 0, 2), "hits must be at most"),
    (lambda: epsilon_lower_bound(-1, 2, 0, 2), "hits"),
    (lambda: epsilon_lower_bound(1, 0, 0, 2), "runs"),
    (lambda: epsilon_lower_bound(1, 2, 0, 2, confidence=1.0), "below 1"),
    (lambda: epsilon_lower_bound(1, 2, 0, 2, confidence=0.0), "confidence"),
    (lambda: audit_epsilon([1, 2, 3], [1, 2, 3, 4]), "at least 4"),
    (lambda: audit_epsilon([1, 2, 3, np.nan], [1, 2, 3, 4]), "NaN"),
    (lambda: audit_epsilon([1, 2, 3, 4], [1, 2, 3, 4], confidence=1.0), "below 1"),
])  # fmt: skip
def test_bad_input_of_the_audit(call: Any, message: str) -> None:
    refuses(message, call)


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


def audited(score: Callable[[Any, float], Array], neighbors: tuple[Any, Any], stated: float) -> Any:
    """Scores of two neighbors: not refuted at `stated`, and refuted with half of the noise."""
    honest, halved = (
        audit_epsilon(*(score(own, epsilon) for own in neighbors), confidence=CONFIDENCE)
        for epsilon in (stated, 2 * stated)
    )
    assert not honest.refutes(stated)
    assert halved.refutes(stated)
    return honest


@pytest.mark.long
@needs_opendp
def test_randomized_response_as_it_runs() -> None:
    """Every person is a run: 10000 who say yes against 10000 who say no."""
    runs, stated = 10000, 1.0

    def answers(said: bool, epsilon: float) -> Array:
        return ph.primitives.randomized_response(np.full(runs, said), epsilon=epsilon).value

    honest = audited(answers, (True, False), stated)
    assert honest.lower_bound > 0.7 * stated, "the audit must be able to see a violation"


def test_perturbed_histogram_exactly() -> None:
    """One record in either of two bins attains epsilon: all mass in its own bin, none in the other.
    Each of the two counts contributes epsilon / 2, which is why the sensitivity is 2."""
    assert histogram_loss(2 / EPSILON, n=1) == pytest.approx(EPSILON, rel=1e-9)
    assert histogram_loss(2 / EPSILON, n=3) <= EPSILON * (1 + 1e-9)
    assert histogram_loss(1 / EPSILON, n=1) == pytest.approx(2 * EPSILON, rel=1e-9)


@pytest.mark.long
@needs_opendp
def test_whole_releases_of_the_perturbed_histogram() -> None:
    """Many sets from one histogram cost no more than one: 5 of them are still within epsilon."""
    audited(partial(share_in_first_bin, runs=1600), (0, 1), 2.0)


counted = partial(ph.primitives.laplace_counts, n_categories=2)


@pytest.mark.long
@needs_opendp
@pytest.mark.parametrize(
    ("relation", "neighbor"), [("remove", []), ("replace", [1])], ids=["remove", "replace"]
)
def test_counts_under_both_relations(relation: str, neighbor: list[int]) -> None:
    """One record against none, and against another one: pairs that attain epsilon. Of 8,000 runs
    the lower bound is above 0.4 by 7 of its deviations, of 3,000 by 2."""

    def score(codes: list[int], epsilon: float) -> Array:
        runs = 8000 if epsilon == EPSILON else 3000
        found = [counted(codes, epsilon=epsilon, relation=relation).value for _ in range(runs)]
        # Count 0 is there (and, for a replacement, count 1 is not).
        return np.array([c[0] if relation == "remove" else min(c[0], 1 - c[1]) for c in found])

    assert audited(score, ([0], neighbor), EPSILON).lower_bound > 0.4 * EPSILON


@needs_opendp
def test_replacing_a_record_under_the_noise_of_remove_is_refuted() -> None:
    """The reason for Laplace(2 / epsilon): with scale 1 / epsilon a replacement costs twice."""

    def shares(code: int) -> Array:
        found = [counted([code], epsilon=EPSILON, relation="remove").value for _ in range(3000)]
        return np.array([perturbed_probabilities(f, np.zeros(2))[0] for f in found])

    assert audit_epsilon(shares(0), shares(1), confidence=CONFIDENCE).refutes(EPSILON)


@needs_opendp
@pytest.mark.long
def test_losses_of_noisy_marginals_are_attained_and_the_broken_ones_are_caught() -> None:
    found = marginals_audits()
    assert all(each.passed for each in found)
    assert len({each.mechanism for each in found}) == 6
    for each in found:
        if "private choice" in each.mechanism:  # choices tell less than their epsilon
            assert 0.9 < each.loss < 1 + 1e-9 < 1.05 < each.control_loss
            continue
        assert each.loss == pytest.approx(1.0)
        if "Gaussian" not in each.mechanism and each.control == "noise / 2":
            assert each.control_loss == pytest.approx(2.0)
        elif each.mechanism == "NoisyMarginals" and each.control == "noise of one table":
            assert each.control_loss == pytest.approx(3.0)
        elif each.control == "levels read":
            assert each.control_loss == math.inf
        assert each.control_loss > 1.3
