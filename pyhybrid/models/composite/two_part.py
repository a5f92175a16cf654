"""Models of zeros and of what is not zero: amounts and counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import decimals_of
from pyhybrid.models.composite.steps import (
    Amount,
    Constant,
    Inflated,
    Node,
    Part,
    PartsModel,
    Step,
    decision,
    outcome_of,
)
from pyhybrid.models.families.amounts import LogNormal
from pyhybrid.models.families.counts import CountModel
from pyhybrid.models.families.levels import Bernoulli
from pyhybrid.models.families.regression import Positions, RegressionModel
from pyhybrid.models.formula.values import first_row, is_number, with_columns

_ABOVE_ZERO = (float(np.nextafter(0, 1)), np.inf)


@dataclass(frozen=True, kw_only=True)
class TwoPart(PartsModel):
    """An outcome with many records at one value, and amounts otherwise: two models, one charge.

    One model is for whether an outcome is at `point`, another for its size otherwise; with
    `negative` a third is for which of the others are below the point, and a fourth for how far. A
    record's term is the sum over all parts: weights, bounds and caps act on that sum, and the
    charge is for all parts together. Released values are at the point, above or below it as the
    models draw them: shares and signs are kept.

    Parameters
    ----------
    zero : Bernoulli
        Of being at the point, e.g. ``Bernoulli("income ~ age")``.
    positive : model of this package
        Of the amounts above 0, e.g. ``LogNormal("income ~ age")``; it is fitted to their records
        alone, and values at 0 or below are never drawn from it.
    negative : model of this package, optional
        Of minus the amounts below 0. If omitted there must be none.
    sign : Bernoulli, optional
        Of being below 0, of those that are not at the point; like `zero`, if omitted.
    point : float, default 0
        Where the mass is. For another point than 0 `positive` is the model of all other values, of
        either sign, from which the point is never drawn, and there is no `negative`.
    """

    zero: Bernoulli
    positive: RegressionModel
    negative: RegressionModel | None = None
    sign: Bernoulli | None = None
    point: float = 0.0

    def __post_init__(self) -> None:
        check_finite(self.point, "point")
        for name in ("zero", "sign"):
            own = getattr(self, name)
            if own is None and name == "sign":
                continue
            if not isinstance(own, Bernoulli) or own.levels is not None:
                raise InvalidInput(f"{name} of TwoPart must be a Bernoulli model without levels")
        for name in ("positive", "negative"):
            own = getattr(self, name)
            if not isinstance(own, RegressionModel) and not (own is None and name == "negative"):
                raise InvalidInput(
                    f"{name} of TwoPart must be a model of this package with a formula: found "
                    f"{type(own).__name__}"
                )
        if self.sign is not None and self.negative is None:
            raise InvalidInput("sign goes with negative: give a model of the amounts below 0")
        if self.negative is not None and self.point != 0:
            raise InvalidInput(f"negative goes with a point of 0: found {self.point:g}")
        if self.negative is not None and self.sign is None:
            object.__setattr__(self, "sign", self.zero)
        outcomes = sorted({outcome_of(model) for model in self.models.values()})
        if len(outcomes) > 1:
            raise InvalidInput(f"all parts must have one outcome: found {', '.join(outcomes)}")

    @property
    def _outcome(self) -> str:
        return outcome_of(self.positive)

    @classmethod
    def of_formula(cls, formula: str) -> TwoPart:
        """Zeros and log-normal amounts, both by one formula."""
        return cls(zero=Bernoulli(formula), positive=LogNormal(formula))

    @property
    def models(self) -> dict[str, RegressionModel]:
        own = {"zero": self.zero, "sign": self.sign, "positive": self.positive,
               "negative": self.negative}  # fmt: skip
        return {name: model for name, model in own.items() if model is not None}

    @property
    def main(self) -> RegressionModel:
        return self.positive

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Numbers of the decimals of both sides and of the point."""
        own = {**self.positive.forms(df)}
        others = [self.positive.given_decimals, decimals_of(np.array([self.point]))]
        if self.negative is not None:
            others.append(self.negative.given_decimals)
        known = [each for each in others if each is not None]
        most = max(known) if len(known) == len(others) else None
        return {name: replace(form, decimals=most) for name, form in own.items()}

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "point": self.point}

    def tree(self, df: pd.DataFrame, at: Positions) -> Node:
        y = self._numbers(df, at)
        is_point = y == self.point
        rest, others = at[~is_point], y[~is_point]
        return Step(
            part=decision(df, self._outcome, "zero", self.zero, at, is_point),
            yes=Constant(value=self.point),
            no=self._amounts(df, rest, others),
        )

    def _amounts(self, df: pd.DataFrame, at: Positions, y: FloatArray) -> Node:
        if self.point != 0:
            part = self._amount(df, "positive", self.positive, at)
            return Amount(part=part, apart=self.point)
        below = y < 0
        positive = Amount(
            part=self._amount(df, "positive", self.positive, at[~below]), within=_ABOVE_ZERO
        )
        if self.negative is None:
            if below.any():
                label = first_row(df.index[at], below)
                raise InvalidInput(
                    f"outcome {self._outcome!r} must be 0 or above: {label} is below; give "
                    "negative=, a model of how far below"
                )
            return positive
        assert self.sign is not None
        numbers = df[self._outcome].to_numpy(dtype=np.float64, na_value=np.nan)
        mirrored = with_columns(df, {self._outcome: -numbers})
        return Step(
            part=decision(df, self._outcome, "sign", self.sign, at, below),
            yes=Amount(
                part=self._amount(mirrored, "negative", self.negative, at[below]),
                sign=-1.0,
                within=_ABOVE_ZERO,
            ),
            no=positive,
        )

    def _amount(self, df: pd.DataFrame, name: str, model: RegressionModel, at: Positions) -> Part:
        return Part(name=name, bound=model.bind(df, at), at=at)

    def _numbers(self, df: pd.DataFrame, at: Positions) -> FloatArray:
        """Outcomes (k,), of which the parts then check what they can take."""
        name = self._outcome
        values = df[name].iloc[at]
        if not is_number(values):
            raise InvalidInput(f"outcome {name!r} must be numeric: found {values.dtype}")
        missing = values.isna().to_numpy()
        if missing.any():
            label = first_row(values.index, missing)
            raise InvalidInput(
                f"outcome {name!r} must not be missing: {label} is; see pyhybrid.WithMissing"
            )
        return values.to_numpy(dtype=np.float64)


@dataclass(frozen=True)
class ZeroInflated(PartsModel):
    r"""A count that is 0 with some probability, and else drawn from a model that has zeros, too.

    :math:`P(y_i) = \pi_i 1\{y_i = 0\} + (1 - \pi_i)\, p(y_i | x_i)`, as ``zero_inflated_poisson``
    and ``zero_inflated_negbinomial`` of brms. Where all zeros are of one kind take `TwoPart`.

    Parameters
    ----------
    count : Poisson or NegativeBinomial
        E.g. ``NegativeBinomial("visits ~ age")``, with a support from 0 on.
    zero : Bernoulli, optional
        Of an extra zero, e.g. ``Bernoulli("visits ~ age")``; an intercept alone if omitted.
    """

    count: CountModel
    zero: Bernoulli | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.count, CountModel) or self.count.lower != 0:
            raise InvalidInput(
                "count of ZeroInflated must be a Poisson or NegativeBinomial model from 0 on: "
                f"found {type(self.count).__name__}"
            )
        if self.zero is None:
            object.__setattr__(self, "zero", Bernoulli(f"`{outcome_of(self.count)}` ~ 1"))
        zero: Any = self.zero
        if not isinstance(zero, Bernoulli) or zero.levels is not None:
            raise InvalidInput("zero of ZeroInflated must be a Bernoulli model without levels")
        if outcome_of(zero) != outcome_of(self.count):
            raise InvalidInput(
                f"both parts must have one outcome: found {outcome_of(zero)} and "
                f"{outcome_of(self.count)}"
            )

    @property
    def models(self) -> dict[str, RegressionModel]:
        assert self.zero is not None
        return {"zero": self.zero, "count": self.count}

    @property
    def main(self) -> RegressionModel:
        return self.count

    def tree(self, df: pd.DataFrame, at: Positions) -> Node:
        assert self.zero is not None
        count = Part(name="count", bound=self.count.bind(df, at), at=at)
        at_zero = count.bound.design.y == 0
        told = np.zeros(len(df), dtype=bool)
        told[at] = at_zero
        zero = decision(df, outcome_of(self.count), "zero", self.zero, at, at_zero)
        return Inflated(zero=zero, count=Amount(part=count), at_zero=told)
