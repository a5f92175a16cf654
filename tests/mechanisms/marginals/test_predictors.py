"""Predictors: shares by hand, every kind of public column, distinct rows."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.mechanisms.marginals.domain import PARTS, of_cells, of_public, stacked


def test_a_number_is_shared_out_between_the_knots_next_to_it() -> None:
    values = pd.Series(np.linspace(0, 8, 33), name="x")  # knots at 0, 2, 4, 6, 8
    shares = np.asarray(of_public(values).cells.todense()) / PARTS
    assert (shares.sum(axis=1) == 1).all()
    np.testing.assert_allclose(shares @ [0, 2, 4, 6, 8], values, atol=1 / PARTS)
    assert ((shares > 0).sum(axis=1) <= 2).all()


@pytest.mark.parametrize(("values", "n_cells"), [
    (["a", "b", None] * 5, 3), ([1, 2, 3] * 5, 3), ([1.5, None, 3] * 5, 3),
    ([True, False] * 5, 2), (pd.Categorical(["a", "b"] * 5), 2), ([*range(14), None], 6),
    ([0.0] * 40 + [1, 2, 3, 4, 5, 6, 7], 2), (["same"] * 5, 1),
    (pd.array([1, None, 2] * 5, dtype="Int64"), 3),
])  # fmt: skip
def test_every_public_column_has_cells(values: Any, n_cells: int) -> None:
    made = of_public(pd.Series(values, name="x"))
    assert made.cells.shape[1] == made.positions.size == n_cells
    assert (made.cells.sum(axis=1) == PARTS).all()
    assert (made.cells.data > 0).all()


def test_a_declared_domain_is_used() -> None:
    values = pd.Series([0.0, 1, 2, 3, 4, 5, 6, 7], name="x")
    made = of_public(values, ph.mechanisms.ColumnDomain(bins=(0, 4, 8)))
    assert (made.cells.todense() / PARTS).tolist() == [[1, 0]] * 4 + [[0, 1]] * 4


def test_distinct_rows_stand_for_all() -> None:
    rng = np.random.default_rng(2)
    places = [rng.integers(0, 3, 200) for _ in range(2)]
    predictors = [of_cells("x", own, 3, np.full(3, np.nan), synthesized=False) for own in places]
    rows = stacked(predictors)
    assert rows.times.sum() == 200
    assert rows.times.size == 9
    whole = np.hstack([np.eye(3)[own] for own in places])
    np.testing.assert_array_equal(np.asarray(rows.cells.todense())[rows.of_record], whole)
