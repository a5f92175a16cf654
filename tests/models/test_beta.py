"""Outcomes in an interval: densities, sums that stand for records, scaling, edges, rounding."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.models.columns.support import decimals_of
from tests.refusals import refuses


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 2, 120)
    mu = np.where(x == 1, 0.3, 0.15)
    return pd.DataFrame({"y": rng.beta(4 * mu, 4 * (1 - mu)), "x": x})


def test_the_target_is_the_documented_posterior(table: pd.DataFrame) -> None:
    """Of three sums in place of records; a constant apart at any point, Jacobian included."""
    bound = ph.Beta("y ~ 1").bind(table)
    alpha = np.random.default_rng(1).uniform(size=bound.n)
    data = bound.stan_data(alpha)
    assert data["n"] == 0
    at = ProgramAtPoints(bound.program, data)
    points = np.random.default_rng(2).normal(size=(6, 2))
    values = at.quantities(points)
    phi, size = (values[name][:, None] for name in ("phi", "lambda"))
    expected = stats.beta.logpdf(table["y"].to_numpy(), size * phi, size * (1 - phi)) @ alpha
    expected += (stats.pareto.logpdf(size, 1.5, scale=0.1) + np.log(size - 0.1))[:, 0]
    expected += np.log(phi * (1 - phi))[:, 0]  # uniform prior, on the scale of the logit
    apart = at.log_density(points) - expected
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)
    assert np.ptp(apart + 0.1 * np.log(size[:, 0])) > 0.01, "control"


@pytest.mark.normal_draws
def test_outcomes_are_scaled_and_come_back(table: pd.DataFrame) -> None:
    scaled = table.assign(y=(20 + 100 * table["y"]).round(2))
    model = ph.Beta("y ~ 1", lower=20, upper=120)
    bound = model.bind(scaled)
    np.testing.assert_allclose(bound.design.y, (scaled["y"] - 20) / 100)
    np.testing.assert_array_equal(bound.outcome, scaled["y"])
    release = ph.Unweighted(model).release(scaled, seed=1, engine="embedded", refits=0)
    made = release.synthetic[0]["y"]
    assert made.between(20, 120).all()
    assert decimals_of(made.to_numpy()) == 2
    assert release.settings["lower"] == 20
    whole = ph.Beta("y ~ 1", upper=100).bind(pd.DataFrame({"y": np.arange(1, 60, dtype="int16")}))
    back = whole.model.from_support(np.array([0.123456, 0.9]), whole.decimals)
    np.testing.assert_array_equal(back, [12, 90])


def test_exact_ends_are_moved_to_the_edge() -> None:
    table = pd.DataFrame({"y": [0.0, 0.2, 0.5, 0.7, 1.0] * 4})
    bound = ph.Beta("y ~ 1", edge=0.01).bind(table)
    np.testing.assert_allclose(np.unique(bound.design.y), [0.01, 0.2, 0.5, 0.7, 0.99])


@pytest.mark.parametrize(("make", "message"), [
    (lambda t: ph.Beta("y ~ x").bind(t), "use BetaRegression"),
    (lambda t: ph.Beta("y ~ 1", upper=0.1).bind(t), "must lie in"),
    (lambda t: ph.Beta("y ~ 1", lower=1, upper=0), "lower must be below upper"),
    (lambda t: ph.Beta("y ~ 1", lower=None), "lower must be a finite number"),
    (lambda t: ph.Beta("y ~ 1", upper="auto"), "upper must be a finite number"),
    (lambda t: ph.Beta("y ~ 1", edge=0), "edge must lie in"),
    (lambda t: ph.BetaRegression("y ~ x", lower=0.2).bind(t), "row .* does not; give lower"),
])  # fmt: skip
def test_bad_bounds_are_named(make: Any, message: str, table: pd.DataFrame) -> None:
    refuses(message, make, table)
