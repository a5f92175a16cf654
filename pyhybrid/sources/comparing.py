"""How far a release is from its table, by counts of all rows of both, made where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.mechanisms.marginals.measurement import merged
from pyhybrid.sources.counting import Counted
from pyhybrid.sources.release import kinds_of, mechanism_of
from pyhybrid.sources.source import open_source
from pyhybrid.tables.domains import MOST_BINS


def count_distances(real: Any, synthetic: Any, *, types: Mapping[str, Any]) -> pd.DataFrame:
    """Total variation distances of all one-way and two-way tables, by the engine, on all rows.

    CONFIDENTIAL: functions of the records that no epsilon covers.

    Parameters
    ----------
    real, synthetic : str, path, ibis table or DuckDB relation
        See `open_source`; of a release in parts its folder ``public/synthetic_1``.
    types : mapping of str to Kind
        Of the columns to compare, as they were released. Numbers are cut into 12 bins that the real
        table has records in.

    Returns
    -------
    DataFrame
        Columns ``column``, ``other`` (None alone) and ``distance``, in [0, 1], the furthest first.
    """
    domain = mechanism_of(kinds_of(types), {"epsilon": 1.0, "relation": "remove"}).domain
    order = {name: tuple(domain)[:place] for place, name in enumerate(domain)}
    with open_source(real) as one, open_source(synthetic) as other:
        counted = [Counted(source, domain) for source in (one, other)]
        few = {
            name: merged(own, counted[0].alone[(name,)][:, 0] / len(counted[0]), MOST_BINS)
            for name, own in domain.items()
        }
        alone = [each.one_way([*domain]) for each in counted]
        pairs = [each.two_way(few, order) for each in counted]
    named: list[tuple[str, str | None]] = [(name, None) for name in domain]
    named += [(name, read) for name, reads in order.items() for read in reads]
    tables = [[*first, *second[1:]] for first, second in zip(alone, pairs, strict=True)]
    rows = [
        (*names, float(np.abs(a.counts / a.n - b.counts / b.n).sum() / 2))
        for names, a, b in zip(named, *tables, strict=True)
    ]
    made: pd.DataFrame = pd.DataFrame(rows, columns=["column", "other", "distance"])
    ordered: pd.DataFrame = made.sort_values("distance", ascending=False, ignore_index=True)
    return ordered
