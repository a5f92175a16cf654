"""How far a release is from its table, by counts of all rows of both, made where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.marginals.domain import ColumnDomain, merged
from pyhybrid.models.columns.kinds import Number
from pyhybrid.sources.counting import Counted
from pyhybrid.sources.release import mechanism_of
from pyhybrid.sources.source import Source, load_library, opened
from pyhybrid.tables.domains import MOST_BINS
from pyhybrid.tables.table_spec import kinds_of

_QUANTILES = {"10 %": 0.1, "median": 0.5, "90 %": 0.9}


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
    with opened(real) as one, opened(synthetic) as other:
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


def compare_numbers(real: Any, synthetic: Any, *, types: Mapping[str, Any]) -> pd.DataFrame:
    """Means, quantiles and missing shares of columns of numbers, by the engine, on all rows.

    CONFIDENTIAL: functions of the records that no epsilon covers.

    Parameters
    ----------
    real, synthetic, types
        See `count_distances`.

    Returns
    -------
    DataFrame
        Columns ``column``, ``quantity`` ("mean", "10 %", "median", "90 %", "missing"), ``real`` and
        ``synthetic``. Quantiles are those of the cells that were released, without an end within a
        cell: at most the width of one cell off.
    """
    kinds = {name: own for name, own in kinds_of(types).items() if isinstance(own, Number)}
    domain = mechanism_of(kinds_of(types), {"epsilon": 1.0, "relation": "remove"}).domain
    own = {name: domain[name] for name in kinds}
    with opened(real) as one, opened(synthetic) as other:
        found = [_numbers_of(source, own) for source in (one, other)] if own else [{}, {}]
    rows = [(*key, value, found[1][key]) for key, value in found[0].items()]
    made: pd.DataFrame = pd.DataFrame(rows, columns=["column", "quantity", "real", "synthetic"])
    return made


def _numbers_of(source: Source, domain: Mapping[str, ColumnDomain]) -> dict[tuple[str, str], float]:
    counted, table, found = Counted(source, domain), source.table, {}
    nan = load_library("ibis").literal("nan").cast("float64")
    asked = {
        f"mean{place}": table[name].cast("float64").nullif(nan).mean()
        for place, name in enumerate(domain)
    }
    (means,) = source.ask(table.agg(**asked))
    for (name, own), mean in zip(domain.items(), means, strict=True):
        counts = counted.alone[(name,)][:, 0].astype(np.float64)
        found[name, "mean"] = float("nan") if mean is None else float(mean)
        for label, share in _QUANTILES.items():
            found[name, label] = _quantile(own, counts, share)
        if own.missing:
            found[name, "missing"] = counts[-1] / counts.sum()
    return found


def _quantile(domain: ColumnDomain, counts: FloatArray, share: float) -> float:
    """The start of the cell that a share of the records with a value is below or in."""
    starts = np.array([*map(float, domain.levels), *domain.bins[:-1]])
    order, held = np.argsort(starts), counts[: starts.size]
    below = np.cumsum(held[order])
    place = int(np.searchsorted(below, share * below[-1]))
    return float(starts[order][min(place, starts.size - 1)])
