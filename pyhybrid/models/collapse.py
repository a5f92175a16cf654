"""Records that share outcome, predictors and weight count as one row with a frequency.

The target density is unchanged, and for counts 10^6 records become a few hundred rows. A censored
term is clipped per record, so a row contributes its frequency times the clipped term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.checks import FloatArray

__all__ = ["Rows", "distinct_rows", "weighted_rows"]

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Distinct rows of a table of n records.

    Attributes
    ----------
    first : ndarray of int, shape (d,)
        Position of the first record of each row; rows are in order of first appearance.
    row_of : ndarray of int, shape (n,)
        Row of each record.
    frequency : ndarray, shape (d,)
        Records in each row.
    """

    first: IntArray
    row_of: IntArray
    frequency: FloatArray


def distinct_rows(columns: FloatArray) -> Rows:
    """Rows of a matrix of shape (n, c), found by hashing one column after the other."""
    code = np.zeros(columns.shape[0], dtype=np.int64)
    for column in columns.T:
        own, levels = pd.factorize(column)
        code, _ = pd.factorize(code * len(levels) + own)
    return _rows(code)


def weighted_rows(rows: Rows, alpha: FloatArray, unit: IntArray | None = None) -> Rows:
    """Rows split further by record weight, and by unit if terms are summed by unit.

    The rows themselves if weights and units agree within each.
    """
    for own in (alpha, unit):
        if own is not None and not np.array_equal(own[rows.first][rows.row_of], own):
            code, levels = pd.factorize(own)
            rows = _rows(pd.factorize(rows.row_of.astype(np.int64) * len(levels) + code)[0])
    return rows


def _rows(code: npt.NDArray[np.int64]) -> Rows:
    n_rows = int(code.max()) + 1
    first = np.full(n_rows, code.size, dtype=np.intp)
    np.minimum.at(first, code, np.arange(code.size))
    frequency = np.bincount(code, minlength=n_rows).astype(np.float64)
    return Rows(first=first, row_of=code.astype(np.intp), frequency=frequency)
