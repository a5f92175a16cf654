"""What models of outcomes with levels share: levels in, levels out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws
from pyhybrid.models.columns.form import Form, form_of_levels
from pyhybrid.models.columns.levels import (
    OutcomeLevels,
    check_levels_given,
    column_of,
    level_places,
    outcome_levels,
)
from pyhybrid.models.families.aggregation import Rows, distinct_rows
from pyhybrid.models.families.coefficients import prior_scales
from pyhybrid.models.families.regression import BoundRegression, Positions, RegressionModel
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.privacy.censoring import Cap

__all__ = ["BoundLevels", "BoundManyLevels", "LevelModel"]

_BLOCK_ELEMENTS = 4_000_000


@dataclass(frozen=True)
class LevelModel(RegressionModel):
    """A regression of an outcome with any number of levels, under normal priors.

    Parameters
    ----------
    formula : str
        Wilkinson formula.
    levels : tuple, optional
        All values that the column can hold, in their order: public, given, never read from the
        data. Without it a logical column has false and true. For all other columns a strict charge
        needs it: if omitted the levels are read, sorted, or the categories of the dtype, which
        ``astype("category")`` reads, and the charge says so and is not strict.
    prior_scale, prior_scale_intercept : float, default 2.5 and 10
        Standard deviations of the normal priors; see the model. Public, never read from the data.
    """

    _: KW_ONLY
    levels: tuple[Any, ...] | None = None
    prior_scale: float = 2.5
    prior_scale_intercept: float = 10.0
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", check_levels_given(self.levels))
        check_positive(self.prior_scale, "prior_scale")
        check_positive(self.prior_scale_intercept, "prior_scale_intercept")

    def describe(self) -> dict[str, Any]:
        """Public settings."""
        return {
            **super().describe(),
            "levels": None if self.levels is None else list(self.levels),
            "prior_scale": self.prior_scale,
            "prior_scale_intercept": self.prior_scale_intercept,
        }

    @property
    def any_rank(self) -> bool:
        """True: the prior identifies coefficients that the data do not."""
        return True

    def prior_data(self, columns: tuple[str, ...]) -> dict[str, Any]:
        """The prior as the programs take it, for the design's `columns`."""
        scales = prior_scales(columns, self.prior_scale, self.prior_scale_intercept)
        return {"prior_scale": scales}

    def coded(self, df: pd.DataFrame, at: Positions | None = None) -> tuple[Design, OutcomeLevels]:
        """Design of `df`, or of its records at `at` (k,), its outcome as places among the levels,
        and the levels."""
        design = read_design(self.formula, df, self._places, at, any_rank=self.any_rank)
        if design.has_offset:
            raise InvalidInput(f"{self.name} takes no offset(): found {self.formula!r}")
        values = df[design.outcome] if at is None else df[design.outcome].iloc[at]
        return design, self.levels_of(values, design.outcome)

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        """Levels of the outcome's column."""
        levels = outcome_levels(values, name, self.levels, numbers=None)
        check_levels_given(levels.values)
        return levels

    def form_of(self, column: pd.Series) -> Form | None:
        """The levels given, or those of logicals and categories."""
        return form_of_levels(column, self.levels, ordered=self.ordered)

    def _places(self, values: pd.Series, name: str) -> FloatArray:
        return level_places(values, name, self.levels_of(values, name))

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Nothing beyond the levels, which are checked when the outcome is coded."""

    def scales_of(self, X: FloatArray) -> FloatArray:
        """Standard deviations of the prior, shape (K,); the intercept's for a column of ones."""
        plain = np.full(X.shape[1], self.prior_scale)
        return np.where((X == 1).all(axis=0), self.prior_scale_intercept, plain)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundLevels(BoundRegression):
    """A model of levels joined to a table. Confidential.

    Attributes
    ----------
    levels : OutcomeLevels
        In the type of the column.
    """

    levels: OutcomeLevels

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Terms whose coding depends on all records, and levels that were read from them."""
        read = (f"levels of {self.design.outcome}; levels= declares them",)
        return (*super().data_dependent, *(read if self.levels.read else ()))

    def numbers_of(self, column: pd.Series) -> FloatArray:
        """Place of each value among the levels, from 0, shape (n,)."""
        return level_places(column, self.design.outcome, self.levels)

    def released(self, values: FloatArray, like: pd.Series) -> pd.Series:
        """Levels in the dtype of the data."""
        return column_of(values, self.levels, like)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundManyLevels(BoundLevels):
    """A model of any number of levels joined to a table; rows are in order of their predictors."""

    @property
    def n_levels(self) -> int:
        """Number of levels C."""
        return len(self.levels.values)

    @cached_property
    def rows(self) -> Rows:
        """Distinct rows of (outcome, predictors); those with the same predictors are neighbors."""
        code = distinct_rows(self.design.X).row_of * self.n_levels + self.design.y.astype(np.intp)
        found = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
        _, first, row_of, frequency = found
        return Rows(first=first, row_of=row_of, frequency=frequency.astype(np.float64))

    def stan_data(
        self,
        alpha: FloatArray,
        *,
        cap: float | Cap | None = None,
        dispersion: float = 1.0,
        emit_log_lik: bool = False,
    ) -> dict[str, Any]:
        """Data block of the program; see `pyhybrid.models.base.BoundModel`."""
        data = super().stan_data(alpha, cap=cap, dispersion=dispersion, emit_log_lik=emit_log_lik)
        del data["offsets"]
        return {**data, "n_levels": self.n_levels}

    def stan_rows(self, alpha: FloatArray, unit: Positions | None = None) -> Rows:
        """Rows of the data block: those with the same predictors are neighbors."""
        rows = super().stan_rows(alpha, unit)
        order = np.argsort(distinct_rows(self.design.X[rows.first]).row_of, kind="stable")
        return Rows(
            first=rows.first[order],
            row_of=np.argsort(order)[rows.row_of],
            frequency=rows.frequency[order],
        )

    def _stan_outcome(self, y: FloatArray) -> npt.NDArray[Any]:
        return y.astype(np.int64) + 1

    def _hints(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: FloatArray
    ) -> dict[str, Any]:
        """By distinct predictors: the rough fit gets the shares of the levels (d, C)."""
        designs = distinct_rows(X)
        counts = np.zeros((designs.first.size, self.n_levels))
        np.add.at(counts, (designs.row_of, y.astype(np.intp)), weight)
        total = counts.sum(axis=1)
        shares = counts / np.where(total > 0, total, 1.0)[:, None]
        return super()._hints(shares, X[designs.first], total, offset[designs.first])

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Unweighted log-likelihood, (S, b) at a time, one column per distinct row."""
        parameters = {name: draws.flat(name) for name in self.model.parameters}
        y, X = self.design.y[self.rows.first], self.design.X[self.rows.first]
        starts = np.flatnonzero(np.append(True, (X[1:] != X[:-1]).any(axis=1)))
        size = max(1, _BLOCK_ELEMENTS // (draws.n_draws * self.n_levels))
        ends = [*starts[size::size], y.size]
        for start, end in zip(starts[::size], ends, strict=True):
            yield self.model.log_lik(parameters, y[start:end], X[start:end])
