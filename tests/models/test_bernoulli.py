"""Outcomes with two levels: likelihood, weights, replicates, posterior, levels and their dtypes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.embedded import ProgramAtPoints
from tests.fuzzing.engine import RANDOM_DRAWS
from tests.models.targets import AtPoints

N = 300
RNG = np.random.default_rng(11)
X = RNG.normal(size=N).round(1)
TRUE = RNG.random(N) < special.expit(0.4 + 0.8 * X)


def _table(y: Any = TRUE) -> pd.DataFrame:
    return pd.DataFrame({"y": y, "x": X[: len(y)]})


def test_the_categories_own_order_says_which_level_is_second() -> None:
    values = np.where(TRUE, "yes", "no")
    one = ph.Bernoulli("y ~ x").bind(_table(pd.Categorical(values, ["no", "yes"])))
    two = ph.Bernoulli("y ~ x").bind(_table(pd.Categorical(values, ["yes", "no"])))
    np.testing.assert_array_equal(one.outcome, 1 - two.outcome)
    three = pd.Categorical(values, ["maybe", "no", "yes"])
    declared = ph.Bernoulli("y ~ x", levels=("no", "yes")).bind(_table(three))
    np.testing.assert_array_equal(declared.outcome, one.outcome)
    made = declared.replicate(AtPoints({"beta": np.zeros((1, 2))}), 0, np.random.default_rng(1))[
        "y"
    ]
    assert list(made.cat.categories) == ["maybe", "no", "yes"]


@pytest.mark.parametrize(("values", "levels", "second"), [
    (np.where(TRUE, "yes", "no"), ("no", "yes"), "yes"),
    (np.where(TRUE, "yes", "no"), ("yes", "no"), "no"), (np.where(TRUE, 2, 1), (1, 2), 2),
    (np.where(TRUE, 2, 1), ("1", "2"), 2), (np.where(TRUE, 0.5, 1.5), (1.5, 0.5), 0.5),
    (TRUE, ("False", "True"), True), (TRUE, (True, False), False),
    (pd.Categorical(np.where(TRUE, 2, 1)), ("1", "2"), 2),
])  # fmt: skip
def test_declared_levels(values: Any, levels: Any, second: Any) -> None:
    table = _table(values)
    bound = ph.Bernoulli("y ~ x", levels=levels).bind(table)
    np.testing.assert_array_equal(bound.outcome == 1, table["y"] == second)
    assert bound.data_dependent == ()


def test_a_calibration_is_for_one_order_of_the_categories() -> None:
    """Of a predictor; those of the outcome are declared, in whatever order the column has them."""
    values = np.where(TRUE, "yes", "no")
    model = ph.Bernoulli("y ~ g", levels=("no", "yes"))
    groups = np.resize(["a", "b"], N)
    made = ph.calibrate(
        model, _table(pd.Categorical(values, ["no", "yes"])).assign(g=pd.Categorical(groups)),
        epsilon=1.0, holds_no_released_record=True, **RANDOM_DRAWS,
    )  # fmt: skip
    other = _table(pd.Categorical(values, ["yes", "no"])).assign(g=pd.Categorical(groups))
    made.check_fits(model.bind(other))
    turned = other.assign(g=pd.Categorical(groups, ["b", "a"]))
    mechanism = ph.Censored(made.model, calibration=made, check_modes=False)
    for own, said in (
        (turned, "another order"),
        (other.assign(g=["z", *groups[1:]]), "found 3, others"),
    ):
        with pytest.raises(InvalidInput, match=f"column 'g' must have the levels of .*{said}"):
            mechanism.release(own, n_synthetic=1, **RANDOM_DRAWS)


def test_log_density_where_probabilities_round_to_0_and_1() -> None:
    """Predictors of any size, also of records without weight, whose probability may be 0."""
    y, x = np.array([0, 1, 1, 0, 1]), np.array([-3.0, 2e5, 4.0, 3e3, -1e6])
    alpha = np.array([1.0, 1.0, 0.5, 1e-3, 0.0])
    bound = ph.Bernoulli("y ~ x", prior="normal", prior_scale=1.0).bind(
        pd.DataFrame({"y": y, "x": x})
    )
    data = bound.stan_data(alpha)
    K = data["K"]
    data |= {"information_root": np.zeros((K, K)), "score": np.zeros(K)}  # beta = scale * z
    points = np.array([[0.0, 0.0], [0.1, 0.5], [-0.2, 1.5], [0.0, 1e-7]])
    found = ProgramAtPoints(bound.program, data).log_density(points)
    eta = points * np.asarray(data["prior_scale"]) @ np.column_stack([np.ones(5), x]).T
    right = -np.logaddexp(0, (1 - 2 * y) * eta) @ alpha - (points**2).sum(axis=1) / 2
    np.testing.assert_allclose(found, right, rtol=1e-10)
