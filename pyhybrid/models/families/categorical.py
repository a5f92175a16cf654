"""Multinomial logistic regression of an outcome with levels; program stan/categorical.stan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.families.aggregation import distinct_rows
from pyhybrid.models.families.level_outcome import BoundManyLevels, LevelModel
from pyhybrid.models.families.regression import Offset, Parameters, Positions
from pyhybrid.models.initialization.levels import rough_levels

__all__ = ["BoundCategorical", "Categorical"]

_BLOCK_ELEMENTS = 4_000_000


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
        All values that the column can hold, e.g. ``("north", "east", "west")``: public, given,
        never read from the data. Without it a logical column has false and true. For all other
        columns a strict charge needs it: if omitted the levels are read, sorted, or the categories
        of the dtype, which ``astype("category")`` reads, and the charge says so and is not strict.
        A level that no record has is released next to never.
    prior_scale, prior_scale_intercept : float, default 2.5 and 10
        The contrast of any two levels has independent N(0, prior_scale^2) coefficients, and such an
        intercept of `prior_scale_intercept`: public, never read from the data, on the scale of the
        columns as the formula codes them. Which level is the first does not matter.

    Notes
    -----
    brms's ``categorical()`` with ``normal(0, 2.5)`` for the coefficients of every level against the
    first has the same prior for each of them, but independent ones: two other levels then differ
    by N(0, 2 * 2.5^2), and of many levels the first one is never a rare one. With two levels
    this is `pyhybrid.Bernoulli` under its normal prior. The papers' prior, a scale for each
    coefficient, is not offered: it treats the first level unlike the others.

    The levels' coefficients are as many as levels times columns, and a fit takes time in
    proportion to distinct predictors times levels. On a small cap under `pyhybrid.Censored` see
    `pyhybrid.Bernoulli`.
    """

    program_name: ClassVar[str] = "categorical"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)

    def bind(self, df: pd.DataFrame, at: Positions | None = None) -> BoundCategorical:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        design, levels = self.coded(df, at)
        return BoundCategorical(model=self, table=df, design=design, at=at, levels=levels)

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log p(y | X beta), shape (S, b), in nats; y are places from 0, beta (S, K, C - 1)."""
        rows = distinct_rows(X)
        eta = _with_first(np.matmul(X[rows.first], parameters["beta"]))
        total = logsumexp(eta, axis=2)
        row_of = np.broadcast_to(rows.row_of, y.shape)
        return np.asarray(eta[:, row_of, y.astype(np.intp)] - total[:, row_of])

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate, shape (n,): places of levels from 0."""
        rows = distinct_rows(X)
        drawn = rng.random((X.shape[0],))
        made = np.empty(X.shape[0])
        width = parameters["beta"].shape[1] + 1
        for own in _blocks(rows.first.size, width):
            eta = _with_first(X[rows.first[own]] @ parameters["beta"])
            total: FloatArray = np.asarray(logsumexp(eta, axis=1, keepdims=True))
            below: FloatArray = np.exp(eta - total).cumsum(axis=1)
            here = np.flatnonzero((rows.row_of >= own.start) & (rows.row_of < own.stop))
            for few in _blocks(here.size, width):
                at = here[few]
                passed = drawn[at, None] >= below[rows.row_of[at] - own.start, :-1]
                made[at] = passed.sum(axis=1)
        return made

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode of beta, roughly; y (d, C) are shares of the levels."""
        return dict(rough_levels(weight[:, None] * y, X, self.scales_of(X)))


def _with_first(eta: FloatArray) -> FloatArray:
    """Linear predictors (..., C) with the 0 of the first level."""
    return np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1)


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows that take no more than some million numbers of `width` each."""
    size = max(1, _BLOCK_ELEMENTS // width)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundCategorical(BoundManyLevels):
    """A Categorical model joined to a table. Confidential."""

    model: Categorical
