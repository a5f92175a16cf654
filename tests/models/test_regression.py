"""Regressions of one outcome: distinct rows, formulas and outcomes that are refused, offsets.

The formulas are held against R's model.offset in `test_formulas.py`, the target density with an
offset in `test_contract.py` and `test_coefficients.py`.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import SamplingError
from pyhybrid.core.rows import distinct_rows
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import declared_names, load_program
from pyhybrid.models.families.regression import weighted_rows
from tests.models.targets import AtPoints
from tests.models.test_contract import CASES, X
from tests.refusals import fails, refuses

WITH_OFFSET = [name for name in CASES if name.endswith(", offset")]


def test_negative_binomial_tends_to_poisson() -> None:
    y, X = np.arange(20.0), np.ones((20, 1))
    beta = np.array([[1.0], [2.5]])
    nb = ph.NegativeBinomial("y ~ 1").log_lik({"beta": beta, "phi": np.full(2, 1e13)}, y, X, 0)
    poisson = ph.Poisson("y ~ 1").log_lik({"beta": beta}, y, X, 0)
    np.testing.assert_allclose(nb, poisson, atol=1e-10)


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
    at = {"beta": np.array([50.0])}, bound.design.X, 0.0, np.random.default_rng(1)
    fails(SamplingError, "mean is out of range", bound.model.draw_outcome, *at)


def test_rows_that_differ_in_the_offset_alone_are_not_one() -> None:
    table = pd.DataFrame({"y": [3, 3, 3, 1], "t": [1.0, 2.0, 1.0, 1.0]})
    bound = ph.Poisson("y ~ offset(log(t))").bind(table)
    np.testing.assert_array_equal(bound.row_of, [0, 1, 0, 2])
    np.testing.assert_allclose(bound.stan_data(np.ones(4))["offsets"], [0, np.log(2), 0])
    assert ph.Poisson("y ~ 1").bind(table).rows.first.size == 2


@pytest.mark.parametrize("name", WITH_OFFSET)
def test_replicates_read_the_offset_of_the_table_given(name: str) -> None:
    """An exposure that is synthetic, by the same random numbers; the control: the data's own."""
    table = pd.DataFrame({"y": CASES[name].y, "x": X})
    bound, rng = CASES[name].model.bind(table), np.random.default_rng
    program = ProgramAtPoints(bound.program, bound.stan_data(np.ones(X.size)))
    at = AtPoints(program.quantities(np.zeros((1, program.n_unconstrained))))
    made = bound.replicate(at, 0, rng(1), table.assign(x=1 - X)).to_numpy()[:, 0]
    one = {k: at.flat(k)[0] for k in bound.model.parameters}
    design = np.column_stack([np.ones(X.size), 1 - X])
    offsets = (1 - X) / 2, bound.design.offset
    drawn = (bound.model.draw_outcome(one, design, offset, rng(1)) for offset in offsets)
    expected, own = (bound.model.from_support(y, bound.decimals) for y in drawn)
    np.testing.assert_allclose(made, expected)
    assert not np.array_equal(expected, own)


def test_every_regression_takes_an_offset_and_what_is_none_refuses_it() -> None:
    """A model that is added later is found here."""
    table = pd.DataFrame({"y": [0.1, 0.3, 0.2], "t": [1.0, 2.0, 1.0]})
    assert ph.NormalRegression("y ~ 1").bind(table).grid is not None
    assert ph.NormalRegression("y ~ offset(t)").bind(table).grid is None
    refuses("Beta takes no predictors", ph.Beta("y ~ offset(t)").bind, table)
    tested = {CASES[name].model.program_name for name in WITH_OFFSET}
    programs = {p.stem for p in (Path(__file__).parents[2] / "stan").glob("*.stan")}
    assert programs == {*tested, "beta", "categorical", "ordinal"}
    assert all("offsets" in declared_names(load_program(name), "data") for name in tested)
