"""The form of a released column: dtype, decimals and missing values, from its declaration alone.

The dtype of a confidential column is a function of its records: an empty cell makes floats of whole
numbers, one 3.5 or "3.0" does, and one value more is one category more. What a strict mechanism
releases has the form that was declared, and its models read the column in that form, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.decimals import check_decimals
from pyhybrid.models.columns.levels import level_places, outcome_levels
from pyhybrid.models.formula.values import with_columns

__all__ = ["Form", "form_of_levels", "forms_of", "in_their_forms", "read_in_forms"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a released column looks like.

    Parameters
    ----------
    decimals : int, optional
        Of numbers: 0 for whole ones; None for all that floating point has.
    levels : tuple, optional
        In place of numbers. Logicals and numbers are released as such, all else as categories.
    ordered : bool, default False
        The categories are in their order.
    missing : bool, default False
        Values can be missing. The dtype then has a place for them, whether or not any is.
    """

    decimals: int | None = None
    levels: tuple[Any, ...] | None = None
    ordered: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        check_decimals(self.decimals)

    @property
    def dtype(self) -> Any:
        """int64, float64, bool, or categories; Int64 and boolean where values can be missing."""
        if self.levels is not None:
            if all(isinstance(own, bool) for own in self.levels):
                return pd.BooleanDtype() if self.missing else np.dtype(bool)
            if not self._of_numbers:
                return pd.CategoricalDtype(list(self.levels), ordered=self.ordered)
        if self._whole:
            return pd.Int64Dtype() if self.missing else np.dtype(np.int64)
        return np.dtype(np.float64)

    @property
    def _of_numbers(self) -> bool:
        held = self.levels or ()
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in held)

    @property
    def _whole(self) -> bool:
        if self.levels is None:
            return self.decimals == 0
        return all(float(own).is_integer() and abs(own) < 2**53 for own in self.levels)

    def read(self, column: pd.Series) -> pd.Series:
        """Confidential values in a dtype that does not depend on them; values as they are.

        What cannot be read so is left as it is, for the model to refuse.
        """
        dtype = self.dtype
        if not self.missing and bool(column.isna().any()):
            return column
        try:
            if self.levels is not None:
                return self._of_levels(column).astype(dtype)
            numbers = _as_numbers(column)
            there = numbers[numbers.notna()]
            exact = self._whole and bool(((there == np.floor(there)) & (there.abs() < 2**53)).all())
            return numbers.astype(dtype if exact else np.dtype(np.float64))
        except (InvalidInput, TypeError, ValueError, OverflowError):
            return column

    def cast(self, column: pd.Series) -> pd.Series:
        """Released values, which a mechanism drew, in their form; the index and name stay."""
        dtype = self.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            values = pd.Categorical(column.astype(object), dtype=dtype)
            made: pd.Series = pd.Series(values, index=column.index, name=column.name)
            return made
        if pd.api.types.is_integer_dtype(column.dtype) or dtype.kind == "b":
            whole: pd.Series = column.astype(dtype)
            return whole
        numbers = _as_numbers(column)
        if self.levels is None and self.decimals is not None:
            numbers = numbers.round(self.decimals) + 0.0  # no negative zero
        shown: pd.Series = numbers.astype(dtype)
        return shown

    def _of_levels(self, column: pd.Series) -> pd.Series:
        """Each value as the level that it is."""
        assert self.levels is not None
        there = column.notna().to_numpy(dtype=bool)
        present, name = column[there], str(column.name)
        whole = np.full(len(column), None, dtype=object)
        if len(present):
            places = level_places(present, name, outcome_levels(present, name, self.levels))
            own = np.empty(len(self.levels), dtype=object)
            own[:] = self.levels
            whole[there] = own[places.astype(np.intp)]
        if self._of_numbers:
            whole = np.where(there, whole, np.nan).astype(np.float64)
        made: pd.Series = pd.Series(whole, index=column.index, name=column.name)
        return made


def _as_numbers(column: pd.Series) -> pd.Series:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    made: pd.Series = pd.Series(values, index=column.index, name=column.name)
    return made


def form_of_levels(
    column: pd.Series,
    given: tuple[Any, ...] | None,
    *,
    numbers: tuple[Any, ...] | None = None,
    ordered: bool = False,
) -> Form | None:
    """Form of an outcome with levels; None if they would be read from the records.

    Parameters are those of `pyhybrid.models.columns.levels.outcome_levels`.
    """
    if given is not None:
        return Form(levels=given, ordered=ordered)
    try:
        found = outcome_levels(column.dropna(), str(column.name), None, numbers)
    except (InvalidInput, TypeError):
        return None
    return None if found.read else Form(levels=found.values, ordered=ordered)


def forms_of(model: Any, table: pd.DataFrame) -> dict[str, Form]:
    """Form of the column that a model synthesizes, by its name; none if it is not declared.

    `table` tells logicals, numbers and categories apart, and nothing else: a neighboring table in
    which they are others is refused.
    """
    own = getattr(model, "forms", None)
    found: dict[str, Form] = {} if own is None else own(table)
    return {name: form for name, form in found.items() if name in table}


def read_in_forms(table: pd.DataFrame, forms: Mapping[str, Form]) -> pd.DataFrame:
    """`table` with the columns named as their forms read them; it is not changed."""
    changed = {name: own.read(table[name]) for name, own in forms.items()}
    if all(values.dtype == table[name].dtype for name, values in changed.items()):
        return table
    return with_columns(table, changed)


def in_their_forms(table: pd.DataFrame, forms: Mapping[str, Form]) -> pd.DataFrame:
    """`table` with released columns cast."""
    return with_columns(table, {name: own.cast(table[name]) for name, own in forms.items()})
