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

    def figure(self) -> Figure:
        """Bars of the data's shares, points of the sets'."""
        return plot_levels(self.levels, self.data, self.synthetic)

    def table(self, column: str) -> Table:
        """The same shares as numbers, of each version the mean over its sets."""
        columns = [self.data, *(sets.mean(axis=0) for sets in self.synthetic.values())]
        rows = [
            [level, *(f"{share:.3f}" for share in shares)]
            for level, *shares in zip(self.levels, *columns, strict=True)
        ]
        means = [f"{name}, mean of {len(sets)}" for name, sets in self.synthetic.items()]
        caption = sentence("levels", "table", column=column)
        return Table(caption=caption, header=["level", "data", *means], rows=rows, numbers=True)


def shares_of(
    data: pd.Series, synthetic: Mapping[str, Sequence[pd.Series]], *, most: int | None = _MOST
) -> LevelShares:
    """Shares of the `most` frequent levels, or of all; those of ordered categories in order."""
    sets = [_shares(column) for columns in synthetic.values() for column in columns]
    truth = _shares(data)
    table = pd.concat([truth, *sets], axis=1).fillna(0.0)
    table = table.reindex(truth.index.append(table.index.difference(truth.index, sort=False)))
    order = np.argsort(-table.iloc[:, 0].to_numpy(), kind="stable")[:most]
    if isinstance(data.dtype, pd.CategoricalDtype) and data.dtype.ordered:
        place = {str(level): k for k, level in enumerate(data.dtype.categories)}
        order = np.array(sorted(order, key=lambda k: place.get(str(table.index[k]), len(place))))
    shares = table.iloc[order].to_numpy().T
    ends = np.cumsum([1, *map(len, synthetic.values())])
    parts = zip(synthetic, ends[:-1], ends[1:], strict=True)
    return LevelShares(
        levels=tuple(map(str, table.index[order])), data=shares[0],
        synthetic={name: shares[first:last] for name, first, last in parts},
    )  # fmt: skip


def _shares(column: pd.Series) -> pd.Series:
    known: pd.Series = column.astype(str).where(column.notna(), "missing")
    return known.value_counts(normalize=True)
