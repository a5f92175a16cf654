"""The model where none is named: chosen by what the outcome's column can hold, or refused."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from pyhybrid.models.design import Design
from pyhybrid.models.negative_binomial import NegativeBinomial
from pyhybrid.models.support import check_many_counts

__all__ = ["DefaultModel"]


@dataclass(frozen=True)
class DefaultModel(NegativeBinomial):
    """`NegativeBinomial` for columns of counts; all others are refused with what to give.

    A 0/1 column or a rating from 1 to 5 passes every check of a count and would come back with
    values that it cannot hold. So this one looks at the support of the column first; see
    `pyhybrid.models.support.check_many_counts`.
    """

    @property
    def name(self) -> str:
        """Name of the model that is chosen."""
        return NegativeBinomial.__name__

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Look at the support of the column first."""
        check_many_counts(design.y, design.outcome, index)
        super().check_outcome(design, index)
