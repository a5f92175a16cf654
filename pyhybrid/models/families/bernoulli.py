"""Logistic regression of an outcome with two levels; program stan/bernoulli.stan."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form, form_of_levels
from pyhybrid.models.columns.levels import (
    OutcomeLevels,
    check_levels_given,
    level_places,
    outcome_levels,
)
from pyhybrid.models.families.coefficients import LinearModel, quadratic
from pyhybrid.models.families.level_outcome import BoundLevels
from pyhybrid.models.families.regression import Offset, Parameters, Positions
from pyhybrid.models.families.softplus import softplus
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.models.grid import BernoulliForm
from pyhybrid.models.initialization.generalized_linear import LOGIT, rough_fit

__all__ = ["Bernoulli", "BoundBernoulli"]


@dataclass(frozen=True)
class Bernoulli(LinearModel):
    r"""An outcome with two levels: log odds :math:`o_i + x_i'\beta` of the second one.

    o_i is the offset. Released values have the dtype, and for categories the order, of the data.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"voted ~ age + region"``.
    levels : tuple of two, optional
        The two values that the column can hold, e.g. ``("no", "yes")``: public, given, never read
        from the data. Without it a logical column has false and true, a column of numbers 0 and 1.
        For text and categories a strict charge needs it: if omitted the levels are read, sorted or
        as the categories are, and the charge says so and is not strict.
    prior : {"normal", "published"}, default "normal"
        On the coefficients: independent normals about 0 with standard deviations `prior_scale`
        (2.5) and, for the intercept, `prior_scale_intercept` (10); see
        `pyhybrid.models.families.coefficients.LinearModel`. It keeps the posterior proper where
        predictors separate the levels.

    Notes
    -----
    rstanarm's default has 2.5 for the coefficients, too, but per standard deviation of the data's
    columns, and 2.5 for the intercept of centered ones: both are functions of the data.

    Under `pyhybrid.Censored` a small cap costs utility: once terms are clipped, the larger level
    gains from every record and the smaller one loses no more than the cap, so that released shares
    drift to the larger level: of 1000 records a share of .7 is released as 1 at a cap of .5, with a
    center or without; at a cap of 2 it stays .7 with a center, and is 1 without. Privacy is as
    stated; compare the shares before you give a release away.
    """

    _: KW_ONLY
    levels: tuple[Any, ...] | None = None
    prior: str = "normal"
    program_name: ClassVar[str] = "bernoulli"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", check_levels_given(self.levels, 2))

    def describe(self) -> dict[str, Any]:
        """Public settings: the prior, too, as its default is not that of the papers' models."""
        levels = None if self.levels is None else list(self.levels)
        return {**super().describe(), "prior": self.prior, "levels": levels}

    def bind(self, df: pd.DataFrame, at: Positions | None = None) -> BoundBernoulli:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        design = read_design(
            self.formula, df, self._places, at, any_rank=self.any_rank, groups=self.takes_groups
        )
        values = df[design.outcome] if at is None else df[design.outcome].iloc[at]
        levels = self._levels_of(values, design.outcome)
        return BoundBernoulli(model=self, table=df, design=design, at=at, levels=levels)

    def _levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        levels = outcome_levels(values, name, self.levels)
        if len(levels.values) > 2 or (len(levels.values) < 2 and not levels.read):
            raise InvalidInput(
                f"outcome {name!r} must have 2 levels for Bernoulli: found {len(levels.values)}; "
                "declare the two with levels= if it has no others, or take another model"
            )
        return levels

    def form_of(self, column: pd.Series) -> Form | None:
        """The levels given, or those of logicals, categories and 0/1 columns."""
        return form_of_levels(column, self.levels, numbers=(0, 1))

    def _places(self, values: pd.Series, name: str) -> FloatArray:
        return level_places(values, name, self._levels_of(values, name))

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Nothing beyond the levels, which are checked when the outcome is coded."""

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log Bernoulli(y | expit(eta)), shape (S, b), in nats."""
        return -softplus((1 - 2 * y) * (parameters["beta"] @ X.T + offset))[0]

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate, shape (n,): 1 for the second level."""
        probability = expit(X @ parameters["beta"] + offset)
        return np.asarray(rng.random(X.shape[0]) < probability, dtype=np.float64)

    def grid_form(self, columns: tuple[str, ...]) -> BernoulliForm | None:
        """With an intercept alone, under either prior."""
        alone = columns == ("Intercept",)
        return BernoulliForm(prior_sd=self.intercept_prior_sd) if alone else None

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode of beta, roughly; finite where predictors separate the levels."""
        fit = rough_fit(y, X, weight, LOGIT, offset)
        return quadratic(X, fit.center, weight * (y - fit.fitted), weight * fit.variance)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundBernoulli(BoundLevels):
    """A Bernoulli model joined to a table: the second level is 1. Confidential."""

    model: Bernoulli
