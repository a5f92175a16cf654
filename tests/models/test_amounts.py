"""Gamma and bounded amounts: likelihoods against scipy and Stan, replicates within the bounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.models.families.amounts import (
    gamma_log_mass,
    gamma_within,
    normal_log_mass,
    normal_within,
)

N = 100
RNG = np.random.default_rng(6)
X = RNG.normal(size=N).round(1)
Y = RNG.gamma(2.0, np.exp(3 + 0.5 * X) / 2).round(2) + 0.01
TOP = 150.0
CASES: dict[str, Any] = {
    "gamma": (ph.Gamma("y ~ x"), Y),
    "gamma, published prior": (ph.Gamma("y ~ x", prior="published", unit=10), Y),
    "gamma below": (ph.Gamma("y ~ x", upper=TOP), np.minimum(Y, TOP)),
    "gamma above": (ph.Gamma("y ~ x", lower=5, unit=10), np.maximum(Y, 5)),
    "gamma between": (ph.Gamma("y ~ x", lower=2, upper=TOP), np.clip(Y, 2, TOP)),
    "lognormal": (ph.LogNormal("y ~ x", unit=10), Y),
    "lognormal below": (ph.LogNormal("y ~ x", lower=0, upper=TOP), np.minimum(Y, TOP)),
    "lognormal between": (ph.LogNormal("y ~ x", lower=2, upper=TOP), np.clip(Y, 2, TOP)),
    "normal between": (ph.NormalRegression("y ~ x", lower=0, upper=TOP, unit=20),
                       np.minimum(Y, TOP)),
    "normal above": (ph.NormalRegression("y ~ x", lower=0, unit=20, prior="normal"), Y),
}  # fmt: skip


def _bound(name: str) -> Any:
    model, y = CASES[name]
    return model.bind(pd.DataFrame({"y": y, "x": X}))


@cache
def _fitted(name: str) -> Any:
    """A case's model bound, and draws of it with Stan's log_lik."""
    bound = _bound(name)
    return bound, _draws(bound, emit_log_lik=True)


def _draws(bound: Any, **data: Any) -> Any:
    settings = SamplerSettings(chains=2, warmup=50, draws=8, parallel_chains=1)
    return EmbeddedEngine().sample(
        bound.program, bound.stan_data(np.ones(bound.n), **data), seed=3, settings=settings
    )


def _density(model: Any, y: Any, draws: Any) -> Any:
    """The truncated log density, by scipy, (S, n)."""
    eta = draws.flat("beta") @ np.column_stack([np.ones(N), X]).T
    low, high = model.ends
    if isinstance(model, ph.Gamma):
        shape = draws.flat("shape")[:, None]
        own = stats.gamma(shape, scale=np.exp(eta) / shape)
        y, low, high = y / model.unit, max(low, 0) / model.unit, high / model.unit
    else:
        own = stats.norm(eta, draws.flat("sigma")[:, None])
        if model.transform == "log":
            y, high = np.log(y / model.unit), np.log(high / model.unit)
            low = -np.inf if low <= 0 else np.log(low / model.unit)
        else:
            y, low, high = y / model.unit, low / model.unit, high / model.unit
    upper_tail = own.mean() < low
    mass = np.where(upper_tail, own.sf(low) - own.sf(high), own.cdf(high) - own.cdf(low))
    return own.logpdf(y) - np.log(mass)


@pytest.mark.normal_draws
@pytest.mark.parametrize("name", CASES)
def test_log_likelihood_of_numpy_stan_and_scipy(name: str) -> None:
    bound, draws = _fitted(name)
    ours = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)
    np.testing.assert_allclose(ours, draws.flat("log_lik"), rtol=1e-7, atol=1e-8)
    expected = _density(bound.model, CASES[name][1], draws)
    np.testing.assert_allclose(ours[:, bound.rows.row_of], expected, rtol=1e-6, atol=1e-7)
    assert bound.density_above_one


@pytest.mark.parametrize("cap", [None, 1.0])
@pytest.mark.parametrize("name", CASES)
def test_the_target_moves_with_the_weights_alone(name: str, cap: float | None) -> None:
    bound = _bound(name)
    one, two = np.random.default_rng(2).choice([0.0, 0.4, 1.0], (2, N))
    hints = bound.stan_data(one, cap=cap)
    frozen = [k for k in hints if k.startswith(("information", "score", "near", "center_s",
                                                "spread_s"))]  # fmt: skip
    size = ProgramAtPoints(bound.program, hints).n_unconstrained
    points = np.random.default_rng(3).normal(size=(4, size)) / 2

    def target(alpha: Any) -> Any:
        data = bound.stan_data(alpha, cap=cap) | {k: hints[k] for k in frozen}
        return ProgramAtPoints(bound.program, data).log_density(points)

    class _At:
        found = ProgramAtPoints(bound.program, hints).quantities(points)

        def flat(self, key: str) -> Any:
            return self.found[key]

    f = _density(bound.model, CASES[name][1], _At())

    def term(alpha: Any) -> Any:
        own = alpha * f
        return (own if cap is None else np.clip(own, -cap, cap)).sum(axis=1)

    difference = target(one) - target(two)
    np.testing.assert_allclose(difference, term(one) - term(two), rtol=1e-6, atol=1e-6)
    assert np.abs(difference - (term(one) - term(0.9 * two))).max() > 0.1, "control"


@pytest.mark.normal_draws
@pytest.mark.parametrize("name", CASES)
def test_replicates_have_the_models_distribution_and_stay_within(name: str) -> None:
    """A uniform transform of 60 replicates (Kolmogorov, level 1e-6); another scale is caught."""
    bound, draws = _fitted(name)
    model = bound.model
    made = np.stack([
        bound.model.from_support(
            bound.model.draw_outcome({k: draws.flat(k)[5] for k in model.parameters},
                                     bound.design.X, np.random.default_rng(k)), None)
        for k in range(60)
    ])  # fmt: skip
    low, high = model.ends
    assert made.min() >= low
    assert made.max() <= high

    def p_value(factor: float) -> float:
        eta = draws.flat("beta")[5] @ np.column_stack([np.ones(N), X]).T
        y, ends = made * factor / model.unit, (np.array([low, high]) / model.unit)
        if isinstance(model, ph.Gamma):
            shape = draws.flat("shape")[5]
            own = stats.gamma(shape, scale=np.exp(eta) / shape)
        else:
            own = stats.norm(eta, draws.flat("sigma")[5])
            if model.transform == "log":
                y, ends = np.log(y), np.log(np.maximum(ends, 0), where=ends > 0,
                                            out=np.full(2, -np.inf))  # fmt: skip
        share = (own.cdf(y) - own.cdf(ends[0])) / (own.cdf(ends[1]) - own.cdf(ends[0]))
        return float(stats.kstest(share.ravel(), "uniform").pvalue)

    assert p_value(1.0) > 1e-6
    assert p_value(0.9) < 1e-6


@pytest.mark.samples
@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (ph.Gamma("y ~ x", lower=2, upper=TOP, step=0.5), 0.5),
        (ph.LogNormal("y ~ x", upper=149.9, step=25), 25),
        (ph.NormalRegression("y ~ x", lower=0, upper=TOP, step=100, unit=20), 100),
        (ph.LogNormal("y ~ x", lower=0.25, upper=TOP, decimals=1), 0.1),
    ],
)
def test_steps_and_decimals_do_not_leave_the_bounds(model: Any, grid: float) -> None:
    bound = model.bind(pd.DataFrame({"y": np.clip(Y, 2, 149), "x": X}))
    made = bound.replicate(_draws(bound), 0, np.random.default_rng(1))["y"].to_numpy(dtype=float)
    low, high = model.ends
    assert made.min() >= low
    assert made.max() <= high
    np.testing.assert_allclose(made / grid, np.round(made / grid), atol=1e-9)
    assert np.unique(made).size > 1
    assert bound.decimals_given


def test_tails_keep_their_digits() -> None:
    """Intervals far out: quadrature of the density relative to its edge; draws stay inside."""
    for mean in (-30.0, 30.0):
        found = normal_log_mass(np.array([mean]), np.array([1.0]), (0.0, 1.0))[0]
        t = np.linspace(0, 1, 200_001)
        log_density = stats.norm.logpdf(t, mean)
        top = log_density.max()
        expected = top + np.log(np.trapezoid(np.exp(log_density - top), t))
        assert abs(found - expected) < 1e-6
        drawn = normal_within(np.full(500, mean), 1.0, (0.0, 1.0), np.random.default_rng(1))
        assert ((drawn >= 0) & (drawn <= 1)).all()
        edge = 0.0 if mean < 0 else 1.0
        assert np.abs(drawn - edge).mean() == pytest.approx(1 / 30, rel=0.3)
    for ends in ((0.0, 1e-3), (60.0, 61.0)):
        found = gamma_log_mass(np.array([2.0]), np.array([1.0]), ends)[0]
        t = np.linspace(*ends, 200_001)
        log_density = stats.gamma.logpdf(np.maximum(t, 1e-300), 2.0)
        top = log_density.max()
        expected = top + np.log(np.trapezoid(np.exp(log_density - top), t))
        assert abs(found - expected) < 1e-5
        drawn = gamma_within(2.0, np.ones(200), ends, np.random.default_rng(1))
        assert ((drawn >= ends[0]) & (drawn <= ends[1])).all()


def test_ends_that_change_nothing() -> None:
    """A positive amount is above 0 anyway: the plain program, with its sums."""
    assert not ph.LogNormal("y ~ x", lower=0).bounded
    assert not ph.Gamma("y ~ x", lower=-1).bounded
    assert ph.LogNormal("y ~ x").stan_program == "normal_regression"
    assert ph.LogNormal("y ~ x", upper=9).stan_program == "truncated_normal"
    assert "lower" not in ph.LogNormal("y ~ x").describe()
    assert ph.LogNormal("y ~ x", upper=9.0).describe()["upper"] == 9.0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ph.Gamma("y ~ x", lower=3, upper=2), "lower must be below upper"),
        (lambda: ph.Gamma("y ~ x", upper=-1), "upper must be above 0"),
        (lambda: ph.LogNormal("y ~ x", upper=0), "upper must be above 0"),
        (lambda: ph.LogNormal("y ~ x", transform="asinh"), "must be 'log'"),
        (lambda: ph.Gamma("y ~ x", step=0), "step must be"),
        (lambda: ph.Gamma("y ~ x", step=1, decimals=1), "step or decimals, not both"),
        (lambda: ph.Gamma("y ~ x", lower=1.2, upper=1.7, step=1), "leave a multiple"),
        (lambda: ph.Gamma("y ~ x", step=1 / 3), "at most 8 decimals"),
        (lambda: ph.Gamma("y ~ x", unit=-1), "unit must be"),
        (lambda: ph.Gamma("y ~ x").bind(pd.DataFrame({"y": Y - 2, "x": X})), "above 0: row"),
        (
            lambda: ph.Gamma("y ~ x", upper=9).bind(pd.DataFrame({"y": Y, "x": X})),
            r"in \[-inf, 9\]",
        ),
        (
            lambda: ph.LogNormal("y ~ x", lower=1, upper=9).bind(pd.DataFrame({"y": Y, "x": X})),
            r"in \[1, 9\]: row .* does not",
        ),
    ],
)
def test_what_cannot_be_is_named(make: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        make()
