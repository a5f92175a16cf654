"""Location and scale of the reparametrization of thresholds and their coefficients.

Coordinates are the logs of the levels' shares at the means of the predictors, that of the most
common level held fixed, and the coefficients: rare levels are then uncertain on their own, wherever
in the order they are. The mode and the curvature there; nothing of it moves the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from pyhybrid.core.checks import FloatArray

__all__ = ["log_of_levels", "rough_ordinal"]

_STEPS = 300
_WIDTH = 1e-4


def log_of_levels(y: Any, threshold: FloatArray, eta: FloatArray) -> FloatArray:
    """log P(level y), (..., b), of places y (b,), thresholds (..., C - 1), eta (..., b)."""
    last = threshold.shape[-1] - 1
    above = threshold[..., np.minimum(y, last)]
    below = threshold[..., np.maximum(y - 1, 0)]
    middle = (y > 0) & (y <= last)
    with np.errstate(divide="ignore"):
        gap = np.where(middle, np.log(-np.expm1(np.where(middle, below - above, -1.0))), 0.0)
    return np.asarray(
        gap
        - np.where(y <= last, np.logaddexp(0, eta - above), 0.0)
        - np.where(y > 0, np.logaddexp(0, below - eta), 0.0)
    )


def rough_ordinal(
    counts: FloatArray, X: FloatArray, prior_scale: FloatArray
) -> dict[str, FloatArray]:
    """Stan data of the reparametrization.

    Parameters
    ----------
    counts : ndarray, shape (d, C)
        Frequency times record weight, by distinct row of predictors and level.
    X : ndarray, shape (d, K)
        Its first column is 1.
    prior_scale : ndarray, shape (K,)

    Returns
    -------
    dict
        ``center`` (C + K - 1,), ``factor`` (C + K - 1, C + K - 2), ``middle`` (K,).
    """
    n_levels = counts.shape[1]
    total = counts.sum(axis=1) + np.finfo(float).tiny
    middle = total @ X[:, 1:] / total.sum()
    size = np.sqrt(total @ (X[:, 1:] - middle) ** 2 / total.sum())
    size = np.where(size > 0, size, 1.0)
    by_level = counts.sum(axis=0) + 0.5
    free = np.delete(np.arange(n_levels + size.size), int(by_level.argmax()))
    start = np.concatenate([np.log(by_level), np.zeros(size.size)])
    deviations = np.concatenate([by_level**-0.5, np.full(size.size, 2 * by_level.sum() ** -0.5)])
    scale = np.minimum(deviations, 1.0)[free]
    posterior = _Posterior.of(
        counts, (X[:, 1:] - middle) / size, prior_scale, size=size, shift=middle / size
    )

    def scaled(v: FloatArray) -> tuple[float, FloatArray]:
        own = start.copy()
        own[free] += scale * v
        value, slope = posterior.at(own)
        return -value, -slope[free] * scale

    zero = np.zeros(free.size)
    fit = minimize(scaled, zero, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    mode = fit.x if np.isfinite(fit.x).all() else zero
    factor = np.zeros((start.size, free.size))
    factor[free] = scale[:, None] * _root_of_inverse(lambda v: scaled(v)[1], mode)
    center = start.copy()
    center[free] += scale * mode
    center[n_levels:] /= size
    factor[n_levels:] /= size[:, None]
    if not (np.isfinite(center).all() and np.isfinite(factor).all()):
        raise ValueError("the rough fit is not finite")
    return {"center": center, "factor": factor, "middle": np.concatenate([[0.0], middle])}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Posterior:
    """Log posterior density in the coordinates, for centered and scaled predictors.

    Attributes
    ----------
    y, weight : ndarray, shape (r,)
        Places of levels, and weights, of the rows that have any.
    X : ndarray, shape (r, K - 1)
    n_levels : int
    threshold_scale : float
    slope_scale, shift : ndarray, shape (K - 1,)
        Deviations of the scaled coefficients' prior, and what these add to the thresholds.
    """

    y: Any
    weight: FloatArray
    X: FloatArray
    n_levels: int
    threshold_scale: float
    slope_scale: FloatArray
    shift: FloatArray

    @classmethod
    def of(
        cls, counts: FloatArray, X: FloatArray, prior_scale: FloatArray, *, size: FloatArray,
        shift: FloatArray,
    ) -> _Posterior:  # fmt: skip
        """From counts (d, C) and scaled predictors (d, K - 1)."""
        design, y = np.nonzero(counts)
        return cls(
            y=y, weight=counts[design, y], X=X[design], n_levels=counts.shape[1],
            threshold_scale=float(prior_scale[0]), slope_scale=prior_scale[1:] * size, shift=shift,
        )  # fmt: skip

    def at(self, own: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at coordinates (C + K - 1,)."""
        C, y, weight = self.n_levels, self.y, self.weight
        log_share = own[:C] - logsumexp(own[:C])
        share, slopes = np.exp(log_share), own[C:]
        below, above = share.cumsum()[:-1], share[::-1].cumsum()[::-1][1:]
        with np.errstate(divide="ignore"):
            threshold = np.log(below) - np.log(above)
        eta = self.X @ slopes
        up, low = np.minimum(y, C - 2), np.maximum(y - 1, 0)
        by_up = np.where(y < C - 1, weight * expit(eta - threshold[up]), 0.0)
        by_low = np.where(y > 0, weight * expit(threshold[low] - eta), 0.0)
        gap = log_share - np.append(np.log(below), 0) - np.append(0, np.log(above))
        moved = threshold + self.shift @ slopes
        value = (
            weight @ gap[y]
            - weight @ np.where(y < C - 1, np.logaddexp(0, eta - threshold[up]), 0.0)
            - weight @ np.where(y > 0, np.logaddexp(0, threshold[low] - eta), 0.0)
            + log_share.sum() - np.log(below).sum() - np.log(above).sum()
            - (moved @ moved / self.threshold_scale**2 + ((slopes / self.slope_scale) ** 2).sum())
            / 2
        )  # fmt: skip
        pull = moved / self.threshold_scale**2
        by_threshold = np.bincount(up, by_up, C - 1) - np.bincount(low, by_low, C - 1) - pull
        counted = np.bincount(y, weight, C) + 1.0  # the 1 is the Jacobian's
        by_below = (by_threshold - counted[:-1]) / below
        by_above = (-by_threshold - counted[1:]) / above
        inner = np.append(by_below[::-1].cumsum()[::-1], 0) + np.append(0, by_above.cumsum())
        by_share = counted + share * inner
        by_share -= share * by_share.sum()
        by_slopes = (
            self.X.T @ (by_low - by_up) - slopes / self.slope_scale**2 - self.shift * pull.sum()
        )
        return float(value), np.concatenate([by_share, by_slopes])


def _root_of_inverse(gradient: Callable[[FloatArray], FloatArray], mode: FloatArray) -> FloatArray:
    """A root of the inverse of the curvature at the mode, shape (P, P)."""
    steps = _WIDTH * np.eye(mode.size)
    moved = [gradient(mode + step) - gradient(mode - step) for step in steps]
    curvature = np.array(moved) / (2 * _WIDTH)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    return np.asarray(vectors / np.sqrt(np.clip(values, 1e-3, None)))
