r"""Disclosure risk of single records: Lipschitz bounds, radius risk, pairwise risk.

Arrays in, records out; nothing here knows of models, Stan or tables.

The pseudo posterior mechanism releases a draw of theta from

.. math:: \xi(\theta \mid x) \propto \prod_i p(x_i \mid \theta)^{\alpha_i} \, \xi(\theta),

and the guarantee for one draw is :math:`\epsilon = 2 \Delta` with
:math:`\Delta = \max_i \max_s |\alpha_i f_{si}|`, :math:`f_{si} = \log p(x_i \mid \theta_s)`.

References
----------
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, eq. 3 and sec. 2.
[V25] Hu, Savitsky, Williams, Maximizing utility for vector-weighted pseudo posterior mechanisms.
[H22] Hu, Savitsky, Williams (2022), JSSAM 10:1370-1399.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_alpha,
    check_fraction,
    check_log_lik,
)
from pyhybrid.privacy.log_lik import LogLik

__all__ = [
    "LipschitzBounds",
    "bounds_of",
    "largest_abs",
    "lipschitz_bounds",
    "quantile_type7",
    "scaled_maxima",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class LipschitzBounds:
    """Lipschitz bounds of a weighted posterior, in nats. Confidential: functions of the data.

    Attributes
    ----------
    by_record : ndarray, shape (n,)
        D_i, the largest weighted absolute log-likelihood of record i over the kept draws.
    overall : float
        The database bound (the papers' Delta); epsilon of one released draw is twice this.
    kept_draws : ndarray of bool, shape (S,)
        Draws that may be released. All True when `draw_quantile` is 1.
    draw_quantile : float
        Quantile of the row maxima at which draws were dropped, in (0, 1].
    """

    by_record: FloatArray
    overall: float
    kept_draws: npt.NDArray[np.bool_]
    draw_quantile: float = 1.0

    @property
    def efficiency(self) -> float:
        """Mean by-record bound over the overall bound; 1 means that no record has slack."""
        if not np.isfinite(self.overall):
            return 0.0
        return float(np.mean(self.by_record) / self.overall) if self.overall > 0 else 1.0


def lipschitz_bounds(
    log_lik: Any, alpha: Any = None, *, draw_quantile: float = 1.0
) -> LipschitzBounds:
    r"""By-record and overall Lipschitz bounds from a log-likelihood matrix.

    The supplement of [V25] writes the bound as a leave-one-out difference
    :math:`|\sum_j f_{sj} - \sum_{j \ne i} f_{sj}|`, which is :math:`|f_{si}|`; this function uses
    that identity and is linear in S n.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats, draws in rows, from the posterior weighted by `alpha`.
        NaN and infinities mean an unbounded record, in whichever draw they stand. An array of
        float32 is read as it is, in half the memory; each bound is then rounded up by one unit in
        the last place of float32, so that it is never below that of the values before they were
        rounded.
    alpha : array_like, shape (n,), optional
        Record weights in [0, 1]; all 1 if omitted.
    draw_quantile : float, default 1
        q in (0, 1]. With T_s = max_i |alpha_i f_si| and L = quantile(T, q) (R type 7), draws with
        T_s > L are dropped whole (nothing is clipped) and L is the overall bound. Below 1 the
        bound is a statement with a failure probability.

    Returns
    -------
    LipschitzBounds
        By-record bounds (n,), overall bound and kept draws (S,).

    Raises
    ------
    InvalidInput
        For a wrong shape, weights outside [0, 1] or a quantile outside (0, 1].

    References
    ----------
    [S22] sec. 2; [V25] alg. 1 and supplement; spec: D_i = max_s |alpha_i f_i(theta_s)|.

    Examples
    --------
    >>> lipschitz_bounds([[-1.0, -4.0], [-2.0, -3.0]], alpha=[1.0, 0.5]).by_record
    array([2., 2.])
    """
    matrix = check_log_lik(log_lik)
    weights = np.ones(matrix.shape[1]) if alpha is None else check_alpha(alpha, matrix.shape[1])
    quantile = check_fraction(draw_quantile, "draw_quantile")
    return bounds_of(LogLik.of(matrix), weights, draw_quantile=quantile)


def bounds_of(log_lik: LogLik, alpha: FloatArray, *, draw_quantile: float = 1.0) -> LipschitzBounds:
    """`lipschitz_bounds` of a log-likelihood that is computed in blocks, alpha of shape (n,)."""
    kept: npt.NDArray[np.bool_] | None = None
    overall = 0.0
    if draw_quantile < 1:
        row_max = log_lik.largest_by_draw(alpha)
        overall = quantile_type7(row_max, draw_quantile)
        kept = row_max <= overall
    n_draws, largest = 0, []
    for _, block in log_lik.blocks():
        n_draws = block.shape[0]
        largest.append(largest_abs(block) if kept is None else _largest_kept(block, kept))
    by_record = scaled_maxima(np.concatenate(largest)[log_lik.row_of], alpha)
    return LipschitzBounds(
        by_record=by_record,
        overall=max(overall, float(by_record.max())),  # above L if a record is unbounded
        kept_draws=np.ones(n_draws, dtype=bool) if kept is None else kept,
        draw_quantile=draw_quantile,
    )


def largest_abs(matrix: FloatArray) -> FloatArray:
    """Largest absolute value of each column of an (S, n) matrix; a NaN counts as infinite."""
    # Two reductions without a temporary are faster than np.abs(matrix).max(axis=0), and
    # np.maximum/minimum propagate NaN, so that one pass over n finds every non-finite record.
    largest = np.maximum(matrix.max(axis=0), -matrix.min(axis=0))
    return _widened(np.where(np.isnan(largest), np.inf, largest))


def _largest_kept(matrix: FloatArray, kept: npt.NDArray[np.bool_]) -> FloatArray:
    """`largest_abs` over the kept draws; infinite if any draw is, kept or not."""
    largest = largest_abs(matrix[kept])
    return np.where(np.isfinite(largest_abs(matrix)), largest, np.inf)


def _widened(largest: FloatArray) -> FloatArray:
    """float32 as float64, up by one unit in the last place: a bound must not be rounded down."""
    if largest.dtype == np.float32:
        return np.asarray(np.nextafter(largest, np.float32(np.inf)), dtype=np.float64)
    return largest


def scaled_maxima(largest: FloatArray, alpha: FloatArray) -> FloatArray:
    """alpha_i max_s |f_si|, with 0 where alpha_i = 0 even if the record is unbounded."""
    result = np.zeros_like(largest)
    np.multiply(largest, alpha, out=result, where=alpha > 0)
    return result


def quantile_type7(values: FloatArray, probability: float) -> float:
    """R's default sample quantile, defined for infinite values as R defines it."""
    ordered = np.sort(values)
    position = 1 + (ordered.size - 1) * probability
    below, above = int(np.floor(position)), int(np.ceil(position))
    low, high = ordered[below - 1], ordered[above - 1]
    if low == high:  # infinite ones, too
        return float(low)
    part = position - below
    return float((1 - part) * low + part * high)
