"""Regression coefficients: their two priors, and where the sampler looks for them first.

Every program of a regression samples standardized coefficients z instead of beta. Given the prior's
scales D, beta = D u, and u is the affine function of z that makes z standard normal if the
log-likelihood is the quadratic function that a rough fit gives:

    u | z  =  m + C^-T z,   C C' = D I D + 1,   m = (C C')^-1 D s,

with I the curvature (information) and s the gradient at beta = 0 of that quadratic. Location, scale
and correlation of the design's columns drop out, coefficients that the data know well and those
that only the prior knows have the same scale, and no funnel between scales and coefficients is
left. The prior stays on the coefficients of the columns as they are: nothing that is read from the
data enters the posterior, whatever I and s are.

References
----------
Lewandowski, Kurowicka, Joe (2009), J. Multivariate Analysis 100:1989-2001, for the LKJ
distribution; its matrices are integrated out, see the functions block of
stan/negative_binomial.stan.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from pyhybrid.core.checks import FloatArray, check_choice, check_positive
from pyhybrid.engines.base import Draws
from pyhybrid.models.families.regression import Hints, Offset, Parameters, RegressionModel, Rng
from pyhybrid.models.formula.design import INTERCEPT, Design, Matrix, indicator_of
from pyhybrid.models.grid import Axis, ParameterGrid
from pyhybrid.models.initialization import mode_of
from pyhybrid.models.laws import Law
from pyhybrid.models.scoring import LinearScoring, Scoring

PRIORS = ("published", "normal")
"""Priors on the coefficients, see `LinearModel`."""
_MANY_COLUMNS = 25  # at 20 and 1,000 records it is still slower


@dataclass(frozen=True)
class ScaledModel(RegressionModel):
    """A regression with normal priors on the coefficients; see `LinearModel`."""

    _: KW_ONLY
    prior_scale: float = 2.5
    prior_scale_intercept: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.prior_scale, "prior_scale")
        check_positive(self.prior_scale_intercept, "prior_scale_intercept")

    def prior_scales(self, matrix: Matrix) -> FloatArray:
        """Standard deviations of the prior for the columns of a design, shape (K,)."""
        shifts = np.isin(matrix.columns, [INTERCEPT, *map(indicator_of, matrix.indicators)])
        return np.where(shifts, self.prior_scale_intercept, self.prior_scale)

    def shape_data(self, data: dict[str, Any], design: Matrix) -> dict[str, Any]:
        scales = self.prior_scales(design)
        return super().shape_data({**data, "prior_scale": scales}, design)


@dataclass(frozen=True)
class LinearModel(ScaledModel):
    """A regression through a linear predictor, whose coefficients have one of two priors.

    Parameters
    ----------
    prior : {"published", "normal"}, default "published"
        "published": the papers' prior, beta ~ MVN(0, diag(s) Omega diag(s)) with an LKJ prior of
        Omega and s ~ half-t_3(0, 1) for each coefficient. "normal": beta_j ~ N(0, prior_scale^2),
        independent, the choice that users of rstanarm and brms know; it is the faster one.
    prior_scale : float, default 2.5
        Standard deviation of each coefficient under "normal", per unit of the column as the formula
        codes it: public, never read from the data (rstanarm divides its 2.5 by the columns'
        deviations). Give predictors units in which a change by one is moderate, e.g.
        ``I((age - 50) / 10)``.
    prior_scale_intercept : float, default 10
        The same for the intercept, which is the linear predictor where all predictors are 0, and
        for what takes a predictor's part where it is missing, ``is.na(predictor)``.
    """

    _: KW_ONLY
    prior: str = "published"
    grid_axes: ClassVar[tuple[Axis, ...]] = ()
    """Of a grid that suits every data set with an intercept alone, if coarsely."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.prior, "prior", PRIORS)

    def describe(self) -> dict[str, Any]:
        settings = super().describe()
        unused = ("prior_scale", "prior_scale_intercept") if self.prior == "published" else ()
        return {name: value for name, value in settings.items() if name not in unused}

    @property
    @abstractmethod
    def law(self) -> Law:
        """Density, slopes and draws by the linear predictor."""

    @property
    def any_rank(self) -> bool:  # type: ignore[override]
        """True under the normal prior, which identifies coefficients that the data do not."""
        return self.prior == "normal"

    def grid(self, columns: tuple[str, ...]) -> ParameterGrid | None:
        if not self.grid_axes or columns != (INTERCEPT,):
            return None
        sd = self.prior_scale_intercept if self.prior == "normal" else None
        return ParameterGrid(law=self.law, axes=self.grid_axes, prior_sd=sd)

    def first_try(self, columns: tuple[str, ...]) -> Mapping[str, Any] | None:
        """Under the normal prior all is nearly standard normal; under the published one all but a
        lone intercept and its scale, and the logarithms of many columns' scales."""
        if self.prior == "normal":
            return {"adapt_delta": 0.7, "metric": "unit"}
        if columns == (INTERCEPT,):
            return None
        metric = "adapted" if len(columns) >= _MANY_COLUMNS else "unit"
        # at 0.7 it happens that scales of few records' levels mix slowly
        return {"adapt_delta": 0.8, "metric": metric}

    def shape_data(self, data: dict[str, Any], design: Matrix) -> dict[str, Any]:
        normal = int(self.prior == "normal")
        return super().shape_data({**data, "normal_prior": normal}, design)

    def log_lik(self, at: Parameters, y: FloatArray, X: FloatArray, offset: Offset) -> FloatArray:
        size = 1.0 if self.law.size is None else at[self.law.size][:, None]
        return self.law.log_density(y, at["beta"] @ X.T + offset, size)

    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        size = 1.0 if self.law.size is None else float(at[self.law.size])
        return self.law.draw(X @ at["beta"] + offset, size, rng)

    def start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset, n_levels: int = 0
    ) -> Hints:
        return mode_of(self.law, y, X, weight, offset).hints(self.law, X)

    def scoring_of_values(self, matrix: Matrix) -> Scoring:
        return LinearScoring(
            law=self.law, X=matrix.X, offset=matrix.offset, columns=matrix.columns,
            prior_sd=self.prior_scales(matrix),
        )  # fmt: skip

    def monitored(self, draws: Draws, design: Design) -> Mapping[str, FloatArray]:
        """Parameters of the likelihood, and the published prior's scales of the coefficients."""
        scales = ("sigma_beta",) if self.prior == "published" else ()
        return {name: draws.variables[name] for name in (*self.parameters, *scales)}
