r"""Risk subgroups: how many others share a record's keys [J22], [JC].

low: at least k0 other records match on all keys; medium: at least k0 match on those with levels,
but fewer also on the continuous ones; high: the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import IntArray, check_count, check_nonnegative
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.columns import read_keys
from pyhybrid.masking.masks import SUBGROUPS
from pyhybrid.measures.matching import match_counts
from pyhybrid.models.formula.values import numbers_of


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskSubgroups:
    """Risk subgroup of each record, "low", "medium" or "high"; other records that match it on all
    keys (`n_matches`), and on those with levels only; radius of the continuous keys in their units.
    Confidential."""

    by_record: npt.NDArray[np.str_]  # (n,)
    n_matches: IntArray
    n_matches_levels: IntArray
    k0: int
    radius: Mapping[str, float]
    keys: tuple[str, ...]
    labels: pd.Index

    def __repr__(self) -> str:
        return f"<RiskSubgroups of {len(self.labels)} records, confidential>"

    @property
    def table(self) -> pd.DataFrame:
        """Records, share, median matches of each subgroup: subgroup, records, share, ..."""
        columns = {"median_matches": self.n_matches, "median_matches_levels": self.n_matches_levels}
        by_group = pd.DataFrame(columns).groupby(self.by_record)
        table: pd.DataFrame = by_group.median().reindex(SUBGROUPS)
        table.insert(0, "records", by_group.size().reindex(SUBGROUPS, fill_value=0))
        table.insert(1, "share", table["records"] / len(self.labels))
        numbered: pd.DataFrame = table.rename_axis("subgroup").reset_index()
        return numbered


def risk_subgroups(
    df: pd.DataFrame,
    keys: Sequence[str],
    k0: int,
    radius: float | Mapping[str, float] | None = None,
    *,
    types: Mapping[str, str] | None = None,
) -> RiskSubgroups:
    """Sort records into low, medium and high risk by how many others match them.

    Parameters
    ----------
    df : DataFrame, n rows
        The confidential data.
    keys : sequence of str
        What an intruder may know.
    k0 : int
        Other records that make a match harmless, from 1.
    radius : number, or mapping of continuous key to number, optional
        Largest distance that matches, >= 0; 0 for continuous keys that it does not name. Keys
        with levels must be equal. Missing equals missing of the same key, and nothing else.
    types : mapping of str to str, optional
        As in `MaskedImputation`.
    """
    k0 = check_count(k0, "k0")
    columns = read_keys(df, keys, types=types)
    continuous = [column for column in columns if column.kind == "continuous"]
    names = [column.name for column in continuous]
    given = radius if isinstance(radius, Mapping) else dict.fromkeys(names, radius or 0.0)
    for name, value in given.items():
        if name not in names:
            raise InvalidInput(f"radius must be of continuous keys: {name!r} is none")
        check_nonnegative(value, f"radius of {name!r}")
    radii = {name: float(given.get(name, 0.0)) for name in names}
    codes = [np.where(c.missing, -1, c.values) for c in columns if c.kind != "continuous"]
    levels = np.column_stack([np.zeros(len(df)), *codes])
    on_levels = match_counts(levels, levels) - 1
    reach = [0.0] * levels.shape[1]
    numbers = []
    for column in continuous:  # a missing number is a level of its own
        numbers += [column.missing, np.where(column.missing, 0.0, numbers_of(column.like))]
        reach += [0.0, radii[column.name]]
    table = np.column_stack([levels, *numbers])
    on_all = match_counts(table, table, reach) - 1
    groups = np.where(on_all >= k0, "low", np.where(on_levels >= k0, "medium", "high"))
    return RiskSubgroups(
        by_record=groups, n_matches=on_all, n_matches_levels=on_levels, k0=k0, radius=radii,
        keys=tuple(keys), labels=df.index,
    )  # fmt: skip
