"""Loss from draws of both posteriors: against normals, gamma posteriors and enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import gamma, norm

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from tests.privacy.enumerated import LOG_LIK, exact_delta, log_posterior

LEVELS = (np.random.default_rng(3).permutation(20_000) + 0.5) / 20_000


def test_two_normals_have_the_loss_that_is_known() -> None:
    for mu in (0.05, 1.0, 3.0):
        z = norm.ppf(LEVELS)
        found = ph.refit_loss(mu * (z + mu), mu * z, chains=4)
        exact = mu * (z + mu) - mu**2 / 2
        np.testing.assert_allclose(found.by_draw, exact, atol=0.01 * mu)
        assert found.mu == pytest.approx(mu, rel=0.01)
        assert found.moved == pytest.approx(mu, rel=0.01)
        for epsilon in (0.0, mu, 2 * mu):
            assert found.delta(epsilon) == pytest.approx(ph.delta_of_mu(mu, epsilon), rel=0.02)


def test_conjugate_poisson_where_both_normalizing_constants_are_known() -> None:
    y, z = 60, 14  # the record left out is the 14
    shape, rate = 1 + y + z, 0.1 + 11.0
    own, other = gamma(shape, scale=1 / rate), gamma(shape - z, scale=1 / (rate - 1))
    draws, draws_without = own.ppf(LEVELS), other.ppf(LEVELS)

    def term(theta: np.ndarray) -> np.ndarray:
        return z * np.log(theta) - theta

    found = ph.refit_loss(term(draws), term(draws_without), chains=4)
    exact = own.logpdf(draws) - other.logpdf(draws)
    np.testing.assert_allclose(found.by_draw, exact, atol=0.01)
    exact = own.logpdf(draws_without) - other.logpdf(draws_without)
    np.testing.assert_allclose(found.by_draw_without, exact, atol=0.01)
    assert found.largest <= found.loss_range


def test_delta_is_that_of_enumeration() -> None:
    rng = np.random.default_rng(1)
    database = (3, 4, 9)
    whole, rest = log_posterior(LOG_LIK[:, database]), log_posterior(LOG_LIK[:, database[:2]])
    own, other = (
        rng.choice(whole.size, 40_000, p=np.exp(p) / np.exp(p).sum()) for p in (whole, rest)
    )
    found = ph.refit_loss(LOG_LIK[own, 9], LOG_LIK[other, 9])
    for epsilon in (0.0, 0.5, 1.5):
        exact = exact_delta(whole, rest, epsilon)
        error = 5 * math.sqrt(max(exact, 1e-4) / 40_000) + 0.005  # of the constant
        assert found.delta(epsilon) == pytest.approx(exact, abs=error)
    np.testing.assert_allclose(found.by_draw, (whole - rest)[own], atol=0.05)


def test_a_record_that_adds_a_constant_tells_nothing() -> None:
    found = ph.refit_loss(np.full(8, -3.0), np.full(12, -3.0))
    assert (found.largest, found.loss_range, found.mu, found.moved) == (0, 0, 0, 0)
    assert found.delta(0) == 0


def test_a_record_that_is_impossible_without_itself_has_an_infinite_loss() -> None:
    terms = np.array([-1.0, -2.0, -1.0, -2.0])
    found = ph.refit_loss(terms, [-1.0, -np.inf, -2.0, -2.0])
    assert math.isinf(found.largest)
    assert math.isinf(found.loss_range)
    assert math.isinf(found.mu_without)
    assert math.isfinite(found.mu)
    assert found.delta(50.0) == 0.25  # a draw that only the database without it can give


def test_arguments() -> None:
    with pytest.raises(InvalidInput, match="terms must not be NaN: draw 1 is"):
        ph.refit_loss([0.0, np.nan, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="chain after chain, at least 4 in each of 2: found 3"):
        ph.refit_loss([0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0], chains=2)
    with pytest.raises(InvalidInput, match="epsilon must be >= 0: found -1"):
        ph.refit_loss([0.0, 1.0, 0.5, 2.0], [0.0, 1.0, 2.0, 3.0]).delta(-1)
