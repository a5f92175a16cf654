"""What a table seems to hold: kinds of columns, what needs a decision, a draft of types, and
relations that all records keep, to warn the owner: rows that are drawn from counts of single
columns and of pairs do not keep them.

Confidential: what is found is a function of the records, and is shown to their owner alone.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.dates import MOST_DATES
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import (
    exposed_columns,
    names_persons,
    repeated_identifiers,
)
from pyhybrid.models.columns.form import Kind, places_of_levels
from pyhybrid.models.columns.kinds import (
    Amounts,
    Counts,
    Dates,
    Leveled,
    Nominal,
    Ordered,
    Real,
    dates_in,
    dates_kind,
    kind_of,
)
from pyhybrid.models.columns.support import codes_among
from pyhybrid.models.columns.types_files import AFTER, CONFIRMED, DRAFTED, SCHEMA, schema_of_types
from pyhybrid.models.formula.values import are_dates, is_number
from pyhybrid.running.files import write_files
from pyhybrid.tables.after import values_of
from pyhybrid.tables.domains import MOST_EFFECTS_OF_A_COLUMN, ranged, step_of_ends
from pyhybrid.tables.read import text_among_numbers

_FEW_VALUES, _RECORDS_OF_A_VALUE = 30, 20  # of numbers with decimals that are taken as levels
_RARE = 10
_PARTS_OF_DATES, _HALF = 50, 0.5
_PART_OF_A_DATE = r"\d{4}([-/.]\d\d?)?|\d\d?[/.]\d{4}"
_OF_DATES = f"{DRAFTED}; dates as levels: no other day can come out, unless the kind is Dates"
_UNTOLD = "dates whose format they do not tell: declare it, format= of the kind Dates"
_IDENTIFIES = "it may be an identifier: nearly all values differ"
_PERSONS = "it may identify persons with several rows each: declare them as the unit"
_ROWS = 20_000  # that are looked at
_MOST_NUMBERS, _MOST_LEVELS = 60, 30
_CHANCE = 10  # records that would break a relation by chance
_GROUP = 5  # records of a group, on average
_ROUNDED = 1e-6


def to_decide(df: pd.DataFrame) -> dict[str, str]:
    """What a reader is told of columns: `undecided`, identifiers of persons, and columns that have
    the values of another one before them."""
    reasons, known = undecided(df), dict[bytes, str]()
    for name in repeated_identifiers(df):
        reasons[name] = "; ".join(filter(None, [_PERSONS, reasons.get(name)]))
    for column, values in df.items():
        with contextlib.suppress(TypeError):  # lists, which have no hash
            if _nearly_distinct(values):
                reasons.setdefault(str(column), _IDENTIFIES)
            hashed = pd.util.hash_pandas_object(values, index=False).to_numpy().tobytes()
            if known.setdefault(hashed, str(column)) != str(column):
                reasons.setdefault(str(column), f"has the values of {known[hashed]}")
    return reasons


def undecided(df: pd.DataFrame) -> dict[str, str]:
    """Reason by column, for those that cannot be synthesized or look like identifiers."""
    exposed, reasons = exposed_columns(df, []), {}
    for column, values in df.items():
        name = str(column)
        if dates_kind(values) is not None and not names_persons(name):
            continue  # which dates come out is the noise's doing
        reason = to_mend(values) or exposed.get(name) or _unfit(values)
        if reason:
            reasons[name] = reason
    return reasons


def to_mend(column: pd.Series) -> str | None:
    """Why levels are to be numbers: text among these, or many dates."""
    if why := text_among_numbers(column):
        return why
    known = column.dropna().head(_ROWS)
    if not is_number(known):
        parts = known.astype(str).str.fullmatch(_PART_OF_A_DATE)  # years, months beside days
        known = known[~parts] if parts.mean() < _HALF else known
    if are_dates(known) and column.nunique() > MOST_DATES and dates_kind(column) is None:
        return f"it holds {column.nunique():,} {_UNTOLD}"
    return None


def _unfit(column: pd.Series) -> str | None:
    """Why a column cannot be synthesized as it is."""
    with contextlib.suppress(TypeError):  # lists, which have no hash
        if column.nunique() < 2:
            return "constant"
    kind = seen_kind(column)
    if kind is None and is_number(column) and np.isinf(column.to_numpy(np.float64)).any():
        return "it holds an infinite number: leave such cells empty"
    if kind is None:
        return "of no kind that is read"
    if not isinstance(kind, Leveled) or len(kind.levels) <= MOST_EFFECTS_OF_A_COLUMN:
        return None
    if _nearly_distinct(column):
        return _IDENTIFIES
    return f"{len(kind.levels):,} levels, more than tables of counts can have: put some together"


def _nearly_distinct(column: pd.Series) -> bool:
    """Whether 95 % of 50 values or more differ: texts, or whole numbers nearly in sequence."""
    held = column.dropna()
    if len(held) < 50 or dates_kind(column) is not None or held.nunique() < 0.95 * len(held):
        return False
    numbers = held.to_numpy(float) if pd.api.types.is_numeric_dtype(held) else np.zeros(1)
    if np.isinf(numbers).any():
        return False
    return bool((numbers % 1 == 0).all() and np.ptp(numbers) < 2 * len(numbers))


def seen_kind(column: pd.Series, declared: tuple[int, ...] | None = None) -> Kind | None:
    """What a column can hold, going by its values and the codes `declared` in its file; None if it
    is of no kind."""
    if (dates := dates_kind(column)) is not None:
        return dates
    if codes := codes_among(column) if declared is None else declared:
        kind = seen_kind(column[~column.isin(codes)], ())
        missing = bool(column.isna().any())
        if isinstance(kind, Leveled):
            return Nominal(levels=tuple(sorted({*kind.levels, *codes})), missing=missing)
        return replace(kind, codes=codes, missing=missing) if isinstance(kind, Real) else None
    try:
        kind = kind_of(column)
    except InvalidInput:
        return None
    if isinstance(kind, Leveled):
        in_order = are_dates(column) and str(kind.levels[0])[4] == "-"  # day first is not
        return Ordered(levels=kind.levels, missing=kind.missing) if in_order else kind
    assert isinstance(kind, Real)
    values = np.unique(column.dropna().to_numpy(dtype=np.float64))
    if values.size <= MOST_DATES and dates_in(column) is not None:
        return Ordered(levels=tuple(map(int, values)), missing=kind.missing)
    if not isinstance(kind, Counts) and values.size <= min(
        _FEW_VALUES, len(column) / _RECORDS_OF_A_VALUE
    ):
        return Ordered(levels=tuple(values.tolist()), missing=kind.missing)
    if isinstance(kind, (Amounts, Counts)) and 2 * column.min() > column.max():  # years, codes
        settings = {name: getattr(kind, name) for name in ("missing", "typical", "spread")}
        kind = Real(decimals=kind.decimals, **settings)
    try:
        with np.errstate(over="ignore"):
            return ranged(kind, column)
    except InvalidInput:  # no float is beyond them
        return None


def write_draft(
    path: Path, columns: pd.DataFrame, codes: Mapping[str, tuple[int, ...]] | None = None
) -> None:
    """Write what each column can hold, going by its values and the `codes` that its file declares,
    to be confirmed, and beside it the schema by which editors complete it."""
    schema = path.with_name("types.schema.json")
    of_each = {CONFIRMED: False} if CONFIRMED in columns else {}
    types: dict[str, Any] = {SCHEMA: schema.name, **({} if of_each else {CONFIRMED: False})}
    if AFTER not in columns:
        types[AFTER] = []
    for name, column in columns.items():
        kind = seen_kind(column, (codes or {}).get(str(name)))
        if kind is not None:
            note = _OF_DATES if are_dates(column) else DRAFTED
            records = records_of(kind, column)
            if absent := int(column.isna().sum()):
                records["missing"] = absent
            rare = [value for value, count in records.items() if count < _RARE]
            types[str(name)] = {
                **kind.as_dict(),
                "note": note,
                **of_each,
                "records": records,
                **({"fewer_than_10": rare} if rare else {}),
            }
    write_files({path: json.dumps(types, indent=1, ensure_ascii=False) + "\n"}, private=True)
    if not schema.exists():
        write_files({schema: json.dumps(schema_of_types(), indent=1) + "\n"}, private=False)


def records_of(kind: Kind, column: pd.Series) -> dict[str, int]:
    """Records of each level and code, and of each end but 0 those that a range shorter by one step
    of rounding, of dates by a 50th, would leave out. Confidential."""
    if isinstance(kind, Leveled):
        places = places_of_levels(column.dropna(), kind.levels)
        counts = np.bincount(places[places >= 0], minlength=len(kind.levels))
        return dict(zip(map(str, kind.levels), counts.tolist(), strict=True))
    if isinstance(kind, Dates):
        at, end = kind.numbers(column.dropna()), kind.last / _PARTS_OF_DATES
        of_codes = {c: int((at == p).sum()) for c, p in zip(kind.codes, kind.points, strict=True)}
        lower, upper = ((at >= 0) & (at < end)).sum(), (at > kind.last - end).sum()
        return {**of_codes, "lower": int(lower), "upper": int(upper)}
    assert isinstance(kind, Real)
    assert kind.lower is not None
    assert kind.upper is not None
    amounts, step = column[~column.isin(kind.codes)].dropna(), step_of_ends(kind, column)
    beyond = {"lower": amounts < kind.lower + step, "upper": amounts > kind.upper - step}
    ends = {end: int(beyond[end].sum()) for end in beyond if getattr(kind, end) != 0}
    return {**{str(code): int((column == code).sum()) for code in kind.codes}, **ends}


# --- Relations -----------------------------------------------------------------------------------


def relations_of(df: pd.DataFrame) -> list[str]:
    """A line for each relation: ``c = a + b``, ``a <= b``, ``b exactly if a == "x"`` (is empty), as
    they are declared, see `pyhybrid.tables.after`; ``b has one value for each a``. It could have
    failed: under independence ten records or more would break it."""
    df = df if len(df) <= _ROWS else df.sample(_ROWS, random_state=0)
    if len(df) < 2 * _CHANCE:
        return []
    numbers = {}
    for name, column in df.items():
        dates = dates_kind(column)
        if dates is not None or (is_number(column) and column.nunique() > 2):
            numbers[str(name)] = values_of(column, dates).to_numpy()
    numbers = dict(itertools.islice(numbers.items(), _MOST_NUMBERS))
    levels = {
        str(name): pd.factorize(column, use_na_sentinel=False)
        for name, column in df.items()
        if all(isinstance(value, Hashable) for value in column)
        and 1 < column.nunique() <= len(df) / _GROUP
    }
    return [
        *_totals(numbers),
        *_constants(numbers),
        *_orders(numbers),
        *_skips(df, levels),
        *_groups(df, levels),
    ]


def _named(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _quoted(level: Any) -> str:
    number = isinstance(level, (int, float, np.number)) and not isinstance(level, bool)
    return f"{level:g}" if number else f'"{level}"'


def _same(one: FloatArray, other: FloatArray) -> bool:
    """Whether numbers are alike in ten records or more, and in all that have both."""
    both = ~np.isnan(one) & ~np.isnan(other)
    return bool(both.sum() >= _CHANCE and np.allclose(one[both], other[both], rtol=_ROUNDED))


def _totals(numbers: dict[str, FloatArray]) -> Iterator[str]:
    """Sums of two columns, and of several that stand side by side."""
    names, shown = [*numbers], set[str]()
    runs = [names[i:j] for i in range(len(names)) for j in range(i + 3, len(names) + 1)]
    for parts in (*itertools.combinations(names, 2), *runs):
        several = np.array([numbers[part] for part in parts])
        if (np.count_nonzero(np.nan_to_num(several), axis=1) < _CHANCE).any():
            continue
        total = several.sum(axis=0)
        start = slice(0, 200)
        for name in names:
            if name in parts or name in shown or np.ptp(numbers[name]) == 0:
                continue
            near = np.isclose(total[start], numbers[name][start], rtol=_ROUNDED, equal_nan=True)
            if near.mean() > 0.5 and _same(total, numbers[name]):
                shown.add(name)
                yield f"{_named(name)} = {' + '.join(map(_named, parts))}"


def _constants(numbers: dict[str, FloatArray]) -> Iterator[str]:
    """Sums and differences of one value, or of two in a row: age and year of birth."""
    for (a, one), (b, other) in itertools.combinations(numbers.items(), 2):
        for sign, both in (("+", one + other), ("-", one - other)):
            values = np.unique(both[~np.isnan(both)])
            varies = min(np.nanmax(one) - np.nanmin(one), np.nanmax(other) - np.nanmin(other)) > 2
            if varies and 0 < values.size <= 2 and np.ptp(values) <= 1 and values.any():
                yield f"{a} {sign} {b} is {' or '.join(f'{value:g}' for value in values)}"


def _orders(numbers: dict[str, FloatArray]) -> Iterator[str]:
    for a, b in itertools.permutations(numbers, 2):
        one, other = numbers[a], numbers[b]
        both = ~np.isnan(one) & ~np.isnan(other)
        if both.sum() < _CHANCE or (one[both] > other[both]).any():
            continue
        below = np.searchsorted(np.sort(other[both]), one[both])  # records that a is above
        if below.mean() >= _CHANCE and not np.array_equal(one[both], other[both]):
            yield f"{_named(a)} <= {_named(b)}"


_Levels = dict[str, tuple[npt.NDArray[np.intp], pd.Index]]


def _skips(df: pd.DataFrame, levels: _Levels) -> Iterator[str]:
    """Columns that are empty exactly at some levels of another one."""
    few = {name: coded for name, coded in levels.items() if len(coded[1]) <= _MOST_LEVELS}
    for name, column in df.items():
        absent = column.isna().to_numpy()
        if min(absent.sum(), (~absent).sum()) < _CHANCE:
            continue
        for by, (codes, values) in few.items():
            share = np.bincount(codes, absent) / np.bincount(codes)
            if by != str(name) and np.isin(share, (0.0, 1.0)).all() and not df[by].isna().any():
                where = (f"{_named(by)} == {_quoted(value)}" for value in values[share == 1.0])
                yield f"{_named(str(name))} exactly if {' or '.join(where)}"
                break


def _groups(df: pd.DataFrame, levels: _Levels) -> Iterator[str]:
    """Columns that have one value in each group of another one, which has more groups."""
    for by, (codes, values) in levels.items():
        for name, (own, own_values) in levels.items():
            if name == by or not len(values) > 2 or len(own_values) > len(values):
                continue
            if len(own_values) == len(values) and [*levels].index(name) < [*levels].index(by):
                continue  # the same groups: said once
            first = np.zeros(len(values), dtype=np.intp)
            first[codes] = own
            common = np.bincount(own).max() / len(own)
            if (first[codes] == own).all() and (1 - common) * len(own) >= _CHANCE:
                yield f"{name} has one value for each {by}"
