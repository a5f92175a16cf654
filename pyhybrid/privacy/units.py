r"""Units of privacy that are more than a record: the terms of a unit's records are summed first.

Removing person u from the database takes away all records of u. With
:math:`g_u(\theta) = \sum_{i \in u} \alpha_i f_i(\theta)` in the place of a record's term,
what holds for one record holds for one unit: the bound is
:math:`\max_u \max_s |g_u(\theta_s)|`, up to
as many times that of a record as a unit has records.

References
----------
[S22] sec. 2, with the record replaced by a group of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.bounds import LipschitzBounds, largest_abs, quantile_type7
from pyhybrid.privacy.log_lik import LogLik

__all__ = ["Units", "bounds_by_unit", "unit_terms"]

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Which records belong to one unit of privacy.

    Attributes
    ----------
    column : str
        The column that names the units.
    of : ndarray of int, shape (n,)
        Unit of each record, from 0 to the number of units less 1.
    """

    column: str
    of: IntArray

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

    def mapped(self, weight_map: Callable[[FloatArray], FloatArray], f: FloatArray) -> FloatArray:
        """One weight per unit from the units' values, for each of its records, shape (n,).

        `f` (n,) holds the value of its unit for every record; the map sees each unit once.
        """
        return weight_map(f[self.first])[self.of]

    def lowest(self, values: FloatArray) -> FloatArray:
        """The lowest value among the records of each record's unit, shape (n,)."""
        lowest = np.full(self.n, np.inf)
        np.minimum.at(lowest, self.of, values)
        return lowest[self.of]

    def summed(self, terms: FloatArray) -> FloatArray:
        """Terms of the records (n,) summed by unit, shape (n_units,)."""
        return np.asarray(np.bincount(self.of, weights=terms, minlength=self.n), dtype=np.float64)


def unit_terms(log_lik: LogLik, alpha: FloatArray, unit_of: IntArray) -> FloatArray:
    """g_u at each draw, shape (S, n_units), nats; records of weight 0 do not count.

    Parameters
    ----------
    log_lik : LogLik
        Unweighted, of n records.
    alpha : ndarray, shape (n,)
        Record weights in [0, 1].
    unit_of : ndarray of int, shape (n,)
        Unit of each record.
    """
    used, shape = alpha > 0, (log_lik.n_rows, int(unit_of.max()) + 1)
    weights = csr_matrix((alpha[used], (log_lik.row_of[used], unit_of[used])), shape=shape)
    total: FloatArray | None = None
    for rows, block in log_lik.blocks():
        # Only what is stored is multiplied: 0 times an infinite term does not arise.
        terms = np.asarray((weights[rows].T @ np.asarray(block, dtype=np.float64).T).T)
        total = terms if total is None else total + terms
    assert total is not None
    return total


def bounds_by_unit(
    slices: Callable[[], Iterable[LogLik]],
    alpha: FloatArray,
    units: Units,
    *,
    draw_quantile: float = 1.0,
) -> LipschitzBounds:
    """`pyhybrid.lipschitz_bounds` with units in the place of records.

    Parameters
    ----------
    slices : callable
        Each call yields the log-likelihood again at all draws, a slice of them at a time: memory is
        that of one slice. Called twice if `draw_quantile` < 1.
    alpha : ndarray, shape (n,)
        Record weights in [0, 1].
    units : Units
    draw_quantile : float, default 1
        As in `pyhybrid.lipschitz_bounds`.

    Returns
    -------
    LipschitzBounds
        `by_record` (n,) holds the bound of its unit for every record.
    """

    def terms() -> Iterable[FloatArray]:
        with np.errstate(invalid="ignore"):  # inf - inf in a unit: NaN, an unbounded one
            for log_lik in slices():
                yield unit_terms(log_lik, alpha, units.of)

    overall, limit = 0.0, np.inf
    if draw_quantile < 1:
        overall = limit = quantile_type7(
            np.concatenate([_largest_by_draw(own) for own in terms()]), draw_quantile
        )
    by_unit, kept = np.zeros(units.n), []
    for own in terms():
        kept.append(_largest_by_draw(own) <= limit)
        everywhere = largest_abs(own)
        largest = largest_abs(own[kept[-1]]) if kept[-1].any() else np.zeros_like(everywhere)
        by_unit = np.maximum(by_unit, np.where(np.isfinite(everywhere), largest, np.inf))
    return LipschitzBounds(
        by_record=by_unit[units.of],
        overall=max(overall, float(by_unit.max())),
        kept_draws=np.concatenate(kept),
        draw_quantile=draw_quantile,
    )


def _largest_by_draw(terms: FloatArray) -> FloatArray:
    """max_u |g_u| at each draw, shape (S,); a NaN counts as infinite."""
    largest = np.abs(terms).max(axis=1)
    return np.where(np.isnan(largest), np.inf, largest)
