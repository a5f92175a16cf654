r"""The recomputed change of count weights: every record is counted in the balls around it.

Record i leaves its group of n records: the risk of j becomes 1 - (s_j - 1{i in B_j})/(n - 1), s_j
records being in the ball B_j. Each weight takes one of two values, so that the sums over j are
differences of prefix sums along the sorted values: O(S n) after sorting.

References
----------
[H22] Hu, Savitsky, Williams (2022), JSSAM 10:1370-1399, sec. 2.
[V25] Hu, Savitsky, Williams, Maximizing utility for vector-weighted pseudo posterior mechanisms,
alg. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_finite
from pyhybrid.privacy.count_risk import balls_around, values_by_pattern
from pyhybrid.privacy.weight_sensitivity import Map, WeightsWithout
from pyhybrid.privacy.weighted_log_lik import IntArray
from pyhybrid.privacy.weights import count_weights

__all__ = ["CountWithout", "count_without"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CountWithout:
    """Count weights of a database and of it without each record. Confidential.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
        Weights of the whole database.
    inside, outside : ndarray, shape (n,)
        Weight of record j where the record that left was inside its ball, and where it was in its
        group but outside.
    groups : sequence of ndarray of int
        Records that are compared with each other.
    low, high, place : ndarray of int, shape (n,)
        Ball of record j as the range low .. high - 1 of the sorted distinct values of its group,
        and its own place there.
    """

    alpha: FloatArray
    inside: FloatArray
    outside: FloatArray
    groups: Sequence[IntArray]
    low: IntArray
    high: IntArray
    place: IntArray

    def mapped(self, change: Map) -> CountWithout:
        """The same after a map that changes each weight by itself: (n,) to (n,)."""
        return replace(
            self,
            alpha=change(self.alpha),
            inside=change(self.inside),
            outside=change(self.outside),
        )

    def general(self) -> WeightsWithout:
        """In the form of other weights, at O(S n^2) for their terms."""

        def one(i: int) -> FloatArray:
            alpha = self.alpha.copy()
            group = next(rows for rows in self.groups if i in rows)
            has = (self.low[group] <= self.place[i]) & (self.place[i] < self.high[group])
            alpha[group] = np.where(has, self.inside[group], self.outside[group])
            return np.asarray(alpha)

        return WeightsWithout(
            alpha=self.alpha,
            without=lambda records: np.column_stack([one(int(i)) for i in records]),
            refitted=lambda i, _: one(i),
            movers=np.arange(self.alpha.size),
            leverage=np.zeros(self.alpha.size),
        )

    def terms(self, matrix: FloatArray) -> FloatArray:
        """T, shape (S, n), for a checked log-likelihood matrix."""
        changes = _times(matrix, self.alpha)
        left = self.alpha - self.outside
        entered = self.outside - self.inside
        for group in self.groups:
            if group.size == 1:
                continue
            own, held = (
                _times(matrix[:, group], left[group]),
                _times(matrix[:, group], entered[group]),
            )
            n_values = int(self.place[group].max()) + 1
            edges = np.zeros((n_values + 1, matrix.shape[0]))
            np.add.at(edges, self.low[group], held.T)
            np.subtract.at(edges, self.high[group], held.T)
            covering = np.cumsum(edges, axis=0)[self.place[group]].T
            with np.errstate(invalid="ignore"):
                changes[:, group] += own.sum(axis=1, keepdims=True) - own + covering - held
        return changes


def count_without(
    y: Any,
    *,
    radius: float = 0.2,
    kind: str = "relative",
    pattern: Any = None,
    scale: float = 1.0,
    shift: float = 0.0,
) -> CountWithout:
    """Count weights of `radius_risk`, recounted without each record.

    Parameters
    ----------
    y, radius, kind, pattern
        As in `radius_risk`.
    scale, shift : float
        As in `count_weights`.

    References
    ----------
    [H22] sec. 2; [V25] alg. 3.
    """
    check_finite(scale, "scale"), check_finite(shift, "shift")
    values, groups = values_by_pattern(y, radius, kind, pattern)
    n = values.size
    risk, inside, outside = np.empty(n), np.zeros(n), np.zeros(n)
    low, high, place = (np.zeros(n, dtype=np.intp) for _ in range(3))
    for rows in groups:
        balls = balls_around(values[rows], radius, kind)
        low[rows], high[rows] = balls.low, balls.high
        place[rows] = np.unique(values[rows], return_inverse=True)[1]
        risk[rows] = 1 - balls.sizes / rows.size
        if rows.size > 1:
            inside[rows] = 1 - (balls.sizes - 1) / (rows.size - 1)
            # Where the ball holds everyone, nobody is outside, and this is not used.
            outside[rows] = np.maximum(1 - balls.sizes / (rows.size - 1), 0.0)

    def weigh(shares: FloatArray) -> FloatArray:
        return count_weights(shares, scale=scale, shift=shift)

    return CountWithout(
        alpha=weigh(risk),
        inside=weigh(inside),
        outside=weigh(outside),
        groups=groups,
        low=low,
        high=high,
        place=place,
    )


def _times(matrix: FloatArray, factor: FloatArray) -> FloatArray:
    """Columns times factors, 0 where the factor is 0 even if the column is not finite."""
    product = np.zeros(matrix.shape)
    with np.errstate(over="ignore"):
        np.multiply(matrix, factor, out=product, where=factor != 0)
    return product
