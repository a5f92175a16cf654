"""What a table seems to hold: kinds of columns, what needs a decision, a draft of types, and
relations that all records keep, to warn the owner: rows that are drawn from counts of single
columns and of pairs do not keep them.

Confidential: what is found is a function of the records, and is shown to their owner alone.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
import unicodedata
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import BoolArray, FloatArray
from pyhybrid.core.dates import MOST_DATES, seems_dates
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns, names_persons
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
_TOTAL = re.compile(r"(grand |sub)?(total|sum|source|note|summe|gesamt|insgesamt|quelle)s?\b", re.I)
_SUBTOTAL = r"(?i)(.*[\W_])?(sub)?(total|summe|gesamt|insgesamt)s?\W*"
_CODES = re.compile(
    r"(?i)(^|[_\W])(plz|fips|isco|nace|naics|sic|dept|state|kreis|psu|stratum|zip|(zip|post|postal)?_?"
    r"code)(_?(id|no|nr|code))?\d*$|^post$"
)
_ROWS = 20_000  # that are looked at
_MOST_NUMBERS, _MOST_LEVELS = 60, 30
_CHANCE = 10  # records that would break a relation by chance
_GROUP = 5  # records of a group, on average
_ROUNDED = 1e-6
_ROWS_OF_SUMS = 300


def to_decide(df: pd.DataFrame) -> dict[str, str]:
    """What a reader is told of columns: `undecided`, columns that have the values of another one
    before them, and levels that are rare or look alike."""
    reasons, known = undecided(df), dict[bytes, str]()
    for column, values in df.items():
        with contextlib.suppress(TypeError):  # lists, which have no hash
            hashed = pd.util.hash_pandas_object(values, index=False).to_numpy().tobytes()
            if known.setdefault(hashed, str(column)) != str(column):
                reasons.setdefault(str(column), f"has the values of {known[hashed]}")
            if str(column) not in reasons and (remark := _odd(values)):
                reasons[str(column)] = remark
    return reasons


def _odd(column: pd.Series) -> str | None:
    """What is odd of levels: rare ones, and such as look alike; and of codes that are no levels."""
    kind = dates_kind(column) or (seen_kind(column) if is_number(column) else None)
    if kind is not None and not isinstance(kind, Leveled):
        return _of_codes(column, kind)
    records = column.value_counts()
    rare = records[records < _RARE]
    most = len(records) > _RARE and rare.sum() >= _HALF * records.sum()
    if most or len(rare) >= _RARE:
        return f"{len(rare):,} of {len(records):,} levels have fewer than 10 records"
    alike = {" ".join(unicodedata.normalize("NFKC", str(level)).split()).casefold()
             for level in records.index}  # fmt: skip
    return "some levels differ by blanks or capitals alone" if len(alike) < len(records) else None


def _of_codes(column: pd.Series, kind: Kind) -> str | None:
    """What is said of whole numbers, no levels, that are codes by their name."""
    amounts = isinstance(kind, Real) and kind.decimals == 0
    said = "codes by its name: as an amount it gets others, too, which levels do not"
    return said if amounts and _CODES.search(str(column.name)) else None


def no_records(df: pd.DataFrame) -> str | None:
    """What rows seem to be: notes, with nothing but a first cell, totals, or questions."""
    if len(df) < _CHANCE:
        return None
    first, notes = df.iloc[:, 0], df.iloc[:, 1:].isna().all(axis=1).to_numpy()
    after = int((~notes[::-1]).argmax())
    rest, last = df.iloc[: len(df) - after - 1], df.iloc[[-1 - after]]
    numbers = [name for name in df if is_number(df[name]) and (rest[name] > 0).sum() > 2]
    sums = [math.isclose(last[name].astype(float).iloc[0], rest[name].sum()) for name in numbers]
    label = first.iloc[-1 - after]
    total = _TOTAL.match(str(label)) and first.eq(label).sum() == 1
    seem = ["notes"] if 0 < after == notes.sum() and df.shape[1] > 1 else []
    seem += ["a total"] if total or (sums and all(sums)) else []
    said = [f"the last rows seem to be {' and '.join(seem)}"] if seem else []
    texts = (column for _, column in rest.items() if not is_number(column))
    for records in (column.astype(str).value_counts() for column in texts):
        if records.index[records < _RARE].str.fullmatch(_SUBTOTAL).any():
            said.append("some rows seem to be totals of others")
        if records.index.str.startswith('{"ImportId"').any():
            said.append("the first rows seem to be questions and labels")
    rows = ", ".join(dict.fromkeys(said))
    return f"{rows}, no records: leave them out of the file" if said else None


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
    if seems_dates(known) and dates_kind(column) is None:
        return "it seems to hold dates or durations: make ISO dates or numbers of them"
    return None


def _unfit(column: pd.Series) -> str | None:
    """Why a column cannot be synthesized as it is."""
    with contextlib.suppress(TypeError):  # lists, which have no hash
        if column.nunique() + column.isna().any() < 2:  # one value or empty is a box to check
            return "constant"
    kind = seen_kind(column)
    if kind is None and is_number(column) and np.isinf(column.to_numpy(np.float64)).any():
        return "it holds an infinite number: leave such cells empty"
    if kind is None:
        return "of no kind that is read"
    if not isinstance(kind, Leveled) or len(kind.levels) <= MOST_EFFECTS_OF_A_COLUMN:
        return None
    return f"{len(kind.levels):,} levels, more than tables of counts can have: put some together"


def seen_kind(column: pd.Series, declared: tuple[int, ...] | None = None) -> Kind | None:
    """What a column can hold, by its values and the codes `declared` in its file; or None."""
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
    path: Path,
    columns: pd.DataFrame,
    codes: Mapping[str, tuple[int, ...]],
    zeros: Mapping[str, int],
) -> None:
    """Write what each column can hold, going by its values, the `codes` that its file declares, and
    decimals of numbers with `zeros` at their end, to be confirmed, and beside it the schema by
    which editors complete it."""
    schema = path.with_name("types.schema.json")
    of_each = {CONFIRMED: False} if CONFIRMED in columns else {}
    types: dict[str, Any] = {SCHEMA: schema.name, **({} if of_each else {CONFIRMED: False})}
    if AFTER not in columns:
        types[AFTER] = []
    for name, column in columns.items():
        kind = seen_kind(column, codes.get(str(name)))
        if kind is not None:
            note, code = DRAFTED, _of_codes(column, kind)
            if isinstance(kind, Leveled):
                note = _OF_DATES if are_dates(column) else note
                if digits := zeros.get(str(name), 0):
                    text = f"{{:.{digits}f}}".format  # 401.90
                    column = column.map(text, na_action="ignore")
                    kind = replace(kind, levels=tuple(map(text, kind.levels)))
            records = records_of(kind, column)
            if absent := int(column.isna().sum()):
                records["missing"] = absent
            rare = [value for value, count in records.items() if count < _RARE]
            types[str(name)] = {
                **kind.as_dict(),
                "note": f"{note}; {code}" if code else note,
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


def _same(one: FloatArray, other: FloatArray, off: float) -> bool:
    """Whether numbers are alike but for `off` in ten records or more, and in all that have both."""
    if (np.abs(one[:200] - other[:200]) > off).any():
        return False
    both = ~np.isnan(one) & ~np.isnan(other)
    return bool(both.sum() >= _CHANCE and (np.abs(one - other)[both] <= off).all())


def _totals(numbers: dict[str, FloatArray]) -> Iterator[str]:
    """Sums and products of two columns or more, and sums of three or more that have one value."""
    known = {name: x for name, x in numbers.items() if 0 < np.nanmax(x) - np.nanmin(x) < np.inf}
    size = {name: np.nanmean(np.abs(x)) for name, x in known.items()
            if np.count_nonzero(np.nan_to_num(x)) >= _CHANCE}  # fmt: skip
    sums = [*_fewest({name: known[name] for name in size}, _ROUNDED)]
    logs = {name: np.log(known[name]) for name in size if np.nanmin(known[name]) > 0}
    wholes = [(two, [*known], False) for two in itertools.combinations(size, 2)]
    wholes += [(parts, [name], False) for name, parts, sign in sums if sign > 0]
    wholes += [(parts, [name], True) for name, parts, sign in _fewest(logs, 0.01) if sign > 0]
    shown = set[str]()
    for parts, names, product in wholes:
        several = np.array([known[part] for part in parts])
        whole = several.prod(axis=0) if product else several.sum(axis=0)
        for name in names:
            off = _ROUNDED * min(size[part] for part in parts)
            if product:  # which is rounded
                off = 0.51 * np.diff(np.unique(known[name][~np.isnan(known[name])])).min()
            if name not in parts and name not in shown and _same(whole, known[name], off):
                shown.add(name)
                yield f"{_named(name)} = {(' * ' if product else ' + ').join(map(_named, parts))}"
    for ones in dict.fromkeys(frozenset((name, *parts)) for name, parts, sign in sums if sign < 0):
        total = np.sum([known[name] for name in ones], axis=0)
        value, off = np.nanmedian(total), _ROUNDED * min(size[name] for name in ones)
        if _same(total, value + 0 * total, off):
            yield f"{' + '.join(_named(name) for name in known if name in ones)} is {value:g}"


def _fewest(columns: dict[str, FloatArray], off: float) -> Iterator[tuple[str, Any, int]]:
    """Columns, with the fewest that give them by least squares, if all have the coefficient 1, or
    all -1: these are looked for from the first and from the last one on."""
    names = [name for name, x in columns.items() if np.isnan(x).mean() < 0.1]
    if len(names) < 3:
        return
    x = np.array([columns[name] for name in names]).T
    x = x[~np.isnan(x).any(axis=1)][:_ROWS_OF_SUMS]
    x, spread = x - x.mean(axis=0), x.std(axis=0)
    if len(x) < 2 * len(names) + _CHANCE or not (np.isfinite(spread) & (spread > 0)).all():
        return
    x = x / spread

    def given(of: int, by: list[int]) -> Any:
        slopes = np.linalg.lstsq(x[:, by], x[:, of], rcond=None)[0]
        near = np.abs(x[:, of] - x[:, by] @ slopes).max() < off
        return np.round(slopes * spread[of] / spread[by], 2) if near else None

    for of, name in enumerate(names):
        others = [by for by in range(len(names)) if by != of]
        for order in (others, others[::-1]):
            slopes = given(of, others)
            if slopes is None:
                break
            used = others
            for one in order:
                fewer = [by for by in used if by != one]
                if (less := given(of, fewer)) is not None:
                    used, slopes = fewer, less
            if len(used) > 1 and (np.abs(slopes) == 1).all() and np.ptp(slopes) == 0:
                yield name, tuple(names[by] for by in used), int(slopes[0])


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
    """Columns that are empty exactly below or above a number, or at levels of another column, also
    where that is empty itself by such a rule."""
    rules: dict[str, str] = {}
    gaps = {str(name): column.isna().to_numpy() for name, column in df.items()}
    gaps = {name: x for name, x in gaps.items() if min(x.sum(), (~x).sum()) >= _CHANCE}
    for name, absent in sorted(gaps.items(), key=lambda gap: int(gap[1].sum())):
        for by, column in df.items():
            where = _where(absent, column, levels.get(str(by)), rules.get(str(by)))
            if str(by) != name and where:
                rules[name] = where
                yield f"{_named(name)} exactly if {where}"
                break


def _where(absent: BoolArray, by: pd.Series, coded: Any, rule: str | None) -> str | None:
    """The condition on another column, which is empty by a `rule`, where cells are `absent`."""
    name = _named(str(by.name))
    if is_number(by) and by.nunique() > _RARE and not by.isna().any() and dates_kind(by) is None:
        empty, filled = by[absent], by[~absent]
        if empty.max() < filled.min():
            return f"{name} < {filled.min():.15g}"
        if empty.min() > filled.max():
            return f"{name} > {filled.max():.15g}"
    if coded is None or len(coded[1]) > _MOST_LEVELS:
        return None
    codes, values = coded
    share = np.bincount(codes, absent) / np.bincount(codes)
    at = values[share == 1.0]
    if not np.isin(share, (0.0, 1.0)).all() or (at.hasnans and rule is None):
        return None
    equal = (f"{name} == {_quoted(value)}" for value in at.dropna())
    return " or ".join([*([rule] if at.hasnans and rule else []), *equal])


def _groups(df: pd.DataFrame, levels: _Levels) -> Iterator[str]:
    """Columns that have one value in each group of another one, which has more groups."""
    for by, (codes, values) in levels.items():
        for name, (own, own_values) in levels.items():
            if name == by or len(own_values) > len(values):
                continue
            if len(own_values) == len(values) and [*levels].index(name) < [*levels].index(by):
                continue  # the same groups: said once
            first = np.zeros(len(values), dtype=np.intp)
            first[codes] = own
            common = np.bincount(own).max() / len(own)
            if (first[codes] == own).all() and (1 - common) * len(own) >= _CHANCE:
                yield f"{name} has one value for each {by}"
