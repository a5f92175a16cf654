r"""Reach of single records' terms: Lipschitz bounds, loss ranges, deviations.

One draw of the posterior weighted by alpha, :math:`\prod_i p(x_i \mid \theta)^{\alpha_i}` times
the prior, costs :math:`\epsilon = 2 \Delta`, :math:`\Delta = \max_i \max_s |\alpha_i f_{si}|`,
:math:`f_{si} = \log p(x_i \mid \theta_s)`. Without record i its log changes by
:math:`g_i(\theta) - \log E[\exp g_i]`, :math:`g_i = \alpha_i f_i`. A constant in g_i cancels, so
that the loss of a draw lies in [-R_i, R_i] with the range :math:`R_i = \sup g_i - \inf g_i`, which
is never above :math:`2 \sup |g_i|`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from pyhybrid.core.checks import FloatArray, check_alpha, check_fraction, check_log_lik
from pyhybrid.privacy.log_lik import LogLik, deviation_of, range_of, spread_of


@dataclass(frozen=True, kw_only=True, eq=False)
class LossRanges:
    """Ranges of the records' terms, in nats. Confidential: functions of the data.

    Attributes
    ----------
    by_record : ndarray, shape (n,)
        R_i, largest less smallest term of record i over the kept draws.
    overall : float
        Largest R_i; epsilon of one released draw under "remove" (`epsilon_of_range`).
    kept_draws : ndarray of bool, shape (S,)
        Draws that may be released. All True when `draw_quantile` is 1.
    draw_quantile : float
        Quantile at which draws were dropped, in (0, 1].
    """

    by_record: FloatArray
    overall: float
    kept_draws: npt.NDArray[np.bool_]
    draw_quantile: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class LipschitzBounds(LossRanges):
    """Lipschitz bounds of a weighted posterior, in nats. Confidential: functions of the data.

    `by_record` has D_i, the largest weighted absolute log-likelihood of record i over the kept
    draws, and `overall` the papers' Delta: epsilon of one released draw is twice this. The others
    are as in `LossRanges`.
    """

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

    [S22] sec. 2; [V25] alg. 1. The supplement of the earlier version of [V25] writes a
    leave-one-out difference :math:`|\sum_j f_{sj} - \sum_{j \ne i} f_{sj}|`, which is
    :math:`|f_{si}|`; this function uses that identity and is linear in S n:
    D_i = max_s |alpha_i f_i(theta_s)|.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats, draws in rows, from the posterior weighted by `alpha`.
        NaN and infinities mean an unbounded record, in whichever draw they stand.
    alpha : array_like, shape (n,), optional
        Record weights in [0, 1]; all 1 if omitted.
    draw_quantile : float, default 1
        q in (0, 1]. With T_s = max_i |alpha_i f_si| and L = quantile(T, q) (R type 7), draws with
        T_s > L are dropped whole (nothing is clipped) and L is the overall bound. Below 1 the
        bound is a statement with a failure probability.

    Examples
    --------
    >>> lipschitz_bounds([[-1.0, -4.0], [-2.0, -3.0]], alpha=[1.0, 0.5]).by_record
    array([2., 2.])
    """
    matrix, weights = _matrix_and_weights(log_lik, alpha)
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
        every = largest_abs(block)
        if kept is not None:  # infinite if any draw is, kept or not
            of_kept = largest_abs(block[kept]) if kept.any() else 0.0
            every = np.where(np.isfinite(every), of_kept, np.inf)
        largest.append(every)
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
    return np.where(np.isnan(largest), np.inf, largest)


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


def loss_ranges(log_lik: Any, alpha: Any = None, *, draw_quantile: float = 1.0) -> LossRanges:
    """By-record and overall loss ranges from a log-likelihood matrix [DR19], [S22] sec. 2.

    A maximum over S draws is a lower estimate of a supremum and grows with S.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats at draws from the posterior weighted by `alpha`. A
        record that is NaN or infinite in any draw has an infinite range.
    alpha : array_like, shape (n,), optional
        Record weights in [0, 1]; all 1 if omitted. A weight of 0 has range 0.
    draw_quantile : float, default 1
        q in (0, 1]. With T_s = max_i |g_is - median of g_i| over the records with a finite range
        and L = quantile(T, q) (R type 7), draws with T_s > L are dropped whole. Below 1 the range
        is a statement with a failure probability.

    Examples
    --------
    >>> loss_ranges([[-1.0, -40.0], [-2.0, -40.5]], alpha=[1.0, 0.5]).by_record
    array([1.  , 0.25])
    >>> gaussian_mu([[-1.0], [-2.0], [-3.0], [-2.0]]).round(3)
    array([0.816])
    """
    matrix, weights = _matrix_and_weights(log_lik, alpha)
    quantile = check_fraction(draw_quantile, "draw_quantile")
    bounded = np.isfinite(spread_of(matrix))
    kept = np.ones(len(matrix), dtype=bool)
    if quantile < 1:
        used = matrix[:, bounded]
        distance = np.abs(used - np.median(used, axis=0)) * weights[bounded]
        farthest = distance.max(axis=1, initial=0.0)
        kept = farthest <= quantile_type7(farthest, quantile)
    spread = range_of(matrix[kept])
    # Infinite also where only a dropped draw is not finite, as for the Lipschitz bounds.
    by_record = scaled_maxima(np.where(bounded, spread, np.inf), weights)
    return LossRanges(
        by_record=by_record, overall=float(by_record.max()), kept_draws=kept, draw_quantile=quantile
    )


def gaussian_mu(log_lik: Any, alpha: Any = None) -> FloatArray:
    r"""Mu of one released draw by record, shape (n,): the deviation of its own term.

    As n grows, the posteriors with and without record i tend to normals with one covariance, and
    releasing one draw is mu_i-GDP with mu_i the standard deviation of :math:`g_i = \alpha_i f_i`
    over the posterior [DRS22] def. 2.6, [S22] sec. 4. Unlike a maximum it does not grow with the
    number of draws, and it composes by squares (`mu_of_release`). What leaves with a record beside
    its own term, refits show (`refit_of`). Confidential: a function of the data.

    Parameters
    ----------
    log_lik, alpha
        As for `loss_ranges`. A record that is not finite in any draw has an infinite mu; one of
        weight 0 has mu 0.
    """
    matrix, weights = _matrix_and_weights(log_lik, alpha)
    return scaled_maxima(deviation_of(matrix), weights)


def _matrix_and_weights(log_lik: Any, alpha: Any) -> tuple[FloatArray, FloatArray]:
    matrix = check_log_lik(log_lik)
    n = matrix.shape[1]
    return matrix, np.ones(n) if alpha is None else check_alpha(alpha, n)


def share_bound(share: float, n: float, confidence: float) -> float:
    """Clopper-Pearson upper bound of a probability; n need not be whole [CP34]."""
    count = min(max(share, 0.0), 1.0) * n
    return 1.0 if count >= n else float(betaincinv(count + 1, n - count, confidence))
