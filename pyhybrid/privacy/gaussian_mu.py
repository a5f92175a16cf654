r"""Gaussian accounting of a local release: mu from the draws.

As n grows, the posteriors with and without record i tend to normals with one covariance, and
releasing one draw is :math:`\mu_i`-GDP with :math:`\mu_i` the standard deviation of the record's
term :math:`g_i(\theta) = \alpha_i f_i(\theta)` over the posterior. This is what the asymptotic
guarantee of [S22] converges to. Unlike a maximum it does not grow with the number of draws, has a
standard error, says what holds at each delta, and composes by squares.

References
----------
[DRS22] Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37, def. 2.6.
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 4.
[V17] Vehtari, Gelman, Gabry (2017), Statistics and Computing 27:1413-1432: smoothed weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_flag, check_log_lik, check_positive, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.effective_draws import check_chains, effective_draws
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.pareto import smoothed_log_weights
from pyhybrid.privacy.weighted_log_lik import IntArray, Terms, lazy_terms, terms_of

__all__ = [
    "STANDARD_ERRORS",
    "GaussianMu",
    "check_effective",
    "check_effective_of",
    "gaussian_mu",
    "mu_of",
    "mu_of_terms",
]

STANDARD_ERRORS = 2.0
"""How many standard errors above the estimate are charged."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianMu:
    """Deviations of the records' terms. Confidential: functions of the data.

    Attributes
    ----------
    by_record : ndarray, shape (n,)
        mu_i, the standard deviation of the term of record i over the draws.
    neighbor_by_record : ndarray, shape (n,)
        The same under the neighbor's posterior, from importance weights; equals `by_record` if it
        was not asked for. The neighbor's posterior is usually a little wider.
    standard_error_by_record : ndarray, shape (n,)
        Monte Carlo standard error of the one of both whose upper end is higher.
    upper_by_record : ndarray, shape (n,)
        The higher upper end of both: estimate plus `STANDARD_ERRORS` standard errors.
    pareto_k : ndarray, shape (n,)
        Of the neighbor's weights; above 0.7 its deviation is unreliable. -inf if not asked for.
    overall, standard_error : float
        Largest deviation of all records and both posteriors, and its standard error.
    upper : float
        Largest upper end: what is charged (`mu_of_release`, `epsilon_of_mu`).
    """

    by_record: FloatArray
    neighbor_by_record: FloatArray
    standard_error_by_record: FloatArray
    upper_by_record: FloatArray
    pareto_k: FloatArray
    overall: float
    standard_error: float
    upper: float


def gaussian_mu(
    log_lik: Any, alpha: Any = None, *, chains: int = 1, ess: Any = None, neighbor: bool = True
) -> GaussianMu:
    r"""Mu of one released draw, by record and overall, from a log-likelihood matrix.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats at draws from the posterior weighted by `alpha`, stacked
        chain after chain; or the changes T_i of `recomputed_terms`, without `alpha`. A record that
        is not finite in any draw has an infinite mu. float32 is read as it is; deviations are then
        raised by what its rounding can hide.
    alpha : array_like, shape (n,), optional
        Record weights in [0, 1]; all 1 if omitted. A weight of 0 has mu 0.
    chains : int, default 1
        Chains that the draws come from; at least 4 draws each, and at least 2 draws in all if
        `ess` is given.
    ess : float or array_like of shape (n,), optional
        Effective number of draws, above 0, instead of the one computed from the chains, for each
        record, of the squared distance of its term from its mean.
    neighbor : bool, default True
        Also take the deviation under the posterior without the record, from smoothed importance
        weights exp(-g_i), and charge the larger of the two.

    Returns
    -------
    GaussianMu
        By-record deviations (n,), overall mu, its standard error and the upper end.

    Raises
    ------
    InvalidInput
        For a wrong shape, weights outside [0, 1], or draws that do not split into the chains.

    Notes
    -----
    With q = (g - mean)^2, mu^2 is the mean of q, and the standard error of mu is that of mu^2 over
    2 mu: about mu / sqrt(2 ESS) for a normal term. `gaussian_limit` checks that the limit holds.

    References
    ----------
    [DRS22] def. 2.6; [S22] sec. 4; [V17] sec. 2.

    Examples
    --------
    >>> gaussian_mu([[-1.0], [-2.0], [-3.0], [-2.0]], ess=4, neighbor=False).by_record.round(3)
    array([0.816])
    """
    matrix = check_log_lik(log_lik)
    effective = check_effective(ess, matrix.shape[0], matrix.shape[1], chains)
    terms = terms_of(matrix, alpha)
    return mu_of_terms(terms, chains, effective, -1 if check_flag(neighbor, "neighbor") else 0)


def mu_of(
    log_lik: LogLik,
    alpha: FloatArray,
    *,
    chains: int = 1,
    ess: float | None = None,
    neighbor: bool = True,
) -> GaussianMu:
    """`gaussian_mu` of a log-likelihood that is computed in blocks, alpha of shape (n,).

    `ess` is one number; every distinct pair of row and weight is computed once.
    """
    terms = lazy_terms(log_lik, alpha)
    effective = check_effective_of(log_lik, ess, terms.n_distinct, chains)
    return mu_of_terms(terms, chains, effective, -1 if check_flag(neighbor, "neighbor") else 0)


def check_effective_of(
    log_lik: LogLik, ess: float | None, n: int, chains: int
) -> FloatArray | None:
    """`check_effective` where the number of draws is found from the first block."""
    n_draws = next(block.shape[0] for _, block in log_lik.blocks())
    return check_effective(None if ess is None else check_positive(ess, "ess"), n_draws, n, chains)


def check_effective(ess: Any, n_draws: int, n: int, chains: int) -> FloatArray | None:
    """Effective draws (n,), or None if they are to be computed from the chains."""
    if ess is None:
        check_chains(n_draws, chains)
        return None
    if n_draws < 2:
        raise InvalidInput(f"log_lik must hold at least 2 draws: found {n_draws}")
    values = check_vector(np.broadcast_to(ess, (n,)) if np.ndim(ess) == 0 else ess, "ess", length=n)
    wrong = np.flatnonzero(~(values > 0))
    if wrong.size:
        raise InvalidInput(f"ess must be above 0: record {wrong[0]} has {values[wrong[0]]:g}")
    return values


def mu_of_terms(terms: Terms, chains: int, effective: FloatArray | None, sign: int) -> GaussianMu:
    """Deviations of terms; sign -1 or 1: neighbor without or with them, 0: no neighbor."""

    def compute(g: FloatArray, error: FloatArray, columns: IntArray) -> tuple[FloatArray, ...]:
        known = None if effective is None else effective[columns]
        own, own_error = _deviation(g, np.ones_like(g), chains, known)
        other, other_error, k = own, own_error, np.full(own.shape, -np.inf)
        if sign:
            log_weights, k = smoothed_log_weights(sign * g)
            weights = np.exp(log_weights - log_weights.max(axis=0))
            other, other_error = _deviation(g, weights / weights.mean(axis=0), chains, known)
        return own + error, other + error, own_error, other_error, k

    parts, unbounded = terms.by_record(compute)
    own, other, own_error, other_error = (np.where(unbounded, np.inf, p) for p in parts[:4])
    own_upper, other_upper = (
        own + STANDARD_ERRORS * own_error,
        other + STANDARD_ERRORS * other_error,
    )
    error = np.where(own_upper >= other_upper, own_error, other_error)
    top = np.argmax(np.maximum(own, other))
    return GaussianMu(
        by_record=own,
        neighbor_by_record=other,
        standard_error_by_record=error,
        upper_by_record=np.maximum(own_upper, other_upper),
        pareto_k=np.where(unbounded, np.inf, parts[4]),
        overall=float(max(own[top], other[top])),
        standard_error=float(own_error[top] if own[top] >= other[top] else other_error[top]),
        upper=float(np.maximum(own_upper, other_upper).max()),
    )


def _deviation(
    g: FloatArray, weights: FloatArray, chains: int, known: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Standard deviation (b,) of columns under weights of mean 1, and its standard error (b,)."""
    n_draws = g.shape[0]
    moved = g - g[0]  # a constant cancels, and is best taken off before anything is squared
    largest = np.abs(moved).max(axis=0)
    shown = moved / np.where(largest > 0, largest, 1.0)  # squares stay in the range of doubles
    squares = (shown - (weights * shown).mean(axis=0)) ** 2
    variance = (weights * squares).mean(axis=0)
    influence = weights * (squares - variance)
    effective = effective_draws(influence, chains) if known is None else known
    sd = np.sqrt(variance * n_draws / (n_draws - 1))
    noise = influence.std(axis=0, ddof=1) / np.sqrt(effective)
    error = np.divide(noise, 2 * sd, out=np.zeros_like(sd), where=sd > 0)
    return sd * largest, error * largest
