"""Columns of a table: put in place of others; as predictors: numbers, levels, or neither.

Missing values of predictors get a level of their own, or a number and an indicator in their place.
A number that is missing is replaced, and each pattern of missing numbers gets an indicator, so that
what stands in their place decides nothing but what the indicator's coefficient is measured from. It
is declared, or the median of the column's values, which is a function of the data. The table that
is released keeps its missing values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput

_MISSING_LEVEL = "(missing)"
_MOST_LEVELS = 1000
_IDENTIFIER = 50  # records, from which on a level for each is an identifier
_DATES = ("date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period")
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATE_TEXT = re.compile(r"(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([./])\d\d?\3\d{2,4})([T ].*)?")
_LOOKED_AT = 50  # texts that must all be dates for a column to hold dates


def with_columns(table: pd.DataFrame, columns: Mapping[Any, Any] | pd.DataFrame) -> pd.DataFrame:
    """`table` with `columns` in the place of its own of the same names, or behind them. Names are
    values here, not keywords: a column may be called "self"."""
    copy: pd.DataFrame = table.copy(deep=False)
    for name, values in columns.items():
        copy[name] = values
    return copy


def column_like(values: Any, like: pd.Series) -> pd.Series:
    """`values` (n,) as a column of the index and the name of `like`."""
    column: pd.Series = pd.Series(values, index=like.index, name=like.name)
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
    days = "make a column of numbers of them, such as days since a fixed day"
    if held in _DATES:
        raise InvalidInput(f"{must} holds dates ({dtype}); {days}")
    if held == "string" and not as_levels and are_dates(values):
        if what == "predictor":
            days += f", or write factor({name}) for a level per date"
        raise InvalidInput(f"{must} holds dates; {days}")
    kinds = {"string": "levels", "boolean": "logicals", **dict.fromkeys(_NUMBERS, "numbers")}
    if held not in kinds:
        raise InvalidInput(f"{must} is {dtype} ({held}); make it one of them")
    return kinds[held]


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Completion:
    """How missing predictors are completed: `levels` with the missing one last, of all categories,
    as which of them some record has would be read from the data; `numbers` in their place, those of
    `read` from the data; `indicators` by an added column's name. Confidential."""

    levels: Mapping[str, list[str]]
    numbers: Mapping[str, float]
    indicators: Mapping[str, str]
    read: tuple[str, ...]

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with its predictors completed, and indicators added."""
        completed: dict[str, Any] = {n: table[of].isna() for n, of in self.indicators.items()}
        for name, levels in self.levels.items():
            text = table[name].astype(object).where(table[name].notna(), _MISSING_LEVEL).map(str)
            completed[name] = pd.Categorical(text, categories=levels)
        for name, number in self.numbers.items():
            values = numbers_of(table[name])
            completed[name] = np.where(np.isnan(values), number, values)
        return with_columns(table, completed)

    def formula(self, text: str, reads: Sequence[str]) -> str:
        """The formula with the indicators of the predictors that it reads."""
        added = [f"`{name}`" for name, of in self.indicators.items() if of in reads]
        return " + ".join([text, *added])

    def source(self, column: str) -> str:
        """The table's column that one of the completed table is made of."""
        return self.indicators.get(column, column)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Sentences on what was read from all records."""
        return tuple(
            f"median of {name} in the place of its missing values; fill= declares a number"
            for name in self.read
        )

    @property
    def said(self) -> tuple[str, ...]:
        """Sentences for the charge."""
        marked = dict.fromkeys((*self.levels, *self.numbers))
        if not marked:
            return ()
        return (
            f"Missing values of the predictors {', '.join(marked)} count as a level, or as a "
            "number with an indicator; which predictors have them is taken to be public.",
        )


def completion_of(
    table: pd.DataFrame,
    predictors: Sequence[str],
    fill: Mapping[str, float],
    marked: Sequence[str] | None,
) -> Completion:
    """How missing values of `predictors` are completed, with declared numbers in `fill`; those
    `marked`, and no others, have a level or an indicator, whether or not one is missing here."""
    levels: dict[str, list[str]] = {}
    numbers: dict[str, float] = {}
    indicators: dict[str, str] = {}
    patterns: set[bytes] = set()
    read = []
    for name in predictors:
        gone = table[name].isna().to_numpy(dtype=bool)
        if kind_of(table[name]) != "numbers":
            if name in fill:
                raise InvalidInput(f"fill must name columns of numbers: {name!r} has levels")
            if gone.any() if marked is None else name in marked:
                levels[name] = [*map(str, levels_of(table[name])), _MISSING_LEVEL]
            continue
        if not gone.any() and name not in (marked or ()):
            continue
        if name in fill:
            numbers[name] = fill[name]
        elif gone.all():
            raise InvalidInput(
                f"predictor {name!r} must have a value: all are missing; leave it out"
            )
        else:
            numbers[name] = float(np.median(numbers_of(table[name])[~gone]))
            read.append(name)
        if gone.tobytes() not in patterns if marked is None else name in marked:
            patterns.add(gone.tobytes())
            marker = f"missing_{name}"
            while marker in {*table.columns, *indicators}:
                marker += "_"
            indicators[marker] = name
    return Completion(levels=levels, numbers=numbers, indicators=indicators, read=tuple(read))
