"""Amounts: normal regression of a transformed outcome, and gamma regression."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_finite, check_positive
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.columns.support import LARGEST, TRANSFORMS, check_decimals
from pyhybrid.models.families.coefficients import PRIORS, LinearModel
from pyhybrid.models.families.regression import (
    Offset,
    refuse_outside,
    refuse_rows,
)
from pyhybrid.models.formula.design import Design
from pyhybrid.models.grid import GridForm, NormalForm, PoissonForm
from pyhybrid.models.initialization import mode_of
from pyhybrid.models.laws import GammaLaw, Law, NormalLaw
from pyhybrid.models.two_block import BlockModel


@dataclass(frozen=True)
class TransformedModel(BlockModel):
    """A model of t(y / unit), y continuous.

    Parameters
    ----------
    formula : str
        Wilkinson formula.
    transform : {"identity", "log", "signed_log", "asinh"}
        t, see `pyhybrid.models.columns.support`. The density, and with it the log-likelihood,
        Lipschitz bounds and epsilon, is that of t(y / unit); the Jacobian of t is left out.
    unit : float, default 1
        Above 0, in the outcome's unit; given, never read from the data.
    min_sd : float, default 0
        Lower end of the prior of the deviation sigma, on the transformed scale. Many equal outcomes
        let the likelihood of a mixture grow without end as a component narrows onto them: a floor,
        such as 0.01 for log income, keeps densities below 1 / (min_sd sqrt(2 pi)).
    decimals : int, optional
        Number of decimals of released values, 0 to 15. A strict charge needs it: if omitted it is
        read from the data, and the charge says so and is not strict.

    Notes
    -----
    Released values are transformed back and rounded to `decimals`. Values beyond 2^53 in
    size are moved to it; under ``"log"`` values that would round to 0 become the smallest positive
    one. Densities can exceed 1, so that relation "replace" costs twice as much.
    """

    _: KW_ONLY
    transform: str = "identity"
    unit: float = 1.0
    min_sd: float = 0.0
    decimals: int | None = None
    density_above_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.transform, "transform", TRANSFORMS)
        check_positive(self.unit, "unit")
        if check_finite(self.min_sd, "min_sd") < 0:
            raise InvalidInput(f"min_sd must be >= 0: found {self.min_sd:g}")
        check_decimals(self.decimals)

    def describe(self) -> dict[str, Any]:
        settings = {"transform": self.transform, "unit": self.unit, "min_sd": self.min_sd}
        scale = f"of {self.transform}(y / {self.unit:g}), Jacobian left out"
        return {**super().describe(), **settings, "decimals": self.decimals, "density": scale}

    def takes(self, y: FloatArray) -> npt.NDArray[np.bool_]:
        known = super().takes(y) & (np.abs(y) <= LARGEST)
        return known & (y > 0) if TRANSFORMS[self.transform].positive else known

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        rules = [(f"be at most {LARGEST:.0f} in size: {{}} is larger", np.abs(design.y) > LARGEST)]
        if TRANSFORMS[self.transform].positive:
            rules.append((
                f"be above 0 for transform={self.transform!r}: {{}} is not; take a model with "
                "zeros=True if it is 0, or transform signed_log or asinh",
                design.y <= 0,
            ))  # fmt: skip
        refuse_rows(design, index, rules)

    def to_support(self, y: FloatArray) -> FloatArray:
        return TRANSFORMS[self.transform].forward(y / self.unit)

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        kind = TRANSFORMS[self.transform]
        with np.errstate(over="ignore"):
            amounts = np.clip(self.unit * kind.inverse(values), -LARGEST, LARGEST)
        if np.isnan(amounts).any():
            raise SamplingError("a replicate is not a number: the posterior draw is not finite")
        rounded = amounts if decimals is None else np.round(amounts, decimals)
        if kind.positive:
            step = np.finfo(np.float64).tiny if decimals is None else 10.0**-decimals
            rounded = np.maximum(rounded, step)
        return np.asarray(rounded)


@dataclass(frozen=True)
class BoundedModel(BlockModel):
    """A model of a continuous outcome that may have a declared range.

    Parameters
    ----------
    formula : str
        Wilkinson formula.
    lower, upper : float, optional
        Smallest and largest value that the column can hold: public, given, never read from the
        data. Values outside never leave: replicates are drawn from the model given that they lie
        within, which is a function of the posterior draw and costs nothing more. The likelihood is
        not truncated. Data outside are refused.
    """

    _: KW_ONLY
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper"):
            if getattr(self, name) is not None:
                check_finite(getattr(self, name), name)
        low, high = self.ends
        if not low < high:
            raise InvalidInput(f"lower must be below upper: found {low:g} and {high:g}")

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end, infinite where there is none."""
        low = -math.inf if self.lower is None else self.lower
        return low, math.inf if self.upper is None else self.upper

    @property
    def declared_support(self) -> tuple[float, float] | None:
        return None if self.lower is None and self.upper is None else self.ends

    def describe(self) -> dict[str, Any]:
        ends = {"lower": self.lower, "upper": self.upper}
        return {**super().describe(), **{k: v for k, v in ends.items() if v is not None}}

    def support(self, dtype: Any) -> tuple[float, float]:
        low, high = super().support(dtype)
        return max(low, self.ends[0]), min(high, self.ends[1])


_FAR_FROM_PRIOR = 50


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

    Other parameters as in `pyhybrid.models.families.amounts.TransformedModel`, for a declared range
    `pyhybrid.models.families.amounts.BoundedModel` and, for the prior on beta,
    `pyhybrid.models.families.coefficients.LinearModel`.

    References
    ----------
    [S22] appendix B, with one component.
    """

    grid: ClassVar[type[PoissonForm] | None] = NormalForm
    program_name: ClassVar[str] = "normal_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "sigma")

    def __post_init__(self) -> None:
        super().__post_init__()
        if TRANSFORMS[self.transform].positive and self.ends[1] <= 0:
            raise InvalidInput(f"upper must be above 0: found {self.ends[1]:g}")

    @property
    def law(self) -> Law:
        """Public bins of the first look: equal ones within declared ends, else powers of two."""
        kind, (low, high), step = TRANSFORMS[self.transform], self.ends, 0.0
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
        known = (math.inf, math.inf) if self.transform == "identity" else NormalLaw.start_sd
        return NormalLaw(floor=self.min_sd, edges=(*edges, math.inf), step=step, start_sd=known)

    def grid_form(self, columns: tuple[str, ...]) -> GridForm | None:
        form = super().grid_form(columns)
        return replace(form, min_sd=self.min_sd) if isinstance(form, NormalForm) else form

    def start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        mode = mode_of(self.law, y, X, weight, offset)
        return {**mode.hints(self.law, X), "near": mode.beta}

    def shape_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "min_sd": float(self.min_sd)}

    def advice(self, design: Design) -> str:
        """Values far from what the priors expect are pulled towards 0, or have several modes."""
        size = float(np.median(np.abs(design.y)))
        expected = self.unit * (self.intercept_prior_sd or 1.0)
        if self.transform != "identity" or size <= _FAR_FROM_PRIOR * expected:
            return ""
        return (
            f"outcome {design.outcome!r} is about {size:.1g}, and the priors expect values of "
            f"about {self.unit:g}: give NormalRegression a public unit=, e.g. {size:.1g}"
        )

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        super().check_outcome(design, index)
        refuse_outside(design, index, self.ends)


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
    grid_priors: ClassVar[tuple[str, ...]] = PRIORS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transform != "log":
            raise InvalidInput(
                f"transform of LogNormal must be 'log': found {self.transform!r}; take "
                "NormalRegression for others"
            )


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
        Number of decimals of released values, 0 to 15. A strict charge needs it: if
        omitted it is read from the data, and the charge says so and is not strict. What would round
        to 0 becomes the smallest positive value.

    Other parameters as in `pyhybrid.models.families.amounts.BoundedModel`. Densities can exceed 1,
    so that relation "replace" costs twice as much.
    """

    _: KW_ONLY
    unit: float = 1.0
    prior: str = "normal"
    decimals: int | None = None
    program_name: ClassVar[str] = "gamma_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "shape")
    density_above_one: ClassVar[bool] = True
    law: ClassVar[Law] = GammaLaw()

    def __post_init__(self) -> None:
        check_positive(self.unit, "unit")
        check_decimals(self.decimals)
        super().__post_init__()
        if self.upper is not None and self.upper <= 0:
            raise InvalidInput(f"upper must be above 0: found {self.upper:g}")

    def describe(self) -> dict[str, Any]:
        settings = {"unit": self.unit, "decimals": self.decimals, "prior": self.prior}
        return {**super().describe(), **settings, "density": f"of y / {self.unit:g}"}

    def takes(self, y: FloatArray) -> npt.NDArray[np.bool_]:
        return super().takes(y) & (y > 0) & (y <= LARGEST)

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        rules = (
            ("be above 0: {} is not; give zeros=True if it is 0", design.y <= 0),
            (f"be at most {LARGEST:.0f} in size: {{}} is larger", design.y > LARGEST),
        )
        refuse_rows(design, index, rules)
        refuse_outside(design, index, self.ends)

    def to_support(self, y: FloatArray) -> FloatArray:
        return y / self.unit

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        amounts = np.minimum(self.unit * values, LARGEST)
        rounded = amounts if decimals is None else np.round(amounts, decimals)
        least = np.finfo(np.float64).tiny if decimals is None else 10.0**-decimals
        return np.asarray(np.maximum(rounded, least))
