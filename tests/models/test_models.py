"""The count models: likelihood, Stan's own log_lik, target, collapsing, formulas, replicates."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import SamplingError
from pyhybrid.core.rows import distinct_rows
from pyhybrid.models.columns.support import in_form_of
from pyhybrid.models.families.regression import weighted_rows
from tests.refusals import refuses


def test_negative_binomial_tends_to_poisson() -> None:
    y, X = np.arange(20.0), np.ones((20, 1))
    beta = np.array([[1.0], [2.5]])
    nb = ph.NegativeBinomial("y ~ 1").log_lik({"beta": beta, "phi": np.full(2, 1e13)}, y, X, 0)
    poisson = ph.Poisson("y ~ 1").log_lik({"beta": beta}, y, X, 0)
    np.testing.assert_allclose(nb, poisson, atol=1e-10)
    np.testing.assert_allclose(poisson, stats.poisson.logpmf(y, np.exp(beta)), rtol=1e-12)


def test_distinct_rows() -> None:
    columns = np.array([[1.0, 2], [1, 3], [1, 2], [0, 2], [1, 3]])
    rows = distinct_rows(columns)
    np.testing.assert_array_equal(rows.row_of, [0, 1, 0, 2, 1])
    np.testing.assert_array_equal(rows.first, [0, 1, 3])
    np.testing.assert_array_equal(rows.frequency, [2, 2, 1])
    same = weighted_rows(rows, np.array([0.5, 0.1, 0.5, 1, 0.1]))
    assert same is rows
    split = weighted_rows(rows, np.array([0.5, 0.1, 0.4, 1, 0.1]))
    np.testing.assert_array_equal(split.row_of, [0, 1, 2, 3, 1])


@pytest.mark.parametrize(("formula", "change", "message"), [
    ("visits", {}, "form 'outcome ~ predictors'"),
    ("nothing ~ 1", {}, "outcome 'nothing' must be a column"), ("visits ~ nothing", {}, "nothing"),
    ("visits ~ age +", {}, "does not parse"), ("visits ~~ age", {}, "form 'outcome ~ predictors'"),
    ("visits ~ visits", {}, "must not be among the predictors"),
    ("visits ~ log(visits)", {}, "must not be among the predictors"),
    ("visits ~ age | region", {}, "must have no '|'"),
    ("visits ~ 0", {}, "right-hand side with a term"),
    ("visits ~ age + I(2 * age)", {}, "rank 2 of 3 columns"),
    ("visits ~ log(age - 200)", {}, "must be finite: row 'row 0'"),
    ("visits ~ 1", {"visits": ("row 3", None)}, "must not be missing: row 'row 3'"),
    ("visits ~ 1", {"visits": ("row 5", -1)}, "row 'row 5' is negative"),
    ("visits ~ 1", {"visits": ("row 6", 1.5)}, "must be a whole number: row 'row 6'"),
    ("visits ~ 1", {"visits": ("row 7", np.inf)}, "must be finite: row 'row 7'"),
    ("visits ~ 1", {"visits": ("row 8", 2.0**31)}, "row 'row 8' is larger"),
    ("visits ~ age", {"age": (slice(None), np.nan)}, "'age' must have values: all are missing"),
    ("visits ~ region + offset(age)", {"age": ("row 9", None)}, "offset 'age' must not be missing"),
    ("id ~ 1", {}, "'id' must be numeric"), ("region ~ 1", {}, "'region' must be numeric"),
])  # fmt: skip
def test_bad_formulas_and_outcomes_are_named(
    formula: str, change: dict[str, Any], message: str, visits: pd.DataFrame
) -> None:
    table = visits.copy()
    for column, (label, value) in change.items():
        table[column] = table[column].astype(float)
        table.loc[label, column] = value
    refuses(re.escape(message), ph.Poisson(formula).bind, table)


def test_formula_does_not_see_our_variables() -> None:
    table = pd.DataFrame({"y": [1, 2, 3]})
    local_secret = np.array([1.0, 2.0, 4.0])
    refuses("local_secret", ph.Poisson("y ~ local_secret").bind, table)
    assert ph.Poisson("y ~ x").bind(table.assign(x=local_secret)).n == 3


def test_replicates_from_an_impossible_mean_are_refused() -> None:
    bound = ph.Poisson("y ~ 1").bind(pd.DataFrame({"y": [0, 1, 2]}))
    with pytest.raises(SamplingError, match="mean is out of range"):
        bound.model.draw_outcome(
            {"beta": np.array([50.0])}, bound.design.X, 0.0, np.random.default_rng(1)
        )


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float32", "Int16", "Float64"])
def test_dtype_of_the_outcome_is_kept(dtype: str) -> None:
    like = pd.Series([1, 2, 3], dtype=dtype, index=list("abc"), name="y")
    made = in_form_of(np.array([5.0, 0.0, 100.0]), like)
    assert made.dtype == like.dtype
    assert made.tolist() == [5, 0, 100]
    assert list(made.index) == list("abc")


def test_a_count_too_large_for_its_dtype_widens_it() -> None:
    narrow = pd.Series([1, 2], dtype="int8")
    assert in_form_of(np.array([5.0, 200.0]), narrow).tolist() == [5, 200]
    nullable = pd.Series([1, 2], dtype="Int8")
    assert str(in_form_of(np.array([5.0, 200.0]), nullable).dtype) == "Int64"
