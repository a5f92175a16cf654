"""Distinct rows of a matrix, and how often each occurs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyhybrid.core.checks import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Distinct rows of a matrix of n, in order of first appearance."""

    first: IntArray  # (d,) position of the first occurrence of each
    row_of: IntArray  # (n,) which of them each row is
    frequency: FloatArray  # (d,) how often each occurs


def distinct_rows(rows: FloatArray) -> Rows:
    """Distinct rows of a matrix of shape (n, k)."""
    order = np.lexsort(rows.T[::-1])  # many times faster than np.unique with an axis; stable
    ordered = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    first = order[new]
    rank = np.empty(first.size, dtype=np.intp)
    rank[np.argsort(first)] = np.arange(first.size)
    row_of = np.empty(len(rows), dtype=np.intp)
    row_of[order] = rank[np.cumsum(new) - 1]
    frequency = np.bincount(row_of, minlength=first.size).astype(np.float64)
    return Rows(first=np.sort(first), row_of=row_of, frequency=frequency)
