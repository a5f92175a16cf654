"""Tables in a database and files of any size, by ibis: counts are group-bys where the table is."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SourceFailed
from pyhybrid.running.tasks import in_threads
from pyhybrid.sources.dialects import MISSING_LEVELS, MISSING_NUMBERS
from pyhybrid.sources.source import (
    BATCH,
    SAMPLED,
    ColumnCells,
    IntArray,
    Request,
    Source,
    counts_of,
    in_pandas,
    refuse_values,
)

_MOST_VALUES = 20_000  # of a column whose cells are single values
_NOWHERE = -1
_ROUNDS, _BETWEEN = 6, (0.25, 0.5, 0.75)  # of the search for thresholds
_CODE = r"^[+-]?0[0-9]"  # a number that would lose its first character
_WHOLE = r"^[+-]?[0-9]{1,15}$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class IbisTable(Source):
    """An ibis table expression, whose cells are counted by group-bys where the table is if
    `grouped`, else by batches; both count alike. One `of_texts` has no types: its empty cells, and
    NA, are missing wherever it is read."""

    def __init__(self, table: Any, *, of_texts: bool = False) -> None:
        self._of_texts = of_texts
        # Rows of a server would travel; those of DuckDB are in this process, and numpy is faster.
        self.grouped = table.get_backend().name != "duckdb"
        self.columns = tuple(str(name) for name in table.columns)
        read = {name: column for name, dtype in table.schema().items()
                if (column := _as_read(table[name], dtype)) is not None}  # fmt: skip
        self._table = table.mutate(**read) if read else table

    def close(self) -> None:
        """Close the connection."""
        self._table.get_backend().disconnect()

    def with_numbers(self, columns: Sequence[str]) -> Source:
        self.check_columns(columns)
        texts = [name for name in columns if self._table[name].type().is_string()]
        numbers = {}
        for name in texts if self._of_texts else ():
            text = _without(self._table[name], MISSING_NUMBERS)
            if not self._has(text.notnull() & (~text.re_search(_NUMBER) | text.re_search(_CODE))):
                whole = not self._has(text.notnull() & ~text.re_search(_WHOLE))
                numbers[name] = text.try_cast("int64" if whole else "float64")
        return IbisTable(self._table.mutate(**numbers), of_texts=True) if numbers else self

    def _has(self, rows: Any) -> bool:
        first = self._table.filter(rows).limit(1).count()
        return bool(_from_ibis("reading", first.execute))

    def count(self) -> int:
        return int(_from_ibis("counting", self._table.count().execute))

    def sums(self, of_batch: Callable[[pd.DataFrame], Any], columns: Sequence[str]) -> Any:
        self.check_columns(columns)
        return self._sums(of_batch, self._batches(columns, levels=True))

    def _sums(self, of_batch: Callable[[pd.DataFrame], Any], batches: Any) -> Any:
        total: Any = None
        for added in in_threads(of_batch, batches):
            total = added if total is None else total + added
        if total is None:
            raise InvalidInput("the table must have rows: found none")
        return total

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        return self._batches(columns, levels=False)

    def _batches(
        self, columns: Sequence[str], *, levels: bool, masked: Sequence[str] = MISSING_LEVELS
    ) -> Iterator[pd.DataFrame]:
        """With texts as they are, or as levels, which are read at once."""
        rows = self._table.select(*columns)
        reader = _from_ibis("reading", partial(rows.to_pyarrow_batches, chunk_size=BATCH))
        while (batch := _from_ibis("reading", partial(next, reader, None))) is not None:
            frame = in_pandas(batch, strings_to_categorical=levels)
            yield frame.mask(frame.isin(masked)) if self._of_texts and masked else frame

    def sample(self, columns: Sequence[str], n: int = SAMPLED) -> pd.DataFrame:
        import ibis

        self.check_columns(columns)
        rows, total = self._table.select(*columns), self.count()
        if total > n:
            rows = rows.filter(ibis.random() < 1.1 * n / total).limit(n)
        frame = in_pandas(_from_ibis("reading", rows.to_pyarrow))  # days of a DATE stay days
        return frame.mask(frame.isin(MISSING_LEVELS)) if self._of_texts else frame

    def counts(self, requests: Sequence[Request]) -> list[IntArray]:
        self.check_columns([cells.column for request in requests for cells in request])
        known = {id(cells): cells for request in requests for cells in request}
        known = {key: replace(cells, missing_texts=_missing_texts(cells))
                 if self._table[cells.column].type().is_string() else cells
                 for key, cells in known.items()}  # fmt: skip
        if not self.grouped:
            asked = [tuple(known[id(cells)] for cells in request) for request in requests]
            names = dict.fromkeys(cells.column for cells in known.values())
            batches = self._batches([*names], levels=True, masked=())
            return [*self._sums(partial(counts_of, asked), batches).parts]
        keys = {key: _Key(self._table, cells) for key, cells in known.items()}
        return [self._counted([keys[id(cells)] for cells in request]) for request in requests]

    def _counted(self, keys: Sequence[_Key]) -> IntArray:
        named = {f"key_{place}": key.expression for place, key in enumerate(keys)}
        grouped = self._table.group_by(**named).aggregate(records=self._table.count())
        groups = in_pandas(_from_ibis("counting", grouped.to_pyarrow))
        counts = np.zeros([key.cells.n_cells for key in keys], dtype=np.int64)
        places = tuple(key.places(groups[name]) for name, key in zip(named, keys, strict=True))
        np.add.at(counts, places, groups["records"].to_numpy(dtype=np.int64))
        return counts


class _Key:
    """What a column is grouped by: its cell, or its value where cells are single values."""

    def __init__(self, table: Any, cells: ColumnCells) -> None:
        self.cells, values = cells, table[cells.column]
        self.by_cell = cells.changes_near is not None
        if not self.by_cell:
            self.expression = _without(values, cells.missing_texts)
            return
        import ibis

        absent = values.isnull()
        if values.type().is_floating():
            absent |= values.isnan()
        text = values.type().is_string()
        numbers = values.try_cast("float64") if text else values.cast("float64")
        cell = _nested(numbers, thresholds(cells))
        if text:
            absent |= values.isin(list(cells.missing_texts))
            cell = ibis.ifelse(~values.re_search(_NUMBER), _NOWHERE, cell)
        missing = _NOWHERE - 1 if cells.missing is None else cells.missing
        self.expression = ibis.ifelse(absent, missing, cell)

    def places(self, groups: pd.Series) -> IntArray:
        """Cell of each group."""
        if self.by_cell:
            place = groups.to_numpy(dtype=np.int64)
            if (place < 0).any():
                raise refuse_values(self.cells.column, missing=bool((place < _NOWHERE).any()))
            return place
        if groups.nunique() > _MOST_VALUES:
            raise refuse_values(self.cells.column, missing=False)
        return self.cells.places(groups.rename(self.cells.column))


def _as_read(column: Any, dtype: Any) -> Any:
    """A column as a file's is read, None if it is so: whole numbers that no float holds, times of a
    day and intervals as texts, decimals and floats of four bytes as the floats written alike."""
    import ibis

    whole = dtype.is_decimal() and dtype.scale == 0 and (dtype.precision or 16) > 15
    if whole or dtype.is_time() or dtype.is_interval():
        return column.cast("string")
    if dtype.is_float32():
        exact = column.cast("float64")  # of whole ones all digits count
        return ibis.ifelse(exact == exact.floor(), exact, column.cast("string").cast("float64"))
    return column.cast("float64") if dtype.is_decimal() else None


def _missing_texts(cells: ColumnCells) -> tuple[str, ...]:
    """Texts that stand for a missing value: those that are no declared level or code."""
    if cells.changes_near is not None:
        return MISSING_NUMBERS
    levels = set()
    for text in MISSING_NUMBERS:
        with contextlib.suppress(InvalidInput):  # of dates: none
            if cells.cut(pd.Series([text], dtype=object, name=cells.column))[0] >= 0:
                levels.add(text)
    return tuple(text for text in MISSING_NUMBERS if text not in levels)


def _without(values: Any, missing_texts: Sequence[str]) -> Any:
    import ibis

    if not missing_texts or not values.type().is_string():
        return values
    return ibis.ifelse(values.isin(list(missing_texts)), ibis.null("string"), values)


def _nested(numbers: Any, cut: Thresholds) -> Any:
    """The cell by a tree of comparisons, whose depth is the logarithm of the number of cells."""
    import ibis

    def below(first: int, last: int) -> Any:
        if first == last:
            return ibis.literal(int(cut.cells[first]), "int32")
        middle = (first + last) // 2
        return ibis.ifelse(
            numbers < ibis.literal(float(cut.at[middle]), "float64"),
            below(first, middle),
            below(middle + 1, last),
        )

    return below(0, cut.at.size)


def _from_ibis(what: str, call: Callable[[], Any]) -> Any:
    """What a call of ibis returns, without its warnings; an error by its type alone, as its text
    can quote values and passwords."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except Exception as error:
        raise SourceFailed(
            f"the table could not be read while {what}: {type(error).__name__}; is it there, and "
            "is the connection?"
        ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class Thresholds:
    """Ascending floats `at` (T,), and the cell (T + 1,) below the first, from each on; -1 for no
    cell. A database cuts a column where a data frame is cut, to the last bit: they are found with
    the function that cuts data frames, and a comparison of floats is the same everywhere."""

    at: FloatArray
    cells: IntArray

    def places(self, numbers: FloatArray) -> IntArray:
        """Cell of each number, shape (n,)."""
        return np.asarray(self.cells[np.searchsorted(self.at, numbers, side="right")])


def thresholds(cells: ColumnCells) -> Thresholds:
    """Where the cell of a number changes, by bisection over all floats; InvalidInput if cells
    change more often than `changes_near` says."""
    assert cells.changes_near is not None
    ordered = np.unique(_ordered(np.concatenate([[-np.inf, np.inf], cells.changes_near])))
    for _ in range(_ROUNDS):
        found = _bisected(cells, ordered)
        between = np.unique(np.concatenate([_between(ordered, share) for share in _BETWEEN]))
        wrong = found.places(_floats(between)) != _cut(cells, between)
        if not wrong.any():
            return found
        ordered = np.unique(np.concatenate([ordered, between[wrong]]))
    raise InvalidInput(
        f"cells of column {cells.column!r} must be intervals: their edges are too near"
    )


def _bisected(cells: ColumnCells, ordered: IntArray) -> Thresholds:
    place = _cut(cells, ordered)
    changes = np.flatnonzero(place[1:] != place[:-1])
    low, high, below = ordered[changes].copy(), ordered[changes + 1].copy(), place[changes]
    while ((high - low) > 1).any():
        middle = low + (high - low) // 2
        same = _cut(cells, middle) == below
        low, high = np.where(same, middle, low), np.where(same, high, np.maximum(middle, low + 1))
    at = _floats(high)
    order = np.argsort(at, kind="stable")
    return Thresholds(at=at[order], cells=np.append(place[:1], place[changes + 1][order]))


def _cut(cells: ColumnCells, ordered: IntArray) -> IntArray:
    return cells.cut(pd.Series(_floats(ordered), name=cells.column))


def _between(ordered: IntArray, share: float) -> IntArray:
    low, high = _floats(ordered[:-1]), _floats(ordered[1:])
    low, high = np.maximum(low, -1e300), np.minimum(high, 1e300)
    return np.clip(_ordered(low + share * (high - low)), ordered[:-1], ordered[1:])


def _ordered(numbers: FloatArray) -> IntArray:
    """Whole numbers in the order of floats, without negative zero."""
    bits = (np.asarray(numbers, dtype=np.float64) + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, np.iinfo(np.int64).min - bits)


def _floats(ordered: IntArray) -> npt.NDArray[np.float64]:
    bits = np.where(ordered >= 0, ordered, np.iinfo(np.int64).min - ordered)
    return bits.astype(np.int64).view(np.float64)
