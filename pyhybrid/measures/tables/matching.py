"""Matching risk, attribute risk and replicated uniques of data frames.

Definitions of the quantities are in `pyhybrid.measures.arrays.matching`; here are the tables, the
radii by key and what missing values mean: a missing key equals a missing key of the same column and
nothing else. Results are confidential: functions of the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_flag,
    check_nonnegative,
    not_a_frame,
    number_of,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.rows import distinct_rows
from pyhybrid.measures.arrays.matching import (
    MatchingRisk,
    match_counts,
    matches_own_record,
    matching_risk_of_counts,
)
from pyhybrid.measures.tables.reconcile import (
    Tables,
    keeps_rows,
    reconcile_tables,
    synthetic_sets,
)

Radius = float | Mapping[str, float] | None
_ULPS = 4 * float(np.finfo(np.float64).eps)
_KINDS = ("absolute", "relative")


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributeRisk:
    """How well the matches of a target tell its sensitive value. Confidential.

    Attributes
    ----------
    by_record : ndarray, shape (n,)
        A_i in [0, 1]: of the synthetic records that match target i on the keys, the share whose
        sensitive value lies within the radius of the target's; 0 where nothing matches; averaged
        over the sets. Smaller is safer.
    overall : float
        Mean of A_i.
    baseline : float
        The same without knowledge of the target's keys: the share of ALL synthetic records whose
        sensitive value lies within the radius of the target's, averaged over targets and sets.
    holdout : float or None
        Mean of A_i over records that were not in the data. By how far `overall` is
        above it, being in the data adds to the risk. The rest is learned about anybody.
    n_no_match : float
        Targets without a match, average over the sets.
    n_targets, n_sets : int
    """

    by_record: FloatArray
    overall: float
    baseline: float
    holdout: float | None
    n_no_match: float
    n_targets: int
    n_sets: int

    @property
    def excess(self) -> float | None:
        """`overall` - `holdout`, in [-1, 1]; 0 if being in the data adds nothing."""
        return None if self.holdout is None else self.overall - self.holdout

    def __repr__(self) -> str:
        return f"<AttributeRisk of {self.n_targets} targets over {number_of(self.n_sets, 'set')}>"


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplicatedUniques:
    """Records that are alone with their keys in the data and in a synthetic set. Confidential.

    Attributes
    ----------
    n_unique_real : int
        Records of the data that share their keys with no other.
    n_unique_synthetic : float
        The same in a synthetic set, average over the sets.
    n_replicated : float
        Key combinations that occur exactly once in the data and exactly once in the set; average
        over the sets.
    share : float
        `n_replicated` over the records of the data, in [0, 1]. Smaller is safer.
    by_set : ndarray, shape (m,)
        Replicated uniques of each set.
    """

    n_unique_real: int
    n_unique_synthetic: float
    n_replicated: float
    share: float
    by_set: FloatArray


def matching_risk(
    real: Any,
    synthetic: Any,
    *,
    keys: Sequence[str],
    radius: Radius = None,
    kind: str | Mapping[str, str] = "absolute",
    rows_correspond: bool | None = None,
) -> MatchingRisk:
    """Risk that an intruder who knows the keys of a record of the data finds it in synthetic sets.

    Record j of a set matches target i if each key is equal or, with a radius, lies in the closed
    ball around the target's value. See `pyhybrid.measures.arrays.matching.MatchingRisk`
    for what is computed.

    Parameters
    ----------
    real : DataFrame, n rows
        The data, all of whose records are targets. Confidential; not modified.
    synthetic : DataFrame or sequence of m DataFrames
        Synthetic sets from anywhere.
    keys : sequence of str
        Columns that the intruder knows.
    radius : number, or mapping of key to number, optional
        Largest distance that matches, >= 0. A number holds for every key with numbers or dates
        (days), codes among them; a mapping for the keys it names. All other keys must be equal.
    kind : {"absolute", "relative"} or mapping of key to these, default "absolute"
        Unit of the radius: that of the column, or the target's absolute value (0.1: within 10 %).
    rows_correspond : bool, optional
        Whether row i of each set is the synthetic version of row i of the data, as in partial
        synthesis and masking. If omitted: whether each set has n rows and shares with the data,
        row by row, some column (key or not) that varies.

    Returns
    -------
    MatchingRisk
        T, and with it expected match risk, true and false match rate, needs rows that correspond;
        without them it is not known which row is a target's own, and these are None.

    Raises
    ------
    InvalidInput
        For a key that is absent or all missing, no key, a radius on a key of text, a negative
        radius, and whatever `pyhybrid.measures.tables.reconcile` refuses.

    Examples
    --------
    >>> real = pd.DataFrame({"age": [30, 50, 70], "sex": ["f", "m", "m"]})
    >>> sets = pd.DataFrame({"age": [31, 28, 71], "sex": ["f", "f", "m"]})
    >>> matching_risk(real, sets, keys=["age", "sex"], radius={"age": 2}).by_record
    array([0.5, 0. , 1. ])
    """
    tables = reconcile_tables(real, synthetic, columns=_named(keys, "keys"), what="key")
    columns = list(tables.real.columns)
    boxes = _Boxes.of(tables, columns, _reach(tables, columns, radius, kind))
    true_matches = None
    if _correspond(real, synthetic, rows_correspond):
        true_matches = [
            matches_own_record(boxes.targets, candidates, boxes.radius) for candidates in boxes.sets
        ]
    return matching_risk_of_counts(boxes.counts(), true_matches)


def attribute_risk(
    real: Any,
    synthetic: Any,
    *,
    sensitive: str,
    keys: Sequence[str],
    radius: Radius = None,
    kind: str | Mapping[str, str] = "absolute",
    holdout: Any = None,
) -> AttributeRisk:
    """Share of a target's matches whose sensitive value lies within a radius of the target's own.

    Parameters
    ----------
    real, synthetic, keys, radius, kind
        As in `matching_risk`; `radius` and `kind` may name the sensitive column, too, and a
        number holds for it if it is numeric. Without a radius the value must be equal.
    sensitive : str
        The column that the intruder wants to learn; not one of the keys.
    holdout : DataFrame, optional
        Records of the same population that were not used for the synthesis: the same risk is
        computed for them, as a baseline.

    Raises
    ------
    InvalidInput
        As `matching_risk`; and if `sensitive` is among the keys.
    """
    named = _named(keys, "keys")
    if sensitive in named:
        raise InvalidInput(f"sensitive must not be among the keys: {sensitive!r} is")
    columns = [*named, sensitive]
    tables = reconcile_tables(real, synthetic, columns=columns, what="key")
    shares, prior, unmatched = _attribute_shares(tables, named, sensitive, radius, kind)
    outside = None
    if holdout is not None:
        others = _like(tables, real, holdout, columns)
        outside = float(_attribute_shares(others, named, sensitive, radius, kind)[0].mean())
    return AttributeRisk(
        by_record=shares,
        overall=float(shares.mean()),
        baseline=prior,
        holdout=outside,
        n_no_match=unmatched,
        n_targets=shares.size,
        n_sets=len(tables.synthetic),
    )


def replicated_uniques(
    real: Any, synthetic: Any, *, keys: Sequence[str] | None = None
) -> ReplicatedUniques:
    """Count key combinations that occur once in the data and once in a synthetic set.

    Parameters
    ----------
    real, synthetic
        As in `matching_risk`; rows need not correspond.
    keys : sequence of str, optional
        Columns that must be equal; all columns if omitted.
    """
    named = None if keys is None else _named(keys, "keys")
    tables = reconcile_tables(real, synthetic, columns=named, what="key")
    columns = list(tables.real.columns)
    alone = []
    for table in (tables.real, *tables.synthetic):
        rows = tables.numeric_keys(columns, table)
        distinct = distinct_rows(rows)
        alone.append(rows[distinct.first[distinct.frequency == 1]])
    by_set = np.array(
        [_n_shared(alone[0], rows_alone) for rows_alone in alone[1:]], dtype=np.float64
    )
    return ReplicatedUniques(
        n_unique_real=len(alone[0]),
        n_unique_synthetic=float(np.mean([len(rows_alone) for rows_alone in alone[1:]])),
        n_replicated=float(by_set.mean()),
        share=float(by_set.mean()) / len(real),
        by_set=by_set,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Boxes:
    """Keys of targets and candidates as numbers, and the radius of each target by key."""

    targets: FloatArray
    radius: FloatArray
    sets: list[FloatArray]

    @classmethod
    def of(cls, tables: Tables, columns: Sequence[str], reach: Mapping[str, FloatArray]) -> _Boxes:
        targets = tables.numeric_keys(columns, tables.real)
        radius = np.zeros(targets.shape)
        for k, column in enumerate(columns):
            radius[:, k] = reach.get(column, 0.0)
        sets = [tables.numeric_keys(columns, table) for table in tables.synthetic]
        return cls(targets=targets, radius=radius, sets=sets)

    def beside(self, other: _Boxes) -> _Boxes:
        """Boxes in the keys of both."""
        return _Boxes(
            targets=np.hstack([self.targets, other.targets]),
            radius=np.hstack([self.radius, other.radius]),
            sets=[np.hstack(pair) for pair in zip(self.sets, other.sets, strict=True)],
        )

    def counts(self) -> list[npt.NDArray[np.intp]]:
        """Matches of each target in each set."""
        return [match_counts(self.targets, candidates, self.radius) for candidates in self.sets]


def _attribute_shares(
    tables: Tables,
    keys: Sequence[str],
    sensitive: str,
    radius: Radius,
    kind: str | Mapping[str, str],
) -> tuple[FloatArray, float, float]:
    """A_i (n,), the share within the radius among all records, targets without a match."""
    reach = _reach(tables, [*keys, sensitive], radius, kind)
    by_keys, by_value = (_Boxes.of(tables, columns, reach) for columns in (keys, [sensitive]))
    matched, both = by_keys.counts(), by_keys.beside(by_value).counts()
    shares = [
        np.divide(b, c, out=np.zeros(len(b)), where=c > 0)
        for b, c in zip(both, matched, strict=True)
    ]
    sizes = map(len, tables.synthetic)
    prior = [c.mean() / size for c, size in zip(by_value.counts(), sizes, strict=True)]
    unmatched = [(c == 0).sum() for c in matched]
    return np.mean(shares, axis=0), float(np.mean(prior)), float(np.mean(unmatched))


def _like(tables: Tables, real: pd.DataFrame, holdout: pd.DataFrame, columns: list[str]) -> Tables:
    """The records outside the data in place of the data, read by the data's kinds and levels."""
    if not isinstance(holdout, pd.DataFrame):
        raise not_a_frame(holdout, "holdout")
    try:
        read = reconcile_tables(real, [holdout], columns=columns, what="key")
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("synthetic set 1", "holdout")) from None
    return Tables(real=read.synthetic[0], synthetic=tables.synthetic, names=tables.names)


def _correspond(real: pd.DataFrame, synthetic: Any, rows_correspond: bool | None) -> bool:
    sets = synthetic_sets(synthetic)
    if rows_correspond is None:
        return all(keeps_rows(real, table) for table in sets)
    unlike = [number for number, table in enumerate(sets, start=1) if len(table) != len(real)]
    if check_flag(rows_correspond, "rows_correspond") and unlike:
        raise InvalidInput(
            f"rows can correspond only in sets of {len(real)} rows: synthetic set {unlike[0]} has "
            f"{len(sets[unlike[0] - 1])}"
        )
    return bool(rows_correspond)


def _named(names: Any, what: str) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not len(names):
        raise InvalidInput(f"{what} must be a sequence of column names: found {names!r}")
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise InvalidInput(f"{what} must be named once: {twice[0]!r} is there twice")
    return list(names)


def _reach(
    tables: Tables, columns: Sequence[str], radius: Radius, kind: str | Mapping[str, str]
) -> dict[str, FloatArray]:
    """Radius of each target, (n,), by the columns that have one."""
    kinds = _kinds(columns, kind)
    reach = {}
    for column, width in _radii(tables, columns, radius).items():
        size = tables.real[column].fillna(0.0).abs().to_numpy(dtype=np.float64)
        ball = width * (size if kinds[column] == "relative" else np.ones_like(size))
        # 0.8 - 0.7 is above 0.1 by the rounding of floats, which the ball is closed for
        reach[column] = np.where(ball > 0, ball + _ULPS * (size + ball), 0.0)
    return reach


def _radii(tables: Tables, columns: Sequence[str], radius: Radius) -> dict[str, float]:
    if radius is None:
        return {}
    numbers = [column for column in columns if tables.is_number(column)]
    if not isinstance(radius, Mapping):
        if not numbers:
            raise InvalidInput("a radius needs a key with numbers: all keys are categorical")
        radius = dict.fromkeys(numbers, radius)
    for column, value in radius.items():
        if column not in columns:
            raise InvalidInput(f"radius must name keys: {column!r} is not one of them")
        if column not in numbers:
            raise InvalidInput(f"key {column!r} must hold numbers to have a radius: found text")
        check_nonnegative(value, f"radius of {column!r}")
    return {column: float(value) for column, value in radius.items()}


def _kinds(columns: Sequence[str], kind: str | Mapping[str, str]) -> dict[str, str]:
    if isinstance(kind, Mapping):
        unknown = [column for column in kind if column not in columns]
        if unknown:
            raise InvalidInput(f"kind must name keys: {unknown[0]!r} is not one of them")
        by_column = {
            column: check_choice(kind[column], f"kind of {column!r}", _KINDS) for column in kind
        }
        return dict.fromkeys(columns, "absolute") | by_column
    return dict.fromkeys(columns, check_choice(kind, "kind", _KINDS))


def _n_shared(first: FloatArray, second: FloatArray) -> int:
    """Rows in both; the rows of each are distinct."""
    pooled = np.vstack([first, second])
    return int((distinct_rows(pooled).frequency == 2).sum()) if len(pooled) else 0
