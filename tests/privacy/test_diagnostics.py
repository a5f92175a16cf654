"""Effective number of draws: against ArviZ and a process whose correlation is known. Losses beyond
the draws: against exact posteriors, and where the expansion is exact.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, gamma, ncx2, norm

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.diagnostics import (
    check_chains,
    effective_draws,
    expansion_of,
    loss_of_expansion,
    loss_of_range,
)
from pyhybrid.privacy.local_account import local_account
from pyhybrid.privacy.log_lik import LogLik

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
    found = effective_draws(values, CHAINS)
    for column, own in zip(values.T, found, strict=True):
        expected = float(arviz.ess(column.reshape(CHAINS, -1), method="mean"))
        assert own == pytest.approx(min(expected, column.size), rel=0.03)


def test_a_process_of_known_correlation() -> None:
    found = effective_draws(_chains(2, 0.8, length=4000), CHAINS)
    exact = 4 * 4000 * (1 - 0.8) / (1 + 0.8)
    assert found.mean() == pytest.approx(exact, rel=0.1)


def test_a_chain_that_is_elsewhere_counts_for_little() -> None:
    values = _chains(3, 0.0)
    values[:500] += 10
    assert effective_draws(values, CHAINS).max() < 20
    assert effective_draws(np.sort(values, axis=0), 1).max() < 20  # and one that drifts


def test_constants_and_few_draws() -> None:
    assert effective_draws(np.full((40, 2), 0.1), 4).tolist() == [40, 40]
    with pytest.raises(InvalidInput, match="at least 4 in each of 3: found 10"):
        check_chains(10, 3)
    with pytest.raises(InvalidInput, match="at least 4 in each of 1: found 3"):
        check_chains(3, 1)


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
        charged = found.range_to(1e-6, otherwise=np.inf)
        assert exact <= charged < 2.5 * exact
        below += found.loss_range < exact
    assert below == 4 or n == 60


@pytest.mark.parametrize(("b", "c"), [(1.0, 0.0), (2.0, -0.1), (3.0, 0.2), (0.5, -0.3)])
def test_a_quadratic_of_a_normal_loses_what_two_normals_do(b: float, c: float) -> None:
    """The loss is the log ratio of their densities, and at most found but for delta."""
    variance = 1 / (1 + 2 * c)
    own, other = norm(0, 1), norm(-b * variance, variance**0.5)
    found = float(loss_of_expansion(np.array([[b], [c], [c]]), 1e-3)[0])
    z = np.linspace(-30, 30, 600_001)
    loss = own.logpdf(z) - other.logpdf(z)
    step = z[1] - z[0]
    beyond = [
        (own.pdf(z)[loss > found] * step).sum(),
        (other.pdf(z)[loss < -found] * step).sum(),
    ]
    assert 2e-4 < max(beyond) <= 1e-3 * 1.001
    assert exact_epsilon(own, other, 1e-3, z) <= found


@pytest.mark.parametrize("m", [2, 5, 20])
@pytest.mark.parametrize(("b", "c"), [(0.3, 0.0), (0.3, -0.01), (0.1, 0.02), (0.0, 0.05)])
def test_quadratics_of_several_draws_lose_no_more_than_found(b: float, c: float, m: int) -> None:
    """Sums of m independent losses, by the noncentral chi-square distribution."""
    delta, variance = 1e-6, 1 / (1 + 2 * c)
    found = float(loss_of_expansion(np.array([[b], [c], [c]]), delta, m)[0])

    def exact(linear: float, square: float, rest: float) -> float:
        """Quantile at delta / 2 of the sum of linear w + square w^2 + rest."""
        if square == 0:
            return m * rest + norm.isf(delta / 2) * abs(linear) * m**0.5
        shift = linear / (2 * square)
        law, tail = ncx2(m, m * shift**2), delta / 2
        edge = law.isf(tail) if square > 0 else law.ppf(tail)
        return float(square * edge + m * (rest - square * shift**2))

    level = b**2 * variance / 2 + math.log(variance) / 2
    at = -b * variance
    with_it = exact(b, c, level)
    without = exact(-(b + 2 * c * at) * variance**0.5, -c * variance, -(b * at + c * at**2 + level))
    assert max(with_it, without) <= found <= 1.3 * max(with_it, without)
    assert found < m * float(loss_of_expansion(np.array([[b], [c], [c]]), delta)[0])


@pytest.mark.parametrize("m", [2, 10, 50])
def test_rare_large_losses_of_several_draws_cost_no_more_than_found(m: int) -> None:
    """A loss R with probability p, else a small one, by the binomial distribution; the deviation
    alone would not do."""
    r, p, delta = 0.5, 1e-3, 1e-6
    other = -math.log((1 - p * math.exp(-r)) / (1 - p))  # E[exp(-L)] = 1
    mu = (r - other) * math.sqrt(p * (1 - p))
    large = int(binom(m, p).isf(delta))
    exact = large * r + (m - large) * other
    found = float(loss_of_range([r], [mu], delta, m)[0])
    assert exact <= found <= m * r
    assert m == 2 or found < 0.75 * m * r
    assert math.sqrt(m) * mu * norm.isf(delta) < exact
    assert loss_of_range([r, np.inf], [mu, np.inf], delta)[0] == r
    assert loss_of_range([1e4], [1e3], delta, m)[0] == m * 1e4, "no power of e holds it: no warning"


@pytest.mark.parametrize("seed", range(5))
def test_the_expansion_is_found_from_draws_within_its_margins(seed: int) -> None:
    z = np.random.default_rng(seed).standard_normal((4000, 1))
    slope, low, high = expansion_of(1e6 + 2 * z + 0.1 * (z**2 - 1), 4)[:, 0]
    assert 2 * (1 - 3 / 8000**0.5) < slope < 2 * (1 + 7 / 8000**0.5)
    assert low < 0.1 + 3 * 2 / 24_000**0.5
    assert high > 0.1 - 3 * 2 / 24_000**0.5
    assert high - low == pytest.approx(4 * 2 / 24_000**0.5, rel=0.2)


def test_a_term_that_bends_too_far_down_has_no_finite_loss() -> None:
    expansion = np.array([[1.0, 1.0], [-0.51, -0.49], [-0.4, -0.4]])
    found = loss_of_expansion(expansion, 1e-6)
    assert np.isinf(found[0])
    assert np.isfinite(found[1])
