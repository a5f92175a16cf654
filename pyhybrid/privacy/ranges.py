r"""Loss ranges: how far a record's log-likelihood moves, which is what its presence can tell.

Without record i, the log pseudo posterior changes by :math:`g_i(\theta) - \log E[\exp g_i]` with
:math:`g_i = \alpha_i f_i`. A constant in g_i cancels, so that the privacy loss of a released draw
lies in [-R_i, R_i] with the range :math:`R_i = \sup g_i - \inf g_i`, which is never above the
papers' :math:`2 \sup |g_i|`.

References
----------
[DR19] Durfee, Rogers (2019), Practical differentially private top-k selection with pay-what-you-get
composition, NeurIPS: mechanisms of bounded range.
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 2: the local, asymptotic form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_fraction
from pyhybrid.privacy.bounds import quantile_type7
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weighted_log_lik import Terms, lazy_terms, spread_of, terms_of

__all__ = ["LossRanges", "loss_ranges", "ranges_of"]


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


def loss_ranges(log_lik: Any, alpha: Any = None, *, draw_quantile: float = 1.0) -> LossRanges:
    r"""By-record and overall loss ranges from a log-likelihood matrix.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats at draws from the posterior weighted by `alpha`; or the
        changes T_i of `recomputed_terms`, without `alpha`. A record that is NaN or infinite in any
        draw has an infinite range. An array of float32 is read as it is; ranges are then raised by
        what its rounding can hide.
    alpha : array_like, shape (n,), optional
        Record weights in [0, 1]; all 1 if omitted. A weight of 0 has range 0.
    draw_quantile : float, default 1
        q in (0, 1]. With T_s = max_i |g_is - median of g_i| over the records with a finite range
        and L = quantile(T, q) (R type 7), draws with T_s > L are dropped whole. Below 1 the range
        is a statement with a failure probability: `split_draws` gives it with its delta.

    Returns
    -------
    LossRanges
        By-record ranges (n,), overall range and kept draws (S,).

    Raises
    ------
    InvalidInput
        For a wrong shape, weights outside [0, 1] or a quantile outside (0, 1].

    Notes
    -----
    A maximum over S draws is an estimate from below of a supremum and grows with S.

    References
    ----------
    [DR19]; [S22] sec. 2.

    Examples
    --------
    >>> loss_ranges([[-1.0, -40.0], [-2.0, -40.5]], alpha=[1.0, 0.5]).by_record
    array([1.  , 0.25])
    """
    return _ranges(terms_of(log_lik, alpha), check_fraction(draw_quantile, "draw_quantile"))


def ranges_of(log_lik: LogLik, alpha: FloatArray, *, draw_quantile: float = 1.0) -> LossRanges:
    """`loss_ranges` of a log-likelihood that is computed in blocks, alpha of shape (n,)."""
    return _ranges(lazy_terms(log_lik, alpha), check_fraction(draw_quantile, "draw_quantile"))


def _ranges(terms: Terms, quantile: float) -> LossRanges:
    kept = None if quantile == 1 else _kept_draws(terms, quantile)
    by_distinct = np.empty(terms.n_distinct)
    n_draws = 0
    for columns, block, error in terms.blocks():
        n_draws = block.shape[0]
        used = block if kept is None else block[kept]
        spread = spread_of(used) + 2 * error
        # Infinite also where only a dropped draw is not finite, as for the Lipschitz bounds.
        bounded = np.isfinite(spread if kept is None else spread_of(block))
        by_distinct[columns] = np.where(bounded, spread, np.inf)
    return LossRanges(
        by_record=by_distinct[terms.place],
        overall=float(by_distinct.max()),
        kept_draws=np.ones(n_draws, dtype=bool) if kept is None else kept,
        draw_quantile=quantile,
    )


def _kept_draws(terms: Terms, quantile: float) -> npt.NDArray[np.bool_]:
    farthest: FloatArray = np.zeros(0)
    for _, block, _ in terms.blocks():
        farthest = np.zeros(block.shape[0]) if not farthest.size else farthest
        bounded = np.isfinite(spread_of(block))
        if not bounded.any():
            continue
        distance = np.abs(block[:, bounded] - np.median(block[:, bounded], axis=0))
        farthest = np.maximum(farthest, distance.max(axis=1))
    return np.asarray(farthest <= quantile_type7(farthest, quantile))
