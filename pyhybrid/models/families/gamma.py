"""Gamma regression of positive amounts; program stan/gamma_regression.stan."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import gammaln

from pyhybrid.core.checks import FloatArray, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.decimals import check_decimals
from pyhybrid.models.columns.transforms import LARGEST
from pyhybrid.models.families.bounded import BoundedModel
from pyhybrid.models.families.coefficients import LinearModel, quadratic
from pyhybrid.models.families.regression import Offset, Parameters
from pyhybrid.models.families.truncation import gamma_log_mass, gamma_within
from pyhybrid.models.formula.design import Design, row_label
from pyhybrid.models.initialization.generalized_linear import (
    LOG_LINEAR,
    SizedLikelihood,
    rough_fit,
    scored_fit,
)

__all__ = ["Gamma"]


@dataclass(frozen=True)
class Gamma(LinearModel, BoundedModel):
    r"""A positive amount with log link: mean :math:`\mu_i = \exp(o_i + x_i'\beta)`.

    Its variance is mu^2 / shape. Priors: shape ~ exponential(1), rstanarm's for a Gamma family; on
    beta independent normals, as `pyhybrid.Bernoulli` has. Log densities are those of y / unit.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"income ~ age + education"``.
    unit : float, default 1
        Above 0, in the outcome's unit; given, never read from the data. The intercept is about the
        log of the mean of y / unit.
    prior : {"normal", "published"}, default "normal"
        On the coefficients; see `pyhybrid.models.families.coefficients.LinearModel`.
    decimals : int, optional
        Number of decimals of released values, 0 to 15. A strict charge needs it, or a `step`: if
        omitted it is read from the data, and the charge says so and is not strict. What would round
        to 0 becomes the smallest positive value.

    Other parameters as in `pyhybrid.models.families.bounded.BoundedModel`. Densities can exceed 1,
    so that relation "replace" costs twice as much.
    """

    _: KW_ONLY
    unit: float = 1.0
    prior: str = "normal"
    decimals: int | None = None
    program_name: ClassVar[str] = "gamma_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "shape")
    density_above_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive(self.unit, "unit")
        check_decimals(self.decimals)
        super().__post_init__()
        if self.upper is not None and self.upper <= 0:
            raise InvalidInput(f"upper must be above 0: found {self.upper:g}")

    def describe(self) -> dict[str, Any]:
        """Public settings, with the scale that densities belong to."""
        own = {"unit": self.unit, "decimals": self.decimals, "prior": self.prior}
        return {**super().describe(), **own, "density": f"of y / {self.unit:g}"}

    @property
    def given_decimals(self) -> int | None:
        """Number of decimals of released values, if the user gave it or a step."""
        return self.decimals if self.step is None else super().given_decimals

    @property
    def model_ends(self) -> tuple[float, float]:
        """The ends over the unit; a lower one at or below 0 is none."""
        low, high = self.ends
        return (low / self.unit if low > 0 else -math.inf), high / self.unit

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, for outcomes that are not above 0."""
        rules = (
            ("above 0: {} is not; see TwoPart for zeros", design.y <= 0),
            (f"at most {LARGEST:.0f} in size: {{}} is larger", design.y > LARGEST),
        )
        for rule, broken in rules:
            if broken.any():
                label = row_label(index, int(np.flatnonzero(broken)[0]))
                raise InvalidInput(f"outcome {design.outcome!r} must be {rule.format(label)}")
        self.check_ends(design, index)

    def to_support(self, y: FloatArray) -> FloatArray:
        """y / unit."""
        return y / self.unit

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        """Times the unit, on the grid, above 0."""
        own = self.within_ends(np.minimum(self.unit * values, LARGEST), decimals)
        rounded = own if decimals is None else np.round(own, decimals)
        least = self.step or (np.finfo(np.float64).tiny if decimals is None else 10.0**-decimals)
        return np.asarray(np.maximum(rounded, least))

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log of the density of y / unit, shape (S, b), in nats."""
        shape = parameters["shape"].reshape(-1, 1)
        eta = parameters["beta"].reshape(shape.size, -1) @ X.T + offset
        f = _log_density(y, eta, shape)
        return (
            f - gamma_log_mass(shape, shape * np.exp(-eta), self.model_ends) if self.bounded else f
        )

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate of y / unit, shape (n,)."""
        shape = float(parameters["shape"])
        scale = np.exp(X @ parameters["beta"] + offset) / shape
        if self.draws_bounded:
            return gamma_within(shape, 1 / scale, self.model_ends, rng)
        return np.asarray(rng.gamma(shape, scale))

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode of beta and shape, roughly and as if without bounds."""
        likelihood = SizedLikelihood(
            log_lik=lambda eta, t: _log_density(y, _clipped(eta), np.exp(t)),
            slope=lambda eta, t: np.exp(t) * (y * np.exp(-_clipped(eta)) - 1),
            curvature=lambda eta, t: np.full(eta.shape, np.exp(t)),
            bounds=(-5.0, 12.0),  # of t = log(shape)
        )
        start = rough_fit(y, X, weight, LOG_LINEAR, offset).center
        fit = scored_fit(likelihood, X, weight, start, offset)
        return {
            **quadratic(X, fit.center, fit.slope, fit.curvature),
            "center_shape": fit.log_size,
            "spread_shape": fit.spread,
        }

    def shape_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """The ends, beside the rest."""
        return {**data, **self.interval()}


def _log_density(y: FloatArray, eta: FloatArray, shape: FloatArray | float) -> FloatArray:
    """log Gamma(y | shape, rate shape exp(-eta)), nats."""
    constant = shape * np.log(shape) - gammaln(shape)
    return np.asarray(constant + (shape - 1) * np.log(y) - shape * (eta + y * np.exp(-eta)))


def _clipped(eta: FloatArray) -> FloatArray:
    return np.clip(eta, -50, 50)
