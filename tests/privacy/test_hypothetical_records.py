"""Records that could have been: against refits with the record added; what keeps them finite."""

import numpy as np
import pytest
from scipy.stats import gamma, nbinom

import pyhybrid as ph
from tests.privacy.enumerated import LOG_LIK, SUPPORT, log_posterior


def test_adding_any_record_of_the_support_stays_within_its_range() -> None:
    for database in ((0, 1, 5), (3, 3, 3), (0, 14, 15)):
        whole = log_posterior(LOG_LIK[:, database])
        found = ph.arrays.possible_records(LOG_LIK, np.ones(len(SUPPORT)), ess=1000)
        for z in SUPPORT:
            loss = log_posterior(LOG_LIK[:, (*database, z)]) - whole
            assert np.abs(loss).max() <= found.ranges.by_record[z]


def test_deviations_with_the_record_added_are_those_of_a_refit() -> None:
    """Conjugate Poisson: the neighbor has the record, and its posterior is known."""
    rng = np.random.default_rng(1)
    y = rng.poisson(5, 60)
    shape, rate = 1 + y.sum(), 0.1 + y.size
    support = np.arange(0, 25, 4)

    def terms(theta: np.ndarray) -> np.ndarray:
        return np.outer(np.log(theta), support) - theta[:, None]

    levels = (rng.permutation(20_000) + 0.5) / 20_000
    theta = gamma.ppf(levels, shape, scale=1 / rate)
    found = ph.arrays.possible_records(terms(theta), np.ones(support.size), ess=20_000)
    for place, z in enumerate(support):
        refit = gamma.ppf(levels, shape + z, scale=1 / (rate + 1))
        own = terms(refit)[:, place].std()
        assert found.mu.neighbor_by_record[place] == pytest.approx(own, rel=0.05)
    assert found.largest_mu == support.size - 1 == found.largest_range


def test_unweighted_mu_grows_without_end_and_weights_or_caps_stop_it() -> None:
    rng = np.random.default_rng(2)
    size, mean = rng.normal(0.7, 0.02, 2000), rng.normal(2.9, 0.05, 2000)
    support = np.array([0, 10, 100, 1000, 10_000])
    log_lik = nbinom.logpmf(support, size[:, None], (size / (size + mean))[:, None])
    plain = ph.arrays.possible_records(log_lik, np.ones(5), ess=2000).mu.by_record
    assert plain[4] > 5 * plain[3] > 25 * plain[2]
    f = np.abs(log_lik).max(axis=0)
    frozen = np.clip(1 - f / 40, 0, 1)  # LW with its scale frozen
    weighted = ph.arrays.possible_records(log_lik, frozen, ess=2000).mu
    assert weighted.upper < plain[3]
    assert weighted.by_record[4] == 0
    clipped = ph.arrays.center_and_censor(log_lik, log_lik.mean(axis=0), cap=0.25)
    capped = ph.arrays.possible_records(clipped, np.ones(5), ess=2000)
    assert capped.mu.by_record.max() <= 0.25 * 1.001  # no deviation exceeds half a range
    assert capped.ranges.overall <= 0.5
