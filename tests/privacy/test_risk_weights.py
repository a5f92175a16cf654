"""Weights from what a record tells: against numpy, and what they leave of a budget."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import gamma

import pyhybrid as ph
from pyhybrid.privacy.diagnostics import NearlyNormal, _of_normal, _powers, _tilted
from pyhybrid.privacy.weight_sensitivity import budget_without
from pyhybrid.privacy.weights import leverages


def test_a_large_term_that_does_not_move_keeps_its_weight() -> None:
    """A density of a constant, whose size is a matter of the unit, tells nothing."""
    log_lik = np.column_stack([np.full(100, -50.0), np.linspace(-2, -1, 100)])
    assert ph.lipschitz_weights(log_lik, risk="size")[0] == 0
    for risk in ("range", "deviation"):
        np.testing.assert_array_equal(ph.lipschitz_weights(log_lik, risk=risk), [1, 0])


def test_unbounded_records_get_weight_0() -> None:
    log_lik = np.random.default_rng(3).normal(-3, 1, (50, 3))
    log_lik[4, 1] = -np.inf
    for risk in ("range", "deviation"):
        for q in (1.0, 0.5):
            weights = ph.lipschitz_weights(
                log_lik, risk=risk, draw_quantile=q, scale=0.5, shift=0.5
            )
            assert weights[1] == 0
            assert (weights[[0, 2]] > 0).all()
    single = ph.lipschitz_weights([[-1.0, -np.inf, -3.0]], risk="deviation")
    np.testing.assert_array_equal(single, [1, 0, 1])


@pytest.mark.parametrize(("square", "share"), [(1e-4, 0.7 - 0.3 * 0.01 / 0.085), (0.02, 0.4)])
def test_budget_weights_hold_each_record_to_its_share_of_mu(square: float, share: float) -> None:
    """Those that tell less have the public weight, which has no place for what they tell."""
    risk = np.append(np.linspace(0.01, 4, 4000), [np.inf, 0.0])
    how: Any = {"mu": 0.5, "leverage": np.full(4002, square)}
    alpha = ph.arrays.budget_weights(risk, **how)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(alpha, np.minimum(alpha[-1], share * 0.5 / risk), rtol=1e-12)
    assert 0.1 < (alpha < alpha[-1]).mean() < 0.99
    assert ph.arrays.budget_weights(risk[::-1] / 2, **how)[0] == alpha[-1]


def test_usual_records_tell_a_part_of_the_budget_under_public_weights() -> None:
    """Rare predictors have a lower weight, and records of a unit one for all."""
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(900), rng.normal(size=900), np.arange(900) < 12])
    square = ph.arrays.budget_leverage(X, mu=0.4, n_others=2)
    power = np.minimum(1, 0.17 * 0.4 / np.sqrt(square))
    inner = np.linalg.inv((X * power[:, None]).T @ X)
    told = np.einsum("ij,jk,ik->i", X, inner, X) + 2 / power.sum()
    np.testing.assert_allclose(square, told, rtol=1e-10)
    assert power[:12].max() < 0.5 * power[12:].min()
    unit = np.arange(900) // 3
    shared = ph.arrays.budget_leverage(X, mu=0.4, n_others=2, unit=unit)
    np.testing.assert_array_equal(shared[::3], shared[2::3])
    assert (shared > square).all()
    twice = ph.arrays.budget_leverage(np.column_stack([X, X[:, 1]]), mu=0.4, n_others=2)
    np.testing.assert_allclose(twice, square, rtol=1e-9)  # columns that depend on others


@pytest.mark.parametrize("unit", [None, np.arange(120) // 2])
def test_leverage_without_a_record_is_that_of_the_others(unit: Any) -> None:
    """Under the public weights held; where they are not, in refits, exactly."""
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(120), rng.normal(size=120), rng.random(120) < 0.1])
    owner = np.arange(120) if unit is None else unit
    moved, public = budget_without(X, mu=0.5, n_parameters=5, unit=unit)
    power, kept = public.alpha[owner], owner != 7
    alone = leverages(X[kept], power[kept]) + 2 / power[kept].sum()
    others = np.delete(np.bincount(owner[kept], weights=alone), 7)
    np.testing.assert_allclose(np.delete(moved.without(np.array([7]))[:, 0], 7), others, rtol=1e-9)
    assert np.abs(np.delete(moved.alpha, 7) / others - 1).max() > 1e-3, "held ones are told apart"
    left, _ = budget_without(X[kept], mu=0.5, n_parameters=5, unit=np.unique(
        owner[kept], return_inverse=True)[1])  # fmt: skip
    refitted = np.delete(moved.refitted(7, lambda _: None), 7)  # type: ignore[arg-type,return-value]
    np.testing.assert_allclose(refitted, left.alpha, rtol=1e-9)


def test_parts_of_a_model_are_regressions_of_a_unit_each() -> None:
    """Two of them on X are one on a matrix of two blocks, whose rows of a record are its unit."""
    X = np.column_stack([np.ones(90), np.random.default_rng(5).normal(size=90), np.arange(90) < 4])
    how: Any = {"mu": 0.5, "n_parameters": 8}
    parts = budget_without(X, n_parts=2, **how)
    blocks = budget_without(np.kron(np.eye(2), X), unit=np.tile(np.arange(90), 2), **how)
    for few, whole in zip(parts, blocks, strict=True):
        np.testing.assert_allclose(few.alpha, whole.alpha, rtol=1e-9)
        moved = [each.without(np.array([2, 50])) for each in (few, whole)]
        np.testing.assert_allclose(*moved, rtol=1e-9)
    assert (budget_without(X, **how)[1].alpha[:4] > 1.2 * parts[1].alpha[:4]).all()


def test_a_parameter_that_one_record_has_alone_is_nobody_elses() -> None:
    """Found by fuzzing: the information left without it is 0."""
    X = np.column_stack([np.ones(20), np.arange(20) == 7])
    moved, _ = budget_without(X, mu=0.5, n_parameters=2)
    without = np.delete(moved.without(np.array([7]))[:, 0], 7)
    np.testing.assert_allclose(without, np.delete(moved.alpha, 7), rtol=1e-9)


def test_what_a_record_may_tell_looks_beyond_the_draws() -> None:
    """A term that curves is further out than its deviation says; a normal one is not."""
    z = ndtri((np.arange(4000) + 0.5) / 4000)
    normal, curved = ph.arrays.budget_risk(np.column_stack([0.3 * z, 0.3 * z + 0.05 * z**2]))
    assert normal == pytest.approx(0.3, rel=0.02)
    assert curved == pytest.approx(0.3 + 0.05 * 24 / 5, rel=0.05)


def _moved(theta: Any, rate: float, normal: NearlyNormal | None) -> float:
    """Variance of theta (S,) where its density is multiplied by exp(-rate theta), over that now."""
    ratio, term = -rate * theta[:, None], (theta - theta.mean())[:, None]
    weights = np.exp(ratio[:, 0] - ratio.max())
    variance = np.cov(term[:, 0], aweights=weights, ddof=0)
    if normal is not None:
        variance -= normal.chance(ratio, normal.slopes(term), np.ones(theta.size))[0, 0]
    return float(variance / term.var())


def test_the_chance_of_draws_hardly_moves_variances_without_a_record() -> None:
    """Gamma(400), whose skewness is real: without a record the rate is 5 higher, or 5 lower. The
    sample's own variance, not controlled, is the negative control."""
    controlled, alone = [], []
    for seed in range(20):
        theta = np.random.default_rng(seed).gamma(400, 1 / 400, 2000)
        normal = NearlyNormal.of(theta[:, None], gamma(400, scale=1 / 400).logpdf(theta))
        assert normal is not None
        for rate in (-5, 5):
            exact = (400 / (400 + rate)) ** 2
            controlled.append(_moved(theta, rate, normal) / exact - 1)
            alone.append(_moved(theta, rate, None) / exact - 1)
    assert np.std(controlled) < 0.007
    assert np.std(alone) > 2 * np.std(controlled)
    assert abs(np.mean(controlled)) < 0.003


def test_quadratic_terms_of_a_normal_are_known_without_draws() -> None:
    """Covariances of powers under a quadratic tilt, by Gauss-Hermite quadrature."""
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    grid = np.array([[a, b] for a in z for b in z])
    mean, root = np.array([0.3, -0.2]), np.array([[0.9, 0.0], [0.4, 1.1]])
    tilt = np.array([-0.5, 0.2, -0.1, 0.07, -0.15])
    points = mean + grid @ root.T
    powers = _powers(points)[:, 1:]
    mass = np.outer(weight, weight).ravel() * np.exp(powers @ tilt)
    moved = _tilted(mean, root @ root.T, tilt)
    assert moved is not None
    expected = np.cov(powers.T, aweights=mass / mass.sum(), ddof=0)
    np.testing.assert_allclose(_of_normal(*moved, squares=True), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(moved[0], mass @ points / mass.sum(), rtol=1e-8)
    assert _tilted(mean, root @ root.T, np.array([0.0, 0.0, 2.0, 0.0, 0.0])) is None


def test_axes_of_a_prior_and_far_from_normal_likelihoods_are_not_controlled() -> None:
    """The likelihood has all of the precision along one axis, half along the other; a parameter far
    from normal is taken by its logarithm, if that is nearer."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(2000, 2))
    told = -(points[:, 0] ** 2) / 2 - points[:, 1] ** 2 / 4
    normal = NearlyNormal.of(points, told)
    assert normal is not None
    assert normal.n_axes == 1
    assert abs(np.corrcoef(normal.powers[:, 1], points[:, 0])[0, 1]) > 0.99
    logarithm = NearlyNormal.of(np.exp(3 * points), -(points**2).sum(axis=1) / 2)
    assert logarithm is not None
    assert logarithm.n_axes == 2
    assert NearlyNormal.of(points, -np.abs(points).sum(axis=1) * 4) is None
    assert NearlyNormal.of(points[:6], told[:6]) is None
    assert NearlyNormal.of(np.zeros((50, 1)), np.zeros(50)) is None
