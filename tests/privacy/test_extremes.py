"""Matrices no posterior gives: every array accounting ends in a result, without a warning."""

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray

SCALES = (0.0, 5e-324, 1e-300, 1e-9, 1.0, 40.0, 1e4, 1e100, 1e160, 1e300, 1.7e308)


def _matrix(seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    log_lik = rng.choice(SCALES, (1, 12)) * rng.standard_t(2, (40, 12)).clip(-1, 1)
    log_lik += rng.choice([0.0, -1e3, 1e12], (1, 12)) * (np.abs(log_lik).max(axis=0) < 1e290)
    ties = rng.random(12) < 0.3
    log_lik[:, ties] = log_lik[rng.integers(0, 3, 40)][:, ties]
    wrong = rng.random(log_lik.shape) < 0.002
    log_lik[wrong] = rng.choice([np.nan, np.inf, -np.inf], wrong.sum())
    return np.asarray(log_lik)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("single", [False, True])
def test_every_accounting_gives_numbers(seed: int, single: bool) -> None:
    log_lik = _matrix(seed)
    if single:
        log_lik = np.clip(log_lik, -1e37, 1e37).astype(np.float32)  # type: ignore[assignment]
    alpha = np.random.default_rng(seed).choice([0.0, 1e-12, 0.3, 1.0], 12)
    ranges = ph.loss_ranges(log_lik, alpha)
    assert (ranges.by_record >= 0).all()
    loss = ph.leave_one_out_loss(log_lik, alpha)
    assert (loss.by_record >= 0).all()
    slack = 1e-9 * np.nan_to_num(np.abs(log_lik).max(axis=0).astype(float)) + 1e-9
    assert (loss.by_record <= ranges.by_record + slack).all()
    limit = ph.arrays.gaussian_limit(log_lik, alpha, chains=2)
    assert (limit.mu_charged >= limit.mu.upper_by_record).all()
    assert (limit.mu.by_record <= ranges.by_record * 0.52 + slack).all()  # sd <= range / 2
    assert not np.isnan(limit.delta_draws).any()
    assert ph.gaussian_mu(log_lik, chains=2).upper >= 0
    terms = ph.arrays.center_and_censor(log_lik, np.zeros(12), alpha, cap=(0.2, 0.1))
    assert terms.min() >= -0.2
    assert terms.max() <= 0.1
    changes = ph.arrays.recomputed_terms(log_lik, ph.arrays.lipschitz_without(log_lik))
    assert changes.shape == log_lik.shape


@pytest.mark.parametrize("mu", [5e-324, 1e-160, 1e-20, 1e10, 1e150])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-20, 1.0, 1e20, 1e300])
def test_the_curve_at_the_ends_of_what_floats_hold(mu: float, epsilon: float) -> None:
    assert 0 <= ph.arrays.delta_of_mu(mu, epsilon) <= 1
    if epsilon < 1e19:
        assert ph.arrays.delta_of_mu(ph.arrays.mu_of_epsilon(epsilon, 1e-6), epsilon) <= 1e-6
    assert ph.arrays.delta_of_mu(mu, ph.epsilon_of_mu(mu, 1e-6)) <= 1e-6
