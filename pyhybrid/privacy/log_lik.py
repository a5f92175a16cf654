r"""The log-likelihood of n records at S draws, computed in blocks when it is asked for.

Records that share a row of the data share a column of the log-likelihood, and blocks of columns are
computed one after the other: what is asked for is a reduction over draws or over records. A charge
asks some twenty times, so that the last two matrices are held while they are small; a large one
never is. A unit of privacy that is more than a record has the sum of its records' terms (`Units`),
:math:`g_u = \sum_{i \in u} \alpha_i f_i`: [S22] sec. 2, with the record replaced by a group.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from pyhybrid.core.checks import FloatArray, IntArray

_HELD_ELEMENTS = 2**26  # of a matrix that is held: 512 MB

_HELD: list[tuple[weakref.ref[Any], weakref.ref[Any], tuple[FloatArray, ...]]] = []


def _held(
    bound: Any, draws: Any, make: Callable[[Any], Iterable[FloatArray]]
) -> tuple[FloatArray, ...]:
    """The blocks of `make(draws)`, of the last two that were asked for."""
    entry = [held for held in _HELD if held[0]() is bound and held[1]() is draws]
    if not entry:
        blocks = tuple(make(draws))
        for block in blocks:
            block.flags.writeable = False
        entry = [(weakref.ref(bound, _forget), weakref.ref(draws, _forget), blocks)]
    _HELD[:] = [*[held for held in _HELD if held is not entry[0]][-1:], *entry]
    return entry[0][2]


def _forget(gone: weakref.ref[Any]) -> None:
    _HELD[:] = [held for held in _HELD if gone is not held[0] and gone is not held[1]]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LogLik:
    """Unweighted log-likelihood f_si in nats; each call of `make` yields the matrix again in blocks
    (S, b), one column per distinct row. Confidential: a function of the data."""

    make: Callable[[], Iterable[FloatArray]]
    row_of: IntArray  # (n,) column of each record

    @classmethod
    def of_draws(
        cls, bound: Any, draws: Any, make: Callable[[Any], Iterable[FloatArray]], row_of: IntArray
    ) -> LogLik:
        """`make(draws)`, held after it was computed while `bound` and `draws` are in use."""
        log_lik = cls(make=lambda: _held(bound, draws, make), row_of=row_of)
        small = draws.n_draws * log_lik.n_rows <= _HELD_ELEMENTS
        return log_lik if small else replace(log_lik, make=lambda: make(draws))

    @classmethod
    def of(cls, matrix: FloatArray) -> LogLik:
        """Of a matrix (S, n) that is at hand."""
        return cls(make=lambda: (matrix,), row_of=np.arange(matrix.shape[1]))

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

    def reduced(
        self,
        part: Callable[[slice, FloatArray], FloatArray],
        join: Callable[[FloatArray, FloatArray], FloatArray] = np.add,
    ) -> FloatArray:
        """Sum, or another join, of `part` of each block's rows and columns, from the first on."""
        return np.asarray(reduce(join, (part(rows, block) for rows, block in self.blocks())))

    def at(self, draws: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> LogLik:
        """The same at some of the draws: positions, or a mask of shape (S,)."""
        return replace(self, make=lambda: (block[draws] for block in self.make()))

    def less(self, center: FloatArray) -> LogLik:
        """f_si less the center of its record, shape (n,), a function of the record's row."""
        by_row = center[self._first]
        return replace(self, make=lambda: (block - by_row[rows] for rows, block in self.blocks()))

    @cached_property
    def _first(self) -> IntArray:
        """First record of each row, shape (n_rows,)."""
        first = np.full(self.n_rows, self.n, dtype=np.intp)
        np.minimum.at(first, self.row_of, np.arange(self.n))
        return first

    def by_record(self, reduce: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """A reduction over draws, (S, b) to (b,), of every record, shape (n,)."""
        return np.concatenate([reduce(block) for block in self.make()])[self.row_of]

    def total(self, weight: FloatArray) -> FloatArray:
        """sum_i weight_i f_si, shape (S,); records of weight 0 do not count."""
        by_row = np.bincount(self.row_of, weights=weight, minlength=self.n_rows).astype(np.float64)

        def part(rows: slice, block: FloatArray) -> FloatArray:
            used = by_row[rows] != 0
            return np.asarray(block[:, used] @ by_row[rows][used])

        return self.reduced(part)

    def clipped_total(
        self,
        alpha: FloatArray,
        below: float,
        above: float,
        reference: FloatArray | None = None,
        excess: FloatArray | None = None,
    ) -> FloatArray:
        """sum_i of alpha_i (f_si - reference_i) + excess_s, clipped to [-below, above], (S,)."""
        center = np.zeros(self.n_rows) if reference is None else reference[self._first]
        used = alpha > 0
        pairs, place = np.unique(
            np.column_stack([self.row_of, alpha])[used], axis=0, return_inverse=True
        )
        count = np.bincount(place.reshape(-1), minlength=len(pairs))
        row_of_pair, alpha_of_pair = pairs[:, 0].astype(np.intp), pairs[:, 1]

        def part(rows: slice, block: FloatArray) -> FloatArray:
            here = (row_of_pair >= rows.start) & (row_of_pair < rows.stop)
            row = row_of_pair[here]
            moved = alpha_of_pair[here] * (block[:, row - rows.start] - center[row])
            if excess is not None:
                moved += excess[:, None]
            return np.asarray(np.clip(moved, -below, above) @ count[here])

        return self.reduced(part)

    def largest_by_draw(self, alpha: FloatArray) -> FloatArray:
        """max_i |alpha_i f_si|, shape (S,); records of weight 0 do not count, a NaN is infinite."""
        top = np.zeros(self.n_rows)
        np.maximum.at(top, self.row_of, alpha)  # the records of a row differ in weight only

        def part(rows: slice, block: FloatArray) -> FloatArray:
            used = top[rows] > 0
            return np.asarray(np.abs(block[:, used] * top[rows][used]).max(axis=1, initial=0))

        largest = self.reduced(part, np.maximum)
        return np.where(np.isnan(largest), np.inf, largest)


def spread_of(terms: FloatArray) -> FloatArray:
    """Largest less smallest value of each column, shape (b,); not finite if any value is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(terms.max(axis=0) - terms.min(axis=0))


def range_of(terms: FloatArray) -> FloatArray:
    """`spread_of`, infinite where it is NaN."""
    spread = spread_of(terms)
    return np.where(np.isnan(spread), np.inf, spread)


def deviation_of(terms: FloatArray) -> FloatArray:
    """Standard deviation of each column, with divisor S - 1, as R's sd, shape (b,); 0 for a single
    draw, infinite if any value is not finite."""
    if terms.shape[0] == 1:
        return np.where(np.isfinite(terms[0]), 0.0, np.inf)
    with np.errstate(invalid="ignore"):
        spread = (terms - terms[0]).std(axis=0, ddof=1)
    return np.where(np.isfinite(spread), spread, np.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Which records belong to one unit of privacy."""

    column: str  # that names the units
    of: IntArray  # (n,) unit of each record, from 0 to the number of units less 1

    @property
    def n(self) -> int:
        """Number of units."""
        return int(self.of.max()) + 1

    @property
    def first(self) -> IntArray:
        """Position of the first record of each unit, shape (n_units,)."""
        return np.unique(self.of, return_index=True)[1]

    def at(self, rows: IntArray) -> Units:
        """The units of some of the records, numbered anew."""
        return Units(column=self.column, of=np.unique(self.of[rows], return_inverse=True)[1])

    def lowest(self, values: FloatArray) -> FloatArray:
        """The lowest value among the records of each record's unit, shape (n,)."""
        lowest = np.full(self.n, np.inf)
        np.minimum.at(lowest, self.of, values)
        return lowest[self.of]


def unit_terms(log_lik: LogLik, alpha: FloatArray, unit_of: IntArray) -> FloatArray:
    """g_u at each draw, shape (S, n_units), nats, of records with weights alpha (n,) in units (n,);
    records of weight 0 do not count."""
    used, shape = alpha > 0, (log_lik.n_rows, int(unit_of.max()) + 1)
    weights = csr_matrix((alpha[used], (log_lik.row_of[used], unit_of[used])), shape=shape)
    # Only what is stored is multiplied: 0 times an infinite term does not arise.
    return log_lik.reduced(lambda rows, block: (weights[rows].T @ block.T).T)
