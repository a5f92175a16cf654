"""Gamma and bounded amounts: likelihoods against scipy and Stan, replicates within the bounds."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.models.families import amounts
from tests.models.targets import draws_of
from tests.refusals import refuses

N = 100
RNG = np.random.default_rng(6)
X = RNG.normal(size=N).round(1)
Y = RNG.gamma(2.0, np.exp(3 + 0.5 * X) / 2).round(2) + 0.01
TOP = 150.0


@pytest.mark.samples
@pytest.mark.parametrize(("model", "grid"), [
    (ph.Gamma("y ~ x", lower=2, upper=TOP, step=0.5), 0.5),
    (ph.LogNormal("y ~ x", upper=149.9, step=25), 25),
    (ph.NormalRegression("y ~ x", lower=0, upper=TOP, step=100, unit=20), 100),
    (ph.LogNormal("y ~ x", lower=0.25, upper=TOP, decimals=1), 0.1),
])  # fmt: skip
def test_steps_and_decimals_do_not_leave_the_bounds(model: Any, grid: float) -> None:
    bound = model.bind(pd.DataFrame({"y": np.clip(Y, 2, 149), "x": X}))
    made = bound.replicate(draws_of(bound, warmup=50, draws=8), 0, np.random.default_rng(1))[
        "y"
    ].to_numpy(dtype=float)
    low, high = model.ends
    assert made.min() >= low
    assert made.max() <= high
    np.testing.assert_allclose(made / grid, np.round(made / grid), atol=1e-9)
    assert np.unique(made).size > 1
    assert bound.decimals_given


def test_tails_keep_their_digits() -> None:
    """Intervals far out: quadrature of the density relative to its edge; draws stay inside."""

    def check(found: float, drawn: Any, ends: tuple[float, float], law: Any, error: float) -> None:
        t = np.linspace(*ends, 200_001)
        log_density = law.logpdf(np.maximum(t, 1e-300))
        top = log_density.max()
        assert abs(found - top - np.log(np.trapezoid(np.exp(log_density - top), t))) < error
        assert ((drawn >= ends[0]) & (drawn <= ends[1])).all()

    for mean in (-30.0, 30.0):
        found = amounts.normal_log_mass(np.array([mean]), np.array([1.0]), (0.0, 1.0))[0]
        drawn = amounts.normal_within(np.full(500, mean), 1.0, (0.0, 1.0), np.random.default_rng(1))
        check(found, drawn, (0.0, 1.0), stats.norm(mean), 1e-6)
        edge = 0.0 if mean < 0 else 1.0
        assert np.abs(drawn - edge).mean() == pytest.approx(1 / 30, rel=0.3)
    for ends in ((0.0, 1e-3), (60.0, 61.0)):
        found = amounts.gamma_log_mass(np.array([2.0]), np.array([1.0]), ends)[0]
        drawn = amounts.gamma_within(2.0, np.ones(200), ends, np.random.default_rng(1))
        check(found, drawn, ends, stats.gamma(2.0), 1e-5)


def test_ends_that_change_nothing() -> None:
    """A positive amount is above 0 anyway: the plain program, with its sums."""
    assert not ph.LogNormal("y ~ x", lower=0).bounded
    assert not ph.Gamma("y ~ x", lower=-1).bounded
    assert ph.LogNormal("y ~ x").stan_program == "normal_regression"
    assert ph.LogNormal("y ~ x", upper=9).stan_program == "truncated_normal"
    assert "lower" not in ph.LogNormal("y ~ x").describe()
    assert ph.LogNormal("y ~ x", upper=9.0).describe()["upper"] == 9.0


@pytest.mark.parametrize(("make", "says"), [
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
    (lambda: ph.Gamma("y ~ x", upper=9).bind(pd.DataFrame({"y": Y, "x": X})),
        r"in \[-inf, 9\]"),
    (lambda: ph.LogNormal("y ~ x", lower=1, upper=9).bind(pd.DataFrame({"y": Y, "x": X})),
        r"in \[1, 9\]: row .* does not"),
])  # fmt: skip
def test_what_cannot_be_is_named(make: Any, says: str) -> None:
    refuses(says, make)


@pytest.mark.parametrize(("unit", "told"), [(1.0, True), (3000.0, False)])
def test_values_far_from_what_the_priors_expect_are_told(unit: float, told: bool) -> None:
    """Births of 3,000 g: 4 of 8 fits did not converge, and no message said why."""
    bound = ph.NormalRegression("y ~ x", unit=unit).bind(pd.DataFrame({"y": 3000 + Y, "x": X}))
    assert ("unit=, e.g. 3e+03" in amounts.advice_on_unit(bound)) is told
