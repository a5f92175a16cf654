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

It reads only the noisy tables, public predictors and records of a reference: all that is done here
is post-processing. Of records of a reference the likelihood is the model's own, to a power that
falls with the noise of what was measured: see `power_of_known`.

**A chain of columns.** The joint distribution is p(y_1 | x) p(y_2 | y_1, x) ...: one model for each
factor. The first has public predictors only, whose rows are known. A later one has predictors whose
true values are confidential: its tables are compared with rows simulated from the models before.

**Even records.** Cells can be drawn so that the tables with every predictor come out as the model
has them. Records drawn one by one add the noise of a sample to every table, which for n in the
thousands is as large as that of epsilon 4. Here they are drawn in random order, a quarter of those
left at a time: the probabilities of such a block are raked (iterative proportional fitting) to the
tables that the records before it have left due. What is missing at the end is about one record of a
cell, at any n. A draw reads the model and public columns alone, so that it costs no epsilon.
Averaged over draws a table is the model's within a third of a record: cells of few records are
filled slowly, as a surplus cannot be taken back.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, sparse

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import (
    ALONE,
    ColumnDomain,
    IntArray,
    Predictor,
    Rows,
    of_cells,
    of_nothing,
    pairs_of,
    stacked,
)

DRIFT = 0.1
"""Public: deviation of a count of a reference from that of the data beside sampling, in parts."""
_LEAST_VARIANCE = 1e-9  # variance of a cell that is divided by
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
SIMULATED = 20_000
"""Rows, at least, that the tables of later columns are held against."""
MOST_SIMULATED = 500_000
"""Of them, where memory is to be the same for any number of records."""
_LARGEST_BLOCK = 2**22  # probabilities
_RAKINGS = 3
_MOST_RAKED = 2**17  # records, which make up for those before them
_FARTHEST = 4.0  # factor of a probability in a sweep
_DIVISOR = 1e-12  # records of a cell that are divided by
_GENTLE = 2.0  # a cell is made up for whole if a block has the square of this in it, else in part
_OWN, _LENGTH = 0.1, 0.4  # part of an effect that is not shared with neighbors; their reach


def probabilities(effects: FloatArray, cells: sparse.csr_array) -> FloatArray:
    """p(k | z), shape (R, K), of shares z (R, L) under intercepts and effects (K, 1 + L)."""
    score = cells @ effects[:, 1:].T + effects[:, 0]
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=1, keepdims=True)
    return np.asarray(score)


def with_ones(cells: sparse.csr_array) -> FloatArray:
    """Dense, after a column of ones."""
    return np.hstack([np.ones((cells.shape[0], 1)), np.asarray(cells.todense())])


def covariance(
    p: FloatArray, times: FloatArray, design: FloatArray, pairs: sparse.csr_array | None = None
) -> FloatArray:
    """Of sums over rows of 1{y = k} times columns of `design` (R, B), given these, shape
    (K, B, K, B); `pairs` as of `pairs_of`."""
    root, shape = np.sqrt(times)[:, None] * p, (p.shape[1], design.shape[1])
    if pairs is None:
        each = (root[:, :, None] * design[:, None, :]).reshape(p.shape[0], -1)
        covariances = (each.T @ each).reshape(*shape, *shape)  # of one matrix: BLAS computes half
    else:
        both = pairs.T @ (root[:, :, None] * root[:, None, :]).reshape(p.shape[0], -1)
        covariances = both.reshape(*shape[1:] * 2, *shape[:1] * 2).transpose(2, 0, 3, 1).copy()
    np.negative(covariances, out=covariances)
    for k in range(shape[0]):
        covariances[k, :, k] += design.T @ ((times * p[:, k])[:, None] * design)
    return np.asarray(covariances)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A noisy table of a column and a predictor: `counts` (K, L), `variance` of a cell."""

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
    """Records of a reference: `outcome` (n,) is the cell of each, `cells` (n, L) the shares of
    their predictors, `weight` the power of their likelihood, in (0, 1]."""

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
        information = covariance(p[rows], times, design)
        return information.reshape(slope.size, slope.size), self.weight * slope.ravel()


def power_of_known(mu: FloatArray, variance: FloatArray, times: float) -> FloatArray:
    """Power of a reference's likelihood beside noisy counts of about `mu` records.

    Of the records' own counts the noisy ones have an error of `variance`, and those of a
    reference, each record of which stands for so many `times`, one of sampling and of drift, times
    mu + (DRIFT mu)^2. Each is to weigh by its precision; but in the likelihood of the noisy ones is
    the sampling of the records, too. The power is 0 without noise, and 1 at most.
    """
    sampling = times * mu
    of_drift = sampling / (sampling + np.square(DRIFT * mu))
    return np.asarray(of_drift * variance / (mu + variance))


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """Correlation of effects, by positions of cells of the outcome (K,) and of each predictor."""

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
    steps: int  # of Gauss-Newton
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Local:
    """The likelihood near some effects: weights are a Cholesky factor of V + noise, `mean` what the
    cells are expected to hold (K, L)."""

    information: FloatArray
    gradient: FloatArray
    weights: FloatArray
    mean: FloatArray


@dataclass(kw_only=True, eq=False, repr=False)
class Problem:
    """Noisy tables (K, L) side by side, in records, rows of predictors, and the prior.

    If there are many rows, the Fisher information is computed from some of them."""

    noisy: FloatArray
    variance: float | FloatArray  # of the noise of a cell, >= 0
    cells: sparse.csr_array  # (R, L) shares of the distinct rows of predictors
    times: FloatArray  # (R,) records that have each, fractions where rows are simulated
    prior: Prior
    unknown: Sequence[bool] = ()  # (J,) predictors whose numbers of records are uncertain, too
    known: Known | None = None  # records of a reference
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.variances = np.broadcast_to(
            np.maximum(self.variance, _LEAST), self.noisy.shape
        ).ravel()
        n_known = 0 if self.known is None else self.known.outcome.size
        total = self.times.sum()
        width = self.noisy.shape[0] * (1 + self.noisy.shape[1])
        n_rows = int(np.clip(_WORK / width**2, *_ROWS))
        self.some, self.some_times = self.cells, self.times
        if self.times.size > n_rows:
            rows = self.rng.choice(self.times.size, n_rows, p=self.times / total)
            self.some, self.some_times = self.cells[rows], np.full(n_rows, total / n_rows)
        self.some_design = with_ones(self.some)
        self.pairs = pairs_of(self.some_design, self.noisy.shape[0])
        self.known_rows = np.arange(n_known)
        if n_known > n_rows:
            self.known_rows = self.rng.choice(n_known, n_rows, replace=False)

    def fit(self, start: FloatArray | None = None) -> LogLinear:
        """Mode and curvature of the posterior."""
        effects = self.start() if start is None else start
        scales = np.full(len(self.prior.of_predictors), _START)
        converged, steps, mean = False, 0, self.mean(effects)
        most = _ITERATIONS if effects.size <= _LARGE else _ITERATIONS_OF_LARGE
        for step in range(1, most + 1):
            steps, precision = step, self.prior.precision(scales)
            local = self.local(effects, mean)
            root = linalg.cholesky(local.information + precision, lower=True)
            gradient = local.gradient - precision @ effects.ravel()
            move = linalg.cho_solve((root, True), gradient)
            length, effects, mean = self.line_search(effects, move, precision, local)
            found = _new_scales(effects, root, scales, self.prior)
            changed = np.abs(np.log(found / scales)).max()
            scales = found
            if length * np.sqrt(abs(move @ gradient)) < _CLOSE and changed < _CLOSE:
                converged = True
                break
        local = self.local(effects, mean)
        return LogLinear(
            mode=effects,
            information=local.information,
            target=local.gradient + local.information @ effects.ravel(),
            prior=self.prior,
            scales=scales,
            steps=steps,
            converged=converged,
        )

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
        found: FloatArray = np.asarray(self.cells.T @ (self.times[:, None] * p)).T  # row by row
        return found

    def line_search(
        self, effects: FloatArray, move: FloatArray, precision: FloatArray, local: _Local
    ) -> tuple[float, FloatArray, FloatArray]:
        """Largest of 1, 1/2, 1/4, ... that lowers the objective at fixed weights, 0 if none does,
        with the effects there and their mean."""

        def objective(at: FloatArray, mean: FloatArray) -> float:
            rest = (self.noisy - mean).ravel()
            own = at.ravel()
            told = 0.0 if self.known is None else 2 * self.known.log_lik(at)
            moved = float(rest @ linalg.cho_solve((local.weights, True), rest))
            return moved + float(own @ precision @ own) - told

        before, length = objective(effects, local.mean), 1.0
        while length > 1e-3:
            at = effects + length * move.reshape(effects.shape)
            mean = self.mean(at)
            if objective(at, mean) <= before:
                return length, at, mean
            length /= 2
        return 0.0, effects, local.mean

    def local(self, effects: FloatArray, mean: FloatArray) -> _Local:
        """Information and gradient of the likelihood at `effects`, whose mean is known."""
        n_rows, n_columns = self.noisy.shape
        slope = self._fisher(effects)
        spread = slope[..., 1:].reshape(n_rows * n_columns, -1) + self._of_unknown(mean)
        spread.flat[:: spread.shape[0] + 1] += self.variances
        weights = linalg.cholesky(spread, lower=True)
        flat = slope.reshape(n_rows * n_columns, -1)
        both = np.column_stack([flat, (self.noisy - mean).ravel()])
        half = linalg.solve_triangular(weights, both, lower=True, overwrite_b=True)
        product = half.T @ half  # of one matrix: BLAS computes half
        information, gradient = product[:-1, :-1], product[:-1, -1]
        if self.known is not None:
            own, slope_of_own = self.known.local(effects, self.known_rows)
            information, gradient = information + own, gradient + slope_of_own
        return _Local(information=information, gradient=gradient, weights=weights, mean=mean)

    def _fisher(self, effects: FloatArray) -> FloatArray:
        """Covariance of cells with cells and the outcome's counts, shape (K, L, K, 1 + L)."""
        p = probabilities(effects, self.some)
        return covariance(p, self.some_times, self.some_design, self.pairs)[:, 1:]

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
    lower = linalg.lapack.dpotri(root, lower=1)[0]
    spread = np.tril(lower) + np.tril(lower, -1).T
    spread = spread.reshape(n_rows, n_columns, n_rows, n_columns)
    rows, each = prior._inverses
    found, squares = np.empty_like(scales), prior.squares(effects)
    for j, columns in enumerate(each):
        own = slice(1 + prior.ends[j], 1 + prior.ends[j + 1])
        left = float(np.einsum("acbd,ab,cd->", spread[:, own, :, own], rows, columns))
        determined = max(n_rows * columns.shape[0] - left / scales[j] ** 2, 1e-3)
        found[j] = np.sqrt(squares[j] / determined)
    return np.clip(found, *_SCALES)


# --- Columns one after the other ----------------------------------------------------------------


KnownOf = Callable[[str, Sequence[str]], Known]
"""From a column and its predictors to records of a reference."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """One column's model and its predictors: public columns, and columns before it; `ALONE` among
    them if the column's own counts were measured, too."""

    column: str
    reads: tuple[str, ...]
    model: LogLinear


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """Models of all columns, in their order: functions of noisy tables and public columns.

    `domain` is of the synthesized columns, `public` the public predictors of the n records."""

    links: tuple[Link, ...]
    domain: Mapping[str, ColumnDomain]
    public: Mapping[str, Predictor]
    n: int

    def simulate(
        self,
        random: Streams,
        name: str,
        draws: Mapping[str, FloatArray] | None = None,
        *,
        kept: Mapping[str, IntArray] | None = None,
        even: bool = False,
    ) -> dict[str, IntArray]:
        """Cells of every column for the n records, from effects `draws`, the modes if omitted.
        `kept` are those of the first columns, not drawn. `even`: so that tables are the model's,
        not one by one."""
        effects = self.modes if draws is None else draws
        cells: dict[str, IntArray] = dict(kept or {})
        for link in self.links[len(cells) :]:
            predictors = predictors_of(link.reads, self.public, cells, self.domain, self.n)
            rng = random.generator(f"{name}/{link.column}")
            rows = stacked(predictors)
            p = probabilities(effects[link.column], rows.cells)
            if even:
                widths = [each.cells.shape[1] for each in predictors]
                cells[link.column] = balanced(p, rows, widths, rng)
            else:
                cells[link.column] = drawn(p, rows.of_record, rng)
        return cells

    @property
    def modes(self) -> dict[str, FloatArray]:
        """Effects of every column at the mode."""
        return {link.column: link.model.mode for link in self.links}

    @property
    def repeated(self) -> Chain:
        """The same models over the records so many times over that `SIMULATED` rows are reached;
        without public columns over `MOST_SIMULATED` at most."""
        times = max(1, math.ceil(SIMULATED / self.n))
        if not self.public:
            return replace(self, n=min(times * self.n, MOST_SIMULATED))
        rows = np.tile(np.arange(self.n), times)
        public = {
            name: replace(own, cells=sparse.csr_array(own.cells[rows]))
            for name, own in self.public.items()
        }
        return replace(self, public=public, n=times * self.n)

    def sample(self, n: int, random: Streams) -> list[dict[str, FloatArray]]:
        """n draws of the effects of all columns."""
        effects = {
            link.column: link.model.sample(n, random.generator(f"effects/{link.column}"))
            for link in self.links
        }
        return [{column: drawn[place] for column, drawn in effects.items()} for place in range(n)]


def predictors_of(
    reads: Sequence[str],
    public: Mapping[str, Predictor],
    places: Mapping[str, IntArray],
    domain: Mapping[str, ColumnDomain],
    n: int,
) -> list[Predictor]:
    """Predictors of a column: public ones, and others whose cells `places` holds."""
    predictors = [
        of_nothing(n)
        if name == ALONE
        else public[name]
        if name in public
        else of_cells(
            name, places[name], domain[name].n_cells, domain[name].positions, synthesized=True
        )
        for name in reads
    ]
    return predictors or [of_nothing(n)]


def fit_link(
    before: Chain,
    column: str,
    reads: Sequence[str],
    tables: Sequence[Measurement],
    *,
    random: Streams,
    known: KnownOf | None = None,
    earlier: Link | None = None,
) -> Link:
    """Fit one column given the chain of those before it, to its noisy `tables` with each of what it
    reads; `earlier` is a fit of the same column to fewer tables, to start from."""
    many, places = before, {}
    if not before.public and all(name == ALONE for name in reads):
        many = replace(before, n=1)  # all records are alike
    elif not all(name == ALONE or name in before.public for name in reads):
        many = before.repeated
        places = many.simulate(random, f"fit/{column}/rows")
    first = predictors_of(reads, many.public, places, many.domain, many.n)
    rows = stacked(first)
    problem = Problem(
        noisy=np.hstack([each.counts for each in tables]),
        variance=np.hstack([each.variances for each in tables]),
        cells=rows.cells,
        times=rows.times * (before.n / many.n),
        prior=Prior(
            of_outcome=before.domain[column].positions,
            of_predictors=[each.positions for each in first],
        ),
        unknown=[each.synthesized for each in first],
        known=None if known is None else _by_noise(known(column, reads), tables, before.n),
        rng=random.generator(f"fit/{column}"),
    )
    model = problem.fit(None if earlier is None else _start(earlier, reads, first))
    return Link(column=column, reads=tuple(reads), model=model)


def _by_noise(known: Known, tables: Sequence[Measurement], n: int) -> Known:
    """The reference at the power that is right for a middle cell, mean over tables: public."""
    times = n / (known.weight * known.outcome.size)
    powers = [
        power_of_known(np.full(own.counts.shape, n / own.counts.size), own.variances, times).mean()
        for own in tables
    ]
    return replace(known, weight=known.weight * float(np.mean(powers)))


def _start(earlier: Link, reads: Sequence[str], predictors: Sequence[Predictor]) -> FloatArray:
    """Effects of an earlier fit, 0 of predictors that it had not."""
    own, ends = earlier.model.mode, earlier.model.prior.ends
    parts = [own[:, :1]]
    for name, each in zip(reads, predictors, strict=True):
        if name in earlier.reads:
            place = earlier.reads.index(name)
            parts.append(own[:, 1 + ends[place] : 1 + ends[place + 1]])
        else:
            parts.append(np.zeros((own.shape[0], each.cells.shape[1])))
    return np.hstack(parts)


def drawn(p: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """A cell for each record (n,), each on its own, from probabilities `p` (R, K) by distinct row;
    `rows` (n,) is the row of each record."""
    below = p.cumsum(axis=1)
    at = rng.random(rows.size)
    cells = np.zeros(at.size, dtype=np.int64)
    for cell in range(below.shape[1] - 1):
        cells += at > below[rows, cell]
    return cells


def balanced(
    p: FloatArray, rows: Rows, widths: Sequence[int], rng: np.random.Generator
) -> IntArray:
    """A cell for each record (n,), so that tables with all predictors, of `widths` cells, are near
    those that `p` (R, K) says: raking (Deming, Stephan 1940, Ann. Math. Statist. 11). Half of the
    records, or all but the last `_MOST_RAKED`, come as `p` says; the others make up for them."""
    order, n_cells = rng.permutation(rows.of_record.size), p.shape[1]
    as_they_come = max(order.size // 2, order.size - _MOST_RAKED)
    drawn_so_far = 0
    ends = np.concatenate([[0], np.cumsum(widths)])
    cells = np.empty(order.size, dtype=np.int64)
    due = np.zeros((rows.cells.shape[1], n_cells))
    for records in _blocks(order, _LARGEST_BLOCK // n_cells):
        own, place, times = np.unique(
            rows.of_record[records], return_inverse=True, return_counts=True
        )
        shares = rows.cells[own]
        expected = shares.T @ (times[:, None] * p[own])
        chances, drawn_so_far = p[own], drawn_so_far + records.size
        if drawn_so_far > as_they_come:
            wanted = expected + due * np.minimum(1, np.sqrt(expected) / _GENTLE)
            chances = _raked(chances, times, shares, wanted, ends)
        cells[records] = drawn(chances, place, rng)
        came = np.bincount(place * n_cells + cells[records], minlength=own.size * n_cells)
        due += expected - shares.T @ came.reshape(own.size, n_cells)
    return cells


def _blocks(order: IntArray, most: int) -> Iterator[IntArray]:
    """A quarter of the records, a quarter of those left, ..., one, one; at most so many."""
    start = 0
    while start < order.size:
        size = min(max(most, 1), -(-(order.size - start) // 4))
        yield order[start : start + size]
        start += size


def _raked(
    p: FloatArray, times: IntArray, shares: sparse.csr_array, wanted: FloatArray, ends: IntArray
) -> FloatArray:
    """Probabilities (R, K) of rows that so many records have, whose sums over records are nearer to
    `wanted` (L, K), which may have cells below 0."""
    raked: FloatArray = p.copy()
    each = [(first, last, shares[:, first:last]) for first, last in itertools.pairwise(ends)]
    turned = [own.T for _, _, own in each]
    for _ in range(_RAKINGS):
        for (first, last, own), records_of in zip(each, turned, strict=True):
            now = records_of @ (times[:, None] * raked)
            factor = np.maximum(wanted[first:last], _DIVISOR) / np.maximum(now, _DIVISOR)
            raked *= np.exp(own @ np.log(np.clip(factor, 1 / _FARTHEST, _FARTHEST)))
            raked /= raked.sum(axis=1, keepdims=True)
    return raked
