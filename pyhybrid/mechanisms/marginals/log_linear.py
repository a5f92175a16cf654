r"""Noise-aware log-linear model: the posterior of its effects given noisy tables.

A record with shares z (L,) in the cells of its predictors has the outcome k with probability

.. math:: p(k \mid z) \propto \exp(a_k + \textstyle\sum_l \theta_{kl} z_l),

whose sufficient statistics are the tables themselves, :math:`s_{kl} = \sum_i 1\{y_i = k\} z_{il}`.
Given the predictors they have mean :math:`\mu(\theta)` and covariance :math:`V(\theta)`, the Fisher
information, and are close to normal. With noise of variance :math:`\sigma^2` on each cell,

.. math:: \tilde s \mid \theta \approx N(\mu(\theta),\ V(\theta) + \sigma^2 I),

so that both the sampling of the records and the noise are in the posterior (NAPSU-MQ). Effects have
the prior N(0, tau_j^2) with a scale for each predictor, tau_j ~ half-Cauchy(0, 0.5): effects that
the noise drowns shrink to 0. Neighbors on an ordered scale have correlated effects. The mode, at
scales that maximize the approximate marginal likelihood, is found by Gauss-Newton steps
(:math:`\partial \mu / \partial \theta = V`); there the likelihood is taken as normal, and draws of
effects and scales together come from a Gibbs sampler.

Only the noisy tables, public predictors and records of a reference come in: whatever is done here
is post-processing. Of records of a reference the likelihood is the model's own, to a power.

References
----------
Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference with differentially private
synthetic data, AISTATS. MacKay (1992), Bayesian interpolation, Neural Computation 4:415-447.
Makalic, Schmidt (2016), A simple sampler for the horseshoe estimator, IEEE Signal Processing
Letters 23:179-182 (the half-Cauchy by an inverse gamma auxiliary).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from pyhybrid.core.checks import FloatArray

_LEAST_VARIANCE = 1e-9  # variance of a cell that is divided by
IntArray = npt.NDArray[np.int64]
MOST_EFFECTS = 3000
"""Of one column with its predictors: their covariance is held in memory, and inverted."""
_ITERATIONS, _ITERATIONS_OF_LARGE = 40, 10
_ROWS = (1000, 8000)  # of the Fisher information, fewest and most; the mean is over all rows
_WORK = 5e9  # rows times squared effects, at most
_SD_OF_INTERCEPT = 5.0
_SCALES = (0.01, 3.0)  # of tau: ends
_START, _CLOSE = 0.3, 0.03
_LEAST = 1e-3  # variance of a cell, in records: with less the information is too ill-conditioned
_SCALE = 0.5  # of the half-Cauchy prior of tau
_SWEEPS, _SWEEPS_OF_LARGE, _LARGE = (
    (30, 5),
    (5, 1),
    800,
)  # of the sampler: before, and for each draw
_OWN, _LENGTH = 0.1, 0.4  # part of an effect that is not shared with neighbors; their reach


def probabilities(effects: FloatArray, cells: sparse.csr_array) -> FloatArray:
    """p(k | z) for rows of shares z (R, L), shape (R, K), under intercepts (column 0) and effects
    (K, 1 + L)."""
    score = cells @ effects[:, 1:].T + effects[:, 0]
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=1, keepdims=True)
    return np.asarray(score)


def with_ones(cells: sparse.csr_array) -> FloatArray:
    """Dense, after a column of ones."""
    dense = np.asarray(cells.todense())
    return np.hstack([np.ones((dense.shape[0], 1)), dense])


def covariance(p: FloatArray, times: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Of sums over rows of 1{y = k} times columns of `left` (R, A), and of `right` (R, B), given
    these, shape (K, A, K, B)."""
    weighted = times[:, None] * p
    one = (p[:, :, None] * left[:, None, :]).reshape(p.shape[0], -1)
    other = (weighted[:, :, None] * right[:, None, :]).reshape(p.shape[0], -1)
    n_rows = p.shape[1]
    covariances = -(one.T @ other).reshape(n_rows, left.shape[1], n_rows, right.shape[1])
    for k in range(n_rows):
        covariances[k, :, k] += left.T @ (weighted[:, k, None] * right)
    return np.asarray(covariances)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A noisy table of a column with one predictor.

    `counts` (K, L) in records, may be negative; `variance` of the noise of a cell, or (K, 1), >= 0.
    """

    counts: FloatArray
    variance: float | FloatArray

    @property
    def variances(self) -> FloatArray:
        """Of each cell, shape (K, L)."""
        return np.asarray(np.broadcast_to(self.variance, self.counts.shape), dtype=np.float64)

    def with_another(self, other: Measurement) -> Measurement:
        """Both measurements of one table, each by its precision."""
        one, two = (1 / np.maximum(own.variance, _LEAST_VARIANCE) for own in (self, other))
        counts = (one * self.counts + two * other.counts) / (one + two)
        return Measurement(counts=counts, variance=1 / (one + two))


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """Records of a reference, whose cells are known.

    `outcome` (n,) is the cell of each, `cells` (n, L) the shares of their predictors, `weight` the
    power of their likelihood, in (0, 1]."""

    outcome: IntArray
    cells: sparse.csr_array
    weight: float

    def log_lik(self, effects: FloatArray) -> float:
        """Weighted log-likelihood."""
        p = probabilities(effects, self.cells)
        held = p[np.arange(self.outcome.size), self.outcome]
        return self.weight * float(np.sum(np.log(np.maximum(held, 1e-300))))

    def local(self, effects: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Information (K (1 + L), K (1 + L)), as if all were like those at `rows`, and gradient
        (K (1 + L),)."""
        p = probabilities(effects, self.cells)
        rest = -p
        rest[np.arange(self.outcome.size), self.outcome] += 1
        slope = np.hstack([rest.sum(axis=0)[:, None], np.asarray((self.cells.T @ rest).T)])
        design = with_ones(self.cells[rows])
        times = np.full(rows.size, self.weight * self.outcome.size / rows.size)
        information = covariance(p[rows], times, design, design)
        return information.reshape(slope.size, slope.size), self.weight * slope.ravel()


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """Correlation of effects, and which of them share a scale.

    Positions of the cells of the outcome (K,) and of each predictor, see `ColumnDomain.positions`.
    """

    of_outcome: FloatArray
    of_predictors: Sequence[FloatArray]

    @functools.cached_property
    def ends(self) -> IntArray:
        """First column of each predictor, and the number of columns L, shape (J + 1,)."""
        return np.cumsum([0, *(each.size for each in self.of_predictors)])

    @functools.cached_property
    def _inverses(self) -> tuple[FloatArray, list[FloatArray]]:
        """Of the correlations over the outcome, and over each predictor."""
        return _inverse(self.of_outcome), [_inverse(at) for at in self.of_predictors]

    def squares(self, effects: FloatArray) -> FloatArray:
        """Squared length of the effects of each predictor, at scale 1, shape (J,)."""
        (rows, each), squares = self._inverses, []
        for j, columns in enumerate(each):
            own = effects[:, 1 + self.ends[j] : 1 + self.ends[j + 1]]
            squares.append(np.sum((rows @ own) * (own @ columns)))
        return np.array(squares)

    def precision(self, scales: FloatArray) -> FloatArray:
        """Of intercepts and effects in the order (k, l), shape (K (1 + L), K (1 + L))."""
        n_rows, n_columns = self.of_outcome.size, 1 + int(self.ends[-1])
        whole = np.zeros((n_rows, n_columns, n_rows, n_columns))
        whole[:, 0, :, 0] = np.eye(n_rows) / _SD_OF_INTERCEPT**2
        rows, each = self._inverses
        for j, columns in enumerate(each):
            own = slice(1 + self.ends[j], 1 + self.ends[j + 1])
            whole[:, own, :, own] = np.einsum("ab,cd->acbd", rows, columns) / scales[j] ** 2
        return whole.reshape(n_rows * n_columns, -1)


def _inverse(positions: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(_correlation(positions)), dtype=np.float64)


def _correlation(positions: FloatArray) -> FloatArray:
    """Of effects at positions (K,): neighbors alike, those without a position independent."""
    ordered = np.isfinite(positions)
    correlation = np.eye(positions.size)
    apart = positions[ordered][:, None] - positions[ordered][None, :]
    correlation[np.ix_(ordered, ordered)] *= _OWN
    correlation[np.ix_(ordered, ordered)] += (1 - _OWN) * np.exp(-0.5 * (apart / _LENGTH) ** 2)
    return correlation


@dataclass(frozen=True, kw_only=True, eq=False)
class LogLinear:
    """Posterior of the effects given noisy tables: a function of the noisy tables alone.

    `information` (K (1 + L), K (1 + L)) is that of the likelihood at the mode, `target` (K (1 +
    L),) precision times mean of the normal likelihood, `scales` (J,) tau of each predictor at the
    mode, `steps` the Gauss-Newton steps taken."""

    mode: FloatArray
    information: FloatArray
    target: FloatArray
    prior: Prior
    scales: FloatArray
    steps: int
    converged: bool

    def sample(self, n: int, rng: np.random.Generator) -> list[FloatArray]:
        """n draws of the effects."""
        warmup, between = _SWEEPS if self.target.size <= _LARGE else _SWEEPS_OF_LARGE
        shape, variances = self.mode.shape, np.maximum(self.scales, _SCALE) ** 2
        auxiliary, kept = np.ones_like(variances), []
        sizes = shape[0] * np.diff(self.prior.ends)
        for sweep in range(warmup + n * between):
            precision = self.information + self.prior.precision(np.sqrt(variances))
            root = linalg.cholesky(precision, lower=True)
            half = linalg.solve_triangular(root, self.target, lower=True)
            noise = rng.standard_normal(half.size)
            drawn = linalg.solve_triangular(root, half + noise, lower=True, trans="T")
            effects = drawn.reshape(shape)
            rate = 1 / auxiliary + self.prior.squares(effects) / 2
            variances = rate / rng.standard_gamma((sizes + 1) / 2)
            auxiliary = (1 / _SCALE**2 + 1 / variances) / rng.standard_exponential(sizes.size)
            if sweep >= warmup and (sweep - warmup + 1) % between == 0:
                kept.append(effects)
        return kept


def fit_log_linear(
    noisy: FloatArray,
    *,
    variance: float | FloatArray,
    cells: sparse.csr_array,
    times: FloatArray,
    prior: Prior,
    unknown: Sequence[bool] = (),
    known: Known | None = None,
    start: FloatArray | None = None,
    rng: np.random.Generator,
) -> LogLinear:
    """Mode and curvature of the posterior.

    Parameters
    ----------
    noisy : ndarray, shape (K, L)
        Noisy tables side by side, in records; `variance` is that of the noise of a cell, >= 0.
    cells : sparse matrix, shape (R, L)
        Shares of the distinct rows of predictors; `times` (R,) records have each, fractions where
        rows are simulated.
    unknown : sequence of bool, length J
        Predictors whose true values are confidential, so that also the number of records in each of
        their cells is uncertain.
    known : Known, optional
        Records of a reference.
    start : FloatArray, optional
        Where the search for the mode starts.
    rng : Generator
        Chooses the rows that the Fisher information is computed from, if there are many."""
    problem = _Problem(noisy, variance, cells, times, prior, unknown, known, rng)
    effects = problem.start() if start is None else start
    scales = np.full(len(prior.of_predictors), _START)
    converged, steps = False, 0
    most = _ITERATIONS if effects.size <= _LARGE else _ITERATIONS_OF_LARGE
    for step in range(1, most + 1):
        steps, precision = step, prior.precision(scales)
        local = problem.local(effects)
        root = linalg.cholesky(local.information + precision, lower=True)
        gradient = local.gradient - precision @ effects.ravel()
        move = linalg.cho_solve((root, True), gradient)
        length = problem.line_search(effects, move, precision, local.weights)
        effects = effects + length * move.reshape(effects.shape)
        found = _new_scales(effects, root, scales, prior)
        changed = np.abs(np.log(found / scales)).max()
        scales = found
        if length * np.sqrt(abs(move @ gradient)) < _CLOSE and changed < _CLOSE:
            converged = True
            break
    local = problem.local(effects)
    return LogLinear(
        mode=effects,
        information=local.information,
        target=local.gradient + local.information @ effects.ravel(),
        prior=prior,
        scales=scales,
        steps=steps,
        converged=converged,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Local:
    """The likelihood near some effects: weights are a Cholesky factor of V + noise."""

    information: FloatArray
    gradient: FloatArray
    weights: FloatArray


class _Problem:
    """Noisy tables, rows of predictors, and the prior."""

    def __init__(
        self,
        noisy: FloatArray,
        variance: float | FloatArray,
        cells: sparse.csr_array,
        times: FloatArray,
        prior: Prior,
        unknown: Sequence[bool],
        known: Known | None,
        rng: np.random.Generator,
    ) -> None:
        self.noisy, self.prior, self.known = noisy, prior, known
        self.variances = np.broadcast_to(np.maximum(variance, _LEAST), noisy.shape).ravel()
        self.cells, self.times, self.unknown = cells, times, unknown
        self.turned = sparse.csr_array(cells.T)
        n_known = 0 if known is None else known.outcome.size
        total = times.sum()
        n_rows = int(np.clip(_WORK / (noisy.shape[0] * (1 + noisy.shape[1])) ** 2, *_ROWS))
        if times.size > n_rows:
            rows = rng.choice(times.size, n_rows, p=times / total)
            self.some, self.some_times = cells[rows], np.full(n_rows, total / n_rows)
        else:
            self.some, self.some_times = cells, times
        self.some_design = with_ones(self.some)
        self.known_rows = np.arange(n_known)
        if n_known > n_rows:
            self.known_rows = rng.choice(n_known, n_rows, replace=False)

    def start(self) -> FloatArray:
        """Intercepts from the shares of the outcome, noisy or of the reference, and no effects."""
        shares = np.maximum(self.noisy.sum(axis=1) / len(self.prior.of_predictors), 1.0)
        if self.known is not None:  # noise may be larger than all of the table
            shares = np.bincount(self.known.outcome, minlength=shares.size) + 0.5
        effects = np.zeros((self.noisy.shape[0], 1 + self.noisy.shape[1]))
        effects[:, 0] = np.log(shares) - np.log(shares).mean()
        return effects

    def mean(self, effects: FloatArray) -> FloatArray:
        """mu, shape (K, L)."""
        p = probabilities(effects, self.cells)
        found: FloatArray = np.asarray(self.turned @ (self.times[:, None] * p)).T
        return found

    def line_search(
        self, effects: FloatArray, move: FloatArray, precision: FloatArray, weights: FloatArray
    ) -> float:
        """Largest of 1, 1/2, 1/4, ... that lowers the objective at fixed weights."""

        def objective(at: FloatArray) -> float:
            rest = (self.noisy - self.mean(at)).ravel()
            own = at.ravel()
            told = 0.0 if self.known is None else 2 * self.known.log_lik(at)
            moved = float(rest @ linalg.cho_solve((weights, True), rest))
            return moved + float(own @ precision @ own) - told

        before, length = objective(effects), 1.0
        while length > 1e-3:
            if objective(effects + length * move.reshape(effects.shape)) <= before:
                return length
            length /= 2
        return 0.0

    def local(self, effects: FloatArray) -> _Local:
        """Information and gradient of the likelihood at `effects`."""
        n_rows, n_columns = self.noisy.shape
        slope = self._fisher(effects)
        mean = self.mean(effects)
        spread = slope[..., 1:].reshape(n_rows * n_columns, -1) + self._of_unknown(mean)
        spread.flat[:: spread.shape[0] + 1] += self.variances
        weights = linalg.cholesky(spread, lower=True)
        flat = slope.reshape(n_rows * n_columns, -1)
        weighted = linalg.cho_solve((weights, True), flat)
        information = flat.T @ weighted
        gradient = weighted.T @ (self.noisy - mean).ravel()
        if self.known is not None:
            own, slope_of_own = self.known.local(effects, self.known_rows)
            information, gradient = information + own, gradient + slope_of_own
        return _Local(information=information, gradient=gradient, weights=weights)

    def _fisher(self, effects: FloatArray) -> FloatArray:
        """Covariance of cells with cells and the outcome's counts, shape (K, L, K, 1 + L)."""
        p = probabilities(effects, self.some)
        return covariance(p, self.some_times, self.some_design[:, 1:], self.some_design)

    def _of_unknown(self, mean: FloatArray) -> FloatArray:
        """Covariance from the unknown numbers of records in cells of confidential predictors."""
        size = mean.size
        covariances = np.zeros((size, size))
        total = self.times.sum()
        for j, hidden in enumerate(self.unknown):
            if not hidden:
                continue
            for column in range(self.prior.ends[j], self.prior.ends[j + 1]):
                count = mean[:, column].sum()
                share = np.zeros_like(mean)
                share[:, column] = mean[:, column] / max(count, 1e-9)
                own = np.flatnonzero(share.ravel())
                of_cell = share.ravel()[own]
                spread = count * (1 - count / total)
                covariances[np.ix_(own, own)] += spread * np.outer(of_cell, of_cell)
        return covariances


def _new_scales(
    effects: FloatArray, root: FloatArray, scales: FloatArray, prior: Prior
) -> FloatArray:
    """MacKay's update: squared effects over the number of them that the tables determine."""
    n_rows, n_columns = effects.shape
    spread = linalg.cho_solve((root, True), np.eye(root.shape[0]))
    spread = spread.reshape(n_rows, n_columns, n_rows, n_columns)
    rows, each = prior._inverses
    found, squares = np.empty_like(scales), prior.squares(effects)
    for j, columns in enumerate(each):
        own = slice(1 + prior.ends[j], 1 + prior.ends[j + 1])
        left = float(np.einsum("acbd,ab,cd->", spread[:, own, :, own], rows, columns))
        determined = max(n_rows * columns.shape[0] - left / scales[j] ** 2, 1e-3)
        found[j] = np.sqrt(squares[j] / determined)
    return np.clip(found, *_SCALES)
