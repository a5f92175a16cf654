"""Relations between columns that all records keep, found to warn the owner.

Rows that are drawn from counts of single columns and of pairs do not keep them.

Confidential: what is found is a function of the records, and is shown to their owner alone. A
relation is shown if it could have failed: under independence ten records or more would break it.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.columns.kinds import dates_kind
from pyhybrid.models.formula.values import is_number
from pyhybrid.tables.after import values_of

_ROWS = 20_000  # that are looked at
_MOST_NUMBERS, _MOST_LEVELS = 60, 30
_CHANCE = 10  # records that would break a relation by chance
_GROUP = 5  # records of a group, on average
_ROUNDED = 1e-6


def relations_of(df: pd.DataFrame) -> list[str]:
    """A line for each relation: ``c = a + b``, ``a <= b``, ``b exactly if a == "x"`` (is empty), as
    they are declared, see `pyhybrid.tables.after`; ``b has one value for each a``."""
    df = df if len(df) <= _ROWS else df.sample(_ROWS, random_state=0)
    if len(df) < 2 * _CHANCE:
        return []
    numbers = {}
    for name, column in df.items():
        dates = dates_kind(column)
        if dates is not None or (is_number(column) and column.nunique() > 2):
            numbers[str(name)] = values_of(column, dates).to_numpy()
    numbers = dict(itertools.islice(numbers.items(), _MOST_NUMBERS))
    levels = {
        str(name): pd.factorize(column, use_na_sentinel=False)
        for name, column in df.items()
        if all(isinstance(value, Hashable) for value in column)
        and 1 < column.nunique() <= len(df) / _GROUP
    }
    return [
        *_totals(numbers),
        *_constants(numbers),
        *_orders(numbers),
        *_skips(df, levels),
        *_groups(df, levels),
    ]


def _named(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _quoted(level: Any) -> str:
    number = isinstance(level, (int, float, np.number)) and not isinstance(level, bool)
    return f"{level:g}" if number else f'"{level}"'


def _same(one: FloatArray, other: FloatArray) -> bool:
    """Whether numbers are alike in ten records or more, and in all that have both."""
    both = ~np.isnan(one) & ~np.isnan(other)
    return bool(both.sum() >= _CHANCE and np.allclose(one[both], other[both], rtol=_ROUNDED))


def _totals(numbers: dict[str, FloatArray]) -> Iterator[str]:
    """Sums of two columns, and of several that stand side by side."""
    names, shown = [*numbers], set[str]()
    runs = [names[i:j] for i in range(len(names)) for j in range(i + 3, len(names) + 1)]
    for parts in (*itertools.combinations(names, 2), *runs):
        several = np.array([numbers[part] for part in parts])
        if (np.count_nonzero(np.nan_to_num(several), axis=1) < _CHANCE).any():
            continue
        total = several.sum(axis=0)
        start = slice(0, 200)
        for name in names:
            if name in parts or name in shown or np.ptp(numbers[name]) == 0:
                continue
            near = np.isclose(total[start], numbers[name][start], rtol=_ROUNDED, equal_nan=True)
            if near.mean() > 0.5 and _same(total, numbers[name]):
                shown.add(name)
                yield f"{_named(name)} = {' + '.join(map(_named, parts))}"


def _constants(numbers: dict[str, FloatArray]) -> Iterator[str]:
    """Sums and differences of one value, or of two in a row: age and year of birth."""
    for (a, one), (b, other) in itertools.combinations(numbers.items(), 2):
        for sign, both in (("+", one + other), ("-", one - other)):
            values = np.unique(both[~np.isnan(both)])
            varies = min(np.nanmax(one) - np.nanmin(one), np.nanmax(other) - np.nanmin(other)) > 2
            if varies and 0 < values.size <= 2 and np.ptp(values) <= 1 and values.any():
                yield f"{a} {sign} {b} is {' or '.join(f'{value:g}' for value in values)}"


def _orders(numbers: dict[str, FloatArray]) -> Iterator[str]:
    for a, b in itertools.permutations(numbers, 2):
        one, other = numbers[a], numbers[b]
        both = ~np.isnan(one) & ~np.isnan(other)
        if both.sum() < _CHANCE or (one[both] > other[both]).any():
            continue
        below = np.searchsorted(np.sort(other[both]), one[both])  # records that a is above
        if below.mean() >= _CHANCE and not np.array_equal(one[both], other[both]):
            yield f"{_named(a)} <= {_named(b)}"


_Levels = dict[str, tuple[npt.NDArray[np.intp], pd.Index]]


def _skips(df: pd.DataFrame, levels: _Levels) -> Iterator[str]:
    """Columns that are empty exactly at some levels of another one."""
    few = {name: coded for name, coded in levels.items() if len(coded[1]) <= _MOST_LEVELS}
    for name, column in df.items():
        absent = column.isna().to_numpy()
        if min(absent.sum(), (~absent).sum()) < _CHANCE:
            continue
        for by, (codes, values) in few.items():
            share = np.bincount(codes, absent) / np.bincount(codes)
            if by != str(name) and np.isin(share, (0.0, 1.0)).all() and not df[by].isna().any():
                where = (f"{_named(by)} == {_quoted(value)}" for value in values[share == 1.0])
                yield f"{_named(str(name))} exactly if {' or '.join(where)}"
                break


def _groups(df: pd.DataFrame, levels: _Levels) -> Iterator[str]:
    """Columns that have one value in each group of another one, which has more groups."""
    for by, (codes, values) in levels.items():
        for name, (own, own_values) in levels.items():
            if name == by or not len(values) > 2 or len(own_values) > len(values):
                continue
            if len(own_values) == len(values) and [*levels].index(name) < [*levels].index(by):
                continue  # the same groups: said once
            first = np.zeros(len(values), dtype=np.intp)
            first[codes] = own
            common = np.bincount(own).max() / len(own)
            if (first[codes] == own).all() and (1 - common) * len(own) >= _CHANCE:
                yield f"{name} has one value for each {by}"
