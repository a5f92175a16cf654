r"""Does the Gaussian limit hold here? Delta from the draws against the formula, by record.

The loss of releasing draw s about record i is :math:`L_s = g_{is} + \log E[\exp(-g_i)]`. With
weights :math:`w_s = \exp(-L_s)` of mean 1 (the neighbor's posterior, Pareto smoothed),

.. math::

    \delta_1(\epsilon) = E[(1 - e^\epsilon w)_+], \quad
    \delta_2(\epsilon) = E[(w - e^\epsilon)_+]

for the release with and without the record. Both should be `delta_of_mu(mu, epsilon)`.

References
----------
[DRS22] Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37, sec. 2.4.
[V17] Vehtari, Gelman, Gabry (2017), Statistics and Computing 27:1413-1432.
[CF38] Cornish, Fisher (1938), Moments and cumulants in the specification of distributions, Revue de
l'Institut International de Statistique 5:307-320.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray, check_log_lik, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.effective_draws import effective_draws
from pyhybrid.privacy.gaussian_curve import delta_of_mu, mu_of_epsilon
from pyhybrid.privacy.gaussian_mu import (
    STANDARD_ERRORS,
    GaussianMu,
    check_effective,
    check_effective_of,
    gaussian_mu,
    mu_of,
)
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.pareto import RELIABLE_K, smoothed_log_weights
from pyhybrid.privacy.weighted_log_lik import IntArray, Terms, lazy_terms, spread_of, terms_of

__all__ = ["GaussianLimit", "gaussian_limit", "limit_of"]

_BEYOND = 3.0  # standard errors that count as disagreement
_WIDENING = 0.2  # of the neighbor's deviation: a few percent where n is large
_SKEWNESS = 0.5
_LARGEST = 1e150  # a mu above this has no epsilon that floats can hold
_DEPTH = 5.0  # deviations out: where a delta of 1e-6 is decided
_SMALLEST = 1e-12  # a mu below this tells nothing that doubles can show


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
        Pareto k at most 0.7, abs(skewness) at most 0.5, abs(widening) at most 0.2, and no delta of
        the draws above the formula by more than 3 standard errors.
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
        """Whether the limit holds where it matters; if not, charge the range or more."""
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

    Parameters
    ----------
    log_lik, alpha, chains, ess
        As for `gaussian_mu`.
    multiples : sequence of float, default (1, 2, 3)
        Above 0; at which epsilon over mu_i delta is compared. Far multiples need many draws.

    Returns
    -------
    GaussianLimit
        Both deltas, skewness, and the mu to charge by record.

    Notes
    -----
    With S draws the comparison reaches deltas of about 1/S; what holds beyond, down to the delta of
    a charge, rests on the limit. Where `reliable` is False, charge no less than `loss_ranges`; a
    range of S draws says nothing of losses rarer than about 1/S, and a release charges more.
    """
    matrix = check_log_lik(log_lik)
    effective = check_effective(ess, matrix.shape[0], matrix.shape[1], chains)
    mu = gaussian_mu(matrix, alpha, chains=chains, ess=ess)
    return _limit(mu, terms_of(matrix, alpha), chains, effective, multiples)


def limit_of(
    log_lik: LogLik,
    alpha: FloatArray,
    *,
    chains: int = 1,
    ess: float | None = None,
    multiples: Sequence[float] = (1.0, 2.0, 3.0),
) -> GaussianLimit:
    """`gaussian_limit` of a log-likelihood that is computed in blocks, alpha of shape (n,)."""
    mu = mu_of(log_lik, alpha, chains=chains, ess=ess)
    effective = check_effective_of(log_lik, ess, log_lik.n, chains)
    return _limit(mu, lazy_terms(log_lik, alpha), chains, effective, multiples)


def _limit(
    mu: GaussianMu,
    terms: Terms,
    chains: int,
    effective: FloatArray | None,
    multiples: Sequence[float],
) -> GaussianLimit:
    if not len(multiples):
        raise InvalidInput("multiples must hold at least one number: found none")
    steps = np.array([check_positive(multiple, "multiples") for multiple in multiples])
    first = np.zeros(terms.n_distinct, dtype=np.intp)
    first[terms.place] = np.arange(terms.place.size)  # a record that has each distinct term
    at = np.where(mu.upper_by_record < _LARGEST, mu.upper_by_record, 0.0)

    def compute(g: FloatArray, _: FloatArray, columns: IntArray) -> tuple[FloatArray, ...]:
        records = first[columns]
        log_weights, _ = smoothed_log_weights(-g)
        log_weights -= logsumexp(log_weights, axis=0) - np.log(g.shape[0])
        found = np.empty((2, records.size, steps.size, 2))
        for k, step in enumerate(steps):
            with np.errstate(over="ignore"):
                epsilon = step * at[records]
                released = -np.expm1(np.minimum(epsilon + log_weights, 0.0))
                left_out = np.maximum(np.exp(log_weights) - np.exp(epsilon), 0.0)
            for side, loss in enumerate((released, left_out)):
                known = effective_draws(loss, chains) if effective is None else effective[records]
                found[0, :, k, side] = loss.mean(axis=0)
                found[1, :, k, side] = loss.std(axis=0) / np.sqrt(known)
        few = None if effective is None else effective[records]
        skewness = np.where(mu.by_record[records] > _SMALLEST, _skewness(g, chains, few), 0.0)
        return found[0], found[1], skewness[0], skewness[1], spread_of(g)

    (delta, error, *skewness, spread), unbounded = terms.by_record(compute)
    spread = np.where(unbounded, np.inf, spread)
    return _compared(mu, steps, delta, error, (skewness[0], skewness[1]), spread)


def _skewness(g: FloatArray, chains: int, known: FloatArray | None) -> FloatArray:
    """Of each column and its standard error, (2, b); 0 for one that does not vary."""
    moved = g - g[0]
    largest = np.abs(moved).max(axis=0)
    centered = moved / np.where(largest > 0, largest, 1.0)  # squares stay in the range of doubles
    centered -= centered.mean(axis=0)
    sd = centered.std(axis=0)
    z = centered / np.where(sd > 0, sd, 1.0)
    skewness = (z**3).mean(axis=0)
    influence = z**3 - 3 * z - 1.5 * skewness * (z**2 - 1) - skewness
    draws = effective_draws(influence, chains) if known is None else known
    return np.stack([skewness, influence.std(axis=0) / np.sqrt(draws)])


def _compared(
    mu: GaussianMu,
    steps: FloatArray,
    delta: FloatArray,
    error: FloatArray,
    skewness: tuple[FloatArray, FloatArray],
    spread: FloatArray,
) -> GaussianLimit:
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
    near = (np.abs(skewness[0]) <= _SKEWNESS) & (np.abs(ratio - 1) <= _WIDENING)
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
    depth = (_DEPTH**2 - 1) / (6 * _DEPTH)
    own, factor = mu.standard_error_by_record, 1 + depth * np.abs(skewness)
    with np.errstate(invalid="ignore"):
        estimate = mu.upper_by_record - STANDARD_ERRORS * own
        error = np.hypot(factor * own, depth * estimate * skewness_error)
        return np.asarray(factor * estimate + STANDARD_ERRORS * error)
