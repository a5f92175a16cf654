"""Rough fits: location and scale of the reparametrizations; no posterior depends on them.

First a canonical generalized linear model, ridge-penalized so that it exists for any data, and for
models with a size parameter some steps of Fisher scoring from there.

Many levels: the contrasts B (K, C - 1) of a multinomial logit against its first level have the
prior precision R (x) D^-2, R = 2 (I - 1 1' / C), D = diag(prior_scale), and about the information S
(x) M, S the mean of diag(p) - p p' over the records, M = X' diag(weight) X. One basis of levels
makes R the identity and S diagonal, one of columns does so for D^-2 and M: in both, all
coefficients are independent, however many there are.

Ordered levels: coordinates are the logs of the levels' shares at the means of the predictors, that
of the most common level held fixed, and the coefficients: rare levels are then uncertain on their
own, wherever in the order they are. The mode and the curvature there; nothing of it moves the
posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy
from scipy.linalg import eigh
from scipy.special import expit, logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.laws import Canonical, Law, softplus
from pyhybrid.running.tasks import one_blas_thread

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
    "information_root": -1,
    "score": -2,
}


def dispersed(hints: Mapping[str, Any], dispersion: float) -> dict[str, Any]:
    """Hints for starting points that are spread `dispersion` times as far."""
    powers = _POWER_OF_DISPERSION
    return {
        name: dispersion ** powers[name] * hint if name in powers else hint
        for name, hint in hints.items()
    }


@contextmanager
def rough_fits_of(predictors: Sequence[str]) -> Iterator[None]:
    """Where rough fits are made, of a regression on columns of these names: InvalidInput for one
    that fails or overflows."""
    try:
        with one_blas_thread():
            yield
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InvalidInput(
            f"outcome and predictors must be of a size that can be fitted ({error}): "
            f"center and rescale {', '.join(predictors[:5]) or 'them'}, or give a unit"
        ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class RoughFit:
    """Coefficients to look at first (K,), and fitted means and variances there, (d,)."""

    center: FloatArray
    fitted: FloatArray
    variance: FloatArray


def rough_fit(
    y: FloatArray,
    X: FloatArray,
    weight: FloatArray,
    family: Canonical,
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
    fit = scipy.optimize.minimize(loss, start, jac=gradient, hess=curvature, method="trust-exact")
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


def quadratic(
    X: FloatArray, center: FloatArray, slope: FloatArray, curvature: FloatArray
) -> dict[str, Any]:
    """Stan data of the log-likelihood's quadratic approximation about `center` (K,): a root of X'
    diag(curvature) X and the gradient at 0, from rows' first derivatives `slope` and minus second
    ones `curvature` (d,) by their linear predictors."""
    K = X.shape[1]
    # By the QR decomposition: its condition number is the root of that of the information.
    triangle: FloatArray = np.asarray(np.linalg.qr(np.sqrt(curvature)[:, None] * X, mode="r"))
    root = np.zeros((K, K))
    root[:, : triangle.shape[0]] = triangle.T
    score = root @ (root.T @ center) + X.T @ slope
    if not (np.isfinite(root).all() and np.isfinite(score).all()):
        raise ValueError("the rough fit is not finite")
    return {"information_root": root, "score": score}


def sized_hints(
    law: Law, y: FloatArray, X: FloatArray, weight: FloatArray, offset: FloatArray | float
) -> dict[str, Any]:
    """Stan data of a rough fit of the coefficients and of the size of a law: Fisher scoring and,
    between its steps, a search for the size."""
    name, sign = law.sampled_size
    bounds = law.range_of_u if sign == 1 else tuple(-u for u in law.range_of_u[::-1])

    def at(beta: FloatArray) -> FloatArray:
        return np.clip(X @ beta + offset, -law.largest_eta, law.largest_eta)

    def loss(t: float, beta: FloatArray) -> float:
        terms = law.log_density(y, at(beta), law.size_at(sign * t))
        value = -float(weight @ terms) + _RIDGE * float(beta @ beta) / 2
        return value if np.isfinite(value) else np.inf

    def best_size(beta: FloatArray) -> float:
        optimum = scipy.optimize.minimize_scalar(
            loss, bounds=bounds, args=(beta,), method="bounded"
        )
        return float(optimum.x)

    def by_eta(beta: FloatArray, t: float) -> tuple[FloatArray, FloatArray]:
        size = law.size_at(sign * t)
        slope = law.slopes(y, at(beta), size)[0]
        return weight * slope, weight * np.maximum(law.curvature(y, at(beta), size), 0.0)

    beta = rough_fit(y, X, weight, law.canonical, offset).center
    t = best_size(beta)
    for _ in range(_SCORING_STEPS):
        slope, curvature = by_eta(beta, t)
        gradient = X.T @ slope - _RIDGE * beta
        step = np.linalg.solve((X.T * curvature) @ X + _RIDGE * np.eye(beta.size), gradient)
        length = _first_descent(partial(loss, t), beta, step)
        beta, before = beta + length * step, t
        t = best_size(beta)
        if length * np.sqrt(abs(gradient @ step)) < _ENOUGH and abs(t - before) < _ENOUGH:
            break
    width = 1e-2
    around = [loss(t + shift, beta) for shift in (-width, 0.0, width)]
    bend = (around[0] - 2 * around[1] + around[2]) / width**2
    return {
        **quadratic(X, beta, *by_eta(beta, t)),
        f"center_{name}": t,
        f"spread_{name}": float(np.clip(1 / np.sqrt(max(bend, 1e-10)), 1e-5, 2.0)),
    }


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


_LEVEL_STEPS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class _Basis:
    """B = center + columns (spread * Z) levels', Z about standard normal given the data: (K, K),
    (K, C - 1) and (C - 1, C - 1)."""

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
    """The mode, roughly, and two bases: ``center_beta`` and ``spread_beta`` (K, C - 1),
    ``column_basis`` (K, K), ``level_basis`` (C - 1, C - 1), from frequency times weight `counts`
    (d, C) by distinct row X (d, K) and level."""
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
    fit = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _LEVEL_STEPS}
    )
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


_THRESHOLD_STEPS = 300
_WIDTH = 1e-4


def log_of_levels(y: Any, threshold: FloatArray, eta: FloatArray) -> FloatArray:
    """log P(level y), (..., b), of places y (b,), thresholds (..., C - 1), eta (..., b)."""
    ends = np.full((*threshold.shape[:-1], 1), np.inf)
    cuts = np.concatenate([-ends, threshold, ends], axis=-1)
    with np.errstate(divide="ignore"):  # of a level between two thresholds that are one
        gap = np.log(-np.expm1(cuts[..., :-1] - cuts[..., 1:]))
    below, above = eta - np.take(cuts, y, axis=-1), eta - np.take(cuts, y + 1, axis=-1)
    return np.asarray(np.take(gap, y, axis=-1) - softplus(above)[0] - softplus(below)[1])


def rough_ordinal(
    counts: FloatArray, X: FloatArray, prior_scale: FloatArray
) -> dict[str, FloatArray]:
    """``center`` (C + K - 1,), ``factor`` (C + K - 1, C + K - 2), ``middle`` (K,), from frequency
    times weight `counts` (d, C) by distinct row X (d, K), whose first column is 1, and level."""
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
        point = start.copy()
        point[free] += scale * v
        value, slope = posterior.at(point)
        return -value, -slope[free] * scale

    zero = np.zeros(free.size)
    fit = scipy.optimize.minimize(
        scaled, zero, jac=True, method="L-BFGS-B", options={"maxiter": _THRESHOLD_STEPS}
    )
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
    """Log posterior density in the coordinates, for centered and scaled predictors X (r, K - 1), of
    the rows with weight (r,) at levels y (r,); `slope_scale` (K - 1,) are deviations of the scaled
    coefficients' prior, `shift` what these add to the thresholds."""

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
