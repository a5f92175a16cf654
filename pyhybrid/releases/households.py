"""Synthetic persons of a household that agree: one head, equal values, sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.models.formula.row_rules import RowRule, read_rules, rules_met_by
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.postprocess import afterwards_of
from pyhybrid.releases.postprocessed import changed_release, check_columns, check_synthesized
from pyhybrid.releases.release import Release

__all__ = ["summed_anew", "unit_codes", "with_households"]

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
_DIGITS = 10  # of a sum: floating-point noise is cut off


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
        value of a random row of the set that has another, not governed one; of none, a random row
        gets it.
    sums : mapping of str to str
        Column of the household by the column whose synthetic values it is the sum of (missing ones
        count as 0). One that was not synthesized is replaced, too, and counts as synthesized from
        then on.
    eligible : str, optional
        Rule as in `SequentialSynthesis`, e.g. ``"age >= 16"``, for rows that may have a value of
        `one` or `at_most_one`; in a household where no row meets it, any may.
    seed : int, optional

    Returns
    -------
    Release
        Of the same charge. Columns that were read as they are in the data (the unit, those of
        `eligible`) must be published with it: `Release.save` refuses to leave them out.

    Raises
    ------
    InvalidInput
        For a column that is not there, or was not synthesized and would be changed; for rules that
        no household can meet together; for a value that no row, or every row, of a synthetic set
        has.
    """
    release.check_seal()
    rules = _Rules.of(same, one, at_most_one, sums)
    columns = list(release.synthetic[0].columns)
    check_columns([unit, *rules.sums, *rules.sums.values()], columns)
    rules.check(release, unit)
    rule = None if eligible is None else read_rules([eligible], columns)[0]
    rng = streams(seed).generator("households")

    def agreeing(table: pd.DataFrame) -> pd.DataFrame:
        codes = unit_codes(table, unit)
        if rule is not None:
            rules_met_by(table, [rule])
        for asked, fill in ((rules.one, True), (rules.at_most_one, False)):
            for column, value in asked.items():
                rows = _single(table, column, value, codes, rule, rules, fill=fill, rng=rng)
                table = _taken(table, column, rows)
        first = pd.Series(np.arange(len(table))).groupby(codes).transform("first")
        for column in rules.same:
            table = _taken(table, column, first.to_numpy(dtype=np.intp))
        for column, part in rules.sums.items():
            summed = _summed(table, part, codes, table[column].dtype)
            table = with_columns(table, {column: summed})
        return table

    own = {"unit": unit, **rules.described(), "eligible": eligible}
    reads = [unit, *(() if rule is None else rule.columns)]
    return changed_release(
        release, agreeing, "households", own, reads=reads, derived=list(rules.sums)
    )


def unit_codes(table: pd.DataFrame, unit: str) -> IntArray:
    """Number of each row's unit, from 0 in the order of first rows, shape (n,)."""
    codes = pd.factorize(table[unit])[0]
    if (codes < 0).any():
        raise InvalidInput(f"unit {unit!r} must not be missing: {(codes < 0).sum()} rows are")
    return np.asarray(codes, dtype=np.intp)


class _Rules:
    """What rows of a household must meet together."""

    def __init__(
        self,
        same: Sequence[str],
        one: Mapping[str, Any],
        at_most_one: Mapping[str, Any],
        sums: Mapping[str, str],
    ) -> None:
        self.same, self.one = list(same), dict(one)
        self.at_most_one, self.sums = dict(at_most_one), dict(sums)

    @classmethod
    def of(cls, same: Any, one: Any, at_most_one: Any, sums: Any) -> _Rules:
        """Checked for their forms, and for what no household could meet."""
        for name, given in (("one", one), ("at_most_one", at_most_one), ("sums", sums)):
            if given is not None and not isinstance(given, Mapping):
                raise InvalidInput(f"{name} must be a mapping by column: found {given!r}")
        if isinstance(same, str):
            raise InvalidInput(f"same must be a list of columns: found {same!r}")
        made = cls(same, one or {}, at_most_one or {}, sums or {})
        if not (made.same or made.one or made.at_most_one or made.sums):
            raise InvalidInput("households must be given same, one, at_most_one or sums")
        single = {*made.one, *made.at_most_one}
        both = sorted(single & set(made.same))
        twice = [c for c in made.one if c in made.at_most_one
                 and made.one[c] == made.at_most_one[c]]  # fmt: skip
        chained = sorted(set(made.sums) & {*made.sums.values(), *single, *made.same})
        for names, why in (
            (both, "is to have one value in a household, and one row alone with a value"),
            (twice, "has the same value in one and at_most_one"),
            (chained, "is a sum, and is changed or summed itself"),
        ):
            if names:
                raise InvalidInput(f"no household can be of this composition: {names[0]!r} {why}")
        return made

    def check(self, release: Release, unit: str) -> None:
        """Raise InvalidInput for columns that must not be changed, or cannot be summed."""
        check_synthesized(release, [*self.same, *self.one, *self.at_most_one, *self.sums.values()])
        table = release.synthetic[0]
        for whole, part in self.sums.items():
            if whole == unit or whole in release.predictors:
                what = "the unit" if whole == unit else "read by a model as it is in the data"
                raise InvalidInput(f"{whole!r} must not be replaced by a sum: it is {what}")
            for name in (whole, part):
                if not pd.api.types.is_numeric_dtype(table[name].dtype):
                    raise InvalidInput(f"{name!r} must hold numbers, for sums of a household")

    def governed(self, column: str) -> list[Any]:
        """Values of the column that rows do not take by chance."""
        return [own[column] for own in (self.one, self.at_most_one) if column in own]

    def described(self) -> dict[str, Any]:
        """Public settings."""
        return {
            "same": self.same, "one": self.one, "at_most_one": self.at_most_one, "sums": self.sums
        }  # fmt: skip


def _single(
    table: pd.DataFrame,
    column: str,
    value: Any,
    codes: IntArray,
    rule: RowRule | None,
    rules: _Rules,
    *,
    fill: bool,
    rng: np.random.Generator,
) -> IntArray:
    """Row whose value each row takes, so that one of a household has `value`, shape (n,)."""
    has, others = _has(table[column], value), np.ones(len(table), dtype=bool)
    for governed in rules.governed(column):
        others &= ~_has(table[column], governed)
    if not has.any() or not others.any():
        raise InvalidInput(
            f"{column!r} must be {value!r} in some rows of a synthetic set, and in others what no "
            f"rule governs: it is in {'none' if not has.any() else 'all'}"
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
    rows[loses] = rng.choice(np.flatnonzero(others), size=loses.size)
    return rows


def _has(values: pd.Series, value: Any) -> BoolArray:
    return np.asarray((values == value).fillna(False).to_numpy(dtype=bool))


def _taken(table: pd.DataFrame, column: str, rows: IntArray) -> pd.DataFrame:
    """The table with the column's values of other rows."""
    values = table[column].iloc[rows].set_axis(table.index)
    return with_columns(table, {column: values})


def summed_anew(table: pd.DataFrame, settings: Mapping[str, Any], part: str) -> pd.DataFrame:
    """The table with all sums of `part` that its settings name, after a change of it."""
    for own in (done["households"] for done in afterwards_of(settings) if "households" in done):
        for whole in (name for name, summed in own.get("sums", {}).items() if summed == part):
            values = _summed(table, part, unit_codes(table, own["unit"]), table[whole].dtype)
            table = with_columns(table, {whole: values})
    return table


def _summed(table: pd.DataFrame, part: str, codes: IntArray, dtype: Any) -> pd.Series:
    """Sum of the unit of each row, in the dtype of the column it replaces where that holds it."""
    summed: pd.Series = table[part].groupby(codes).transform("sum")
    if pd.api.types.is_float_dtype(summed.dtype):
        return summed.round(_DIGITS)
    return summed.astype(dtype)
