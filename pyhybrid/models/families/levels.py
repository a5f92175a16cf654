"""Outcomes with levels: logistic, multinomial and cumulative logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp, softmax

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.rows import distinct_rows
from pyhybrid.models.base import BLOCK_ELEMENTS
from pyhybrid.models.columns.form import OutcomeLevels, check_levels_given
from pyhybrid.models.families.coefficients import ScaledModel
from pyhybrid.models.families.regression import Hints, LeveledModel, Offset, Parameters, Rng
from pyhybrid.models.families.two_block import BlockModel, Indicator
from pyhybrid.models.formula.design import Design, Matrix
from pyhybrid.models.initialization import start_of_levels, start_of_ordered
from pyhybrid.models.laws import log_of_levels
from pyhybrid.models.scoring import CategoricalScoring, OrdinalScoring, Scoring


@dataclass(frozen=True)
class LevelModel(BlockModel, LeveledModel, ScaledModel):
    """A regression of an outcome with any number of levels, under normal priors.

    Parameters
    ----------
    levels : tuple, optional
        All values that the column can hold, in their order: public, given, never read from the
        data. Without it a logical column has false and true. For all other columns a strict charge
        needs it: if omitted the levels are read, sorted, or the categories of the dtype, which
        ``astype("category")`` reads, and the charge says so and is not strict.
    """

    many_levels: ClassVar[bool] = True
    any_rank: ClassVar[bool] = True

    def stan_outcome(self, y: FloatArray) -> npt.NDArray[Any]:
        return y.astype(np.int64) + 1

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        if design.has_offset:
            raise InvalidInput(f"{self.name} takes no offset(): found {self.formula!r}")

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        levels = super().levels_of(values, name)
        check_levels_given(levels.values)
        return levels

    @property
    def declared_names(self) -> tuple[str, ...]:
        """Of the levels, for scores."""
        return tuple(map(str, self.declared_form.levels or ()))

    def start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset, n_levels: int = 0
    ) -> Hints:
        """From weights of the levels (d, C) by distinct predictors (d, K), and the prior's scales
        (K,), the intercept's for a column of ones."""
        rows = distinct_rows(X)
        counts = np.zeros((rows.first.size, n_levels))
        np.add.at(counts, (rows.row_of, y.astype(np.intp)), weight)
        ones = (X == 1).all(axis=0)
        scales = np.where(ones, self.prior_scale_intercept, self.prior_scale)
        start = start_of_ordered if self.ordered else start_of_levels
        return dict(start(counts, X[rows.first], scales))


@dataclass(frozen=True)
class Bernoulli(BlockModel, Indicator):
    r"""An outcome with two levels: log odds :math:`o_i + x_i'\beta` of the second one.

    o_i is the offset. Released values have the dtype, and for categories the order, of the data.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"voted ~ age + region"``.
    levels : tuple of two, optional
        E.g. ``("no", "yes")``, as in `pyhybrid.models.families.levels.LevelModel`; without it a
        column of numbers has 0 and 1.
    prior : {"normal", "published"}, default "normal"
        On the coefficients, see `pyhybrid.models.families.coefficients.LinearModel`; it keeps the
        posterior proper where predictors separate the levels.

    Notes
    -----
    Under `pyhybrid.Censored` a small cap costs utility: released shares drift to the larger level.
    Of 1000 records a share of .7 is released as 1 at a cap of .5; at a cap of 2 it stays .7 with a
    center, and is 1 without. Compare the shares before you give a release away.
    """


@dataclass(frozen=True)
class Categorical(LevelModel):
    r"""An outcome with any number of levels in no order, up to 1000.

    :math:`P(y_i = c) \propto \exp(x_i'\beta_c)`, with :math:`\beta_1 = 0` for the first level.
    Released values have the dtype, and for categories the order, of the data.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"region ~ age + sex"``; it takes no ``offset()``.
    levels : tuple, optional
        E.g. ``("north", "east", "west")``, as in `pyhybrid.models.families.levels.LevelModel`. A
        level that no record has is released next to never.
    prior_scale, prior_scale_intercept : float, default 2.5 and 10
        The contrast of any two levels has independent N(0, prior_scale^2) coefficients, and such an
        intercept of `prior_scale_intercept`: public, never read from the data, on the scale of the
        columns as the formula codes them. Which level is the first does not matter.

    Notes
    -----
    brms's ``categorical()`` with ``normal(0, 2.5)`` has the same prior for each level against the
    first, but independent ones: two other levels then differ by N(0, 2 * 2.5^2). With two levels
    this is `pyhybrid.Bernoulli` under its normal prior; on a small cap see there.
    """

    program_name: ClassVar[str] = "categorical"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)

    def scoring_of_values(self, matrix: Matrix) -> Scoring:
        return CategoricalScoring(
            X=matrix.X, columns=matrix.columns, levels=self.declared_names,
            prior_sd=self.prior_scales(matrix),
        )  # fmt: skip

    def log_lik(self, at: Parameters, y: FloatArray, X: FloatArray, offset: Offset) -> FloatArray:
        rows = distinct_rows(X)
        eta = _with_first(np.matmul(X[rows.first], at["beta"]))
        total = logsumexp(eta, axis=2)
        row_of = np.broadcast_to(rows.row_of, y.shape)
        return np.asarray(eta[:, row_of, y.astype(np.intp)] - total[:, row_of])

    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        drawn, places = rng.random((X.shape[0],)), np.empty(X.shape[0])
        size = max(1, BLOCK_ELEMENTS // (at["beta"].shape[1] + 1))
        for rows in (slice(start, start + size) for start in range(0, X.shape[0], size)):
            below = softmax(_with_first(X[rows] @ at["beta"]), axis=1).cumsum(axis=1)
            places[rows] = (drawn[rows, None] >= below[:, :-1]).sum(axis=1)
        return places


def _with_first(eta: FloatArray) -> FloatArray:
    """Linear predictors (..., C) with the 0 of the first level."""
    return np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1)


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
        From the lowest, e.g. ``("low", "middle", "high")``, as in
        `pyhybrid.models.families.levels.LevelModel`. Of text they must be given.
    prior_scale : float, default 2.5
        The coefficients are independent N(0, prior_scale^2), on the scale of the columns as the
        formula codes them.
    prior_scale_intercept : float, default 10
        The thresholds are independent N(0, prior_scale_intercept^2), given that they increase.

    Notes
    -----
    brms's ``cumulative()`` has student_t(3, 0, 2.5) priors of the thresholds of centered
    predictors, which are a function of the data. With two levels this is `pyhybrid.Bernoulli` under
    its normal prior; on a small cap see there.
    """

    program_name: ClassVar[str] = "ordinal"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "threshold")
    ordered: ClassVar[bool] = True

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        super().check_outcome(design, index)
        if design.columns[0] != "Intercept":
            raise InvalidInput(
                f"Ordinal must have an intercept, whose place its thresholds take: found "
                f"{self.formula!r}"
            )

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
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

    def scoring_of_values(self, matrix: Matrix) -> Scoring:
        return OrdinalScoring(
            X=matrix.X, columns=matrix.columns, levels=self.declared_names,
            prior_sd=self.prior_scales(matrix)[1:], prior_sd_thresholds=self.prior_scale_intercept,
        )  # fmt: skip

    def log_lik(self, at: Parameters, y: FloatArray, X: FloatArray, offset: Offset) -> FloatArray:
        """log P(y), shape (S, b), in nats; y are places from 0, beta[0] = -threshold[0]."""
        threshold = at["threshold"] - at["threshold"][:, :1]
        eta = np.broadcast_to(at["beta"] @ X.T, (len(threshold), y.size))
        return log_of_levels(y.astype(np.intp), threshold, eta)

    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        latent = X @ at["beta"] + rng.logistic(size=X.shape[0])
        threshold = at["threshold"] - at["threshold"][0]
        return np.searchsorted(threshold, latent).astype(np.float64)
