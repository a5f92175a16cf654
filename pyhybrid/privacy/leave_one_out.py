r"""Leave-one-out loss: what a release of these draws really tells about each record.

.. math:: L_{is} = g_{is} + \log \frac{1}{S} \sum_t \exp(-g_{it})

is the log ratio of the posterior with record i to the one without it, at draw s: the privacy loss
of releasing that draw. It is estimated, not bounded. The sum is Pareto smoothed, as in PSIS-LOO.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray, IntArray
from pyhybrid.privacy.diagnostics import RELIABLE_K, smoothed_log_weights
from pyhybrid.privacy.log_lik import terms_of

_PROBABILITIES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True, eq=False)
class LeaveOneOutLoss:
    """Estimated privacy losses, in nats. Confidential: functions of the data.

    Attributes
    ----------
    by_record, by_draw : ndarray, shape (n,) and (S,)
        Largest abs(L_is) over the draws, what the most telling draw says of record i; and over the
        records, what releasing draw s says of anybody.
    quantiles : ndarray, shape (n, 3)
        Of abs(L_is) over the draws, at `probabilities`: 0.5, 0.9 and 0.99.
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
        """True if Pareto k is at most 0.7 for every record."""
        return bool((self.pareto_k <= RELIABLE_K).all())


def leave_one_out_loss(log_lik: Any, alpha: Any = None) -> LeaveOneOutLoss:
    """Estimated loss of releasing one draw, by record and by draw [V17] sec. 2.

    Parameters
    ----------
    log_lik, alpha
        As for `loss_ranges`. A record that is not finite in any draw has an infinite loss.

    Examples
    --------
    >>> leave_one_out_loss([[-1.0, -3.0], [-2.0, -3.0]]).by_record.round(3)
    array([0.62, 0.  ])
    """
    by_draw: list[FloatArray] = []

    def compute(g: FloatArray, _: FloatArray, __: IntArray) -> tuple[FloatArray, ...]:
        smoothed, k = smoothed_log_weights(-g)
        loss = np.abs(g + logsumexp(smoothed, axis=0) - np.log(g.shape[0]))
        loss[:, np.isneginf(k)] = 0.0  # of a term that does not move, up to rounding
        by_draw.append(loss.max(axis=1))
        return loss.max(axis=0), np.quantile(loss, _PROBABILITIES, axis=0).T, k

    (largest, quantiles, k), unbounded = terms_of(log_lik, alpha).by_record(compute)
    return LeaveOneOutLoss(
        by_record=np.where(unbounded, np.inf, largest),
        by_draw=np.full(len(by_draw[0]), np.inf) if unbounded.any() else np.max(by_draw, axis=0),
        quantiles=np.where(unbounded[:, None], np.inf, quantiles),
        probabilities=_PROBABILITIES,
        pareto_k=np.where(unbounded, np.inf, k),
    )
