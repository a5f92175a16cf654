"""Every formula of the stored designs, by R itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyhybrid.models.formula.design import read_design
from tests.golden.designs.cases import FORMULAS, table
from tests.golden.designs.make_designs import in_r, sorted_columns


@pytest.mark.parametrize("formula", FORMULAS)
def test_design_is_rs_model_matrix(formula: str, r: Callable[..., Any]) -> None:
    df = table()
    design, (matrix, offset) = read_design(formula, df), in_r(formula, df)
    own, other = sorted_columns(design.X), sorted_columns(matrix)
    assert own.shape == other.shape
    size = np.abs(other).max(axis=0)
    np.testing.assert_allclose(own / size, other / size, atol=1e-12)
    np.testing.assert_allclose(design.offset, offset, rtol=1e-12)


def test_where_r_has_more_columns_than_the_rank_the_space_is_the_same(
    r: Callable[..., Any],
) -> None:
    """R crosses factors without main effects into one column too many, which glm then drops."""
    df = table()
    own, other = read_design("y ~ member:g", df).X, in_r("y ~ member:g", df)[0]
    assert (own.shape[1], other.shape[1]) == (6, 7)
    assert np.linalg.matrix_rank(np.column_stack([own, other])) == 6


def test_bitwise_powers_would_be_found(r: Callable[..., Any]) -> None:
    """Negative control: the mistake that was seen differs from R by far."""
    df = table()
    wrong = df["x"].to_numpy() ^ 2
    assert np.abs(in_r("y ~ 0 + I(x^2)", df)[0][:, 0] - wrong).min() > 100
