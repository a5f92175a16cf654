"""Form of a column in a strict release: levels, decimals, dtype.

Levels that are read from a column are a function of all records that no epsilon covers: one record
with a further value changes what can be released. A charge is strict only where they are declared.
Categories of a dtype are no declaration: ``astype("category")`` takes them from the records, and
whether it did cannot be seen without looking at these.

The dtype of a confidential column is a function of its records: an empty cell makes floats of whole
numbers, one 3.5 or "3.0" does, and one value more is one category more. What a strict mechanism
releases has the form that was declared, and its models read the column in that form, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.support import check_decimals
from pyhybrid.models.formula.values import column_like, first_row, with_columns

_MOST_LEVELS = 1000
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_LOGICALS = {"true": 1.0, "false": 0.0}
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, kw_only=True)
class OutcomeLevels:
    """Values that an outcome can have, in their order; `read` if they were, or may have been, read
    from the records."""

    values: tuple[Any, ...]
    read: bool = False


def check_levels_given(levels: Any, n_levels: int | None = None) -> tuple[Any, ...] | None:
    """`levels` as a tuple of texts, numbers or logicals, None for none; InvalidInput unless there
    are `n_levels` different ones, or 2 to 1000."""
    if levels is None:
        return None
    if isinstance(levels, str) or not isinstance(levels, Sequence):
        raise InvalidInput(f"levels must be a tuple: found {type(levels).__name__}")
    plain = tuple(own.item() if isinstance(own, np.generic) else own for own in levels)
    if not all(isinstance(own, str | bool | int | float) for own in plain):
        raise InvalidInput("levels must be texts, numbers or logicals")
    if n_levels is None:
        _check_number_of_levels(plain, "levels")
    elif len(plain) != n_levels or len(set(plain)) != n_levels:
        raise InvalidInput(
            f"levels must be {n_levels} different values: found {len(plain)}, "
            f"{len(set(plain))} of them different"
        )
    return plain


def _check_number_of_levels(levels: Sequence[Any], what: str) -> None:
    """Raise InvalidInput unless these are 2 to 1000 different values."""
    different = len(set(levels))
    if different != len(levels) or not 2 <= different <= _MOST_LEVELS:
        raise InvalidInput(
            f"{what} must be 2 to {_MOST_LEVELS} different values: found {len(levels)}, "
            f"{different} of them different; put levels together, or leave the column out"
        )


def levels_declared(model: Any) -> tuple[Any, ...] | None:
    """Levels that a model, or the one inside `pyhybrid.WithMissing`, declares for its outcome."""
    return getattr(getattr(model, "value", model), "levels", None)


def outcome_levels(
    values: pd.Series,
    name: str,
    given: tuple[Any, ...] | None = None,
    numbers: tuple[Any, ...] | None = (0, 1),
) -> OutcomeLevels:
    """Levels of the column `name` without missing values, in the type of its values: those given,
    the categories, false and true; else those that are there, sorted."""
    kind = _kind(values, name)
    if given is not None:
        return OutcomeLevels(values=tuple(_as_value(own, values, name, kind) for own in given))
    if kind == "categories":
        return OutcomeLevels(values=tuple(values.cat.categories), read=True)
    if kind == "text":
        return OutcomeLevels(values=tuple(sorted(values.unique())), read=True)
    if kind == "numbers" and numbers is None:
        found = np.unique(values.to_numpy(dtype=np.float64))
        found = found[np.isfinite(found)]
        return OutcomeLevels(values=tuple(_plain(own) for own in found.tolist()), read=True)
    return OutcomeLevels(values=(False, True) if kind == "logicals" else numbers or ())


def _kind(values: pd.Series, name: str) -> str:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "categories"
    if pd.api.types.is_bool_dtype(dtype):
        return "logicals"
    found = "floating"
    if pd.api.types.is_complex_dtype(dtype) or not pd.api.types.is_numeric_dtype(dtype):
        found = pd.api.types.infer_dtype(values.astype(object), skipna=True)
    kinds = {"string": "text", "boolean": "logicals", **dict.fromkeys(_NUMBERS, "numbers")}
    if found not in kinds:
        raise InvalidInput(
            f"outcome {name!r} must be text, logicals, categories or numbers: found {dtype} "
            f"({found}); make it one of them"
        )
    return kinds[found]


def _as_value(level: Any, values: pd.Series, name: str, kind: str) -> Any:
    """A given level, possibly a text of the command line, as a value of the column."""
    if kind == "categories":
        categories = list(values.cat.categories)
        same = [own for own in categories if own == level] or [
            own for own in categories if str(own) == str(level)
        ]
        if same:
            return same[0]
        held: pd.Series = pd.Series(values.cat.categories)  # a level that no record has
        return _as_value(level, held, name, _kind(held, name))
    elif kind == "text":
        return str(level)
    elif kind == "logicals" and str(level).lower() in _TRUTH:
        return _TRUTH[str(level).lower()]
    elif kind == "numbers":
        try:
            number = float(level)
        except ValueError:
            pass
        else:
            return _plain(number)
    raise InvalidInput(
        f"levels must be values that outcome {name!r} can hold: {level!r} is none, the column "
        f"holds {kind} ({values.dtype})"
    )


def _plain(number: float) -> int | float:
    """A whole number as one."""
    return int(number) if number.is_integer() else number


def level_places(values: pd.Series, name: str, levels: OutcomeLevels) -> FloatArray:
    """Place of each value among the levels, from 0, shape (n,); InvalidInput names the first row of
    a value that is not among them."""
    kind = _kind(values, name)
    own = values.to_numpy(dtype=np.float64) if kind == "numbers" else values.to_numpy(dtype=object)
    place_of = {level: place for place, level in enumerate(levels.values)}
    places = np.array([place_of.get(value, -1) for value in own.tolist()], dtype=np.float64)
    if (places < 0).any():
        shown = "0 or 1" if levels.values == (0, 1) else "one of its levels"
        raise InvalidInput(
            f"outcome {name!r} must be {shown}: {first_row(values.index, places < 0)} is not; "
            "declare levels="
        )
    return places


def column_of(places: FloatArray, levels: OutcomeLevels, like: pd.Series) -> pd.Series:
    """A column with the index, name and dtype of `like` from places among the levels (n,)."""
    chosen = places.astype(np.intp)
    if isinstance(like.dtype, pd.CategoricalDtype):
        dtype: pd.CategoricalDtype = like.dtype
        if not set(levels.values) <= set(dtype.categories):  # declared: one that no record has
            dtype = pd.CategoricalDtype(list(levels.values), ordered=dtype.ordered)
        codes = dtype.categories.get_indexer(pd.Index(levels.values))[chosen]
        values = pd.Categorical.from_codes(codes.tolist(), dtype=dtype)
        return column_like(values, like)
    own = np.empty(len(levels.values), dtype=object)
    own[:] = levels.values
    return pd.Series(own[chosen], index=like.index, name=like.name).astype(like.dtype)


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
        """Confidential values in a dtype that does not depend on them; what cannot be read so is
        left as it is, for the model to refuse."""
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
            return column_like(values, column)
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
        return column_like(whole, column)


def _as_numbers(column: pd.Series) -> pd.Series:
    return column_like(column.to_numpy(dtype=np.float64, na_value=np.nan), column)


def form_of_levels(
    column: pd.Series,
    given: tuple[Any, ...] | None,
    *,
    numbers: tuple[Any, ...] | None = None,
    ordered: bool = False,
) -> Form | None:
    """Form of an outcome with levels, see `outcome_levels`; None if they would be read."""
    if given is not None:
        return Form(levels=given, ordered=ordered)
    try:
        found = outcome_levels(column.dropna(), str(column.name), None, numbers)
    except (InvalidInput, TypeError):
        return None
    return None if found.read else Form(levels=found.values, ordered=ordered)


def forms_of(model: Any, table: pd.DataFrame) -> dict[str, Form]:
    """Form of the column that a model synthesizes, by its name; none if it is not declared. `table`
    tells logicals, numbers and categories apart, and nothing else: a neighboring table in which
    they are others is refused."""
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


def level_key(value: Any) -> Any:
    """An entry as levels are compared: 3, 3.0 and "3" are one. None for missing values, and for
    what cannot be read: the error would tell of it."""
    number = number_in(value)
    if not math.isnan(number):
        return number
    try:
        missing = pd.isna(value)
        return None if isinstance(missing, bool | np.bool_) and missing else str(value)
    except Exception:  # of the entry's own type
        return None


def number_in(value: Any) -> float:
    """An entry as a finite number; NaN for what is none."""
    if isinstance(value, str):
        value = _LOGICALS.get(value.lower(), value)
    try:
        number = float(value)
    except Exception:  # of the entry's own type
        return math.nan
    return number if math.isfinite(number) else math.nan


def as_levels(column: pd.Series, levels: Sequence[Any]) -> pd.Series:
    """A column whose entries are those levels that they are equal to as text or number, each by
    itself; all else stays."""
    known = {level_key(level): level for level in levels}
    if len(known) < len(levels) or (column.isin(list(levels)) | column.isna()).all():
        return column
    values = np.empty(len(column), dtype=object)
    values[:] = [known.get(level_key(own), own) for own in column.astype(object)]
    return column_like(values, column)
