"""Missing values of predictors: a level of their own, or a number and an indicator in their place.

A predictor with levels gets one more. A number that is missing is replaced, and each pattern of
missing numbers gets an indicator, so that what stands in their place decides nothing but what the
indicator's coefficient is measured from. It is declared, or the median of the column's values,
which is a function of the data. The table that is released keeps its missing values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.values import kind_of, levels_of, numbers_of, with_columns

__all__ = ["Completion", "completion_of"]

MISSING_LEVEL = "(missing)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Completion:
    """How the predictors of a table are completed. Confidential.

    Attributes
    ----------
    levels : mapping of str to list
        Levels of the predictors with levels that have missing values, the missing one last: all
        categories, as without missing values, for which of them some record has would be read from
        the data.
    numbers : mapping of str to float
        What stands in the place of missing numbers.
    indicators : mapping of str to str
        Predictor whose missing values an added column marks, by the column's name.
    read : tuple of str
        Predictors whose number was read from the data.
    """

    levels: Mapping[str, list[str]]
    numbers: Mapping[str, float]
    indicators: Mapping[str, str]
    read: tuple[str, ...]

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with its predictors completed, and indicators added."""
        made: dict[str, pd.Series] = {
            name: table[of].isna() for name, of in self.indicators.items()
        }
        for name, levels in self.levels.items():
            made[name] = _with_level(table[name], levels)
        for name, number in self.numbers.items():
            values = numbers_of(table[name])
            whole = np.where(np.isnan(values), number, values)
            made[name] = pd.Series(whole, index=table.index, name=name)
        return with_columns(table, made)

    def formula(self, text: str, reads: Sequence[str]) -> str:
        """The formula with the indicators of the predictors that it reads."""
        own = [f"`{name}`" for name, of in self.indicators.items() if of in reads]
        return " + ".join([text, *own])

    def source(self, column: str) -> str:
        """The table's column that one of the completed table is made of."""
        return self.indicators.get(column, column)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What was read from all records."""
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
    table: pd.DataFrame, predictors: Sequence[str], fill: Mapping[str, float]
) -> Completion:
    """How missing values of `predictors` are completed, with declared numbers in `fill`.

    Raises
    ------
    InvalidInput
        For a declared number of a column that has levels, and for one whose values are all missing
        without a declared number.
    """
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
            if gone.any():
                levels[name] = [*map(str, levels_of(table[name])), MISSING_LEVEL]
            continue
        if not gone.any():
            continue
        values = numbers_of(table[name])
        if name not in fill:
            read.append(name)
        numbers[name] = fill[name] if name in fill else _median(values, name)
        pattern = gone.tobytes()
        if pattern not in patterns:
            indicators[_unused(f"missing_{name}", [*table.columns, *indicators])] = name
            patterns.add(pattern)
    return Completion(levels=levels, numbers=numbers, indicators=indicators, read=tuple(read))


def _median(values: FloatArray, name: str) -> float:
    there = values[~np.isnan(values)]
    if not there.size:
        raise InvalidInput(f"predictor {name!r} must have a value: all are missing; leave it out")
    return float(np.median(there))


def _with_level(values: pd.Series, levels: list[str]) -> pd.Series:
    text = values.astype(object).where(values.notna(), MISSING_LEVEL).map(str)
    made: pd.Series = pd.Series(
        pd.Categorical(text, categories=levels), index=values.index, name=values.name
    )
    return made


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
