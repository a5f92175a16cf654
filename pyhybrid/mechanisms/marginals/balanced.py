"""Cells of records, drawn so that the tables with every predictor come out as the model has them.

Records drawn one by one bring the noise of a sample into every table, which for n in the thousands
is as large as that of epsilon 4. Here they are drawn in random order, a quarter of those left at a
time: the probabilities of such a block are raked (iterative proportional fitting) to the tables
that the records before it have left due. What is missing at the end is about one record of a cell,
at any n. A draw reads the model and public columns alone, so that it costs no epsilon. Averaged
over draws a table is the model's within a third of a record: cells of few records are chased
gently, as what they have too much of cannot be taken back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.marginals.predictors import Rows

__all__ = ["balanced", "drawn"]

_LARGEST_BLOCK = 2**22  # probabilities
_SWEEPS = 3
_FARTHEST = 4.0  # factor of a probability in a sweep
_LEAST = 1e-12  # records of a cell that are divided by
_GENTLE = 2.0  # a cell is made up for whole if a block has the square of this in it, else in part
IntArray = npt.NDArray[np.int64]


def drawn(p: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """A cell for each record, each on its own.

    Parameters
    ----------
    p : ndarray, shape (R, K)
        Probabilities by distinct row.
    rows : ndarray of int, shape (n,)
        Row of each record.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    below = p.cumsum(axis=1)
    at = rng.random(rows.size)
    cells = np.zeros(at.size, dtype=np.int64)
    for cell in range(below.shape[1] - 1):
        cells += at > below[rows, cell]
    return cells


def balanced(
    p: FloatArray, rows: Rows, widths: Sequence[int], rng: np.random.Generator
) -> IntArray:
    """A cell for each record; tables with all predictors are near those that `p` says.

    Parameters
    ----------
    p : ndarray, shape (R, K)
        Probabilities by distinct row.
    rows : Rows
        Of the n records.
    widths : sequence of int
        Cells of each predictor, in the order of the columns of ``rows.cells``.

    Returns
    -------
    ndarray of int, shape (n,)

    References
    ----------
    Deming, Stephan (1940), On a least squares adjustment of a sampled frequency table when the
    expected marginal totals are known, Ann. Math. Statist. 11 (raking).
    """
    order, n_cells = rng.permutation(rows.of_record.size), p.shape[1]
    ends = np.concatenate([[0], np.cumsum(widths)])
    found = np.empty(order.size, dtype=np.int64)
    due = np.zeros((rows.cells.shape[1], n_cells))
    for records in _blocks(order, _LARGEST_BLOCK // n_cells):
        own, place, times = np.unique(
            rows.of_record[records], return_inverse=True, return_counts=True
        )
        shares = rows.cells[own]
        expected = shares.T @ (times[:, None] * p[own])
        wanted = expected + due * np.minimum(1, np.sqrt(expected) / _GENTLE)
        raked = _raked(p[own], times, shares, wanted, ends)
        found[records] = drawn(raked, place, rng)
        came = np.bincount(place * n_cells + found[records], minlength=own.size * n_cells)
        due += expected - shares.T @ came.reshape(own.size, n_cells)
    return found


def _blocks(order: IntArray, most: int) -> Iterator[IntArray]:
    """A quarter of the records, a quarter of those left, ..., one, one; at most so many."""
    start = 0
    while start < order.size:
        size = min(max(most, 1), -(-(order.size - start) // 4))
        yield order[start : start + size]
        start += size


def _raked(
    p: FloatArray, times: IntArray, shares: sparse.csr_array, wanted: FloatArray, ends: IntArray
) -> FloatArray:
    """Probabilities (R, K) of rows that so many records have, whose sums over records are nearer to
    `wanted` (L, K), which may have cells below 0."""
    raked: FloatArray = p.copy()
    for _ in range(_SWEEPS):
        for first, last in itertools.pairwise(ends):
            own = shares[:, first:last]
            now = own.T @ (times[:, None] * raked)
            factor = np.maximum(wanted[first:last], _LEAST) / np.maximum(now, _LEAST)
            raked *= np.exp(own @ np.log(np.clip(factor, 1 / _FARTHEST, _FARTHEST)))
            raked /= raked.sum(axis=1, keepdims=True)
    return raked
