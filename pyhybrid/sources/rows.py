"""Columns of a table that stays where it is, for a model of one of them: the engine answers with
distinct rows and their numbers, which are repeated here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.sources.source import READ, Source, load_library, open_source

MOST_ROWS = 5_000_000


def read_columns(data: Any, columns: Sequence[str], *, outcomes: Sequence[str]) -> pd.DataFrame:
    """Some columns of all rows, in memory, as any mechanism takes them.

    Parameters
    ----------
    data : str, path, ibis table, DuckDB relation or Source
        See `open_source`. Read only.
    columns : sequence of str
        What a model reads: outcome, predictors, unit.
    outcomes : sequence of str
        Columns among them that are synthesized.

    Returns
    -------
    DataFrame, shape (n, len(columns))
        Rows in the order of their other columns, so that their order tells nothing of `outcomes`.
        Confidential.

    Raises
    ------
    InvalidInput
        For columns that are missing, or of a type that no model reads, and for more than 5,000,000
        rows.
    """
    names, ibis = list(dict.fromkeys([*columns, *outcomes])), load_library("ibis")
    source = open_source(data)
    try:
        source.check_columns(names)
        for name in names:
            if source.columns[name] not in READ:
                raise InvalidInput(
                    f"column {name!r} of {source.name} must be numbers, text or logicals: found "
                    f"{source.columns[name]}; change it in a view"
                )
        kinds = [source.columns[name] for name in names]
        cells = source.table.select(
            **{f"c{place}": _cell(source, name) for place, name in enumerate(names)}
        )
        ((n,),) = source.ask(cells.agg(n=cells.count()))
        if not 0 < n <= MOST_ROWS:
            raise InvalidInput(
                f"data {source.name} must have at least 1 and, to be read into memory, at most "
                f"{MOST_ROWS:,} rows: found {n:,}; take a view of a sample, or release the whole "
                "table by noisy marginals, which are counted where it is (no --formula)"
            )
        rows = source.ask(cells.group_by([*cells.columns]).agg(times=ibis._.count()))
    finally:
        if source is not data:
            source.close()
    times = np.array([row[-1] for row in rows], dtype=np.int64)
    distinct = pd.DataFrame(
        {name: _column([row[at] for row in rows], kinds[at]) for at, name in enumerate(names)}
    )
    order = sorted(names, key=lambda name: name in outcomes)
    whole: pd.DataFrame = distinct.sort_values(order).pipe(
        lambda own: own.loc[own.index.repeat(times[own.index])].reset_index(drop=True)
    )
    return whole


def _cell(source: Source, name: str) -> Any:
    """Decimals and floats as floats, all else as it is."""
    column = source.table[name]
    whole = source.columns[name] != "number" or column.type().is_integer()
    return column if whole else column.cast("float64")


def _column(values: list[Any], kind: str) -> pd.Series:
    """As a file is read: whole numbers without a gap stay whole, text is as pandas has it."""
    dtype: Any = None
    if kind == "number":
        broken = any(value is None or isinstance(value, float) for value in values)
        dtype = "float64" if broken else "int64"
    own: pd.Series = pd.Series(values, dtype=dtype)
    return own
