r"""The frozen center of a censored mechanism: theta_ref, and the region of its grid.

A record's term is clipped less its value at theta_ref, c_i = log p(x_i | theta_ref): clipping then
starts where a term has moved by M, and not where it has the size M. theta_ref is public, or comes
from a reference whose own records no charge of the new release covers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.checks import FloatArray, check_flag, check_positive
from pyhybrid.engines import Draws
from pyhybrid.errors import InvalidInput
from pyhybrid.mechanisms.calibration_files import frozen_draws
from pyhybrid.models.base import BoundModel
from pyhybrid.models.grid import Axis, GridForm, ParameterGrid

__all__ = ["REGION", "Center", "center_of_draws", "given_center"]

REGION = 10.0
"""Half width of the default region, in posterior standard deviations of the reference."""
_SIZES = {1: 20_000, 2: 500}  # points of an axis, by the number of axes


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
    """

    parameters: Mapping[str, FloatArray]
    sd: Mapping[str, float]
    region: float
    public: bool

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
        at = form.coordinates({name: values[None] for name, values in self.parameters.items()})
        size = _SIZES[len(form.axes)]
        sizes = ParameterGrid(
            axes=tuple(Axis(name=a.name, lower=a.lower, upper=a.upper, size=size)
                       for a in form.axes)
        )  # fmt: skip
        return ParameterGrid.around(
            {name: float(own[0]) for name, own in at.items()},
            {name: self.region * sd for name, sd in self.sd.items()},
            sizes,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "parameters": {name: np.asarray(v).tolist() for name, v in self.parameters.items()},
            "sd": dict(self.sd),
            "region": self.region,
            "public": self.public,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Center:
        """Inverse of `as_dict`."""
        return cls(
            parameters={name: np.array(own, dtype=np.float64)
                        for name, own in fields["parameters"].items()},
            sd={str(name): float(sd) for name, sd in fields["sd"].items()},
            region=fields["region"],
            public=fields["public"],
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
