r"""Leave-one-out loss: what a release of these draws really tells about each record.

.. math:: L_{is} = g_{is} + \log \frac{1}{S} \sum_t \exp(-g_{it})

is the log ratio of the posterior with record i to the one without it, at draw s: the privacy loss
of releasing that draw, g being the weighted log-likelihood. It is estimated, not bounded, and takes
the weights as fixed. The sum is Pareto smoothed, by ArviZ, as in PSIS-LOO [V17].

References
----------
[V17] Vehtari, Gelman, Gabry (2017), Practical Bayesian model evaluation using leave-one-out
cross-validation and WAIC, Statistics and Computing 27:1413-1432, sec. 2.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray, check_alpha, check_log_lik

_FEWEST_DRAWS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class LeaveOneOutLoss:
    """Estimated privacy losses, in nats. Confidential: functions of the data.

    Largest abs(L_is) over the draws, `by_record` (n,), and over the records, `by_draw` (S,). The
    shape of the smoothed tail, `pareto_k` (n,), is above 0.7 where the loss of a record is
    unreliable; -inf where its term does not move; inf where there are too few draws to tell.
    """

    by_record: FloatArray
    by_draw: FloatArray
    pareto_k: FloatArray


def leave_one_out_loss(log_lik: Any, alpha: Any = None) -> LeaveOneOutLoss:
    """Estimated loss of releasing one draw, by record and by draw [V17].

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats, at draws from the posterior weighted by `alpha`. A record
        that is not finite in any draw has an infinite loss, but at weight 0.
    alpha : array_like, shape (n,), optional
        Weights in [0, 1]; all 1 if omitted.

    Examples
    --------
    >>> log_lik = -np.random.default_rng(1).gamma(5, 0.1, size=(400, 2))
    >>> ph.leave_one_out_loss(log_lik, [1.0, 0.0]).by_record.round(1)
    array([1.3, 0. ])
    """
    matrix = check_log_lik(log_lik)
    n_draws, n = matrix.shape
    weights = np.ones(n) if alpha is None else check_alpha(alpha, n)
    with np.errstate(invalid="ignore"):
        terms = np.where(weights > 0, matrix * weights, 0.0).astype(np.float64)
    unbounded = np.asarray(~np.isfinite(terms).all(axis=0))
    terms[:, unbounded] = 0.0
    moves = np.ptp(terms, axis=0) > 0
    log_sum, k = _smoothed_log_sum(-terms)
    loss: FloatArray = np.where(moves, np.abs(terms + log_sum - np.log(n_draws)), 0.0)
    loss[:, unbounded] = np.inf
    return LeaveOneOutLoss(
        by_record=loss.max(axis=0),
        by_draw=loss.max(axis=1),
        pareto_k=np.where(unbounded, np.inf, np.where(moves, k, -np.inf)),
    )


def _smoothed_log_sum(log_ratios: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of the sum of the smoothed ratios of each column (S, n), and its Pareto k."""
    n_draws, n = log_ratios.shape
    if n_draws < _FEWEST_DRAWS:
        return np.asarray(logsumexp(log_ratios, axis=0)), np.full(n, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its next version, and of k
        import arviz

        smoothed, k = arviz.psislw(log_ratios.T)
    # ArviZ makes the sum 1. The smallest ratio is not smoothed, and tells what it was.
    smallest, columns = np.argmin(log_ratios, axis=0), np.arange(n)
    log_sum = log_ratios[smallest, columns] - np.asarray(smoothed)[columns, smallest]
    return log_sum, np.atleast_1d(k)
