"""What a release may be made to agree with afterwards: households, public totals, a number of rows.

Each function here works on synthetic values and public settings alone, so that it is
post-processing and costs nothing: it changes no column that was not synthesized, and writes what it
did into the release's public settings. Columns of the tables that it reads as they are in the data
(a household, a region) are published with them: leave none of these out afterwards. A ledger takes
a release once, as it is then: change it before it is entered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.checks import FloatArray, check_count, check_finite
from pyhybrid.errors import InvalidInput
from pyhybrid.measures.survey import design_weights
from pyhybrid.models.row_rules import RowRule, read_rules
from pyhybrid.randomness import generator_of
from pyhybrid.releases.release import Release

__all__ = ["with_households", "with_rows", "with_totals"]

IntArray = npt.NDArray[np.intp]


def with_households(
    release: Release,
    *,
    unit: str,
    same: Sequence[str] = (),
    one: Mapping[str, Any] | None = None,
    at_most_one: Mapping[str, Any] | None = None,
    sums: Mapping[str, str] | None = None,
    eligible: str | None = None,
    seed: int | None = None,
) -> Release:
    """The release with synthetic values that agree within households.

    Which rows make up a household is kept as in the data: sizes of households are published.

    Parameters
    ----------
    release : Release
    unit : str
        Column of the tables that says whose rows they are.
    same : sequence of str
        Columns with one value in a household: that of its first row.
    one, at_most_one : mapping of column to value
        Value that exactly one row of a household has, or at most one, e.g.
        ``{"relation": "head"}``. Of several, one drawn at random keeps it, and the others take the
        value of a random row of the set that has another; of none, a random row gets it.
    sums : mapping of str to str
        Column of the household by the column whose synthetic values it is the sum of. One that was
        not synthesized is replaced, too, and counts as synthesized from then on.
    eligible : str, optional
        Rule as in `SequentialSynthesis`, e.g. ``"age >= 16"``, for rows that may have a value of
        `one` or `at_most_one`; in a household where no row meets it, any may.
    seed : int, optional

    Returns
    -------
    Release
        Of the same charge.

    Raises
    ------
    InvalidInput
        For a column that is not there, or was not synthesized and would be changed; for a value
        that no row, or every row, of a synthetic set has.
    """
    release.check_seal()
    single, most, total = dict(one or {}), dict(at_most_one or {}), dict(sums or {})
    columns = list(release.synthetic[0].columns)
    _check_columns([unit, *total, *total.values()], columns)
    _check_synthesized(release, [*same, *single, *most, *total.values()])
    rule = None if eligible is None else read_rules([eligible], columns)[0]
    rng = generator_of(seed)

    def agreeing(table: pd.DataFrame) -> pd.DataFrame:
        codes = pd.factorize(table[unit])[0]
        if (codes < 0).any():
            raise InvalidInput(f"unit {unit!r} must not be missing: {(codes < 0).sum()} rows are")
        for asked, fill in ((single, True), (most, False)):
            for column, value in asked.items():
                rows = _single(table, column, value, codes, rule, fill=fill, rng=rng)
                table = _taken(table, column, rows)
        first = pd.Series(np.arange(len(table))).groupby(codes).transform("first")
        for column in same:
            table = _taken(table, column, first.to_numpy(dtype=np.intp))
        for column, part in total.items():
            whole = table[part].groupby(codes).transform("sum").astype(table[column].dtype)
            table = table.assign(**{column: whole})
        return table

    done = {"unit": unit, "same": list(same), "one": single, "at_most_one": most, "sums": total,
            "eligible": eligible}  # fmt: skip
    own = {k: v for k, v in done.items() if v}
    return _changed(release, agreeing, {"households": own}, derived=list(total))


def with_totals(
    release: Release,
    column: str,
    totals: float | Mapping[Any, float],
    *,
    by: str | None = None,
    weights: str | None = None,
) -> Release:
    """The release with synthetic values scaled to totals that are public already.

    Parameters
    ----------
    release : Release
    column : str
        Synthesized numbers >= 0. Whole ones stay whole: of the scaled values those with the largest
        remainders are rounded up, as many as the total asks for.
    totals : float, or mapping of a level of `by` to float
        PUBLIC sums over all rows, or over the rows of each level named. A total that was computed
        from the same confidential records, and is not published, is not covered by the charge.
    by : str, optional
        Column of the levels.
    weights : str, optional
        Column of the tables with design weights: sums are then weighted, of numbers that are not
        whole.

    Returns
    -------
    Release
        Of the same charge.

    Raises
    ------
    InvalidInput
        For a column that was not synthesized, negative totals or values, whole numbers with weights
        or a total that is not whole, rows that sum to 0 where the total is above 0.
    """
    release.check_seal()
    columns = list(release.synthetic[0].columns)
    _check_columns([column, *filter(None, (by, weights))], columns)
    _check_synthesized(release, [column])
    if isinstance(totals, Mapping) != (by is not None):
        raise InvalidInput("totals must be a number, or numbers by level of the column in by=")
    wanted = dict(totals) if isinstance(totals, Mapping) else {None: totals}
    for level, total in wanted.items():
        if check_finite(total, "a total") < 0:
            raise InvalidInput(f"totals must be >= 0: found {total:g} for {level!r}")

    def agreeing(table: pd.DataFrame) -> pd.DataFrame:
        values = np.array(table[column].astype("Float64").to_numpy(np.float64, na_value=np.nan))
        if (values < 0).any():
            raise InvalidInput(f"{column!r} must be >= 0 to be scaled to a total: some are below")
        whole = bool(pd.api.types.is_integer_dtype(table[column].dtype))
        if whole and weights is not None:
            raise InvalidInput(f"{column!r} holds whole numbers, which take no weights to a total")
        weight = None if weights is None else design_weights(table[weights], weights)
        for level, total in wanted.items():
            rows = np.isfinite(values)
            if by is not None:
                rows &= (table[by] == level).fillna(False).to_numpy(dtype=bool)
            own = np.ones(int(rows.sum())) if weight is None else weight[rows]
            where = column if by is None else f"{column} of {level!r}"
            values[rows] = _scaled(values[rows], own, float(total), where, whole=whole)
        filled = pd.Series(values, index=table.index)
        return table.assign(**{column: filled.astype(table[column].dtype)})

    named = {str(level): float(total) for level, total in wanted.items() if level is not None}
    done = {"column": column, "by": by, "weights": weights, "totals": named or totals}
    return _changed(release, agreeing, {"totals": {k: v for k, v in done.items() if v is not None}})


def with_rows(
    release: Release, n_rows: int, *, public: Sequence[str] = (), seed: int | None = None
) -> Release:
    """The release with another number of rows: the synthesized columns and public ones.

    Rows are drawn from each synthetic set, without replacement down to fewer rows. More rows than
    there are come with replacement: whole rows then repeat, and standard errors that take them for
    as many independent records are too small. The owner's report compares rows and is not written.

    Parameters
    ----------
    release : Release
    n_rows : int
    public : sequence of str
        Columns that were not synthesized, and are public: they stay. All others are left out. The
        columns of a survey's design count as read by the models.
    seed : int, optional

    Returns
    -------
    Release
        Of the same charge, with rows numbered from 0.

    Raises
    ------
    InvalidInput
        If a model reads a column that was neither synthesized nor is named as public: each value
        was drawn for a record of the data, with its predictors.
    """
    release.check_seal()
    rows = check_count(n_rows, "n_rows", at_least=2)
    table = release.synthetic[0]
    _check_columns(public, list(table.columns))
    kept = [c for c in table.columns if c in {*release.synthesized, *public}]
    hidden = [c for c in release.predictors if c not in kept and c not in release.decisions.drop]
    if hidden:
        raise InvalidInput(
            f"rows can be drawn anew only where no model reads confidential columns: {hidden[0]!r} "
            "is read as it is in the data; synthesize it, too, or name it in public="
        )
    rng = generator_of(seed)

    def drawn(own: pd.DataFrame) -> pd.DataFrame:
        taken = rng.choice(len(own), size=rows, replace=rows > len(own))
        return own[kept].iloc[taken].reset_index(drop=True)

    done = {"rows": rows, "public": list(public)}
    return _changed(replace(release, origin=None), drawn, {"resampled": done})


def _changed(
    release: Release,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    done: Mapping[str, Any],
    derived: Sequence[str] = (),
) -> Release:
    """The release after a change of every set, which its public settings name.

    `derived` are columns that now hold functions of synthetic values.
    """
    before = list(release.settings.get("afterwards", []))
    settings = {**release.settings, "afterwards": [*before, dict(done)]}
    made = replace(
        release,
        synthetic=[change(table) for table in release.synthetic],
        settings=settings,
        synthesized=tuple(dict.fromkeys([*release.synthesized, *derived])),
        exposed={name: why for name, why in release.exposed.items() if name not in derived},
    )
    return made.sealed()


def _single(
    table: pd.DataFrame,
    column: str,
    value: Any,
    codes: IntArray,
    rule: RowRule | None,
    *,
    fill: bool,
    rng: np.random.Generator,
) -> IntArray:
    """Row whose value each row takes, so that one of a household has `value`, shape (n,)."""
    has = (table[column] == value).fillna(False).to_numpy(dtype=bool)
    if not has.any() or has.all():
        raise InvalidInput(
            f"{column!r} must be {value!r} in some rows of a synthetic set, and another value in "
            f"others: it is in {'all' if has.all() else 'none'}"
        )
    may = np.ones(len(table), dtype=bool) if rule is None else rule.holds(table)
    # Best first: rows that may and have it, rows that may, rows that have it, others; then chance.
    rank = np.lexsort([rng.random(len(table)), ~has, ~may, codes])
    best = rank[np.concatenate([[True], np.diff(codes[rank]) > 0])]
    chosen = np.zeros(len(table), dtype=bool)
    chosen[best] = True
    if not fill:
        chosen &= np.isin(codes, codes[has])
    rows = np.arange(len(table))
    gains, loses = np.flatnonzero(chosen & ~has), np.flatnonzero(has & ~chosen)
    rows[gains] = np.flatnonzero(has)[0]
    rows[loses] = rng.choice(np.flatnonzero(~has), size=loses.size)
    return rows


def _taken(table: pd.DataFrame, column: str, rows: IntArray) -> pd.DataFrame:
    """The table with the column's values of other rows."""
    values = table[column].iloc[rows].set_axis(table.index)
    changed: pd.DataFrame = table.assign(**{column: values})
    return changed


def _scaled(
    values: FloatArray, weight: FloatArray, total: float, where: str, *, whole: bool
) -> FloatArray:
    """Values whose weighted sum is `total`."""
    found = float(weight @ values)
    if found == 0 and total > 0:
        raise InvalidInput(f"{where} must not sum to 0 in a synthetic set, to be scaled to a total")
    scaled = values * (total / found if found else 0.0)
    if not whole:
        return scaled
    if total != round(total):
        raise InvalidInput(f"the total of {where} must be a whole number: found {total:g}")
    low = np.floor(scaled * (1 + 1e-14))
    up = np.argsort(low - scaled, kind="stable")[: int(total - low.sum())]
    low[up] += 1
    return low


def _check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    for name in names:
        if name not in columns:
            raise InvalidInput(f"{name!r} must be a column of the synthetic sets")


def _check_synthesized(release: Release, names: Sequence[str]) -> None:
    for name in names:
        if name not in release.synthesized:
            raise InvalidInput(
                f"{name!r} must be a synthesized column to be changed: it is as in the data"
            )
