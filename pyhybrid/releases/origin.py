"""What the owner's report is made of beside the release itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from pyhybrid.fitting.session import FitSession
from pyhybrid.models.base import Model

__all__ = ["Origin", "Remarks"]

Remarks = Mapping[str, Mapping[str, float]]
"""Shares of records by what they are of, under a heading."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """Where a release comes from. Confidential; never saved.

    Attributes
    ----------
    data : DataFrame
        The confidential records.
    model : Model or None
    session : FitSession or None
        Holds the unweighted fit, to be shown beside the release, if it was made on the way.
    remarks : callable
        Returns what `pyhybrid.mechanisms.base.PseudoPosteriorMechanism.remarks` says of the data.
    compared : sequence of DataFrame or None
        Synthetic sets with the rows of the data, for the report, where those released have others.
    """

    data: pd.DataFrame
    model: Model | None = None
    session: FitSession | None = None
    remarks: Callable[[], Remarks] = dict
    compared: Sequence[pd.DataFrame] | None = None

    def __repr__(self) -> str:
        return f"<Origin of a release: {len(self.data)} confidential records>"
