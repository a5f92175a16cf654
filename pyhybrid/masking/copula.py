r"""Association by a Gaussian copula: latent normals for mixed data with missing values [J22], [JC].

Each record has a latent normal for every key and predictor. A continuous column is its latent
through fixed margins, x = Q(Phi(z)) with Q the data's quantile function; a binary column is 1 where
z > 0; an ordered one counts the thresholds below z, which are fixed at the data's normal scores.
Missing values are latents without a constraint. Nominal columns have no latent: predictors without
missing values shift the means of all others; keys are refused.

Mean and covariance of z are those of a recursive system, each latent given those before: continuous
columns first, then ordered, then binary. Each equation is a conjugate normal regression; its
residual variance is free where the scale is identified (continuous, ordered) and 1 where it is not,
as in a probit. Any correlation matrix can be written so.

References
----------
Hoff (2007), Annals of Applied Statistics 1:265-283, with margins fixed in place of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtri

from pyhybrid.core.checks import FloatArray, IntArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.columns import BoundKeys, Column, Rows, Values
from pyhybrid.masking.families import draw_levels, elliptical_slice, log_between, truncated_normal
from pyhybrid.masking.masks import Evidence

_ORDER = ("continuous", "ordered", "binary")
_SLOPE_PRECISION = 0.16  # coefficients N(0, 2.5^2), as of the sequential models
_SHAPE, _RATE = 1.0, 0.05  # inverse gamma prior of free residual variances
_ALL = slice(None)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Margin:
    """How one latent becomes a value: knots (`scores`, `values`) of Q of a continuous column,
    `edges` with -inf and inf of another; `there` and `gaps` are rows."""

    column: Column
    scores: FloatArray
    values: FloatArray
    edges: FloatArray
    there: Rows
    gaps: IntArray

    @property
    def continuous(self) -> bool:
        return self.column.kind == "continuous"

    def observed(self, z: FloatArray) -> Values:
        """Values of latents (n,)."""
        if self.continuous:
            return np.asarray(np.interp(z, self.scores, self.values))
        return np.asarray(np.searchsorted(self.edges[1:-1], z))

    def placed(self, x: Values, rng: np.random.Generator) -> FloatArray:
        """Latents that agree with the values x, without regard to other columns."""
        if self.continuous:
            return np.asarray(np.interp(x, self.values, self.scores))
        return truncated_normal(0.0, 1.0, self.edges[x], self.edges[x + 1], rng)


@dataclass(kw_only=True, eq=False)
class _State:
    """Latents (n, q); their means (n, q) and precision (q, q); coefficients of the shifts."""

    z: FloatArray
    shifts: FloatArray = field(init=False)
    precision: FloatArray = field(init=False)
    center: FloatArray = field(init=False)


class CopulaModel:
    """Gaussian copula bound to data; see the module."""

    def __init__(self, bound: BoundKeys, rng: np.random.Generator) -> None:
        for column in (*bound.keys, *bound.incomplete):
            if column.kind == "nominal":
                raise InvalidInput(
                    f"a copula has no place for {column.name!r}, which is nominal: take "
                    "association='sequential', say by types that it is ordered, or leave a "
                    "predictor out by naming the others"
                )
        shifting = [c for c in bound.complete if c.kind == "nominal"]
        latent = [c for c in bound.complete if c.kind != "nominal"]
        columns = (*latent, *bound.incomplete, *bound.keys)
        self.margins = _margins(sorted(columns, key=lambda column: _ORDER.index(column.kind)))
        ones = np.ones((bound.n_records, 1))
        self.fixed = np.hstack([ones, *(c.encoded(c.values) for c in shifting)])
        self.n_records, self.size = bound.n_records, len(self.margins)
        self.keys = {column.name for column in bound.keys}

    def start(self, rng: np.random.Generator) -> _State:
        """Latents of what is observed without regard to each other, the rest at random."""
        z = np.asfortranarray(rng.standard_normal((self.n_records, self.size)))
        for j, margin in enumerate(self.margins):
            x = margin.column.values[margin.there]
            z[margin.there, j] = margin.placed(x, rng)
        state = _State(z=z)
        self._draw_parameters(state, rng)
        return state

    def sweep(self, state: _State, rng: np.random.Generator, *, adapt: bool, impute: bool) -> None:
        """Latents within what is observed, free where it is missing; then mean and covariance."""
        for j in range(self.size):
            self._redraw(state, j, rng, impute=impute)
        self._draw_parameters(state, rng)

    def quantities(self, state: _State) -> dict[str, FloatArray]:
        """Correlations of pairs of latents, and means of those with thresholds."""
        covariance = np.linalg.inv(state.precision)
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(scale, scale)
        quantities = {"correlation": correlation[np.triu_indices(self.size, 1)]}
        level = np.array([not margin.continuous for margin in self.margins])
        if level.any():
            quantities["mean"] = (state.shifts / scale)[:, level].ravel()
        return quantities

    def completed(self, state: _State) -> dict[str, Values]:
        """Values by name, those of gaps as their latents stand for."""
        values = {}
        for j, margin in enumerate(self.margins):
            completed = margin.column.values.copy()
            completed[margin.gaps] = margin.observed(state.z[margin.gaps, j])
            values[margin.column.name] = completed
        return values

    def synthesize(
        self, state: _State, evidence: Mapping[str, Evidence], rng: np.random.Generator, *,
        sweeps: int,
    ) -> dict[str, Values]:  # fmt: skip
        """Keys from W and predictors; latents of predictors are drawn along, from scratch. A masked
        key starts near what W says: a slice would take long to find it."""
        state = deepcopy(state)
        state.z = np.asfortranarray(rng.standard_normal(state.z.shape))
        for j, margin in enumerate(self.margins):
            mask = evidence.get(margin.column.name)
            if margin.column.name not in self.keys:
                x = margin.column.values[margin.there]
                state.z[margin.there, j] = margin.placed(x, rng)
            elif mask is not None and margin.continuous:
                on = np.flatnonzero(mask.precision > 0)
                state.z[on, j] = margin.placed(mask.center[on], rng)
            elif mask is not None:
                state.z[:, j] = margin.placed(draw_levels(mask.log_density, rng), rng)
        for _ in range(sweeps):
            for j, margin in enumerate(self.margins):
                mask = evidence.get(margin.column.name)
                if margin.column.name not in self.keys:
                    self._redraw(state, j, rng)
                elif mask is None:
                    self._free(state, j, _ALL, rng)
                else:
                    self._masked(state, j, margin, mask, rng)
        drawn = {m.column.name: m.observed(state.z[:, j]) for j, m in enumerate(self.margins)}
        return {name: values for name, values in drawn.items() if name in self.keys}

    def _redraw(
        self, state: _State, j: int, rng: np.random.Generator, *, impute: bool = True
    ) -> None:
        """Latents of a column within what is observed; those of its gaps are free, or keep the
        values that were imputed."""
        margin = self.margins[j]
        if not margin.continuous:
            self._constrain(state, j, margin.there, margin.column.values[margin.there], rng)
        gaps = margin.gaps
        if gaps.size and impute:
            self._free(state, j, gaps, rng)
        elif gaps.size and not margin.continuous:
            self._constrain(state, j, gaps, margin.observed(state.z[gaps, j]), rng)

    def _conditional(self, state: _State, j: int, rows: Rows) -> tuple[FloatArray, float]:
        """Mean and standard deviation of one latent given the others, in these rows."""
        precision = state.precision[j, j]
        pull = (state.z[rows] - state.center[rows]) @ (state.precision[:, j] / precision)
        return np.asarray(state.z[rows, j] - pull), float(1 / np.sqrt(precision))

    def _free(self, state: _State, j: int, rows: Rows, rng: np.random.Generator) -> None:
        mean, sd = self._conditional(state, j, rows)
        state.z[rows, j] = mean + sd * rng.standard_normal(mean.size)

    def _constrain(
        self, state: _State, j: int, rows: Rows, x: Values, rng: np.random.Generator
    ) -> None:
        """Latents of a column with levels given that it is x."""
        mean, sd = self._conditional(state, j, rows)
        edges = self.margins[j].edges
        state.z[rows, j] = truncated_normal(mean, sd, edges[x], edges[x + 1], rng)

    def _masked(
        self, state: _State, j: int, margin: _Margin, evidence: Evidence,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """Latents of a key given all others and W."""
        mean, sd = self._conditional(state, j, _ALL)
        if not margin.continuous:
            edges = (margin.edges - mean[:, None]) / sd
            logs = log_between(edges[:, :-1], edges[:, 1:]) + evidence.log_density
            x = draw_levels(logs, rng)
            low, high = margin.edges[x], margin.edges[x + 1]
            state.z[:, j] = truncated_normal(mean, sd, low, high, rng)
            return

        def likelihood(z: FloatArray, which: IntArray) -> FloatArray:
            apart = margin.observed(z[:, 0]) - evidence.center[which]
            return np.asarray(-0.5 * evidence.precision[which] * apart**2)

        noise = sd * rng.standard_normal(mean.size)
        now = state.z[:, j][:, None]
        moved = elliptical_slice(now, mean[:, None], noise[:, None], likelihood, rng)
        state.z[:, j] = moved[:, 0]

    def _draw_parameters(self, state: _State, rng: np.random.Generator) -> None:
        """Each latent on those before and on the shifts: conjugate regressions from one Gram."""
        n, q = state.z.shape
        p = self.fixed.shape[1]
        both = np.hstack([self.fixed, state.z])
        gram = both.T @ both
        below, shifts, residual = np.zeros((q, q)), np.zeros((p, q)), np.ones(q)
        for j, margin in enumerate(self.margins):
            known = p + j
            factor = np.linalg.cholesky(gram[:known, :known] + _SLOPE_PRECISION * np.eye(known))
            half = solve_triangular(factor, gram[:known, known], lower=True)
            if margin.column.kind != "binary":
                rate = _RATE + 0.5 * max(float(gram[known, known] - half @ half), 0.0)
                residual[j] = rate / rng.gamma(_SHAPE + 0.5 * n)
            noise = np.sqrt(residual[j]) * rng.standard_normal(known)
            slopes = solve_triangular(factor.T, half + noise)
            shifts[:, j], below[j, :j] = slopes[:p], slopes[p:]
        system = np.eye(q) - below
        state.shifts = solve_triangular(system, shifts.T, lower=True).T
        state.precision = (system.T / residual) @ system
        state.center = np.asfortranarray(self.fixed @ state.shifts)


def _margins(columns: Sequence[Column]) -> tuple[_Margin, ...]:
    from scipy.stats import rankdata  # slow to import

    margins = []
    for column in columns:
        there, gaps = column.values[~column.missing], np.flatnonzero(column.missing)
        scores = values = edges = np.empty(0)
        if column.kind == "continuous":
            values, first = np.unique(there, return_index=True)
            scores = ndtri((rankdata(there) - 0.5) / there.size)[first]
        elif column.kind == "binary":
            edges = np.array([-np.inf, 0.0, np.inf])
        else:
            shares = np.bincount(there, minlength=column.n_levels) / there.size
            edges = np.concatenate(([-np.inf], ndtri(np.cumsum(shares)[:-1]), [np.inf]))
        rows = np.flatnonzero(~column.missing) if gaps.size else _ALL
        margins.append(
            _Margin(column=column, scores=scores, values=values, edges=edges, there=rows, gaps=gaps)
        )
    return tuple(margins)
