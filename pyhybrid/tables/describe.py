"""What a table seems to hold: kinds of columns, what needs a decision, and a draft of types."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
    Number,
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
from pyhybrid.tables.domains import MOST_EFFECTS_OF_A_COLUMN, ranged, step_of_ends
from pyhybrid.tables.read import text_among_numbers

_FEW_VALUES, _RECORDS_OF_A_VALUE = 30, 20  # of numbers with decimals that are taken as levels
_RARE = 10
_PARTS_OF_DATES = 50
_OF_DATES = f"{DRAFTED}; dates as levels: no other day can come out, unless the kind is Dates"
_UNTOLD = "dates whose format they do not tell: declare it, format= of the kind Dates"
_IDENTIFIES = "it may be an identifier: nearly all values differ"
_PERSONS = "it may identify persons with several rows each: declare them as the unit"


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
    if are_dates(column) and column.nunique() > MOST_DATES and dates_kind(column) is None:
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
        return replace(kind, codes=codes, missing=missing) if isinstance(kind, Number) else None
    try:
        kind = kind_of(column)
    except InvalidInput:
        return None
    if isinstance(kind, Leveled):
        in_order = are_dates(column) and str(kind.levels[0])[4] == "-"  # day first is not
        return Ordered(levels=kind.levels, missing=kind.missing) if in_order else kind
    assert isinstance(kind, Number)
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
    assert isinstance(kind, Number)
    assert kind.lower is not None
    assert kind.upper is not None
    amounts, step = column[~column.isin(kind.codes)].dropna(), step_of_ends(kind, column)
    beyond = {"lower": amounts < kind.lower + step, "upper": amounts > kind.upper - step}
    ends = {end: int(beyond[end].sum()) for end in beyond if getattr(kind, end) != 0}
    return {**{str(code): int((column == code).sum()) for code in kind.codes}, **ends}
