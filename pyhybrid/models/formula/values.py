"""Columns of a table: put in place of others; as predictors: numbers, levels, or neither."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput

_MOST_LEVELS = 1000
_IDENTIFIER = 50  # records, from which on a level for each is an identifier
_DATES = ("date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period")
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_KINDS = {"string": "levels", "boolean": "logicals", **dict.fromkeys(_NUMBERS, "numbers")}
_DATE_TEXT = re.compile(r"(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([./])\d\d?\3\d{2,4})([T ].*)?")
_ISO = r"\d{4}-\d\d-\d\d([T ].*)?"
_LOOKED_AT = 50  # texts that must all be dates for a column to hold dates


def with_columns(table: pd.DataFrame, columns: Mapping[Any, Any] | pd.DataFrame) -> pd.DataFrame:
    """`table` with `columns` in the place of its own of the same names, or behind them. Names are
    values here, not keywords: a column may be called "self"."""
    copy: pd.DataFrame = table.copy(deep=False)
    for name, values in columns.items():
        copy[name] = values
    return copy


def column_like(values: Any, like: pd.Series, dtype: Any = None) -> pd.Series:
    """`values` (n,) as a column of the index and the name of `like`."""
    column: pd.Series = pd.Series(values, index=like.index, name=like.name, dtype=dtype)
    return column


def row_label(index: pd.Index, position: int) -> str:
    """How messages name a row: by its label in the table's index."""
    label = index[position]
    return f"row {label.item() if isinstance(label, np.generic) else label!r}"


def first_row(index: pd.Index, broken: npt.NDArray[np.bool_]) -> str:
    """How messages name the first row that is broken (n,)."""
    return row_label(index, int(np.argmax(broken)))


def is_number(values: pd.Series) -> bool:
    """True of a column of numbers; logicals are none."""
    dtype = values.dtype
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def kind_of(values: pd.Series, *, as_levels: bool = False, what: str = "predictor") -> str:
    """Kind of a predictor: "numbers", "logicals" or "levels"; `as_levels` if the user asks for
    levels by name, `what` of another column. InvalidInput names a column of dates, or of what is
    neither, and what to do."""
    dtype, name = values.dtype, str(values.name)
    if isinstance(dtype, pd.CategoricalDtype):
        return "levels"
    if pd.api.types.is_bool_dtype(dtype):
        return "logicals"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "numbers"
    held = "interval"
    if not isinstance(dtype, pd.IntervalDtype):
        held = pd.api.types.infer_dtype(values.astype(object), skipna=True)
    must = f"{what} {name!r} must be numbers, text, logicals or categories: it"
    if held in _DATES or (held == "string" and not as_levels and are_dates(values)):
        days = "make a column of numbers of them, such as days since a fixed day"
        if what == "predictor":
            days = f"write days({name}), which reads 2001-12-31, or factor({name}), or make numbers"
        raise InvalidInput(f"{must} holds dates; {days}")
    if held not in _KINDS:
        raise InvalidInput(f"{must} is {dtype} ({held}); make it one of them")
    return _KINDS[held]


def are_dates(values: pd.Series) -> bool:
    """True of a column of texts that are dates, going by the first ones."""
    texts = values.dropna().head(_LOOKED_AT)
    return bool(len(texts)) and all(_DATE_TEXT.fullmatch(str(text)) for text in texts)


def numbers_of(values: pd.Series) -> FloatArray:
    """The column as floats, shape (n,), logicals as 0 and 1; NaN where missing."""
    if kind_of(values, as_levels=True) == "levels":
        raise InvalidInput(
            f"predictor {str(values.name)!r} must hold numbers to be computed with: it is "
            f"{values.dtype}; write it as a term of its own, or compare it with a text"
        )
    try:
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        name = str(values.name)
        raise InvalidInput(f"predictor {name!r} must hold numbers that fit a float") from None


def days_of(values: pd.Series) -> FloatArray:
    """Days since 1970-01-01 of dates, or of texts that begin with one as ISO 8601 has it, shape
    (n,), as R's ``as.numeric(as.Date(x))``; NaN for all else. No entry has a say in another."""
    codes, entries = pd.factorize(values)
    texts = pd.Series([*map(str, entries)], dtype=object).astype("string")
    days = pd.to_datetime(
        texts.where(texts.str.fullmatch(_ISO)).str[:10], format="%Y-%m-%d", errors="coerce"
    ).to_numpy("M8[D]")
    known = np.where(np.isnat(days), np.nan, days.astype(np.int64))
    return np.append(known, np.nan)[codes]


def levels_of(values: pd.Series, *, used: bool = False) -> list[Any]:
    """Levels in their order: a category's own (those in use if `used`), others sorted."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return list((values.cat.remove_unused_categories() if used else values).cat.categories)
    if kind_of(values, as_levels=True) == "logicals":
        return [False, True]
    return sorted(values.dropna().astype(object).unique())


def check_levels(values: pd.Series) -> None:
    """Refuse a predictor whose coding would fill memory, and one with a level for each record."""
    kind_of(values, as_levels=True)
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = len(values.cat.categories)
    else:
        levels = values.nunique()
        if levels == len(values) >= _IDENTIFIER and not pd.api.types.is_numeric_dtype(values):
            raise InvalidInput(
                f"predictor {str(values.name)!r} must have records in common: each of the {levels} "
                "has a level of its own; make numbers of it if it holds them, or leave it out"
            )
    if levels > _MOST_LEVELS:
        raise InvalidInput(
            f"predictor {str(values.name)!r} must have at most {_MOST_LEVELS} levels: found "
            f"{levels}; put levels together, or leave it out"
        )
