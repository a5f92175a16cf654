r"""Gaussian accounting of a local release: mu from the draws.

As n grows, the posteriors with and without record i tend to normals with one covariance, and
releasing one draw is :math:`\mu_i`-GDP with :math:`\mu_i` the standard deviation of the record's
term :math:`g_i(\theta) = \alpha_i f_i(\theta)` over the posterior. This is what the asymptotic
guarantee of [S22] converges to. Unlike a maximum it does not grow with the number of draws, has a
standard error, says what holds at each delta, and composes by squares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, IntArray, check_flag, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.diagnostics import (
    STANDARD_ERRORS,
    check_chains,
    effective_draws,
    smoothed_log_weights,
)
from pyhybrid.privacy.log_lik import Terms, terms_of

Effective = Callable[[FloatArray, IntArray], FloatArray]
"""From values (S, b) of some distinct terms, and which they are, to effective draws (b,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianMu:
    """Deviations of the records' terms. Confidential: functions of the data.

    Attributes
    ----------
    by_record, neighbor_by_record : ndarray, shape (n,)
        mu_i, the standard deviation of the term of record i over the draws; and under the
        neighbor's posterior, which is usually a little wider, from importance weights: equal to
        `by_record` if it was not asked for.
    standard_error_by_record, upper_by_record : ndarray, shape (n,)
        Monte Carlo standard error of the one of both whose upper end is higher; that upper end,
        estimate plus `STANDARD_ERRORS` standard errors.
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
    """Mu of one released draw, by record and overall [DRS22] def. 2.6, [S22] sec. 4, [V17] sec. 2.

    With q = (g - mean)^2, mu^2 is the mean of q, and the standard error of mu is that of mu^2 over
    2 mu: about mu / sqrt(2 ESS) for a normal term.

    Parameters
    ----------
    log_lik, alpha
        As for `loss_ranges`, stacked chain after chain. A record that is not finite in any draw has
        an infinite mu; one of weight 0 has mu 0.
    chains : int, default 1
        Chains that the draws come from; at least 4 draws each, and at least 2 draws in all if
        `ess` is given.
    ess : float or array_like of shape (n,), optional
        Effective number of draws, above 0, instead of the one computed from the chains, for each
        record, of the squared distance of its term from its mean.
    neighbor : bool, default True
        Also take the deviation under the posterior without the record, from smoothed importance
        weights exp(-g_i), and charge the larger of the two.

    Examples
    --------
    >>> gaussian_mu([[-1.0], [-2.0], [-3.0], [-2.0]], ess=4, neighbor=False).by_record.round(3)
    array([0.816])
    """
    terms = terms_of(log_lik, alpha)
    sign = -1 if check_flag(neighbor, "neighbor") else 0
    return mu_of_terms(terms, effective_of(terms, ess, chains), sign)


def effective_of(terms: Terms, ess: Any, chains: int) -> Effective:
    """Effective draws: those given, by record or for all, or computed from the chains."""
    if ess is None:
        check_chains(terms.n_draws, chains)
        return lambda values, _: effective_draws(values, chains)
    if terms.n_draws < 2:
        raise InvalidInput(f"log_lik must hold at least 2 draws: found {terms.n_draws}")
    n = terms.place.size
    given = check_vector(np.broadcast_to(ess, (n,)) if np.ndim(ess) == 0 else ess, "ess", length=n)
    wrong = np.flatnonzero(~(given > 0))
    if wrong.size:
        raise InvalidInput(f"ess must be above 0: record {wrong[0]} has {given[wrong[0]]:g}")
    by_term = given[terms.record]
    return lambda _, columns: by_term[columns]


def mu_of_terms(terms: Terms, effective: Effective, sign: int) -> GaussianMu:
    """Deviations of terms; sign -1 or 1: neighbor without or with them, 0: no neighbor."""

    def compute(g: FloatArray, error: FloatArray, columns: IntArray) -> tuple[FloatArray, ...]:
        sd, sd_error = _deviation(g, np.ones_like(g), effective, columns)
        other, other_error, k = sd, sd_error, np.full(sd.shape, -np.inf)
        if sign:
            log_weights, k = smoothed_log_weights(sign * g)
            weights = np.exp(log_weights - log_weights.max(axis=0))
            weights /= weights.mean(axis=0)
            other, other_error = _deviation(g, weights, effective, columns)
        return sd + error, other + error, sd_error, other_error, k

    parts, unbounded = terms.by_record(compute)
    sd, other, sd_error, other_error = (np.where(unbounded, np.inf, p) for p in parts[:4])
    sd_upper, other_upper = sd + STANDARD_ERRORS * sd_error, other + STANDARD_ERRORS * other_error
    top = np.argmax(np.maximum(sd, other))
    return GaussianMu(
        by_record=sd,
        neighbor_by_record=other,
        standard_error_by_record=np.where(sd_upper >= other_upper, sd_error, other_error),
        upper_by_record=np.maximum(sd_upper, other_upper),
        pareto_k=np.where(unbounded, np.inf, parts[4]),
        overall=float(max(sd[top], other[top])),
        standard_error=float(sd_error[top] if sd[top] >= other[top] else other_error[top]),
        upper=float(np.maximum(sd_upper, other_upper).max()),
    )


def _deviation(
    g: FloatArray, weights: FloatArray, effective: Effective, columns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Standard deviation (b,) of columns under weights of mean 1, and its standard error (b,)."""
    n_draws = g.shape[0]
    moved, largest = _from_first_draw(g)
    squares = (moved - (weights * moved).mean(axis=0)) ** 2
    variance = (weights * squares).mean(axis=0)
    influence = weights * (squares - variance)
    sd = np.sqrt(variance * n_draws / (n_draws - 1))
    noise = influence.std(axis=0, ddof=1) / np.sqrt(effective(influence, columns))
    error = np.divide(noise, 2 * sd, out=np.zeros_like(sd), where=sd > 0)
    return sd * largest, error * largest


def _from_first_draw(g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns less their first entry, over their largest size (b,), and that size: a constant
    cancels, best before anything is squared, and squares stay in the range of doubles."""
    moved = g - g[0]
    largest = np.abs(moved).max(axis=0)
    return moved / np.where(largest > 0, largest, 1.0), largest
