"""Decimals of released values: given, or read from the data and never strict."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.options import build_model
from pyhybrid.models.columns.support import in_form_of, on_grid
from tests.fits import fit_options
from tests.refusals import refuses

FAST = fit_options(chains=4, warmup=400, draws=150, seed=2)


def _neighbors() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two databases that differ in one record: two decimals, and five."""
    first = pd.DataFrame({"y": np.random.default_rng(3).uniform(0.1, 0.9, 60).round(2)})
    second = first.copy()
    second.loc[7, "y"] = 0.12345
    return first, second


def _decimals(values: pd.Series) -> int:
    return int(values.astype(str).str.partition(".")[2].str.len().max())


def _released(model: Any, table: pd.DataFrame) -> ph.Release:
    mechanism = ph.Censored(model, epsilon=6, inner=ph.Unweighted(model), check_modes=False)
    return mechanism.release(table, **FAST)


@pytest.mark.normal_draws
def test_decimals_read_from_the_data_tell_neighbors_apart_and_are_not_strict() -> None:
    """The attack, as it was: two neighbors published 2 and 5 decimals at strict epsilon. Decimals
    that are given are the same for both."""
    first, second = (_released(ph.Beta("y ~ 1"), table) for table in _neighbors())
    assert (_decimals(first.synthetic[0]["y"]), _decimals(second.synthetic[0]["y"])) == (2, 5)
    assert first.charge.kind == second.charge.kind == "asymptotic local"
    for release, shown in ((first, "2"), (second, "5")):
        assert f"of the released values of y, {shown}: it was read from" in release.statement
        assert "decimals=, an option of the model, fixes it" in release.statement
    for table in _neighbors():
        release = _released(ph.Beta("y ~ 1", decimals=3), table)
        assert release.charge.kind == "strict"
        assert _decimals(release.synthetic[0]["y"]) == release.settings["decimals"] == 3
        assert "have 3 decimals, a number fixed without looking" in release.statement


def test_the_dtype_follows_decimals_and_not_the_data() -> None:
    """Read from text, a column is of whole numbers until one record has a decimal."""
    whole, real = pd.Series([1, 2]), pd.Series([1.0, 2.5])
    for decimals, kind in ((0, "int64"), (2, "float64")):
        for like in (whole, real):
            assert str(in_form_of(np.array([3.0, 4.0]), like, decimals).dtype) == kind
    nullable = pd.Series([1, 2], dtype="Int64")
    assert str(in_form_of(np.array([3.0, 4.0]), nullable, 2).dtype) == "Float64"


def test_rounded_values_stay_between_the_bounds() -> None:
    assert on_grid(np.array([0.1, 0.96, 5.0]), 1, 0.25, 0.98).tolist() == [0.3, 0.9, 0.9]
    for wrong in (-1, 16, 1.5, "3"):
        refuses("decimals must", ph.NormalRegression, "y ~ 1", decimals=wrong)
    refuses("must leave values between", ph.Beta, "y ~ 1", lower=0.2, upper=0.8, decimals=0)
    model: Any = build_model("beta:lower=0,upper=1,decimals=3", "y ~ 1")
    assert model.decimals == 3
    refuses("decimals must be a whole number", build_model, "beta:decimals=three", "y ~ 1")
