r"""Disclosure risk of synthetic records: matching on quasi-identifiers.

An intruder knows the quasi-identifiers (keys) of a target, record i of the data, and looks for it
in a synthetic set. A synthetic record matches if every key lies in the closed ball around the
target's value: abs(z_jk - x_ik) <= r_ik; categorical keys are codes with radius 0. With c_i matches
the intruder names one of them at random.

A missing key of a table equals a missing key of the same column and nothing else. Everything here
is confidential: a function of the data.

References
----------
[JC] Jiang (2025), short course on data privacy; [J22] Jiang, Raftery, Steele, Wang (2022), JASA;
[H22] Hu, Savitsky, Williams (2022), JSSAM 10:1370-1399. Expected match risk, true and false match
rate: Reiter, Mitra (2009), J. Privacy and Confidentiality 1:99-110.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    check_choice,
    check_flag,
    check_nonnegative,
    check_numeric,
    not_a_frame,
    number_of,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.rows import distinct_rows
from pyhybrid.measures.reconcile import Tables, keeps_rows, reconcile_tables, synthetic_sets

_LEAF_TARGETS = 64
_BLOCK_ELEMENTS = 2_000_000
_SLACK = 1e-12  # rounding of x - r against that of abs(z - x), relative to the largest value

Radius = float | Mapping[str, float] | None
_ULPS = 4 * float(np.finfo(np.float64).eps)
_KINDS = ("absolute", "relative")


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchingRisk:
    """Matching risk of n targets over m synthetic sets. Confidential.

    c_il is the number of records of set l that match target i; T_il is 1 if the target's own row,
    row i of set l, is among them. What needs T_il is None where rows do not correspond: without own
    rows, 1/c_il is an upper limit.

    Attributes
    ----------
    by_record : ndarray, shape (n,)
        I_i in [0, 1]: 1/c_il averaged over the sets, 0 where nothing matches: the probability that
        the intruder gives to the record he names. Smaller is safer.
    correct_by_record : ndarray, shape (n,), or None
        T_il/c_il averaged over the sets, in [0, I_i]: the probability that he names the target.
    n_matches : ndarray, shape (n,)
        c_il averaged over the sets.
    expected_match_risk : float or None
        Sum over i of T_il/c_il, averaged over the sets: targets that he names correctly, in
        [0, n].
    true_match_rate : float or None
        Share of the n targets with one match only that is their own row (c = 1, T = 1), in [0, 1].
    false_match_rate : float or None
        Share of unique matches (c = 1) that are another's row, in [0, 1]; 0 for a set without
        unique matches. Larger is safer.
    n_unique_matches, n_no_match : float
        Targets with c = 1, and with c = 0; averages over the sets.
    by_set : mapping of str to ndarray, shape (m,)
        The last five by set.
    n_targets, n_sets : int
        n and m.
    """

    by_record: FloatArray
    correct_by_record: FloatArray | None
    n_matches: FloatArray
    expected_match_risk: float | None
    true_match_rate: float | None
    false_match_rate: float | None
    n_unique_matches: float
    n_no_match: float
    by_set: dict[str, FloatArray]
    n_targets: int
    n_sets: int

    @property
    def mean_risk(self) -> float:
        """Mean of I_i over the targets."""
        return float(self.by_record.mean())

    def __repr__(self) -> str:
        return f"<MatchingRisk of {self.n_targets} targets over {number_of(self.n_sets, 'set')}>"


def match_counts(targets: Any, candidates: Any, radius: Any = 0.0) -> IntArray:
    """Number of candidates in the closed box around each target.

    Candidate j matches target i if abs(candidates[j, k] - targets[i, k]) <= radius[i, k] for every
    key k, decided in floating point exactly as a double loop would.

    Parameters
    ----------
    targets : array_like, shape (n, k)
        Keys of the targets, finite; codes for categorical ones.
    candidates : array_like, shape (n_syn, k)
        Keys of the synthetic records, finite.
    radius : array_like, broadcast to (n, k), default 0
        Finite and >= 0, in the unit of each key; 0 asks for equality.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    InvalidInput
        For wrong shapes, values that are not finite, a negative radius.

    Notes
    -----
    Equal rows are counted once. Targets are halved along the key on which they are widest spread,
    taking along the candidates that any of them can match, down to some 64 targets; candidates
    that all of these match are added without a look at each pair. Memory is O(n + n_syn).

    Examples
    --------
    >>> match_counts([[30, 1], [50, 2]], [[31, 1], [28, 1], [50, 1]], radius=[[2, 0]])
    array([2, 0])
    """
    x, z, r = _exact_keys_merged(*_checked_keys(targets, candidates, radius))
    targets_once = distinct_rows(np.hstack([x, r[:, r.any(axis=0)]]))
    candidates_once = distinct_rows(z)
    x, r, z = x[targets_once.first], r[targets_once.first], z[candidates_once.first]
    scale = np.maximum(np.abs(x).max(axis=0), np.abs(z).max(axis=0))
    boxes = _Boxes(centers=x, radius=r, slack=_SLACK * scale)
    counts = np.zeros(len(x), dtype=np.intp)
    pending = [(np.arange(len(x)), z, candidates_once.frequency.astype(np.intp))]
    while pending:
        group, near, times = pending.pop()
        if group.size > _LEAF_TARGETS and near.size:
            pending += [(part, *boxes.reached(part, near, times)) for part in boxes.halved(group)]
        elif near.size:
            counts[group] = boxes.counted(group, near, times)
    return counts[targets_once.row_of]


def matches_own_record(targets: Any, candidates: Any, radius: Any = 0.0) -> BoolArray:
    """T_i, shape (n,): True where candidate i matches target i, of rows that correspond."""
    x, z, r = _checked_keys(targets, candidates, radius)
    if len(x) != len(z):
        raise InvalidInput(
            f"rows must correspond: found {len(x)} targets and {len(z)} synthetic records"
        )
    return np.asarray((np.abs(z - x) <= r).all(axis=1))


def matching_risk_of_counts(
    counts: Sequence[IntArray], true_matches: Sequence[BoolArray] | None = None
) -> MatchingRisk:
    """Matching risk from c_il and T_il, each m arrays of shape (n,)."""
    c = np.asarray(counts)
    single, none = c == 1, c == 0
    chance = np.divide(1.0, c, out=np.zeros(c.shape), where=~none)
    by_set = {
        "n_unique_matches": single.sum(axis=1).astype(float),
        "n_no_match": none.sum(axis=1).astype(float),
    }
    correct = None
    if true_matches is not None:
        hit = np.asarray(true_matches)
        correct = chance * hit
        false = (single & ~hit).sum(axis=1).astype(float)
        uniques = by_set["n_unique_matches"]
        rate = np.divide(false, uniques, out=np.zeros_like(false), where=uniques > 0)
        by_set |= {
            "expected_match_risk": correct.sum(axis=1),
            "true_match_rate": (single & hit).mean(axis=1),
            "false_match_rate": rate,
        }
    means = {name: float(values.mean()) for name, values in by_set.items()}
    return MatchingRisk(
        by_record=chance.mean(axis=0),
        correct_by_record=None if correct is None else correct.mean(axis=0),
        n_matches=c.mean(axis=0),
        expected_match_risk=means.get("expected_match_risk"),
        true_match_rate=means.get("true_match_rate"),
        false_match_rate=means.get("false_match_rate"),
        n_unique_matches=means["n_unique_matches"],
        n_no_match=means["n_no_match"],
        by_set=by_set,
        n_targets=c.shape[1],
        n_sets=c.shape[0],
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Boxes:
    """Closed boxes around distinct targets (d, k), slack (k,). scipy's cKDTree takes no radius by
    target, and is slow where keys have ties: 15.3 s for 50,000 targets, here 0.02."""

    centers: FloatArray
    radius: FloatArray
    slack: FloatArray

    def halved(self, group: IntArray) -> tuple[IntArray, IntArray]:
        """Targets below and above the median of the key on which they are widest spread."""
        x, r = self.centers[group], self.radius[group]
        spread = np.ptp(x, axis=0)
        relative = np.divide(
            spread, r.mean(axis=0), out=np.full(spread.size, np.inf), where=r.any(axis=0)
        )
        relative[spread == 0] = 0
        order = group[np.argsort(x[:, relative.argmax()], kind="stable")]
        return order[: order.size // 2], order[order.size // 2 :]

    def reached(
        self, group: IntArray, near: FloatArray, times: IntArray
    ) -> tuple[FloatArray, IntArray]:
        """Candidates that some of the targets may match, and how often each occurs."""
        x, r = self.centers[group], self.radius[group]
        low = (x - r).min(axis=0) - self.slack
        high = (x + r).max(axis=0) + self.slack
        kept = np.ones(len(near), dtype=bool)
        for key in range(near.shape[1]):
            kept &= (near[:, key] >= low[key]) & (near[:, key] <= high[key])
        return near[kept], times[kept]

    def counted(self, group: IntArray, near: FloatArray, times: IntArray) -> IntArray:
        """Matches of each of a few targets, shape (len(own),)."""
        x, r = self.centers[group], self.radius[group]
        low = (x - r).max(axis=0) + self.slack
        high = (x + r).min(axis=0) - self.slack
        in_all = ((near >= low) & (near <= high)).all(axis=1)
        total = np.full(group.size, times[in_all].sum())
        near, times = near[~in_all], times[~in_all]
        step = max(1, _BLOCK_ELEMENTS // group.size)
        for start in range(0, len(near), step):
            block = near[start : start + step]
            inside = np.ones((group.size, len(block)), dtype=bool)
            for key in range(x.shape[1]):
                inside &= np.abs(block[:, key] - x[:, key, None]) <= r[:, key, None]
            total += inside @ times[start : start + step]
        return total


def _exact_keys_merged(
    x: FloatArray, z: FloatArray, r: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same matches with all keys of radius 0 as one code, in the last column."""
    exact = ~r.any(axis=0)
    if exact.sum() < 2:
        return x, z, r
    code = distinct_rows(np.vstack([x[:, exact], z[:, exact]])).row_of
    near = [part[:, ~exact] for part in (x, z, r)]
    return (
        np.column_stack([near[0], code[: len(x)]]),
        np.column_stack([near[1], code[len(x) :]]),
        np.column_stack([near[2], np.zeros(len(x))]),
    )


def _checked_keys(
    targets: Any, candidates: Any, radius: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    x, z = check_numeric(targets, "targets"), check_numeric(candidates, "candidates")
    if x.ndim != 2 or z.ndim != 2 or x.shape[1] != z.shape[1] or not (x.size and z.size):
        raise InvalidInput(
            "targets and candidates must have shapes (n, k) and (n_syn, k), none of them empty: "
            f"found {x.shape} and {z.shape}"
        )
    r = check_numeric(radius, "radius")
    try:
        r = np.broadcast_to(r, x.shape)
    except ValueError:
        raise InvalidInput(f"radius must broadcast to {x.shape}: found {r.shape}") from None
    for name, values in (("targets", x), ("candidates", z), ("radius", r)):
        wrong = np.argwhere(~np.isfinite(values))
        if wrong.size:
            raise InvalidInput(
                f"{name} must be finite: row {wrong[0][0]}, key {wrong[0][1]} is not"
            )
    if (r < 0).any():
        raise InvalidInput(f"radius must be >= 0: found {r.min():g}")
    return x, z, r


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
    ball around the target's value. See `pyhybrid.measures.matching.MatchingRisk`
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
        radius, and whatever `pyhybrid.measures.reconcile` refuses.

    Examples
    --------
    >>> real = pd.DataFrame({"age": [30, 50, 70], "sex": ["f", "m", "m"]})
    >>> sets = pd.DataFrame({"age": [31, 28, 71], "sex": ["f", "f", "m"]})
    >>> matching_risk(real, sets, keys=["age", "sex"], radius={"age": 2}).by_record
    array([0.5, 0. , 1. ])
    """
    tables = reconcile_tables(real, synthetic, columns=_named(keys, "keys"), what="key")
    columns = list(tables.real.columns)
    boxes = _KeyBoxes.of(tables, columns, _reach(tables, columns, radius, kind))
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
class _KeyBoxes:
    """Keys of targets and candidates as numbers, and the radius of each target by key."""

    targets: FloatArray
    radius: FloatArray
    sets: list[FloatArray]

    @classmethod
    def of(
        cls, tables: Tables, columns: Sequence[str], reach: Mapping[str, FloatArray]
    ) -> _KeyBoxes:
        targets = tables.numeric_keys(columns, tables.real)
        radius = np.zeros(targets.shape)
        for k, column in enumerate(columns):
            radius[:, k] = reach.get(column, 0.0)
        sets = [tables.numeric_keys(columns, table) for table in tables.synthetic]
        return cls(targets=targets, radius=radius, sets=sets)

    def beside(self, other: _KeyBoxes) -> _KeyBoxes:
        """Boxes in the keys of both."""
        return _KeyBoxes(
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
    by_keys, by_value = (_KeyBoxes.of(tables, columns, reach) for columns in (keys, [sensitive]))
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
