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
    IntArray,
    check_choice,
    check_count,
    check_names,
    did_you_mean,
    not_a_frame,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.reconcile import column_names
from pyhybrid.models.columns.support import decimals_of, in_form_of, on_grid
from pyhybrid.models.formula.values import (
    column_like,
    first_row,
    kind_of,
    levels_of,
    numbers_of,
    row_label,
)

Values = npt.NDArray[Any]
Rows = slice | IntArray
KINDS = ("continuous", "binary", "ordered", "nominal")
MAX_LEVELS = 50
"""Most levels of a column that is not continuous."""
_FEW = 10
_ORDER = ("nominal", "binary", "ordered", "continuous")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Column:
    """Standardized `values` (n,) of a column, or codes of `levels`; 0 where `missing`. Released:
    center + scale * value, rounded to `decimals`, as a column `like` that of the data.
    Confidential."""

    like: pd.Series
    kind: str
    values: Values
    missing: npt.NDArray[np.bool_]
    levels: tuple[Any, ...] = ()
    center: float = 0.0
    scale: float = 1.0
    decimals: int | None = None

    @property
    def name(self) -> str:
        """Its name in the table."""
        return str(self.like.name)

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 if continuous."""
        return len(self.levels)

    @property
    def width(self) -> int:
        """Columns of its design: 1, or one for each level but the first."""
        return 1 if self.kind == "continuous" else self.n_levels - 1

    def encoded(self, values: Values) -> FloatArray:
        """Design of the values, shape (n, width)."""
        if self.kind == "continuous":
            return np.asarray(values, dtype=np.float64)[:, None]
        return np.asarray(np.eye(self.n_levels)[values][:, 1:])

    def decoded(self, values: Values) -> pd.Series:
        """The values (n,) as they are released: unit, decimals, dtype and levels of the data."""
        if self.kind != "continuous":
            levels = np.empty(self.n_levels, dtype=object)
            levels[:] = self.levels
            return column_like(levels[values], self.like).astype(self.like.dtype)
        shown = on_grid(self.center + self.scale * values, self.decimals)
        return in_form_of(shown, self.like)


def read_column(values: pd.Series, *, what: str, kind: str | None = None) -> Column:
    """Read a column of the data, or refuse it by name."""
    named = f"{what} {str(values.name)!r}"
    missing = values.isna().to_numpy()
    if kind is not None:
        check_choice(kind, f"the type of {values.name!r}", KINDS)
    if missing.all():
        raise InvalidInput(f"{named} must have values: all are missing")
    leveled = kind_of(values, as_levels=True, what=what) == "levels"
    numbers = np.zeros(0) if leveled else numbers_of(values)[~missing]
    if not np.isfinite(numbers).all():
        infinite = ~np.isfinite(numbers)
        raise InvalidInput(
            f"{named} must be finite: {first_row(values.index[~missing], infinite)} is not"
        )
    n_levels = values.nunique()
    if n_levels < 2:
        raise InvalidInput(f"{named} must vary: it is constant")
    if kind is None:
        few = n_levels <= _FEW and not leveled and (numbers == np.floor(numbers)).all()
        kind = "nominal" if leveled else "ordered" if few else "continuous"
        if isinstance(values.dtype, pd.CategoricalDtype):
            kind = "ordered" if values.dtype.ordered else "nominal"
        kind = "binary" if n_levels == 2 else kind
    if kind == "continuous":
        if leveled:
            raise InvalidInput(f"{named} must be numeric to be continuous: it is not")
        with np.errstate(over="ignore", invalid="ignore"):
            center, scale = float(numbers.mean()), float(numbers.std())
        if not np.finfo(np.float64).tiny <= scale < np.inf:
            raise InvalidInput(
                f"{named} must have a spread that floats can hold: give it another unit"
            )
        standardized = np.zeros(len(values))
        standardized[~missing] = (numbers - center) / scale
        return Column(
            like=values, kind=kind, values=standardized, missing=missing, center=center,
            scale=scale, decimals=decimals_of(numbers),
        )  # fmt: skip
    if n_levels > MAX_LEVELS:
        raise InvalidInput(f"{named} must have at most {MAX_LEVELS} levels: found {n_levels}")
    if kind == "binary" and n_levels != 2:
        raise InvalidInput(f"{named} must have 2 levels to be binary: found {n_levels}")
    levels = levels_of(values, used=True)
    codes = np.zeros(len(values), dtype=np.intp)
    codes[~missing] = pd.Index(levels).get_indexer(pd.Index(values[~missing].astype(object)))
    return Column(like=values, kind=kind, values=codes, missing=missing, levels=tuple(levels))


@dataclass(frozen=True, kw_only=True)
class KeySynthesis:
    """Keys to synthesize, from which predictors; see `pyhybrid.masking.MaskedImputation`."""

    keys: Sequence[str]
    n_synthetic: int = 5
    predictors: Sequence[str] | None = None
    order: Sequence[str] | None = None
    types: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        column_names(self.keys, "keys")
        for name in ("predictors", "order"):
            names = getattr(self, name)
            if names is not None and len(names):
                column_names(names, name)
        if not isinstance(self.types, Mapping):
            raise InvalidInput(
                f"types must be a mapping by column: found {type(self.types).__name__}"
            )
        check_count(self.n_synthetic, "n_synthetic")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundKeys:
    """Columns of n records: `keys` to be synthesized, in the order of the model; predictors with
    missing values (`incomplete`) are imputed along, and never released. Confidential."""

    keys: tuple[Column, ...]
    incomplete: tuple[Column, ...]
    complete: tuple[Column, ...]
    n_records: int
    left_out: tuple[str, ...] = ()  # columns that no model covers

    @property
    def any_key_missing(self) -> bool:
        """True if a key has missing values."""
        return any(column.missing.any() for column in self.keys)

    def described(self) -> dict[str, Any]:
        """Public settings."""
        return {
            "keys": {column.name: column.kind for column in self.keys},
            "predictors": [column.name for column in (*self.complete, *self.incomplete)],
            "not_predictors": list(self.left_out),
        }

    def released(self, df: pd.DataFrame, drawn: Mapping[str, Values]) -> pd.DataFrame:
        """The data with drawn keys."""
        table: pd.DataFrame = df.copy()
        for column in self.keys:
            table[column.name] = column.decoded(drawn[column.name])
        return table


def bind_keys(roles: KeySynthesis, df: Any) -> BoundKeys:
    """Keys and predictors of `df`: all other columns that a model covers unless some are named."""
    keys = read_keys(df, roles.keys, types=roles.types)
    others, left_out = [], []
    for name in df.columns.drop(list(roles.keys)) if roles.predictors is None else roles.predictors:
        if name not in df.columns:
            raise InvalidInput(f"predictor {name!r} must be a column of the data: it is not")
        if name in roles.keys:
            raise InvalidInput(f"predictors must not be keys: {name!r} is")
        try:
            others.append(read_column(df[name], what="predictor", kind=roles.types.get(name)))
        except InvalidInput:
            if roles.predictors is not None or name in roles.types:
                raise
            left_out.append(str(name))
    names = [column.name for column in (*keys, *others)]
    unknown = [name for name in roles.types if name not in names]
    if unknown:
        raise InvalidInput(f"types must be of keys or predictors: {unknown[0]!r} is neither")
    for column in (key for key in keys if key.n_levels):
        there = np.flatnonzero(~column.missing)
        alone = np.flatnonzero(np.bincount(column.values[there]) == 1)
        if alone.size:
            row = int(there[column.values[there] == alone[0]][0])
            raise InvalidInput(
                f"each category of key {column.name!r} must have at least 2 records: the one of "
                f"{row_label(df.index, row)} has 1; merge it with another, or leave the record out"
            )

    def by_kind(columns: Sequence[Column]) -> tuple[Column, ...]:
        """Levels first, so that continuous columns are conjugate."""
        return tuple(sorted(columns, key=lambda column: _ORDER.index(column.kind)))

    ordered = by_kind(keys)
    if roles.order is not None:
        by_name = {column.name: column for column in keys}
        if sorted(roles.order) != sorted(by_name):
            raise InvalidInput(f"order must name each key once: found {', '.join(roles.order)}")
        ordered = tuple(by_name[name] for name in roles.order)
    return BoundKeys(
        keys=ordered,
        incomplete=by_kind([column for column in others if column.missing.any()]),
        complete=tuple(column for column in others if not column.missing.any()),
        n_records=len(df),
        left_out=tuple(left_out),
    )


def read_keys(
    df: Any, keys: Sequence[str], *, types: Mapping[str, str] | None = None
) -> list[Column]:
    """Each key as a column, in the order of `keys`."""
    names, kinds = column_names(keys, "keys"), types or {}
    if not isinstance(df, pd.DataFrame):
        raise not_a_frame(df)
    if len(df) < 3:
        raise InvalidInput(f"data must have at least 3 records: found {len(df)}")
    check_names(df.columns, df.index.names)
    absent = [name for name in names if name not in df.columns]
    if absent:
        near = did_you_mean(absent[0], df.columns)
        raise InvalidInput(f"key {absent[0]!r} must be a column of the data: it is not{near}")
    return [read_column(df[name], what="key", kind=kinds.get(name)) for name in names]
