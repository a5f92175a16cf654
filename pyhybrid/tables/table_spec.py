"""A table and what its owner says of it: what is sensitive, what columns can hold, rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import (
    check_choice,
    check_flag,
    check_names,
    did_you_mean,
    not_a_frame,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import as_levels, places_of_levels
from pyhybrid.models.columns.kinds import Kind, Leveled, Number, Real, kind_from_dict, kind_of
from pyhybrid.models.columns.support import in_dtype_of
from pyhybrid.models.formula.row_rules import RowRule, read_rules, rules_met_by
from pyhybrid.models.formula.values import row_label, with_columns

SOURCES: Mapping[str, str] = {
    "declared": "declared",
    "dtype": "of the column's type",
    "categories": "the categories of the column's type",
    "reference": "from the reference",
    "published": "from the column, which is published",
    "data": "read from the confidential column",
}
"""Where a kind came from, in words. Types of columns are no declaration: ``astype("category")``
takes them from the records, whether it did cannot be seen without looking at these, and a column of
logicals is none with one empty cell."""


@dataclass(frozen=True, kw_only=True)
class KnownKind:
    """A kind, and where it came from: a name of `SOURCES`."""

    kind: Kind
    source: str

    def __post_init__(self) -> None:
        check_choice(self.source, "source", SOURCES)


@dataclass(frozen=True)
class DescribedTable:
    """What is said of a table; see `pyhybrid.Table`, which plans its release."""

    df: Any = field(repr=False)
    _: KW_ONLY
    sensitive: Sequence[str]
    id: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    types: Mapping[str, Kind] = field(default_factory=dict)
    rules: Sequence[str] = ()
    order: str | Sequence[str] = "auto"
    reference: Any = field(default=None, repr=False)
    holds_no_released_record: bool = False

    def __post_init__(self) -> None:
        check_flag(self.holds_no_released_record, "holds_no_released_record")
        for name in ("sensitive", "drop", "keep"):
            object.__setattr__(self, name, _listed(getattr(self, name), name))
        if not isinstance(self.df, pd.DataFrame):
            raise not_a_frame(self.df, "df")
        if len(self.df) < 2:
            raise InvalidInput(f"df must have two rows or more: found {len(self.df)}")
        if not self.sensitive:
            raise InvalidInput("sensitive must name at least one column: it names none")
        object.__setattr__(self, "types", kinds_of(self.types))
        self._check_names()
        self._check_id()
        if self.order != "auto" and sorted(self.order) != sorted(self.sensitive):
            raise InvalidInput(
                "order must be 'auto' or name each sensitive column once: found "
                f"{', '.join(self.order) if not isinstance(self.order, str) else self.order!r}"
            )
        object.__setattr__(self, "df", self._as_declared())
        _check_vary(self.df[[name for name in self.sensitive if not self._declares(name)]])
        known = {name: own for name in self.sensitive if (own := self._known(name)) is not None}
        rules_met_by(self.df, self.read_rules, {name: _values(own) for name, own in known.items()})

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {len(self.df)} rows: {len(self.sensitive)} sensitive "
            f"columns, {len(self.kept)} kept>"
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns that are released as they are."""
        others = {*self.sensitive, *self.drop, *([] if self.id is None else [self.id])}
        return tuple(str(name) for name in self.df.columns if name not in others)

    @property
    def read_rules(self) -> tuple[RowRule, ...]:
        """The rules, read; they see no column that is dropped."""
        return read_rules(self.rules, [*self.sensitive, *self.kept])

    def _as_declared(self) -> pd.DataFrame:
        """The table with levels as they are declared: a file with one text among numbers, or with
        none, has the others as texts, or as numbers."""
        changed = {
            name: as_levels(self.df[name], kind.levels)
            for name in self.sensitive
            if isinstance(kind := self._known(name), Leveled)
        }
        if all(column.equals(self.df[name]) for name, column in changed.items()):
            whole: pd.DataFrame = self.df
            return whole
        return with_columns(self.df, changed)

    def _known(self, name: str) -> Kind | None:
        """The kind that is declared, or the reference's."""
        if name in self.types or self.reference is None or name not in self.reference.columns:
            return self.types.get(name)
        return kind_of(self.reference[name])

    def _declares(self, name: str) -> bool:
        """True if all values are of the declared kind, or the reference's: then there may be but
        one, and none but missing ones. To refuse such a column would tell of its last record."""
        own, column = self._known(name), self.df[name]
        if own is None or (column.isna().any() and not own.missing):
            return False
        held = column.dropna()
        return not isinstance(own, Leveled) or bool(held.isin(list(own.levels)).all())

    def kinds(self) -> dict[str, KnownKind]:
        """Kind of each sensitive column, and of each kept one that can be a predictor."""
        found = {name: self._sensitive_kind(name) for name in self.sensitive}
        for name in self.kept:
            own = self._kept_kind(name)
            if own is not None:
                found[name] = own
        return found

    def _sensitive_kind(self, name: str) -> KnownKind:
        column = self.df[name]
        if name in self.types:
            check_levels(column, self.types[name])
            return KnownKind(kind=self._with_decimals(name), source="declared")
        if self.reference is not None and name in self.reference.columns:
            own = kind_of(self.reference[name])
            check_levels(column, own, whose="the reference's")
            return KnownKind(kind=own, source="reference")
        if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
            own = replace(kind_of(column), missing=False)
            logical = pd.api.types.is_bool_dtype(column)
            return KnownKind(kind=own, source="dtype" if logical else "categories")
        return KnownKind(kind=kind_of(column), source="data")

    def _with_decimals(self, name: str) -> Kind:
        """The declared kind, with the decimals of the reference where it says none."""
        own = self.types[name]
        known = self.reference is not None and name in self.reference.columns
        if not known or not isinstance(own, Real) or own.decimals is not None:
            return own
        assert self.reference is not None
        found = kind_of(self.reference[name])
        return replace(own, decimals=found.form.decimals if isinstance(found, Number) else 0)

    def _kept_kind(self, name: str) -> KnownKind | None:
        """None for a column that cannot be a predictor: constant, without values, or of no kind."""
        if name in self.types:
            check_levels(self.df[name], self.types[name])
            return KnownKind(kind=self.types[name], source="declared")
        column = self.df[name]
        if self.reference is not None and name in self.reference.columns:
            column = _together(column, self.reference[name])
        try:
            return KnownKind(kind=kind_of(column), source="published")
        except InvalidInput:
            return None

    def _check_names(self) -> None:
        for column in self.df.columns:
            if not isinstance(column, str):
                raise InvalidInput(
                    f"names of columns must be texts, for a plan: found {column!r}; rename it"
                )
        columns = [str(name) for name in self.df.columns]
        check_names(columns, self.df.index.names)
        if isinstance(self.id, (list, tuple)) or not isinstance(self.id, str | None):
            raise InvalidInput(f"id must name one column: found {self.id!r}; drop the others")
        said: dict[str, str] = {}
        roles = {"sensitive": self.sensitive, "id": [] if self.id is None else [self.id],
                 "drop": self.drop, "keep": self.keep}  # fmt: skip
        for role, names in roles.items():
            for name in names:
                if name not in columns:
                    raise _unknown(role, name, columns)
                if name in said:
                    raise InvalidInput(_both(name, said[name], role))
                said[name] = role
        for name in self.types:
            if name not in columns:
                raise _unknown("types", name, columns)

    def _check_id(self) -> None:
        if self.id is None:
            return
        own = self.df[self.id]
        again = np.flatnonzero((own.duplicated() | own.isna()).to_numpy())
        if again.size:
            raise InvalidInput(
                f"id {self.id!r} must name each row once: {row_label(own.index, int(again[0]))} "
                "has none, or one that another row has, and epsilon here is that of one row. "
                f"Leave the column out (--drop {self.id}), or make one row of each person"
            )


def check_levels(column: pd.Series, kind: Kind, *, whose: str = "declared") -> None:
    """Raise InvalidInput, naming the row, for a value that is none of the levels."""
    if not isinstance(kind, Leveled):
        return
    other = np.flatnonzero(~(column.isin(list(kind.levels)) | column.isna()).to_numpy())
    if other.size:
        raise InvalidInput(
            f"column {str(column.name)!r} must have {whose} levels only: "
            f"{row_label(column.index, int(other[0]))} has another; "
            + (
                "add it to levels= in its type"
                if whose == "declared"
                else "declare its type (--types FILE, beside --reference)"
            )
        )


def kinds_of(types: Mapping[str, Any]) -> dict[str, Kind]:
    """Kinds of columns, which may be given as in a file of types."""
    return {name: _kind(name, own) for name, own in dict(types).items()}


def _kind(name: str, given: Any) -> Kind:
    if isinstance(given, Kind):
        return given
    if isinstance(given, Mapping):
        try:
            return kind_from_dict(given)
        except InvalidInput as error:
            raise InvalidInput(f"type of {name!r}: {error}") from None
    raise InvalidInput(
        f"type of {name!r} must be a kind of column, such as ph.Nominal(levels=(...)): found "
        f"{type(given).__name__}"
    )


def _values(kind: Kind) -> tuple[Any, ...] | None:
    """All values that a column can hold; None of numbers."""
    return (*kind.levels, *[None] * kind.missing) if isinstance(kind, Leveled) else None


def _listed(names: Any, what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InvalidInput(f"{what} must be a list of columns: found {names!r}")
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"{what} must be a list of names of columns: found {names!r}")
    return tuple(names)


def _unknown(role: str, name: str, columns: Collection[str]) -> InvalidInput:
    return InvalidInput(
        f"{role} must name columns of the table: {name!r} is none{did_you_mean(name, columns)}"
    )


def _both(name: str, one: str, other: str) -> str:
    if one == other:
        return f"{one} must name each column once: {name!r} is named twice"
    if {one, other} == {"sensitive", "keep"}:
        return (
            f"column {name!r} must not be sensitive and kept: a sensitive column is no public "
            "predictor; columns synthesized later read its synthetic values"
        )
    return f"column {name!r} must have one role: found {one} and {other}"


def _check_vary(sensitive: pd.DataFrame) -> None:
    """Refuse columns without values, and such of one value, each kind of them together."""
    empty = [name for name in sensitive if sensitive[name].isna().all()]
    if empty:
        raise InvalidInput(
            f"column {', '.join(map(repr, empty))} must have values: all are missing; drop it "
            "(leave it out of --sensitive, and --drop it)"
        )
    same = [name for name in sensitive if _is_constant(sensitive[name])]
    if same:
        raise InvalidInput(
            f"column {', '.join(map(repr, same))} must vary: all rows have the same value; keep or "
            "drop it (leave it out of --sensitive)"
        )


def _is_constant(column: pd.Series) -> bool:
    """Whether no two rows differ; what no column may hold is refused with its kind."""
    first = column.iloc[0]
    if column.isna().any() or not pd.api.types.is_scalar(first):
        return False
    return bool((column == first).all())


def _together(column: pd.Series, other: pd.Series) -> pd.Series:
    """Values of both tables; categories stay where they agree."""
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype != other.dtype:
        column, other = column.astype(object), other.astype(object)
    both: pd.Series = pd.concat([column, other], ignore_index=True)
    both.name = str(column.name)
    return both


def working_table(
    df: pd.DataFrame, kinds: Mapping[str, Kind], columns: Sequence[str]
) -> pd.DataFrame:
    """`columns` of `df`: those of levels as categories, declared, so that coding is public."""
    coded: pd.DataFrame = pd.DataFrame(
        {name: _as_levels(df[name], kinds[name]) if name in kinds else df[name] for name in columns}
    )
    return coded


def _as_levels(column: pd.Series, kind: Kind) -> pd.Series:
    if not isinstance(kind, Leveled):
        return column
    levels = pd.Index(list(kind.levels), dtype=object)
    places = places_of_levels(column, kind.levels)
    values = pd.Categorical.from_codes(places.tolist(), categories=levels)
    coded: pd.Series = pd.Series(values, index=column.index, name=column.name)
    return coded


def in_form_of_data(made: pd.Series, like: pd.Series) -> pd.Series:
    """A synthetic working column with the dtype, index and name of the data's. The levels declared
    take the place of its categories, or a drawn value would be missing where no record has it."""
    if made.dtype == like.dtype:
        return made
    if isinstance(like.dtype, pd.CategoricalDtype):
        dtype: pd.CategoricalDtype = like.dtype
        if isinstance(made.dtype, pd.CategoricalDtype):
            levels = made.dtype.categories
            if not levels.isin(dtype.categories).all():
                dtype = pd.CategoricalDtype(levels, ordered=dtype.ordered)
        values = pd.Categorical(made.astype(object), dtype=dtype)
        column: pd.Series = pd.Series(values, index=like.index, name=like.name)
        return column
    plain = made.astype(object)
    if pd.api.types.is_integer_dtype(like.dtype):
        return in_dtype_of(plain.to_numpy(dtype=np.float64), like)
    return plain.astype(like.dtype)
