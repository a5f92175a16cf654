"""Normal regression of a transformed amount, and of its logarithm."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.families.amounts import TransformedModel
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.families.regression import Hints, Offset
from pyhybrid.models.formula.design import Design
from pyhybrid.models.grid import Axis
from pyhybrid.models.initialization import mode_of
from pyhybrid.models.laws import Law, normal_law

_FAR_FROM_PRIOR = 50


@dataclass(frozen=True)
class NormalRegression(LinearModel, TransformedModel):
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

    Other parameters as in `pyhybrid.models.families.amounts.TransformedModel` and, for the prior on
    beta, `pyhybrid.models.families.coefficients.LinearModel`.

    References
    ----------
    [S22] appendix B, with one component.
    """

    grid_axes: ClassVar[tuple[Axis, ...]] = (
        Axis(name="mean", lower=-25, upper=25, size=1250),
        Axis(name="log_sd", lower=-8, upper=5, size=800),
    )
    program_name: ClassVar[str] = "normal_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "sigma")

    @property
    def law(self) -> Law:
        """Public bins of the first look: equal ones within declared ends, else powers of two."""
        kind, (low, high), step = self.scale, self.ends, 0.0
        if math.isfinite(high - low) and (low > 0 or not kind.positive):
            low, high = kind.forward(np.array([low, high]) / self.unit)
            edges = np.linspace(low, high, 65)
        else:
            sizes = 2.0 ** np.arange(-20, 41)
            values = sizes if kind.positive else np.concatenate([-sizes[::-1], [0.0], sizes])
            edges = np.unique(kind.forward(np.asarray(values, dtype=np.float64)))
        if self.transform == "identity" and self.given_decimals is not None:
            step = 10.0**-self.given_decimals / self.unit
        # Of values as they are neither size nor spread is known beforehand.
        known = (math.inf, math.inf) if self.transform == "identity" else (10.0, 3.0)
        return normal_law(self.min_sd, (*edges, math.inf), step, known)

    def start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset, n_levels: int = 0
    ) -> Hints:
        mode = mode_of(self.law, y, X, weight, offset)
        return {**mode.hints(self.law, X), "near": mode.beta}

    def advice(self, design: Design) -> str:
        """Values far from what the priors expect are pulled towards 0, or have several modes."""
        size = float(np.median(np.abs(design.y))) if design.y.size else 0.0
        expected = self.unit * (1.0 if self.prior == "published" else self.prior_scale_intercept)
        if self.transform != "identity" or size <= _FAR_FROM_PRIOR * expected:
            return ""
        return (
            f"outcome {design.outcome!r} is about {size:.1g}, and the priors expect values of "
            f"about {self.unit:g}: give NormalRegression a public unit=, e.g. {size:.1g}"
        )


@dataclass(frozen=True)
class LogNormal(NormalRegression):
    r"""A positive amount: log(y / unit) is normal, with mean :math:`o_i + x_i'\beta`.

    Its deviation is sigma. The family that brms calls ``lognormal``. Priors: independent normals on
    beta, as `pyhybrid.Bernoulli` has; sigma ~ half-t_3(0, 1).

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"income ~ age + education"``.
    prior : {"normal", "published"}, default "normal"
        On the coefficients, of which the intercept is about the mean of log(y / unit): give a
        `unit` that is the size of a usual amount. See
        `pyhybrid.models.families.coefficients.LinearModel`.

    Other parameters as in `pyhybrid.models.families.amounts.TransformedModel`, whose
    `transform` is "log" here.
    """

    _: KW_ONLY
    transform: str = "log"
    prior: str = "normal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transform != "log":
            raise InvalidInput(
                f"transform of LogNormal must be 'log': found {self.transform!r}; take "
                "NormalRegression for others"
            )
