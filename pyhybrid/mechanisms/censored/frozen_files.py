"""Frozen rows of a calibration as a table.

One line for each distinct record: its weight, count and center, and what its model reads of it. Of
a model of several steps the columns of a step have its name before a point, and are empty where a
record does not reach it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.censoring import FrozenParts, FrozenRows, FrozenTerms

__all__ = ["frozen_table", "read_frozen"]

_TERMS = ("alpha", "count", "center")
_OF_STEP = ": "  # between the names of a step and of a column of its design


def frozen_table(frozen: FrozenTerms) -> pd.DataFrame:
    """Numbers, as they are written."""
    terms: pd.DataFrame = pd.DataFrame({name: getattr(frozen, name) for name in _TERMS})
    if isinstance(frozen, FrozenRows):
        terms = terms.join(_numbers(frozen))
        return terms
    assert isinstance(frozen, FrozenParts)
    terms["at_zero"] = frozen.at_zero.astype(int)
    for name, rows in frozen.parts.items():
        own = _numbers(rows).set_index(np.flatnonzero(frozen.reached[name]))
        terms = terms.join(own.add_prefix(f"{name}."))
    return terms


def _numbers(rows: FrozenRows) -> pd.DataFrame:
    design = {f"X.{place}": column for place, column in enumerate(rows.X.T)}
    made: pd.DataFrame = pd.DataFrame({"y": rows.y, "offset": rows.offset, **design})
    return made


def read_frozen(table: pd.DataFrame, columns: Sequence[str]) -> FrozenTerms:
    """Inverse of `frozen_table`, for a design of these columns; text is read exactly.

    Raises
    ------
    ValueError
        For a table of other columns, or with a number that is none.
    """
    terms = {name: table[name].to_numpy(dtype=np.float64) for name in ("alpha", "center")}
    count = np.array([int(each) for each in table["count"]], dtype=np.int64)
    if "at_zero" not in table.columns:
        names = _names_of(len(columns))
        if sorted(table.columns) != sorted([*_TERMS, *names]):
            raise ValueError("frozen")
        return FrozenRows(**terms, count=count, **_read(table, names))
    steps = [each.partition(_OF_STEP)[0] for each in columns]
    expected = [*_TERMS, "at_zero"]
    parts, reached = {}, {}
    for name in dict.fromkeys(steps):
        own = [f"{name}.{each}" for each in _names_of(steps.count(name))]
        there = np.zeros(len(table), dtype=bool)
        if own[0] in table.columns:
            expected += own
            there = table[own[0]].notna().to_numpy(dtype=bool)
            d = int(there.sum())
            parts[name] = FrozenRows(
                alpha=np.ones(d), count=np.ones(d, dtype=np.int64), center=np.zeros(d),
                **_read(table.loc[there], own),
            )  # fmt: skip
        reached[name] = there
    if list(table.columns) != expected or not table["at_zero"].isin(["0", "1"]).all():
        raise ValueError("frozen")
    at_zero = (table["at_zero"] == "1").to_numpy(dtype=bool)
    return FrozenParts(**terms, count=count, parts=parts, reached=reached, at_zero=at_zero)


def _names_of(n_columns: int) -> list[str]:
    return ["y", "offset", *(f"X.{place}" for place in range(n_columns))]


def _read(table: pd.DataFrame, names: Sequence[str]) -> dict[str, FloatArray]:
    numbers = table[list(names)].to_numpy(dtype=np.float64)
    return {"y": numbers[:, 0], "offset": numbers[:, 1], "X": numbers[:, 2:]}
