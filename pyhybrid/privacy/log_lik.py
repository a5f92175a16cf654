"""The log-likelihood of n records at S draws, computed in blocks when it is asked for.

Records that share a row of the data share a column of the log-likelihood, and blocks of columns are
computed one after the other: what is asked for is a reduction over draws or over records, and the
S x n matrix is never held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray

__all__ = ["LogLik"]

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class LogLik:
    """Unweighted log-likelihood f_si in nats. Confidential: a function of the data.

    Attributes
    ----------
    make : callable
        Each call yields the matrix again, from its first column to its last, in blocks of shape
        (S, b): one column per distinct row.
    row_of : ndarray of int, shape (n,)
        Column of each record.
    """

    make: Callable[[], Iterable[FloatArray]]
    row_of: IntArray

    @classmethod
    def of(cls, matrix: FloatArray) -> LogLik:
        """Of a matrix (S, n) that is at hand."""
        return cls(make=lambda: (matrix,), row_of=np.arange(matrix.shape[1]))

    def __repr__(self) -> str:
        return f"<LogLik of {self.n} records in {self.n_rows} rows>"

    @property
    def n(self) -> int:
        """Number of records."""
        return self.row_of.size

    @cached_property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return int(self.row_of.max()) + 1

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Rows and their block (S, b), from the first to the last."""
        start = 0
        for block in self.make():
            yield slice(start, start + block.shape[1]), block
            start += block.shape[1]

    def at(self, draws: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> LogLik:
        """The same at some of the draws: positions, or a mask of shape (S,)."""
        return LogLik(make=lambda: (block[draws] for block in self.make()), row_of=self.row_of)

    def less(self, center: FloatArray) -> LogLik:
        """f_si less the center of its record, shape (n,), a function of the record's row."""
        first = np.full(self.n_rows, self.n, dtype=np.intp)
        np.minimum.at(first, self.row_of, np.arange(self.n))
        own = center[first]
        return LogLik(
            make=lambda: (block - own[rows] for rows, block in self.blocks()), row_of=self.row_of
        )

    def by_record(self, reduce: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """A reduction over draws, (S, b) to (b,), of every record, shape (n,)."""
        return np.concatenate([reduce(block) for block in self.make()])[self.row_of]

    @cached_property
    def lowest(self) -> FloatArray:
        """Smallest f of each record over the draws, shape (n,); a NaN stays."""
        return self.by_record(lambda block: block.min(axis=0))

    @cached_property
    def highest(self) -> FloatArray:
        """Largest f of each record over the draws, shape (n,); a NaN stays."""
        return self.by_record(lambda block: block.max(axis=0))

    def total(self, weight: FloatArray) -> FloatArray:
        """sum_i weight_i f_si, shape (S,); records of weight 0 do not count."""
        by_row = np.bincount(self.row_of, weights=weight, minlength=self.n_rows)
        total: FloatArray | None = None
        for rows, block in self.blocks():
            used = by_row[rows] != 0
            part = block[:, used] @ by_row[rows][used]
            total = part if total is None else total + part
        assert total is not None
        return np.asarray(total)

    def totals(self, weights: FloatArray) -> FloatArray:
        """sum_i weights_ik f_si, shape (S, k); a weight of 0 leaves out what is not finite."""
        by_row = np.zeros((self.n_rows, weights.shape[1]))
        np.add.at(by_row, self.row_of, weights)
        total: FloatArray | None = None
        for rows, block in self.blocks():
            used = (by_row[rows] != 0).any(axis=1)
            part = np.asarray(block[:, used], dtype=np.float64) @ by_row[rows][used]
            total = part if total is None else total + part
        assert total is not None
        return np.asarray(total)

    def clipped_total(
        self,
        alpha: FloatArray,
        below: float,
        above: float,
        reference: FloatArray | None = None,
        excess: FloatArray | None = None,
    ) -> FloatArray:
        """sum_i of alpha_i (f_si - reference_i) + excess_s, clipped to [-below, above], (S,)."""
        first = np.full(self.n_rows, self.n, dtype=np.intp)
        np.minimum.at(first, self.row_of, np.arange(self.n))
        center = np.zeros(self.n_rows) if reference is None else reference[first]
        pairs, count = np.unique(
            np.column_stack([self.row_of, alpha])[alpha > 0], axis=0, return_counts=True
        )
        own_rows, own_alpha = pairs[:, 0].astype(np.intp), pairs[:, 1]
        total: FloatArray | None = None
        for rows, block in self.blocks():
            here = (own_rows >= rows.start) & (own_rows < rows.stop)
            place = own_rows[here]
            moved = own_alpha[here] * (block[:, place - rows.start] - center[place])
            if excess is not None:
                moved += excess[:, None]
            part = np.clip(moved, -below, above) @ count[here]
            total = part if total is None else total + part
        assert total is not None
        return total

    def largest_by_draw(self, alpha: FloatArray) -> FloatArray:
        """max_i |alpha_i f_si|, shape (S,); records of weight 0 do not count, a NaN is infinite."""
        top = np.zeros(self.n_rows)
        np.maximum.at(top, self.row_of, alpha)  # the records of a row differ in weight only
        largest: FloatArray | None = None
        for rows, block in self.blocks():
            used = top[rows] > 0
            own = np.abs(block[:, used] * top[rows][used]).max(axis=1, initial=0)
            if block.dtype == np.float32:  # products are float64: up by what rounding may have lost
                own = own * (1 + float(np.finfo(np.float32).eps))
            largest = own if largest is None else np.maximum(largest, own)
        assert largest is not None
        return np.where(np.isnan(largest), np.inf, largest)
