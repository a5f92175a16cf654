"""Gaussian mu: conjugate models, standard errors, the neighbor."""

import numpy as np
import pytest
from scipy.stats import norm

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.log_lik import LogLik
from tests.privacy.enumerated import exact_delta

POINTS = 8001


def _normal_model(y: FloatArray) -> FloatArray:
    """Terms of five records at evenly spread quantiles of the posterior of a mean, flat prior."""
    levels = (np.arange(POINTS) + 0.5) / POINTS
    theta = norm.ppf(levels, y.mean(), 1 / np.sqrt(y.size))
    theta = np.random.default_rng(0).permutation(theta)
    return np.asarray(norm.logpdf(y[:5], theta[:, None]))


def _exact_mu(y: FloatArray, i: int) -> tuple[float, float]:
    """Deviation of the term of record i, with and without it: (y - theta)^2 / 2, theta normal."""
    out = []
    for rest in (y, np.delete(y, i)):
        distance, variance = y[i] - rest.mean(), 1 / rest.size
        out.append(float(np.sqrt(distance**2 * variance + variance**2 / 2)))
    return out[0], out[1]


@pytest.mark.parametrize("n", [10, 50, 1000])
def test_a_normal_model_with_and_without_the_record(n: int) -> None:
    y = np.random.default_rng(n).normal(size=n)
    y[0] = 4.0
    mu = ph.gaussian_mu(_normal_model(y)[:, :5], ess=POINTS)
    for i in range(5):
        own, neighbor = _exact_mu(y, i)
        assert mu.by_record[i] == pytest.approx(own, rel=5e-3)
        assert mu.neighbor_by_record[i] == pytest.approx(neighbor, rel=0.02)
    assert mu.overall == max(mu.by_record.max(), mu.neighbor_by_record.max())
    assert mu.upper > mu.overall


@pytest.mark.parametrize("n", [10, 30])
def test_without_the_neighbor_an_exact_delta_is_missed(n: int) -> None:
    """Control: the deviation under x alone states a delta that the pair of posteriors exceeds."""
    y = np.zeros(n)
    y[0] = 4.0
    grid = np.linspace(-4, 4, 20_001)
    log_p, log_q = (
        norm.logpdf(grid, rest.mean(), 1 / np.sqrt(rest.size)) + np.log(grid[1] - grid[0])
        for rest in (y, y[1:])
    )
    terms = _normal_model(y)[:, :1]
    both = ph.gaussian_mu(terms, ess=POINTS)
    alone = ph.gaussian_mu(terms, ess=POINTS, neighbor=False)
    for multiple in (1, 2):
        epsilon = multiple * alone.overall
        exact = exact_delta(log_p, log_q, epsilon)
        assert ph.arrays.delta_of_mu(both.upper, epsilon) >= exact
        assert ph.arrays.delta_of_mu(alone.overall, epsilon) < exact


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_standard_error_covers_what_repetitions_show(correlation: float) -> None:
    rng, length, runs = np.random.default_rng(5), 500, 150
    steps = rng.normal(size=(4, length, runs))
    for t in range(1, length):
        steps[:, t] = correlation * steps[:, t - 1] + np.sqrt(1 - correlation**2) * steps[:, t]
    mu = ph.gaussian_mu(steps.reshape(4 * length, runs), chains=4, neighbor=False)
    assert mu.standard_error_by_record.mean() == pytest.approx(mu.by_record.std(), rel=0.25)
    assert (mu.upper_by_record > 1).mean() > 0.93
    if correlation == 0:
        expected = 1 / np.sqrt(2 * 4 * length)
        assert mu.standard_error_by_record.mean() == pytest.approx(expected, rel=0.1)
        one = steps.reshape(4 * length, runs)[:, :1]
        alone = ph.gaussian_mu(one, ess=4 * length, neighbor=False).standard_error
        assert mu.standard_error_by_record[0] == pytest.approx(alone, rel=0.2)


def test_a_constant_cancels_weights_scale_and_not_finite_is_unbounded() -> None:
    rng = np.random.default_rng(6)
    log_lik, alpha = rng.normal(0, 0.3, (400, 5)), np.array([1.0, 0.5, 0.1, 0.0, 1.0])
    mu = ph.gaussian_mu(log_lik, alpha)
    np.testing.assert_allclose(mu.by_record, alpha * log_lik.std(axis=0, ddof=1), rtol=1e-12)
    moved = ph.gaussian_mu(log_lik - 1e5, alpha)
    np.testing.assert_allclose(moved.upper_by_record, mu.upper_by_record, rtol=1e-7)
    assert mu.upper_by_record[3] == 0
    log_lik[9, [0, 3]] = np.nan
    wrong = ph.gaussian_mu(log_lik, alpha)
    assert np.isinf(wrong.by_record).tolist() == [True, False, False, False, False]
    assert wrong.overall == wrong.upper == np.inf


def test_float32_is_never_below() -> None:
    exact = np.random.default_rng(7).normal(-2000, 1e-3, (300, 30))
    single = ph.gaussian_mu(exact.astype(np.float32), neighbor=False).by_record
    assert (single >= ph.gaussian_mu(exact, neighbor=False).by_record).all()


def test_streamed_rows_give_the_same() -> None:
    rng = np.random.default_rng(8)
    rows, row_of, alpha = rng.normal(size=(400, 7)), rng.integers(0, 7, 40), rng.random(40)
    row_of[:2] = 6
    alpha[20:] = 0.5

    lazy = LogLik(make=lambda: np.array_split(rows, [1, 4], axis=1), row_of=row_of)
    whole = ph.gaussian_mu(rows[:, row_of], alpha, chains=2)
    streamed = ph.gaussian_mu(lazy, alpha, chains=2)
    np.testing.assert_allclose(streamed.upper_by_record, whole.upper_by_record, rtol=1e-12)
    assert streamed.upper == pytest.approx(whole.upper, rel=1e-12)
    given = ph.gaussian_mu(lazy, alpha, ess=400)
    np.testing.assert_allclose(
        given.upper_by_record, ph.gaussian_mu(rows[:, row_of], alpha, ess=400).upper_by_record
    )


def test_refusals() -> None:
    draws = np.zeros((9, 2))
    with pytest.raises(InvalidInput, match="ess must have 2 elements: found 3"):
        ph.gaussian_mu(LogLik.of(draws), np.ones(2), ess=[1.0, 2.0, 3.0])
