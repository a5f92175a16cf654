"""Public grids of parameters, for posteriors that are sampled exactly.

A model of one or two likelihood parameters has a form: coordinates that are unbounded, the
parameters at a point, and the log prior density in the coordinates. Which points are on the grid is
public, and no function of the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pyhybrid.core.checks import FloatArray, check_count, check_finite
from pyhybrid.core.errors import InvalidInput

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


class GridForm(Protocol):
    """How the parameters of a model lie on a grid."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Coordinates with ends and sizes that suit every data set, if coarsely."""

    def parameters(self, at: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Parameters of the likelihood, shape (C, *dims), at coordinates (C,)."""

    def coordinates(self, parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Inverse of `parameters`."""

    def log_prior(self, at: Mapping[str, FloatArray]) -> FloatArray:
        """Log prior density in the coordinates, shape (C,), up to a constant."""


@dataclass(frozen=True, kw_only=True)
class ParameterGrid:
    """All combinations of the points of one or two axes, the last axis running fastest."""

    axes: tuple[Axis, ...]

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

    def at(self, places: Any) -> dict[str, FloatArray]:
        """Coordinates of the candidates at `places`, shape (k,) each."""
        index = np.unravel_index(places, [axis.size for axis in self.axes])
        return {axis.name: axis.points[i] for axis, i in zip(self.axes, index, strict=True)}

    def describe(self) -> dict[str, Any]:
        """Ends and sizes by coordinate; public."""
        return {axis.name: [axis.lower, axis.upper, axis.size] for axis in self.axes}

    @classmethod
    def of(
        cls, form: GridForm, given: Mapping[str, Sequence[float]] | None = None
    ) -> ParameterGrid:
        """The form's own grid, with axes ``name: (lower, upper, size)`` of the user's instead."""
        known = {axis.name: axis for axis in form.axes}
        for name, ends in (given or {}).items():
            if name not in known:
                raise InvalidInput(
                    f"grid must have the coordinates of the model, {', '.join(known)}: "
                    f"found {name!r}"
                )
            if len(ends) != 3:
                raise InvalidInput(
                    f"grid axis {name!r} must be (lower, upper, size): found {len(ends)} numbers"
                )
            known[name] = Axis(name=name, lower=ends[0], upper=ends[1], size=ends[2])  # type: ignore[arg-type]
        return cls(axes=tuple(known.values()))

    @classmethod
    def around(
        cls, center: Mapping[str, float], half_width: Mapping[str, float], like: ParameterGrid
    ) -> ParameterGrid:
        """A grid of the sizes of `like` about a frozen center, so far to either side."""
        ends = {name: (at - half_width[name], at + half_width[name]) for name, at in center.items()}
        return cls(
            axes=tuple(
                replace(axis, lower=ends[axis.name][0], upper=ends[axis.name][1])
                for axis in like.axes
            )
        )


def scale_mixture_log_density(beta: FloatArray) -> FloatArray:
    """Log density (k,) of beta ~ N(0, s^2), s ~ half-t_3(0, 1), the published prior of one
    coefficient: by the trapezoidal rule over log s, which converges geometrically here."""
    from scipy import stats  # slow to import

    log_s, step = np.linspace(-25, 15, _NODES, retstep=True)
    weight = 2 * step * stats.t.pdf(np.exp(log_s), 3) / math.sqrt(2 * math.pi)  # times s, over s
    return np.asarray(np.log(np.exp(np.outer(beta**2, -0.5 * np.exp(-2 * log_s))) @ weight))


@dataclass(frozen=True)
class PoissonForm:
    """Poisson with an intercept beta; `prior_sd` None: the published prior."""

    axes: tuple[Axis, ...] = (Axis(name="log_mean", lower=-10, upper=15, size=100_000),)
    prior_sd: float | None = None

    def parameters(self, at: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {"beta": at[self.axes[0].name][:, None]}

    def coordinates(self, parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {self.axes[0].name: parameters["beta"][:, 0]}

    def log_prior(self, at: Mapping[str, FloatArray]) -> FloatArray:
        values = at[self.axes[0].name]
        if self.prior_sd is not None:
            from scipy import stats

            return np.asarray(stats.norm.logpdf(values, scale=self.prior_sd))
        distinct, place = np.unique(values, return_inverse=True)
        chunks = np.array_split(distinct, 1 + distinct.size // 5000)
        return np.concatenate([scale_mixture_log_density(chunk) for chunk in chunks])[place]


@dataclass(frozen=True)
class BernoulliForm(PoissonForm):
    """Bernoulli with an intercept: beta, the logit of the second level's probability."""

    axes: tuple[Axis, ...] = (Axis(name="logit", lower=-40, upper=40, size=160_000),)


@dataclass(frozen=True)
class NegativeBinomialForm(PoissonForm):
    """Negative binomial with an intercept: beta and log(1 / phi)."""

    axes: tuple[Axis, ...] = (
        Axis(name="log_mean", lower=-6, upper=9, size=1250),
        Axis(name="log_reciprocal_phi", lower=-8, upper=4, size=800),
    )

    def parameters(self, at: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {**super().parameters(at), "phi": np.exp(-at["log_reciprocal_phi"])}

    def coordinates(self, parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        log_r = -np.log(parameters["phi"])
        return {**super().coordinates(parameters), "log_reciprocal_phi": log_r}

    def log_prior(self, at: Mapping[str, FloatArray]) -> FloatArray:
        """1/phi ~ half-Cauchy(0, 5), with the Jacobian of its logarithm."""
        log_r = at["log_reciprocal_phi"]
        return super().log_prior(at) + log_r - np.log1p((np.exp(log_r) / 5) ** 2)


@dataclass(frozen=True)
class NormalForm(PoissonForm):
    """Normal with an intercept, on the transformed scale: beta and log(sigma - min_sd)."""

    axes: tuple[Axis, ...] = (
        Axis(name="mean", lower=-25, upper=25, size=1250),
        Axis(name="log_sd", lower=-8, upper=5, size=800),
    )
    min_sd: float = 0.0

    def parameters(self, at: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {**super().parameters(at), "sigma": self.min_sd + np.exp(at["log_sd"])}

    def coordinates(self, parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        log_sd = np.log(parameters["sigma"] - self.min_sd)
        return {**super().coordinates(parameters), "log_sd": log_sd}

    def log_prior(self, at: Mapping[str, FloatArray]) -> FloatArray:
        """sigma ~ half-t_3(0, 1) above min_sd, with the Jacobian of log(sigma - min_sd)."""
        from scipy import stats  # slow to import

        sigma = self.min_sd + np.exp(at["log_sd"])
        return np.asarray(super().log_prior(at) + stats.t.logpdf(sigma, 3) + at["log_sd"])


@dataclass(frozen=True)
class BetaForm:
    """Beta: logit(phi) and log(lambda - 0.1)."""

    axes: tuple[Axis, ...] = (
        Axis(name="logit_phi", lower=-8, upper=8, size=1250),
        Axis(name="log_lambda", lower=-6, upper=10, size=800),
    )

    def parameters(self, at: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        phi = 1 / (1 + np.exp(-at["logit_phi"]))
        return {"phi": phi, "lambda": 0.1 + np.exp(at["log_lambda"])}

    def coordinates(self, parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        phi = parameters["phi"]
        return {
            "logit_phi": np.log(phi) - np.log1p(-phi),
            "log_lambda": np.log(parameters["lambda"] - 0.1),
        }

    def log_prior(self, at: Mapping[str, FloatArray]) -> FloatArray:
        """phi ~ Beta(1, 1), lambda ~ Pareto(0.1, 1.5), with the Jacobians of both."""
        u, v = at["logit_phi"], at["log_lambda"]
        return np.asarray(
            -np.logaddexp(0, u) - np.logaddexp(0, -u) - 2.5 * np.log(0.1 + np.exp(v)) + v
        )
