r"""Draws that the samplers are made of: parameters of one conditional model, slices and truncated
normals of many records at once.

Parameters of models of levels are drawn by Hamiltonian Monte Carlo about the mode. Gibbs steps
through latent normals mix slowly for cutpoints once n is large, and a multinomial logit has none.
The log posteriors here are close to normal, so that in coordinates whitened by the curvature at the
mode a path of length about pi/2 gives nearly independent draws, exactly (with a Metropolis step),
also when imputed values move the mode a little.

References
----------
Neal (2011), MCMC using Hamiltonian dynamics. Cowles (1996), Statistics and Computing 6:101-111, for
the cutpoints. Murray, Adams, MacKay (2010), Elliptical slice sampling, AISTATS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from pyhybrid.core.checks import FloatArray

__all__ = [
    "LogPosterior",
    "Metric",
    "Walker",
    "draw_levels",
    "elliptical_slice",
    "metric_at_mode",
    "truncated_normal",
]

LogPosterior = Callable[[FloatArray], tuple[float, FloatArray]]
"""Log density up to a constant, and its gradient."""

_PATH = 1.6
_STEP, _SMALLEST, _LARGEST = 0.4, 0.03, 0.7
_TARGET = 0.85
_DIFFERENCE = 1e-4
_MOST_SHRINKS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric:
    """Mode, shape (d,), and the square root of the inverse curvature there, shape (d, d)."""

    mode: FloatArray
    spread: FloatArray


@dataclass(kw_only=True, eq=False)
class Walker:
    """Where one chain stands, with its step size; `seen` counts the steps it was adapted by."""

    theta: FloatArray
    step: float = _STEP
    seen: int = 0
    divergent: int = 0
    known: tuple[float, FloatArray] | None = None
    """Value and gradient of the target at `theta`; None once another target is to be used."""

    def move(
        self, target: LogPosterior, metric: Metric, rng: np.random.Generator, *, adapt: bool
    ) -> None:
        """One transition, in place."""
        step = self.step * rng.uniform(0.9, 1.1)
        n_steps = max(1, round(_PATH / step * rng.uniform(0.8, 1.2)))
        start = rng.standard_normal(self.theta.size)
        value, gradient = self.known = self.known or target(self.theta)
        theta, momentum, energy = self.theta.copy(), start.copy(), value
        for _ in range(n_steps):
            momentum += 0.5 * step * (metric.spread.T @ gradient)
            theta += step * (metric.spread @ momentum)
            energy, gradient = target(theta)
            momentum += 0.5 * step * (metric.spread.T @ gradient)
            if not (np.isfinite(energy) and np.isfinite(gradient).all()):
                break
        gain = energy - value - 0.5 * float(momentum @ momentum - start @ start)
        chance = float(np.exp(min(0.0, gain))) if np.isfinite(gain) else 0.0
        if not adapt and not gain > -1000:
            self.divergent += 1
        if rng.random() < chance:
            self.theta, self.known = theta, (energy, gradient)
        if adapt:
            self.seen += 1
            change = (chance - _TARGET) / np.sqrt(self.seen + 5)
            self.step = float(np.clip(self.step * np.exp(change), _SMALLEST, _LARGEST))


def metric_at_mode(target: LogPosterior, start: FloatArray) -> Metric:
    """Mode by quasi-Newton steps, curvature there by differences of the gradient."""

    def falling(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = target(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e100, np.zeros_like(theta)
        return -value, -gradient

    found = minimize(falling, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    mode: FloatArray = np.asarray(found.x)
    curvature = np.empty((mode.size, mode.size))
    for place in range(mode.size):
        ahead = mode.copy()
        ahead[place] += _DIFFERENCE
        behind = mode.copy()
        behind[place] -= _DIFFERENCE
        curvature[place] = (target(behind)[1] - target(ahead)[1]) / (2 * _DIFFERENCE)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    floor = np.maximum(values, 1e-6 * values.max())
    factor = np.linalg.cholesky((vectors * floor) @ vectors.T)
    return Metric(mode=mode, spread=solve_triangular(factor.T, np.eye(mode.size)))


def elliptical_slice(
    current: FloatArray,
    mean: FloatArray,
    prior_draw: FloatArray,
    log_likelihood: Callable[[FloatArray, npt.NDArray[np.intp]], FloatArray],
    rng: np.random.Generator,
) -> FloatArray:
    """One update of each record under its normal prior and its own likelihood.

    Parameters
    ----------
    current : ndarray, shape (n, d)
        Where the records stand.
    mean : ndarray, shape (n, d)
        Prior means.
    prior_draw : ndarray, shape (n, d)
        Draws from the prior less its mean.
    log_likelihood : callable
        Takes values (k, d) and the k records they belong to; returns (k,).
    """
    n = len(current)
    centerd, moved = current - mean, current.copy()
    rows = np.arange(n)
    level = log_likelihood(current, rows) + np.log(rng.random(n))
    angle = rng.uniform(0, 2 * np.pi, n)
    low, high = angle - 2 * np.pi, angle.copy()
    for _ in range(_MOST_SHRINKS):
        cos, sin = np.cos(angle[rows])[:, None], np.sin(angle[rows])[:, None]
        tried = mean[rows] + cos * centerd[rows] + sin * prior_draw[rows]
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


def draw_levels(log_weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """One level of each record, with probabilities proportional to exp(log_weights) (n, levels)."""
    noise = rng.gumbel(size=log_weights.shape)
    return np.asarray((log_weights + noise).argmax(axis=1))
