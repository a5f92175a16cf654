"""Epsilon of ranges: rounding up, zCDP against exact losses of the exponential mechanism."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput


def test_the_figures_of_guarantees() -> None:
    cost = ph.range_epsilon(0.5, delta=1e-6, n_draws_released=20)
    assert cost.pure == 10
    assert round(cost.approximate, 1) == 6.5
    assert (cost.epsilon, cost.stated_delta) == (cost.approximate, 1e-6)
    one = ph.range_epsilon(0.5, delta=1e-6)
    assert (one.epsilon, one.stated_delta) == (0.5, 0.0)


def test_a_bounded_range_is_concentrated() -> None:
    """[CR21]: exact Renyi divergences of two distributions whose ratio has range eta."""
    for eta in (0.1, 1.0, 4.0):
        rho, tightest = ph.rho_of_range(eta), 0.0
        for p in np.linspace(0.001, 0.999, 300):  # the extreme pairs have two points
            q = p * math.exp(eta) / (1 - p + p * math.exp(eta))
            for order in (1.0001, 1.5, 2.0, 8.0, 64.0):
                terms = [
                    order * math.log(a) + (1 - order) * math.log(b)
                    for a, b in ((p, q), (1 - p, 1 - q))
                ]
                divergence = np.logaddexp(*terms) / (order - 1)
                assert divergence <= order * rho * (1 + 1e-9)
                tightest = max(tightest, divergence / (order * rho))
        assert tightest > 0.6
        assert tightest > 0.9 or eta > 0.5


def test_a_range_of_half_is_caught() -> None:
    """Control: rho of half the range is exceeded by the pair above."""
    p, eta = 0.3775, 1.0
    q = p * math.exp(eta) / (1 - p + p * math.exp(eta))
    divergence = sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)))
    assert ph.rho_of_range(eta / 2) < divergence <= ph.rho_of_range(eta)


def test_what_is_stated_covers_draws_together() -> None:
    """Exact delta of m draws of a two-point mechanism of range eta, at the stated epsilon."""
    eta, m, delta = 1.0, 8, 0.05
    p = 1 / (1 + math.exp(eta / 2))
    cost = ph.range_epsilon(eta, delta=delta, n_draws_released=m)
    assert cost.epsilon < cost.pure
    exact = 0.0
    for hits in range(m + 1):
        one, other = (math.comb(m, hits) * r**hits * (1 - r) ** (m - hits) for r in (p, 1 - p))
        exact += max(one - math.exp(cost.epsilon) * other, 0.0)
    assert exact <= delta


def test_rounding_is_up_and_exact() -> None:
    for loss_range, draws, relation in itertools.product(
        (0.1, 0.15, 0.364, 1 / 3, 1e-9), (1, 3, 20), ("remove", "replace")
    ):
        sides = 2 if relation == "replace" else 1
        exact = sides * draws * Fraction(repr(loss_range))
        epsilon = ph.epsilon_of_range(loss_range, n_draws_released=draws, relation=relation)
        assert exact <= Fraction(repr(epsilon)) < exact + Fraction(1, 100)
        rho = ph.rho_of_range(loss_range, n_draws_released=draws, relation=relation)
        assert Fraction(repr(rho)) >= draws * (sides * Fraction(repr(loss_range))) ** 2 / 8
    assert ph.epsilon_of_range(0.1, n_draws_released=3) == 0.3
    assert ph.rho_of_epsilon(0.5, n_draws_released=20) == 2.5


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="loss_range must be >= 0: found -1"):
        ph.epsilon_of_range(-1)
    with pytest.raises(InvalidInput, match="loss_range must be a finite number"):
        ph.rho_of_range(math.inf)
    with pytest.raises(InvalidInput, match="relation must be one of remove, replace"):
        ph.epsilon_of_range(1, relation="add")
    with pytest.raises(InvalidInput, match="delta must lie in"):
        ph.epsilon_of_rho(1, 0)
    with pytest.raises(InvalidInput, match="that floats can hold"):
        ph.rho_of_range(1e300)
