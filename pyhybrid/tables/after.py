"""Relations that are declared, and applied to the noisy rows: post-processing, which costs nothing.

================================ ===========================================================
``total = a + b``                the column is computed, and no longer synthesized
``start <= end``                 rows that break it are replaced by rows that keep all rules
``births if sex == "m"``         the column is empty there
``births exactly if sex == "m"`` and nowhere else
================================ ===========================================================

Expressions have names of columns (others than words in backticks), numbers, quoted levels, ``+ - *
/``, comparisons, ``and``, ``or``, ``not``. They are read by `ast`, and nothing in them is called. A
comparison with a missing value breaks no rule. Dates count in days. Codes are no amounts: they are
compared by ``==`` and ``!=`` alone.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import BoolArray, did_you_mean
from pyhybrid.core.dates import read_dates
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form, Kind, numbers_in
from pyhybrid.models.columns.kinds import Dates, Leveled, Real
from pyhybrid.models.formula.terms import ARITHMETIC, COMPARISONS, syntax_of
from pyhybrid.models.formula.values import is_number, with_columns

_NAME = r"(`[^`]+`|[^\W\d]\w*)"
_DERIVED = re.compile(rf"\s*{_NAME}\s*=(?!=)\s*(.+)", re.DOTALL)
_BLANK = re.compile(rf"\s*{_NAME}\s+(exactly\s+)?if\s+(.+)", re.DOTALL)
_PARTS = "names of columns, numbers, quoted levels, + - * /, comparisons, and, or, not"
_READ = (
    ast.BinOp, ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Load,
    ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.Div, *COMPARISONS,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A declared relation: of a `column` that is "derived", "blank" or "exactly" blank, or a
    "rule"; `names` are the columns that its expression reads."""

    text: str
    role: str
    column: str | None
    tree: ast.expr
    names: Mapping[str, str]

    def value(self, table: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.Series:
        """Of its expression for each row: numbers, or logicals, which may be missing."""
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                value = self._of(self.tree, table, kinds)
        except (TypeError, ZeroDivisionError):
            raise InvalidInput(
                f"after: {self.text!r} cannot be computed: numbers are added, multiplied, and "
                "divided, not by 0; texts are equal (==) or not (!=) to quoted texts; and, or and "
                "not stand between comparisons, one side of which is a column"
            ) from None
        logical = isinstance(value, pd.Series) and value.dtype == "boolean"
        if self.role != "derived" and not logical:
            raise InvalidInput(f"after: {self.text!r} must compare: found no comparison")
        if not isinstance(value, pd.Series) or value.dtype == "string":
            raise InvalidInput(f"after: {self.text!r} must be computed from columns of numbers")
        return value

    def broken(self, table: pd.DataFrame, kinds: Mapping[str, Kind]) -> BoolArray:
        """Rows that break it, shape (n,)."""
        value = self.value(table, kinds)
        if self.role == "derived":
            column = computed(table[self.column], value, kinds.get(str(self.column)))
            decimals = form_of(self, kinds).decimals
            off = column != value
            if value.dtype != "boolean":
                step = 0.0 if decimals is None else 10.0**-decimals
                off = (column - value).abs() > 1e-6 * value.abs() + 0.5 * step
            return np.asarray(off.fillna(False), dtype=bool)
        yes, no = (np.asarray(part.fillna(False), dtype=bool) for part in (value, ~value))
        if self.role == "rule":
            return no
        absent = table[self.column].isna().to_numpy()
        return np.asarray(yes & ~absent | (no & absent if self.role == "exactly" else False))

    def _of(
        self, node: ast.expr, table: pd.DataFrame, kinds: Mapping[str, Kind], *, codes: bool = False
    ) -> Any:
        """Value of a part, checked by `_read`; with `codes`, or without them."""
        if isinstance(node, ast.Name):
            kind = kinds.get(self.names[node.id])
            column = values_of(table[self.names[node.id]], kind)
            return column if codes or not isinstance(kind, Real) else column.where(
                ~column.isin(kind.codes))  # fmt: skip
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return node.value
        if isinstance(node, ast.UnaryOp):
            value = self._of(node.operand, table, kinds)
            return -value if isinstance(node.op, ast.USub) else ~value
        if isinstance(node, ast.BinOp):
            left, right = (self._of(side, table, kinds) for side in (node.left, node.right))
            value = ARITHMETIC[type(node.op)](left, right)
            return value.where(np.isfinite(value)) if isinstance(value, pd.Series) else value
        if isinstance(node, ast.BoolOp):
            parts = [self._of(side, table, kinds) for side in node.values]
            if any(getattr(part, "dtype", None) != "boolean" for part in parts):
                raise TypeError("a part that is no comparison")
            return reduce(and_ if isinstance(node.op, ast.And) else or_, parts)
        if isinstance(node, ast.Compare):
            pairs = zip(pairwise((node.left, *node.comparators)), node.ops, strict=True)
            return reduce(and_, (self._compared(sides, op, table, kinds) for sides, op in pairs))
        raise TypeError("a constant that is neither number nor text")

    def _compared(
        self, sides: tuple[ast.expr, ...], op: ast.cmpop, table: pd.DataFrame,
        kinds: Mapping[str, Kind],
    ) -> pd.Series:  # fmt: skip
        same = isinstance(op, ast.Eq | ast.NotEq)
        left, right = (self._of(side, table, kinds, codes=same) for side in sides)
        texts = {_is_text(left), _is_text(right)}
        value = COMPARISONS[type(op)](left, right)
        if len(texts) == 2 or (texts == {True} and not same) or not isinstance(value, pd.Series):
            raise TypeError("texts compare with quoted texts, numbers with numbers")
        compared: pd.Series = value.astype("boolean").mask(pd.isna(left) | pd.isna(right))
        return compared


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, pd.Series) and value.dtype == "string")


def relations(
    texts: Sequence[str], columns: Collection[str], changed: Collection[str]
) -> tuple[Relation, ...]:
    """Declared relations of a table with these `columns`, of which those `changed` are synthesized.

    Raises
    ------
    InvalidInput
        For what is not understood, unknown columns, and relations that could change nothing.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InvalidInput("after must be a list of texts, such as ['start <= end']")
    read = [_read(text) for text in texts]
    derived = [one for one in read if one.role == "derived"]
    computed = [str(one.column) for one in derived]
    known = {*columns, *computed}
    for one in read:
        for name in filter(None, (*one.names.values(), one.column)):
            if name not in known:
                raise InvalidInput(
                    f"after: {one.text!r} must name columns: {name!r} is none"
                    f"{did_you_mean(name, sorted(map(str, known)))}"
                )
        named = [one.column] if one.column else one.names.values()
        if one.role != "derived" and not {*named} & {*changed, *computed}:
            raise InvalidInput(f"after: {one.text!r} must name a column that is synthesized")
    for place, one in enumerate(derived):
        if one.column in computed[:place] or {*computed[place:]} & {*one.names.values()}:
            raise InvalidInput(
                f"after: {one.column!r} must be computed once, from columns before it"
            )
    return tuple(read)


def derived_of(texts: Sequence[str]) -> list[str]:
    """Columns that declared relations compute: of the records' own only a report tells."""
    return [str(one.column) for one in map(_read, texts) if one.role == "derived"]


def _read(text: str) -> Relation:
    derived, blank = _DERIVED.fullmatch(text), _BLANK.fullmatch(text)
    role, rest, column = "rule", text, None
    if derived:
        role, column, rest = "derived", derived[1].strip("`"), derived[2]
    elif blank:
        role, column, rest = "exactly" if blank[2] else "blank", blank[1].strip("`"), blank[3]
    try:
        tree, quoted = syntax_of(rest)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInput(f"after: {text!r} must be of {_PARTS}: it cannot be read") from None
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names[node.id] = quoted.get(node.id, node.id)
        elif not isinstance(node, _READ):
            odd = type(node).__name__
            raise InvalidInput(f"after: {text!r} must be of {_PARTS}: {odd} is none of these")
    return Relation(text=" ".join(text.split()), role=role, column=column, tree=tree, names=names)


def values_of(column: pd.Series, kind: Kind | None) -> pd.Series:
    """Numbers (days for dates without codes), logicals that may be missing, or texts, by kind."""
    values: pd.Series
    levels = kind.levels if isinstance(kind, Leveled) else ()
    logicals = levels and all(isinstance(level, bool) for level in levels)
    numbers = levels and not any(isinstance(level, str | bool) for level in levels)
    if isinstance(kind, Dates):
        times = read_dates(column, kind.format if "%" in kind.format else None)
        days = (times.to_numpy("M8[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        values = pd.Series(np.where(kind.numbers(column) < 0, np.nan, days), index=column.index)
    elif logicals or (kind is None and pd.api.types.is_bool_dtype(column.dtype)):
        values = column.astype("boolean")
    elif numbers or isinstance(kind, Real) or (not levels and is_number(column)):
        values = pd.Series(numbers_in(column), index=column.index)
    else:
        values = column.astype(object).map(str, na_action="ignore").astype("string")
    return values


def computed(column: pd.Series, like: pd.Series, kind: Kind | None) -> pd.Series:
    """Cells of a derived column as the value `like` that is computed, each by itself; missing where
    they are none, so that no record's text is another's doing, or refused."""
    if isinstance(kind, Dates) and not is_number(column):
        return values_of(column, kind)
    numbers: pd.Series = pd.Series(numbers_in(column), index=column.index)
    logical = like.dtype == "boolean"
    return numbers.where(numbers.isin([0, 1])).astype("boolean") if logical else numbers


def form_of(relation: Relation, kinds: Mapping[str, Kind]) -> Form:
    """Form of a derived column: its declared type, or the decimals of what is added or multiplied;
    never what its values are."""
    declared = kinds.get(str(relation.column))
    if declared is not None:
        return declared
    read, nodes = [kinds.get(name) for name in relation.names.values()], [*ast.walk(relation.tree)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    decimals = [kind.decimals if isinstance(kind, Real) else 0 for kind in read]
    exact = all(isinstance(value, int) for value in constants) and None not in decimals
    exact &= not any(isinstance(node, ast.Div) for node in nodes)
    exact &= not any(isinstance(kind, Dates) for kind in read)
    if any(isinstance(node, ast.Mult) for node in nodes):
        exact &= not any(decimals)
    most = max((places for places in decimals if places is not None), default=0)
    absent = any(
        kind is None or kind.missing or (isinstance(kind, Real) and kind.codes) for kind in read
    )
    return Form(decimals=most if exact else None, missing=absent)


def apply(
    table: pd.DataFrame,
    declared: Sequence[Relation],
    kinds: Mapping[str, Kind],
    changed: Sequence[str],
    rng: np.random.Generator,
) -> pd.DataFrame:
    """A synthetic table with all relations: blanks, then derived columns, then rules, for which
    rows that break one get all `changed` columns from a row that keeps them, one with the nearest
    other columns. Reads no confidential value."""
    derived = [one for one in declared if one.role == "derived"]
    for one in declared:
        if one.role in ("blank", "exactly"):
            where = np.asarray(one.value(table, kinds).fillna(False), dtype=bool)
            column = table[one.column]
            absent: Any = {"i": "Int64", "b": "boolean"}.get(column.dtype.kind, column.dtype)
            table = with_columns(table, {one.column: column.astype(absent).mask(where)})
    for one in derived:
        value = one.value(table, kinds)
        if value.dtype != "boolean":
            value = form_of(one, kinds).cast(value)
        table = with_columns(table, {one.column: value})
    checked = [one.broken(table, kinds) for one in declared if one.role != "derived"]
    broken = np.any(checked, axis=0) if checked else np.zeros(len(table), dtype=bool)
    if broken.all():
        said = "no synthetic row keeps all relations of after=: none is changed"
        warnings.warn(said, stacklevel=2)
    if broken.all() or not broken.any():
        return table
    names = {*changed, *(one.column for one in derived)} & {*table}
    others = [pd.factorize(table[name], sort=True)[0] for name in table if name not in names]
    order = np.lexsort([rng.random(len(table)), *others[::-1]])
    place = np.argsort(order)
    kept, source = order[~broken[order]], np.arange(len(table))
    nearest = np.searchsorted(place[kept], place[broken])
    source[broken] = kept[np.minimum(nearest, len(kept) - 1)]
    rows = {name: table[name].take(source).set_axis(table.index) for name in table if name in names}
    return with_columns(table, rows)
