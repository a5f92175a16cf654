r"""The reference of a censored mechanism: theta_ref and its region.

A record's term is clipped less its value at theta_ref, c_i = log p(x_i | theta_ref): clipping then
starts where a term has moved by M, and not where it has the size M. theta_ref is public, or comes
from a reference whose own records no charge of the new release covers.

**The excess.** Clipping removes what long tails contribute: a posterior of clipped terms moves
towards a likelihood with shorter ones, and under a small cap it ends in another mode. What is
removed on average is a function of theta that the reference can estimate:

.. math:: e(\theta) = \frac{1}{n_0} \sum_{j \in reference} g_j(\theta) - clip(g_j(\theta)),
   \quad g_j = \alpha_j (f_j(\theta) - f_j(\theta_{ref}))

It is frozen, and moves the center of every new term: :math:`h_i = clip(g_i + e)`. Where the new
records are like those of the reference, their sum has nearly the expectation of the sum without
clipping. What is subtracted from f_i is still a function of the own record and of frozen
quantities, so that h_i ranges over 2 M whatever e is: leaving a record out costs 2 M and replacing
it 4 M, as without the excess. (Added after clipping, it would move with the number of records.)

**The region.** Far away, where nearly every term is clipped, the records have no information and a
mode may be anywhere. Chains stay where the log-likelihood of the reference falls by at most half
the square of `region`, the ellipsoid of so many posterior standard deviations about theta_ref.
Beyond, the log density falls by ten nats for each that the reference's own falls, a frozen prior
that costs nothing. A grid ends there. A truth outside costs accuracy, not privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_flag, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws
from pyhybrid.fitting.exact import frozen_draws
from pyhybrid.models.base import BoundModel
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.privacy.censoring import Cap, FrozenRows

REGION = 10.0
"""Half width of the default region, in posterior standard deviations of the reference."""
_SIZES = {1: 20_000, 2: 500}  # points of an axis, by the number of axes
_NODES = {1: 401, 2: 81}  # of the excess, which is smooth
_MOST_FROZEN = 10_000  # records


@dataclass(frozen=True, kw_only=True, eq=False)
class Center:
    """theta_ref, and where the grid around it ends."""

    parameters: Mapping[str, FloatArray]  # of the likelihood, shape (*dims) each
    sd: Mapping[str, float]  # of the grid's coordinates under the reference; empty without a grid
    region: float  # half width of the grid, in these
    public: bool  # True if the reference is public
    frozen: FrozenRows | None = field(default=None, repr=False)  # of the excess and the region

    def __post_init__(self) -> None:
        check_positive(self.region, "region")
        check_flag(self.public, "public")
        for name, values in self.parameters.items():
            if not np.isfinite(values).all():
                raise InvalidInput(f"center must be finite: {name!r} is not")
        for name, sd in self.sd.items():
            check_positive(sd, f"standard deviation of {name!r}")

    def __repr__(self) -> str:
        return f"<Center of {', '.join(self.parameters)}, region {self.region:g}>"

    def log_lik(self, bound: BoundModel) -> FloatArray:
        """c_i of the records of `bound`, each a function of its own record, shape (n,), nats."""
        return log_lik_at(bound, self.parameters)

    def grid(self, of_model: ParameterGrid) -> ParameterGrid | None:
        """The grid within the region; None if the reference's spread is not known."""
        if set(self.sd) != {axis.name for axis in of_model.axes}:
            return None
        size = _SIZES[len(of_model.axes)]
        at = of_model.coordinates({name: values[None] for name, values in self.parameters.items()})
        axes = {}
        for name, sd in self.sd.items():
            middle, half = float(at[name][0]), self.region * sd
            axes[name] = (middle - half, middle + half, size)
        return of_model.with_axes(axes)

    def excess_on(self, bound: BoundModel, grid: ParameterGrid, cap: Cap) -> FloatArray | None:
        """e at the candidates of a grid, shape (C,), nats, from nodes; None without frozen rows."""
        if self.frozen is None:
            return None
        from scipy.interpolate import CubicSpline, RectBivariateSpline  # slow to import

        assert isinstance(bound, BoundRegression)
        k = _NODES[len(grid.axes)]
        nodes = [np.linspace(axis.lower, axis.upper, k) for axis in grid.axes]
        mesh = np.meshgrid(*nodes, indexing="ij")
        at = {axis.name: points.ravel() for axis, points in zip(grid.axes, mesh, strict=True)}
        draws = frozen_draws(grid.parameters(at))
        lost = cap.excess(bound.frozen_log_lik(self.frozen, draws)).reshape([k] * len(nodes))
        points = [axis.points for axis in grid.axes]
        if len(nodes) == 1:
            return np.asarray(CubicSpline(nodes[0], lost)(points[0]))
        return np.asarray(RectBivariateSpline(*nodes, lost)(*points).ravel())

    def cap(self, bound: BoundModel, size: float) -> Cap:
        """The clip of the records of `bound` to [-size, size] about this center."""
        return Cap(
            below=size,
            above=size,
            reference=self.log_lik(bound),
            frozen=self.frozen,
            region=self.region,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, without the frozen rows."""
        return {
            "parameters": {name: np.asarray(v).tolist() for name, v in self.parameters.items()},
            "sd": dict(self.sd),
            "region": self.region,
            "public": self.public,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], rows: Mapping[str, Any] | None) -> Center:
        """Inverse of `as_dict`, with the columns of the frozen rows."""
        frozen: dict[str, Any] = {n: np.array(v, dtype=np.float64) for n, v in (rows or {}).items()}
        if frozen:
            frozen["count"] = np.array([int(count) for count in frozen["count"]])
        return cls(
            parameters={name: np.array(values, dtype=np.float64)
                        for name, values in fields["parameters"].items()},
            sd={str(name): float(sd) for name, sd in fields["sd"].items()},
            region=fields["region"],
            public=fields["public"],
            frozen=FrozenRows(**frozen) if frozen else None,
        )  # fmt: skip


def log_lik_at(bound: BoundModel, parameters: Mapping[str, FloatArray]) -> FloatArray:
    """Log-likelihood of the records at one point, shape (n,)."""
    names = bound.likelihood_parameters
    if set(parameters) != set(names):
        raise InvalidInput(
            f"center must have the parameters of the likelihood, {', '.join(names)}: found "
            f"{', '.join(sorted(parameters)) or 'none'}"
        )
    try:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            points = frozen_draws({n: parameters[n][None] for n in names})
            return bound.log_lik(points).by_record(lambda block: block[0])
    except InvalidInput:
        raise
    except (ValueError, IndexError):
        raise InvalidInput(
            "center must have the shapes of the model's parameters, such as one number in a list "
            "for each column of the design: it has others"
        ) from None


def center_of_draws(bound: BoundModel, draws: Draws, *, region: float, public: bool) -> Center:
    """Posterior mean of `draws`, of each parameter or its logarithm; where that fits worse than
    most draws do, as where components change labels, the draw that fits best."""
    grid, values = bound.grid, {n: draws.flat(n) for n in bound.likelihood_parameters}
    if grid is not None:
        at = grid.coordinates(values)
        mean = grid.parameters({name: points.mean(keepdims=True) for name, points in at.items()})
        return Center(
            parameters={name: points[0] for name, points in mean.items()},
            sd={name: float(points.std(ddof=1)) for name, points in at.items()},
            region=region,
            public=public,
        )
    middle = {name: _mean(draws_of) for name, draws_of in values.items()}
    total = bound.log_lik(draws).total(np.ones(bound.n))
    if not log_lik_at(bound, middle).sum() >= np.median(total):
        best = int(np.argmax(np.where(np.isnan(total), -np.inf, total)))
        middle = {name: np.asarray(draws_of[best]) for name, draws_of in values.items()}
    return Center(parameters=middle, sd={}, region=region, public=public)


def with_frozen_rows(
    center: Center, bound: BoundModel, alpha: FloatArray, rng: np.random.Generator
) -> Center:
    """The center with the records of `bound`, under weights `alpha` (n,), as its frozen rows, at
    most 10,000 at random. A program of the user's own takes none."""
    if not isinstance(bound, BoundRegression):
        return center
    terms = center.log_lik(bound)
    usable = np.flatnonzero(np.isfinite(terms))
    if not usable.size:
        raise InvalidInput("the reference must have records with a finite log-likelihood")
    if usable.size > _MOST_FROZEN:
        usable = np.sort(rng.choice(usable, _MOST_FROZEN, replace=False))
    return replace(center, frozen=bound.frozen(alpha, terms, usable))


def given_center(values: Mapping[str, float | Sequence[float]]) -> Center:
    """A public theta_ref of the user's, without a region."""
    try:
        parameters = {str(name): np.array(at, dtype=np.float64) for name, at in values.items()}
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(
            "center must be numbers by the names of the likelihood's parameters, such as "
            "{'beta': [0.7], 'phi': 1.2}"
        ) from None
    return Center(parameters=parameters, sd={}, region=REGION, public=True)


def _mean(values: FloatArray) -> FloatArray:
    """Over draws (S, *dims); geometric where all are above 0."""
    positive = np.all(values > 0, axis=0)
    log = np.log(np.where(positive, values, 1.0)).mean(axis=0)
    return np.asarray(np.where(positive, np.exp(log), values.mean(axis=0)))
