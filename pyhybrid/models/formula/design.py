"""From a table and a Wilkinson formula to an outcome and a design matrix, coded as R codes them.

Unordered categorical predictors get treatment contrasts against their first level, ordered ones
polynomial contrasts (`contr.poly`), logicals one column; rows are never dropped. What a formula may
contain is in `pyhybrid.models.formula.terms`; whether its terms are functions of single records is
also confirmed on the table (`pyhybrid.models.formula.recoding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.coded import Coding, code_table, row_label, term_of
from pyhybrid.models.formula.groups import check_groups, no_groups
from pyhybrid.models.formula.matrix import Matrix
from pyhybrid.models.formula.recoding import all_records_terms
from pyhybrid.models.formula.terms import parse_formula

_READ_FIRST: Mapping[str, str] = {
    "str": "; read it first, e.g. pd.read_csv('survey.csv')",
    "PosixPath": "; read it first, e.g. pd.read_csv('survey.csv')",
    "dict": "; make one of it: pd.DataFrame(data)",
    "ndarray": "; make one of it: pd.DataFrame(data, columns=[...])",
    "Series": "; make one of it: data.to_frame()",
}

__all__ = ["Design", "check_formulas", "read_design", "row_label"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Outcome and predictors of one regression.

    Attributes
    ----------
    outcome : str
        Name of the outcome's column.
    y : ndarray, shape (n,)
        Outcome as floats, finite.
    X : ndarray, shape (n, K)
        Design matrix of full column rank.
    offset : ndarray, shape (n,)
        What ``offset()`` adds to the linear predictor; 0 without one.
    columns : tuple of str
        Names of its columns.
    group : ndarray of int, shape (K,)
        Which of the terms (1 | g) each column belongs to, from 1; 0 for the others, which come
        first.
    predictors : tuple of str
        Columns of the table that the right-hand side reads.
    data_dependent : tuple of str
        Terms whose coding depends on all records (centering, splines, orthogonal polynomials).
    coding : Coding
        How the columns were made: formula, levels, contrasts, what was taken from the data.
    """

    outcome: str
    y: FloatArray
    X: FloatArray
    offset: FloatArray
    columns: tuple[str, ...]
    group: npt.NDArray[np.intp]
    predictors: tuple[str, ...]
    data_dependent: tuple[str, ...] = ()
    coding: Coding | None = field(default=None, repr=False)

    @property
    def has_offset(self) -> bool:
        """True if the formula has an ``offset()``."""
        return self.coding is not None and bool(self.coding.formula.offsets)

    @property
    def n_terms(self) -> int:
        """Number of terms (1 | g)."""
        return int(self.group[-1])

    @cached_property
    def keys(self) -> FloatArray:
        """Rows that are equal where rows of X are, of fewer columns: the levels of groups are one
        number each, shape (n, k)."""
        terms = (self.X[:, self.group == t] for t in range(1, self.n_terms + 1))
        own = [indicators @ np.arange(indicators.shape[1]) for indicators in terms]
        return np.column_stack([self.X[:, self.group == 0], *own])

    def matrix_of(self, df: pd.DataFrame) -> FloatArray:
        """Design matrix (n, K) of another table; see `recoded`."""
        return self.recoded(df).X

    def recoded(self, df: pd.DataFrame) -> Matrix:
        """Design matrix and offset of another table, coded as this one's.

        Raises
        ------
        InvalidInput
            For levels that the data did not have, and for missing or non-finite values; names the
            row.
        """
        assert self.coding is not None
        return code_table(self.coding.formula, df, self.coding)[0]


def read_design(
    formula: str,
    df: pd.DataFrame,
    numbers_of: Callable[[pd.Series, str], FloatArray] | None = None,
    at: npt.NDArray[np.intp] | None = None,
    *,
    any_rank: bool = False,
    groups: bool = False,
) -> Design:
    """Evaluate `formula` on `df`.

    `numbers_of` makes finite numbers (n,) of the outcome's column, given with its name and without
    missing values; without it the column must be numeric. With the positions `at` (k,) of some
    records the outcome is read from these alone, and may be constant there; the predictors are
    coded with those of all records, so that which ones were chosen does not change the coding, and
    their rank is that of all. With `any_rank` the columns may be combinations of others, or all
    zero: a proper prior on each coefficient makes up for it. With `groups` the formula may have
    terms (1 | g).

    Raises
    ------
    InvalidInput
        For a formula that does not parse or has a term that it must not have, a column that is not
        in the data, missing or non-finite values (the first row's label is given), fewer than two
        records, a constant outcome, or a design without full column rank (the terms to blame are
        named). No message holds a value of the data.
    """
    _check_table(df)
    parsed = parse_formula(formula, [name for name in df.columns if isinstance(name, str)])
    values = df[parsed.outcome] if at is None else df[parsed.outcome].iloc[at]
    y = _outcome(values, parsed.outcome, numbers_of or _numbers)
    if at is None and np.ptp(y) == 0:
        raise InvalidInput(
            f"outcome {parsed.outcome!r} must vary: all {y.size} records have the same value"
        )
    if parsed.groups and not groups:
        raise no_groups(parsed.text, parsed.groups[0])
    made, coding = code_table(parsed, df)
    check_groups(made)
    plain = made.group == 0
    _check_rank(made.X[:, plain], made.terms[: plain.sum()], any_rank=any_rank)
    return Design(
        outcome=parsed.outcome,
        y=y,
        X=made.X if at is None else made.X[at],
        offset=made.offset if at is None else made.offset[at],
        columns=made.columns,
        group=made.group,
        predictors=parsed.predictors,
        data_dependent=all_records_terms(coding, df, made.X),
        coding=coding,
    )


def check_formulas(df: Any, formulas: Iterable[str]) -> None:
    """Refuse a table or formulas that `read_design` would refuse by names alone."""
    _check_table(df)
    for formula in formulas:
        parse_formula(formula, [name for name in df.columns if isinstance(name, str)])


def _check_table(df: Any) -> None:
    if not isinstance(df, pd.DataFrame):
        found = type(df).__name__
        instead = _READ_FIRST.get(found, "")
        raise InvalidInput(f"data must be a pandas DataFrame: found {found}{instead}")
    if df.shape[1] == 0 or len(df) == 0:
        raise InvalidInput(f"data must have rows and columns: found shape {df.shape}")
    if len(df) < 2:
        raise InvalidInput("data must have at least 2 records: found 1")
    twice = df.columns[df.columns.duplicated()]
    if len(twice):
        raise InvalidInput(f"column names must be unique: {twice[0]!r} occurs more than once")


def _outcome(
    values: pd.Series, name: str, numbers_of: Callable[[pd.Series, str], FloatArray]
) -> FloatArray:
    if values.isna().any():
        where = int(np.flatnonzero(values.isna())[0])
        raise InvalidInput(
            f"outcome {name!r} must not be missing: {row_label(values.index, where)} is; "
            "drop or impute such rows before synthesis, or take ph.WithMissing(model)"
        )
    return numbers_of(values, name)


def _numbers(values: pd.Series, name: str) -> FloatArray:
    kinds = pd.api.types
    if (
        isinstance(values.dtype, pd.CategoricalDtype)
        or not kinds.is_numeric_dtype(values)
        or kinds.is_complex_dtype(values)
        or kinds.is_bool_dtype(values)
    ):
        instead = (
            "its values are numbers written as text, so make numbers of them by pd.to_numeric()"
            if _numbers_as_text(values)
            else "take the model categorical (ordinal if its levels have an order, bernoulli if "
            "there are two), or leave it alone"
        )
        raise InvalidInput(f"outcome {name!r} must be numeric: found {values.dtype}; {instead}")
    y = values.to_numpy(dtype=np.float64)
    infinite = np.flatnonzero(~np.isfinite(y))
    if infinite.size:
        raise InvalidInput(
            f"outcome {name!r} must be finite: {row_label(values.index, int(infinite[0]))} is not"
        )
    return y


def _numbers_as_text(values: pd.Series) -> bool:
    """True of text and objects that are all real numbers; categories and logicals are none."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return False
    objects = values.astype(object)
    if objects.map(lambda value: isinstance(value, (bool, np.bool_, complex))).any():
        return False
    try:
        return bool(pd.to_numeric(objects, errors="coerce").notna().all())
    except OverflowError:  # whole numbers that no float holds
        return False


def _check_rank(X: FloatArray, terms: tuple[str, ...], *, any_rank: bool) -> None:
    """Refuse columns that are combinations of earlier ones, by pivoted QR of the scaled design."""
    from scipy.linalg import qr

    with np.errstate(over="ignore"):
        size = np.sqrt((X**2).sum(axis=0))
    if not np.isfinite(size).all():
        raise InvalidInput("predictors must be small enough to square: rescale the large ones")
    if any_rank:
        return
    zero = np.flatnonzero(size == 0)
    if zero.size:
        raise InvalidInput(
            f"predictor {term_of(terms, int(zero[0]))} must not be all zero: drop it, or a level "
            "that no record has"
        )
    triangle, order = qr(X / size, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > diagonal[0] * max(X.shape) * np.finfo(float).eps).sum())
    if rank < X.shape[1]:
        named = ", ".join(term_of(terms, int(place)) for place in order[rank:])
        raise InvalidInput(
            f"the design must have full column rank: rank {rank} of {X.shape[1]} columns; "
            f"{named} is a combination of the others"
        )
