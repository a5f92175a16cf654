"""Columns of levels: share of each level in the data and in the synthetic sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

__all__ = ["level_shares"]

_MOST = 30


def level_shares(
    data: pd.Series, synthetic: Mapping[str, Sequence[pd.Series]]
) -> dict[str, tuple[float, ...]]:
    """Share of each level, as text: in the data, then by version of the synthetic sets, their mean.

    At most 30 levels: those that are most frequent in the data. Confidential.
    """
    found = [_shares(data)]
    for sets in synthetic.values():
        each = pd.concat([_shares(own) for own in sets], axis=1)
        found.append(each.fillna(0.0).mean(axis=1))
    table = pd.concat(found, axis=1).fillna(0.0)
    order = np.argsort(-table.iloc[:, 0].to_numpy(), kind="stable")[:_MOST]
    return {
        str(table.index[place]): tuple(float(share) for share in table.iloc[place])
        for place in order
    }


def _shares(column: pd.Series) -> pd.Series:
    return column.astype(str).value_counts(normalize=True)
