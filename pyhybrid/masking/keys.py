"""From a table to the keys and predictors of an association model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.columns import Column, read_column, unusable
from pyhybrid.models.formula.design import row_label

__all__ = ["BoundKeys", "Roles", "bind_keys", "check_keys", "checked_names", "key_kinds"]

_ORDER = ("nominal", "binary", "ordered", "continuous")


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Parts of the columns, as the user gave them.

    Attributes
    ----------
    keys : tuple of str
    predictors, order : tuple of str, or None
    types : mapping of str to str
    limits : mapping of str to (float, float)
    """

    keys: tuple[str, ...]
    predictors: tuple[str, ...] | None
    order: tuple[str, ...] | None
    types: Mapping[str, str]
    limits: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundKeys:
    """Columns of one data set by their part in the model. Confidential.

    Attributes
    ----------
    keys : tuple of Column
        To be synthesized, in the order of the model.
    incomplete : tuple of Column
        Predictors with missing values, imputed along; never released.
    complete : tuple of Column
        Predictors without.
    n_records : int
    """

    keys: tuple[Column, ...]
    incomplete: tuple[Column, ...]
    complete: tuple[Column, ...]
    n_records: int

    @property
    def any_key_missing(self) -> bool:
        """True if a key has missing values."""
        return any(column.missing.any() for column in self.keys)


def bind_keys(roles: Roles, df: Any) -> tuple[BoundKeys, tuple[str, ...]]:
    """Keys and predictors of `df`, and the columns that no model covers and were left out.

    Raises
    ------
    InvalidInput
        For a column that is absent, a key that no model covers (see `read_column`), a category of
        a key with one record, a record with nothing but missing values, an order that is not one
        of the keys, types or limits of other columns.
    """
    table = _checked_table(df)
    check_keys(roles.keys, table)
    for what, given in (("types", roles.types), ("limits", roles.limits)):
        if not isinstance(given, Mapping):
            raise InvalidInput(f"{what} must be a mapping by column: found {type(given).__name__}")
    predictors, left_out = _predictors(roles, table)
    for what, names in (("types", roles.types), ("limits", roles.limits)):
        unknown = [n for n in names if n not in (*roles.keys, *predictors)]
        if unknown:
            raise InvalidInput(f"{what} must be of keys or predictors: {unknown[0]!r} is neither")
    keys = [
        read_column(table[k], what="key", kind=roles.types.get(k), limits=roles.limits.get(k))
        for k in roles.keys
    ]
    for column in keys:
        _check_category_sizes(column, table.index)
    others = [read_column(table[p], what="predictor", kind=roles.types.get(p)) for p in predictors]
    _check_rows(keys, others, table.index)
    incomplete = [c for c in others if c.missing.any()]
    bound = BoundKeys(
        keys=tuple(_ordered(keys, roles.order)),
        incomplete=tuple(_ordered(incomplete, None)),
        complete=tuple(c for c in others if not c.missing.any()),
        n_records=len(table),
    )
    return bound, left_out


def key_kinds(
    df: pd.DataFrame, keys: Sequence[str], types: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Type of each key, in the order of `keys`; refuses what `bind_keys` refuses."""
    names = checked_names(keys, "keys")
    roles = Roles(keys=names, predictors=(), order=None, types=types or {}, limits={})
    kinds = {column.name: column.kind for column in bind_keys(roles, df)[0].keys}
    return {name: kinds[name] for name in names}


def check_keys(keys: Sequence[str], table: pd.DataFrame) -> None:
    """Refuse keys that are not columns of the table."""
    absent = [key for key in keys if key not in table.columns]
    if absent:
        near = did_you_mean(absent[0], table.columns)
        raise InvalidInput(f"key {absent[0]!r} must be a column of the data: it is not{near}")


def checked_names(names: Any, what: str) -> tuple[str, ...]:
    """Column names: at least one, each once."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InvalidInput(f"{what} must be a sequence of column names: found {names!r}")
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise InvalidInput(f"{what} must name each column once: {twice[0]!r} is there twice")
    return tuple(names)


def _checked_table(df: Any) -> pd.DataFrame:
    if not isinstance(df, pd.DataFrame):
        raise InvalidInput(f"data must be a pandas DataFrame: found {type(df).__name__}")
    if len(df) < 3:
        raise InvalidInput(f"data must have at least 3 records: found {len(df)}")
    twice = df.columns[df.columns.duplicated()]
    if len(twice):
        raise InvalidInput(f"column names must be unique: {twice[0]!r} occurs more than once")
    return df


def _predictors(roles: Roles, table: pd.DataFrame) -> tuple[list[str], tuple[str, ...]]:
    """Predictors to use; all other columns that a model covers unless the user named some."""
    if roles.predictors is None:
        others = [c for c in table.columns if c not in roles.keys]
        used = [c for c in others if unusable(table[c], roles.types.get(c)) is None]
        return used, tuple(str(c) for c in others if c not in used)
    for name in roles.predictors:
        if name not in table.columns:
            raise InvalidInput(f"predictor {name!r} must be a column of the data: it is not")
        if name in roles.keys:
            raise InvalidInput(f"predictors must not be keys: {name!r} is")
    return list(roles.predictors), ()


def _check_category_sizes(column: Column, index: pd.Index) -> None:
    if column.kind == "continuous":
        return
    there = np.flatnonzero(~column.missing)
    sizes = np.bincount(column.values[there], minlength=column.n_levels)
    alone = np.flatnonzero(sizes == 1)
    if alone.size:
        row = int(there[column.values[there] == alone[0]][0])
        raise InvalidInput(
            f"each category of key {column.name!r} must have at least 2 records: the one of "
            f"{row_label(index, row)} has 1; merge it with another, or leave the record out"
        )


def _check_rows(keys: list[Column], others: list[Column], index: pd.Index) -> None:
    gaps = np.all([column.missing for column in (*keys, *others)], axis=0)
    if gaps.any():
        row = row_label(index, int(np.flatnonzero(gaps)[0]))
        names = ", ".join(repr(column.name) for column in (*keys, *others))
        raise InvalidInput(
            f"each record must have a key or a predictor that is not missing: {row} has none of "
            f"{names}; leave it out"
        )


def _ordered(columns: list[Column], order: tuple[str, ...] | None) -> list[Column]:
    """In the user's order; by default levels first, so that continuous keys are conjugate."""
    if order is None:
        return sorted(columns, key=lambda column: _ORDER.index(column.kind))
    by_name = {column.name: column for column in columns}
    if set(order) != set(by_name) or len(order) != len(by_name):
        raise InvalidInput(f"order must name each key once: found {', '.join(order)}")
    return [by_name[name] for name in order]
