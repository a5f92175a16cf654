"""Missing values: whether an outcome is missing is modeled first, its value where it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_finite, check_flag
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form
from pyhybrid.models.composite.steps import (
    Amount,
    BoundParts,
    Constant,
    Node,
    Part,
    PartsModel,
    Step,
    decision,
    outcome_of,
)
from pyhybrid.models.families.levels import Bernoulli
from pyhybrid.models.families.regression import Positions, RegressionModel
from pyhybrid.models.formula.design import check_formulas
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.models.formula.values import Completion, completion_of, first_row


@dataclass(frozen=True)
class WithMissing:
    """A model whose outcome, and whose predictors, may be missing.

    One model is for whether the outcome is missing, as in synthpop: where it draws "missing",
    released values have the data's marker and dtype; elsewhere they are drawn from `value`, fitted
    to the records that have one. One charge covers both. A column whose dtype holds no missing
    values has none. Missing predictors count as a level of their own (the last one; ordered levels
    lose their order) or, if they are numbers, as a declared number or the median with an indicator;
    they stay missing in the table.

    Parameters
    ----------
    value : model of this package
        Of the values that are there, e.g. ``Poisson("visits ~ age")``.
    missing : Bernoulli, optional
        Of being missing, e.g. ``Bernoulli("visits ~ 1")``; by the formula of `value` if omitted.
    fill : mapping of str to float, optional
        What stands in the place of missing numbers, by predictor, e.g. ``{"age": 45}``: public,
        such as medians of a reference (``reference.median(numeric_only=True)``). Without it the
        median is read from the data, and no charge is strict.
    marked : sequence of str, optional
        Predictors that may be missing, as declared: these have a level or an indicator, whether or
        not a value is missing, and no others do. If omitted, those with missing values, numbers of
        one pattern once, which is taken to be public.
    complete : bool, optional
        True if the outcome itself is declared never to be missing: predictors alone are. If
        omitted, it may be where the column's dtype holds missing values, and in any case under a
        strict charge, which the dtype must not shape.
    """

    value: RegressionModel | PartsModel
    _: KW_ONLY
    missing: Bernoulli | None = None
    fill: Mapping[str, float] | None = field(default=None, hash=False)
    marked: tuple[str, ...] | None = None
    complete: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, RegressionModel | PartsModel):
            raise InvalidInput(
                "value of WithMissing must be a model of this package with a formula: found "
                f"{type(self.value).__name__}"
            )
        if self.missing is not None:
            if not isinstance(self.missing, Bernoulli) or self.missing.levels is not None:
                raise InvalidInput("missing must be a Bernoulli model without levels")
            if outcome_of(self.missing) != self._outcome:
                raise InvalidInput(
                    f"missing must have the outcome {self._outcome!r}: found "
                    f"{outcome_of(self.missing)!r}"
                )
        if self.marked is not None:
            object.__setattr__(self, "marked", tuple(self.marked))
        if self.complete is not None:
            check_flag(self.complete, "complete")
        for name, number in dict(self.fill or {}).items():
            check_finite(number, f"fill of {name!r}")

    @property
    def _outcome(self) -> str:
        return outcome_of(self._of_formula)

    @property
    def _of_formula(self) -> RegressionModel:
        return self.value.main if isinstance(self.value, PartsModel) else self.value

    @property
    def missing_model(self) -> Bernoulli:
        """The model of being missing."""
        return self.missing or Bernoulli(self._of_formula.formula)

    @property
    def name(self) -> str:
        """Name of the model."""
        return type(self).__name__

    def describe(self) -> dict[str, Any]:
        """Public settings of both models."""
        return {
            "model": self.name,
            "outcome": self._outcome,
            "formula": self._of_formula.formula,
            "value": self.value.describe(),
            "missing": self.missing_model.describe(),
            "fill": None if self.fill is None else {k: float(v) for k, v in self.fill.items()},
            **({} if self.marked is None else {"marked": list(self.marked)}),
            **({} if self.complete is None else {"complete": self.complete}),
        }

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """That of the values, with a place for missing ones."""
        missing = not self.complete
        return {name: replace(own, missing=missing) for name, own in self.value.forms(df).items()}

    def bind(self, df: pd.DataFrame) -> BoundParts:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        single = self.value.models if isinstance(self.value, PartsModel) else {"value": self.value}
        models = {**single, "missing": self.missing_model}
        check_formulas(df, [model.formula for model in models.values()])
        reads = {k: parse_formula(model.formula, df).predictors for k, model in models.items()}
        completion = completion_of(
            df,
            sorted({name for own in reads.values() for name in own}),
            dict(self.fill or {}),
            self.marked,
        )
        complete = {
            k: replace(model, formula=completion.formula(model.formula, reads[k]))
            for k, model in models.items()
        }
        root = self._tree(completion.of(df), complete)
        return BoundParts(
            model=self,
            table=df,
            column=self._outcome,
            root=root,
            completion=completion,
            said=self._said(completion),
        )

    def _tree(self, df: pd.DataFrame, models: Mapping[str, Any]) -> Node:
        gone = df[self._outcome].isna().to_numpy(dtype=bool)
        there, every = np.flatnonzero(~gone), np.arange(len(df))
        if self.complete and gone.any():
            raise InvalidInput(
                f"outcome {self._outcome!r} must not be missing, as complete=True declares: "
                f"{first_row(df.index, gone)} is; leave it out"
            )
        values = self._values(df, models, there)
        dtype: Any = df[self._outcome].dtype
        never = isinstance(dtype, np.dtype) and dtype.kind in "iub"
        if never if self.complete is None else self.complete:
            return values
        return Step(
            part=decision(df, self._outcome, "missing", models["missing"], every, gone),
            yes=Constant(value=None),
            no=values,
        )

    def _values(self, df: pd.DataFrame, models: Mapping[str, Any], at: Positions) -> Node:
        if isinstance(self.value, PartsModel):
            own = {name: models[name] for name in self.value.models}
            complete: PartsModel = replace(self.value, **own)  # type: ignore[type-var]
            return complete.tree(df, at)
        return Amount(part=Part(name="value", bound=models["value"].bind(df, at), at=at))

    def _said(self, completion: Completion) -> tuple[str, ...]:
        if self.complete:
            return completion.said
        return (
            f"Whether a value of {self._outcome} is missing was modeled, too, and is covered by "
            "the charge.",
            *completion.said,
        )
