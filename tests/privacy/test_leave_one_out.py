"""Leave-one-out loss: against enumeration and ArviZ's smoothing."""

import numpy as np
import pytest
from scipy.special import logsumexp

import pyhybrid as ph
from pyhybrid.privacy.diagnostics import smoothed_log_weights
from pyhybrid.privacy.log_lik import LogLik
from tests.privacy.enumerated import LOG_LIK, log_posterior


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
