r"""Weighted terms g_i = alpha_i f_i of single records, in blocks of columns that fit in memory.

Range, deviation and leave-one-out loss are all functions of one column: the term of one record over
the draws. They are written once for a block of columns and run over a matrix or over a `LogLik`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_alpha, check_log_lik
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.log_lik import LogLik

__all__ = ["IntArray", "Terms", "lazy_terms", "spread_of", "terms_of"]

IntArray = npt.NDArray[np.intp]

_ELEMENTS = 2**21  # of a block: 16 MB in float64
_HALF_UNIT = float(np.finfo(np.float32).eps) / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """The distinct terms of a database and which record has which. Confidential.

    Attributes
    ----------
    blocks : callable
        Yields (columns, terms, error): indices (b,) of distinct terms, the terms (S, b) in
        float64, and the largest error (b,) that rounding to float32 can have left in them.
    place : ndarray of int, shape (n,)
        Distinct term of record i.
    n_distinct : int
        Number of distinct terms.
    """

    blocks: Callable[[], Iterator[tuple[IntArray, FloatArray, FloatArray]]]
    place: IntArray
    n_distinct: int

    def by_record(
        self, compute: Callable[[FloatArray, FloatArray, IntArray], tuple[FloatArray, ...]]
    ) -> tuple[tuple[FloatArray, ...], npt.NDArray[np.bool_]]:
        """What `compute` makes of (terms, error, columns) of each block, put in order of records.

        Returns
        -------
        parts : tuple of ndarray, first axis n
            `compute` sees 0 in place of a column that is not finite.
        unbounded : ndarray of bool, shape (n,)
            Records whose term is NaN or infinite in some draw.
        """
        found: list[FloatArray] = []
        unbounded = np.zeros(self.n_distinct, dtype=bool)
        for columns, terms, error in self.blocks():
            wrong = ~np.isfinite(spread_of(terms))
            unbounded[columns] = wrong
            parts = compute(np.where(wrong, 0.0, terms) if wrong.any() else terms, error, columns)
            if not found:
                found = [np.empty((self.n_distinct, *part.shape[1:])) for part in parts]
            for whole, part in zip(found, parts, strict=True):
                whole[columns] = part
        return tuple(whole[self.place] for whole in found), unbounded[self.place]


def terms_of(log_lik: Any, alpha: Any = None) -> Terms:
    """The terms of a log-likelihood matrix (S, n) and weights (n,), both checked."""
    matrix = check_log_lik(log_lik)
    n_draws, n = matrix.shape
    weights = np.ones(n) if alpha is None else check_alpha(alpha, n)
    width = max(1, _ELEMENTS // n_draws)

    def blocks() -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        for start in range(0, n, width):
            columns = np.arange(start, min(start + width, n))
            yield columns, *_weighted(matrix[:, start : start + width], weights[columns])

    return Terms(blocks=blocks, place=np.arange(n), n_distinct=n)


def lazy_terms(log_lik: LogLik, alpha: FloatArray) -> Terms:
    """The terms of a `LogLik` and weights (n,): one for each distinct pair of row and weight."""
    alpha = check_alpha(alpha, log_lik.n)
    pairs, place = np.unique(np.column_stack((log_lik.row_of, alpha)), axis=0, return_inverse=True)
    rows = pairs[:, 0].astype(np.intp)  # sorted, as `unique` sorts by row first

    def blocks() -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        stop = 0
        for place_of, block in log_lik.blocks():
            stop = place_of.stop
            columns = np.arange(*np.searchsorted(rows, (place_of.start, stop)))
            if columns.size:
                own = block[:, rows[columns] - place_of.start]
                yield columns, *_weighted(own, pairs[columns, 1])
        if stop <= rows[-1]:
            raise InvalidInput(f"row_of must name columns of the blocks, 0 to {stop - 1}")

    return Terms(blocks=blocks, place=place.reshape(-1), n_distinct=len(pairs))


def _weighted(matrix: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """alpha_i f_si, 0 where alpha_i = 0 even if f_si is not finite; and its rounding error."""
    terms = np.zeros(matrix.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(matrix, alpha, out=terms, where=alpha > 0)
        if matrix.dtype != np.float32:
            return terms, np.zeros(matrix.shape[1])
        return terms, np.nan_to_num(np.abs(terms).max(axis=0)) * _HALF_UNIT


def spread_of(terms: FloatArray) -> FloatArray:
    """Largest less smallest value of each column, shape (b,); not finite if any value is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(terms.max(axis=0) - terms.min(axis=0))
