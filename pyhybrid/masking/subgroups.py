r"""Risk subgroups: how many others share a record's keys [J22], [JC].

low: at least k0 other records match on all keys; medium: at least k0 match on those with levels,
but fewer also on the continuous ones; high: the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import check_count, check_nonnegative, not_a_frame
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.columns import check_keys, checked_names, read_column
from pyhybrid.masking.masks import SUBGROUPS
from pyhybrid.measures.matching import match_counts

_MISSING = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskSubgroups:
    """Risk subgroup of each record. Confidential.

    Attributes
    ----------
    by_record : ndarray of str, shape (n,)
        "low", "medium" or "high".
    n_matches, n_matches_levels : ndarray of int, shape (n,)
        Other records that match on all keys, and on those with levels only.
    k0 : int
    radius : mapping of str to float
        Of the continuous keys, in their own units.
    keys : tuple of str
    labels : Index, length n
    """

    by_record: npt.NDArray[np.str_]
    n_matches: npt.NDArray[np.intp]
    n_matches_levels: npt.NDArray[np.intp]
    k0: int
    radius: Mapping[str, float]
    keys: tuple[str, ...]
    labels: pd.Index

    def __repr__(self) -> str:
        return f"<RiskSubgroups of {len(self.labels)} records, confidential>"

    @property
    def table(self) -> pd.DataFrame:
        """Records, share, median matches of each subgroup: subgroup, records, share, ..."""
        rows = []
        for group in SUBGROUPS:
            members = self.by_record == group
            rows.append(
                {
                    "subgroup": group,
                    "records": int(members.sum()),
                    "share": float(members.mean()),
                    "median_matches": _median(self.n_matches[members]),
                    "median_matches_levels": _median(self.n_matches_levels[members]),
                }
            )
        table: pd.DataFrame = pd.DataFrame(rows)
        return table


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

    Raises
    ------
    InvalidInput
        For a key that is absent, constant, all missing or of a type that no model covers, k0 < 1,
        a negative radius, or one of a key that is not continuous.
    """
    if not isinstance(df, pd.DataFrame):
        raise not_a_frame(df)
    names = checked_names(keys, "keys")
    check_keys(names, df)
    k0 = check_count(k0, "k0")
    columns = [read_column(df[k], what="key", kind=(types or {}).get(k)) for k in names]
    continuous = [c for c in columns if c.kind == "continuous"]
    radii = _radii(radius, [c.name for c in continuous])
    codes = [np.where(c.missing, _MISSING, c.values) for c in columns if c.kind != "continuous"]
    numbers: list[npt.NDArray[Any]] = []
    for c in continuous:
        numbers.append(df[c.name].to_numpy(dtype=np.float64, na_value=np.nan))
        codes.append(np.where(c.missing, 1, 0) if c.missing.any() else np.zeros(len(df)))
    n_levels = len(columns) - len(continuous)
    by_level = _others(codes[:n_levels], [], [], len(df))
    on_all = _others(codes, numbers, [radii[c.name] for c in continuous], len(df))
    groups = np.where(on_all >= k0, "low", np.where(by_level >= k0, "medium", "high"))
    return RiskSubgroups(
        by_record=groups, n_matches=on_all, n_matches_levels=by_level, k0=k0, radius=radii,
        keys=names, labels=df.index,
    )  # fmt: skip


def _others(
    codes: list[npt.NDArray[Any]], numbers: list[npt.NDArray[Any]], radii: list[float], n: int
) -> npt.NDArray[np.intp]:
    """Other records in the box around each record; a missing number is a code of its own."""
    parts = [*codes, *(np.where(np.isnan(x), 0.0, x) for x in numbers)]
    if not parts:
        return np.full(n, n - 1)
    table = np.column_stack(parts).astype(np.float64)
    return np.asarray(match_counts(table, table, [*([0.0] * len(codes)), *radii]) - 1)


def _radii(radius: Any, continuous: list[str]) -> dict[str, float]:
    by_key = radius if isinstance(radius, Mapping) else dict.fromkeys(continuous, radius or 0.0)
    for name, value in by_key.items():
        if name not in continuous:
            raise InvalidInput(f"radius must be of continuous keys: {name!r} is none")
        check_nonnegative(value, f"radius of {name!r}")
    return {name: float(by_key.get(name, 0.0)) for name in continuous}


def _median(values: npt.NDArray[np.intp]) -> float:
    return float(np.median(values)) if values.size else float("nan")
