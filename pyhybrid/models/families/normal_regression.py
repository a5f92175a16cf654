"""Normal regression; program stan/normal_regression.stan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.transforms import TRANSFORMS
from pyhybrid.models.families.bounded import BoundedModel
from pyhybrid.models.families.coefficients import LinearModel, quadratic
from pyhybrid.models.families.regression import Offset, Parameters
from pyhybrid.models.families.transformed import TransformedModel
from pyhybrid.models.families.truncation import normal_log_mass, normal_within
from pyhybrid.models.formula.design import Design
from pyhybrid.models.grid import NormalForm

__all__ = ["NormalRegression"]

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_RIDGE = 0.1
_ROUNDS = 3  # of least squares and sigma


@dataclass(frozen=True)
class NormalRegression(LinearModel, BoundedModel, TransformedModel):
    r"""A continuous outcome, transformed, with mean :math:`o_i + x_i'\beta` and deviation sigma.

    Priors: beta ~ MVN(0, diag(s) Omega diag(s)), Omega ~ LKJ(1), s ~ half-t_3(0, 1) for each
    coefficient, or independent normals; sigma ~ half-t_3(0, 1). They are on the scale of t(y) and
    of the columns as the formula codes them: choose `unit`, and units of predictors, so that both
    are of the order of 1. Without a cap the likelihood goes to Stan as sums over the records
    (sufficient statistics): the same density at a cost that does not grow with n.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"income ~ age + education"``.

    Other parameters as in `pyhybrid.models.families.transformed.TransformedModel`, for bounds
    `pyhybrid.models.families.bounded.BoundedModel` (their program is stan/truncated_normal.stan)
    and, for the prior on beta, `pyhybrid.models.families.coefficients.LinearModel`.

    References
    ----------
    [S22] appendix B, with one component.
    """

    program_name: ClassVar[str] = "normal_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "sigma")

    def __post_init__(self) -> None:
        super().__post_init__()
        if TRANSFORMS[self.transform].positive and self.ends[1] <= 0:
            raise InvalidInput(f"upper must be above 0: found {self.ends[1]:g}")

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log of the density of t(y), shape (S, b), in nats."""
        sigma = parameters["sigma"].reshape(-1, 1)
        beta = parameters["beta"].reshape(sigma.size, -1)
        mean = offset + beta @ X.T
        f = -np.log(sigma) - _HALF_LOG_2PI - ((y - mean) / sigma) ** 2 / 2
        return np.asarray(f - normal_log_mass(mean, sigma, self.model_ends) if self.bounded else f)

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate of t(y), shape (n,)."""
        if self.draws_bounded:
            mean, sd = X @ parameters["beta"] + offset, float(parameters["sigma"])
            return normal_within(mean, sd, self.model_ends, rng)
        noise = rng.standard_normal(X.shape[0])
        return np.asarray(X @ parameters["beta"] + offset + parameters["sigma"] * noise)

    def grid_form(self, columns: tuple[str, ...]) -> NormalForm | None:
        """With an intercept alone under the published prior."""
        return NormalForm(min_sd=self.min_sd) if self.plain_intercept(columns) else None

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """Least squares, with the ridge that a standard normal prior is."""
        y = y - offset
        total = max(float(weight.sum()), 1.0)
        smallest = max(1e-6 * float(np.std(y)), 1e-150)
        sd, center = 1.0, np.zeros(X.shape[1])
        root = np.sqrt(weight)
        for _ in range(_ROUNDS):
            ridge = sd * np.sqrt(_RIDGE) * np.eye(X.shape[1])
            rows = np.vstack([root[:, None] * X, ridge])
            center = np.linalg.lstsq(rows, np.append(root * y, np.zeros(center.size)))[0]
            sd = max(_deviation(weight, y - X @ center, X, _RIDGE * sd**2, total), smallest)
        slope = weight * (y - X @ center) / sd**2
        return {
            **quadratic(X, center, slope, weight / sd**2),
            "near": center,
            "center_sigma": float(np.log(max(sd - self.min_sd, 0.1 * sd))),
            "spread_sigma": float(1 / np.sqrt(2 * weight.sum() + 2)),
        }

    def shape_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """The floor of the deviation and the ends, beside the rest."""
        data = {**data, "min_sd": float(self.min_sd)}
        if not self.bounded:
            return data
        del data["near"]
        return {**data, **self.interval()}

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """As for any transformed outcome, and within the bounds."""
        super().check_outcome(design, index)
        self.check_ends(design, index)

    @property
    def stan_program(self) -> str:
        """Without bounds the one that reads sums over the records."""
        return "truncated_normal" if self.bounded else self.program_name

    @property
    def model_ends(self) -> tuple[float, float]:
        """The ends on the transformed scale; one that t does not take is none."""
        kind, (low, high) = TRANSFORMS[self.transform], self.ends
        lowest = -math.inf if kind.positive and low <= 0 else None
        ends = kind.forward(np.array([low if lowest is None else high, high]) / self.unit)
        return float(ends[0]) if lowest is None else lowest, float(ends[1])

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        """Transformed back, on the grid within the ends."""
        return self.within_ends(super().from_support(values, decimals), decimals)


def _deviation(
    weight: FloatArray, residual: FloatArray, X: FloatArray, ridge: float, total: float
) -> float:
    """Root mean square; where columns leave less than half of the records free, as many as are.

    Of a fit that is nearly exact nothing is learned about sigma: its prior, of scale 1, then counts
    for what one free record lacks.
    """
    squares = float(weight @ residual**2)
    if total >= 2 * X.shape[1]:
        return float(np.sqrt(squares / total))
    own = np.linalg.eigvalsh((X.T * weight) @ X)
    free = total - float(np.sum(own / (own + ridge)))
    return float(np.sqrt((squares + max(1 - free, 0.0)) / max(free, 1.0)))
