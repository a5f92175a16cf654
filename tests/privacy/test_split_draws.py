"""Ranges with their delta: exact coverage over repetitions of the sampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.bounds import share_bound
from tests.privacy.enumerated import LOG_LIK, exact_delta, log_posterior

DATABASE = (3, 4, 4, 5, 6, 6, 7, 9)
RUNS = 60


@pytest.mark.parametrize("honest", [True, False])
def test_what_is_stated_holds_and_ranges_of_the_released_half_are_caught(honest: bool) -> None:
    """Control: ranges from the very draws that are released always find delta next to nothing."""
    rng = np.random.default_rng(1)
    terms = LOG_LIK[:, DATABASE]
    whole = log_posterior(terms)
    rests = [log_posterior(np.delete(terms, i, axis=1)) for i in range(len(DATABASE))]
    right = 0
    for _ in range(RUNS):
        points = rng.choice(whole.size, size=240, p=np.exp(whole))
        if not honest:
            points[:120] = points[120:]
            found = ph.split_ranges(terms[points], ess=120)
            stated = found.epsilon, found.share  # what leaves the ranges: nothing
        else:
            found = ph.split_ranges(terms[points], ess=120)
            stated = found.epsilon, found.delta
        low, high = terms[points[:120]].min(axis=0), terms[points[:120]].max(axis=0)
        outside = ((terms < low) | (terms > high)).any(axis=1)
        mass = max(np.exp(p)[outside].sum() for p in (whole, *rests))
        exact = max(exact_delta(whole, rest, stated[0]) for rest in rests)
        right += mass <= stated[1] and exact <= stated[1]
    assert (right >= binom.ppf(1e-4, RUNS, 0.95)) if honest else (right < RUNS / 2)


def test_more_draws_state_a_smaller_delta() -> None:
    rng = np.random.default_rng(2)
    deltas = [ph.split_ranges(0.1 * rng.normal(size=(k, 3))).delta for k in (200, 2000, 20_000)]
    assert deltas[0] > deltas[1] > deltas[2]
    found = ph.split_ranges(0.1 * rng.normal(size=(2000, 3)), chains=2)
    assert found.ranges.kept_draws.tolist() == [False] * 1000 + [True] * 1000
    assert found.epsilon == pytest.approx(found.ranges.overall - np.log1p(-found.delta))


def test_the_bound_of_a_share_is_that_of_clopper_and_pearson() -> None:
    for count, n in ((0, 50), (3, 50), (49, 50)):
        bound = share_bound(count / n, n, 0.95)
        assert binom.cdf(count, n, bound) == pytest.approx(0.05, rel=1e-6)
    assert share_bound(1.0, 50, 0.95) == 1.0


def test_correlated_draws_count_for_less_and_not_finite_for_nothing() -> None:
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.normal(size=(2000, 1)), axis=0) * 0.02
    assert ph.split_ranges(walk).delta > 3 * ph.split_ranges(rng.permutation(walk)).delta
    walk[1500] = -np.inf
    found = ph.split_ranges(walk)
    assert (found.delta, found.epsilon) == (1.0, np.inf)


def test_refusals() -> None:
    draws = np.zeros((10, 2))
    with pytest.raises(InvalidInput, match="released must leave draws for the ranges"):
        ph.split_ranges(draws, released=np.ones(10, dtype=bool))
    with pytest.raises(InvalidInput, match="released must be True or False for each of 10 draws"):
        ph.split_ranges(draws, released=[1, 0])
    with pytest.raises(InvalidInput, match="confidence must lie in"):
        ph.split_ranges(draws, confidence=1.0)
    with pytest.raises(InvalidInput, match="at least 4 in each of 2"):
        ph.split_ranges(draws, chains=2)
