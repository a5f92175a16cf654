"""Scores of the built-in models: gradients of one record's log-likelihood, and what goes with them.

A `Scoring` joins a model to predictors and to no outcome. Its coordinates are unbounded: the
coefficients, then the logarithm of a second parameter (precision, deviation, shape) above its
floor. Outcomes are numbers on the scale of the likelihood, NaN where a record has none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, special
from scipy.special import expit, logit

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.laws import LARGEST_ETA, Law, bins_of, fit_histogram, intercept_of, range_of

_STEP = 1e-4
_SMALLEST_PRECISION = 1e-6

BinOf = Callable[[FloatArray], FloatArray]
NoisyCounts = Callable[[BinOf, int], FloatArray]
"""From a function that gives the bin of each outcome, NaN for none, and the number of bins, to
noisy counts of all records: the caller has the outcomes, wherever they are."""


class Scoring(ABC):
    """A model joined to predictors, at unbounded coordinates theta (d,)."""

    names: tuple[str, ...]
    """Names of the coordinates."""

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    @property
    @abstractmethod
    def linear(self) -> FloatArray:
        """Derivative of the linear predictor by the coordinates, (n, d); for the step's length."""

    @abstractmethod
    def rows(self, at: Any) -> Scoring:
        """The same for some of the rows."""

    @abstractmethod
    def scores(self, theta: FloatArray, y: FloatArray) -> FloatArray:
        """Gradient of each record's log-likelihood, (n, d); not finite where y is not."""

    @abstractmethod
    def simulate(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Outcomes drawn anew at theta, (n,), on the scale of the likelihood."""

    @abstractmethod
    def prior(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (d,) of the log prior, and its precision (d, d), minus the second derivative."""

    @abstractmethod
    def start(self, noisy_counts: NoisyCounts, noise_sd: float) -> FloatArray:
        """A first point from `looks` noisy histograms of the outcome alone, whose counts have
        noise of this deviation."""

    @abstractmethod
    def parameters(self, theta: FloatArray) -> dict[str, FloatArray]:
        """Parameters of the likelihood, one draw: shape (1, *dims) each."""

    @property
    def looks(self) -> int:
        """Histograms that `start` reads."""
        return 1

    def blocks_at(self, theta: FloatArray) -> list[tuple[str, Scoring, FloatArray]]:
        """Name, scoring and coordinates of each block of a model, that of the values last."""
        return [("value", self, theta)]


def _of_block(y: FloatArray, *, block: int, bin_of: BinOf) -> FloatArray:
    return bin_of(y[:, block])


def by_row(X: FloatArray, coefficients: FloatArray) -> FloatArray:
    """X times coefficients, a row of which depends on that row alone, to the last bit: a product
    by BLAS depends on how many rows there are."""
    return np.asarray(np.einsum("ij,j...->i...", X, coefficients))


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearScoring(Scoring):
    """A law of X beta + offset: coordinates are beta (K,) and, if the law has a size, its u."""

    law: Law
    X: FloatArray
    offset: FloatArray
    columns: tuple[str, ...]
    prior_sd: FloatArray
    share: bool = False
    """True of `Beta`, whose mean phi has a uniform prior."""

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.columns, *(() if self.law.size is None else (f"log({self.law.size})",)))

    @property
    def linear(self) -> FloatArray:
        return np.hstack([self.X, np.zeros((len(self.X), self.d - self.X.shape[1]))])

    def rows(self, at: Any) -> LinearScoring:
        return replace(self, X=self.X[at], offset=self.offset[at])

    def _at(self, theta: FloatArray) -> tuple[FloatArray, float]:
        eta = by_row(self.X, theta[: self.X.shape[1]]) + self.offset
        return eta, self.law.size_at(float(theta[-1]))

    def scores(self, theta: FloatArray, y: FloatArray) -> FloatArray:
        eta, size = self._at(theta)
        with np.errstate(all="ignore"):
            by_eta, by_size = self.law.slopes(y, eta, size)
            of_beta = by_eta[:, None] * self.X
            if self.law.size is None:
                return np.asarray(of_beta)
            return np.column_stack([of_beta, by_size * (size - self.law.floor)])

    def simulate(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        return self.law.draw(*self._at(theta), rng)

    def prior(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        K = self.X.shape[1]
        if self.share:  # phi uniform: eta is logistic
            gradient = np.array([1 - 2 * expit(theta[0])])
            precision = np.array([2 * expit(theta[0]) * expit(-theta[0])])
        else:
            gradient, precision = -theta[:K] / self.prior_sd**2, 1 / self.prior_sd**2
        if self.law.size is not None:
            u, f = float(theta[-1]), self.law.log_prior_of_size
            gradient = np.append(gradient, (f(u + _STEP) - f(u - _STEP)) / (2 * _STEP))
            second = (f(u + 0.01) - 2 * f(u) + f(u - 0.01)) / 0.01**2
            precision = np.append(precision, -second)
        return gradient, np.diag(np.maximum(precision, _SMALLEST_PRECISION))

    @property
    def looks(self) -> int:
        return 1 if self.law.finer_edges(0.0, 1.0) is None else 3

    def start(self, noisy_counts: NoisyCounts, noise_sd: float) -> FloatArray:
        law, edges, near = self.law, self.law.edges, None
        for _ in range(self.looks):
            counts = noisy_counts(partial(bins_of, edges=edges), edges.size)
            eta, u = near = fit_histogram(law, edges, counts, noise_sd, near)
            finer = law.finer_edges(*range_of(law, edges, eta, u))
            edges = edges if finer is None else finer
        beta = intercept_of(self.X, eta - float(self.offset.mean()))
        return beta if law.size is None else np.append(beta, u)

    def parameters(self, theta: FloatArray) -> dict[str, FloatArray]:
        beta = theta[: self.X.shape[1]]
        named = {"phi": expit(beta[:1])} if self.share else {"beta": beta[None]}
        if self.law.size is not None:
            named[self.law.size] = np.array([self.law.size_at(float(theta[-1]))])
        return named


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelScoring(Scoring):
    """Outcomes with levels, as places among these."""

    X: FloatArray
    columns: tuple[str, ...]
    levels: tuple[str, ...]
    prior_sd: FloatArray

    def rows(self, at: Any) -> LevelScoring:
        return replace(self, X=self.X[at])

    @abstractmethod
    def shares(self, theta: FloatArray) -> FloatArray:
        """Probability of each level at each row, (n, C)."""

    def simulate(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        below = self.shares(theta).cumsum(axis=1)[:, :-1]
        return np.asarray((rng.random((len(below), 1)) >= below).sum(axis=1).astype(np.float64))


def _noisy_shares(noisy_counts: NoisyCounts, n_levels: int, noise_sd: float) -> FloatArray:
    """Shares (C,) above 0 from noisy counts; one below the noise counts as half of the noise."""
    kept = np.maximum(noisy_counts(np.positive, n_levels), max(noise_sd / 2, 0.5))
    return np.asarray(kept / kept.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class CategoricalScoring(LevelScoring):
    """Levels in no order: coordinates are the coefficients (K, C - 1) of all but the first level,
    row by row; the contrast of any two levels has the same normal prior."""

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"{column}, {level}" for column in self.columns for level in self.levels[1:])

    @property
    def linear(self) -> FloatArray:
        return np.asarray(np.repeat(self.X, len(self.levels) - 1, axis=1))

    def shares(self, theta: FloatArray) -> FloatArray:
        eta = by_row(self.X, theta.reshape(self.X.shape[1], -1))
        return np.asarray(special.softmax(np.hstack([np.zeros((len(eta), 1)), eta]), axis=1))

    def scores(self, theta: FloatArray, y: FloatArray) -> FloatArray:
        level = np.arange(1, len(self.levels))
        of_level = np.where(np.isfinite(y)[:, None], y[:, None] == level, np.nan)
        beyond = of_level - self.shares(theta)[:, 1:]
        return np.asarray((self.X[:, :, None] * beyond[:, None, :]).reshape(len(y), -1))

    def prior(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        beside = len(self.levels) - 1
        inverse = np.linalg.inv((np.eye(beside) + 1) / 2)
        precision = np.kron(np.diag(1 / self.prior_sd**2), inverse)
        return -precision @ theta, precision

    def start(self, noisy_counts: NoisyCounts, noise_sd: float) -> FloatArray:
        shares = _noisy_shares(noisy_counts, len(self.levels), noise_sd)
        columns = [intercept_of(self.X, float(eta)) for eta in np.log(shares[1:] / shares[0])]
        return np.column_stack(columns).ravel()

    def parameters(self, theta: FloatArray) -> dict[str, FloatArray]:
        return {"beta": theta.reshape(1, self.X.shape[1], -1)}


@dataclass(frozen=True, kw_only=True, eq=False)
class OrdinalScoring(LevelScoring):
    """Ordered levels: coordinates are the first threshold, the logarithms of the gaps to the next
    ones (C - 2,), and the coefficients of all columns but the intercept."""

    prior_sd_thresholds: float

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        gaps = tuple(f"log(gap {k})" for k in range(2, len(self.levels)))
        return ("threshold 1", *gaps, *self.columns[1:])

    @property
    def linear(self) -> FloatArray:
        gaps = np.zeros((len(self.X), len(self.levels) - 2))
        return np.hstack([-np.ones((len(self.X), 1)), gaps, self.X[:, 1:]])

    def _thresholds(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Thresholds (C - 1,) and their derivative by the first C - 1 coordinates."""
        gaps = np.exp(np.clip(theta[1 : len(self.levels) - 1], -LARGEST_ETA, LARGEST_ETA))
        by = np.tri(gaps.size + 1) * np.append(1.0, gaps)
        return theta[0] + np.append(0.0, gaps.cumsum()), by

    def _below(self, theta: FloatArray) -> FloatArray:
        """P(y < k) for k = 0, ..., C at each row, (n, C + 1)."""
        eta = by_row(self.X[:, 1:], theta[len(self.levels) - 1 :])
        inner = expit(self._thresholds(theta)[0] - eta[:, None])
        return np.pad(inner, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))

    def shares(self, theta: FloatArray) -> FloatArray:
        return np.asarray(np.diff(self._below(theta)))

    def scores(self, theta: FloatArray, y: FloatArray) -> FloatArray:
        known = np.isfinite(y)
        place = np.where(known, y, 0).astype(np.intp)
        below, row = self._below(theta), np.arange(len(y))
        low, high = below[row, place], below[row, place + 1]
        with np.errstate(all="ignore"):
            share = np.where(known, high - low, np.nan)
            by_threshold = np.zeros((len(y), len(self.levels) + 1))
            by_threshold[row, place + 1] = high * (1 - high) / share
            by_threshold[row, place] = -low * (1 - low) / share
            by_eta = np.where(known, low + high - 1, np.nan)
        of_thresholds = by_row(by_threshold[:, 1:-1], self._thresholds(theta)[1])
        return np.hstack([of_thresholds, by_eta[:, None] * self.X[:, 1:]])

    def prior(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        thresholds, by = self._thresholds(theta)
        weight, cut = 1 / self.prior_sd_thresholds**2, len(thresholds)
        of_thresholds = -weight * by.T @ thresholds
        of_thresholds[1:] += 1  # the Jacobian of the gaps
        gradient = np.append(of_thresholds, -theta[cut:] / self.prior_sd**2)
        precision = np.zeros((self.d, self.d))
        precision[:cut, :cut] = weight * by.T @ by + _SMALLEST_PRECISION * np.eye(cut)
        precision[cut:, cut:] = np.diag(1 / self.prior_sd**2)
        return gradient, precision

    def start(self, noisy_counts: NoisyCounts, noise_sd: float) -> FloatArray:
        shares = _noisy_shares(noisy_counts, len(self.levels), noise_sd)
        thresholds = logit(shares.cumsum()[:-1])
        gaps = np.log(np.maximum(np.diff(thresholds), 1e-3))
        return np.concatenate([thresholds[:1], gaps, np.zeros(self.X.shape[1] - 1)])

    def parameters(self, theta: FloatArray) -> dict[str, FloatArray]:
        thresholds = self._thresholds(theta)[0]
        beta = np.append(-thresholds[0], theta[len(thresholds) :])
        return {"beta": beta[None], "threshold": thresholds[None]}


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockScoring(Scoring):
    """Blocks that share no coordinates: whether an outcome is missing, or 0, and its value where it
    is neither. Scores are stacked, so that a record is clipped as a whole. An outcome is a row of
    numbers (B,), one for each block, NaN where the record does not reach it."""

    blocks: tuple[tuple[str, Scoring], ...]

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"{block}: {name}" for block, scoring in self.blocks for name in scoring.names)

    @property
    def linear(self) -> FloatArray:
        return np.asarray(linalg.block_diag(*(scoring.linear for _, scoring in self.blocks)))

    def rows(self, at: Any) -> BlockScoring:
        return BlockScoring(blocks=tuple((name, scoring.rows(at)) for name, scoring in self.blocks))

    def blocks_at(self, theta: FloatArray) -> list[tuple[str, Scoring, FloatArray]]:
        ends = np.cumsum([scoring.d for _, scoring in self.blocks])[:-1]
        pairs = zip(self.blocks, np.split(theta, ends), strict=True)
        return [(name, scoring, at) for (name, scoring), at in pairs]

    def scores(self, theta: FloatArray, y: FloatArray) -> FloatArray:
        stacked = []
        for (_, scoring, at), outcome in zip(self.blocks_at(theta), y.T, strict=True):
            reached = np.isfinite(outcome)[:, None]
            stacked.append(np.where(reached, scoring.scores(at, outcome), 0.0))
        return np.hstack(stacked)

    def simulate(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        blocks = self.blocks_at(theta)
        drawn = np.column_stack([scoring.simulate(at, rng) for _, scoring, at in blocks])
        left = np.ones(len(drawn), dtype=bool)
        for place in range(1, len(self.blocks)):
            left &= drawn[:, place - 1] == 0
            drawn[~left, place] = np.nan
        return drawn

    def prior(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        priors = [scoring.prior(at) for _, scoring, at in self.blocks_at(theta)]
        gradients, precisions = zip(*priors, strict=True)
        return np.concatenate(gradients), np.asarray(linalg.block_diag(*precisions))

    @property
    def looks(self) -> int:
        return sum(scoring.looks for _, scoring in self.blocks)

    def start(self, noisy_counts: NoisyCounts, noise_sd: float) -> FloatArray:
        starts = []
        for block, (_, scoring) in enumerate(self.blocks):

            def counts_of(bin_of: BinOf, n_bins: int, block: int = block) -> FloatArray:
                return noisy_counts(partial(_of_block, block=block, bin_of=bin_of), n_bins)

            starts.append(scoring.start(counts_of, noise_sd))
        return np.concatenate(starts)

    def parameters(self, theta: FloatArray) -> dict[str, FloatArray]:
        return {
            f"{name}_{block}": values
            for block, scoring, at in self.blocks_at(theta)
            for name, values in scoring.parameters(at).items()
        }
