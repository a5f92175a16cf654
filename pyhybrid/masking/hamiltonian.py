r"""Posterior draws of one conditional model's parameters: Hamiltonian Monte Carlo about its mode.

Gibbs steps through latent normals mix slowly for cutpoints once n is large, and a multinomial logit
has none. The log posteriors here are close to normal, so in coordinates whitened by the curvature
at the mode a path of length about pi/2 gives nearly independent draws, exactly (with a Metropolis
step), also when imputed values move the mode a little.

References
----------
Neal (2011), MCMC using Hamiltonian dynamics. Cowles (1996), Statistics and Computing 6:101-111, for
the cutpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from pyhybrid.checks import FloatArray

__all__ = ["LogPosterior", "Metric", "Walker", "metric_at_mode"]

LogPosterior = Callable[[FloatArray], tuple[float, FloatArray]]
"""Log density up to a constant, and its gradient."""

_PATH = 1.6
_STEP, _SMALLEST, _LARGEST = 0.4, 0.03, 0.7
_TARGET = 0.85
_DIFFERENCE = 1e-4


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

    def move(
        self, target: LogPosterior, metric: Metric, rng: np.random.Generator, *, adapt: bool
    ) -> None:
        """One transition, in place."""
        step = self.step * rng.uniform(0.9, 1.1)
        n_steps = max(1, round(_PATH / step * rng.uniform(0.8, 1.2)))
        start = rng.standard_normal(self.theta.size)
        value, gradient = target(self.theta)
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
            self.theta = theta
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
