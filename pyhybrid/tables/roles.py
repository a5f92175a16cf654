"""What is said of a table's columns: which are synthesized, kept or dropped, and what they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_flag, check_names, did_you_mean, not_a_frame
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import names_persons
from pyhybrid.models.columns.form import Kind, read_in_forms
from pyhybrid.models.columns.kinds import (
    Counts,
    Dates,
    Leveled,
    Real,
    kind_from_dict,
    kind_of,
)
from pyhybrid.models.columns.types_files import CONFIRMED, unconfirmed
from pyhybrid.models.formula.values import row_label
from pyhybrid.releases.column_decisions import Decisions

MOST_LEVELS = 30
"""Levels beyond which a column is no predictor, and is synthesized after all others."""


def decisions_of(
    df: Any, drop: Sequence[str], keep: Sequence[str], id: str | None, unit: str | None
) -> Decisions:
    """What is published of columns that are not synthesized; the `unit` is dropped if not kept."""
    if not isinstance(df, pd.DataFrame):
        raise not_a_frame(df, "df")
    if len(df) < 2:
        raise InvalidInput(f"df must have two rows or more: found {len(df)}")
    for column in df.columns:
        if not isinstance(column, str):
            raise InvalidInput(f"names of columns must be texts: found {column!r}; rename it")
    columns = [str(name) for name in df.columns]
    check_names(columns, df.index.names)
    if isinstance(id, (list, tuple)) or not isinstance(id, str | None):
        raise InvalidInput(f"id must name one column: found {id!r}; drop the others")
    roles = {"id": () if id is None else (id,), "drop": _listed(drop, "drop"),
             "keep": _listed(keep, "keep")}  # fmt: skip
    role_of: dict[str, str] = {}
    for role, names in roles.items():
        for name in names:
            check_known(role, name, columns)
            if name in role_of:
                raise InvalidInput(
                    f"column {name!r} must have one role: found {role_of[name]} and {role}"
                )
            role_of[name] = role
    if id is not None:
        again = np.flatnonzero(df[id].duplicated() | df[id].isna())
        if again.size:
            raise InvalidInput(
                f"id {id!r} must name each row once: {row_label(df.index, int(again[0]))} has none "
                "or that of another row, and epsilon is that of one row. Drop the column, or make "
                "one row of each person"
            )
    dropped = (*roles["drop"], *([] if unit is None or unit in role_of else [unit]))
    return Decisions.of(dropped, roles["keep"], roles["id"])


def check_known(role: str, name: str, columns: Collection[str]) -> None:
    """Refuse a name that is no column."""
    if name not in columns:
        raise InvalidInput(
            f"{role} must name columns of the table: {name!r} is none{did_you_mean(name, columns)}"
        )


def _listed(names: Any, what: str) -> tuple[str, ...]:
    columns = None if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if columns is None or not all(isinstance(name, str) for name in columns):
        raise InvalidInput(f"{what} must be a list of names of columns: found {names!r}")
    return columns


def check_persons(df: pd.DataFrame, reference: pd.DataFrame | None, unit: str | None) -> None:
    """Refuse a reference with units of the confidential table, or, by a column that identifies
    persons, with rows of it: numbers of persons alone may be given anew in each table."""
    if reference is None:
        return
    shared = [str(name) for name in df.columns if name in reference]
    for name in shared:
        if name != unit and not names_persons(name):
            continue
        by = [name] if name == unit else shared
        rows = [set(table[by].astype(str).itertuples(index=False, name=None))
                for table in (df, reference)]  # fmt: skip
        if both := rows[0] & rows[1]:
            what = f"values of {name!r}" if name == unit else f"rows, with their {name!r},"
            raise InvalidInput(
                f"reference must hold no released record: {len(both):,} {what} are in both "
                "tables; leave these out of the reference, or, if they are of others, leave that "
                "column out of it"
            )


def kinds_of(types: Mapping[str, Any]) -> dict[str, Kind]:
    """Kinds of columns, which may be given as in a file of types."""
    kinds = {}
    for name, given in types.items():
        if not isinstance(given, (Kind, Mapping)):
            raise InvalidInput(
                f"type of {name!r} must be a kind of column, such as ph.Nominal(levels=(...)): "
                f"found {type(given).__name__}"
            )
        try:
            kinds[name] = given if isinstance(given, Kind) else kind_from_dict(given)
        except InvalidInput as error:
            raise InvalidInput(f"type of {name!r}: {error}") from None
    return kinds


def types_stated(types: Mapping[str, Any], types_are_public: bool) -> bool:
    """Whether the owner states that types are public; a draft is refused without that."""
    if check_flag(types_are_public, "types_are_public"):
        return True
    drafted = unconfirmed(types)
    if drafted:
        raise InvalidInput(
            "types must be confirmed by the owner of the data: those of "
            f"{', '.join(map(repr, drafted[:MOST_LEVELS]))} are a draft from the confidential "
            "records; change what is not public, such as an end or a level of one person, then set "
            '"confirmed": true in the file of types'
        )
    return any(isinstance(own, Mapping) and own.get(CONFIRMED) for own in types.values())


def declared_kinds(
    names: Sequence[str], types: Mapping[str, Kind], reference: pd.DataFrame | None
) -> dict[str, Kind]:
    """Kind of each column to synthesize, as its type or the reference says, never the records;
    in the order of synthesis: few levels first, then counts, then numbers."""
    like = {} if reference is None else {str(name): reference[name] for name in reference}
    bare = [name for name in names if name not in types and name not in like]
    if bare:
        raise InvalidInput(
            "a strict charge needs types of columns that are declared, or read from a reference: "
            f"{', '.join(bare)} have none; give types={{...}} or reference=, or leave them out "
            "(drop=)"
        )
    kinds = {}
    for name in names:
        kind = types[name] if name in types else kind_of(like[name])
        if isinstance(kind, Real) and kind.decimals is None and name in like:
            read = kind_of(like[name])
            kind = replace(kind, decimals=read.decimals or 0)
        kinds[name] = kind
    return dict(sorted(kinds.items(), key=lambda item: _rank(item[1])))


def _rank(kind: Kind) -> tuple[int, int]:
    if isinstance(kind, Leveled):
        size = len(kind.levels)
        return (0, size) if size <= MOST_LEVELS else (3, size)
    return (1, 0) if isinstance(kind, Counts) else (2, 0)


def public_kinds(
    df: pd.DataFrame,
    names: Sequence[str],
    types: Mapping[str, Kind],
    reference: pd.DataFrame | None,
) -> dict[str, Kind]:
    """Kind of each kept column that can be a predictor; it is published, so that it may be read.
    Columns of no kind, of one value, of dates or of many levels can not."""
    kinds = {}
    for name in names:
        column = df[name]
        if reference is not None and name in reference:
            column = pd.concat([column, reference[name]], ignore_index=True).rename(name)
        try:
            kind = types[name] if name in types else kind_of(column)
        except InvalidInput:
            continue
        if is_predictor(kind) and not isinstance(kind, Dates):
            kinds[name] = kind
    return kinds


def is_predictor(kind: Kind) -> bool:
    """Whether a column of this kind has few enough levels to be a predictor."""
    return not (isinstance(kind, Leveled) and len(kind.levels) > MOST_LEVELS)


def with_declared_levels(df: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """The table with levels as they are declared: a file with one text among numbers, or with none,
    has the others as texts, or as numbers."""
    return read_in_forms(df, {n: kind for n, kind in kinds.items() if isinstance(kind, Leveled)})
