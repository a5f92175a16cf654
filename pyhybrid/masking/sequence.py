r"""Association by a sequence of conditional models [J22].

p(X | Z, theta) is the product of p(X_j | X_1 .. X_{j-1}, Z, theta_j): a normal regression for a
continuous key, probit, ordered probit or multinomial logit for the others. Predictors with missing
values come first in the sequence, with models of their own.

The released keys come from the joint distribution: each key in turn is drawn given all the others,
so that p(X_j | before) p(W_j | X_j) times the models of later keys is sampled, exactly: by
enumeration for levels; by conjugate normals, and an elliptical slice where later keys have levels,
for continuous keys.

Missing values are drawn given all other columns, and parameters given them, in turn. Where a group
of records never shows a value (earnings of those who do not work) such chains mix slowly, and are
refused as not converged: leave the column out by naming the other predictors.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, IntArray
from pyhybrid.masking.columns import BoundKeys, Rows, Values
from pyhybrid.masking.families import (
    STEP,
    LevelModel,
    LogPosterior,
    NormalAtMode,
    adapted,
    draw_levels,
    draw_normal_regression,
    elliptical_slice,
)
from pyhybrid.masking.masks import Evidence

_MOVES = 2  # of the parameters of a model of levels in each sweep
_ALL = slice(None)


@dataclass(kw_only=True, eq=False)
class _State:
    """A chain: values (n,) of each column, the design (n, P); parameters and step sizes of each
    column, and how many sweeps these were adapted by."""

    values: list[Values]
    design: FloatArray
    steps: FloatArray
    thetas: list[FloatArray] = field(default_factory=list)
    n_adapted: int = 0


class SequentialModel:
    """Sequence of conditional models bound to data; see the module."""

    def __init__(self, bound: BoundKeys, rng: np.random.Generator) -> None:
        self.columns = (*bound.incomplete, *bound.keys)
        self.n_keys = len(bound.keys)
        ones = np.ones((bound.n_records, 1))
        self._base = np.hstack([ones, *(c.encoded(c.values) for c in bound.complete)])
        widths = [c.width for c in self.columns]
        self.starts = self._base.shape[1] + np.concatenate(([0], np.cumsum(widths)))
        self.models = [
            LevelModel(kind=c.kind, n_levels=c.n_levels, n_columns=int(p)) if c.n_levels else None
            for c, p in zip(self.columns, self.starts, strict=False)
        ]
        self.gaps = [np.flatnonzero(c.missing) for c in self.columns]
        state = self._filled(rng)
        self._normals = [
            None
            if model is None
            else NormalAtMode.of(self._posterior(state, j, ~column.missing), np.zeros(model.size))
            for j, (column, model) in enumerate(zip(self.columns, self.models, strict=True))
        ]  # near the posterior given the records that show a column with levels

    def start(self, rng: np.random.Generator) -> _State:
        """A chain from dispersed parameters and imputations."""
        state = self._filled(rng)
        for j, near in enumerate(self._normals):
            theta = self._regression_draw(state, j, rng) if near is None else near.dispersed(rng)
            state.thetas.append(theta)
        return state

    def sweep(self, state: _State, rng: np.random.Generator, *, adapt: bool, impute: bool) -> None:
        """Column by column: parameters given the true keys, then missing values; see the module."""
        for j, near in enumerate(self._normals):
            if near is None:
                state.thetas[j] = self._regression_draw(state, j, rng)
            else:
                posterior, step = self._posterior(state, j), float(state.steps[j])
                for _ in range(_MOVES):
                    state.thetas[j], accepted = near.move(state.thetas[j], posterior, step, rng)
                if adapt:
                    state.steps[j] = adapted(step, accepted, state.n_adapted)
            if impute and self.gaps[j].size:
                self._redraw(state, j, self.gaps[j], None, rng, later=True)
        state.n_adapted += adapt

    def quantities(self, state: _State) -> dict[str, FloatArray]:
        """Coefficients, cutpoints and log residual variances of each model."""
        quantities = {}
        for column, model, theta in zip(self.columns, self.models, state.thetas, strict=True):
            parameters = theta.copy()
            if model is None:
                parameters[-1] = np.log(parameters[-1])
            elif model.kind == "ordered":
                parameters = parameters[1:]
            quantities[column.name] = parameters
        return quantities

    def completed(self, state: _State) -> dict[str, Values]:
        """Values by name, what was missing as it is imputed."""
        return {c.name: values for c, values in zip(self.columns, state.values, strict=True)}

    def synthesize(
        self, state: _State, evidence: Mapping[str, Evidence], rng: np.random.Generator, *,
        sweeps: int,
    ) -> dict[str, Values]:  # fmt: skip
        """Keys in sequence given the earlier ones, then `sweeps` updates given all others; what is
        missing in predictors is drawn along."""
        state = deepcopy(state)
        first_key = len(self.columns) - self.n_keys
        gaps = enumerate(self.gaps[:first_key])
        drawn: list[tuple[int, Rows]] = [(j, rows) for j, rows in gaps if rows.size]
        drawn += [(j, _ALL) for j in range(first_key, len(self.columns))]
        exact = len(drawn) == 1 or not (evidence or first_key)  # at the first draw already
        for sweep in range(1 if exact else 1 + sweeps):
            for j, rows in drawn:
                mask = evidence.get(self.columns[j].name)
                self._redraw(state, j, rows, mask, rng, later=sweep > 0)
        return {c.name: state.values[j] for j, c in enumerate(self.columns) if j >= first_key}

    def _posterior(self, state: _State, j: int, rows: Any = _ALL) -> LogPosterior:
        model, design, x = self.models[j], state.design[rows, : self.starts[j]], state.values[j]
        assert model is not None
        return functools.partial(model.log_posterior, design=design, x=x[rows])

    def _filled(self, rng: np.random.Generator) -> _State:
        """A chain without parameters, missing values drawn from those that are there."""
        values = []
        for column, rows in zip(self.columns, self.gaps, strict=True):
            completed = column.values.copy()
            completed[rows] = rng.choice(column.values[~column.missing], rows.size)
            values.append(completed)
        encoded = (c.encoded(v) for c, v in zip(self.columns, values, strict=True))
        design = np.asfortranarray(np.hstack([self._base, *encoded]))
        return _State(values=values, design=design, steps=np.full(len(values), STEP))

    def _regression_draw(self, state: _State, j: int, rng: np.random.Generator) -> FloatArray:
        return draw_normal_regression(state.design[:, : self.starts[j]], state.values[j], rng)

    def _redraw(
        self, state: _State, j: int, rows: Rows, evidence: Evidence | None,
        rng: np.random.Generator, *, later: bool,
    ) -> None:  # fmt: skip
        """Draw column j in these rows given all other columns (the earlier ones only if not
        `later`) and its mask, in place."""
        design = state.design[rows]
        model, theta = self.models[j], state.thetas[j]
        if model is None:
            drawn = self._value_draw(state, j, rows, design, evidence, rng, later=later)
        else:
            eta = design[:, : self.starts[j]] @ model.coefficients(theta)
            logs = model.log_probabilities(eta, model.cuts(theta))
            if later:
                logs = logs + self._logs_after(state, j, rows)
            if evidence is not None:
                logs = logs + evidence.log_density[rows]
            drawn = draw_levels(logs, rng)
        state.values[j][rows] = drawn
        span = slice(self.starts[j], self.starts[j + 1])
        state.design[rows, span] = self.columns[j].encoded(drawn)

    def _logs_after(self, state: _State, j: int, rows: Rows) -> FloatArray:
        """Log density of the later columns for each level of column j, shape (rows, levels)."""
        design = state.design[rows]
        logs = np.zeros((len(design), self.columns[j].n_levels))
        for k in range(j + 1, len(self.columns)):
            rest, slopes = self._without(state, j, k, design)
            x = state.values[k][rows]
            shifts = np.vstack([np.zeros(slopes.shape[1]), slopes])
            for level, shift in enumerate(shifts):
                logs[:, level] += self._log_density(k, rest + shift, x, state.thetas[k])
        return logs

    def _value_draw(
        self, state: _State, j: int, rows: Rows, design: FloatArray, evidence: Evidence | None,
        rng: np.random.Generator, *, later: bool,
    ) -> Values:  # fmt: skip
        theta = state.thetas[j]
        precision = np.full(len(design), 1 / theta[-1])
        total = (design[:, : self.starts[j]] @ theta[:-1]) / theta[-1]
        if evidence is not None:
            of_mask = evidence.precision[rows]
            precision, total = precision + of_mask, total + of_mask * evidence.center[rows]
        others = []
        for k in range(j + 1, len(self.columns)) if later else ():
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

        def likelihood(values: FloatArray, which: IntArray) -> FloatArray:
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
        slopes = coefficients[span]
        rest = design[:, : self.starts[k]] @ coefficients - design[:, span] @ slopes
        return np.asarray(rest), slopes

    def _log_density(self, k: int, eta: FloatArray, x: Values, theta: FloatArray) -> FloatArray:
        model = self.models[k]
        if model is None:
            return np.asarray(-0.5 * (x - eta[:, 0]) ** 2 / theta[-1])
        return model.log_probabilities(eta, model.cuts(theta), x)
