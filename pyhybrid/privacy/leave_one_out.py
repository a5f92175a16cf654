r"""Leave-one-out loss: what a release of these draws really tells about each record.

.. math:: L_{is} = g_{is} + \log \frac{1}{S} \sum_t \exp(-g_{it})

is the log ratio of the posterior with record i to the one without it, at draw s: the privacy loss
of releasing that draw. It is estimated, not bounded. The sum is Pareto smoothed, as in PSIS-LOO.

References
----------
[V17] Vehtari, Gelman, Gabry (2017), Statistics and Computing 27:1413-1432, sec. 2.
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.pareto import RELIABLE_K, smoothed_log_weights
from pyhybrid.privacy.weighted_log_lik import IntArray, Terms, lazy_terms, terms_of

__all__ = ["LeaveOneOutLoss", "leave_one_out_loss", "losses_of"]

_PROBABILITIES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True, eq=False)
class LeaveOneOutLoss:
    """Estimated privacy losses, in nats. Confidential: functions of the data.

    Attributes
    ----------
    by_record : ndarray, shape (n,)
        Largest abs(L_is) over the draws: what the most telling draw says of record i.
    by_draw : ndarray, shape (S,)
        Largest abs(L_is) over the records: what releasing draw s says of anybody.
    quantiles : ndarray, shape (n, 3)
        Quantiles of abs(L_is) over the draws, at `probabilities`.
    probabilities : tuple of float
        0.5, 0.9 and 0.99.
    pareto_k : ndarray, shape (n,)
        Shape of the smoothed tail. Above 0.7 the loss of that record is unreliable; -inf where the
        term does not move; inf where there are too few draws to tell.
    """

    by_record: FloatArray
    by_draw: FloatArray
    quantiles: FloatArray
    probabilities: tuple[float, ...]
    pareto_k: FloatArray

    @property
    def reliable(self) -> bool:
        """Whether Pareto k is at most 0.7 for every record."""
        return bool((self.pareto_k <= RELIABLE_K).all())


def leave_one_out_loss(log_lik: Any, alpha: Any = None) -> LeaveOneOutLoss:
    """Estimated loss of releasing one draw, by record and by draw.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats at draws from the posterior weighted by `alpha`; or the
        changes T_i of `recomputed_terms`, without `alpha`. A record that is not finite in any draw
        has an infinite loss.
    alpha : array_like, shape (n,), optional
        Record weights in [0, 1]; all 1 if omitted.

    Returns
    -------
    LeaveOneOutLoss
        Largest loss and quantiles by record (n,), largest loss by draw (S,), Pareto k (n,).

    Raises
    ------
    InvalidInput
        For a wrong shape or weights outside [0, 1].

    References
    ----------
    [V17] sec. 2.

    Examples
    --------
    >>> leave_one_out_loss([[-1.0, -3.0], [-2.0, -3.0]]).by_record.round(3)
    array([0.62, 0.  ])
    """
    return _loss(terms_of(log_lik, alpha))


def losses_of(log_lik: LogLik, alpha: FloatArray) -> LeaveOneOutLoss:
    """`leave_one_out_loss` of a log-likelihood that is computed in blocks, alpha of shape (n,)."""
    return _loss(lazy_terms(log_lik, alpha))


def _loss(terms: Terms) -> LeaveOneOutLoss:
    by_draw: list[FloatArray] = []

    def compute(g: FloatArray, _: FloatArray, __: IntArray) -> tuple[FloatArray, ...]:
        smoothed, k = smoothed_log_weights(-g)
        loss = np.abs(g + logsumexp(smoothed, axis=0) - np.log(g.shape[0]))
        loss[:, np.isneginf(k)] = 0.0  # of a term that does not move, up to rounding
        by_draw[:] = [loss.max(axis=1) if not by_draw else np.maximum(by_draw[0], loss.max(axis=1))]
        return loss.max(axis=0), np.quantile(loss, _PROBABILITIES, axis=0).T, k

    (largest, quantiles, k), unbounded = terms.by_record(compute)
    return LeaveOneOutLoss(
        by_record=np.where(unbounded, np.inf, largest),
        by_draw=np.full(by_draw[0].shape, np.inf) if unbounded.any() else by_draw[0],
        quantiles=np.where(unbounded[:, None], np.inf, quantiles),
        probabilities=_PROBABILITIES,
        pareto_k=np.where(unbounded, np.inf, k),
    )
