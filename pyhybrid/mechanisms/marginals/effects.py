r"""Effects of a log-linear model, the probabilities they give, and records that are known.

:math:`p(k \mid z) \propto \exp(a_k + \sum_l \theta_{kl} z_l)`: see
`pyhybrid.mechanisms.marginals.log_linear`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from pyhybrid.core.checks import FloatArray

__all__ = ["Effects", "Known", "TableWithNoise", "covariance", "probabilities", "with_ones"]

_LEAST = 1e-9  # variance of a cell that is divided by
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Effects:
    """Intercepts (column 0) and effects of one draw, or of the mode, shape (K, 1 + L)."""

    values: FloatArray


def probabilities(effects: Effects, cells: sparse.csr_array) -> FloatArray:
    """p(k | z) for rows of shares z (R, L), shape (R, K)."""
    score = cells @ effects.values[:, 1:].T + effects.values[:, 0]
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=1, keepdims=True)
    return np.asarray(score)


def with_ones(cells: sparse.csr_array) -> FloatArray:
    """Dense, after a column of ones."""
    dense = np.asarray(cells.todense())
    return np.hstack([np.ones((dense.shape[0], 1)), dense])


def covariance(p: FloatArray, times: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Of sums over rows of 1{y = k} times columns of `left` (R, A), and of `right` (R, B), given
    these, shape (K, A, K, B)."""
    weighted = times[:, None] * p
    one = (p[:, :, None] * left[:, None, :]).reshape(p.shape[0], -1)
    other = (weighted[:, :, None] * right[:, None, :]).reshape(p.shape[0], -1)
    n_rows = p.shape[1]
    found = -(one.T @ other).reshape(n_rows, left.shape[1], n_rows, right.shape[1])
    for k in range(n_rows):
        found[k, :, k] += left.T @ (weighted[:, k, None] * right)
    return np.asarray(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableWithNoise:
    """A noisy table of a column with one predictor.

    Attributes
    ----------
    counts : ndarray, shape (K, L)
        In records; may be negative.
    variance : float or ndarray, shape (K, 1)
        Of the noise of a cell, >= 0.
    """

    counts: FloatArray
    variance: float | FloatArray

    @property
    def variances(self) -> FloatArray:
        """Of each cell, shape (K, L)."""
        return np.asarray(np.broadcast_to(self.variance, self.counts.shape), dtype=np.float64)

    def with_another(self, other: TableWithNoise) -> TableWithNoise:
        """Both measurements of one table, each by its precision."""
        one, two = (1 / np.maximum(own.variance, _LEAST) for own in (self, other))
        counts = (one * self.counts + two * other.counts) / (one + two)
        return TableWithNoise(counts=counts, variance=1 / (one + two))


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """Records of a reference, whose cells are known.

    Attributes
    ----------
    outcome : ndarray of int, shape (n,)
        Cell of each.
    cells : sparse matrix, shape (n, L)
        Shares of their predictors.
    weight : float
        Power of their likelihood, in (0, 1].
    """

    outcome: IntArray
    cells: sparse.csr_array
    weight: float

    def log_lik(self, effects: FloatArray) -> float:
        """Weighted log-likelihood."""
        p = probabilities(Effects(values=effects), self.cells)
        own = p[np.arange(self.outcome.size), self.outcome]
        return self.weight * float(np.sum(np.log(np.maximum(own, 1e-300))))

    def local(self, effects: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Information (K (1 + L), K (1 + L)), as if all were like those at `rows`, and gradient
        (K (1 + L),)."""
        p = probabilities(Effects(values=effects), self.cells)
        rest = -p
        rest[np.arange(self.outcome.size), self.outcome] += 1
        slope = np.hstack([rest.sum(axis=0)[:, None], np.asarray((self.cells.T @ rest).T)])
        design = with_ones(self.cells[rows])
        times = np.full(rows.size, self.weight * self.outcome.size / rows.size)
        information = covariance(p[rows], times, design, design)
        return information.reshape(slope.size, slope.size), self.weight * slope.ravel()
