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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    IntArray,
    check_choice,
    check_each,
    check_flag,
    check_nonnegative,
    check_numeric,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.rows import distinct_rows
from pyhybrid.measures.reconcile import (
    Tables,
    column_names,
    keeps_rows,
    reconcile_tables,
    synthetic_sets,
)

_BLOCK_TARGETS, _BLOCK_CANDIDATES = 64, 30_000
_SLACK = 1e-12  # rounding of x - r against that of abs(z - x), relative to the largest value
_ULPS = 4 * float(np.finfo(np.float64).eps)

Radius = float | Mapping[str, float] | None
Kind = str | Mapping[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchingRisk:
    """Matching risk of n targets over m synthetic sets. Confidential.

    c_il is the number of records of set l that match target i; T_il is 1 if the target's own row,
    row i of set l, is among them. What needs T_il is None where rows do not correspond: without own
    rows, 1/c_il is an upper limit. The numbers of a set are averaged over the sets.

    Attributes
    ----------
    by_record : ndarray, shape (n,)
        I_i in [0, 1]: 1/c_il, 0 where nothing matches: the probability that the intruder gives to
        the record he names. Smaller is safer.
    correct_by_record : ndarray, shape (n,), or None
        T_il/c_il, in [0, I_i]: the probability that he names the target.
    n_matches : ndarray, shape (n,)
        c_il.
    expected_match_risk : float or None
        Sum over i of T_il/c_il: targets that he names correctly, in [0, n].
    true_match_rate, false_match_rate : float or None
        Share of the n targets with one match only that is their own row (c = 1, T = 1), and of
        unique matches (c = 1) that are another's row, 0 for a set without; in [0, 1].
    n_unique_matches, n_no_match : float
        Targets with c = 1, and with c = 0.
    n_targets, n_sets : int
        n and m.
    """

    by_record: FloatArray = field(repr=False)
    correct_by_record: FloatArray | None = field(repr=False)
    n_matches: FloatArray = field(repr=False)
    expected_match_risk: float | None = None
    true_match_rate: float | None = None
    false_match_rate: float | None = None
    n_unique_matches: float
    n_no_match: float
    n_targets: int
    n_sets: int

    @property
    def mean_risk(self) -> float:
        """Mean of I_i over the targets."""
        return float(self.by_record.mean())


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
    """

    by_record: FloatArray = field(repr=False)
    overall: float
    baseline: float
    holdout: float | None

    @property
    def excess(self) -> float | None:
        """`overall` - `holdout`, in [-1, 1]; 0 if being in the data adds nothing."""
        return None if self.holdout is None else self.overall - self.holdout


def match_counts(targets: Any, candidates: Any, radius: Any = 0.0) -> IntArray:
    """Number of candidates in the closed box around each target, shape (n,).

    Candidate j matches target i if abs(candidates[j, k] - targets[i, k]) <= radius[i, k] for every
    key k, decided in floating point exactly as a double loop would.

    Parameters
    ----------
    targets, candidates : array_like, shape (n, k) and (n_syn, k)
        Keys of the targets and of the synthetic records, finite; codes for categorical ones.
    radius : array_like, broadcast to (n, k), default 0
        Finite and >= 0, in the unit of each key; 0 asks for equality.

    Examples
    --------
    >>> match_counts([[30, 1], [50, 2]], [[31, 1], [28, 1], [50, 1]], radius=[[2, 0]])
    array([2, 0])
    """
    x, z = check_numeric(targets, "targets"), check_numeric(candidates, "candidates")
    r = check_numeric(radius, "radius")
    if x.ndim != 2 or z.ndim != 2 or x.shape[1] != z.shape[1] or not (x.size and z.size):
        raise InvalidInput(
            "targets and candidates must have shapes (n, k) and (n_syn, k), none of them empty: "
            f"found {x.shape} and {z.shape}"
        )
    try:
        r = np.broadcast_to(r, x.shape)
    except ValueError:
        raise InvalidInput(f"radius must broadcast to {x.shape}: found {r.shape}") from None
    for name, values in (("targets", x), ("candidates", z), ("radius", r)):
        check_each(np.isfinite(values).all(axis=1), name + " must be finite: row {} is not")
    if (r < 0).any():
        raise InvalidInput(f"radius must be >= 0: found {r.min():g}")
    # Equal rows are counted once; both sides are sorted by the keys that must be equal and then by
    # the one that varies most for its radius: a block of targets meets a window of candidates.
    exact = ~r.any(axis=0)
    code = np.zeros(len(x) + len(z), dtype=np.intp)
    if exact.any():
        code = distinct_rows(np.vstack([x[:, exact], z[:, exact]])).row_of
    if exact.all():
        return np.bincount(code[len(x) :], minlength=code.max() + 1)[code[: len(x)]]
    near, reach = x[:, ~exact], r[:, ~exact]
    once = distinct_rows(np.column_stack([code[: len(x)], near, reach]))
    there = distinct_rows(np.column_stack([code[len(x) :], z[:, ~exact]]))
    near, reach, code_x = near[once.first], reach[once.first], code[once.first]
    z, code_z = z[there.first][:, ~exact], code[len(x) + there.first]
    key = int((np.ptp(z, axis=0) / reach.mean(axis=0)).argmax())
    order, order_z = np.lexsort((near[:, key], code_x)), np.lexsort((z[:, key], code_z))
    z, code_z, times = z[order_z], code_z[order_z], there.frequency[order_z].astype(np.intp)
    slack = _SLACK * max(np.abs(near[:, key]).max(), np.abs(z[:, key]).max())
    counts = np.zeros(len(near), dtype=np.intp)
    for block in np.array_split(order, -(-order.size // _BLOCK_TARGETS)):
        first, last = code_x[block[0]], code_x[block[-1]]
        start, end = np.searchsorted(code_z, [first, last + 1])
        if first == last:
            middle, width = near[block, key], reach[block, key]
            ends = (middle - width).min() - slack, (middle + width).max() + slack
            start, end = start + np.searchsorted(z[start:end, key], ends)
        for low in range(start, end, _BLOCK_CANDIDATES):
            window = slice(low, min(low + _BLOCK_CANDIDATES, end))
            inside = code_x[block, None] == code_z[window]
            for k in range(z.shape[1]):
                inside &= np.abs(z[window, k] - near[block, k, None]) <= reach[block, k, None]
            counts[block] += inside @ times[window]
    return counts[once.row_of]


def matching_risk(
    real: Any,
    synthetic: Any,
    *,
    keys: Sequence[str],
    radius: Radius = None,
    kind: Kind = "absolute",
    rows_correspond: bool | None = None,
) -> MatchingRisk:
    """Risk that an intruder who knows the keys of a record of the data finds it in synthetic sets.

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
        synthesis and masking. If omitted: whether each set has n rows and shares with the data, row
        by row, some column (key or not) that varies.

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
    names = column_names(keys, "keys")
    tables = reconcile_tables(real, synthetic, columns=names, what="key")
    x, radii = _boxes(tables, tables.real, _radii(tables, tables.real, names, radius, kind))
    keys_of_sets = [tables.numeric_keys(names, table) for table in tables.synthetic]
    c = np.array([match_counts(x, z, radii) for z in keys_of_sets])
    single, none = c == 1, c == 0
    chance = np.divide(1.0, c, out=np.zeros(c.shape), where=~none)
    unique = single.sum(axis=1)
    of_sets: dict[str, Any] = {"n_unique_matches": unique, "n_no_match": none.sum(axis=1)}
    correct = None
    if rows_correspond is None:
        rows_correspond = all(keeps_rows(real, table) for table in synthetic_sets(synthetic))
    lengths = [len(table) for table in tables.synthetic]
    if check_flag(rows_correspond, "rows_correspond") and {*lengths} != {len(real)}:
        raise InvalidInput(
            f"rows can correspond only in sets of {len(real)} rows: found sets of {lengths}"
        )
    if rows_correspond:
        true = np.array([(np.abs(z - x) <= radii).all(axis=1) for z in keys_of_sets])
        correct = chance * true
        of_sets |= {
            "expected_match_risk": correct.sum(axis=1),
            "true_match_rate": (single & true).mean(axis=1),
            "false_match_rate": (single & ~true).sum(axis=1) / np.maximum(unique, 1),
        }
    return MatchingRisk(
        by_record=chance.mean(axis=0),
        correct_by_record=None if correct is None else correct.mean(axis=0),
        n_matches=c.mean(axis=0),
        n_targets=c.shape[1],
        n_sets=c.shape[0],
        **{name: float(values.mean()) for name, values in of_sets.items()},
    )


def attribute_risk(
    real: Any,
    synthetic: Any,
    *,
    sensitive: str,
    keys: Sequence[str],
    radius: Radius = None,
    kind: Kind = "absolute",
    holdout: Any = None,
) -> AttributeRisk:
    """Share of a target's matches whose sensitive value lies within a radius of the target's own.

    Parameters
    ----------
    real, synthetic, keys, radius, kind
        As in `matching_risk`, and errors, too; `radius` and `kind` may name the sensitive column,
        and a number holds for it if it is numeric. Without a radius the value must be equal.
    sensitive : str
        The column that the intruder wants to learn; not one of the keys.
    holdout : DataFrame, optional
        Records of the same population that were not used for the synthesis: the same risk is
        computed for them, as a baseline.
    """
    names = column_names(keys, "keys")
    if sensitive in names:
        raise InvalidInput(f"sensitive must not be among the keys: {sensitive!r} is")
    columns = [*names, sensitive]
    tables = reconcile_tables(real, synthetic, columns=columns, what="key", holdout=holdout)
    sets = tables.synthetic if holdout is None else tables.synthetic[:-1]

    def shares_of(targets: pd.DataFrame) -> tuple[FloatArray, float]:
        """A_i (n,), and the share within the radius among all records."""
        reach = _radii(tables, targets, columns, radius, kind)

        def counts(of: Sequence[str]) -> IntArray:
            x, radii = _boxes(tables, targets, {column: reach[column] for column in of})
            return np.array([match_counts(x, tables.numeric_keys(of, t), radii) for t in sets])

        matched, within, both = (counts(of) for of in (names, [sensitive], columns))
        shares = np.divide(both, matched, out=np.zeros(both.shape), where=matched > 0)
        prior = (within.mean(axis=1) / [len(table) for table in sets]).mean()
        return shares.mean(axis=0), float(prior)

    shares, prior = shares_of(tables.real)
    others = None if holdout is None else float(shares_of(tables.synthetic[-1])[0].mean())
    return AttributeRisk(
        by_record=shares, overall=float(shares.mean()), baseline=prior, holdout=others
    )


def _boxes(
    tables: Tables, targets: pd.DataFrame, reach: Mapping[str, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Keys of the targets as numbers, and the radius of each target by key."""
    x = tables.numeric_keys([*reach], targets)
    radius = np.zeros(x.shape)  # what is missing matches what is missing
    radius[:, : len(reach)] = np.column_stack([*reach.values()])
    return x, radius


def _radii(
    tables: Tables, targets: pd.DataFrame, columns: Sequence[str], radius: Radius, kind: Kind
) -> dict[str, FloatArray]:
    """Radius of each target, (n,), by column: 0 without one."""
    numbers = [column for column in columns if tables.is_number(column)]
    if radius is not None and not isinstance(radius, Mapping):
        if not numbers:
            raise InvalidInput("a radius needs a key with numbers: all keys are categorical")
        radius = dict.fromkeys(numbers, radius)
    kinds = kind if isinstance(kind, Mapping) else dict.fromkeys(columns, kind)
    for what, by_key in (("radius", radius or {}), ("kind", kinds)):
        unknown = [column for column in by_key if column not in columns]
        if unknown:
            raise InvalidInput(f"{what} must name keys: {unknown[0]!r} is not one of them")
    radii = {column: np.zeros(len(targets)) for column in columns}
    for column, width in (radius or {}).items():
        if column not in numbers:
            raise InvalidInput(f"key {column!r} must hold numbers to have a radius: found text")
        check_nonnegative(width, f"radius of {column!r}")
        unit = kinds.get(column, "absolute")
        check_choice(unit, f"kind of {column!r}", ("absolute", "relative"))
        size = targets[column].fillna(0.0).abs().to_numpy(dtype=np.float64)
        ball = width * (size if unit == "relative" else np.ones_like(size))
        # 0.8 - 0.7 is above 0.1 by the rounding of floats, which the ball is closed for
        radii[column] = np.where(ball > 0, ball + _ULPS * (size + ball), 0.0)
    return radii
