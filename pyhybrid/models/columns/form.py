"""Form of a column in a strict release: levels, decimals, dtype.

Levels or a dtype that are read from a column are functions of all its records that no epsilon
covers: one record with a further value, or an empty cell, changes what is released. Categories are
no declaration either: ``astype("category")`` takes them from the records. What a strict mechanism
releases has the form that was declared, and its models read the column in that form, too.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date, time
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype

from pyhybrid.core.checks import FloatArray, IntArray, check_flag
from pyhybrid.core.dates import text_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.support import LARGEST, check_decimals, shortest
from pyhybrid.models.formula.values import column_like, first_row, kind_of, levels_of, with_columns

_MOST_LEVELS = 1000
_LOGICALS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, kw_only=True)
class OutcomeLevels:
    """Values that an outcome can have, in order; `read` from the records, or `declared`."""

    values: tuple[Any, ...]
    read: bool = False
    declared: bool = False


def check_levels_given(levels: Any, n_levels: int | None = None) -> tuple[Any, ...] | None:
    """`levels` as a tuple; InvalidInput unless `n_levels` different ones, or 2 to 1000."""
    if levels is None:
        return None
    if isinstance(levels, str) or not isinstance(levels, Sequence):
        raise InvalidInput(f"levels must be a tuple: found {type(levels).__name__}")
    plain = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    if not all(isinstance(level, str | bool | int | float) for level in plain):
        raise InvalidInput("levels must be texts, numbers or logicals")
    # 1 and "1" are one
    written = {v if isinstance(v, str) else str(_plain(number_in(v))) for v in plain}
    least, most = (2, _MOST_LEVELS) if n_levels is None else (n_levels, n_levels)
    if len(written) < len(plain) or not least <= len(plain) <= most:
        raise InvalidInput(
            f"levels must be {most if least == most else f'{least} to {most}'} different values: "
            f"found {len(plain)}, {len(written)} of them different; put levels together, or leave "
            "the column out"
        )
    return plain


def outcome_levels(
    values: pd.Series,
    given: tuple[Any, ...] | None = None,
    numbers: tuple[Any, ...] | None = (0, 1),
) -> OutcomeLevels:
    """Levels of a column without missing values: those given, categories, false and true; else
    those that are there, sorted."""
    if given is not None:
        return OutcomeLevels(values=given, declared=True)
    kind = kind_of(values, as_levels=True, what="outcome")
    if kind == "levels":
        return OutcomeLevels(values=tuple(levels_of(values)), read=True)
    if kind == "numbers" and numbers is None:
        present = np.unique(values.to_numpy(dtype=np.float64))
        present = present[np.isfinite(present)]
        return OutcomeLevels(values=tuple(_plain(number) for number in present.tolist()), read=True)
    return OutcomeLevels(values=(False, True) if kind == "logicals" else numbers or ())


def _plain(number: float) -> int | float:
    """A whole number as one."""
    return int(number) if number.is_integer() else number


def places_of_levels(column: pd.Series, levels: Sequence[Any]) -> IntArray:
    """Place of each entry among the levels, -1 for none, shape (n,): of the same text, else of the
    same number, so that no other entry has a say; of several that are one number the one that is
    written so, or the first. Dates, and whole numbers that no float holds, are their texts."""
    ranked = sorted(
        ((number_in(level), place, level) for place, level in enumerate(levels)),
        key=lambda rank: (isinstance(rank[2], str), rank[2] != str(_plain(rank[0]))),
    )
    known: dict[Any, int] = {
        level: place for x, place, level in ranked if isinstance(level, str) or math.isnan(x)
    }
    for number, place, _ in ranked:
        known.setdefault(number, place)
    known.pop(math.nan, None)

    def place_of(entry: Any) -> int:
        large = isinstance(entry, int | np.integer) and abs(int(entry)) >= LARGEST
        if large or isinstance(entry, date | time):
            with suppress(ValueError):  # no date, or more digits than are written
                entry = text_of(entry)
        number = number_in(entry)
        other = isinstance(entry, Hashable) and (math.isnan(number) or entry in known)
        return known.get(entry if other else number, -1)

    entries: Any
    try:
        codes, entries = pd.factorize(shortest(column))
    except TypeError:  # lists, which have no hash
        codes, entries = np.arange(len(column)), column.astype(object)
    places = np.array([*map(place_of, entries), -1], dtype=np.int64)  # the last of missing ones
    return np.asarray(places[codes])


def level_places(values: pd.Series, name: str, levels: OutcomeLevels) -> FloatArray:
    """Place of each value among the levels, from 0, shape (n,); InvalidInput names the first row of
    a value that is not among them."""
    places = places_of_levels(values, levels.values)
    if (places < 0).any():
        shown = "0 or 1" if levels.values == (0, 1) else "one of its levels"
        raise InvalidInput(
            f"outcome {name!r} must be {shown}: {first_row(values.index, places < 0)} is not; "
            "declare levels="
        )
    return places.astype(np.float64)


def column_of(places: FloatArray, levels: OutcomeLevels, like: pd.Series) -> pd.Series:
    """A column like `like` from places (n,), in its dtype if that has a value for each level."""
    dtype: Any = like.dtype
    category = isinstance(dtype, pd.CategoricalDtype)
    objects = held = pd.Series(list(levels.values), dtype=object)
    with suppress(TypeError, ValueError):
        typed = pd.Series([False, True]) if is_bool_dtype(dtype) else objects
        held = pd.Series(dtype.categories) if category else typed.astype(dtype)
    known = places_of_levels(held, levels.values).tolist()
    if not {*known} >= {*range(len(objects))}:
        held, known = objects, [*range(len(objects))]
        dtype = pd.CategoricalDtype(list(objects), ordered=category and dtype.ordered)
    at = np.array([known.index(place) for place in range(len(objects))])[places.astype(np.intp)]
    if category:
        return column_like(pd.Categorical.from_codes(at.tolist(), dtype=dtype), like)
    return column_like(held.array[at], like, held.dtype)


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
        check_flag(self.missing, "missing")

    @property
    def dtype(self) -> Any:
        """int64, float64, bool, or categories; Int64 and boolean where values can be missing."""
        if self.levels is not None:
            if all(isinstance(level, bool) for level in self.levels):
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
        return all(float(level).is_integer() and abs(level) < 2**53 for level in self.levels)

    def read(self, column: pd.Series) -> pd.Series:
        """Confidential values in a dtype that they do not change, or as they are, to be refused."""
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
            return column.astype(dtype)
        numbers = _as_numbers(column)
        if self.levels is None and self.decimals is not None:
            numbers = numbers.round(self.decimals) + 0.0  # no negative zero
        return numbers.astype(dtype)

    def _of_levels(self, column: pd.Series) -> pd.Series:
        assert self.levels is not None
        there = column.notna().to_numpy(dtype=bool)
        places = places_of_levels(column, self.levels)
        if (places[there] < 0).any():
            raise InvalidInput("a value is none of the levels")
        known = np.array([*self.levels, None], dtype=object)
        whole = known[np.where(there, places, -1)]
        if self._of_numbers:
            whole = np.where(there, whole, np.nan).astype(np.float64)
        return column_like(whole, column)


@dataclass(frozen=True, kw_only=True)
class Kind(Form):
    """What a column can hold: its form, and which values."""

    @property
    def name(self) -> str:
        """Name of the kind."""
        return type(self).__name__

    @classmethod
    def settings(cls) -> list[str]:
        """Names of what the kind takes."""
        return [field.name for field in fields(cls) if field.init]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types; what is not given is left out."""
        shown = {name: getattr(self, name) for name in self.settings()}
        shown = {k: list(v) if isinstance(v, tuple) else v for k, v in shown.items()}
        return {"kind": self.name, **{k: v for k, v in shown.items() if v not in (None, [])}}


def _as_numbers(column: pd.Series) -> pd.Series:
    return column_like(column.to_numpy(dtype=np.float64, na_value=np.nan), column)


def forms_of(model: Any, table: pd.DataFrame) -> dict[str, Form]:
    """Form of the column that a model synthesizes, by its name; none if it is not declared. Of
    `table` it reads which columns are logicals, numbers or categories, and nothing else."""
    forms = getattr(model, "forms", None)
    if forms is None or not isinstance(table, pd.DataFrame):
        return {}
    return {name: form for name, form in forms(table).items() if name in table}


def read_in_forms(table: pd.DataFrame, forms: Mapping[str, Form]) -> pd.DataFrame:
    """`table` with the columns named as their forms read them; it is not changed."""
    changed = {name: form.read(table[name]) for name, form in forms.items()}
    if all(values.dtype == table[name].dtype for name, values in changed.items()):
        return table
    return with_columns(table, changed)


def number_in(value: Any) -> float:
    """An entry as a finite number; NaN for what is none."""
    if isinstance(value, str):
        value = _LOGICALS.get(value.lower(), value)
    if isinstance(value, (complex, np.complexfloating, np.ndarray)):
        return math.nan  # float() would warn, and so tell of it
    try:
        number = float(value)
    except Exception:  # of the entry's own type
        return math.nan
    return number if math.isfinite(number) else math.nan


def numbers_in(column: pd.Series) -> FloatArray:
    """Entries as floats, each by itself, NaN for what is no number, shape (n,)."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return shortest(column).to_numpy(dtype=np.float64, na_value=np.nan)
    entries = column.astype(object)
    return np.array([entry if isinstance(entry, float) else number_in(entry) for entry in entries])
