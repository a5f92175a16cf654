"""Rough fits that tell the sampler where to look first; they never move the posterior.

A canonical generalised linear model, ridge-penalised so that it exists for any data, with
quasi-likelihood dispersion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from pyhybrid.checks import FloatArray

__all__ = ["LOGIT", "LOG_LINEAR", "Family", "RoughFit", "cholesky_or_diagonal", "rough_fit"]

_RIDGE = 0.1


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
    factor : ndarray, shape (K, K)
        Lower Cholesky factor of the approximate covariance of beta.
    fitted : ndarray, shape (d,)
        Fitted means.
    dispersion : float
        Weighted mean of the squared Pearson residuals.
    """

    center: FloatArray
    factor: FloatArray
    fitted: FloatArray
    dispersion: float


def rough_fit(y: FloatArray, X: FloatArray, weight: FloatArray, family: Family) -> RoughFit:
    """Fit y (d,) on X (d, K) under frequency x record weights (d,)."""
    ridge = _RIDGE * np.eye(X.shape[1])

    def loss(beta: FloatArray) -> float:
        eta = X @ beta
        return float(weight @ (family.partition(eta) - y * eta) + beta @ ridge @ beta / 2)

    def gradient(beta: FloatArray) -> FloatArray:
        return np.asarray(X.T @ (weight * (family.mean(X @ beta) - y)) + ridge @ beta)

    def curvature(beta: FloatArray) -> FloatArray:
        return np.asarray((X.T * (weight * family.variance(X @ beta))) @ X + ridge)

    start = np.zeros(X.shape[1])
    fit = minimize(loss, start, jac=gradient, hess=curvature, method="trust-exact")
    center = fit.x if np.isfinite(fit.x).all() else start
    fitted = family.mean(X @ center)
    variance = np.maximum(family.variance(X @ center), 1e-300)
    total = max(float(weight.sum()), 1.0)
    dispersion = float(weight @ ((y - fitted) ** 2 / variance)) / total
    return RoughFit(
        center=center,
        factor=cholesky_or_diagonal(np.linalg.inv(curvature(center)) * max(dispersion, 1e-8)),
        fitted=fitted,
        dispersion=dispersion,
    )


def cholesky_or_diagonal(covariance: Any) -> FloatArray:
    """Lower Cholesky factor, or the standard deviations where there is none."""
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        factor = np.diag(np.sqrt(np.maximum(np.diag(covariance), 1e-8)))
    return np.asarray(factor, dtype=np.float64)
