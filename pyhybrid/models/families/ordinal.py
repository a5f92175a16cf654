"""Cumulative logistic regression of an outcome with ordered levels; program stan/ordinal.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.levels import OutcomeLevels
from pyhybrid.models.families.level_outcome import BoundManyLevels, LevelModel
from pyhybrid.models.families.regression import Offset, Parameters, Positions
from pyhybrid.models.initialization.thresholds import log_of_levels, rough_ordinal

__all__ = ["BoundOrdinal", "Ordinal"]


@dataclass(frozen=True)
class Ordinal(LevelModel):
    r"""An outcome with ordered levels, up to 1000: proportional odds.

    :math:`P(y_i > k) = 1 / (1 + \exp(\tau_k - x_i'\beta))` with increasing thresholds tau. Released
    values have the dtype of the data.

    Parameters
    ----------
    formula : str
        Wilkinson formula with an intercept, whose place the thresholds take, e.g.
        ``"satisfaction ~ age"``; it takes no ``offset()``.
    levels : tuple, optional
        All values that the column can hold, from the lowest, e.g. ``("low", "middle", "high")``:
        public, given, never read from the data. A logical column has false and true. Of text they
        must be given; of numbers and ordered categories a strict charge needs them: if omitted they
        are read, sorted, or in the order of the categories, and the charge says so and is not
        strict.
    prior_scale : float, default 2.5
        The coefficients are independent N(0, prior_scale^2), on the scale of the columns as the
        formula codes them.
    prior_scale_intercept : float, default 10
        The thresholds are independent N(0, prior_scale_intercept^2), given that they increase.

    Notes
    -----
    brms's ``cumulative()`` with ``normal(0, 2.5)`` for the coefficients has the same prior for
    them; its thresholds have student_t(3, 0, 2.5) priors, given that they increase, in a model with
    centered predictors, which is a function of the data. rstanarm's ``stan_polr`` has a
    Dirichlet prior on the probabilities at the predictors' means. With two levels this is
    `pyhybrid.Bernoulli` under its normal prior. On a small cap under `pyhybrid.Censored` see there.
    """

    program_name: ClassVar[str] = "ordinal"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "threshold")
    ordered: ClassVar[bool] = True

    def bind(self, df: pd.DataFrame, at: Positions | None = None) -> BoundOrdinal:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        design, levels = self.coded(df, at)
        if design.columns[0] != "Intercept":
            raise InvalidInput(
                f"Ordinal must have an intercept, whose place its thresholds take: found "
                f"{self.formula!r}"
            )
        return BoundOrdinal(model=self, table=df, design=design, at=at, levels=levels)

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        """Levels of the outcome's column, if it declares their order."""
        levels = super().levels_of(values, name)
        dtype = values.dtype
        ordered = isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)
        unsaid = isinstance(dtype, pd.CategoricalDtype) or isinstance(levels.values[0], str)
        if self.levels is None and unsaid and not ordered:
            raise InvalidInput(
                f"outcome {name!r} must have an order: give levels= from the lowest to the highest,"
                " or make it an ordered category"
            )
        return levels

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log P(y), shape (S, b), in nats; y are places from 0, beta[0] = -threshold[0]."""
        threshold = parameters["threshold"] - parameters["threshold"][:, :1]
        eta = np.broadcast_to(parameters["beta"] @ X.T, (len(threshold), y.size))
        return log_of_levels(y.astype(np.intp), threshold, eta)

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate, shape (n,): places of levels from 0."""
        latent = X @ parameters["beta"] + rng.logistic(size=X.shape[0])
        threshold = parameters["threshold"] - parameters["threshold"][0]
        return np.searchsorted(threshold, latent).astype(np.float64)

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """Mode and curvature, roughly; y (d, C) are shares of the levels."""
        return dict(rough_ordinal(weight[:, None] * y, X, self.scales_of(X)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundOrdinal(BoundManyLevels):
    """An Ordinal model joined to a table. Confidential."""

    model: Ordinal
