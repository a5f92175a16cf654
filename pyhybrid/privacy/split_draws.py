r"""An (epsilon, delta) statement from split draws: ranges from one half, delta from the other.

If all terms stay within their sampled ranges with probability at least 1 - delta, under the
posteriors with and without record i, then the loss of a draw from that set is at most
:math:`R_i - \log(1 - \delta)`. The share of the released half that leaves the ranges bounds delta.

References
----------
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 2: probabilistic differential privacy.
[CP34] Clopper, Pearson (1934), The use of confidence or fiducial limits illustrated in the case of
the binomial, Biometrika 26:404-413.
[V17] Vehtari, Gelman, Gabry (2017), Statistics and Computing 27:1413-1432: smoothed weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from pyhybrid.core.checks import FloatArray, check_finite, check_log_lik, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.effective_draws import check_chains, effective_draws
from pyhybrid.privacy.pareto import smoothed_log_weights
from pyhybrid.privacy.ranges import LossRanges, loss_ranges
from pyhybrid.privacy.weighted_log_lik import IntArray, terms_of

__all__ = ["SplitRanges", "share_bound", "split_ranges"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitRanges:
    """Ranges with the probability of leaving them. Confidential.

    Attributes
    ----------
    ranges : LossRanges
        From the first half; its `kept_draws` (S,) are the other half, which may be released.
    delta : float
        Upper confidence bound of the probability that a draw leaves any range, under the posterior
        and under that without any one record, whichever is larger.
    epsilon : float
        Overall range less log(1 - delta); not rounded.
    share : float
        Of the released half that left a range.
    effective_draws : float
        Of the released half, for that share.
    confidence : float
        Of the bound, over repetitions of the sampling.
    """

    ranges: LossRanges
    delta: float
    epsilon: float
    share: float
    effective_draws: float
    confidence: float


def split_ranges(
    log_lik: Any,
    alpha: Any = None,
    *,
    released: Any = None,
    chains: int = 1,
    ess: float | None = None,
    confidence: float = 0.95,
) -> SplitRanges:
    """Epsilon with its delta for one draw of the released half.

    Parameters
    ----------
    log_lik, alpha
        As for `loss_ranges`.
    released : array_like of bool, shape (S,), optional
        Draws that may be released; the others give the ranges. The second half of the draws (with
        several chains, whole chains) if omitted: neighboring draws of a chain are too alike.
    chains : int, default 1
        Chains in the released half, at least 4 draws each.
    ess : float, optional
        Effective number of draws of the released half, instead of the one of the chains. No more
        than its number of draws is used.
    confidence : float, default 0.95
        In (0, 1), one-sided.

    Returns
    -------
    SplitRanges
        With no draw outside, delta is still about 3 / ESS at 95 %: many draws are needed.

    Raises
    ------
    InvalidInput
        For a wrong shape, or where one half is empty.

    References
    ----------
    [CP34] at the effective sample size; [S22] sec. 2.
    """
    matrix = check_log_lik(log_lik)
    chosen = _released(released, matrix.shape[0])
    level = check_finite(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidInput(f"confidence must lie in (0, 1): found {level:g}")
    n_released = int(chosen.sum())
    if ess is None:
        check_chains(n_released, chains)
    ranges = loss_ranges(matrix[~chosen], alpha)
    outside, weights = _outside(matrix, alpha, chosen)
    left = outside.astype(np.float64)
    known = effective_draws(left[:, None], chains)[0] if ess is None else _given(ess, n_released)
    share = float(left.mean())
    delta = share_bound(share, float(known), level)
    delta = max(delta, *(share_bound(w, float(known) * size, level) for w, size in weights))
    return SplitRanges(
        ranges=LossRanges(
            by_record=ranges.by_record,
            overall=ranges.overall,
            kept_draws=chosen,
            draw_quantile=1.0,
        ),
        delta=delta,
        epsilon=ranges.overall - math.log1p(-delta) if delta < 1 else math.inf,
        share=share,
        effective_draws=float(known),
        confidence=level,
    )


def share_bound(share: float, n: float, confidence: float) -> float:
    """Clopper-Pearson upper bound of a probability; n need not be whole [CP34]."""
    count = min(max(share, 0.0), 1.0) * n
    return 1.0 if count >= n else float(betaincinv(count + 1, n - count, confidence))


def _outside(
    matrix: FloatArray, alpha: Any, released: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Released draws that leave any range (R,); weighted share and relative size (n, 2)."""
    terms = terms_of(matrix, alpha)
    outside = np.zeros(int(released.sum()), dtype=bool)
    for _, block, _ in terms.blocks():
        low, high = block[~released].min(axis=0), block[~released].max(axis=0)
        inside = (block[released] >= low) & (block[released] <= high)
        outside |= ~inside.all(axis=1)

    def compute(g: FloatArray, _: FloatArray, __: IntArray) -> tuple[FloatArray, ...]:
        log_weights, _k = smoothed_log_weights(-g[released])
        weights = np.exp(log_weights - log_weights.max(axis=0))
        weights /= weights.mean(axis=0)
        return ((weights[outside].sum(axis=0) / outside.size), 1 / (weights**2).mean(axis=0))

    (share, size), unbounded = terms.by_record(compute)
    return outside, np.column_stack((np.where(unbounded, 1.0, share), size))


def _released(released: Any, n_draws: int) -> npt.NDArray[np.bool_]:
    if released is None:
        chosen = np.arange(n_draws) >= n_draws // 2
    else:
        chosen = np.asarray(released)
        if chosen.dtype != bool or chosen.shape != (n_draws,):
            raise InvalidInput(
                f"released must be True or False for each of {n_draws} draws: "
                f"found {chosen.dtype} of shape {chosen.shape}"
            )
    if chosen.all() or not chosen.any():
        raise InvalidInput("released must leave draws for the ranges and draws to release")
    return np.asarray(chosen)


def _given(ess: float, n_draws: int) -> float:
    return min(check_positive(ess, "ess"), float(n_draws))
