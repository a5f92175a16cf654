"""A release that is changed afterwards: post-processing of released values, at no charge.

What is done works on synthetic values, public settings and columns that are published as they are;
it writes itself into the release's public settings (see `pyhybrid.releases.statement`). A ledger
takes a release once, as it is then: change it before it is entered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count, check_finite, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.measures.survey import design_weights
from pyhybrid.models.columns.support import decimals_of
from pyhybrid.models.formula.row_rules import RowRule, read_rules, rules_met_by
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.release import Release
from pyhybrid.releases.statement import AFTERWARDS, afterwards_of, read_afterwards, shaping_columns

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
_DIGITS = 10  # of a sum: floating-point noise is cut off
_ROUNDING = 1e-9  # of a value on its grid, relative
_MOST_ROWS = 100_000_000  # what memory holds


def changed_release(
    release: Release,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    what: str,
    own: Mapping[str, Any],
    *,
    reads: Sequence[str],
    derived: Sequence[str] = (),
) -> Release:
    """The release after a change of every set, in settings as `what`; `reads` are columns it looks
    at, of which those not synthesized must stay, `derived` hold functions of synthetic values
    now."""
    known = {*release.synthesized, *derived}
    kept = list(dict.fromkeys(name for name in reads if name not in known))
    said = {k: v for k, v in {**own, "reads": kept}.items() if v is not None and v not in ([], {})}
    settings = {**release.settings, AFTERWARDS: [*afterwards_of(release.settings), {what: said}]}
    made = replace(
        release,
        synthetic=[change(table) for table in release.synthetic],
        settings=settings,
        synthesized=tuple(dict.fromkeys([*release.synthesized, *derived])),
        exposed={name: why for name, why in release.exposed.items() if name not in derived},
    )
    return made.sealed()


def check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise InvalidInput for a name that no column of the sets has."""
    for name in names:
        if name not in columns:
            raise InvalidInput(
                f"{name!r} must be a column of the synthetic sets: it is not"
                f"{did_you_mean(name, columns)}"
            )


def check_synthesized(release: Release, names: Sequence[str]) -> None:
    """Raise InvalidInput for a column that is as in the data, and would be changed."""
    check_columns(names, list(release.synthetic[0].columns))
    for name in names:
        if name not in release.synthesized:
            raise InvalidInput(
                f"{name!r} must be a synthesized column to be changed: it is as in the data"
            )


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
        count as 0), in whose form it is. One that was not synthesized is replaced, too, whatever
        it holds in the data, and counts as synthesized from then on.
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
    rules = _Rules(
        same=[*same] if not isinstance(same, str) else same,
        one={} if one is None else one,
        at_most_one={} if at_most_one is None else at_most_one,
        sums={} if sums is None else sums,
    )
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
            table = with_columns(table, {column: _summed(table, part, codes)})
        return table

    own = {"unit": unit, **asdict(rules), "eligible": eligible}
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


@dataclass(frozen=True, kw_only=True)
class _Rules:
    """What rows of a household must meet together."""

    same: Sequence[str]
    one: Mapping[str, Any]
    at_most_one: Mapping[str, Any]
    sums: Mapping[str, str]

    def __post_init__(self) -> None:
        """Checked for their forms, and for what no household could meet."""
        for name in ("one", "at_most_one", "sums"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise InvalidInput(f"{name} must be a mapping by column: found {given!r}")
        if isinstance(self.same, str):
            raise InvalidInput(f"same must be a list of columns: found {self.same!r}")
        if not (self.same or self.one or self.at_most_one or self.sums):
            raise InvalidInput("households must be given same, one, at_most_one or sums")
        single = {*self.one, *self.at_most_one}
        both = sorted(single & {*self.same})
        missing = object()
        twice = [c for c, v in self.one.items() if self.at_most_one.get(c, missing) == v]
        chained = sorted({*self.sums} & {*self.sums.values(), *single, *self.same})
        for names, why in (
            (both, "is to have one value in a household, and one row alone with a value"),
            (twice, "has the same value in one and at_most_one"),
            (chained, "is a sum, and is changed or summed itself"),
        ):
            if names:
                raise InvalidInput(f"no household can be of this composition: {names[0]!r} {why}")

    def check(self, release: Release, unit: str) -> None:
        """Raise InvalidInput for columns that must not be changed, or cannot be summed."""
        check_synthesized(release, [*self.same, *self.one, *self.at_most_one, *self.sums.values()])
        table = release.synthetic[0]
        for whole, part in self.sums.items():
            if whole == unit or whole in release.predictors:
                what = "the unit" if whole == unit else "read by a model as it is in the data"
                raise InvalidInput(f"{whole!r} must not be replaced by a sum: it is {what}")
            if not pd.api.types.is_numeric_dtype(table[part].dtype):
                raise InvalidInput(f"{part!r} must hold numbers, for sums of a household")

    def governed(self, column: str) -> list[Any]:
        """Values of the column that rows do not take by chance."""
        return [given[column] for given in (self.one, self.at_most_one) if column in given]


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
            summed = _summed(table, part, unit_codes(table, own["unit"]))
            table = with_columns(table, {whole: summed})
    return table


def _summed(table: pd.DataFrame, part: str, codes: IntArray) -> pd.Series:
    """Sum of the unit of each row, in the form of its parts: not that of the data's own column."""
    summed: pd.Series = table[part].groupby(codes).transform("sum")
    return summed.round(_DIGITS)


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
        Synthesized numbers >= 0. Those with declared decimals (0 of whole numbers) keep them: of
        the scaled values those with the largest remainders are rounded up, as many as the total
        asks for. None exceeds a declared upper end: what would is set to it, and the others are
        scaled further. Sums of it by household, made before, are made anew.
    totals : float, or mapping of a level of `by` to float
        PUBLIC sums over all rows, or over the rows of each level named. A total that was computed
        from the same confidential records, and is not published, is not covered by the charge.
    by : str, optional
        Column of the levels.
    weights : str, optional
        Column of the tables with design weights: sums are then weighted, of numbers that are not
        whole, and met but for the rounding of the values.

    Returns
    -------
    Release
        Of the same charge. `by` and `weights` that were not synthesized must be published with it:
        `Release.save` refuses to leave them out.

    Raises
    ------
    InvalidInput
        For a column that was not synthesized, or has levels; negative totals or values; whole
        numbers with weights; a total that cannot be met: off the grid of the decimals, above what
        the upper end allows, or of rows that sum to 0.
    """
    release.check_seal()
    check_columns([*filter(None, (by, weights))], list(release.synthetic[0].columns))
    check_synthesized(release, [column])
    steps = [step for step in release.parts or (release,) if column in step.synthesized]
    if not steps:
        raise InvalidInput(f"{column!r} is the sum of another column: scale that one to a total")
    wanted = _wanted(totals, by)
    form = _Form.of(release.synthetic[0][column].dtype, steps[0].settings, column)
    if form.decimals == 0 and weights is not None:
        raise InvalidInput(f"{column!r} holds whole numbers, which take no weights to a total")

    def agreeing(table: pd.DataFrame) -> pd.DataFrame:
        values = np.array(table[column].astype("Float64").to_numpy(np.float64, na_value=np.nan))
        if (values < 0).any():
            raise InvalidInput(f"{column!r} must be >= 0 to be scaled to a total: some are below")
        weight = None if weights is None else design_weights(table[weights], weights)
        for level, total in wanted.items():
            rows = np.isfinite(values) & _of_level(table, by, level)
            where = column if by is None else f"{column} of {level!r}"
            own = None if weight is None else weight[rows]
            values[rows] = _scaled(values[rows], own, total, where, form)
        filled = pd.Series(values, index=table.index)
        scaled = with_columns(table, {column: filled.astype(table[column].dtype)})
        return summed_anew(scaled, release.settings, column)

    named = {str(level): total for level, total in wanted.items()}
    own = {
        "column": column, "by": by, "weights": weights,
        "totals": named if by is not None else wanted[None],
    }  # fmt: skip
    return changed_release(release, agreeing, "totals", own, reads=[*filter(None, (by, weights))])


def _wanted(totals: Any, by: str | None) -> dict[Any, float]:
    """Totals by level; of all rows under None."""
    if isinstance(totals, Mapping) != (by is not None):
        raise InvalidInput("totals must be a number, or numbers by level of the column in by=")
    wanted = dict(totals) if isinstance(totals, Mapping) else {None: totals}
    if not wanted:
        raise InvalidInput("totals must name at least one level")
    for level, total in wanted.items():
        if check_finite(total, "a total") < 0:
            raise InvalidInput(f"totals must be >= 0: found {total:g} for {level!r}")
    return {level: float(total) for level, total in wanted.items()}


def _of_level(table: pd.DataFrame, by: str | None, level: Any) -> Any:
    if by is None:
        return np.ones(len(table), dtype=bool)
    rows = _has(table[by], level)
    if not rows.any():
        raise InvalidInput(f"a total is for a level of {by!r} that rows have: {level!r} has none")
    return rows


@dataclass(frozen=True, kw_only=True)
class _Form:
    """Declared form of a column's values: so many decimals, at most `upper`."""

    decimals: int | None
    upper: float

    @classmethod
    def of(cls, dtype: Any, settings: Mapping[str, Any], column: str) -> _Form:
        """From the column's dtype and the public settings of the step that replaced it."""
        declared = {**settings.get("positive", {}), **settings}  # amounts of a two-part model
        domain = settings.get("domain", {}).get(column, {})
        if "bins" in domain:  # numbers of noisy marginals
            step, levels = domain.get("step"), domain.get("levels", ())
            known = None if step is None else decimals_of(np.array([step, *levels]))
            declared |= {"decimals": known, "upper": domain["bins"][-1]}
        numbers = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        if not numbers or ("levels" in declared and "n_bins" not in declared):
            raise InvalidInput(f"{column!r} must hold amounts, for a total: it has levels")
        lower, upper = (declared.get(name) for name in ("lower", "upper"))
        if isinstance(lower, (int, float)) and lower != 0:
            raise InvalidInput(
                f"{column!r} must be declared from 0 to be scaled to a total: it is from {lower:g}"
            )
        decimals = 0 if pd.api.types.is_integer_dtype(dtype) else declared.get("decimals")
        return cls(
            decimals=decimals if isinstance(decimals, int) else None,
            upper=float(upper) if isinstance(upper, (int, float)) else math.inf,
        )


def _scaled(
    values: FloatArray, weight: FloatArray | None, total: float, where: str, form: _Form
) -> FloatArray:
    """Values whose sum, weighted if there are weights, is `total`."""
    own = np.ones(values.size) if weight is None else weight
    if not (own @ values > 0) and total > 0:
        raise InvalidInput(f"{where} must not sum to 0 in a synthetic set, to be scaled to a total")
    scaled = _below(values, own, total, where, form.upper)
    if form.decimals is None:
        return scaled
    if weight is not None:
        return np.asarray(np.round(scaled, form.decimals))
    steps = 10.0**form.decimals
    return _on_grid(scaled * steps, total * steps, where) / steps


def _below(
    values: FloatArray, weight: FloatArray, total: float, where: str, upper: float
) -> FloatArray:
    """Scaled to the total, none above `upper`: what would be is set to it, the others go on."""
    scaled, free = np.zeros(values.size), values > 0
    if upper * float(weight[free].sum()) < total * (1 - _ROUNDING):
        raise InvalidInput(
            f"the total of {where} cannot be met: rows above 0 are at most {upper:g} each, and too "
            "few"
        )
    left = total
    while free.any():
        scaled[free] = values[free] * (left / float(weight[free] @ values[free]))
        over = free & (scaled > upper)
        if not over.any():
            break
        scaled[over] = upper
        left -= upper * float(weight[over].sum())
        free &= ~over
    return scaled


def _on_grid(scaled: FloatArray, total: float, where: str) -> FloatArray:
    """Whole numbers next to `scaled` whose sum is `total`, which must be whole."""
    if abs(total - round(total)) > _ROUNDING * max(1.0, total):
        raise InvalidInput(
            f"the total of {where} must be a whole number of its smallest step: it is not"
        )
    low = np.floor(scaled * (1 + 1e-14))
    up = np.argsort(low - scaled, kind="stable")[: round(total - low.sum())]
    low[up] += 1
    return low


def with_rows(
    release: Release,
    n_rows: int,
    *,
    public: Sequence[str] = (),
    unit: str | None = None,
    seed: int | None = None,
) -> Release:
    """The release with another number of rows: the synthesized columns and public ones.

    The same rows are drawn from each synthetic set, without replacement down to fewer rows. More
    rows than there are come with replacement: whole rows then repeat, and standard errors that take
    them for as many independent records are too small. The owner's report compares the sets as they
    were before.

    Parameters
    ----------
    release : Release
    n_rows : int
        At least 2, and at most 10^8.
    public : sequence of str
        Columns that were not synthesized, and are public: they stay. All others are left out.
    unit : str, optional
        Column that says which rows belong together, e.g. the household: whole units are drawn until
        there are `n_rows` rows or more, and numbered from 1. Needed where rows of a household were
        made to agree.
    seed : int, optional

    Returns
    -------
    Release
        Of the same charge, with rows numbered from 0.

    Raises
    ------
    InvalidInput
        If a model, or what was done before, reads a column that was neither synthesized nor is
        named as public: each value was drawn for a record of the data, with its predictors. For
        single rows of households that were made to agree.
    """
    release.check_seal()
    rows = check_count(n_rows, "n_rows", at_least=2)
    if rows > _MOST_ROWS:
        raise InvalidInput(f"n_rows must be at most {_MOST_ROWS:,}: found {rows:g}")
    if isinstance(public, str):
        raise InvalidInput(f"public must be a list of columns: found {public!r}")
    table, named = release.synthetic[0], [*public, *([] if unit is None else [unit])]
    check_columns(named, list(table.columns))
    kept = [c for c in table.columns if c in {*release.synthesized, *named}]
    _check_read(release, kept, unit)
    taken, of = _drawn(table, rows, unit, seed)

    def drawn(own: pd.DataFrame) -> pd.DataFrame:
        new: pd.DataFrame = own[kept].iloc[taken].reset_index(drop=True)
        return new if unit is None else with_columns(new, {unit: of})

    own = {
        "rows": len(taken), "of": len(table), "again": np.unique(taken).size < len(taken),
        "public": [c for c in named if c not in release.synthesized], "unit": unit,
    }  # fmt: skip
    origin = release.origin
    if origin is not None and origin.compared is None:
        origin = replace(origin, compared=tuple(release.synthetic))
    named_as_before = {*kept} - {unit}  # the unit has numbers now
    exposed = {name: why for name, why in release.exposed.items() if name in named_as_before}
    was, gone = release.decisions, [c for c in table.columns if c not in kept]
    keep, ids = ([name for name in names if name in kept] for names in (was.keep, was.ids))
    decisions = Decisions.of([*was.drop, *gone], keep, ids)
    before = replace(release, origin=origin, exposed=exposed, decisions=decisions)
    return changed_release(before, drawn, "rows", own, reads=[] if unit is None else [unit])


def _check_read(release: Release, kept: Sequence[str], unit: str | None) -> None:
    """Raise InvalidInput if what shaped the values does not stay beside them."""
    shaped = shaping_columns(release, release.parts)
    read = [name for name in release.predictors if name in shaped]
    read += read_afterwards(release.settings)
    hidden = [c for c in read if c not in kept and c not in release.decisions.drop]
    if hidden:
        raise InvalidInput(
            f"rows can be drawn anew only where no model reads confidential columns: {hidden[0]!r} "
            "is read as it is in the data; synthesize it, too, or name it in public="
        )
    units = {
        own["unit"] for done in afterwards_of(release.settings) for own in done.values()
        if "unit" in own
    }  # fmt: skip
    if units - {unit}:
        raise InvalidInput(
            "rows of households that were made to agree must be drawn together: give "
            f"unit={sorted(units - {unit})[0]!r}"
        )


def _drawn(
    table: pd.DataFrame, rows: int, unit: str | None, seed: int | None
) -> tuple[IntArray, IntArray]:
    """Places of the rows drawn, and the new number of each one's unit, from 1."""
    rng, n = streams(seed).generator("rows"), len(table)
    if unit is None:
        taken = rng.choice(n, size=rows, replace=rows > n)
        return taken, np.arange(1, rows + 1)
    codes = unit_codes(table, unit)
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    units = rng.permutation(sizes.size)
    if rows > n:  # with replacement: enough that any sizes reach the number asked for
        units = rng.integers(sizes.size, size=rows)
    count = int(np.searchsorted(np.cumsum(sizes[units]), rows)) + 1
    units = units[:count]
    taken = np.concatenate([order[starts[u] : starts[u] + sizes[u]] for u in units])
    return taken, np.repeat(np.arange(1, units.size + 1), sizes[units])
