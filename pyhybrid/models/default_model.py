"""Default models by the type of a column, which is all that a strict release may look at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.models.columns.support import check_many_counts
from pyhybrid.models.families.counts import NegativeBinomial
from pyhybrid.models.formula.design import Design
from pyhybrid.models.formula.terms import divided, parse_formula
from pyhybrid.models.formula.values import kind_of

_WIDE = 100  # spread of a predictor from which on other units are better


@dataclass(frozen=True)
class DefaultModel(NegativeBinomial):
    """`NegativeBinomial` for columns of counts; all others are refused with what to give: a 0/1
    column or a rating from 1 to 5 passes every check of a count and would come back with values
    that it cannot hold."""

    @property
    def name(self) -> str:
        return NegativeBinomial.__name__

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        check_many_counts(design.y, design.outcome, index)
        super().check_outcome(design, index)


def default_name(formula: str, df: pd.DataFrame) -> str | None:
    """Name in `MODELS` of the model for the outcome's kind of column; None if it holds numbers, see
    `DefaultModel`. Logicals, text and categories: "bernoulli" for two levels, "ordinal" for
    categories in an order, else "categorical". Levels of text are counted in the data, of
    categories in their dtype."""
    values = df[parse_formula(formula, df).outcome]
    dtype: Any = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        n_levels, ordered = len(dtype.categories), bool(dtype.ordered)
    else:
        kind, ordered = kind_of(values, what="outcome"), False
        if kind == "numbers":
            return None
        n_levels = 2 if kind == "logicals" else int(values.nunique())
    return name_for_levels(n_levels, ordered=ordered)


def name_for_levels(n_levels: int, *, ordered: bool) -> str:
    """Name in `MODELS` of the model for so many levels."""
    if n_levels <= 2:
        return "bernoulli"
    return "ordinal" if ordered else "categorical"


def in_units(formula: str, df: pd.DataFrame) -> str:
    """The formula with numbers that differ by hundreds, or by hundredths, over a power of ten: a
    normal prior of coefficients about 1 leaves next to all open of one of dollars that separates
    levels, and nothing of one of shares of a thousandth."""
    reads = df[list(parse_formula(formula, df).predictors)]
    spread = reads.select_dtypes("number", exclude="timedelta").std().items()
    other = {str(k): sd for k, sd in spread if 0 < sd <= 1 / _WIDE or _WIDE <= sd < np.inf}
    return divided(formula, {name: 10.0 ** round(math.log10(sd)) for name, sd in other.items()})
