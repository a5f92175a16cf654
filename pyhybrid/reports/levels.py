"""Shares of levels in the data and in synthetic sets: numbers, figure and table. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.reports.figures import plot_levels
from pyhybrid.reports.page import Table, sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelShares:
    """Shares of L levels, the most frequent ones in the data or in their order: in the data, (L,),
    and by version in the synthetic sets, (m, L). Confidential."""

    levels: tuple[str, ...]
    data: FloatArray
    synthetic: Mapping[str, FloatArray]


def shares_of(
    data: pd.Series, synthetic: Mapping[str, Sequence[pd.Series]], *, most: int | None = _MOST
) -> LevelShares:
    """Shares of the `most` frequent levels, or of all; those of ordered categories in order."""
    truth = _shares(data)
    sets = {name: [_shares(each) for each in columns] for name, columns in synthetic.items()}
    known = truth.index
    for each in (share for shares in sets.values() for share in shares):
        known = known.union(each.index, sort=False)
    shares = truth.reindex(known, fill_value=0.0).to_numpy()
    chosen = list(np.argsort(-shares, kind="stable")[:most])
    if isinstance(data.dtype, pd.CategoricalDtype) and data.dtype.ordered:
        place = {str(level): k for k, level in enumerate(data.dtype.categories)}
        chosen.sort(key=lambda k: place.get(str(known[k]), len(place)))
    return LevelShares(
        levels=tuple(str(known[k]) for k in chosen),
        data=shares[chosen],
        synthetic={
            name: np.array([s.reindex(known, fill_value=0.0).to_numpy()[chosen] for s in columns])
            for name, columns in sets.items()
        },
    )


def level_figure(data: pd.Series, synthetic: Mapping[str, Sequence[pd.Series]]) -> Figure:
    """Bars of the data's shares, points of the sets'."""
    shares = shares_of(data, synthetic)
    return plot_levels(shares.levels, shares.data, shares.synthetic)


def level_table(column: str, truth: pd.Series, sets: Mapping[str, Sequence[pd.Series]]) -> Table:
    """The same shares as numbers, of each version the mean over its sets."""
    shares = shares_of(truth, sets)
    columns = [shares.data, *(own.mean(axis=0) for own in shares.synthetic.values())]
    rows = [
        [level, *(f"{column[place]:.3f}" for column in columns)]
        for place, level in enumerate(shares.levels)
    ]
    header = ["level", "data", *(f"{name}, mean of {len(each)}" for name, each in sets.items())]
    caption = sentence("levels", "table", column=column)
    return Table(caption=caption, header=header, rows=rows, numbers=True)


def _shares(column: pd.Series) -> pd.Series:
    known: pd.Series = column.astype(str).where(column.notna(), "missing")
    return known.value_counts(normalize=True)
