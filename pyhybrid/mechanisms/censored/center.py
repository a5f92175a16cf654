r"""The frozen center of a censored mechanism: theta_ref, its region, and what clipping takes away.

A record's term is clipped less its value at theta_ref, c_i = log p(x_i | theta_ref): clipping then
starts where a term has moved by M, and not where it has the size M. theta_ref is public, or comes
from a reference whose own records no charge of the new release covers.

**The excess.** Clipping takes away what long tails say: a posterior of clipped terms leans towards
a likelihood with shorter ones, and under a small cap it ends in another mode. What is taken away on
average is a function of theta that the reference knows:

.. math:: e(\theta) = \frac{1}{n_0} \sum_{j \in reference} g_j(\theta) - clip(g_j(\theta)),
   \quad g_j = \alpha_j (f_j(\theta) - f_j(\theta_{ref}))

It is frozen, and moves the center of every new term: :math:`h_i = clip(g_i + e)`. Where the new
records are like those of the reference, their sum has nearly the expectation of the sum without
clipping. What is subtracted from f_i is still a function of the own record and of frozen
quantities, so that h_i ranges over 2 M whatever e is: leaving a record out costs 2 M and replacing
it 4 M, as without the excess. (Added after clipping, it would move with the number of records.)

**The region.** Far away, where nearly every term is clipped, the records say nothing and a mode may
be anything. Chains stay where the log-likelihood of the reference falls by at most half the square
of `region`, the ellipsoid of so many posterior standard deviations about theta_ref: beyond, the
log density falls by ten nats for each that the reference's own falls, a frozen prior that costs
nothing. A grid ends there. A truth outside costs accuracy, not privacy, and `Calibration.drift`
says how far it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_flag, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws
from pyhybrid.mechanisms.censored.calibration_files import frozen_draws
from pyhybrid.models.base import BoundModel
from pyhybrid.models.composite.steps import BoundParts
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.grid import Axis, GridForm, ParameterGrid
from pyhybrid.privacy.cap import Cap
from pyhybrid.privacy.frozen_rows import FrozenTerms

__all__ = ["REGION", "Center", "center_of_draws", "given_center", "log_lik_at", "with_frozen_rows"]

REGION = 10.0
"""Half width of the default region, in posterior standard deviations of the reference."""
_SIZES = {1: 20_000, 2: 500}  # points of an axis, by the number of axes
_NODES = {1: 401, 2: 81}  # of the excess, which is smooth
_MOST_FROZEN = 10_000  # records


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
    frozen : FrozenTerms or None
        The reference's rows, of which the excess and the region of chains are made.
    """

    parameters: Mapping[str, FloatArray]
    sd: Mapping[str, float]
    region: float
    public: bool
    frozen: FrozenTerms | None = field(default=None, repr=False)

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

    def excess_on(
        self, bound: BoundModel, form: GridForm, grid: ParameterGrid, cap: Cap
    ) -> FloatArray | None:
        """e at the candidates of a grid, shape (C,), nats, from nodes; None without frozen rows."""
        if self.frozen is None:
            return None
        from scipy.interpolate import CubicSpline, RectBivariateSpline  # slow to import

        assert isinstance(bound, BoundRegression)
        k = _NODES[len(grid.axes)]
        nodes = [np.linspace(axis.lower, axis.upper, k) for axis in grid.axes]
        mesh = np.meshgrid(*nodes, indexing="ij")
        at = {axis.name: own.ravel() for axis, own in zip(form.axes, mesh, strict=True)}
        provenance: Any = None  # points, which no engine made
        draws = frozen_draws(form.parameters(at), provenance)
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

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, without the frozen rows."""
        return {
            "parameters": {name: np.asarray(v).tolist() for name, v in self.parameters.items()},
            "sd": dict(self.sd),
            "region": self.region,
            "public": self.public,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], frozen: FrozenTerms | None = None) -> Center:
        """Inverse of `as_dict`, with the frozen rows."""
        return cls(
            parameters={name: np.array(own, dtype=np.float64)
                        for name, own in fields["parameters"].items()},
            sd={str(name): float(sd) for name, sd in fields["sd"].items()},
            region=fields["region"],
            public=fields["public"],
            frozen=frozen,
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


def with_frozen_rows(
    center: Center, bound: BoundModel, alpha: FloatArray, rng: np.random.Generator
) -> Center:
    """The center with the records of `bound`, under weights `alpha` (n,), as its frozen rows.

    Of more than 10,000 records a random part. A program of the user's own takes none of
    them.
    """
    if not isinstance(bound, BoundRegression | BoundParts):
        return center
    own = center.log_lik(bound)
    usable = np.flatnonzero(np.isfinite(own))
    if not usable.size:
        raise InvalidInput("the reference must have records with a finite log-likelihood")
    if usable.size > _MOST_FROZEN:
        usable = np.sort(rng.choice(usable, _MOST_FROZEN, replace=False))
    return replace(center, frozen=bound.frozen(alpha, own, usable))


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
