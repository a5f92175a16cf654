"""Leave-one-out loss: against enumeration, conjugate models and ArviZ's smoothing. Loss from draws
of both posteriors: against normals, gamma posteriors and enumeration.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import gamma, norm

import pyhybrid as ph
from pyhybrid.privacy.diagnostics import smoothed_log_weights
from pyhybrid.privacy.leave_one_out import with_refits
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.privacy.log_lik import LogLik
from tests.privacy.enumerated import LOG_LIK, exact_delta, log_posterior
from tests.refusals import refuses


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_draws", [100, 1000, 4000])
@pytest.mark.parametrize("spread", [0.01, 0.5, 2.0, 6.0])
def test_smoothing_is_that_of_arviz(n_draws: int, spread: float) -> None:
    import arviz

    logs = spread * np.random.default_rng(n_draws).normal(size=(n_draws, 6))
    logs[:, 5] = np.round(logs[:, 5] / spread, 1)  # ties
    expected, k_expected = arviz.psislw(logs.T)  # their sum is 1
    found, k = smoothed_log_weights(logs)
    found = found - logsumexp(found, axis=0)
    assert np.sort(found, axis=0) == pytest.approx(np.sort(expected.T, axis=0), rel=1e-9, abs=1e-11)
    assert found[:, :5] == pytest.approx(expected.T[:, :5], rel=1e-9, abs=1e-11), "without ties"
    np.testing.assert_allclose(k, k_expected, rtol=1e-8, atol=1e-10)


def test_a_posterior_that_is_enumerated() -> None:
    database = (2, 3, 5, 4, 3, 2, 6, 3, 4, 5, 12)
    terms = LOG_LIK[:, database]
    whole = log_posterior(terms)
    rng = np.random.default_rng(1)
    points = rng.choice(whole.size, size=20_000, p=np.exp(whole))
    loss = ph.leave_one_out_loss(terms[points])
    seen = np.unique(points)
    for i in range(len(database)):
        exact = np.abs(whole - log_posterior(np.delete(terms, i, axis=1)))
        assert loss.by_record[i] == pytest.approx(exact[seen].max(), rel=0.1)
        expected = np.quantile(exact[points], loss.probabilities)
        np.testing.assert_allclose(loss.quantiles[i], expected, atol=0.05)
    assert loss.by_draw.shape == (20_000,)
    assert loss.by_draw.max() == pytest.approx(loss.by_record.max())
    assert np.argmax(loss.by_record) == database.index(12)


def test_no_loss_exceeds_the_range() -> None:
    log_lik = np.random.default_rng(4).normal(0, 3, (500, 8))
    alpha = np.linspace(0, 1, 8)
    loss = ph.leave_one_out_loss(log_lik, alpha)
    assert (loss.by_record <= ph.loss_ranges(log_lik, alpha).by_record + 1e-12).all()
    assert loss.by_record[0] == 0
    assert loss.pareto_k[0] == -np.inf


def test_heavy_tails_and_few_draws_are_unreliable() -> None:
    rng = np.random.default_rng(5)
    heavy = -np.log(rng.pareto(0.8, (4000, 1)) + 1)  # exp(-g) has no mean
    assert not ph.leave_one_out_loss(heavy).reliable
    assert ph.leave_one_out_loss(rng.normal(size=(10, 1))).pareto_k[0] == np.inf
    assert ph.leave_one_out_loss(rng.normal(size=(4000, 1))).reliable


def test_not_finite_is_unbounded_and_streamed_rows_agree() -> None:
    rng = np.random.default_rng(6)
    rows, row_of, alpha = rng.normal(size=(200, 5)), rng.integers(0, 5, 20), rng.random(20)
    row_of[0] = 4
    whole = ph.leave_one_out_loss(rows[:, row_of], alpha)
    lazy = LogLik(make=lambda: np.array_split(rows, 2, axis=1), row_of=row_of)
    streamed = ph.leave_one_out_loss(lazy, alpha)
    np.testing.assert_allclose(streamed.by_record, whole.by_record, rtol=1e-12)
    np.testing.assert_allclose(streamed.by_draw, whole.by_draw, rtol=1e-12)
    rows[3, 1] = -np.inf
    loss = ph.leave_one_out_loss(rows, [1, 1, 0, 1, 1])
    assert np.isinf(loss.by_record).tolist() == [False, True, False, False, False]
    assert np.isinf(ph.leave_one_out_loss(rows, [1, 0, 0, 1, 1]).by_draw).sum() == 0


LEVELS = (np.random.default_rng(3).permutation(20_000) + 0.5) / 20_000


def test_two_normals_have_the_loss_that_is_known() -> None:
    for mu in (0.05, 1.0, 3.0):
        z = norm.ppf(LEVELS)
        found = ph.arrays.refit_loss(mu * (z + mu), mu * z, chains=4)
        exact = mu * (z + mu) - mu**2 / 2
        np.testing.assert_allclose(found.by_draw, exact, atol=0.01 * mu)
        assert (found.mu, found.moved) == pytest.approx((mu, mu), rel=0.01)
        for eps in (0.0, mu, 2 * mu):
            assert found.delta(eps) == pytest.approx(ph.arrays.delta_of_mu(mu, eps), rel=0.02)


def test_conjugate_poisson_where_both_normalizing_constants_are_known() -> None:
    y, z = 60, 14  # the record left out is the 14
    shape, rate = 1 + y + z, 0.1 + 11.0
    own, other = gamma(shape, scale=1 / rate), gamma(shape - z, scale=1 / (rate - 1))
    draws, draws_without = own.ppf(LEVELS), other.ppf(LEVELS)

    def term(theta: np.ndarray) -> np.ndarray:
        return z * np.log(theta) - theta

    found = ph.arrays.refit_loss(term(draws), term(draws_without), chains=4)
    for at, loss in ((draws, found.by_draw), (draws_without, found.by_draw_without)):
        np.testing.assert_allclose(loss, own.logpdf(at) - other.logpdf(at), atol=0.01)
    assert found.largest <= found.loss_range


def test_delta_is_that_of_enumeration() -> None:
    rng = np.random.default_rng(1)
    database = (3, 4, 9)
    whole, rest = log_posterior(LOG_LIK[:, database]), log_posterior(LOG_LIK[:, database[:2]])
    own, other = (
        rng.choice(whole.size, 40_000, p=np.exp(p) / np.exp(p).sum()) for p in (whole, rest)
    )
    found = ph.arrays.refit_loss(LOG_LIK[own, 9], LOG_LIK[other, 9])
    for epsilon in (0.0, 0.5, 1.5):
        exact = exact_delta(whole, rest, epsilon)
        error = 5 * math.sqrt(max(exact, 1e-4) / 40_000) + 0.005  # of the constant
        assert found.delta(epsilon) == pytest.approx(exact, abs=error)
    np.testing.assert_allclose(found.by_draw, (whole - rest)[own], atol=0.05)


def test_a_record_that_adds_a_constant_tells_nothing() -> None:
    found = ph.arrays.refit_loss(np.full(8, -3.0), np.full(12, -3.0))
    assert (found.largest, found.loss_range, found.mu, found.moved, found.delta(0)) == (0,) * 5


def test_a_record_that_is_impossible_without_itself_has_an_infinite_loss() -> None:
    terms = np.array([-1.0, -2.0, -1.0, -2.0])
    found = ph.arrays.refit_loss(terms, [-1.0, -np.inf, -2.0, -2.0])
    assert np.isinf([found.largest, found.loss_range, found.mu_without]).all()
    assert math.isfinite(found.mu)
    assert found.delta(50.0) == 0.25  # a draw that only the database without it can give


def test_arguments() -> None:
    made, four = ph.arrays.refit_loss, [0.0, 1.0, 2.0, 3.0]
    refuses("terms must not be NaN: draw 1 is", made, [0.0, np.nan, 1.0, 2.0], four)
    refuses("chain after chain, at least 4 in each of 2: found 3", made, four[:3], four, chains=2)
    refuses("epsilon must be >= 0: found -1", made([0.0, 1.0, 0.5, 2.0], four).delta, -1)


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(("mu", "loss_range"), [(0.2, 2.0), (0.9, 0.5), (0.9, 2.0), (0.2, 0.5)])
def test_the_larger_of_both_is_charged(mu: float, loss_range: float, holds: bool) -> None:
    """Where the limit does not hold under both fits: the range, and what is beyond the draws."""
    account = LocalAccount(
        loss_ranges=np.array([1.0, 0.3]), mu_by_record=np.array([0.4, 0.1]), loss_range=1.0, mu=0.4,
        mu_standard_error=0.01, limit_holds=True, n_draws=100, mu_of_limit=0.4,
    )  # fmt: skip
    loss = SimpleNamespace(loss_range=loss_range, standard_error_without=0.02)
    beyond = np.array([[1.0, 3.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    refit = SimpleNamespace(
        record=1, mu=0.1, mu_upper=mu, loss_range=0.3, loss=loss, limit_holds=holds,
        expansion=lambda: beyond, farthest=loss_range,
    )  # fmt: skip
    found = with_refits(account, SimpleNamespace(each=(refit,)))  # type: ignore[arg-type]
    assert found.mu_by_record.tolist() == [0.4, mu]
    assert found.loss_ranges.tolist() == [1.0, loss_range]
    assert (found.mu, found.loss_range) == (max(0.4, mu), max(1.0, loss_range))
    assert found.mu_of_limit == (max(0.4, mu) if holds else 0.4)
    assert found.limit_holds == holds
    if not holds:
        assert found.failing.tolist() == [[loss_range], [mu]]
        exact = ph.epsilon_of_mu(3.0, 1e-6)
        assert exact <= found.loss_to(1e-6, otherwise=np.inf) <= 1.2 * exact
    assert found.mu_standard_error == (0.02 if mu > 0.4 else 0.01)
