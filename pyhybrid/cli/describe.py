"""`pyhybrid describe`: what a table holds, and a draft of types for a table that is released by one
command."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.cli.console import note, show, table_of
from pyhybrid.cli.options import names_of, options
from pyhybrid.cli.tables import SourceTable, read_table, text_among_numbers
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns, repeated_identifiers
from pyhybrid.mechanisms.mechanism import check_unit_of_noise
from pyhybrid.models.columns.kinds import (
    Amounts,
    Counts,
    Kind,
    Leveled,
    Number,
    Ordered,
    Real,
    kind_of,
)
from pyhybrid.models.columns.types_files import SCHEMA, read_types, schema_of_types
from pyhybrid.models.formula.values import are_dates
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.running.files import write_files
from pyhybrid.tables.domains import MOST_EFFECTS_OF_A_COLUMN, ranged
from pyhybrid.tables.roles import (
    check_known,
    decisions_of,
    declared_kinds,
    kinds_of,
    public_kinds,
)

_MOST_SHOWN, _LONGEST, _SHOWN = 5, 40, 0.0005
_UNREAD = "of no kind that is read"
_FEW_VALUES, _RECORDS_OF_A_VALUE = 30, 20  # of numbers with decimals that are taken as levels
_CONFIRM = "from the data: confirm or change"
_DAYS = "make a column of numbers of them, days since a fixed day"
_OF_DATES = f"{_CONFIRM}; dates as levels: no other day can come out. To keep time apart, {_DAYS}"
_MOST_DATES = 60
_IDENTIFIES = "it may be an identifier: nearly all values differ"


@options
def describe(data: Path) -> None:
    """Show what a table holds: kinds of columns, missing values, and what needs a decision."""
    df = read_table(data).frame
    risky, rows = to_decide(df), []
    for name, column in df.items():
        kind, share = _seen(column), column.isna().mean()
        missing = f"{share:.1%}" if share >= _SHOWN else "<0.1%" if share else ""
        shown = ("", "") if kind is None else (kind.name, _values(kind))
        rows.append([str(name), *shown, missing, risky.get(str(name), "")])
    title = f"{data}: {len(df):,} rows, {df.shape[1]} columns"
    show(table_of(title, ("column", "kind", "values", "missing", "to decide"), rows,
                  left=("kind", "values", "to decide")))  # fmt: skip


def _declared(
    data: SourceTable, types: Mapping[str, Any], reference: Path | None
) -> tuple[SourceTable, pd.DataFrame | None]:
    """The data and the reference's records, both read by the types, or else by what columns of the
    reference hold."""
    declared, like = kinds_of(types), None if reference is None else read_table(reference)
    for name, column in () if like is None else like.frame.items():
        kind = _seen(column)  # None is refused where it is asked for
        declared |= {} if kind is None or name in declared else {str(name): kind}
    return data.read_as(declared), None if like is None else like.read_as(declared).frame


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeTable:
    """A table whose columns are all synthesized but those that --drop, --keep or --id name: the
    records, the kinds of synthesized columns and of `kept` ones, and decisions on the others."""

    frame: pd.DataFrame
    kinds: Mapping[str, Kind]
    kept: Mapping[str, Kind]
    decisions: Decisions
    reference: pd.DataFrame | None


def whole_table(source: SourceTable, given: Mapping[str, Any]) -> WholeTable:
    """The table, read as its types say.

    Raises
    ------
    InvalidInput
        Without --types and --reference, after a draft of types was written; for columns that need a
        decision.
    """
    check_unit_of_noise(given["unit"], given["rows_per_unit"])
    types = {} if given["types"] is None else read_types(given["types"])
    source, like = _declared(source, types, given["reference"])
    df = source.frame
    drop, keep, ids = (names_of(given[role], df) for role in ("drop", "keep", "identifier"))
    if len(ids) > 1:
        raise InvalidInput(f"--id must name one column: found {', '.join(ids)}")
    if given["unit"] is None:
        say_repeated(repeated_identifiers(df), " --rows-per-unit ROWS")
    decided = decisions_of(df, drop, keep, ids[0] if ids else None, given["unit"])
    said = {*decided.drop, *decided.keep, *decided.ids}
    left = df.drop(columns=[*{*said, *types} & {*df}])  # what is said is not for a record to refuse
    risky = undecided(left if like is None else left.drop(columns=like.columns, errors="ignore"))
    risky |= {} if like is None else undecided(like[[name for name in left if name in like]])
    own = [str(name) for name in df.columns if str(name) not in {*said, *risky}]
    check_decided({}, decided, map(str, df.columns), own)
    if given["types"] is None and given["reference"] is None:
        if mend := [f"{n!r}: {why}" for n, why in _to_mend(left).items() if n in risky]:
            raise InvalidInput(f"columns must be mended, or left out (--drop): {'; '.join(mend)}")
        path = Path(given["out"]).parent / f"{Path(given['data']).stem}.types.json"
        draft = drafted_types({name: df[name] for name in own})
        raise InvalidInput(write_draft(path, draft, risky, given))
    check_decided(risky, decided, map(str, df.columns), own)
    lacks = [name for name in own if like is not None and not (name in like or name in types)]
    if lacks:
        raise InvalidInput(
            f"--reference must have the columns that are synthesized: {', '.join(lacks)} are not "
            "in it; declare them in --types, or leave them out (--drop)"
        )
    if not own:
        raise InvalidInput("no column is left to synthesize")
    declared = kinds_of(types)
    for name in declared:
        check_known("--types", name, list(df.columns))
    check_decided(exposed_columns(df, own), decided, map(str, df.columns), own)
    kept = [name for name in decided.keep if name != given["unit"]]
    return WholeTable(
        frame=df,
        kinds=declared_kinds(own, declared, like),
        kept=public_kinds(df, kept, declared, like),
        decisions=decided,
        reference=like,
    )


def say_repeated(names: Iterable[str], more: str = "") -> None:
    """Name the columns by which a person may have several rows, and what protects persons; with
    the `more` that --unit needs."""
    for name in names:
        note(
            f"{name} looks like an identifier of persons, with several rows each: epsilon protects "
            f"one row, not all rows of a person. --unit {shlex.quote(name)}{more} protects persons"
        )


def say_unconfirmed(types: Mapping[str, Any]) -> None:
    """Say which types are still those of the draft."""
    notes = {name: own.get("note") for name, own in types.items() if isinstance(own, dict)}
    drafted = [name for name, said in notes.items() if said in (_CONFIRM, _OF_DATES)]
    if drafted:
        note(
            f"types of {', '.join(drafted)} are as drafted from the data: by this release you "
            "confirm that they are public"
        )


def drafted_types(columns: Mapping[str, pd.Series]) -> dict[str, Any]:
    """What each column can hold going by its values, to be confirmed; none of no kind."""
    kinds = {name: _seen(own) for name, own in columns.items()}
    notes = {name: _OF_DATES if are_dates(own) else _CONFIRM for name, own in columns.items()}
    return {n: {**kind.as_dict(), "note": notes[n]} for n, kind in kinds.items() if kind}


def write_draft(
    path: Path, types: Mapping[str, Any], risky: Iterable[str], given: Mapping[str, Any]
) -> str:
    """Write types to be confirmed, and beside them the schema by which editors complete them;
    returns what is to be done, with the command that goes on without the `risky` columns."""
    if path.exists() and not given["overwrite"]:
        return (
            f"a draft of types is there, {path}: confirm or change it, then give --types {path}; "
            "--overwrite writes a new one"
        )
    schema = path.with_name("types.schema.json")
    named = {SCHEMA: schema.name, **types}
    texts = {path: json.dumps(named, indent=1, ensure_ascii=False) + "\n"}
    write_files(texts, private=True)
    if not schema.exists():
        write_files({schema: json.dumps(schema_of_types(), indent=1) + "\n"}, private=False)
    options = {
        "--epsilon": [f"{given['epsilon']:g}"], "--unit": [given["unit"]],
        "--rows-per-unit": [given["rows_per_unit"]], "--id": given["identifier"],
        "--drop": [*(given["drop"] or ()), ",".join(risky)], "--types": [path],
        "--out": [given["out"]],
    }  # fmt: skip
    words = ["pyhybrid", "synthesize", str(given["data"])]
    words += [word for option, own in options.items() for each in own or () if each
              for word in (option, str(each))]  # fmt: skip
    return (
        f"nothing was released yet. {path} was written: a draft of what each column can hold, as "
        "seen in the data. A strict release must not take that from the data: confirm or change "
        "levels, lower, upper, center, unit, decimals and missing by what is public. Then run: "
        f"{shlex.join(words)}"
    )


def undecided(df: pd.DataFrame) -> dict[str, str]:
    """Reason by column, for those that cannot be synthesized or look like identifiers."""
    risky = {n: why for n, why in exposed_columns(df, []).items() if n in df.columns}
    kinds = {str(name): _seen(own) for name, own in df.items()}
    alike = {str(name): "constant" for name, own in df.items() if _constant(own)}
    unread = {name: _UNREAD for name, kind in kinds.items() if kind is None}
    many = {
        name: _IDENTIFIES
        if _nearly_distinct(df[name])
        else f"{len(kind.levels):,} levels, more than tables of counts can have: put some together"
        for name, kind in kinds.items()
        if isinstance(kind, Leveled) and len(kind.levels) > MOST_EFFECTS_OF_A_COLUMN
    }
    reasons = {**unread, **many, **alike, **risky, **_to_mend(df)}
    return {str(name): reasons[str(name)] for name in df.columns if str(name) in reasons}


def to_decide(df: pd.DataFrame) -> dict[str, str]:
    """What `describe` says of columns: the same, repeated persons, and which have the same values
    as another one before them."""
    reasons, known = undecided(df), dict[bytes, str]()
    reasons = _with_repeated(reasons, repeated_identifiers(df))
    for column, own in df.items():
        with contextlib.suppress(TypeError):  # lists, which have no hash
            if _nearly_distinct(own):
                reasons.setdefault(str(column), _IDENTIFIES)
            values = pd.util.hash_pandas_object(own, index=False).to_numpy().tobytes()
            if known.setdefault(values, str(column)) != str(column):
                reasons.setdefault(str(column), f"has the values of {known[values]}")
    return reasons


def _with_repeated(reasons: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    """Reasons, and those of columns that identify persons with several rows each."""
    unit = "it may identify persons with several rows each: see --unit"
    told = {name: f"{unit}; {reasons.get(name, '')}" for name in names}
    return {**reasons, **{name: own.removesuffix("; ") for name, own in told.items()}}


def _to_mend(df: pd.DataFrame) -> dict[str, str]:
    """Reason by column, for levels that are to be numbers: text among these, and many dates."""
    reasons = {}
    for name, own in df.items():
        if why := text_among_numbers(own):
            reasons[str(name)] = why
        elif are_dates(own) and (n_dates := own.nunique()) > _MOST_DATES:
            reasons[str(name)] = f"it holds {n_dates:,} dates: {_DAYS}"
    return reasons


def _nearly_distinct(column: pd.Series) -> bool:
    """Whether 95 % of 50 values or more differ: texts, or whole numbers nearly in sequence."""
    held = column.dropna()
    if len(held) < 50 or are_dates(column) or held.nunique() < 0.95 * len(held):
        return False
    numbers = held.to_numpy(float) if pd.api.types.is_numeric_dtype(held) else np.zeros(1)
    return bool((numbers % 1 == 0).all() and np.ptp(numbers) < 2 * len(numbers))


def _constant(column: pd.Series) -> bool:
    try:
        return column.nunique() < 2
    except TypeError:  # lists, which have no hash
        return False


def _seen(column: pd.Series) -> Kind | None:
    """What a column can hold, going by its values; None if it is of no kind."""
    try:
        kind = kind_of(column)
    except InvalidInput:
        return None
    if isinstance(kind, Leveled):
        in_order = are_dates(column) and str(kind.levels[0])[4] == "-"  # day first is not
        return Ordered(levels=kind.levels, missing=kind.missing) if in_order else kind
    assert isinstance(kind, Number)
    values = np.unique(column.dropna().to_numpy(dtype=np.float64))
    if not kind.whole and values.size <= min(_FEW_VALUES, len(column) / _RECORDS_OF_A_VALUE):
        return Ordered(levels=tuple(values.tolist()), missing=kind.missing)
    if isinstance(kind, (Amounts, Counts)) and 2 * column.min() > column.max():  # years, codes
        own = {name: getattr(kind, name) for name in ("missing", "center", "unit")}
        kind = Real(decimals=kind.form.decimals, **own)
    try:
        with np.errstate(over="ignore"):
            return ranged(kind, column)
    except InvalidInput:  # no float is beyond them
        return None


def _values(kind: Kind) -> str:
    if isinstance(kind, Number):
        steps = "" if kind.whole else f" by {10.0 ** -(kind.form.decimals or 0):g}"
        return f"{kind.lower:g} to {kind.upper:g}{steps}"
    assert isinstance(kind, Leveled)
    levels = [f"{own:g}" if isinstance(own, float) else str(own) for own in kind.levels]
    texts = [" ".join(level.split()) for level in levels[:_MOST_SHOWN]]
    short = [own if len(own) <= _LONGEST else f"{own[: _LONGEST - 3]}..." for own in texts]
    shown = ("; " if any("," in level for level in short) else ", ").join(short)
    return shown if len(kind.levels) <= _MOST_SHOWN else f"{shown}, ... ({len(kind.levels)})"
