"""Columns of a table: put in place of others; as predictors: numbers, levels, or neither."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput

__all__ = ["check_levels", "kind_of", "levels_of", "numbers_of", "with_columns"]

_MOST_LEVELS = 1000
_IDENTIFIER = 50  # records, from which on a level for each is an identifier
_DATES = ("date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period")
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATE_TEXT = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_LOOKED_AT = 50  # texts that must all be dates for a column to hold dates


def with_columns(table: pd.DataFrame, columns: Mapping[Any, Any] | pd.DataFrame) -> pd.DataFrame:
    """`table` with `columns` in the place of its own of the same names, or behind them.

    Names are values here, not keywords: a column may be called "self".
    """
    made: pd.DataFrame = table.copy(deep=False)
    for name, values in columns.items():
        made[name] = values
    return made


def kind_of(values: pd.Series, *, as_levels: bool = False) -> str:
    """ "numbers", "logicals" or "levels"; `as_levels` if the user asks for levels by name.

    Raises
    ------
    InvalidInput
        For dates, and for what is neither; names the column and what to do.
    """
    dtype, name = values.dtype, str(values.name)
    if isinstance(dtype, pd.CategoricalDtype):
        return "levels"
    if pd.api.types.is_bool_dtype(dtype):
        return "logicals"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "numbers"
    found = "interval"
    if not isinstance(dtype, pd.IntervalDtype):
        found = pd.api.types.infer_dtype(values.astype(object), skipna=True)
    if found in _DATES or (found == "string" and not as_levels and _are_dates(values)):
        raise InvalidInput(
            f"predictor {name!r} must be numbers, text, logicals or categories: it holds dates; "
            "make a column of numbers of them, such as days since a fixed day, or write "
            f"factor({name}) for a level per date"
            if found == "string"
            else f"predictor {name!r} must be numbers, text, logicals or categories: it holds "
            f"dates ({dtype}); make a column of numbers of them, such as days since a fixed day"
        )
    kinds = {"string": "levels", "boolean": "logicals", **dict.fromkeys(_NUMBERS, "numbers")}
    if found not in kinds:
        raise InvalidInput(
            f"predictor {name!r} must be numbers, text, logicals or categories: it is {dtype} "
            f"({found}); make it one of them"
        )
    return kinds[found]


def _are_dates(values: pd.Series) -> bool:
    texts = values.dropna().head(_LOOKED_AT)
    return bool(len(texts)) and all(_DATE_TEXT.fullmatch(str(each)) for each in texts)


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
        raise InvalidInput(
            f"predictor {str(values.name)!r} must hold numbers that fit a float: it is "
            f"{values.dtype}"
        ) from None


def levels_of(values: pd.Series, *, used: bool = False) -> list[Any]:
    """Levels in their order: a category's own (those in use if `used`), others sorted."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = list(values.dtype.categories)
        there = set(values.cat.codes.unique()) if used else set(range(len(levels)))
        return [level for place, level in enumerate(levels) if place in there]
    if kind_of(values, as_levels=True) == "logicals":
        return [False, True]
    return sorted(values.dropna().astype(object).unique())


def check_levels(values: pd.Series) -> None:
    """Refuse a predictor whose coding would fill memory, and one with a level for each record."""
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
