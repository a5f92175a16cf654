"""Outcomes with levels, and the Bernoulli model of two: logistic regression."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
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
    level_places,
    outcome_levels,
    places_of_levels,
)
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.models.grid import Axis
from pyhybrid.models.laws import BERNOULLI, Law


@dataclass(frozen=True)
class LeveledModel(RegressionModel):
    """A regression of an outcome with levels, coded as places among these."""

    _: KW_ONLY
    levels: tuple[Any, ...] | None = None
    ordered: ClassVar[bool] = False
    undeclared: ClassVar[str] = (
        "levels must be declared: {}, levels=(...)) with all values that the column can hold"
    )
    n_levels: ClassVar[int | None] = None
    """Number of levels that must be given, None for any."""
    numbers: ClassVar[tuple[Any, ...] | None] = None
    """Levels of a column of numbers that declares none; those that are there if None."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", check_levels_given(self.levels, self.n_levels))

    @property
    def one_value(self) -> bool:
        """True of declared levels: a refusal would tell of the last record of another level."""
        return self.levels is not None

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        return outcome_levels(values, self.levels, self.numbers)

    @property
    def coder(self) -> Callable[[pd.Series, str], FloatArray]:
        return lambda values, name: level_places(values, name, self.levels_of(values, name))

    def form_of(self, column: pd.Series) -> Form | None:
        with suppress(InvalidInput, TypeError):
            levels = outcome_levels(column.dropna(), self.levels, self.numbers)
            return None if levels.read else Form(levels=levels.values, ordered=self.ordered)
        return None

    def outcome_numbers(self, column: pd.Series) -> FloatArray:
        levels = self.declared_form.levels or ()
        places = places_of_levels(column, levels).astype(np.float64)
        return np.where(places < 0, np.nan, places)


@dataclass(frozen=True)
class Indicator(LeveledModel, LinearModel):
    """An outcome with two levels, under a logistic regression; see `pyhybrid.Bernoulli`."""

    _: KW_ONLY
    prior: str = "normal"
    n_levels: ClassVar[int | None] = 2
    numbers: ClassVar[tuple[Any, ...] | None] = (0, 1)
    grid_axes: ClassVar[tuple[Axis, ...]] = (Axis(name="logit", lower=-40, upper=40, size=160_000),)
    program_name: ClassVar[str] = "bernoulli"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)
    law: ClassVar[Law] = BERNOULLI

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        levels = super().levels_of(values, name)
        if len(levels.values) > 2 or (len(levels.values) < 2 and not levels.read):
            raise InvalidInput(
                f"outcome {name!r} must have 2 levels for Bernoulli: found {len(levels.values)}; "
                "declare the two with levels= if it has no others, or take another model"
            )
        return levels
