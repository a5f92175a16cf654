"""Counts of cells where the records are, equal to those of `ColumnDomain.places` to the last one.

Which cell a number is in changes at a few floats, which `ColumnDomain.cuts` finds by asking that
function itself. The engine compares each number, cast to double precision, with these by halves:
no arithmetic is left to it that could round otherwise. Levels are compared one by one.

All tables come from two passes: every column alone, in all cells of its domain, which also gives
the number of records; then all tables with predictors (grouping sets), whose sums must be those of
the first pass. Parts of a table add, so that Parquet files can be counted by workers elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.marginals.domain import ALONE, ColumnDomain, IntArray
from pyhybrid.primitives.tables import CountedTable
from pyhybrid.running.tasks import finished_tasks
from pyhybrid.sources.source import READ, ParquetFiles, Source, load_library

_OUTSIDE, _MISSING = -1, -2
_CHANGED = (
    "data {} must stay as they are while they are counted: they changed between two passes; "
    "nothing was released or charged. Count a copy, or a snapshot"
)
Counts = dict[tuple[str, ...], IntArray]
"""Counts (K, L) by a column, L being 1, or by a column and a predictor."""


class Counted:
    """The records of a source in the cells of a public domain (`CountedRecords`)."""

    def __init__(
        self,
        source: Source,
        domain: Mapping[str, ColumnDomain],
        *,
        workers: int = 1,
        executor: Executor | None = None,
    ) -> None:
        """Count each column alone.

        Raises InvalidInput for columns that are missing, or of a type that has no such cells, and
        for values outside of their domain."""
        source.check_columns([*domain])
        self.source, self.domain = source, dict(domain)
        self._workers, self._executor = workers, executor
        self.alone = self._counted(self.domain, [(name,) for name in domain], checked=False)
        self._n = int(next(iter(self.alone.values())).sum())
        if not self._n:
            raise InvalidInput(f"data {source.name} must have rows: found none")

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"<Counted: {self._n} records of {self.source.name}>"

    def check_units(self, unit: str | None, rows: int | None) -> None:
        """Raise InvalidInput if a unit has more than so many rows, or a row has no unit."""
        if unit is None or rows is None:
            return
        self.source.check_columns([unit])
        if unit in self.domain:
            raise InvalidInput(f"unit {unit!r} must not be synthesized")
        table = self.source.table
        own = table[unit]
        if self.source.has_nan and own.type().is_floating():
            own = own.nullif(load_library("ibis").literal("nan").cast("float64"))
        each = table.group_by(unit=own).agg(rows=table.count())
        gone = load_library("ibis").ifelse(each.unit.isnull(), 1, 0).max()
        ((most, missing),) = self.source.ask(each.agg(most=each.rows.max(), missing=gone))
        if missing or most > rows:
            what = "is missing" if missing else "has more"
            raise InvalidInput(
                f"units must have at most rows_per_unit={rows} rows, and every row a unit: "
                f"{unit!r} of {self.source.name} {what}; keep as many by a rule that looks at one "
                "unit alone"
            )

    def one_way(self, columns: Sequence[str]) -> tuple[CountedTable, ...]:
        """Columns alone."""
        return tuple(CountedTable(counts=self.alone[(name,)], n=self._n) for name in columns)

    def two_way(
        self, domain: Mapping[str, ColumnDomain], order: Mapping[str, Sequence[str]]
    ) -> tuple[CountedTable, ...]:
        """Each column with each of its predictors, all in one pass."""
        wanted = [
            (column,) if name == ALONE else (column, name)
            for column, reads in order.items()
            for name in reads or (ALONE,)
        ]
        counts = self._counted(domain, wanted, checked=True)
        for names in wanted:
            self._check_same(names, counts[names], domain)
        return tuple(CountedTable(counts=counts[names], n=self._n) for names in wanted)

    def _check_same(
        self, names: tuple[str, ...], counts: IntArray, domain: Mapping[str, ColumnDomain]
    ) -> None:
        """Refuse a table whose number of rows, or of records in each cell of a column, is not that
        of the first pass."""
        for axis, name in enumerate(names):
            found = counts.sum(axis=1 - axis)
            before = _merged(self.alone[(name,)][:, 0], self.domain[name], domain[name])
            if not np.array_equal(found, before):
                raise InvalidInput(_CHANGED.format(self.source.name))

    def _counted(
        self,
        domain: Mapping[str, ColumnDomain],
        wanted: Sequence[tuple[str, ...]],
        *,
        checked: bool,
    ) -> Counts:
        """All tables that are wanted, in one pass."""
        task = _Task(files=(), name=self.source.name, domain=domain, wanted=tuple(wanted))
        if isinstance(self.source, ParquetFiles) and (self._executor or self._workers > 1):
            parts = _in_parts(task, self.source.files, self._workers, self._executor)
        else:
            parts = [_count(self.source, task)]
        total = {names: np.sum([part[names] for part in parts], axis=0) for names in wanted}
        for names, counts in total.items():
            if counts[:2].any() or (len(names) > 1 and counts[:, :2].any()):
                if checked:
                    raise InvalidInput(_CHANGED.format(self.source.name))
                raise InvalidInput(_refused(names[0], self.source.name, bool(counts[0].any())))
        return {
            names: counts[2:, 2:] if len(names) > 1 else counts[2:]
            for names, counts in total.items()
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """Tables to count in some files of a source."""

    files: tuple[str, ...]
    name: str
    domain: Mapping[str, ColumnDomain]
    wanted: tuple[tuple[str, ...], ...]


def _in_parts(
    task: _Task, files: Sequence[str], workers: int, executor: Executor | None
) -> list[Counts]:
    """Counts of groups of files, by processes or an executor."""
    n_parts = min(len(files), 8 * workers if executor is not None else workers)
    groups = [tuple(files[place::n_parts]) for place in range(n_parts)]
    tasks = [replace(task, files=group) for group in groups]
    counted = finished_tasks(_count_files, tasks, "parts", workers=workers, executor=executor)
    return [counts for _, counts in counted]


def _count_files(task: _Task) -> Counts:
    """Runs in any process."""
    with ParquetFiles(task.files, task.name) as source:
        return _count(source, task)


def _count(source: Source, task: _Task) -> Counts:
    """Counts with two rows more before the others, of missing values and of values outside, and as
    many columns."""
    names = list(dict.fromkeys(name for own in task.wanted for name in own))
    cells = source.table.select(
        **{f"c{place}": _cell(source, name, task.domain[name]) for place, name in enumerate(names)}
    )
    places = {own: tuple(names.index(name) for name in own) for own in task.wanted}
    counts: Counts = {}
    for own in task.wanted:
        sizes = [task.domain[name].n_cells + 2 for name in own]
        counts[own] = np.zeros((*sizes, 1)[:2], dtype=np.int64)
    by_places = {frozenset(own): names for names, own in places.items()}
    asked = _grouping_sets if source.has_grouping_sets else _union
    for *held, times in asked(source, cells, list(places.values()), len(names)):
        there = frozenset(place for place, cell in enumerate(held) if cell is not None)
        own = by_places[there]
        at = [int(held[place]) + 2 for place in places[own]]
        counts[own][tuple((*at, 0)[:2])] += int(times)
    return counts


def _grouping_sets(
    source: Source, cells: Any, sets: Sequence[tuple[int, ...]], n_columns: int
) -> list[tuple[Any, ...]]:
    """Cells, None of columns that are not in the set, and the number of records."""
    names = ", ".join(f"c{place}" for place in range(n_columns))
    told = ", ".join("(" + ", ".join(f"c{place}" for place in own) + ")" for own in sets)
    inner = source.in_words(cells)
    return source.answer(
        f"SELECT {names}, COUNT(*) AS n FROM ({inner}) AS cells GROUP BY GROUPING SETS ({told})"
    )


def _union(
    source: Source, cells: Any, sets: Sequence[tuple[int, ...]], n_columns: int
) -> list[tuple[Any, ...]]:
    """The same of an engine that may have no grouping sets."""
    ibis = load_library("ibis")
    parts = []
    for own in sets:
        grouped = cells.group_by([f"c{place}" for place in own]).agg(n=cells.count())
        blank = ibis.null().cast("int16")
        held = [grouped[f"c{p}"] if p in own else blank.name(f"c{p}") for p in range(n_columns)]
        parts.append(grouped.select(*held, "n"))
    return source.ask(parts[0] if len(parts) == 1 else ibis.union(*parts, distinct=False))


def _cell(source: Source, name: str, domain: ColumnDomain) -> Any:
    """The cell of each record as an expression."""
    ibis, kind, column = load_library("ibis"), source.columns[name], source.table[name]
    bare = domain.bins and not source.has_try_cast
    if kind not in READ or (bare and kind == "text"):
        raise InvalidInput(
            f"column {name!r} of {source.name} must be "
            f"{'numeric to have bins' if domain.bins else 'numbers, text or logicals'}: found "
            f"{kind}; change it in a view, or leave it out (--drop)"
        )
    missing = column.isnull()
    if kind == "number":
        y = column.cast("float64")
        missing = missing | y.isnan() if source.has_nan else missing
        inside = _of_numbers(ibis, y, domain, name)
    elif kind == "logical":
        no, yes = domain.cells_of(pd.Series([False, True], name=name)).tolist()
        inside = ibis.ifelse(column, yes, no)
    else:
        inside = _of_text(source, column, domain, name)
    absent = domain.n_cells - 1 if domain.missing else _MISSING
    return ibis.ifelse(missing, absent, inside).cast("int16")


def _of_numbers(ibis: Any, y: Any, domain: ColumnDomain, name: str) -> Any:
    starts, cells = domain.cuts(name)
    return _by_halves(ibis, y, starts.tolist(), cells.tolist())


def _of_text(source: Source, column: Any, domain: ColumnDomain, name: str) -> Any:
    """The cell of a level of the same text, else of the number that the text is, as
    `places_of_levels` finds it; where no type of a column is a record's doing, of the text."""
    ibis, inside = load_library("ibis"), _OUTSIDE
    if source.has_try_cast:
        word = column.lower()
        pairs = [(word == "true", 1.0), (word == "false", 0.0)]
        y = ibis.cases(*pairs, else_=column.try_cast("float64"))
        found = _of_numbers(ibis, y, domain, name)
        inside = ibis.ifelse(y.isnull() | y.isnan(), _OUTSIDE, found)
    exact, known = source.exact(column), [] if domain.bins else domain.levels
    levels = [(exact == source.exact(ibis.literal(str(own))), k) for k, own in enumerate(known)]
    return ibis.cases(*levels, else_=inside) if levels else inside


def _by_halves(ibis: Any, y: Any, starts: Sequence[float], cells: Sequence[int]) -> Any:
    """The cell that a number is in, by comparisons with the middle one of what is left."""
    if not starts:
        return ibis.literal(int(cells[0]), "int16")
    middle = len(starts) // 2
    # Text is read to the nearest double everywhere, which decimal literals are not.
    start = ibis.literal(repr(starts[middle])).cast("float64")
    below = _by_halves(ibis, y, starts[:middle], cells[: middle + 1])
    above = _by_halves(ibis, y, starts[middle + 1 :], cells[middle + 1 :])
    return ibis.ifelse(y < start, below, above)


def _merged(counts: IntArray, domain: ColumnDomain, few: ColumnDomain) -> IntArray:
    """Counts of a domain's cells summed over the bins that are one in `few`."""
    if few.bins == domain.bins:
        return counts
    first = len(domain.levels)
    inner = first + np.searchsorted(domain.bins, few.bins[:-1])
    missing = [domain.n_cells - 1] if domain.missing else []
    starts = np.array([*range(first), *inner, *missing], dtype=np.int64)
    return np.asarray(np.add.reduceat(counts, starts))


def _refused(name: str, where: str, missing: bool) -> str:
    if missing:
        return (
            f'column {name!r} must not be missing: it is in {where}. Set "missing": true for it '
            "in the --types file (missing=True in its type)"
        )
    return (
        f"column {name!r} must lie in its domain: not all of {where} does; levels and bins are "
        "part of the guarantee, so declare all that can occur, or change such values by a rule "
        "that does not look at the others"
    )
