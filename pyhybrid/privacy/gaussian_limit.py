r"""Gaussian accounting of a local release: mu from the draws, and whether the limit holds.

As n grows, the posteriors with and without record i tend to normals with one covariance, and
releasing one draw is :math:`\mu_i`-GDP with :math:`\mu_i` the standard deviation of the record's
term :math:`g_i(\theta) = \alpha_i f_i(\theta)` over the posterior. This is what the asymptotic
guarantee of [S22] converges to. Unlike a maximum it does not grow with the number of draws, has a
standard error, says what holds at each delta, and composes by squares.

**Does the limit hold here?** The loss of releasing draw s about record i is
:math:`L_s = g_{is} + \log E[\exp(-g_i)]`. With weights :math:`w_s = \exp(-L_s)` of mean 1 (the
neighbor's posterior, Pareto smoothed),

.. math::

    \delta_1(\epsilon) = E[(1 - e^\epsilon w)_+], \quad
    \delta_2(\epsilon) = E[(w - e^\epsilon)_+]

for the release with and without the record. Both should be `delta_of_mu(mu, epsilon)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray, IntArray, check_flag, check_positive, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import delta_of_mu, mu_of_epsilon
from pyhybrid.privacy.diagnostics import (
    DEPTH,
    RELIABLE_K,
    STANDARD_ERRORS,
    check_chains,
    effective_draws,
    smoothed_log_weights,
)
from pyhybrid.privacy.log_lik import Terms, spread_of, terms_of

_BEYOND = 3.0  # standard errors that count as disagreement
_WIDENING = 0.2  # of the neighbor's deviation: a few percent where n is large
_SKEWNESS, _KURTOSIS, _MODERATE = 0.5, 0.1, 0.6
_LARGEST = 1e150  # a mu above this has no epsilon that floats can hold
_SMALLEST = 1e-12  # a mu below this tells nothing that doubles can show

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
    2 mu: about mu / sqrt(2 ESS) for a normal term. `gaussian_limit` checks that the limit holds.

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


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianLimit:
    """Delta from the draws beside delta from the formula. Confidential.

    Attributes
    ----------
    mu : GaussianMu
        Deviations, as `gaussian_mu` gives them.
    multiples : tuple of float, length K
        The check is made at epsilon = multiple times mu_i.
    delta_formula : ndarray, shape (n, K)
        `delta_of_mu` at the upper end of mu_i corrected for skewness.
    delta_draws, delta_draws_error : ndarray, shape (n, K, 2)
        From the draws, direction with and without the record, and Monte Carlo standard errors.
    skewness, skewness_error : ndarray, shape (n,)
        Of the term, 0 in the limit, and its Monte Carlo standard error.
    widening : ndarray, shape (n,)
        Deviation under the neighbor over that under the posterior, less 1: how curved the term
        is and how much wider the neighbor's posterior; 0 in the limit.
    holds : ndarray of bool, shape (n,)
        Pareto k at most 0.7, abs(skewness) at most 0.5, abs(widening) at most 0.2, both times mu_i
        over 0.6 if that is larger, the excess kurtosis not above 0.1 by two standard errors, and no
        delta of the draws above the formula by more than 3.
    harmless : ndarray of bool, shape (n,)
        Pareto k at most 0.7, and the whole range over the draws below the largest mu: records at
        whose values the density is flat, whose small terms are curved and need no limit.
    mu_charged : ndarray, shape (n,)
        The upper end, two standard errors of both factors above, of mu_i times 1 + d abs(skewness),
        d = (z^2 - 1)/(6 z) with z = 5, which is where a skewed term has its tail by the expansion
        of Cornish and Fisher; where the draws show more, the mu whose formula gives their delta.
    overall : float
        Largest `mu_charged`.
    """

    mu: GaussianMu
    multiples: tuple[float, ...]
    delta_formula: FloatArray
    delta_draws: FloatArray
    delta_draws_error: FloatArray
    skewness: FloatArray
    skewness_error: FloatArray
    widening: FloatArray
    holds: npt.NDArray[np.bool_]
    harmless: npt.NDArray[np.bool_]
    mu_charged: FloatArray
    overall: float

    @property
    def reliable(self) -> bool:
        """True if the limit holds where it matters; if not, charge the loss or more."""
        return bool((self.holds | self.harmless).all())


def gaussian_limit(
    log_lik: Any,
    alpha: Any = None,
    *,
    chains: int = 1,
    ess: Any = None,
    multiples: Sequence[float] = (1.0, 2.0, 3.0),
) -> GaussianLimit:
    """Check, by record, that a release of draws behaves as the Gaussian limit says.

    With S draws the comparison reaches deltas of about 1/S; what holds beyond, down to the delta of
    a charge, rests on the limit. Where `reliable` is False, charge no less than `loss_ranges`; a
    range of S draws says nothing of losses rarer than about 1/S, and a release charges more.

    Parameters
    ----------
    log_lik, alpha, chains, ess
        As for `gaussian_mu`.
    multiples : sequence of float, default (1, 2, 3)
        Above 0; at which epsilon over mu_i delta is compared. Far multiples need many draws.
    """
    terms = terms_of(log_lik, alpha)
    effective = effective_of(terms, ess, chains)
    mu = mu_of_terms(terms, effective, -1)
    if not len(multiples):
        raise InvalidInput("multiples must hold at least one number: found none")
    steps = np.array([check_positive(multiple, "multiples") for multiple in multiples])
    at = np.where(mu.upper_by_record < _LARGEST, mu.upper_by_record, 0.0)

    def compute(g: FloatArray, _: FloatArray, columns: IntArray) -> tuple[FloatArray, ...]:
        records = terms.record[columns]
        log_weights, _ = smoothed_log_weights(-g)
        log_weights -= logsumexp(log_weights, axis=0) - np.log(g.shape[0])
        delta, error = np.empty((2, records.size, steps.size, 2))
        for k, step in enumerate(steps):
            with np.errstate(over="ignore"):
                epsilon = step * at[records]
                released = -np.expm1(np.minimum(epsilon + log_weights, 0.0))
                left_out = np.maximum(np.exp(log_weights) - np.exp(epsilon), 0.0)
            for side, loss in enumerate((released, left_out)):
                delta[:, k, side] = loss.mean(axis=0)
                error[:, k, side] = loss.std(axis=0) / np.sqrt(effective(loss, columns))
        varies = mu.by_record[records] > _SMALLEST
        shape = np.where(varies, _shape(g, effective, columns), 0.0)
        return delta, error, *shape, spread_of(g)

    (delta, error, *shape, spread), unbounded = terms.by_record(compute)
    spread = np.where(unbounded, np.inf, spread)
    return _compared(mu, steps, delta, error, shape, spread)


def _shape(g: FloatArray, effective: Effective, columns: IntArray) -> FloatArray:
    """Skewness of each column, its standard error, and the excess kurtosis less two of its own,
    (3, b)."""
    centered, _ = _from_first_draw(g)
    centered = centered - centered.mean(axis=0)
    sd = centered.std(axis=0)
    z = centered / np.where(sd > 0, sd, 1.0)
    skewness = (z**3).mean(axis=0)
    heavy = (z**4).mean(axis=0)
    of_skewness = z**3 - 3 * z - 1.5 * skewness * (z**2 - 1) - skewness
    of_kurtosis = z**4 - heavy - 2 * heavy * (z**2 - 1) - 4 * skewness * z
    errors = [
        own.std(axis=0) / np.sqrt(effective(own, columns)) for own in (of_skewness, of_kurtosis)
    ]
    return np.stack([skewness, errors[0], heavy - 3 - STANDARD_ERRORS * errors[1]])


def _compared(
    mu: GaussianMu,
    steps: FloatArray,
    delta: FloatArray,
    error: FloatArray,
    shape: Sequence[FloatArray],
    spread: FloatArray,
) -> GaussianLimit:
    *skewness, kurtosis = shape
    upper = mu.upper_by_record
    finite = np.isfinite(spread) & (upper < _LARGEST)
    formula = np.ones((upper.size, steps.size))
    skewed = _skewed(mu, *skewness)
    for i in np.flatnonzero(finite):
        formula[i] = [delta_of_mu(skewed[i], step * upper[i]) for step in steps]
    charged = np.where(finite, skewed, np.inf)
    tells = (upper > _SMALLEST)[:, None, None]
    beyond = tells & (delta - _BEYOND * error > formula[:, :, None]) & finite[:, None, None]
    for i, k, side in np.argwhere(beyond):
        most = float(np.clip(delta[i, k, side] + STANDARD_ERRORS * error[i, k, side], 0, 1 - 1e-12))
        charged[i] = max(charged[i], mu_of_epsilon(float(steps[k] * upper[i]), most))
    narrow = mu.by_record > _SMALLEST
    ratio = np.divide(
        mu.neighbor_by_record, mu.by_record, out=np.ones(upper.size), where=narrow & finite
    )
    trusted = finite & (mu.pareto_k <= RELIABLE_K)
    size = np.clip(mu.by_record, _MODERATE, _LARGEST) / _MODERATE  # a large term is farther out
    near = (np.abs(skewness[0]) * size <= _SKEWNESS) & (np.abs(ratio - 1) * size <= _WIDENING)
    near &= kurtosis <= _KURTOSIS
    return GaussianLimit(
        mu=mu,
        multiples=tuple(float(step) for step in steps),
        delta_formula=formula,
        delta_draws=delta,
        delta_draws_error=error,
        skewness=skewness[0],
        skewness_error=skewness[1],
        widening=ratio - 1,
        holds=trusted & near & ~beyond.any(axis=(1, 2)),
        harmless=trusted & (spread <= mu.upper),
        mu_charged=charged,
        overall=float(charged.max()),
    )


def _skewed(mu: GaussianMu, skewness: FloatArray, skewness_error: FloatArray) -> FloatArray:
    """Upper end of mu_i (1 + d abs(skewness)), (n,): both factors have a standard error."""
    depth = (DEPTH**2 - 1) / (6 * DEPTH)
    mu_error, factor = mu.standard_error_by_record, 1 + depth * np.abs(skewness)
    with np.errstate(invalid="ignore"):
        estimate = mu.upper_by_record - STANDARD_ERRORS * mu_error
        error = np.hypot(factor * mu_error, depth * estimate * skewness_error)
        return np.asarray(factor * estimate + STANDARD_ERRORS * error)
