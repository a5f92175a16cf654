"""What the count models share: the support of counts and a rough log-linear fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from pyhybrid.errors import InvalidInput, SamplingError
from pyhybrid.models.design import Design, row_label
from pyhybrid.validation import FloatArray

__all__ = ["check_counts", "draw_counts_error", "log_linear_fit"]

_LARGEST_COUNT = 2**31 - 1  # Stan's integers have 32 bits
_RIDGE = 0.1


def check_counts(design: Design, index: pd.Index) -> None:
    """Raise InvalidInput, naming the first row, unless outcomes are whole numbers >= 0."""
    rules = (
        ("a count >= 0: {} is negative", design.y < 0),
        ("a whole number: {} is not", design.y != np.floor(design.y)),
        (f"at most {_LARGEST_COUNT}: {{}} is larger", design.y > _LARGEST_COUNT),
    )
    for rule, broken in rules:
        if broken.any():
            label = row_label(index, int(np.flatnonzero(broken)[0]))
            raise InvalidInput(f"outcome {design.outcome!r} must be {rule.format(label)}")


def log_linear_fit(y: FloatArray, X: FloatArray, weight: FloatArray) -> dict[str, FloatArray]:
    """Ridge-penalised quasi-Poisson fit: where the sampler starts to look, not an estimate.

    Parameters
    ----------
    y, weight : ndarray, shape (d,)
        Outcomes and frequency x record weight.
    X : ndarray, shape (d, K)

    Returns
    -------
    dict
        ``center`` (K,) and ``factor`` (K, K), the lower Cholesky factor of the approximate
        covariance. The Stan programs give the same posterior for any center and factor; good ones
        make it nearly standard normal.
    """
    ridge = _RIDGE * np.eye(X.shape[1])

    def mean(beta: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.clip(X @ beta, -50, 50)))

    def loss(beta: FloatArray) -> float:
        return float(weight @ (mean(beta) - y * (X @ beta)) + beta @ ridge @ beta / 2)

    def gradient(beta: FloatArray) -> FloatArray:
        return np.asarray(X.T @ (weight * (mean(beta) - y)) + ridge @ beta)

    def curvature(beta: FloatArray) -> FloatArray:
        return np.asarray((X.T * (weight * mean(beta))) @ X + ridge)

    start = np.zeros(X.shape[1])
    fit = minimize(loss, start, jac=gradient, hess=curvature, method="trust-exact")
    center = fit.x if np.isfinite(fit.x).all() else start
    fitted = mean(center)
    pearson = weight @ ((y - fitted) ** 2 / fitted) / max(weight.sum(), 1.0)
    covariance = np.linalg.inv(curvature(center)) * max(1.0, float(pearson))
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        factor = np.diag(np.sqrt(np.maximum(np.diag(covariance), 1e-8)))
    return {"center": center, "factor": factor}


def draw_counts_error(error: Exception) -> SamplingError:
    """The error of a posterior draw from which no count can be simulated."""
    return SamplingError(f"no replicate can be drawn, the mean is out of range: {error}")
