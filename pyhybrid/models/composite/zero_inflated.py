"""Counts with more zeros than their model has: a mixture of zeros and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.composite.bound_steps import BoundParts
from pyhybrid.models.composite.steps import (
    Amount,
    Inflated,
    Node,
    Part,
    PartsModel,
    decision,
    outcome_of,
)
from pyhybrid.models.families.bernoulli import Bernoulli
from pyhybrid.models.families.counts import CountModel
from pyhybrid.models.families.regression import Positions, RegressionModel
from pyhybrid.models.formula.design import check_formulas

__all__ = ["ZeroInflated"]


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
        """The models of its parts, by name."""
        assert self.zero is not None
        return {"zero": self.zero, "count": self.count}

    @property
    def main(self) -> RegressionModel:
        """The model of the counts."""
        return self.count

    def bind(self, df: pd.DataFrame) -> BoundParts:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        check_formulas(df, [model.formula for model in self.models.values()])
        root = self.tree(df, np.arange(len(df)))
        return BoundParts(model=self, table=df, column=outcome_of(self.count), root=root)

    def tree(self, df: pd.DataFrame, at: Positions) -> Node:
        """The mixture over the records at the positions `at` (k,)."""
        assert self.zero is not None
        count = Part(name="count", bound=self.count.bind(df, at), at=at)
        at_zero = count.bound.design.y == 0
        told = np.zeros(len(df), dtype=bool)
        told[at] = at_zero
        zero = decision(df, outcome_of(self.count), "zero", self.zero, at, at_zero)
        return Inflated(zero=zero, count=Amount(part=count), at_zero=told)
