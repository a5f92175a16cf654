r"""Noise-aware log-linear model: the posterior of its effects given noisy tables.

A record with indicators z (L,) of the cells of its predictors has the outcome k with probability

.. math:: p(k \mid z) \propto \exp(a_k + \textstyle\sum_l \theta_{kl} z_l),

whose sufficient statistics are the tables, :math:`s_{kl} = \sum_i 1\{y_i = k\} z_{il}`. Given the
predictors they have mean :math:`\mu(\theta)` and covariance :math:`V(\theta)`, the Fisher
information, and are close to normal. With noise of variance :math:`\sigma^2` on each cell,

.. math:: \tilde s \mid \theta \approx N(\mu(\theta),\ V(\theta) + \sigma^2 I),

so that sampling of the records and noise are in the posterior (NAPSU-MQ). Effects have the prior
N(0, tau_j^2), tau_j ~ half-Cauchy(0, 0.5) for each predictor: what the noise drowns shrinks to 0.
Neighbors on an ordered scale have correlated effects. The mode, at scales that maximize the
approximate marginal likelihood, is found by Gauss-Newton steps; there the likelihood is taken as
normal, and a Gibbs sampler draws effects and scales together.

It reads only measurements and public predictors: all that is done here is post-processing.

References
----------
Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference with differentially private
synthetic data, AISTATS. MacKay (1992), Bayesian interpolation, Neural Computation 4:415-447.
Makalic, Schmidt (2016), A simple sampler for the horseshoe estimator, IEEE Signal Processing
Letters 23:179-182 (the half-Cauchy by an inverse gamma auxiliary).
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import linalg, sparse

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.marginals.domain import NO_PREDICTOR, IntArray, Predictor

MOST_EFFECTS = 3000
"""Of one column with its predictors: their covariance is held in memory, and inverted."""
_ITERATIONS, _LARGE = (40, 10), 800  # fewer where there are more effects than _LARGE
_ROWS, _WORK = (1000, 8000), 5e9  # of the Fisher information; rows times squared effects, at most
_SD_OF_INTERCEPT, _SCALES, _START, _SCALE = 5.0, (0.01, 3.0), 0.3, 0.5  # of tau: ends, start, prior
_CLOSE, _LEAST = 0.03, 1e-3  # of a step; variance of a cell
_SWEEPS = ((30, 5), (5, 1))  # of the sampler: before, and for each draw
_OWN, _LENGTH = 0.1, 0.4  # part of an effect that is not shared with neighbors; their reach


Clique = tuple[str, str]
"""A column and a predictor, or `NO_PREDICTOR`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Records in each cell of a column (rows) and of its predictor, with noise."""

    noisy: FloatArray  # (K, L)
    clique: Clique
    stddev: FloatArray  # (K, L), of the noise of each cell
    query: FloatArray | None = None  # (m, K), of a column alone: `noisy` (m, 1) are these sums

    def combined(self, other: Measurement) -> Measurement:
        """Both measurements of one table, each by its precision."""
        one, two = (1 / np.maximum(each.stddev, 1e-6) ** 2 for each in (self, other))
        noisy = (one * self.noisy + two * other.noisy) / (one + two)
        return replace(self, noisy=noisy, stddev=1 / np.sqrt(one + two))

    def margin(self) -> Measurement:
        """What a table's columns add to for the predictor, as its own counts (L, 1)."""
        stddev = np.sqrt(np.square(self.stddev).sum(axis=0))[:, None]
        clique = (self.clique[1], NO_PREDICTOR)
        return Measurement(noisy=self.noisy.sum(axis=0)[:, None], clique=clique, stddev=stddev)


class Likelihood(ABC):
    """Of noisy counts given effects, nearly normal."""

    noisy: FloatArray  # M of them
    prior: Any  # normal about 0; its `precision` is of scales, which `new_scales` estimates
    farthest = np.inf  # that an effect moves in a step

    @abstractmethod
    def mean(self, effects: FloatArray) -> FloatArray:
        """Of the counts."""

    @abstractmethod
    def local(self, effects: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slope of the mean (M, B), and covariance of the noisy counts (M, M)."""

    def information(
        self, effects: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Information (B, B), gradient (B,), and a Cholesky factor of the covariance (M, M)."""
        slope, covariance = self.local(effects, mean)
        weights = linalg.cholesky(covariance, lower=True)
        both = np.column_stack([slope, (self.noisy - mean).ravel()])
        half = linalg.solve_triangular(weights, both, lower=True, overwrite_b=True)
        product = half.T @ half  # of one matrix: half the work
        return product[:-1, :-1], product[:-1, -1].copy(), weights

    def mode(
        self, effects: FloatArray, scales: FloatArray, *, iterations: int, close: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Effects and scales by Gauss-Newton steps, halved until they help at fixed weights, a
        Cholesky factor of the posterior's precision before the last one, whether it was small."""
        mean, converged, root = self.mean(effects), False, np.empty(0)
        for _ in range(iterations):
            precision = self.prior.precision(scales)
            information, gradient, weights = self.information(effects, mean)
            root = linalg.cholesky(information + precision, lower=True)
            gradient -= precision @ effects.ravel()
            move = linalg.cho_solve((root, True), gradient)
            before = self._off(effects, mean, weights, precision)
            length = min(1.0, self.farthest / max(np.abs(move).max(), 1e-12))
            while length > 1e-3:
                at = effects + length * move.reshape(effects.shape)
                mean_there = self.mean(at)
                if self._off(at, mean_there, weights, precision) <= before:
                    effects, mean = at, mean_there
                    break
                length /= 2
            new = self.prior.new_scales(effects, root, scales)
            changed, scales = np.abs(np.log(new / scales)).max(), new
            converged = bool(length * np.sqrt(abs(move @ gradient)) < close and changed < close)
            if converged:
                break
        return effects, scales, root, converged

    def _off(
        self, effects: FloatArray, mean: FloatArray, weights: FloatArray, precision: FloatArray
    ) -> float:
        rest, flat = (self.noisy - mean).ravel(), effects.ravel()
        return float(rest @ linalg.cho_solve((weights, True), rest) + flat @ precision @ flat)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rows:
    """Distinct rows of all predictors together: `cells` (R, L) are 1 in a cell of each predictor.

    `times` (R,) records have them; `of_record` (n,) is the place of each record among them."""

    cells: sparse.csr_array
    times: FloatArray
    of_record: IntArray

    @classmethod
    def of(cls, predictors: Sequence[Predictor]) -> Rows:
        """All predictors side by side, each distinct row once, in the order of the records."""
        # two of a million rows fall together with probability 3e-8, which costs accuracy only
        rng, hashed = np.random.default_rng(20230101), np.uint64(0)
        for predictor in predictors:
            words = rng.integers(0, 2**64, predictor.positions.size, dtype=np.uint64)
            hashed = hashed + words[predictor.cells]
        of_record, _ = pd.factorize(hashed)
        cells = indicators(predictors, np.flatnonzero(~pd.Series(hashed).duplicated()))
        return cls(cells=cells, times=np.bincount(of_record).astype(float), of_record=of_record)


def indicators(predictors: Sequence[Predictor], records: Any) -> sparse.csr_array:
    """A row (L,) for each of some `records`, with a 1 in its cell of each predictor."""
    before = np.cumsum([0, *(predictor.positions.size for predictor in predictors)])
    columns = np.column_stack([predictor.cells[records] for predictor in predictors])
    ends = np.arange(len(columns) + 1) * len(predictors)
    ones, shape = np.ones(columns.size), (len(columns), before[-1])
    return sparse.csr_array((ones, (columns + before[:-1]).ravel(), ends), shape)


def summed_effects(
    effects: FloatArray, predictors: Sequence[Predictor], records: Any
) -> FloatArray:
    """Sum of the effects (K, L) of the cells that some `records` are in, shape (n, K)."""
    ends = np.cumsum([predictor.positions.size for predictor in predictors])[:-1]
    parts = zip(np.split(effects.T, ends), predictors, strict=True)
    return np.asarray(sum(part[predictor.cells[records]] for part, predictor in parts))


def probabilities(effects: FloatArray, cells: sparse.csr_array) -> FloatArray:
    """p(k | z), shape (R, K), of rows z (R, L) under intercepts and effects (K, 1 + L)."""
    score = cells @ effects[:, 1:].T + effects[:, 0]
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=1, keepdims=True)
    return np.asarray(score)


class _Sample:
    """Rows that Fisher information is summed over, each `times` (R,), after a column of ones."""

    def __init__(self, cells: sparse.csr_array, times: FloatArray) -> None:
        self.cells, self.times = cells, times
        design = sparse.csr_array(np.hstack([np.ones((cells.shape[0], 1)), cells.toarray()]))
        products = [design.multiply(design[:, [column]]) for column in range(design.shape[1])]
        self.pairs = sparse.csr_array(sparse.hstack(products).T)  # (B^2, R), of pairs of columns

    def covariance(self, effects: FloatArray) -> FloatArray:
        """Of sums over rows of 1{y = k} times columns of the design, shape (K, B, K, B)."""
        p, width = probabilities(effects, self.cells), 1 + self.cells.shape[1]
        n_outcomes = p.shape[1]
        covariances = np.empty((n_outcomes, width, n_outcomes, width))
        for k, alone in enumerate(np.eye(n_outcomes)):
            weights = (self.times * p[:, k])[:, None] * (alone - p)
            covariances[k] = (self.pairs @ weights).reshape(width, width, -1).transpose(0, 2, 1)
        return covariances


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """Correlation of effects, by positions of cells of the outcome (K,) and of each predictor."""

    of_outcome: FloatArray
    of_predictors: Sequence[FloatArray]

    @functools.cached_property
    def columns(self) -> list[slice]:
        """Effects of each predictor, after the intercept."""
        ends = itertools.accumulate((positions.size for positions in self.of_predictors), initial=1)
        return [slice(first, last) for first, last in itertools.pairwise(ends)]

    @functools.cached_property
    def inverses(self) -> tuple[FloatArray, list[FloatArray]]:
        """Of the correlations over the outcome, and over each predictor."""
        return _inverse(self.of_outcome), [*map(_inverse, self.of_predictors)]

    def squares(self, effects: FloatArray) -> FloatArray:
        """Squared length of the effects of each predictor, at scale 1, shape (J,)."""
        rows, inverses = self.inverses
        parts = zip((effects[:, part] for part in self.columns), inverses, strict=True)
        return np.array([np.sum((rows @ part) * (part @ inverse)) for part, inverse in parts])

    def precision(self, scales: FloatArray) -> FloatArray:
        """Of intercepts and effects in the order (k, l), shape (K (1 + L), K (1 + L))."""
        rows, inverses = self.inverses
        shape = rows.shape[0], self.columns[-1].stop
        whole = np.zeros(shape * 2)
        whole[:, 0, :, 0] = np.eye(shape[0]) / _SD_OF_INTERCEPT**2
        for part, inverse, scale in zip(self.columns, inverses, scales, strict=True):
            whole[:, part, :, part] = np.einsum("ab,cd->acbd", rows, inverse) / scale**2
        return whole.reshape(math.prod(shape), -1)

    def new_scales(self, effects: FloatArray, root: FloatArray, scales: FloatArray) -> FloatArray:
        """MacKay's update: squared effects over the number of them that the tables determine."""
        lower = linalg.lapack.dpotri(root, lower=1)[0]
        spread = (np.tril(lower) + np.tril(lower, -1).T).reshape(effects.shape * 2)
        rows, inverses = self.inverses
        left = [
            np.einsum("acbd,ab,cd->", spread[:, part, :, part], rows, inverse)
            for part, inverse in zip(self.columns, inverses, strict=True)
        ]
        determined = np.maximum(self.sizes - left / scales**2, 1e-3)
        return np.asarray(np.clip(np.sqrt(self.squares(effects) / determined), *_SCALES))

    @property
    def sizes(self) -> IntArray:
        """Numbers of effects of each predictor, shape (J,)."""
        return self.of_outcome.size * np.array([positions.size for positions in self.of_predictors])


def _inverse(positions: FloatArray) -> FloatArray:
    """Of the correlation of effects (K,): neighbors alike, those without position independent."""
    ordered = np.isfinite(positions)
    correlation = np.eye(positions.size)
    apart = positions[ordered][:, None] - positions[ordered][None, :]
    correlation[np.ix_(ordered, ordered)] *= _OWN
    correlation[np.ix_(ordered, ordered)] += (1 - _OWN) * np.exp(-0.5 * (apart / _LENGTH) ** 2)
    return np.asarray(np.linalg.inv(correlation), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class LogLinear:
    """Posterior of the effects given noisy tables: a function of the noisy tables alone."""

    mode: FloatArray
    information: FloatArray  # (K (1 + L), K (1 + L)) of the likelihood at the mode
    target: FloatArray  # (K (1 + L),) precision times mean of the normal likelihood
    prior: Prior
    scales: FloatArray  # (J,) tau of each predictor at the mode
    converged: bool
    predictors: tuple[str, ...] = ()

    def sample(self, n: int, rng: np.random.Generator) -> list[FloatArray]:
        """n draws of the effects, by Gibbs sampling of effects and scales."""
        warmup, between = _SWEEPS[self.target.size > _LARGE]
        variances = np.maximum(self.scales, _SCALE) ** 2
        auxiliary, kept = np.ones_like(variances), []
        sizes = self.prior.sizes
        for sweep in range(warmup + n * between):
            precision = self.information + self.prior.precision(np.sqrt(variances))
            root = linalg.cholesky(precision, lower=True)
            half = linalg.solve_triangular(root, self.target, lower=True)
            half += rng.standard_normal(half.size)
            effects = linalg.solve_triangular(root, half, lower=True, trans="T")
            effects = effects.reshape(self.mode.shape)
            rate = 1 / auxiliary + self.prior.squares(effects) / 2
            variances = rate / rng.standard_gamma((sizes + 1) / 2)
            auxiliary = (1 / _SCALE**2 + 1 / variances) / rng.standard_exponential(sizes.size)
            if sweep >= warmup and (sweep - warmup + 1) % between == 0:
                kept.append(effects)
        return kept


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables(Likelihood):
    """Of noisy tables with each predictor, side by side."""

    noisy: FloatArray  # (K, L)
    stddev: FloatArray  # (K, L)
    rows: Rows  # of the predictors, which stand for n records
    n: float
    prior: Prior
    rng: np.random.Generator  # of many rows some are taken, for the Fisher information
    synthesized: Sequence[bool] = ()  # predictors whose numbers of records are uncertain, too

    def fit(self) -> LogLinear:
        """Mode and curvature of the posterior of effects."""
        start, scales = self.start(), np.full(len(self.prior.of_predictors), _START)
        large = start.size > _LARGE
        mode, scales, _, converged = self.mode(
            start, scales, iterations=_ITERATIONS[large], close=_CLOSE
        )
        information, gradient, _ = self.information(mode, self.mean(mode))
        return LogLinear(
            mode=mode,
            information=information,
            target=gradient + information @ mode.ravel(),
            prior=self.prior,
            scales=scales,
            converged=converged,
        )

    @functools.cached_property
    def times(self) -> FloatArray:
        """Of n records, shape (R,)."""
        return np.asarray(self.rows.times * (self.n / self.rows.times.sum()))

    @functools.cached_property
    def some(self) -> _Sample:
        """Rows for the Fisher information."""
        most = int(np.clip(_WORK / (self.noisy.size + len(self.noisy)) ** 2, *_ROWS))
        cells, times = self.rows.cells, self.times
        if times.size > most:
            some = self.rng.choice(times.size, most, p=times / self.n)
            cells, times = cells[some], np.full(most, self.n / most)
        return _Sample(cells, times)

    def start(self) -> FloatArray:
        """Intercepts from the noisy shares of the outcome, and no effects."""
        shares = np.maximum(self.noisy.sum(axis=1) / len(self.prior.of_predictors), 1.0)
        effects = np.zeros((shares.size, 1 + self.noisy.shape[1]))
        effects[:, 0] = np.log(shares) - np.log(shares).mean()
        return effects

    def mean(self, effects: FloatArray) -> FloatArray:
        p = probabilities(effects, self.rows.cells)
        return np.asarray((self.rows.cells.T @ (self.times[:, None] * p)).T)

    def local(self, effects: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """V, of cells with cells and the outcome's counts, and V + noise; the numbers of records in
        cells of confidential predictors are unknown, too."""
        slope = self.some.covariance(effects)[:, 1:]
        covariance = slope[..., 1:].copy()
        for part, unknown in zip(self.prior.columns, self.synthesized, strict=False):
            for column in range(part.start - 1, part.stop - 1) if unknown else ():
                count = mean[:, column].sum()
                share = mean[:, column] / max(count, 1e-9)
                spread = count * (1 - count / self.n)
                covariance[:, column, :, column] += spread * np.outer(share, share)
        covariance = covariance.reshape(mean.size, mean.size)
        covariance.flat[:: mean.size + 1] += np.maximum(np.square(self.stddev), _LEAST).ravel()
        return slope.reshape(mean.size, -1), covariance
