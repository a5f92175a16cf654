"""Amounts over a unit: normal regression of a transformed amount or its logarithm, and gamma."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from pyhybrid.core.checks import BoolArray, FloatArray, check_choice, check_finite, check_positive
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.columns.support import LARGEST, TRANSFORMS, Transform, check_decimals
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.families.regression import Rules
from pyhybrid.models.families.two_block import BlockModel
from pyhybrid.models.formula.design import Matrix
from pyhybrid.models.grid import Axis
from pyhybrid.models.laws import GAMMA, Law, normal_law


def within(y: FloatArray, low: float, high: float) -> tuple[str, BoolArray]:
    """The rule that outcomes lie between inclusive ends."""
    rule = f"lie in [{low:g}, {high:g}]: {{}} does not; give lower and upper"
    return rule, np.asarray((y < low) | (y > high))


@dataclass(frozen=True)
class AmountModel(BlockModel):
    """A model of t(y / unit), y continuous.

    Parameters
    ----------
    unit : float, default 1
        Above 0, in the outcome's unit; given, never read from the data.
    decimals : int, optional
        Number of decimals of released values, 0 to 15. A strict charge needs it: if omitted it is
        read from the data, and the charge says so and is not strict.
    lower, upper : float, optional
        Ends of what the column can hold, as in `pyhybrid.models.families.counts.CountModel`.

    Notes
    -----
    Released values are transformed back and rounded to `decimals`. Values beyond 2^53 in size are
    moved to it; of a positive amount, those that would round to 0 become the smallest positive one.
    Densities can exceed 1, so that relation "replace" costs twice as much.
    """

    _: KW_ONLY
    unit: float = 1.0
    decimals: int | None = None
    lower: float | None = None
    upper: float | None = None
    density_above_one: ClassVar[bool] = True
    above_zero: ClassVar[str] = "be above 0: {} is not; give zeros=True if it is 0"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.unit, "unit")
        check_decimals(self.decimals)
        for name in ("lower", "upper"):
            if getattr(self, name) is not None:
                check_finite(getattr(self, name), name)
        low, high = self.ends
        if not low < high:
            raise InvalidInput(f"lower must be below upper: found {low:g} and {high:g}")
        if self.scale.positive and high <= 0:
            raise InvalidInput(f"upper must be above 0: found {high:g}")

    @property
    @abstractmethod
    def scale(self) -> Transform:
        """t, see `pyhybrid.models.columns.support`."""

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        low = -math.inf if self.lower is None else self.lower
        return low, math.inf if self.upper is None else self.upper

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "density": f"of y / {self.unit:g}"}

    def rules(self, y: FloatArray) -> Rules:
        positive = [(self.above_zero, y <= 0)] if self.scale.positive else []
        return (
            (f"be at most {LARGEST:.0f} in size: {{}} is larger", np.abs(y) > LARGEST),
            *positive,
            within(y, *self.ends),
        )

    def to_support(self, y: FloatArray) -> FloatArray:
        return self.scale.forward(y / self.unit)

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        with np.errstate(over="ignore"):
            amounts = np.clip(self.unit * self.scale.inverse(values), -LARGEST, LARGEST)
        if np.isnan(amounts).any():
            raise SamplingError("a replicate is not a number: the posterior draw is not finite")
        rounded = amounts if decimals is None else np.round(amounts, decimals)
        if self.scale.positive:
            least = np.finfo(np.float64).tiny if decimals is None else 10.0**-decimals
            rounded = np.maximum(rounded, least)
        return np.asarray(rounded)


@dataclass(frozen=True)
class TransformedModel(AmountModel):
    """A normal model, or a mixture of them, of t(y / unit).

    Parameters
    ----------
    transform : {"identity", "log", "asinh"}
        t, see `pyhybrid.models.columns.support`. The density, and with it the log-likelihood,
        Lipschitz bounds and epsilon, is that of t(y / unit); the Jacobian of t is left out.
    min_sd : float, default 0
        Lower end of the prior of the deviation sigma, on the transformed scale. Many equal outcomes
        let the likelihood of a mixture grow without end as a component narrows onto them: a floor,
        such as 0.01 for log income, keeps densities below 1 / (min_sd sqrt(2 pi)).

    Other parameters as in `pyhybrid.models.families.amounts.AmountModel`.
    """

    _: KW_ONLY
    transform: str = "identity"
    min_sd: float = 0.0
    above_zero: ClassVar[str] = (
        "be above 0 for transform='log': {} is not; give zeros=True if it is 0, or take asinh"
    )

    def __post_init__(self) -> None:
        check_choice(self.transform, "transform", TRANSFORMS)
        if check_finite(self.min_sd, "min_sd") < 0:
            raise InvalidInput(f"min_sd must be >= 0: found {self.min_sd:g}")
        super().__post_init__()

    @property
    def scale(self) -> Transform:
        return TRANSFORMS[self.transform]

    def describe(self) -> dict[str, Any]:
        density = f"of {self.transform}(y / {self.unit:g}), Jacobian left out"
        return {**super().describe(), "density": density}

    def shape_data(self, data: dict[str, Any], design: Matrix) -> dict[str, Any]:
        return super().shape_data({**data, "min_sd": float(self.min_sd)}, design)


@dataclass(frozen=True)
class Gamma(LinearModel, AmountModel):
    r"""A positive amount with log link: mean :math:`\mu_i = \exp(o_i + x_i'\beta)`.

    Its variance is mu^2 / shape. Priors: shape ~ exponential(1), rstanarm's for a Gamma family; on
    beta independent normals, as `pyhybrid.Bernoulli` has. Log densities are those of y / unit.
    Parameters as in `pyhybrid.models.families.amounts.AmountModel` and, for the prior on beta,
    `pyhybrid.models.families.coefficients.LinearModel`.
    """

    _: KW_ONLY
    prior: str = "normal"
    program_name: ClassVar[str] = "gamma_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "shape")
    law: ClassVar[Law] = GAMMA
    scale: ClassVar[Transform] = Transform(forward=np.positive, inverse=np.positive, positive=True)


@dataclass(frozen=True)
class NormalRegression(LinearModel, TransformedModel):
    r"""A continuous outcome, transformed, with mean :math:`o_i + x_i'\beta` and deviation sigma.

    Priors: beta ~ MVN(0, diag(s) Omega diag(s)), Omega ~ LKJ(1), s ~ half-t_3(0, 1) for each
    coefficient, or independent normals; sigma ~ half-t_3(0, 1). They are on the scale of t(y) and
    of the columns as the formula codes them: choose `unit`, and units of predictors, so that both
    are of the order of 1. Without a cap the likelihood goes to Stan as sums over the records
    (sufficient statistics): the same density at a cost that does not grow with n. Parameters as in
    `pyhybrid.models.families.amounts.TransformedModel` and, for the prior on beta,
    `pyhybrid.models.families.coefficients.LinearModel`.

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


@dataclass(frozen=True)
class LogNormal(NormalRegression):
    r"""A positive amount: log(y / unit) is normal, with mean :math:`o_i + x_i'\beta`.

    Its deviation is sigma. The family that brms calls ``lognormal``. Priors: independent normals on
    beta, as `pyhybrid.Bernoulli` has; sigma ~ half-t_3(0, 1). Give a `unit` that is the size of a
    usual amount: the intercept is about the mean of log(y / unit). Parameters as in
    `pyhybrid.NormalRegression`.
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
