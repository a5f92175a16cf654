"""Rough fits that tell the sampler where to look first; they never move the posterior.

A canonical generalized linear model, ridge-penalized so that it exists for any data, and for models
with a size parameter some steps of Fisher scoring from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.running.tasks import one_blas_thread

__all__ = [
    "LOGIT",
    "LOG_LINEAR",
    "Family",
    "RoughFit",
    "ScoredFit",
    "SizedLikelihood",
    "cholesky_or_diagonal",
    "dispersed",
    "rough_fit",
    "rough_fits_of",
    "scored_fit",
]

_RIDGE = 0.1
_SCORING_STEPS = 25
_ENOUGH = 1e-4  # of a posterior standard deviation, or of the log size
# How hints change where starting points are spread: standard deviations grow, an information falls
# by the square.
_POWER_OF_DISPERSION = {
    "factor": 1,
    "spread_rphi": 1,
    "spread_lambda": 1,
    "spread_sigma": 1,
    "spread_shape": 1,
    "spread_beta": 1,
    "spread_tau": 1,
    "information_root": -1,
    "apart_root": -1,
    "score": -2,
}


def dispersed(hints: Mapping[str, Any], dispersion: float) -> dict[str, Any]:
    """Hints for starting points that are spread `dispersion` times as far."""
    powers = _POWER_OF_DISPERSION
    return {
        name: dispersion ** powers[name] * own if name in powers else own
        for name, own in hints.items()
    }


@contextmanager
def rough_fits_of(predictors: Sequence[str]) -> Iterator[None]:
    """Where rough fits are made, of a regression on columns of these names.

    Raises
    ------
    InvalidInput
        For a fit that fails or overflows.
    """
    try:
        with one_blas_thread():
            yield
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InvalidInput(
            f"outcome and predictors must be of a size that can be fitted ({error}): "
            f"center and rescale {', '.join(predictors[:5]) or 'them'}, or give a unit"
        ) from None


@dataclass(frozen=True, kw_only=True)
class Family:
    """Log partition function of a canonical family of eta = X beta, and its two derivatives."""

    partition: Callable[[FloatArray], FloatArray]
    mean: Callable[[FloatArray], FloatArray]
    variance: Callable[[FloatArray], FloatArray]


def _exp(eta: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.clip(eta, -50, 50)))


LOG_LINEAR = Family(partition=_exp, mean=_exp, variance=_exp)
LOGIT = Family(
    partition=lambda eta: np.logaddexp(0, eta),
    mean=expit,
    variance=lambda eta: expit(eta) * expit(-eta),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RoughFit:
    """Where to look first.

    Attributes
    ----------
    center : ndarray, shape (K,)
    fitted, variance : ndarray, shape (d,)
        Fitted means, and the family's variances there.
    """

    center: FloatArray
    fitted: FloatArray
    variance: FloatArray


def rough_fit(
    y: FloatArray,
    X: FloatArray,
    weight: FloatArray,
    family: Family,
    offset: FloatArray | float = 0.0,
) -> RoughFit:
    """Fit y (d,) on X (d, K) and offset (d,) under frequency x record weights (d,)."""
    size = _column_sizes(X)
    scaled = X / size  # steps of the optimizer have one length for all coefficients
    ridge = np.diag(_RIDGE / size**2)

    def loss(beta: FloatArray) -> float:
        eta = scaled @ beta + offset
        return float(weight @ (family.partition(eta) - y * eta) + beta @ ridge @ beta / 2)

    def gradient(beta: FloatArray) -> FloatArray:
        return np.asarray(
            scaled.T @ (weight * (family.mean(scaled @ beta + offset) - y)) + ridge @ beta
        )

    def curvature(beta: FloatArray) -> FloatArray:
        return np.asarray(
            (scaled.T * (weight * family.variance(scaled @ beta + offset))) @ scaled + ridge
        )

    start = np.zeros(X.shape[1])
    fit = minimize(loss, start, jac=gradient, hess=curvature, method="trust-exact")
    center = (fit.x if np.isfinite(fit.x).all() else start) / size
    eta = X @ center + offset
    return RoughFit(center=center, fitted=family.mean(eta), variance=family.variance(eta))


def _column_sizes(X: FloatArray) -> FloatArray:
    """Root mean squares of the columns, shape (K,); 1 for a column of zeros."""
    with np.errstate(over="raise", under="ignore"):
        try:
            size = np.sqrt(np.mean(X**2, axis=0))
        except FloatingPointError:
            raise ValueError("values beyond 1e154") from None
    return np.asarray(np.where(size > 0, size, 1.0))


@dataclass(frozen=True, kw_only=True)
class SizedLikelihood:
    """A likelihood of a linear predictor eta (d,) and the log t of a size parameter.

    Attributes
    ----------
    log_lik : callable
        (eta, t) to log-likelihoods, shape (d,), up to terms without eta and t.
    slope, curvature : callable
        (eta, t) to the derivative by eta, and to minus the second one or its expectation, which
        must be at least 0, shape (d,) each.
    bounds : tuple of float
        Of t.
    log_prior : callable
        Of t, for likelihoods that are flat toward one end; 0 if omitted.
    """

    log_lik: Callable[[FloatArray, float], FloatArray]
    slope: Callable[[FloatArray, float], FloatArray]
    curvature: Callable[[FloatArray, float], FloatArray]
    bounds: tuple[float, float]
    log_prior: Callable[[float], float] = lambda t: 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredFit:
    """A mode, roughly.

    Attributes
    ----------
    center : ndarray, shape (K,)
    slope, curvature : ndarray, shape (d,)
        Of the rows' weighted log-likelihoods by their linear predictors.
    log_size, spread : float
        t, and its standard deviation given the coefficients.
    """

    center: FloatArray
    slope: FloatArray
    curvature: FloatArray
    log_size: float
    spread: float


def scored_fit(
    likelihood: SizedLikelihood,
    X: FloatArray,
    weight: FloatArray,
    start: FloatArray,
    offset: FloatArray | float = 0.0,
) -> ScoredFit:
    """Fisher scoring for the coefficients and, between its steps, a search for the size."""

    def loss(t: float, beta: FloatArray) -> float:
        value = (
            -float(weight @ likelihood.log_lik(X @ beta + offset, t))
            - likelihood.log_prior(t)
            + _RIDGE * float(beta @ beta) / 2
        )
        return value if np.isfinite(value) else np.inf

    def best_size(beta: FloatArray) -> float:
        found = minimize_scalar(loss, bounds=likelihood.bounds, args=(beta,), method="bounded")
        return float(found.x)

    beta, t = start, best_size(start)
    for _ in range(_SCORING_STEPS):
        eta = X @ beta + offset
        information = (X.T * (weight * likelihood.curvature(eta, t))) @ X
        gradient = X.T @ (weight * likelihood.slope(eta, t)) - _RIDGE * beta
        step = np.linalg.solve(information + _RIDGE * np.eye(beta.size), gradient)
        length = _first_descent(partial(loss, t), beta, step)
        beta, before = beta + length * step, t
        t = best_size(beta)
        if length * np.sqrt(abs(gradient @ step)) < _ENOUGH and abs(t - before) < _ENOUGH:
            break
    eta = X @ beta + offset
    width = 1e-2
    around = [loss(t + shift, beta) for shift in (-width, 0.0, width)]
    bend = (around[0] - 2 * around[1] + around[2]) / width**2
    return ScoredFit(
        center=beta,
        slope=weight * likelihood.slope(eta, t),
        curvature=weight * np.maximum(likelihood.curvature(eta, t), 0.0),
        log_size=t,
        spread=float(np.clip(1 / np.sqrt(max(bend, 1e-10)), 1e-5, 2.0)),
    )


def _first_descent(
    loss: Callable[[FloatArray], float], start: FloatArray, step: FloatArray
) -> float:
    """The largest of 1, 1/2, 1/4, ... steps that does not raise the loss; 0 if there is none."""
    before = loss(start)
    lengths = (0.5**k for k in range(12))
    return next((length for length in lengths if loss(start + length * step) <= before), 0.0)


def cholesky_or_diagonal(covariance: Any) -> FloatArray:
    """Lower Cholesky factor, or the standard deviations where there is none."""
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        factor = np.diag(np.sqrt(np.maximum(np.diag(covariance), 1e-8)))
    return np.asarray(factor, dtype=np.float64)
