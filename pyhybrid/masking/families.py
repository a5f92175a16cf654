r"""Conditional models of keys: normal regression; probit, ordered probit, multinomial logit.

A normal regression has a conjugate posterior: slopes N(0, variance / 0.01) on standardized columns,
variance inverse gamma (1, 0.01). The models of levels map linear predictors eta of shape (n, C) to
log probabilities of the levels, with gradients:

- binary, C = 1: P(x = 0) = Phi(-eta), ordered with the one cutpoint 0;
- ordered, C = 1: P(x <= l) = Phi(c_l - eta), cutpoints c rising, log differences free;
- nominal, C = levels - 1: P(x = l) proportional to exp(eta_l), eta_0 = 0.

Parameters are one vector: coefficients (p, C) row by row, then the free cutpoints. Priors are
normal, and proper, so that separation does no harm: coefficients sd 2.5 (standardized or 0/1
columns), intercepts and first cutpoint sd 5, log differences of cutpoints N(-1/2, 1.5^2).

Parameters of models of levels are drawn by Hamiltonian Monte Carlo about the mode: in coordinates
whitened by the curvature at the mode a path of length about pi/2 gives nearly independent draws,
exactly (with a Metropolis step), also when imputed values move the mode a little.

References
----------
Neal (2011), MCMC using Hamiltonian dynamics. Cowles (1996), Statistics and Computing 6:101-111, for
the cutpoints. Murray, Adams, MacKay (2010), Elliptical slice sampling, AISTATS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri

from pyhybrid.core.checks import FloatArray, IntArray

LogPosterior = Callable[[FloatArray], tuple[float, FloatArray]]
"""Log density, up to a constant, and its gradient."""
_PATH = 1.6
STEP = 0.4
"""Size of the first steps."""
_SMALLEST, _LARGEST = 0.03, 0.7
_ACCEPTED = 0.85
_DIFFERENCE = 1e-4
_MOST_SHRINKS = 200
_SLOPE_PRECISION = 0.01  # of a normal regression, relative to the residual precision
_SHAPE, _RATE = 1.0, 0.01
_COEFFICIENT_SD, _INTERCEPT_SD = 2.5, 5.0
_GAP_MEAN, _GAP_SD = -0.5, 1.5
_SMALL = 1e-280  # below, probabilities lose digits and are computed as logarithms
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalAtMode:
    """A normal near a posterior: its `mode` (d,), and a root of its covariance `spread` (d, d)."""

    mode: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, posterior: LogPosterior, start: FloatArray) -> NormalAtMode:
        """Mode by quasi-Newton steps, curvature there by differences of the gradient."""

        def falling(theta: FloatArray) -> tuple[float, FloatArray]:
            value, slope = posterior(theta)
            if not (np.isfinite(value) and np.isfinite(slope).all()):
                return 1e100, np.zeros_like(theta)
            return -value, -slope

        fit = scipy.optimize.minimize(
            falling, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}
        )
        mode: FloatArray = np.asarray(fit.x)
        steps = _DIFFERENCE * np.eye(mode.size)
        curvature = np.array([posterior(mode - h)[1] - posterior(mode + h)[1] for h in steps])
        values, vectors = np.linalg.eigh((curvature + curvature.T) / (4 * _DIFFERENCE))
        floor = np.maximum(values, 1e-6 * values.max())
        return cls(mode=mode, spread=vectors / np.sqrt(floor))

    def dispersed(self, rng: np.random.Generator) -> FloatArray:
        """A draw, twice as far from the mode, shape (d,)."""
        return np.asarray(self.mode + 2 * self.spread @ rng.standard_normal(self.mode.size))

    def move(
        self, theta: FloatArray, posterior: LogPosterior, step: float, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """One transition from `theta` (d,) that leaves the posterior invariant, by steps of about
        this size; with the probability that its proposal had."""
        step *= rng.uniform(0.9, 1.1)
        momentum = start = rng.standard_normal(theta.size)
        moved = theta
        before, gradient = posterior(theta)
        slope = self.spread.T @ gradient
        for _ in range(max(1, round(_PATH / step * rng.uniform(0.8, 1.2)))):
            momentum = momentum + 0.5 * step * slope
            moved = moved + step * (self.spread @ momentum)
            after, gradient = posterior(moved)
            slope = self.spread.T @ gradient
            if not np.isfinite(slope).all():
                return theta, 0.0
            momentum = momentum + 0.5 * step * slope
        gain = after - before - 0.5 * float(momentum @ momentum - start @ start)
        chance = float(np.exp(min(0.0, gain))) if np.isfinite(gain) else 0.0
        return (moved if rng.random() < chance else theta), chance


def adapted(step: float, accepted: float, n_adapted: int) -> float:
    """The step nearer to one whose proposals are accepted with probability 0.85."""
    change = (accepted - _ACCEPTED) / np.sqrt(n_adapted + 6)
    return float(np.clip(step * np.exp(change), _SMALLEST, _LARGEST))


def elliptical_slice(
    current: FloatArray,
    mean: FloatArray,
    prior_draw: FloatArray,
    log_likelihood: Callable[[FloatArray, IntArray], FloatArray],
    rng: np.random.Generator,
) -> FloatArray:
    """One update (n, d) of each record under its normal prior (`prior_draw` less its mean) and its
    own likelihood: `log_likelihood` takes values (k, d) and their k records and returns (k,)."""
    n = len(current)
    centered, moved = current - mean, current.copy()
    rows = np.arange(n)
    level = log_likelihood(current, rows) + np.log(rng.random(n))
    angle = rng.uniform(0, 2 * np.pi, n)
    low, high = angle - 2 * np.pi, angle.copy()
    for _ in range(_MOST_SHRINKS):
        cos, sin = np.cos(angle[rows])[:, None], np.sin(angle[rows])[:, None]
        tried = mean[rows] + cos * centered[rows] + sin * prior_draw[rows]
        inside = ~(log_likelihood(tried, rows) < level[rows])
        moved[rows[inside]] = tried[inside]
        rows = rows[~inside]
        if not rows.size:
            break
        left = angle[rows] < 0
        low[rows[left]], high[rows[~left]] = angle[rows[left]], angle[rows[~left]]
        angle[rows] = rng.uniform(low[rows], high[rows])
    return np.asarray(moved)


def truncated_normal(
    mean: Any, sd: Any, low: Any, high: Any, rng: np.random.Generator
) -> FloatArray:
    """Draws from N(mean, sd^2) within [low, high], by inversion."""
    a, b = (np.asarray(low) - mean) / sd, (np.asarray(high) - mean) / sd
    turned = a > -b  # the mass lies to the right: mirror it, where probabilities keep their digits
    a, b = np.where(turned, -b, a), np.where(turned, -a, b)
    under, over = ndtr(a), ndtr(b)
    z = ndtri(under + rng.random(over.shape) * (over - under))
    lost = over == 0  # beyond 37 sd, where the normal falls like an exponential
    if lost.any():
        z[lost] = b[lost] - rng.exponential(size=int(lost.sum())) / np.abs(b[lost])
    z = np.clip(z, a, b)
    return np.asarray(mean + sd * np.where(turned, -z, z))


def draw_levels(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """One level of each record, with probabilities proportional to exp(log_weights) (n, levels)."""
    noise = rng.gumbel(size=log_weights.shape)
    return np.asarray((log_weights + noise).argmax(axis=1))


def draw_normal_regression(
    design: FloatArray, x: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Slopes and residual variance (p + 1,) from their posterior given a design and values."""
    factor = np.linalg.cholesky(design.T @ design + _SLOPE_PRECISION * np.eye(design.shape[1]))
    half = solve_triangular(factor, design.T @ x, lower=True)
    rate = max(_RATE + 0.5 * float(x @ x - half @ half), _RATE)
    variance = rate / rng.gamma(_SHAPE + 0.5 * x.size)
    noise = np.sqrt(variance) * rng.standard_normal(half.size)
    return np.append(solve_triangular(factor.T, half + noise), variance)


@dataclass(frozen=True, kw_only=True)
class LevelModel:
    """p(x | design) for a key with levels. The first of the `n_columns` is the intercept, whose
    coefficient is 0 for ordered keys (the cutpoints stand for it)."""

    kind: str
    n_levels: int
    n_columns: int

    @property
    def n_outputs(self) -> int:
        """C, columns of eta."""
        return self.n_levels - 1 if self.kind == "nominal" else 1

    @property
    def size(self) -> int:
        """Length of the parameter vector."""
        n_cuts = self.n_levels - 1 if self.kind == "ordered" else 0
        return self.n_columns * self.n_outputs + n_cuts

    def coefficients(self, theta: FloatArray) -> FloatArray:
        """Coefficients, shape (p, C)."""
        free = theta[: self.n_columns * self.n_outputs]
        coefficients: FloatArray = free.reshape(self.n_columns, self.n_outputs).copy()
        if self.kind == "ordered":
            coefficients[0] = 0.0
        return coefficients

    def cuts(self, theta: FloatArray) -> FloatArray:
        """Rising cutpoints, shape (levels - 1,); 0 if binary, empty if nominal."""
        free = theta[self.n_columns * self.n_outputs :]
        if not free.size:
            return np.zeros(1 if self.kind == "binary" else 0)
        return np.asarray(free[0] + np.concatenate(([0.0], np.cumsum(np.exp(free[1:])))))

    def log_probabilities(
        self, eta: FloatArray, cuts: FloatArray, x: IntArray | None = None
    ) -> FloatArray:
        """log P of every level, shape (n, levels), or of the levels x, shape (n,)."""
        if self.kind == "nominal":
            logs = np.asarray(_log_softmax(eta).T)
            return logs if x is None else np.asarray(logs[np.arange(x.size), x])
        edges = np.concatenate(([-np.inf], cuts, [np.inf]))
        if x is None:
            return log_between(edges[:-1] - eta, edges[1:] - eta)
        return log_between(edges[x] - eta[:, 0], edges[x + 1] - eta[:, 0])

    def log_posterior(
        self, theta: FloatArray, design: FloatArray, x: IntArray
    ) -> tuple[float, FloatArray]:
        """Log posterior density, up to a constant, and its gradient (size,)."""
        eta, (center, sd) = design @ self.coefficients(theta), self._prior
        gradient: FloatArray = (center - theta) / sd**2
        split = self.n_columns * self.n_outputs
        if self.kind == "nominal":
            by_level = _log_softmax(eta)
            logs = by_level[x, np.arange(x.size)]
            chosen = np.arange(self.n_levels)[:, None] == x
            slope = design.T @ (chosen[1:] - np.exp(by_level[1:])).T
        else:
            edges = np.concatenate(([-np.inf], self.cuts(theta), [np.inf]))
            low, high = edges[x] - eta[:, 0], edges[x + 1] - eta[:, 0]
            logs = log_between(low, high)
            above, below = _ratio(high, logs), _ratio(low, logs)
            slope = design.T @ (below - above)[:, None]
        if self.kind == "ordered":
            slope[0] = 0.0
            by_cut = np.bincount(x, above, self.n_levels)[:-1]
            by_cut = by_cut - np.bincount(x, below, self.n_levels)[1:]
            tails = np.cumsum(by_cut[::-1])[::-1]
            gradient[split:] += tails * np.append(1.0, np.exp(theta[split + 1 :]))
        gradient[:split] += slope.ravel()
        return float(logs.sum()) - 0.5 * float((((theta - center) / sd) ** 2).sum()), gradient

    @cached_property
    def _prior(self) -> tuple[FloatArray, FloatArray]:
        sd = np.full((self.n_columns, self.n_outputs), _COEFFICIENT_SD)
        sd[0] = _INTERCEPT_SD
        center = np.zeros(self.size)
        if self.kind != "ordered":
            return center, sd.ravel()
        center[sd.size + 1 :] = _GAP_MEAN
        gaps = np.full(self.n_levels - 2, _GAP_SD)
        return center, np.concatenate([sd.ravel(), [_INTERCEPT_SD], gaps])


def _log_softmax(eta: FloatArray) -> FloatArray:
    """log P of the levels of a nominal key, shape (levels, n): sums run along the records."""
    full = np.zeros((eta.shape[1] + 1, len(eta)))
    full[1:] = eta.T
    full -= full.max(axis=0)
    full -= np.log(np.exp(full).sum(axis=0))
    return full


def _ratio(z: FloatArray, log_probability: FloatArray) -> FloatArray:
    """phi(z) / P, 0 where z is infinite."""
    return np.asarray(np.exp(-0.5 * z * z - _HALF_LOG_2PI - log_probability))


def log_between(low: Any, high: Any) -> FloatArray:
    """log(Phi(high) - Phi(low)), low < high, without loss in either tail."""
    turned = low > 0  # the mass lies to the right: mirror it, where probabilities keep their digits
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    mass: FloatArray = ndtr(b) - ndtr(a)
    small = mass < _SMALL
    if not small.any():
        return np.asarray(np.log(mass))
    logs = np.log(np.where(small, 1.0, mass))
    a, b = a[small], b[small]
    top = log_ndtr(b)
    with np.errstate(divide="ignore"):
        logs[small] = top + np.log1p(-np.exp(np.minimum(log_ndtr(a) - top, 0.0)))
    return np.asarray(logs)
