r"""Association by a sequence of conditional models [J22].

p(X | Z, theta) is the product of p(X_j | X_1 .. X_{j-1}, Z, theta_j): a normal regression for a
continuous key, probit, ordered probit or multinomial logit for the others. Predictors with missing
values come first in the sequence, with models of their own.

The released keys come from the joint distribution: each key in turn is drawn given all the others,
so that p(X_j | before) p(W_j | X_j) times the models of later keys is sampled, exactly: by
enumeration for levels; by conjugate normals, and an elliptical slice where later keys have levels,
for continuous keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from pyhybrid.checks import FloatArray
from pyhybrid.masking.association import BoundKeys, Snapshot
from pyhybrid.masking.evidence import Evidence
from pyhybrid.masking.families import LevelModel
from pyhybrid.masking.hamiltonian import LogPosterior, Metric, Walker, metric_at_mode
from pyhybrid.masking.slices import draw_levels, elliptical_slice

__all__ = ["SequentialModel"]

Values = npt.NDArray[Any]
Rows = slice | npt.NDArray[np.intp]
_SLOPE_PRECISION = 0.01  # of coefficients relative to the residual precision; standardised columns
_SHAPE, _RATE = 1.0, 0.01  # inverse gamma prior of the residual variance
_PRELIMINARY = 15
_ALL = slice(None)


@dataclass(kw_only=True, eq=False)
class _State:
    """A chain: values (n,) by column, their design (n, P), parameters by column, walkers."""

    values: list[Values]
    design: FloatArray
    thetas: list[FloatArray]
    walkers: list[Walker | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Conjugate:
    """Normal regression: mean (p,) and factor of the precision (p, p) of the slopes, rate."""

    mean: FloatArray
    factor: FloatArray
    rate: float


class SequentialModel:
    """Sequence of conditional models bound to data; see the module."""

    def __init__(self, bound: BoundKeys, rng: np.random.Generator) -> None:
        self.columns = (*bound.incomplete, *bound.keys)
        self.n_keys = len(bound.keys)
        n = bound.n_records
        parts = [np.ones((n, 1)), *(c.encoded(c.values) for c in bound.complete)]
        self._base = np.hstack(parts)
        widths = [c.width for c in self.columns]
        self.starts = self._base.shape[1] + np.concatenate(([0], np.cumsum(widths)))
        self.models = [
            None
            if c.kind == "continuous"
            else LevelModel(kind=c.kind, n_levels=c.n_levels, n_columns=int(p))
            for c, p in zip(self.columns, self.starts, strict=False)
        ]
        self.gaps = [np.flatnonzero(c.missing) for c in self.columns]
        self._complete = not any(rows.size for rows in self.gaps)
        self._metrics: list[Metric | None] = []
        self._conjugates: dict[int, _Conjugate] = {}
        self._prepare(rng)

    def start(self, rng: np.random.Generator) -> _State:
        """A chain from dispersed parameters and imputations."""
        values = [self._filled(j, rng) for j in range(len(self.columns))]
        design = self._design(values)
        walkers: list[Walker | None] = []
        thetas = []
        for j, metric in enumerate(self._metrics):
            if metric is None:
                thetas.append(self._normal_draw(j, design, values[j], rng))
                walkers.append(None)
                continue
            apart = 2 * metric.spread @ rng.standard_normal(metric.mode.size)
            walkers.append(Walker(theta=metric.mode + apart))
            thetas.append(metric.mode + apart)
        return _State(values=values, design=design, thetas=thetas, walkers=walkers)

    def sweep(self, state: _State, rng: np.random.Generator, *, adapt: bool, impute: bool) -> None:
        """Parameters of each model given the true keys; then the missing values, given these."""
        for j, walker in enumerate(state.walkers):
            metric, model = self._metrics[j], self.models[j]
            if walker is None or metric is None or model is None:
                state.thetas[j] = self._normal_draw(j, state.design, state.values[j], rng)
                continue
            target = _target(model, state.design[:, : self.starts[j]], state.values[j])
            walker.move(target, metric, rng, adapt=adapt)
            state.thetas[j] = walker.theta
        if impute:
            for j, rows in enumerate(self.gaps):
                if rows.size:
                    self._redraw(state, j, rows, None, rng, later=True)

    def quantities(self, state: _State) -> dict[str, FloatArray]:
        """Coefficients, cutpoints and log residual variances of each model."""
        found = {}
        for column, model, theta in zip(self.columns, self.models, state.thetas, strict=True):
            own = theta.copy()
            if model is None:
                own[-1] = np.log(own[-1])
            elif model.kind == "ordered":
                own = own[1:]
            found[column.name] = own
        return found

    def n_divergent(self, state: _State) -> int:
        """Of all walkers."""
        return sum(walker.divergent for walker in state.walkers if walker is not None)

    def snapshot(self, state: _State) -> Snapshot:
        """Parameters and completed values."""
        values = {c.name: v.copy() for c, v in zip(self.columns, state.values, strict=True)}
        return Snapshot(parameters=tuple(t.copy() for t in state.thetas), values=values)

    def resume(self, snapshot: Snapshot, rng: np.random.Generator) -> _State:
        """A chain from a draw."""
        state = self._resumed(snapshot)
        state.walkers = [
            None if metric is None else Walker(theta=theta.copy())
            for metric, theta in zip(self._metrics, state.thetas, strict=True)
        ]
        return state

    def synthesise(
        self,
        snapshot: Snapshot,
        evidence: Mapping[str, Evidence],
        rng: np.random.Generator,
        *,
        sweeps: int,
    ) -> dict[str, Values]:
        """Keys in sequence given the earlier ones, then `sweeps` updates given all others.

        What is missing in predictors is drawn along, as it was imputed from the true keys.
        """
        state = self._resumed(snapshot)
        first_key = len(self.columns) - self.n_keys
        drawn: list[tuple[int, Rows]] = [
            (j, self.gaps[j] if j < first_key else _ALL)
            for j in range(len(self.columns))
            if j >= first_key or self.gaps[j].size
        ]
        for j, rows in drawn:
            self._redraw(state, j, rows, evidence.get(self.columns[j].name), rng, later=False)
        if len(drawn) > 1 and (evidence or first_key):  # else these draws are exact already
            for _ in range(sweeps):
                for j, rows in drawn:
                    own = evidence.get(self.columns[j].name)
                    self._redraw(state, j, rows, own, rng, later=True)
        return {c.name: state.values[j] for j, c in enumerate(self.columns) if j >= first_key}

    def _prepare(self, rng: np.random.Generator) -> None:
        """Metrics at the modes; once more after some sweeps if values had to be filled in."""
        values = [self._filled(j, rng) for j in range(len(self.columns))]
        self._metrics = self._metrics_at(values)
        if not self._complete:
            state = self.start(rng)
            for _ in range(_PRELIMINARY):
                self.sweep(state, rng, adapt=True, impute=True)
            self._metrics = self._metrics_at(state.values)

    def _metrics_at(self, values: list[Values]) -> list[Metric | None]:
        design = self._design(values)
        found: list[Metric | None] = []
        for j, model in enumerate(self.models):
            if model is None:
                found.append(None)
                continue
            target = _target(model, design[:, : self.starts[j]], values[j])
            found.append(metric_at_mode(target, np.zeros(model.size)))
        return found

    def _filled(self, j: int, rng: np.random.Generator) -> Values:
        """Values with the missing ones drawn from those that are there."""
        column, rows = self.columns[j], self.gaps[j]
        values: Values = column.values.copy()
        values[rows] = rng.choice(values[~column.missing], rows.size)
        return values

    def _design(self, values: list[Values]) -> FloatArray:
        encoded = (c.encoded(v) for c, v in zip(self.columns, values, strict=True))
        design: FloatArray = np.asfortranarray(np.hstack([self._base, *encoded]))
        return design

    def _resumed(self, snapshot: Snapshot) -> _State:
        values = [snapshot.values[c.name].copy() for c in self.columns]
        thetas = list(snapshot.parameters)
        return _State(values=values, design=self._design(values), thetas=thetas, walkers=[])

    def _normal_draw(
        self, j: int, design: FloatArray, x: Values, rng: np.random.Generator
    ) -> FloatArray:
        """Slopes and residual variance of a normal regression, conjugate; shape (p + 1,)."""
        found = self._conjugates.get(j)
        if found is None:
            own = design[:, : self.starts[j]]
            precision = own.T @ own + _SLOPE_PRECISION * np.eye(own.shape[1])
            factor = np.linalg.cholesky(precision)
            half = solve_triangular(factor, own.T @ x, lower=True)
            rate = _RATE + 0.5 * float(x @ x - half @ half)
            mean = solve_triangular(factor.T, half)
            found = _Conjugate(mean=mean, factor=factor, rate=max(rate, _RATE))
            if self._complete:
                self._conjugates[j] = found
        variance = found.rate / rng.gamma(_SHAPE + 0.5 * x.size)
        noise = solve_triangular(found.factor.T, rng.standard_normal(found.mean.size))
        return np.append(found.mean + np.sqrt(variance) * noise, variance)

    def _redraw(
        self, state: _State, j: int, rows: Rows, evidence: Evidence | None,
        rng: np.random.Generator, *, later: bool,
    ) -> None:  # fmt: skip
        """Draw column j in these rows given all other columns (the earlier ones only if not
        `later`) and its mask, in place."""
        column = self.columns[j]
        design = state.design[rows]
        after = range(j + 1, len(self.columns)) if later else range(0)
        draw = self._level_draw if self.models[j] is not None else self._value_draw
        state.values[j][rows] = draw(state, j, rows, design, evidence, after, rng)
        span = slice(self.starts[j], self.starts[j + 1])
        state.design[rows, span] = column.encoded(state.values[j][rows])

    def _level_draw(
        self, state: _State, j: int, rows: Rows, design: FloatArray, evidence: Evidence | None,
        after: range, rng: np.random.Generator,
    ) -> Values:  # fmt: skip
        model = self.models[j]
        assert model is not None
        theta = state.thetas[j]
        logs = model.log_probabilities(
            design[:, : self.starts[j]] @ model.coefficients(theta), model.cuts(theta)
        )
        if evidence is not None and evidence.log_density is not None:
            logs = logs + evidence.log_density[rows]
        for k in after:
            rest, slopes = self._without(state, j, k, design)
            x = state.values[k][rows]
            shifts = np.vstack([np.zeros(slopes.shape[1]), slopes])
            for level, shift in enumerate(shifts):
                logs[:, level] += self._log_density(k, rest + shift, x, state.thetas[k])
        return draw_levels(logs, rng)

    def _value_draw(
        self, state: _State, j: int, rows: Rows, design: FloatArray, evidence: Evidence | None,
        after: range, rng: np.random.Generator,
    ) -> Values:  # fmt: skip
        theta = state.thetas[j]
        precision = np.full(len(design), 1 / theta[-1])
        total = (design[:, : self.starts[j]] @ theta[:-1]) / theta[-1]
        if evidence is not None and evidence.precision is not None:
            assert evidence.centre is not None
            precision = precision + evidence.precision[rows]
            total = total + evidence.precision[rows] * evidence.centre[rows]
        others = []
        for k in after:
            rest, slopes = self._without(state, j, k, design)
            x = state.values[k][rows]
            if self.models[k] is None:
                slope, variance = float(slopes[0, 0]), state.thetas[k][-1]
                precision = precision + slope**2 / variance
                total = total + slope * (x - rest[:, 0]) / variance
            else:
                others.append((k, rest, slopes[0], x))
        mean, noise = total / precision, rng.standard_normal(len(design)) / np.sqrt(precision)
        if not others:
            return np.asarray(mean + noise)

        def likelihood(values: FloatArray, which: npt.NDArray[np.intp]) -> FloatArray:
            total = np.zeros(which.size)
            for k, rest, slope, x in others:
                eta = rest[which] + values * slope
                total += self._log_density(k, eta, x[which], state.thetas[k])
            return total

        now = np.asarray(state.values[j][rows])[:, None]
        return elliptical_slice(now, mean[:, None], noise[:, None], likelihood, rng)[:, 0]

    def _without(
        self, state: _State, j: int, k: int, design: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Linear predictor of column k less the part of column j, and j's coefficients in it."""
        model, theta = self.models[k], state.thetas[k]
        coefficients = theta[:-1, None] if model is None else model.coefficients(theta)
        span = slice(self.starts[j], self.starts[j + 1])
        own = coefficients[span]
        rest = design[:, : self.starts[k]] @ coefficients - design[:, span] @ own
        return np.asarray(rest), own

    def _log_density(self, k: int, eta: FloatArray, x: Values, theta: FloatArray) -> FloatArray:
        model = self.models[k]
        if model is None:
            return np.asarray(-0.5 * (x - eta[:, 0]) ** 2 / theta[-1])
        return model.log_probability(eta, model.cuts(theta), x)


def _target(model: LevelModel, design: FloatArray, x: Values) -> LogPosterior:
    return lambda theta: model.log_posterior(theta, design, x)
