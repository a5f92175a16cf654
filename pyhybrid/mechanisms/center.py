r"""The frozen center of a censored mechanism: theta_ref, and the region of its grid.

A record's term is clipped less its value at theta_ref, c_i = log p(x_i | theta_ref): clipping then
starts where a term has moved by M, and not where it has the size M. theta_ref is public, or comes
from a reference whose own records no charge of the new release covers.

**The excess.** Clipping takes away what long tails say, and a posterior of clipped terms leans
towards a likelihood with shorter ones. What is taken away on average is a function of theta that
the reference knows:

.. math:: e(\theta) = \frac{1}{n_0} \sum_{j \in reference} g_j(\theta) - clip(g_j(\theta)),
   \quad g_j = \alpha_j (f_j(\theta) - f_j(\theta_{ref}))

It is frozen, and added once for each new record. Where the new records are like those of the
reference, the clipped sum and n times the excess have the expectation of the sum without clipping;
under a cap near 0 they say what the reference says. A record then adds clip(g_i) + e, which moves
by at most 2 M and the range of e over the region: both are charged when a record is left out.
Replacing one changes no n, and costs 4 M.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline, RectBivariateSpline

from pyhybrid.checks import FloatArray, check_flag, check_positive
from pyhybrid.engines import Draws
from pyhybrid.errors import InvalidInput
from pyhybrid.mechanisms.calibration_files import frozen_draws
from pyhybrid.models.base import BoundModel
from pyhybrid.models.grid import Axis, GridForm, ParameterGrid

__all__ = ["REGION", "Center", "center_of_draws", "given_center", "log_lik_at", "with_excess"]

REGION = 10.0
"""Half width of the default region, in posterior standard deviations of the reference."""
_SIZES = {1: 20_000, 2: 500}  # points of an axis, by the number of axes
_NODES = {1: 401, 2: 81}  # of the excess, which is smooth
_LARGEST_SHARE, _NARROWER = 0.25, 0.8  # of epsilon for the excess; region of the next try


@dataclass(frozen=True, kw_only=True, eq=False)
class Center:
    """theta_ref, and where the grid around it ends.

    Attributes
    ----------
    parameters : mapping of str to ndarray, shape (*dims)
        Of the likelihood.
    sd : mapping of str to float
        Posterior standard deviation of each coordinate of the grid under the reference; empty for
        a model whose parameters do not lie on one.
    region : float
        The grid reaches so many of them to either side of theta_ref.
    public : bool
        True if the reference is public.
    excess : ndarray, shape (k,) or (k, k), or None
        e at evenly spaced nodes of the region, nats; None without a grid.
    """

    parameters: Mapping[str, FloatArray]
    sd: Mapping[str, float]
    region: float
    public: bool
    excess: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_positive(self.region, "region")
        check_flag(self.public, "public")
        for name, values in self.parameters.items():
            if not np.isfinite(values).all():
                raise InvalidInput(f"center must be finite: {name!r} is not")
        for name, sd in self.sd.items():
            check_positive(sd, f"standard deviation of {name!r}")
        if self.excess is not None:
            shape = (_NODES.get(len(self.sd), 0),) * len(self.sd)
            if self.excess.shape != shape or not np.isfinite(self.excess).all():
                raise InvalidInput(f"excess must be finite, of shape {shape}")

    def __repr__(self) -> str:
        return f"<Center of {', '.join(self.parameters)}, region {self.region:g}>"

    def log_lik(self, bound: BoundModel) -> FloatArray:
        """c_i of the records of `bound`, each a function of its own record, shape (n,), nats."""
        return log_lik_at(bound, self.parameters)

    def grid(self, form: GridForm) -> ParameterGrid | None:
        """The grid within the region; None if the reference's spread is not known."""
        if set(self.sd) != {axis.name for axis in form.axes}:
            return None
        size = _SIZES[len(form.axes)]
        return ParameterGrid(
            axes=tuple(
                Axis(name=name, lower=lower, upper=upper, size=size)
                for name, (lower, upper) in self._ends(form).items()
            )
        )

    def excess_on(self, form: GridForm, grid: ParameterGrid) -> FloatArray:
        """e at the candidates of a grid within the region, shape (C,), nats."""
        assert self.excess is not None
        nodes = self._nodes(form)
        points = [axis.points for axis in grid.axes]
        if len(nodes) == 1:
            return np.asarray(CubicSpline(nodes[0], self.excess)(points[0]))
        return np.asarray(RectBivariateSpline(*nodes, self.excess)(*points).ravel())

    def _ends(self, form: GridForm) -> dict[str, tuple[float, float]]:
        at = form.coordinates({name: own[None] for name, own in self.parameters.items()})
        half = {name: self.region * sd for name, sd in self.sd.items()}
        return {
            axis.name: (
                float(at[axis.name][0]) - half[axis.name],
                float(at[axis.name][0]) + half[axis.name],
            )
            for axis in form.axes
        }

    def _nodes(self, form: GridForm) -> list[FloatArray]:
        k = _NODES[len(form.axes)]
        return [np.linspace(*ends, k) for ends in self._ends(form).values()]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, without the excess."""
        return {
            "parameters": {name: np.asarray(v).tolist() for name, v in self.parameters.items()},
            "sd": dict(self.sd),
            "region": self.region,
            "public": self.public,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], excess: Any = None) -> Center:
        """Inverse of `as_dict`, with the values (k^d,) of the excess."""
        shape = (_NODES.get(len(fields["sd"]), 0),) * len(fields["sd"])
        return cls(
            parameters={name: np.array(own, dtype=np.float64)
                        for name, own in fields["parameters"].items()},
            sd={str(name): float(sd) for name, sd in fields["sd"].items()},
            region=fields["region"],
            public=fields["public"],
            excess=None if excess is None else np.asarray(excess, dtype=np.float64).reshape(shape),
        )  # fmt: skip


def log_lik_at(bound: BoundModel, parameters: Mapping[str, FloatArray]) -> FloatArray:
    """Log-likelihood of the records at one point, shape (n,).

    Raises
    ------
    InvalidInput
        If `parameters` are not those of the likelihood, in its shapes.
    """
    names = bound.likelihood_parameters
    if set(parameters) != set(names):
        raise InvalidInput(
            f"center must have the parameters of the likelihood, {', '.join(names)}: found "
            f"{', '.join(sorted(parameters)) or 'none'}"
        )
    provenance: Any = None  # a point, which no engine made
    try:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            draws = frozen_draws({name: parameters[name][None] for name in names}, provenance)
            return bound.log_lik(draws).highest
    except InvalidInput:
        raise
    except (ValueError, IndexError):
        raise InvalidInput(
            "center must have the shapes of the model's parameters, such as one number in a list "
            "for each column of the design: it has others"
        ) from None


def center_of_draws(bound: BoundModel, draws: Draws, *, region: float, public: bool) -> Center:
    """The posterior mean of `draws`, on the coordinates of the grid where there is one.

    Else the mean of each parameter (of its logarithm if all draws are above 0). Where that fits
    the reference worse than most draws do, as where components change labels, the draw that fits
    best is taken.
    """
    form, values = bound.grid_form, {n: draws.flat(n) for n in bound.likelihood_parameters}
    if form is not None:
        at = form.coordinates(values)
        mean = form.parameters({name: own.mean(keepdims=True) for name, own in at.items()})
        return Center(
            parameters={name: own[0] for name, own in mean.items()},
            sd={name: float(own.std(ddof=1)) for name, own in at.items()},
            region=region,
            public=public,
        )
    middle = {name: _mean(own) for name, own in values.items()}
    total = bound.log_lik(draws).total(np.ones(bound.n))
    if not log_lik_at(bound, middle).sum() >= np.median(total):
        best = int(np.argmax(np.where(np.isnan(total), -np.inf, total)))
        middle = {name: np.asarray(own[best]) for name, own in values.items()}
    return Center(parameters=middle, sd={}, region=region, public=public)


def with_excess(
    center: Center, bound: BoundModel, alpha: FloatArray, *, cap: float, epsilon: float | None
) -> tuple[Center, float]:
    """The center with the excess of the reference `bound` under weights `alpha` (n,), and the cap.

    With an `epsilon`, a cap at which 2 M and the range of the excess are at most that, and the
    largest region, up to the center's, in which the excess takes no more than a quarter.
    """
    form = bound.grid_form
    if form is None or center.grid(form) is None:
        return center, cap
    if epsilon is None:
        return _excess_at(center, bound, form, alpha, cap)[0], cap
    least = (1 - _LARGEST_SHARE) * epsilon / 2
    while True:
        made, moves = _excess_at(center, bound, form, alpha, least)
        if moves <= _LARGEST_SHARE * epsilon:
            break
        center = replace(center, region=_NARROWER * center.region)
    # The excess falls as the cap grows. Rounded down, as the cap is published and the reference is
    # not: 200 steps up to epsilon.
    more = math.floor(100 * (epsilon - moves) / epsilon) * epsilon / 200
    better, moves = _excess_at(center, bound, form, alpha, more)
    return (better, more) if 2 * more + moves <= epsilon else (made, least)


def _excess_at(
    center: Center, bound: BoundModel, form: GridForm, alpha: FloatArray, cap: float
) -> tuple[Center, float]:
    """The center with its excess at a cap, and the range of that over the candidates."""
    nodes, grid = center._nodes(form), center.grid(form)
    assert grid is not None
    mesh = np.meshgrid(*nodes, indexing="ij")
    at = {axis.name: own.ravel() for axis, own in zip(form.axes, mesh, strict=True)}
    provenance: Any = None  # points, which no engine made
    terms = bound.log_lik(frozen_draws(form.parameters(at), provenance))
    reference = center.log_lik(bound)
    whole = terms.clipped_total(alpha, np.inf, np.inf, reference)
    lost = (whole - terms.clipped_total(alpha, cap, cap, reference)) / bound.n
    made = replace(center, excess=lost.reshape([own.size for own in nodes]))
    return made, float(np.ptp(made.excess_on(form, grid)))


def given_center(values: Mapping[str, float | Sequence[float]]) -> Center:
    """A public theta_ref of the user's, without a region."""
    try:
        parameters = {str(name): np.array(own, dtype=np.float64) for name, own in values.items()}
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
