"""The noise-aware log-linear model: identities, enumeration, finite differences, coverage."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from pyhybrid.mechanisms.marginals import log_linear
from pyhybrid.mechanisms.marginals.log_linear import Prior, Rows, Tables, probabilities

NOMINAL = np.full(2, np.nan)
CELLS = sparse.csr_array([[1, 0, 1, 0], [0, 1, 1, 0], [0.25, 0.75, 0, 1]])
PRIOR = Prior(of_outcome=np.linspace(0, 1, 3), of_predictors=[NOMINAL, NOMINAL])


def problem(
    noisy: np.ndarray, times: np.ndarray, cells: sparse.csr_array = CELLS, sd: float = 1.0
) -> Tables:
    rows = Rows(cells=cells, times=times, of_record=np.zeros(0, np.int64))
    return Tables(
        noisy=noisy, stddev=np.full(noisy.shape, sd), rows=rows, n=times.sum(), prior=PRIOR,
        rng=np.random.default_rng(0),
    )  # fmt: skip


def some_effects(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=0.7, size=(3, 5))


def test_mean_and_covariance_of_the_tables_by_enumeration() -> None:
    """All 27 outcomes of three records, each with its probability."""
    effects = some_effects()
    p = probabilities(effects, CELLS)
    dense = np.asarray(CELLS.todense())
    first, second = np.zeros(12), np.zeros((12, 12))
    for outcome in itertools.product(range(3), repeat=3):
        chance = np.prod([p[i, k] for i, k in enumerate(outcome)])
        table = np.zeros((3, 4))
        for i, k in enumerate(outcome):
            table[k] += dense[i]
        first += chance * table.ravel()
        second += chance * np.outer(table, table)
    own = problem(np.zeros((3, 4)), np.ones(3))
    np.testing.assert_allclose(own.mean(effects).ravel(), first, atol=1e-12)
    covariance = own.some.covariance(effects)[:, 1:, :, 1:].reshape(12, 12)
    np.testing.assert_allclose(covariance, second - np.outer(first, first), atol=1e-12)


def test_without_noise_the_tables_come_back() -> None:
    """The score equations of a log-linear model: expected tables are the observed ones, but for
    what the prior takes, of 60 sets of effects at most .11 of the deviation."""
    times = np.array([4000.0, 6000.0, 5000.0])
    observed = problem(np.zeros((3, 4)), times).mean(some_effects(3))
    found = problem(observed, times, sd=0.0).fit()
    assert found.converged
    again = problem(observed, times).mean(found.mode)
    np.testing.assert_allclose(again, observed, atol=0.15 * np.sqrt(times.max()))


def test_drowned_effects_shrink_to_nothing() -> None:
    rng, times = np.random.default_rng(4), np.array([40.0, 60.0, 50.0])
    observed = problem(np.zeros((3, 4)), times).mean(some_effects(3))
    noisy = observed + rng.normal(scale=500, size=observed.shape)
    found = problem(noisy, times, sd=500.0).fit()
    assert np.abs(found.mode[:, 1:]).max() < 0.3
    assert all(np.isfinite(drawn).all() for drawn in found.sample(5, rng))


def test_the_prior_is_a_normal_distribution_with_correlated_neighbors() -> None:
    """Squares and precision are of one density; cells without a place are independent."""
    effects, scales = some_effects(5), np.array([0.5, 2.0])
    own = effects.copy()
    own[:, 0] = 0
    quadratic = own.ravel() @ PRIOR.precision(scales) @ own.ravel()
    assert quadratic == pytest.approx((PRIOR.squares(own) / scales**2).sum())
    covariance = np.linalg.inv(PRIOR.precision(scales)).reshape(3, 5, 3, 5)
    np.testing.assert_allclose(covariance[:, 1, :, 2], 0, atol=1e-12)
    np.testing.assert_allclose(np.diag(covariance[:, 3, :, 3]), 4.0)
    assert covariance[0, 1, 1, 1] > covariance[0, 1, 2, 1] > 0


def test_draws_are_those_of_the_posterior_of_a_conjugate_case() -> None:
    """Much information: the scale makes no difference, draws are normal around the least squares
    solution; mean and covariance within 5 standard errors."""
    rng, n = np.random.default_rng(6), 500
    times = np.array([4e5, 6e5, 5e5])
    observed = problem(np.zeros((3, 4)), times).mean(some_effects(3))
    model = problem(observed, times, sd=10.0).fit()
    drawn = np.array([each.ravel() for each in model.sample(n, rng)])
    contrast = np.zeros((3, 5))
    contrast[0, [1, 2]], contrast[1, [1, 2]] = [1, -1], [-1, 1]  # identified by the data
    precision = model.information + model.prior.precision(model.scales)
    variance = contrast.ravel() @ np.linalg.solve(precision, contrast.ravel())
    found = drawn @ contrast.ravel()
    assert abs(found.mean() - contrast.ravel() @ model.mode.ravel()) < 6 * np.sqrt(variance / n)
    assert abs(found.var() / variance - 1) < 5 * np.sqrt(2 / n) + 0.02


def test_many_rows_give_the_information_of_a_sample_of_them() -> None:
    rng = np.random.default_rng(7)
    n = log_linear._ROWS[1] + 2000
    places = rng.integers(0, 2, (n, 2))
    cells = np.zeros((n, 4))
    cells[np.arange(n), places[:, 0]] = 1
    cells[np.arange(n), 2 + places[:, 1]] = 1
    sampled = problem(np.zeros((3, 4)), np.ones(n), sparse.csr_array(cells))
    distinct, times = np.unique(cells, axis=0, return_counts=True)
    whole = problem(np.zeros((3, 4)), times * 1.0, sparse.csr_array(distinct))
    effects = some_effects(8)
    np.testing.assert_allclose(sampled.mean(effects), whole.mean(effects))
    one, other = (own.some.covariance(effects) for own in (sampled, whole))
    assert np.abs(one - other).max() < 5 * n / np.sqrt(log_linear._ROWS[1]) / 2
