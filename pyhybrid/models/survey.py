"""Survey weights: a record's term is its log-likelihood times its survey weight.

The pseudo posterior of a survey weights record i by w_i, which averages 1, so that the model is
fitted to the population [H22]. Privacy weights come on top: what a record tells is alpha_i w_i f_i,
of which bounds, ranges, risk and caps are.

Weights are taken as they are in the table, so that a term is a function of its own record alone.
Weights that were normalized by their sum, or calibrated so that they sum to a total, all move when
one record leaves: they average exactly 1, by which they are known, and no charge is then strict.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.reconcile import survey_weights

_MEAN = (0.8, 1.25)  # of weights: normalized by a public number they average nearly 1
_EXACTLY = 1e-6  # so near to 1 they do by no chance
_OWN = "Survey weights of records are functions of these records and of public numbers alone."


@dataclass(frozen=True, kw_only=True, eq=False)
class SurveyWeights:
    """A column of survey weights and the weight of each record, shape (n,). Confidential."""

    column: str
    weight: FloatArray = field(repr=False)
    of_sample: bool
    """True of weights that were normalized or calibrated so that they average 1."""

    @classmethod
    def read(cls, df: pd.DataFrame, column: str) -> SurveyWeights:
        """From a column of positive numbers that average about 1; InvalidInput for others."""
        if column not in df.columns:
            raise InvalidInput(
                f"survey weights {column!r} must be a column of the data{did_you_mean(column, df)}"
            )
        weight = survey_weights(df[column], column)
        if not _MEAN[0] <= weight.mean() <= _MEAN[1]:
            raise InvalidInput(
                f"survey weights {column!r} must average about 1: divide them by a public number, "
                "the members of the population for each record (N / n)"
            )
        of_sample = bool(abs(weight.mean() - 1) < _EXACTLY and np.ptp(weight) > 0)
        return cls(column=column, weight=weight, of_sample=of_sample)

    def at(self, records: npt.NDArray[np.intp]) -> SurveyWeights:
        """The weights of some of the records."""
        return replace(self, weight=self.weight[records])

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What is computed from all records, as a charge names it."""
        return (f"survey weights {self.column}, whose mean over the sample is 1",) * self.of_sample

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What survey weights do to the guarantee."""
        said = (
            f"A record's term is its log-likelihood times its survey weight ({self.column})"
            ": a record of a large weight tells more, and is charged for it."
        )
        return (said,) if self.of_sample else (said, _OWN)


def with_survey_weights(bound: Any, column: str) -> Any:
    """A bound model, fitted to the population by a column of survey weights of its table."""
    if column in bound.synthesized:
        raise InvalidInput(
            f"survey weights {column!r} must not be synthesized by the model that they weight"
        )
    return bound.with_survey(SurveyWeights.read(bound.table, column))


def to_approve(column: str | None) -> dict[str, str]:
    """Reason by column why survey weights that stay in the file need the owner's decision."""
    reason = "its survey weights may disclose the outcome: synthesize them together with it, "
    return {} if column is None else {column: f"{reason}or leave them out"}
