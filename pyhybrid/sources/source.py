"""What a strict mechanism asks of records, wherever these are: whole-number sums.

Noisy marginals need counts of public cells, clipped scores sums of scores in whole steps. Both are
sums over batches of records, so that how records are divided, over batches or over machines,
changes nothing, to the last digit. `Source` is the only class that knows where the records are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.values import row_label

IntArray = npt.NDArray[np.int64]
BATCH = 125_000
"""Records of a batch, at most."""
SAMPLED = 50_000
"""Records of a sample of public columns."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCells:
    """Public cells of a column: `cut` gives the cell of each entry of a column without missing
    values, in which no other entry has a say, -1 for what is in no cell; `missing` is the cell of
    missing values, which None refuses. Cells of numbers may change at most once between any two
    of `changes_near`, None if cells are single values. `missing_texts` are missing, too."""

    column: str
    n_cells: int
    cut: Callable[[pd.Series], IntArray]
    missing: int | None = None
    changes_near: FloatArray | None = None
    missing_texts: tuple[str, ...] = ()

    def places(self, values: pd.Series, *, named: bool = False) -> IntArray:
        """Cell of each record, shape (n,); InvalidInput for a value in none, which tells no value,
        and the row if it is `named`."""
        absent = (values.isna() | values.isin(self.missing_texts)).to_numpy()
        place = np.full(len(values), -1 if self.missing is None else self.missing, dtype=np.int64)
        place[~absent] = self.cut(values[~absent])
        for wrong in np.flatnonzero(place < 0)[:1]:
            row = row_label(values.index, int(wrong)) if named else None
            raise refuse_values(self.column, missing=bool(absent[wrong]), row=row)
        return place


Request = tuple[ColumnCells, ...]
"""A table of counts: of one column's cells, or of those of two, the first by row."""


class Source(ABC):
    """Records of these columns that are read by sums alone."""

    columns: tuple[str, ...]

    @abstractmethod
    def sums(self, of_batch: Callable[[pd.DataFrame], Any], columns: Sequence[str]) -> Any:
        """Sum over all batches of what `of_batch`, which may run in another process, makes of a
        data frame of these columns: whole numbers or arrays of them."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """All records, a batch at a time, in the order of the source."""

    @abstractmethod
    def sample(self, columns: Sequence[str], n: int = SAMPLED) -> pd.DataFrame:
        """About n records (all, if there are fewer), chosen at random."""

    def with_numbers(self, columns: Sequence[str]) -> Source:
        """The source with public columns of numbers read as such, where it has no types."""
        self.check_columns(columns)
        return self

    def count(self) -> int:
        """Number of records, counted anew."""
        return int(self.sums(len, self.columns[:1]))

    def counts(self, requests: Sequence[Request]) -> list[IntArray]:
        """Records in each cell of each table, counted exactly; InvalidInput, which names the
        column, for a value that is in no cell, or is missing where that is no cell."""
        names = dict.fromkeys(cells.column for request in requests for cells in request)
        return [*self.sums(partial(counts_of, requests), [*names]).parts]

    def distinct(self, column: str) -> list[Any]:
        """Values of a public column, without missing ones, sorted."""
        values = self.sums(partial(_batch_values, column), [column])
        return sorted(values, key=lambda value: (str(type(value)), value))

    def has_missing(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Public columns that have missing values."""
        totals = self.sums(_batch_missing, columns) if columns else ()
        return tuple(name for name, n in zip(columns, totals, strict=True) if n)

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse a source without one of these columns."""
        for name in columns:
            if name not in self.columns:
                raise InvalidInput(
                    f"column {name!r} must be in the table: found {', '.join(self.columns[:20])}"
                    f"{did_you_mean(name, self.columns)}"
                )


def in_pandas(rows: Any, **how: Any) -> pd.DataFrame:
    """An Arrow table, its whole numbers as such where some are missing."""
    import pyarrow as pa

    sizes = [f"{sign}nt{bits}" for sign in ("I", "UI") for bits in (8, 16, 32, 64)]
    whole = {pa.from_numpy_dtype(name.lower()): pd.api.types.pandas_dtype(name) for name in sizes}
    frame: pd.DataFrame = rows.to_pandas(**how)
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if column.type in whole and column.null_count and name in frame:
            frame[name] = column.to_pandas(types_mapper=whole.get).array
    return frame


def refuse_values(column: str, *, missing: bool, row: str | None = None) -> InvalidInput:
    """The error for values without a cell; it tells no value, and of a data frame the row."""
    if missing:
        found = "some values are" if row is None else f"{row} is"
        return InvalidInput(
            f"column {column!r} must not be missing: {found}; declare missing=True in its domain "
            "or type, which makes missing values a cell of their own"
        )
    found = "some values do" if row is None else f"{row} does"
    return InvalidInput(
        f"column {column!r} must lie in its domain: {found} not; levels and bins are part of the "
        "guarantee: declare all that can occur, in its domain or type"
    )


def counts_of(requests: Sequence[Request], batch: pd.DataFrame) -> Parts:
    """Counts of a batch."""
    places: dict[int, IntArray] = {}
    for cells in {id(cells): cells for request in requests for cells in request}.values():
        places[id(cells)] = cells.places(batch[cells.column])
    counts = []
    for request in requests:
        index, shape = np.zeros(len(batch), dtype=np.int64), [cells.n_cells for cells in request]
        for cells in request:
            index = index * cells.n_cells + places[id(cells)]
        counts.append(np.bincount(index, minlength=int(np.prod(shape))).reshape(shape))
    return Parts(tuple(counts))


def _batch_values(column: str, batch: pd.DataFrame) -> Counter[Any]:
    return Counter(batch[column].dropna().unique().tolist())


def _batch_missing(batch: pd.DataFrame) -> IntArray:
    return np.asarray(batch.isna().sum(), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Parts:
    """Arrays of whole numbers that are added one by one."""

    parts: tuple[IntArray, ...]

    def __add__(self, other: Parts) -> Parts:
        return Parts(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))
