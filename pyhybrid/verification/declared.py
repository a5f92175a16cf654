"""Types of the columns that a verification reads, and records coerced to them one by one.

A column's dtype, its categories and whether a text can be read as a number are functions of all
records: one record with a text would turn the numbers of every block to text. So the types are
public, from the synthetic sets or given by hand, and each entry is read by itself: as a number, as
one of the levels, or as missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.kinds import Kind, Leveled, kind_from_dict
from pyhybrid.models.formula.values import kind_of

__all__ = ["ColumnTypes", "coerced", "column_types", "level_key", "numbers_of"]

ColumnTypes = Mapping[Any, tuple[Any, ...] | None]
"""Levels by column, in their order; None for numbers."""
_LOGICALS = {"true": 1.0, "false": 0.0}


def column_types(
    sets: Sequence[pd.DataFrame],
    given: Mapping[str, Kind | Mapping[str, Any]] | None,
    levels: Mapping[str, Sequence[Any]],
) -> ColumnTypes:
    """Types of the columns that all synthetic sets have: as given, else as the sets hold them.

    Parameters
    ----------
    sets : sequence of DataFrame
    given : mapping of str to Kind, optional
        Or the same as plain objects, as in a file of types.
    levels : mapping of str to sequence
        Further levels, that the query names.

    Raises
    ------
    InvalidInput
        For a type that is none, or of a column that no set has; for levels that are one number.
    """
    shared = [name for name in sets[0].columns if all(name in own.columns for own in sets)]
    declared = {name: _levels_given(name, own, shared) for name, own in (given or {}).items()}
    found: dict[Any, tuple[Any, ...] | None] = {}
    for name in shared:
        try:
            own = declared[name] if name in declared else _levels_of([s[name] for s in sets])
        except InvalidInput:  # dates, or of no kind: not read unless it is declared
            continue
        if own is not None:
            known = {level_key(level) for level in own}
            own += tuple(level for level in levels.get(name, ()) if level_key(level) not in known)
        found[name] = own
    return found


def _levels_given(name: str, own: Any, shared: Sequence[Any]) -> tuple[Any, ...] | None:
    if name not in shared:
        raise InvalidInput(
            f"types must be of columns of the synthetic sets: {name!r} is none"
            f"{did_you_mean(name, shared)}"
        )
    kind = kind_from_dict(own) if isinstance(own, Mapping) else own
    if not isinstance(kind, Kind):
        raise InvalidInput(
            f"types must be kinds, such as ph.Real() or ph.Nominal(levels=('a', 'b')): found "
            f"{type(own).__name__} for {name!r}"
        )
    if not isinstance(kind, Leveled):
        return None
    if len({level_key(level) for level in kind.levels}) < len(kind.levels):
        raise InvalidInput(f"levels of {name!r} must differ as numbers, too: two are one number")
    return kind.levels


def _levels_of(columns: Sequence[pd.Series]) -> tuple[Any, ...] | None:
    """Values that occur in the sets; of categories in their order. None for numbers."""
    if all(kind_of(own, as_levels=True) == "numbers" for own in columns):
        return None
    order: dict[Any, Any] = {}
    first = columns[0].dtype
    if isinstance(first, pd.CategoricalDtype):
        order = dict.fromkeys(map(level_key, first.categories))
    there = [value for own in columns for value in own.dropna().astype(object).unique()]
    known: dict[Any, Any] = {}
    for value in sorted(there, key=str):
        known.setdefault(level_key(value), value)
    return tuple(known[key] for key in dict.fromkeys([*order, *known]) if key in known)


def coerced(table: pd.DataFrame, types: ColumnTypes) -> pd.DataFrame:
    """The columns of `types`, each entry by itself; whole numbers where all are."""
    read = {
        name: _plain(numbers_of(table[name])) if levels is None else _in(table[name], levels)
        for name, levels in types.items()
        if name in table.columns
    }
    made: pd.DataFrame = pd.DataFrame(read, index=table.index)
    return made


def numbers_of(values: pd.Series) -> FloatArray:
    """Each entry as a finite number, shape (n,); NaN for what is none."""
    return np.array([_number(value) for value in values.astype(object)], dtype=np.float64)


def level_key(value: Any) -> Any:
    """An entry as levels are compared: 3, 3.0 and "3" are one. None for missing values."""
    number = _number(value)
    if not math.isnan(number):
        return number
    missing = pd.isna(value)
    return None if isinstance(missing, bool | np.bool_) and missing else str(value)


def _number(value: Any) -> float:
    if isinstance(value, str):
        value = _LOGICALS.get(value.lower(), value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _plain(numbers: FloatArray) -> Any:
    """Whole numbers as such, so that a level of C(x) is named 2 and not 2.0."""
    whole = numbers.size and bool((np.abs(numbers) < 2**53).all() and (numbers % 1 == 0).all())
    return numbers.astype(np.int64) if whole else numbers


def _in(values: pd.Series, levels: tuple[Any, ...]) -> pd.Categorical:
    place = {level_key(level): code for code, level in enumerate(levels)}
    codes = [place.get(level_key(value), -1) for value in values.astype(object)]
    return pd.Categorical.from_codes(codes, categories=pd.Index(levels, dtype=object))
