"""Keys and predictors as the association models see them: standardized values, or codes of levels.

A type is given by the user or follows from the data: logical columns and those with two values are
binary; ordered categories, and whole numbers with at most 10 distinct values, are ordered; other
numbers are continuous; text and unordered categories are nominal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_names,
    did_you_mean,
    not_a_frame,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.support import decimals_of
from pyhybrid.models.formula.values import first_row, row_label

KINDS = ("continuous", "binary", "ordered", "nominal")
MAX_LEVELS = 50
"""Most levels of a column that is not continuous."""
_FEW = 10
_ORDER = ("nominal", "binary", "ordered", "continuous")


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """Standardized `values` (n,) of a column, or codes of `levels`; 0 where `missing`. Released:
    center + scale * value, rounded to `decimals`, moved into `limits`, in its `dtype`.
    Confidential."""

    name: str
    kind: str
    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]
    levels: tuple[Any, ...]
    center: float
    scale: float
    decimals: int | None
    limits: tuple[float, float] | None
    dtype: Any

    def __repr__(self) -> str:
        return f"<Column {self.name!r}: {self.kind}>"

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 if continuous."""
        return len(self.levels)

    @property
    def width(self) -> int:
        """Columns of its design: 1, or one for each level but the first."""
        return 1 if self.kind == "continuous" else self.n_levels - 1

    def encoded(self, values: npt.NDArray[Any]) -> FloatArray:
        """Design of the values, shape (n, width)."""
        if self.kind == "continuous":
            return np.asarray(values, dtype=np.float64)[:, None]
        return np.asarray(np.eye(self.n_levels)[values][:, 1:])

    def decoded(self, values: npt.NDArray[Any], index: pd.Index) -> pd.Series:
        """The values as they are released: unit, decimals, dtype and levels of the data."""
        if self.kind != "continuous":
            taken = pd.Series([self.levels[code] for code in values], index=index, dtype=object)
            released: pd.Series = pd.Series(taken.astype(self.dtype), name=self.name)
            return released
        shown = self.center + self.scale * values
        if self.decimals is not None:
            shown = np.round(shown, self.decimals)
        if self.limits is not None:
            shown = np.clip(shown, *self.limits)
        if self.dtype.kind in "iu":
            span = np.iinfo(getattr(self.dtype, "numpy_dtype", self.dtype))
            if shown.min() < span.min or shown.max() > span.max:
                raise InvalidInput(
                    f"key {self.name!r} must fit its dtype {self.dtype}: a released value does "
                    "not; give limits for it, or another dtype"
                )
        return pd.Series(shown, index=index, name=self.name).astype(self.dtype)


def read_column(
    values: pd.Series,
    *,
    what: str,
    kind: str | None = None,
    limits: tuple[float, float] | None = None,
) -> Column:
    """Read a column of the data, or refuse it by name."""
    name = str(values.name)
    reason = unusable(values, kind)
    if reason is not None:
        raise InvalidInput(f"{what} {name!r} {reason}")
    missing = values.isna().to_numpy()
    its_kind = _kind(values) if kind is None else kind
    common: dict[str, Any] = {"name": name, "missing": missing, "dtype": values.dtype}
    if its_kind == "continuous":
        return _continuous(values, missing, limits, common)
    if limits is not None:
        raise InvalidInput(f"limits must name continuous keys: {name!r} is {its_kind}")
    levels = _levels(values)
    codes = np.zeros(len(values), dtype=np.intp)
    codes[~missing] = pd.Index(levels).get_indexer(pd.Index(values[~missing].astype(object)))
    return Column(
        kind=its_kind, values=codes, levels=levels, center=0.0, scale=1.0, decimals=None,
        limits=None, **common,
    )  # fmt: skip


def unusable(values: pd.Series, kind: str | None = None) -> str | None:
    """Why no model covers the column, as the end of a sentence; None if one does."""
    if kind is not None:
        check_choice(kind, f"the type of {values.name!r}", KINDS)
    there = values.dropna()
    if not len(there):
        return "must have values: all are missing"
    numeric = pd.api.types.is_numeric_dtype(values.dtype)
    if values.dtype.kind == "c" or not (numeric or _is_text(there)):
        return f"must be numeric, logical, categorical or text: no model covers {values.dtype}"
    if numeric and not (finite := np.isfinite(there.to_numpy(dtype=float))).all():
        return f"must be finite: {first_row(there.index, ~finite)} is not"
    n_levels = there.nunique()
    if n_levels < 2:
        return "must vary: it is constant"
    its_kind = _kind(values) if kind is None else kind
    if its_kind == "continuous":
        return None if numeric else "must be numeric to be continuous: it is not"
    if n_levels > MAX_LEVELS:
        return f"must have at most {MAX_LEVELS} levels: found {n_levels}"
    if its_kind == "binary" and n_levels != 2:
        return f"must have 2 levels to be binary: found {n_levels}"
    return None


def _kind(values: pd.Series) -> str:
    there = values.dropna()
    if there.nunique() == 2:
        return "binary"
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "ordered" if values.dtype.ordered else "nominal"
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return "nominal"
    numbers = there.to_numpy(dtype=float)
    few = there.nunique() <= _FEW and (numbers == np.floor(numbers)).all()
    return "ordered" if few else "continuous"


def _is_text(there: pd.Series) -> bool:
    if isinstance(there.dtype, pd.CategoricalDtype):
        return True
    if there.dtype.kind in "mM" or isinstance(there.dtype, pd.PeriodDtype):
        return False
    return all(isinstance(value, (str, bool, np.bool_)) for value in there)


def _levels(values: pd.Series) -> tuple[Any, ...]:
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = set(values.dropna())
        return tuple(level for level in values.dtype.categories if level in used)
    return tuple(
        sorted(values.dropna().unique(), key=lambda level: (isinstance(level, str), level))
    )


def _continuous(
    values: pd.Series,
    missing: npt.NDArray[np.bool_],
    limits: tuple[float, float] | None,
    common: Mapping[str, Any],
) -> Column:
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        center, scale = float(np.nanmean(numbers)), float(np.nanstd(numbers))
    if not np.finfo(np.float64).tiny <= scale < np.inf:
        raise InvalidInput(
            f"column {common['name']!r} must have a spread that floats can hold: give it another "
            "unit"
        )
    if limits is not None and not (len(limits) == 2 and limits[0] < limits[1]):
        raise InvalidInput(f"limits of {common['name']!r} must be (lower, upper): found {limits!r}")
    return Column(
        kind="continuous",
        values=np.where(missing, 0.0, (numbers - center) / scale),
        levels=(),
        center=center,
        scale=scale,
        decimals=decimals_of(numbers[~missing]),
        limits=limits,
        **common,
    )


@dataclass(frozen=True, kw_only=True)
class KeySynthesis:
    """Keys to synthesize, from which predictors; see `pyhybrid.masking.MaskedImputation`."""

    keys: Sequence[str]
    n_synthetic: int = 5
    predictors: Sequence[str] | None = None
    order: Sequence[str] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_names(self.keys, "keys")
        for name in ("predictors", "order"):
            names = getattr(self, name)
            if names is not None and len(names):
                checked_names(names, name)
        check_count(self.n_synthetic, "n_synthetic")


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundKeys:
    """Columns of n records: `keys` to be synthesized, in the order of the model; predictors with
    missing values (`incomplete`) are imputed along, and never released. Confidential."""

    keys: tuple[Column, ...]
    incomplete: tuple[Column, ...]
    complete: tuple[Column, ...]
    n_records: int

    @property
    def any_key_missing(self) -> bool:
        """True if a key has missing values."""
        return any(column.missing.any() for column in self.keys)

    def described(self, left_out: Sequence[str]) -> dict[str, Any]:
        """Public settings."""
        return {
            "keys": {column.name: column.kind for column in self.keys},
            "predictors": [column.name for column in (*self.complete, *self.incomplete)],
            "not_predictors": list(left_out),
        }

    def released(self, df: pd.DataFrame, drawn: Mapping[str, npt.NDArray[Any]]) -> pd.DataFrame:
        """The data with drawn keys, without notes (`attrs`)."""
        table: pd.DataFrame = df.copy()
        table.attrs = {}
        for column in self.keys:
            table[column.name] = column.decoded(drawn[column.name], table.index)
        return table


def bind_keys(roles: KeySynthesis, df: Any) -> tuple[BoundKeys, tuple[str, ...]]:
    """Keys and predictors of `df`, and the columns that no model covers and were left out."""
    table = _checked_table(df)
    check_keys(roles.keys, table)
    for what, settings in (("types", roles.types), ("limits", roles.limits)):
        if not isinstance(settings, Mapping):
            raise InvalidInput(
                f"{what} must be a mapping by column: found {type(settings).__name__}"
            )
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
    """Type of each key, in the order of `keys`."""
    names, said = checked_names(keys, "keys"), types or {}
    table = _checked_table(df)
    check_keys(names, table)
    return {k: read_column(table[k], what="key", kind=said.get(k)).kind for k in names}


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
        raise not_a_frame(df)
    if len(df) < 3:
        raise InvalidInput(f"data must have at least 3 records: found {len(df)}")
    check_names(df.columns, df.index.names)
    return df


def _predictors(roles: KeySynthesis, table: pd.DataFrame) -> tuple[list[str], tuple[str, ...]]:
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
        row = first_row(index, gaps)
        names = ", ".join(repr(column.name) for column in (*keys, *others))
        raise InvalidInput(
            f"each record must have a key or a predictor that is not missing: {row} has none of "
            f"{names}; leave it out"
        )


def _ordered(columns: list[Column], order: Sequence[str] | None) -> list[Column]:
    """In the user's order; by default levels first, so that continuous keys are conjugate."""
    if order is None:
        return sorted(columns, key=lambda column: _ORDER.index(column.kind))
    by_name = {column.name: column for column in columns}
    if set(order) != set(by_name) or len(order) != len(by_name):
        raise InvalidInput(f"order must name each key once: found {', '.join(order)}")
    return [by_name[name] for name in order]
