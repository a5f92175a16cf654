"""How the records of compared tables were sampled: design weights and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.arrays.weighted import check_weights
from pyhybrid.measures.survey import SurveyDesign, design_weights

__all__ = ["Sampled", "Weights", "read_sampled"]

Weights: TypeAlias = str | SurveyDesign | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """How the records of one table were sampled. Confidential for the data.

    Attributes
    ----------
    weights : ndarray, shape (n,), or None
        Design weights; None if all are 1 or the table has none.
    clusters : ndarray of int, shape (n,), or None
        Codes of primary sampling units; None without a design. Each record is one in a table
        without the design's columns.
    """

    weights: FloatArray | None
    clusters: npt.NDArray[np.intp] | None

    def __repr__(self) -> str:
        return "<Sampled: design weights, confidential>"


def read_sampled(
    real: pd.DataFrame, sets: Sequence[pd.DataFrame], names: Sequence[str], weights: Weights
) -> tuple[Sampled, ...]:
    """Weights and clusters of the data and of each set, 1 + m; empty without `weights`.

    Raises
    ------
    InvalidInput
        For a column that the data have not, weights that are missing, not numbers or not above 0,
        and what `SurveyDesign.read` refuses.
    """
    if weights is None:
        return ()
    if not isinstance(weights, (str, SurveyDesign)):
        raise InvalidInput(
            "weights must name a column or be a SurveyDesign: found "
            f"{type(weights).__name__}; put weights that are no column into one"
        )
    if isinstance(weights, str) and weights not in real.columns:
        raise InvalidInput(f"weights must name a column of the data: {weights!r} is not one")
    read = []
    for table, name in zip([real, *sets], ["the data", *names], strict=True):
        try:
            read.append(_read(table, weights, is_data=table is real))
        except InvalidInput as error:
            raise InvalidInput(f"{error} (in {name})") from None
    return tuple(read)


def _read(table: pd.DataFrame, weights: Weights, *, is_data: bool) -> Sampled:
    column = weights.weights if isinstance(weights, SurveyDesign) else str(weights)
    if isinstance(weights, SurveyDesign) and (is_data or _holds(table, weights.columns)):
        records = weights.read(table)
        return Sampled(weights=check_weights(records.weight, len(table)), clusters=records.cluster)
    own: Any = design_weights(table[column], column) if column in table.columns else None
    clusters = np.arange(len(table)) if isinstance(weights, SurveyDesign) else None
    return Sampled(weights=check_weights(own, len(table)), clusters=clusters)


def _holds(table: pd.DataFrame, columns: Sequence[str]) -> bool:
    return all(column in table.columns for column in columns)
