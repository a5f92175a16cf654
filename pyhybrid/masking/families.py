r"""Conditional models of keys with levels: probit, ordered probit, multinomial logit.

Each maps linear predictors eta of shape (n, C) to log probabilities of the levels, with gradients:

- binary, C = 1: P(x = 1) = Phi(eta);
- ordered, C = 1: P(x <= l) = Phi(c_l - eta), cutpoints c rising, log differences free;
- nominal, C = levels - 1: P(x = l) proportional to exp(eta_l), eta_0 = 0.

Parameters are one vector: coefficients (p, C) row by row, then the free cutpoints. Priors are
normal: coefficients sd 2.5 (standardised or 0/1 columns), intercepts and first cutpoint sd 5, log
differences of cutpoints N(-1/2, 1.5^2). They are proper, so that separation does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from pyhybrid.checks import FloatArray

__all__ = ["LevelModel", "log_between"]

_COEFFICIENT_SD, _INTERCEPT_SD = 2.5, 5.0
_GAP_MEAN, _GAP_SD = -0.5, 1.5
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class LevelModel:
    """p(x | design) for a key with levels.

    Attributes
    ----------
    kind : {"binary", "ordered", "nominal"}
    n_levels : int
    n_columns : int
        p, columns of the design; the first is the intercept, whose coefficient is 0 for ordered
        keys (the cutpoints stand for it).
    """

    kind: str
    n_levels: int
    n_columns: int

    @property
    def n_outputs(self) -> int:
        """C, columns of eta."""
        return self.n_levels - 1 if self.kind == "nominal" else 1

    @property
    def n_cuts(self) -> int:
        """Free cutpoints."""
        return self.n_levels - 1 if self.kind == "ordered" else 0

    @property
    def size(self) -> int:
        """Length of the parameter vector."""
        return self.n_columns * self.n_outputs + self.n_cuts

    def coefficients(self, theta: FloatArray) -> FloatArray:
        """Coefficients, shape (p, C)."""
        own = theta[: self.n_columns * self.n_outputs].reshape(self.n_columns, self.n_outputs)
        if self.kind == "ordered":
            own = own.copy()
            own[0] = 0.0
        return own

    def cuts(self, theta: FloatArray) -> FloatArray:
        """Rising cutpoints, shape (levels - 1,); empty unless ordered."""
        free = theta[self.n_columns * self.n_outputs :]
        if not free.size:
            return free
        return np.asarray(free[0] + np.concatenate(([0.0], np.cumsum(np.exp(free[1:])))))

    def log_probabilities(self, eta: FloatArray, cuts: FloatArray) -> FloatArray:
        """log P of every level, shape (n, levels)."""
        if self.kind == "nominal":
            full = np.hstack([np.zeros((len(eta), 1)), eta])
            full -= full.max(axis=1, keepdims=True)
            return np.asarray(full - np.log(np.exp(full).sum(axis=1, keepdims=True)))
        if self.kind == "binary":
            return np.hstack([log_ndtr(-eta), log_ndtr(eta)])
        edges = np.concatenate(([-np.inf], cuts, [np.inf])) - eta
        return log_between(edges[:, :-1], edges[:, 1:])

    def log_probability(self, eta: FloatArray, cuts: FloatArray, x: Codes) -> FloatArray:
        """log P of the given levels, shape (n,)."""
        if self.kind == "nominal":
            return np.asarray(self.log_probabilities(eta, cuts)[np.arange(x.size), x])
        if self.kind == "binary":
            return np.asarray(log_ndtr((2 * x - 1) * eta[:, 0]))
        edges = np.concatenate(([-np.inf], cuts, [np.inf]))
        return log_between(edges[x] - eta[:, 0], edges[x + 1] - eta[:, 0])

    def log_posterior(
        self, theta: FloatArray, design: FloatArray, x: Codes
    ) -> tuple[float, FloatArray]:
        """Log posterior density (up to a constant) and its gradient, shape (size,)."""
        cuts = self.cuts(theta)
        eta = design @ self.coefficients(theta)
        value, by_eta, by_cut = self._likelihood(eta, cuts, x)
        gradient = np.empty_like(theta)
        split = self.n_columns * self.n_outputs
        slope = design.T @ by_eta
        if self.kind == "ordered":
            slope[0] = 0.0
            gaps = np.exp(theta[split + 1 :])
            tails = np.cumsum(by_cut[::-1])[::-1]
            gradient[split:] = np.concatenate(([tails[0]], tails[1:] * gaps))
        gradient[:split] = slope.ravel()
        centre, sd = self._prior()
        gradient -= (theta - centre) / sd**2
        return value - 0.5 * float((((theta - centre) / sd) ** 2).sum()), gradient

    def _prior(self) -> tuple[FloatArray, FloatArray]:
        sd = np.full((self.n_columns, self.n_outputs), _COEFFICIENT_SD)
        sd[0] = _INTERCEPT_SD
        centre = np.zeros(self.size)
        if not self.n_cuts:
            return centre, sd.ravel()
        gaps = self.n_cuts - 1
        centre[self.size - gaps :] = _GAP_MEAN
        return centre, np.concatenate([sd.ravel(), [_INTERCEPT_SD], np.full(gaps, _GAP_SD)])

    def _likelihood(
        self, eta: FloatArray, cuts: FloatArray, x: Codes
    ) -> tuple[float, FloatArray, FloatArray]:
        """Sum of log P, its gradient by eta (n, C), and by the cutpoints."""
        if self.kind == "nominal":
            logs = self.log_probabilities(eta, cuts)
            rows = np.arange(x.size)
            by_eta: FloatArray = -np.exp(logs)
            by_eta[rows, x] += 1
            return float(logs[rows, x].sum()), np.asarray(by_eta[:, 1:]), cuts
        if self.kind == "binary":
            sign = 2.0 * x - 1
            signed = sign * eta[:, 0]
            logs = log_ndtr(signed)
            return float(logs.sum()), (sign * _ratio(signed, logs))[:, None], cuts
        edges = np.concatenate(([-np.inf], cuts, [np.inf]))
        low, high = edges[x] - eta[:, 0], edges[x + 1] - eta[:, 0]
        logs = log_between(low, high)
        above, below = _ratio(high, logs), _ratio(low, logs)
        by_cut: FloatArray = np.asarray(
            np.bincount(x, above, self.n_levels)[:-1] - np.bincount(x, below, self.n_levels)[1:]
        )
        return float(logs.sum()), (below - above)[:, None], by_cut


def _ratio(z: FloatArray, log_probability: FloatArray) -> FloatArray:
    """phi(z) / P, 0 where z is infinite."""
    return np.asarray(np.exp(-0.5 * z * z - _HALF_LOG_2PI - log_probability))


def log_between(low: Any, high: Any) -> FloatArray:
    """log(Phi(high) - Phi(low)), low < high, without loss in either tail."""
    turned = low > 0
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    top = log_ndtr(b)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log1p(-np.exp(np.minimum(log_ndtr(a) - top, 0.0))))
