"""What the owner's report is made of beside the release itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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
        What the fits of the release shared; it holds the unweighted fit, to be shown beside the
        release, if that was made on the way. None of a release without a fit, and of a sequence.
    remarks : callable
        Returns what `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism.remarks` says of
        the data.
    compared : sequence of DataFrame or None
        Synthetic sets with the rows of the data, for the report, where those released have others.
    steps : sequence of Origin
        Of a sequence: that of each step, in their order. Empty otherwise.
    """

    data: pd.DataFrame
    model: Model | None = None
    session: FitSession | None = None
    remarks: Callable[[], Remarks] = dict
    compared: Sequence[pd.DataFrame] | None = None
    steps: Sequence[Origin] = ()

    def of_step(self, place: int) -> Origin:
        """Where step `place` of a sequence comes from, counted from 0; of this one's data."""
        if not self.steps:
            return self
        own = self.steps[place]
        return replace(self, model=own.model, session=own.session, steps=())

    def __repr__(self) -> str:
        return f"<Origin of a release: {len(self.data)} confidential records>"
