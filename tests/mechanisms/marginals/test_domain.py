"""Public domains: cells by brute force, declared forms, refusals without values; predictors."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.mechanisms.marginals.domain import Predictor
from pyhybrid.mechanisms.marginals.log_linear import Rows
from pyhybrid.models.columns.form import numbers_in
from tests.refusals import refuses

P_VALUE = 1e-6
Domain = ph.mechanisms.ColumnDomain


def drawn(domain: Any, places: Any, seed: int = 1) -> pd.Series:
    at = np.random.default_rng(seed).random(places.size)
    return domain.values(places, at, name="y")


def column(values: Any, dtype: Any = None) -> pd.Series:
    return pd.Series(values * 40, name="y", dtype=dtype)


@pytest.mark.parametrize(("values", "domain", "dtype"), [
    (column(["a", "b", None]), Domain(levels=("a", "b", "never"), missing=True), "category"),
    (column(["a", "b"], object), Domain(levels=("b", "a")), "category"),
    (column(["a", "b", "c"], "category"), Domain(levels=("c", "a", "b"), ordered=True), "category"),
    (column(["a", None], "category"), Domain(levels=("a",), missing=True), "category"),
    (column([True, False]), Domain(levels=(False, True)), "bool"),
    (column([True, None], "boolean"), Domain(levels=(False, True), missing=True), "boolean"),
    (column([1, 2, None], "Int8"), Domain(levels=(1, 2), missing=True), "Int64"),
    (column([1, 2, None]), Domain(levels=(1, 2), missing=True), "Int64"),
    (column([1, 2, None], object), Domain(levels=(1, 2), missing=True), "Int64"),
    (column([1, 2.5]), Domain(levels=(1, 2.5)), "float64"),
    (column([0, 2.5, None, 8]), Domain(levels=(0,), bins=(0, 3, 9), step=0.5, missing=True),
     "float64"),
    (column([0, 2, 9], "uint8"), Domain(levels=(0,), bins=(0, 3, 9)), "int64"),
    (column([0, 2, None], "Int64"), Domain(levels=(0,), bins=(0, 3, 9), missing=True), "Int64"),
    (column([0, 200, 900], "int32"), Domain(bins=(0, 300, 900), step=100), "int64"),
    (column([5, 0, 9, 3]), Domain(levels=(9, 3, 5), bins=(0, 9)), "int64"),
    (column([-1.5, 0.0, 2.0]), Domain(bins=(-2, 0.25, 2)), "float64"),
], ids=str)  # fmt: skip
def test_values_come_back_in_their_cell_and_declared_form(
    values: Any, domain: Any, dtype: str
) -> None:
    places = domain.places(values)
    assert set(places) <= set(range(domain.n_cells))
    made = drawn(domain, places)
    assert (str(made.dtype), made.name) == (dtype, "y")
    if dtype == "category":
        assert tuple(made.cat.categories) == domain.levels
        assert made.cat.ordered == domain.ordered
    np.testing.assert_array_equal(domain.places(made), places)
    np.testing.assert_array_equal(made.isna(), values.isna())


def test_cells_by_brute_force() -> None:
    domain = Domain(levels=(0, 7), bins=(-3, 0, 5, 11), step=0.1, missing=True)
    expected = {-3: 2, -1: 2, 0: 0, 1: 3, 4.9: 3, 5: 4, 7: 1, 11: 4, np.nan: 5}
    values = pd.Series(list(expected), name="y")
    assert domain.places(values).tolist() == list(expected.values())
    np.testing.assert_array_equal(domain.positions, [np.nan, np.nan, 0, 0.5, 1, np.nan])


def test_numbers_are_uniform_within_their_bin_and_never_a_level() -> None:
    domain = Domain(levels=(0, 4), bins=(0, 3, 10))
    for cell, support in ((2, [1, 2]), (3, [3, 5, 6, 7, 8, 9, 10])):
        counts = drawn(domain, np.full(5000, cell), 2).value_counts()
        assert sorted(counts.index) == support
        assert stats.chisquare(counts).pvalue > P_VALUE
    domain = Domain(levels=(0, 4), bins=(0, 3.0, 9.999))
    reals = drawn(domain, np.full(5000, 3), 3)
    assert stats.kstest(reals, "uniform", (3, 6.999)).pvalue > P_VALUE


@pytest.mark.parametrize(("fields", "words"), [
    ({"levels": "ab"}, "levels must be a tuple"), ({"levels": ("a", "a")}, "different values"),
    ({"levels": ("a",)}, "two cells or more"), ({"bins": (1,)}, "two edges or more"),
    ({"bins": (1, 3, 2)}, "ascend"), ({"bins": (1, np.inf)}, "finite"), ({"levels": None}, "cells"),
    ({"bins": (0, 1, 2), "step": 0}, "step must be above 0"),
    ({"bins": (0, 1, 2), "center": 0}, "center and unit must both be given"),
    ({"levels": (0, 1), "missing": 1}, "missing must be True or False"),
    ({"levels": ("x",), "bins": (0, 1)}, "a level of a domain with bins"),
])  # fmt: skip
def test_a_domain_that_is_none_is_refused(fields: Any, words: str) -> None:
    refuses(words, Domain, **fields)


@pytest.mark.parametrize(("values", "domain", "words"), [
    (["a", "secret"], Domain(levels=("a", "b")), "column 'y' must lie in its domain: row 1"),
    ([1.0, 12345.0], Domain(bins=(0, 1, 2)), "column 'y' must lie in its domain: row 1"),
    (["a", None], Domain(levels=("a", "b")), "must not be missing: row 1"),
    (["a", "b"], Domain(bins=(0, 1, 2)), "must be numeric to have bins"),
])  # fmt: skip
def test_values_outside_are_named_by_row_and_not_shown(
    values: Any, domain: Any, words: str
) -> None:
    refuses(words, domain.places, pd.Series(values, name="y"), hidden=["secret", "12345"])


def test_amounts_that_round_to_zero_are_in_the_first_cell_however_small() -> None:
    numbers = pd.Series([0.0, 1e-9, 5e-5, 0.04, 0.06, -1e-9])
    cells = Domain(bins=(1e-4, 0.2, 50, 100), step=0.1).cells_of(numbers)
    assert cells.tolist() == [-1, 0, 0, 0, 0, -1]


@pytest.mark.parametrize("value", [1e308, -1e308, 1e25])
def test_a_value_far_beyond_the_ends_is_the_end_and_warns_of_nothing(value: float) -> None:
    domain = Domain(bins=(0, 40, 100), step=0.01, clamp=True)
    numbers = pd.Series([20.0, value, 60], name="y")
    end = 0 if value < 0 else 1
    assert domain.places(numbers).tolist() == [0, end, 1]


@pytest.mark.parametrize("entry", [1 + 2j, np.complex128(1), np.array([1.0]), [1.0], "1e400"])
def test_an_entry_that_is_no_number_warns_of_nothing(entry: Any) -> None:
    values = pd.Series([20.0, None, 60], dtype=object)
    values[1] = entry
    np.testing.assert_equal(numbers_in(values), [20.0, np.nan, 60.0])


def test_a_domain_is_json_and_comes_back() -> None:
    for domain in (Domain(levels=(0,), bins=(1, 2, 3), step=0.5, missing=True),
                   Domain(levels=("a", "b"), ordered=True)):  # fmt: skip
        assert Domain.from_dict(domain.as_dict()) == domain
    assert Domain.from_dict(["a", "b"]) == Domain(levels=("a", "b"))
    refuses("have the keys", Domain.from_dict, {"level": [1, 2]})


@pytest.mark.parametrize("values", [[True, False, True], [1, 0, 1]])
def test_noise_draws_missing_values_where_no_record_has_one(values: list[Any]) -> None:
    """They are missing in a dtype that has a place for them, in place of an error that tells."""
    levels = (False, True) if isinstance(values[0], bool) else (0, 1)
    made = drawn(Domain(levels=levels, missing=True), np.array([0, 1, 2] * 40))
    assert made.isna().tolist() == [False, False, True] * 40
    assert made.dropna().astype(int).tolist() == [0, 1] * 40


@pytest.mark.parametrize("step", [0.1, 0.01, 0.05, 1e-4, 0.3, 25, 1 / 3])
def test_a_number_is_in_the_bin_that_its_decimals_say(step: float) -> None:
    """Counted in whole steps: 6.6 = 66 * 0.1 is 6.6000000000000005 as a product."""
    k = np.arange(-2000, 2001, dtype=np.int64)
    for edges in (k * step, np.round(k * step, 10)):
        domain = Domain(bins=tuple(edges[::3]), step=step)
        for y in (k[:-1] * step, np.round(k[:-1] * step, 10), k[:-1] / (1 / step)):
            found = domain.places(pd.Series(y, name="y"))
            np.testing.assert_array_equal(found, np.minimum((k[:-1] + 2000) // 3, 1332))
    edges = k[::3] * step  # the control: as floats are, some fall one bin to the left
    at = np.searchsorted(edges, np.round(k * step, 10), side="right") - 1
    assert (at != (k + 2000) // 3).any() or step in (25, 1 / 3)


@pytest.mark.parametrize(("values", "n_cells"), [
    (["a", "b", None] * 5, 3), ([1, 2, 3] * 5, 3), ([1.5, None, 3] * 5, 3),
    ([True, False] * 5, 2), (pd.Categorical(["a", "b"] * 5), 2), ([*range(16), None], 9),
    ([0.0] * 80 + [1, 2, 3, 4, 5, 6, 7, 8], 2), (["same"] * 5, 1),
    (pd.array([1, None, 2] * 5, dtype="Int64"), 3),
])  # fmt: skip
def test_every_public_column_has_cells(values: Any, n_cells: int) -> None:
    made = Predictor.of_public(pd.Series(values, name="x"))
    assert set(made.cells) == set(range(n_cells))
    assert made.positions.size == n_cells
    declared = Predictor.of_public(pd.Series([1, 5, 8]), Domain(bins=(0, 4, 8)))
    assert declared.cells.tolist() == [0, 1, 1]


def test_distinct_rows_stand_for_all() -> None:
    rng = np.random.default_rng(2)
    places = [rng.integers(0, 3, 200) for _ in range(2)]
    rows = Rows.of([Predictor(cells=own, positions=np.full(3, np.nan)) for own in places])
    assert (rows.times.sum(), rows.times.size) == (200, 9)
    whole = np.hstack([np.eye(3)[own] for own in places])
    np.testing.assert_array_equal(np.asarray(rows.cells.todense())[rows.of_record], whole)
