"""Outcomes in an interval: densities, sums that stand for records, scaling, edges, rounding."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.models.columns.support import decimals_of
from tests.refusals import refuses


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 2, 120)
    mu = np.where(x == 1, 0.3, 0.15)
    return pd.DataFrame({"y": rng.beta(4 * mu, 4 * (1 - mu)), "x": x})


@pytest.mark.normal_draws
def test_outcomes_are_scaled_and_come_back(table: pd.DataFrame) -> None:
    scaled = table.assign(y=(20 + 100 * table["y"]).round(2))
    model = ph.Beta("y ~ 1", lower=20, upper=120)
    bound = model.bind(scaled)
    np.testing.assert_allclose(bound.design.y, (scaled["y"] - 20) / 100)
    np.testing.assert_array_equal(bound.outcome, scaled["y"])
    assert bound.stan_data(np.ones(bound.n))["n"] == 0, "three sums stand for the records"
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
