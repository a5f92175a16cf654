"""Outcomes with levels, and the Bernoulli model of two: logistic regression."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import (
    Form,
    OutcomeLevels,
    check_levels_given,
    column_of,
    form_of_levels,
    level_places,
    outcome_levels,
    places_of_levels,
)
from pyhybrid.models.families.coefficients import PRIORS, LinearModel
from pyhybrid.models.families.regression import (
    BoundRegression,
    Positions,
    RegressionModel,
)
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.models.grid import BernoulliForm, PoissonForm
from pyhybrid.models.laws import BernoulliLaw, Law


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundLevels(BoundRegression):
    """A model of levels, in the type of the column, joined to a table. Confidential."""

    levels: OutcomeLevels  # type: ignore[misc]

    @property
    def data_dependent(self) -> tuple[str, ...]:
        read = (f"levels of {self.design.outcome}; levels= declares them",)
        return (*super().data_dependent, *(read if self.levels.read else ()))

    def numbers_of(self, column: pd.Series) -> FloatArray:
        return level_places(column, self.design.outcome, self.levels)

    def released(self, values: FloatArray, like: pd.Series) -> pd.Series:
        return column_of(values, self.levels, like)


@dataclass(frozen=True)
class LeveledModel(RegressionModel):
    """A regression of an outcome with levels, coded as places among these."""

    _: KW_ONLY
    levels: tuple[Any, ...] | None = None
    ordered: ClassVar[bool] = False
    bound_type: ClassVar[type[BoundLevels]] = BoundLevels
    numbers: ClassVar[tuple[Any, ...] | None] = None
    """Levels of a column of numbers that declares none; those that are there if None."""

    def bind_at(self, df: pd.DataFrame, at: Positions | None = None) -> BoundLevels:
        design = read_design(
            self.formula, df, self._places, at, any_rank=self.any_rank,
            one_value=self.levels is not None,  # a refusal would tell of the last of another level
        )  # fmt: skip
        self.check_outcome(design, df.index)
        values = df[design.outcome] if at is None else df[design.outcome].iloc[at]
        levels = self.levels_of(values, design.outcome)
        return self.bound_type(model=self, table=df, design=design, at=at, levels=levels)

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        """Levels of the outcome's column."""
        return outcome_levels(values, self.levels, self.numbers)

    def form_of(self, column: pd.Series) -> Form | None:
        """The levels given, or those of logicals, and of categories and numbers that are known."""
        return form_of_levels(column, self.levels, numbers=self.numbers, ordered=self.ordered)

    def outcome_numbers(self, column: pd.Series) -> FloatArray:
        places = places_of_levels(column, self._declared).astype(np.float64)
        return np.where(places < 0, np.nan, places)

    @property
    def declared_form(self) -> Form:
        return Form(levels=self._declared, ordered=self.ordered)

    @property
    def _declared(self) -> tuple[Any, ...]:
        if self.levels is None:
            raise InvalidInput(
                f"levels must be declared: {self.name}({self.formula!r}, levels=(...)) with all "
                "values that the column can hold"
            )
        return self.levels

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Nothing beyond the levels, which are checked when the outcome is coded."""

    def _places(self, values: pd.Series, name: str) -> FloatArray:
        return level_places(values, name, self.levels_of(values, name))


@dataclass(frozen=True)
class Indicator(LinearModel, LeveledModel):
    """An outcome with two levels, under a logistic regression; see `pyhybrid.Bernoulli`."""

    _: KW_ONLY
    prior: str = "normal"
    numbers: ClassVar[tuple[Any, ...] | None] = (0, 1)
    grid: ClassVar[type[PoissonForm] | None] = BernoulliForm
    grid_priors: ClassVar[tuple[str, ...]] = PRIORS
    program_name: ClassVar[str] = "bernoulli"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)
    law: ClassVar[Law] = BernoulliLaw()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", check_levels_given(self.levels, 2))

    def describe(self) -> dict[str, Any]:
        """Public settings: the prior, too, as its default is not that of the papers' models."""
        levels = None if self.levels is None else list(self.levels)
        return {**super().describe(), "prior": self.prior, "levels": levels}

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        levels = super().levels_of(values, name)
        if len(levels.values) > 2 or (len(levels.values) < 2 and not levels.read):
            raise InvalidInput(
                f"outcome {name!r} must have 2 levels for Bernoulli: found {len(levels.values)}; "
                "declare the two with levels= if it has no others, or take another model"
            )
        return levels
