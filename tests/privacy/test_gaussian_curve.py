"""Delta and epsilon of mu: against 60-digit arithmetic, inverses, monotone, composition."""

from __future__ import annotations

import importlib.util
import math
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import norm

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput

GRID = [0.0, 1e-9, 1e-3, 0.05, 0.207, 0.26, 1.0, 1.146, 4.0, 15.0, 60.0]
EPSILONS = [0.0, 1e-8, 1e-3, 0.1, 0.87, 1.0, 5.7, 20.0, 300.0]


def _precise() -> ModuleType:
    """The brute force of the golden cases, which imports nothing but the standard library."""
    path = Path(__file__).parents[1] / "golden" / "gaussian_formulas.py"
    spec = importlib.util.spec_from_file_location("gaussian_formulas", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mu", GRID)
def test_delta_has_the_value_of_exact_arithmetic(mu: float) -> None:
    precise = _precise()
    for epsilon in EPSILONS:
        exact = precise.delta_of_mu(mu, epsilon)
        found = ph.delta_of_mu(mu, epsilon)
        assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-300)


def test_the_naive_difference_fails_where_ours_holds() -> None:
    """Control: the formula as it is written loses every digit at a small mu."""
    mu, epsilon = 1e-9, 4e-9
    exact = float(_precise().delta_of_mu(mu, epsilon))
    a, b = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    naive = norm.cdf(a) - math.exp(epsilon) * norm.cdf(b)
    assert abs(naive / exact - 1) > 1e-9
    assert ph.delta_of_mu(mu, epsilon) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-300, 1e-15, 1e-6, 1e-3, 0.1, 0.7, 0.999])
def test_inverses_meet_and_round_to_the_safe_side(delta: float) -> None:
    for mu in GRID[1:]:
        epsilon = ph.epsilon_of_mu(mu, delta)
        assert ph.delta_of_mu(mu, epsilon) <= delta
        if epsilon == 0:
            assert ph.delta_of_mu(mu, 0) <= delta
            continue
        assert ph.delta_of_mu(mu, epsilon * (1 - 1e-11)) > delta
        back = ph.mu_of_epsilon(epsilon, delta)
        assert ph.delta_of_mu(back, epsilon) <= delta
        assert back == pytest.approx(mu, rel=1e-9)


def test_monotone_in_both() -> None:
    mus, epsilons = np.geomspace(1e-6, 30, 60), np.linspace(0, 40, 60)
    table = np.array([[ph.delta_of_mu(mu, e) for e in epsilons] for mu in mus])
    assert (np.diff(table, axis=0) >= 0).all()
    assert (np.diff(table, axis=1) <= 0).all()
    assert ((table >= 0) & (table <= 1)).all()


def test_the_figures_of_guarantees() -> None:
    found = [ph.delta_of_mu(0.207, k * 0.207) for k in (1, 2, 3)]
    np.testing.assert_allclose(found, [1.91e-2, 2.15e-3, 1.07e-4], rtol=0.01)
    assert round(ph.epsilon_of_mu(0.207, 1e-6), 2) == 0.87
    assert round(ph.epsilon_of_mu(1.146, 1e-6), 1) == 5.7
    assert round(ph.epsilon_of_mu(0.93, 1e-6), 1) == 4.5  # mu rounded; 4.4 there


def test_composition_by_squares_never_rounds_down() -> None:
    mus = np.random.default_rng(1).gamma(1, 1, 50)
    exact = sum(Decimal(float(mu)) ** 2 for mu in mus).sqrt()
    assert exact <= Decimal(ph.compose_mu(mus)) <= exact * (1 + Decimal("1e-15"))
    assert ph.compose_mu([]) == 0
    assert ph.compose_mu([0.3]) == 0.3
    assert ph.mu_of_release(0.3, n_draws_released=20) == pytest.approx(ph.compose_mu([0.3] * 20))
    assert ph.mu_of_release(0.3, relation="replace") == 0.6


def test_groups_of_normals() -> None:
    """Two shifts of 1 in a row are one of 2: N(0, 1) against N(2, 1), for each epsilon."""
    for epsilon in (0.5, 2.0, 5.0):
        threshold = epsilon / 2 + 1
        exact = norm.sf(threshold, 2) - math.exp(epsilon) * norm.sf(threshold)
        assert ph.delta_of_mu(ph.mu_of_release(1.0, relation="replace"), epsilon) == pytest.approx(
            exact, rel=1e-9
        )


@pytest.mark.parametrize("delta", [0, 1, -1e-6, math.nan, 2])
def test_delta_must_be_a_probability(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta must"):
        ph.epsilon_of_mu(1.0, delta)
    with pytest.raises(InvalidInput, match="delta must"):
        ph.mu_of_epsilon(1.0, delta)


def test_numbers_must_not_be_negative() -> None:
    with pytest.raises(InvalidInput, match="mu must be >= 0: found -1"):
        ph.delta_of_mu(-1, 1)
    with pytest.raises(InvalidInput, match="epsilon must be >= 0: found -1"):
        ph.delta_of_mu(1, -1)
    with pytest.raises(InvalidInput, match="that floats can hold"):
        ph.epsilon_of_mu(1e200, 1e-6)
