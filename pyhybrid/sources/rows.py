"""Columns of a table that stays where it is, for a model of one of them: the engine answers with
distinct rows and their numbers, and these are fitted, or repeated here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import IntArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.sources.source import READ, Source, load_library, opened, reads_whole

MOST_ROWS = 5_000_000
MOST_DISTINCT = 100_000
_SAMPLE = 50_000


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedRows:
    """Distinct rows of some columns, in the order of those that are not synthesized, and so many
    `times` that each occurs, shape (d,). Confidential."""

    table: pd.DataFrame
    times: IntArray

    def __repr__(self) -> str:
        return f"<CountedRows: {len(self.table)} distinct ones of {self.n}>"

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.times.sum())

    @property
    def records(self) -> pd.DataFrame:
        """All records, row by row."""
        at = np.repeat(np.arange(len(self.table)), self.times)
        whole: pd.DataFrame = self.table.iloc[at].reset_index(drop=True)
        return whole


def count_rows(data: Any, columns: Sequence[str], *, outcomes: Sequence[str]) -> CountedRows:
    """Distinct rows of some columns and their numbers, from one pass of the engine over all rows.

    `data`, `columns` and `outcomes` as of `read_columns`. InvalidInput for more than 100,000
    distinct rows, with their number and the column that has most values.
    """
    with opened(data) as source:
        names = _named(source, columns, outcomes)
        cells = _cells(source, names)
        grouped = cells.group_by([*cells.columns]).agg(times=load_library("ibis")._.count())
        rows = source.ask(grouped.limit(MOST_DISTINCT + 1))
        if not rows:
            raise InvalidInput(f"data {source.name} must have rows: found none")
        if len(rows) > MOST_DISTINCT:
            _refuse_distinct(source, cells, grouped, names)
        return _counted(source, names, outcomes, rows)


def _refuse_distinct(source: Source, cells: Any, grouped: Any, names: Sequence[str]) -> None:
    ((n, distinct),) = source.ask(grouped.agg(n=grouped.times.sum(), d=grouped.count()))
    (values,) = source.ask(cells.agg(**{c: cells[c].nunique() for c in cells.columns}))
    most = int(np.argmax(values))
    raise InvalidInput(
        f"data {source.name} must have at most {MOST_DISTINCT:,} distinct rows of "
        f"{', '.join(names)}: found {int(distinct):,} among {int(n):,} rows; {names[most]!r} has "
        f"{int(values[most]):,} values: round it or cut it into bins by a public rule, in a view, "
        "leave it out, or take a view of a sample"
    )


def read_columns(
    data: Any, columns: Sequence[str], *, outcomes: Sequence[str], seed: int | None = None
) -> pd.DataFrame:
    """Some columns of all rows, in memory, as any mechanism takes them.

    Parameters
    ----------
    data : str, path, ibis table, DuckDB relation or Source
        See `open_source`. Read only.
    columns : sequence of str
        What a model reads: outcome, predictors, unit.
    outcomes : sequence of str
        Columns among them that are synthesized.
    seed : int, optional
        Of the order of rows, which the system draws if omitted. Like a release's it stays secret.

    Returns
    -------
    DataFrame, shape (n, len(columns))
        Rows in a random order, which a release keeps: it tells nothing of `outcomes`, nor of
        columns that are not published. Confidential.

    Raises
    ------
    InvalidInput
        For columns that are missing, or of a type that no model reads, and for more than 5,000,000
        rows.
    """
    with opened(data) as source:
        names = _named(source, columns, outcomes)
        cells = _cells(source, names)
        ((n,),) = source.ask(cells.agg(n=cells.count()))
        if not 0 < n <= MOST_ROWS:
            raise InvalidInput(
                f"data {source.name} must have at least 1 and, to be read into memory, at most "
                f"{MOST_ROWS:,} rows: found {n:,}; fit distinct rows "
                "(ph.sources.synthesize_by_formula, or --formula and --model of the command), take "
                "a view of a sample, or release the whole table by noisy marginals (no --formula)"
            )
        every = load_library("ibis")._.count()
        rows = source.ask(cells.group_by([*cells.columns]).agg(times=every))
        whole = _counted(source, names, outcomes, rows).records
        order = streams(seed).generator("order of rows").permutation(len(whole))
        shuffled: pd.DataFrame = whole.iloc[order].reset_index(drop=True)
        return shuffled


def read_sample(data: Any, columns: Sequence[str] = ()) -> tuple[pd.DataFrame, int]:
    """Some columns, or all, of about 50,000 rows by chance, or of all if there are no more, for
    what needs rows in memory: models, matching. Confidential; no part of a release.

    `data` as of `open_source`, whose InvalidInput it raises. Returns the rows, shape
    (rows, len(columns)), and the number of all rows.
    """
    ibis = load_library("ibis")
    with opened(data) as source:
        names = _named(source, columns or [*source.columns], ())
        cells = _cells(source, names)
        ((n,),) = source.ask(cells.agg(n=cells.count()))
        some = cells if n <= _SAMPLE else cells.filter(ibis.random() < _SAMPLE / n)
        return _table(source, names, source.ask(some)), int(n)


def in_memory(
    data: Any,
    formulas: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    left_out: Sequence[str] = (),
    seed: int | None = None,
    sample: bool = False,
) -> Any:
    """Rows of a table that stays where it is, for a function of a data frame: columns of `formulas`
    and `columns`, or all but those `left_out` if none is named. All rows (`read_columns`), or a
    `sample` of them (`read_sample`), which a warning tells. A path that `open_source` does not take
    is given back as it is.
    """
    if isinstance(data, (str, os.PathLike)) and not reads_whole(os.fspath(data)):
        return data
    with opened(data) as source:
        source.check_columns(left_out)
        parsed = [parse_formula(text, [*source.columns]) for text in formulas]
        named = [name for own in parsed for name in (own.outcome, *own.predictors)]
        named = [*named, *columns] or [own for own in source.columns if own not in left_out]
        if not sample:
            return read_columns(source, named, outcomes=(), seed=seed)
        rows, n = read_sample(source, named)
        if len(rows) < n:
            warnings.warn(f"{source.name}: {len(rows):,} of {n:,} rows, by chance", stacklevel=4)
        return rows


def _named(source: Source, columns: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """All columns that are read, once each, of kinds that are."""
    names = list(dict.fromkeys([*columns, *outcomes]))
    source.check_columns(names)
    for name in names:
        if source.columns[name] not in READ:
            raise InvalidInput(
                f"column {name!r} of {source.name} must be numbers, text or logicals: found "
                f"{source.columns[name]}; change it in a view"
            )
    return names


def _cells(source: Source, names: Sequence[str]) -> Any:
    return source.table.select(
        **{f"c{place}": _cell(source, name) for place, name in enumerate(names)}
    )


def _counted(
    source: Source, names: Sequence[str], outcomes: Sequence[str], rows: list[tuple[Any, ...]]
) -> CountedRows:
    times = np.array([row[-1] for row in rows], dtype=np.int64)
    distinct = _table(source, names, rows)
    ordered = distinct.sort_values(sorted(names, key=lambda name: name in outcomes))
    return CountedRows(table=ordered.reset_index(drop=True), times=times[ordered.index])


def _table(source: Source, names: Sequence[str], rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame({
        name: _column([row[at] for row in rows], source.columns[name])
        for at, name in enumerate(names)
    })  # fmt: skip
    return table


def _cell(source: Source, name: str) -> Any:
    """Decimals and floats as floats, texts as bytes: equal exactly if the values are."""
    column = source.table[name]
    if source.columns[name] == "text":
        return source.exact(column)
    whole = source.columns[name] != "number" or column.type().is_integer()
    return column if whole else column.cast("float64")


def _column(values: list[Any], kind: str) -> pd.Series:
    """As a file is read: whole numbers without a gap stay whole, text is as pandas has it."""
    dtype: Any = None
    if kind == "number":
        broken = any(value is None or isinstance(value, float) for value in values)
        dtype = "float64" if broken else None  # int64, or what holds larger ones
    elif kind == "text":
        values = [own.decode(errors="replace") if isinstance(own, bytes) else own for own in values]
    own: pd.Series = pd.Series(values, dtype=dtype)
    return own
