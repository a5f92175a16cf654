"""Cells of numbers as thresholds, found by bisection over all floats.

A database cuts a column where a data frame is cut, to the last bit: the thresholds are computed
with the function that cuts data frames, and a comparison of floats is the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.sources.source import ColumnCells, IntArray

_ROUNDS, _BETWEEN = 6, (0.25, 0.5, 0.75)


@dataclass(frozen=True, kw_only=True, eq=False)
class Thresholds:
    """Ascending floats `at` (T,), and the cell (T + 1,) below the first, from each on; -1 for no
    cell."""

    at: FloatArray
    cells: IntArray

    def places(self, numbers: FloatArray) -> IntArray:
        """Cell of each number, shape (n,)."""
        return np.asarray(self.cells[np.searchsorted(self.at, numbers, side="right")])


def thresholds(cells: ColumnCells) -> Thresholds:
    """Where the cell of a number changes.

    Raises
    ------
    InvalidInput
        If cells change more often than `changes_near` says.
    """
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
