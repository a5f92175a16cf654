"""Shares of levels on a page: bars with points beside them, and a table. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from pyhybrid.reports.figures.measures import plot_levels
from pyhybrid.reports.levels import level_shares, shares_of
from pyhybrid.reports.page import Picture, Table, picture_of

__all__ = ["level_picture", "level_table"]


def level_picture(
    column: str, truth: pd.Series, sets: Mapping[str, Sequence[pd.Series]], *, advice: str = ""
) -> Picture:
    """Bars of the data's shares, points of the sets'; `advice` is added to what is said below."""
    shares = shares_of(truth, sets)
    said = (
        f"{column}: where a point leaves the end of its bar, the synthetic sets have more or fewer "
        "records of the level."
    )
    return picture_of(
        plot_levels(shares.levels, shares.data, shares.synthetic),
        alt=f"Shares of the levels of {column} in the data and in the synthetic sets.",
        caption=f"{said} {advice}".strip(),
    )


def level_table(column: str, truth: pd.Series, sets: Mapping[str, Sequence[pd.Series]]) -> Table:
    """The same shares as numbers, of each version the mean over its sets."""
    rows = [
        [level, *(f"{share:.3f}" for share in shares)]
        for level, shares in level_shares(truth, sets).items()
    ]
    header = ["level", "data", *(f"{name}, mean of {len(own)}" for name, own in sets.items())]
    caption = f"{column}: share of each level in the data and in the synthetic sets."
    return Table(caption=caption, header=header, rows=rows, numbers=True)
