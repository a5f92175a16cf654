"""Losses beyond the draws: against exact posteriors, and where the expansion is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import gamma, norm

from pyhybrid.privacy.diagnostics import expansion_of, loss_of_expansion
from pyhybrid.privacy.local_account import local_account
from pyhybrid.privacy.log_lik import LogLik


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
