"""Public grids of parameters, for posteriors that are sampled exactly.

A law with an intercept alone has one or two unbounded coordinates: the linear predictor and the
logarithm of its size. Which points are on the grid is public, and no function of the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from pyhybrid.core.checks import FloatArray, check_count, check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.laws import Law

_MOST_CANDIDATES = 5_000_000
_NODES = 300  # of the quadrature over the prior's scale


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One coordinate: `size` points, the middles of equal cells of [lower, upper]."""

    name: str
    lower: float
    upper: float
    size: int

    def __post_init__(self) -> None:
        low, high = check_finite(self.lower, "lower"), check_finite(self.upper, "upper")
        if low >= high:
            raise InvalidInput(
                f"grid axis {self.name!r} must have lower below upper: found {low:g} and {high:g}"
            )
        check_count(self.size, f"size of grid axis {self.name!r}", at_least=2)

    @property
    def spacing(self) -> float:
        """Width of a cell."""
        return (self.upper - self.lower) / self.size

    @property
    def points(self) -> FloatArray:
        """Shape (size,)."""
        return np.asarray(self.lower + self.spacing * (np.arange(self.size) + 0.5))


@dataclass(frozen=True, kw_only=True)
class ParameterGrid:
    """Parameters of a law with an intercept at all combinations of the points of one or two axes,
    the last one running fastest: the first of `axes` is the linear predictor, the second s u for
    the law's size, as in `Law.sampled_size`.

    The intercept has a normal prior of deviation `prior_sd`, or if None the published one; with
    `share` its mean phi = expit(eta) is the parameter, which has a uniform prior."""

    law: Law
    axes: tuple[Axis, ...]
    prior_sd: float | None = None
    share: bool = False

    def __post_init__(self) -> None:
        if self.size > _MOST_CANDIDATES:
            raise InvalidInput(
                f"a grid must have at most {_MOST_CANDIDATES} points: found {self.size}; "
                "take wider cells or a narrower region"
            )

    @property
    def size(self) -> int:
        """Number of candidates C."""
        return int(np.prod([axis.size for axis in self.axes]))

    def with_axes(self, given: Mapping[str, Sequence[float]] | None) -> ParameterGrid:
        """The grid with axes ``name: (lower, upper, size)`` in place of its own."""
        axes = {axis.name: axis for axis in self.axes}
        for name, ends in (given or {}).items():
            if name not in axes:
                raise InvalidInput(
                    f"grid must have the coordinates of the model, {', '.join(axes)}: "
                    f"found {name!r}"
                )
            if len(ends) != 3:
                raise InvalidInput(
                    f"grid axis {name!r} must be (lower, upper, size): found {len(ends)} numbers"
                )
            axes[name] = Axis(name=name, lower=ends[0], upper=ends[1], size=ends[2])  # type: ignore[arg-type]
        return replace(self, axes=tuple(axes.values()))

    def at(self, places: Any) -> dict[str, FloatArray]:
        """Coordinates of the candidates at `places`, shape (k,) each."""
        index = np.unravel_index(places, [axis.size for axis in self.axes])
        return {axis.name: axis.points[i] for axis, i in zip(self.axes, index, strict=True)}

    def parameters(self, at: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Parameters of the likelihood, shape (C, *dims), at coordinates (C,)."""
        eta = at[self.axes[0].name]
        named = {"phi": expit(eta)} if self.share else {"beta": eta[:, None]}
        if self.law.size is not None:
            named[self.law.size] = self.law.floor + np.exp(self._u(at))
        return named

    def coordinates(self, parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Inverse of `parameters`."""
        eta = logit(parameters["phi"]) if self.share else parameters["beta"][:, 0]
        named = {self.axes[0].name: eta}
        if self.law.size is not None:
            u = np.log(parameters[self.law.size] - self.law.floor)
            named[self.axes[1].name] = self.law.sampled_size[1] * u
        return named

    def log_prior(self, at: Mapping[str, FloatArray]) -> FloatArray:
        """Log prior density in the coordinates, shape (C,), up to a constant."""
        eta = at[self.axes[0].name]
        of_size = 0.0 if self.law.size is None else self.law.log_prior_of_size(self._u(at))
        if self.share:
            return np.asarray(of_size - np.logaddexp(0, eta) - np.logaddexp(0, -eta))
        if self.prior_sd is not None:
            return np.asarray(of_size - (eta / self.prior_sd) ** 2 / 2)
        distinct, row_of = np.unique(eta, return_inverse=True)
        chunks = np.array_split(distinct, 1 + distinct.size // 5000)
        return of_size + np.concatenate([scale_mixture_log_density(c) for c in chunks])[row_of]

    def _u(self, at: Mapping[str, FloatArray]) -> FloatArray:
        return self.law.sampled_size[1] * at[self.axes[1].name]


def scale_mixture_log_density(beta: FloatArray) -> FloatArray:
    """Log density (k,) of beta ~ N(0, s^2), s ~ half-t_3(0, 1), the published prior of one
    coefficient: by the trapezoidal rule over log s, which converges geometrically here."""
    from scipy import stats  # slow to import

    log_s, step = np.linspace(-25, 15, _NODES, retstep=True)
    weight = 2 * step * stats.t.pdf(np.exp(log_s), 3) / math.sqrt(2 * math.pi)  # times s, over s
    return np.asarray(np.log(np.exp(np.outer(beta**2, -0.5 * np.exp(-2 * log_s))) @ weight))
