"""Effective number of draws: against ArviZ and a process whose correlation is known. Losses beyond
the draws: against exact posteriors, and where the expansion is exact.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import gamma, ncx2, norm

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy import diagnostics
from pyhybrid.privacy.local_account import local_account
from pyhybrid.privacy.log_lik import LogLik
from tests.refusals import refuses

CHAINS = 4


def _chains(seed: int, correlation: float, length: int = 500, columns: int = 20) -> FloatArray:
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(CHAINS, length, columns))
    for t in range(1, length):
        steps[:, t] = correlation * steps[:, t - 1] + np.sqrt(1 - correlation**2) * steps[:, t]
    return steps.reshape(CHAINS * length, columns)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95, -0.5])
def test_the_value_of_arviz_up_to_the_number_of_draws(correlation: float) -> None:
    import arviz

    values = _chains(1, correlation, columns=8)
    found = diagnostics.effective_draws(values, CHAINS)
    for column, own in zip(values.T, found, strict=True):
        expected = float(arviz.ess(column.reshape(CHAINS, -1), method="mean"))
        assert own == pytest.approx(min(expected, column.size), rel=0.03)


def test_a_process_of_known_correlation() -> None:
    found = diagnostics.effective_draws(_chains(2, 0.8, length=4000), CHAINS)
    exact = 4 * 4000 * (1 - 0.8) / (1 + 0.8)
    assert found.mean() == pytest.approx(exact, rel=0.1)
    values = _chains(3, 0.0)  # a chain that is elsewhere counts for little
    values[:500] += 10
    assert diagnostics.effective_draws(values, CHAINS).max() < 20
    assert diagnostics.effective_draws(np.sort(values, axis=0), 1).max() < 20  # and one that drifts


def test_constants_and_few_draws() -> None:
    assert diagnostics.effective_draws(np.full((40, 2), 0.1), 4).tolist() == [40, 40]
    refuses("at least 4 in each of 3: found 10", diagnostics.check_chains, 10, 3)
    refuses("at least 4 in each of 1: found 3", diagnostics.check_chains, 3, 1)


def exact_epsilon(own: Any, other: Any, delta: float, grid: np.ndarray) -> float:
    """By brute force on an even grid: both directions."""
    step = grid[1] - grid[0]

    def one_way(p: Any, q: Any) -> float:
        density, loss = p.pdf(grid), p.logpdf(grid) - q.logpdf(grid)

        def excess(epsilon: float) -> float:
            lost = -np.expm1(np.minimum(epsilon - loss, 0.0))
            return float((density * lost).sum() * step) - delta

        return float(brentq(excess, 0.0, 200.0))

    return max(one_way(own, other), one_way(other, own))


@pytest.mark.parametrize("n", [20, 60])
def test_what_is_charged_where_the_limit_fails_covers_the_exact_epsilon(n: int) -> None:
    """Poisson(5) and one record of 60: the range of 4,000 draws does not, as the control shows."""
    rng = np.random.default_rng(n)
    total = 60.0 + rng.poisson(5, n - 1).sum()
    own, other = gamma(0.5 + total, scale=1 / (0.1 + n)), gamma(total - 59.5, scale=1 / (n - 0.9))
    exact, below = exact_epsilon(own, other, 1e-6, np.linspace(1e-3, 20, 40_000)), 0
    for seed in range(4):
        theta = own.rvs(4000, random_state=seed)
        terms = (60 * np.log(theta) - theta)[:, None]
        found = local_account(LogLik.of(terms), np.ones(1), n_draws=4000, chains=4)
        assert not found.limit_holds
        charged = found.loss_to(1e-6, otherwise=np.inf)
        assert exact <= charged < 2.5 * exact
        below += found.loss_range < exact
    assert below == 4 or n == 60


def _column(b: float, c: float = 0.0, d: float = 0.0) -> FloatArray:
    return np.array([[b], [c], [d], [0.0]])


@pytest.mark.parametrize(("b", "c"), [(1.0, 0.0), (2.0, -0.1), (3.0, 0.2), (0.5, -0.3)])
def test_a_quadratic_of_a_normal_loses_what_two_normals_do(b: float, c: float) -> None:
    """The loss is the log ratio of their densities, and at most found but for delta."""
    variance = 1 / (1 + 2 * c)
    own, other = norm(0, 1), norm(-b * variance, variance**0.5)
    found = float(diagnostics.loss_of_expansion(_column(b, c), 1e-3)[0])
    z = np.linspace(-30, 30, 600_001)
    loss = own.logpdf(z) - other.logpdf(z)
    step = z[1] - z[0]
    beyond = [(own.pdf(z)[loss > found] * step).sum(), (other.pdf(z)[loss < -found] * step).sum()]
    assert 8e-4 < max(beyond) <= 1e-3 * 1.001
    assert exact_epsilon(own, other, 1e-3, z) <= found


@pytest.mark.parametrize("m", [2, 5, 20])
@pytest.mark.parametrize(("b", "c"), [(0.3, 0.0), (0.3, -0.01), (0.2, 0.02)])
def test_quadratics_of_several_draws_lose_no_more_than_found(b: float, c: float, m: int) -> None:
    """Sums of m independent losses, by the noncentral chi-square distribution."""
    delta, variance = 1e-6, 1 / (1 + 2 * c)
    found = float(diagnostics.loss_of_expansion(_column(b, c), delta, m)[0])

    def exact(linear: float, square: float, rest: float) -> float:
        """Quantile at delta of the sum of linear w + square w^2 + rest."""
        if square == 0:
            return m * rest + norm.isf(delta) * abs(linear) * m**0.5
        shift = linear / (2 * square)
        law = ncx2(m, m * shift**2)
        edge = law.isf(delta) if square > 0 else law.ppf(delta)
        return float(square * edge + m * (rest - square * shift**2))

    level = b**2 * variance / 2 + math.log(variance) / 2
    at = -b * variance
    without = exact(-(b + 2 * c * at) * variance**0.5, -c * variance, -(b * at + c * at**2 + level))
    largest = max(exact(b, c, level), without)
    assert largest <= found <= 1.25 * largest
    assert found < m * float(diagnostics.loss_of_expansion(_column(b, c), delta)[0])


@pytest.mark.parametrize(("size", "spread", "term"), [
    (1.0, 0.2, lambda x: x - np.exp(x)), (3.0, 0.2, lambda x: x - np.exp(x)),
    (10.0, 0.1, lambda x: x - np.exp(x)), (1.0, 0.2, lambda x: -np.exp(x)),
    (1.0, 0.4, lambda x: -np.log1p(np.exp(1 + 3 * x))),
])  # fmt: skip
def test_a_curved_term_costs_what_the_exact_posteriors_say(
    size: float, spread: float, term: Callable[[FloatArray], FloatArray]
) -> None:
    """Of Poisson and logistic records whose linear predictor is normal with a wide `spread`."""
    z = np.linspace(-14, 14, 200_001)
    log_own = norm.logpdf(z)
    log_other = log_own - size * term(spread * z)
    step = z[1] - z[0]
    log_other -= np.log(np.exp(log_other - log_other.max()).sum() * step) + log_other.max()
    loss = log_own - log_other

    def beyond(epsilon: float) -> float:
        kept = np.exp(log_own) * -np.expm1(np.minimum(epsilon - loss, 0.0))
        left = np.exp(log_other) * -np.expm1(np.minimum(epsilon + loss, 0.0))
        return float(max(kept.sum(), left.sum()) * step) - 1e-6

    exact = brentq(beyond, 0.0, 100.0)
    for seed in range(8):
        draws = np.random.default_rng(seed).standard_normal((4000, 1))
        values = size * term(spread * draws)
        found = local_account(LogLik.of(values), np.ones(1), n_draws=4000, chains=4)
        assert not found.limit_holds
        assert 0.9 * exact <= found.loss_to(1e-6, otherwise=np.inf) <= 1.9 * exact


def test_a_term_without_a_limit_costs_the_loss_of_one_direction_not_the_range_of_both() -> None:
    z = np.random.default_rng(1).permutation(ndtri((np.arange(4000) + 0.5) / 4000))
    term = -np.exp(0.4 * z)
    found = local_account(LogLik.of(term[:, None]), np.ones(1), n_draws=4000, chains=4)
    largest = np.abs(term + np.log(np.exp(-term).mean())).max()
    assert found.failing[0] == pytest.approx(largest)
    assert largest < 0.85 * found.loss_range
    assert largest <= found.loss_to(1e-6, otherwise=np.inf)


def test_a_cubic_part_matters_to_a_steep_term() -> None:
    """Without it a Poisson term of 3 records would cost two thirds of the truth, 1.96."""
    z = ndtri((np.arange(4000) + 0.5) / 4000)[:, None]
    expansion = diagnostics.expansion_of(3 * (0.2 * z - np.exp(0.2 * z)), 4)
    assert diagnostics.loss_of_expansion(expansion * [[1], [1], [0], [0]], 1e-6)[0] < 0.75 * 1.96
    assert diagnostics.loss_of_expansion(expansion * [[1], [1], [1], [0]], 1e-6)[0] > 0.85 * 1.96


@pytest.mark.parametrize("seed", range(5))
def test_the_expansion_is_found_from_draws_within_its_errors(seed: int) -> None:
    z = np.random.default_rng(seed).standard_normal((4000, 1))
    terms = 1e6 + 2 * z + 0.1 * (z**2 - 1) + 0.02 * (z**3 - 3 * z)
    found = diagnostics.expansion_of(terms, 4)[:, 0]
    assert found[3] == pytest.approx(2 / 4000**0.5, rel=0.1)
    errors = found[3] / np.sqrt([2.0, 6.0, 24.0])
    assert (np.abs(found[:3] - [2, 0.1, 0.02]) < 4 * errors).all()


def test_a_term_that_bends_too_far_down_has_no_finite_loss() -> None:
    expansion = np.concatenate([_column(1.0, -0.51), _column(1.0, -0.3)], axis=1)
    assert np.isinf(diagnostics.loss_of_expansion(expansion, 1e-6)).tolist() == [True, False]


def test_a_tail_beyond_a_cubic_is_told() -> None:
    """A record that alone informs a parameter moves the density, under the prior without it, by the
    exponential of that: the cubic was found to be a thirtieth of the truth."""
    for seed in range(10):
        z = np.random.default_rng(seed).standard_normal(4000)
        for light in (z, z**2, np.exp(0.5 * z), np.minimum(z, 0), np.ones(4000)):
            assert diagnostics.heavy_tail(light) == 0
        truth = np.exp(2.5 * 4.753)  # exceeded with probability 1e-6
        assert diagnostics.heavy_tail(np.exp(2.5 * z)) > truth
        assert diagnostics.heavy_tail(np.exp(150 * z)) == np.inf
        cubic = diagnostics.expansion_of(np.exp(2.5 * z)[:, None], 4)
        assert diagnostics.loss_of_expansion(cubic, 1e-6)[0] < truth / 5
