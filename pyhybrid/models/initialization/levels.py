"""Location and scale of the reparametrization of levels' coefficients; the posterior does not move.

The contrasts B (K, C - 1) of a multinomial logit against its first level have the prior precision
R (x) D^-2, R = 2 (I - 1 1' / C), D = diag(prior_scale), and about the information S (x) M, S the
mean of diag(p) - p p' over the records, M = X' diag(weight) X. One basis of levels makes R the
identity and S diagonal, one of columns does so for D^-2 and M: in both, all coefficients are
independent, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray

__all__ = ["rough_levels"]

_STEPS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class _Basis:
    """B = center + columns (spread * Z) levels', Z about standard normal given the data.

    Attributes
    ----------
    columns : ndarray, shape (K, K)
    levels : ndarray, shape (C - 1, C - 1)
    spread : ndarray, shape (K, C - 1)
    """

    columns: FloatArray
    levels: FloatArray
    spread: FloatArray

    def coefficients(self, z: FloatArray) -> FloatArray:
        """B less its center, shape (K, C - 1)."""
        return np.asarray(self.columns @ (self.spread * z) @ self.levels.T)

    def slope(self, by_coefficients: FloatArray) -> FloatArray:
        """Gradient by Z from the one by B, shape (K, C - 1)."""
        return np.asarray(self.spread * (self.columns.T @ by_coefficients @ self.levels))


def rough_levels(
    counts: FloatArray, X: FloatArray, prior_scale: FloatArray
) -> dict[str, FloatArray]:
    """Stan data of the reparametrization: the posterior's mode, roughly, and two bases.

    Parameters
    ----------
    counts : ndarray, shape (d, C)
        Frequency times record weight, by distinct row of predictors and level.
    X : ndarray, shape (d, K)
    prior_scale : ndarray, shape (K,)

    Returns
    -------
    dict
        ``center_beta`` and ``spread_beta`` (K, C - 1), ``column_basis`` (K, K), ``level_basis``
        (C - 1, C - 1).
    """
    total = counts.sum(axis=1)
    n_levels = counts.shape[1]
    prior = 2 * (np.eye(n_levels - 1) - 1 / n_levels)
    shares = np.full(n_levels, 1 / n_levels)
    if total.sum() > 0:
        shares = (counts.sum(axis=0) + 0.5) / (total.sum() + 0.5 * n_levels)
    basis = _basis(np.diag(shares) - np.outer(shares, shares), total, X, prior_scale)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        B = basis.coefficients(flat.reshape(basis.spread.shape))
        eta = np.column_stack([np.zeros(len(X)), X @ B])
        log_total = logsumexp(eta, axis=1)
        pull = B @ prior / prior_scale[:, None] ** 2
        value = total @ log_total - (counts * eta).sum() + (B * pull).sum() / 2
        left = total[:, None] * np.exp(eta - log_total[:, None]) - counts
        return float(value), basis.slope(X.T @ left[:, 1:] + pull).ravel()

    start = np.zeros(basis.spread.size)
    fit = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    mode = fit.x if np.isfinite(fit.x).all() else start
    center = basis.coefficients(mode.reshape(basis.spread.shape))
    basis = _basis(_mean_curvature(X, center, total, shares), total, X, prior_scale)
    if not (np.isfinite(center).all() and np.isfinite(basis.spread).all()):
        raise ValueError("the rough fit is not finite")
    return {
        "center_beta": center,
        "spread_beta": basis.spread,
        "column_basis": basis.columns,
        "level_basis": basis.levels,
    }


def _mean_curvature(
    X: FloatArray, center: FloatArray, total: FloatArray, shares: FloatArray
) -> FloatArray:
    """Mean of diag(p) - p p' over the records, shape (C, C)."""
    if total.sum() == 0:
        return np.asarray(np.diag(shares) - np.outer(shares, shares))
    eta = np.column_stack([np.zeros(len(X)), X @ center])
    p = np.exp(eta - logsumexp(eta, axis=1)[:, None])
    weighted = p * (total / total.sum())[:, None]
    return np.asarray(np.diag(weighted.sum(axis=0)) - weighted.T @ p)


def _basis(curvature: FloatArray, total: FloatArray, X: FloatArray, scale: FloatArray) -> _Basis:
    n_levels, K = len(curvature), X.shape[1]
    prior = 2 * (np.eye(n_levels - 1) - 1 / n_levels)
    by_level, levels = eigh(curvature[1:, 1:], prior)
    # By the QR decomposition: its condition number is the root of that of X' diag(total) X.
    triangle: Any = np.linalg.qr(np.sqrt(total)[:, None] * X * scale, mode="r")
    root = np.zeros((K, K))
    root[: triangle.shape[0]] = triangle
    _, size, turned = np.linalg.svd(root)
    return _Basis(
        columns=scale[:, None] * turned.T,
        levels=levels,
        spread=1 / np.sqrt(1 + np.outer(size**2, np.maximum(by_level, 0.0))),
    )
