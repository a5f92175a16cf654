"""Relations that are declared, and applied to the noisy rows: post-processing, which costs nothing.

================================ ===========================================================
``total = a + b``                the column is computed, and no longer synthesized
``start <= end``                 rows that break it are replaced by rows that keep all rules
``births if sex == "m"``         the column is empty there
``births exactly if sex == "m"`` and nowhere else
================================ ===========================================================

Expressions have names of columns (others than words in backticks), numbers, quoted levels, ``+ - *
/``, comparisons, ``and``, ``or``, ``not``. They are read by `ast`, and nothing in them is called. A
comparison with a missing value breaks no rule. Dates count in days.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.dates import read_dates
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.dates import Dates
from pyhybrid.models.columns.form import Form, Kind, numbers_in
from pyhybrid.models.columns.kinds import Leveled, Number
from pyhybrid.models.formula.values import is_number, with_columns

_NAME = r"(`[^`]+`|[^\W\d]\w*)"
_DERIVED = re.compile(rf"\s*{_NAME}\s*=(?!=)\s*(.+)", re.DOTALL)
_BLANK = re.compile(rf"\s*{_NAME}\s+(exactly\s+)?if\s+(.+)", re.DOTALL)
_QUOTED = re.compile(r"""("[^"]*"|'[^']*')|`([^`]+)`""")
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_PARTS = "names of columns, numbers, quoted levels, + - * /, comparisons, and, or, not"


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A declared relation: of a `column` that is "derived", "blank" or "exactly" blank, or a
    "rule"; `names` are the columns that its expression reads."""

    text: str
    role: str
    column: str | None
    tree: ast.expr
    names: Mapping[str, str]

    def value(self, table: pd.DataFrame, kinds: Mapping[str, Kind]) -> Any:
        """Of its expression for each row: numbers, texts, or logicals, which may be missing."""
        reader = _Reader(table=table, kinds=kinds, names=self.names, text=self.text)
        value = reader.of(self.tree)
        logical = isinstance(value, pd.Series) and value.dtype == "boolean"
        if self.role != "derived" and not logical:
            raise InvalidInput(f"after: {self.text!r} must compare: found no comparison")
        if not isinstance(value, pd.Series) or value.dtype == "string":
            raise InvalidInput(f"after: {self.text!r} must be computed from columns of numbers")
        return value

    def broken(self, table: pd.DataFrame, kinds: Mapping[str, Kind]) -> npt.NDArray[np.bool_]:
        """Rows that break it, shape (n,)."""
        value = self.value(table, kinds)
        if self.role == "rule":
            return np.asarray((~value).fillna(False), dtype=bool)
        if self.role == "derived":
            column = _column(table[self.column], kinds.get(str(self.column)))
            if value.dtype == "boolean":
                return np.asarray((column != value).fillna(False), dtype=bool)
            off = (column - value).abs() > 1e-6 * value.abs() + 0.5 * _step(self, kinds)
            return np.asarray(off, dtype=bool)
        absent = table[self.column].isna().to_numpy()
        broken = np.asarray(value.fillna(False), dtype=bool) & ~absent
        if self.role == "exactly":
            broken |= np.asarray((~value).fillna(False), dtype=bool) & absent
        return np.asarray(broken)


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
    derived = [str(one.column) for one in read if one.role == "derived"]
    for one in read:
        known = {*columns, *derived}
        for name in filter(None, (*one.names.values(), one.column)):
            if name not in known:
                raise InvalidInput(
                    f"after: {one.text!r} must name columns: {name!r} is none"
                    f"{did_you_mean(name, sorted(map(str, known)))}"
                )
        own = [one.column] if one.column else one.names.values()
        if one.role != "derived" and not {*own} & {*changed, *derived}:
            raise InvalidInput(f"after: {one.text!r} must name a column that is synthesized")
    for place, name in enumerate(derived):
        later = {*derived[place:]}
        if name in derived[:place] or later & {*_of(read, name).names.values()}:
            raise InvalidInput(f"after: {name!r} must be computed once, from columns before it")
    return tuple(read)


def _of(read: Sequence[Relation], name: str | None) -> Relation:
    return next(one for one in read if one.role == "derived" and one.column == name)


def _read(text: str) -> Relation:
    derived, blank = _DERIVED.fullmatch(text), _BLANK.fullmatch(text)
    role, rest = "rule", text
    column: str | None = None
    if derived:
        role, column, rest = "derived", derived[1].strip("`"), derived[2]
    elif blank:
        role, column, rest = "exactly" if blank[2] else "blank", blank[1].strip("`"), blank[3]
    quoted: dict[str, str] = {}

    def placeholder(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        return quoted.setdefault(found[2], f"quoted_name_{len(quoted)}")

    try:
        tree = ast.parse(_QUOTED.sub(placeholder, rest).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInput(f"after: {text!r} must be of {_PARTS}: it cannot be read") from None
    back = {word: name for name, word in quoted.items()}
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names[node.id] = back.get(node.id, node.id)
        elif not isinstance(node, _READ):
            found = type(node).__name__
            raise InvalidInput(f"after: {text!r} must be of {_PARTS}: {found} is none of these")
    return Relation(text=" ".join(text.split()), role=role, column=column, tree=tree, names=names)


_READ = (
    ast.BinOp, ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Load,
    ast.Constant, *_ARITHMETIC, *_COMPARED,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Values of expressions, whose nodes were checked by `_read`."""

    table: pd.DataFrame
    kinds: Mapping[str, Kind]
    names: Mapping[str, str]
    text: str

    def of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            name = self.names[node.id]
            return _column(self.table[name], self.kinds.get(name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return node.value
        if isinstance(node, ast.UnaryOp):
            value = self.of(node.operand)
            return -self._number(value) if isinstance(node.op, ast.USub) else ~self._logical(value)
        if isinstance(node, ast.BinOp):
            left, right = (self._number(self.of(side)) for side in (node.left, node.right))
            try:
                with np.errstate(divide="ignore", invalid="ignore"):
                    value = _ARITHMETIC[type(node.op)](left, right)
            except ZeroDivisionError:  # of two constants; in a column the cell is missing
                raise self._wrong("it divides by 0") from None
            return value.where(np.isfinite(value)) if isinstance(value, pd.Series) else value
        if isinstance(node, ast.BoolOp):
            value, *others = (self._logical(self.of(side)) for side in node.values)
            for other in others:
                value = value & other if isinstance(node.op, ast.And) else value | other
            return value
        if isinstance(node, ast.Compare):
            sides = [self.of(side) for side in (node.left, *node.comparators)]
            value = self._compared(sides[0], sides[1], node.ops[0])
            for place, op in enumerate(node.ops[1:], start=1):
                value = value & self._compared(sides[place], sides[place + 1], op)
            return value
        raise self._wrong("a constant is neither number nor text")

    def _number(self, value: Any) -> Any:
        dtype = value.dtype if isinstance(value, pd.Series) else type(value)
        if dtype in ("string", "boolean", str, bool):
            raise self._wrong("only numbers can be added, multiplied or divided")
        return _amounts(value)

    def _logical(self, value: Any) -> Any:
        if not isinstance(value, pd.Series) or value.dtype != "boolean":
            raise self._wrong("and, or and not stand between comparisons")
        return value

    def _compared(self, left: Any, right: Any, op: ast.cmpop) -> Any:
        kinds = {
            side.dtype.name if isinstance(side, pd.Series) else "string"
            if isinstance(side, str)
            else "boolean" if isinstance(side, bool) else "float64"
            for side in (left, right)
        }  # fmt: skip
        if len(kinds) > 1:
            raise self._wrong("texts compare with quoted texts, numbers with numbers")
        if kinds == {"string"} and not isinstance(op, ast.Eq | ast.NotEq):
            raise self._wrong("texts are equal (==) or not (!=)")
        if not isinstance(op, ast.Eq | ast.NotEq):
            left, right = _amounts(left), _amounts(right)
        value = _COMPARED[type(op)](left, right)
        if not isinstance(value, pd.Series):
            raise self._wrong("one side must be a column")
        absent = np.zeros(len(value), dtype=bool)
        for side in (left, right):
            absent |= side.isna().to_numpy() if isinstance(side, pd.Series) else False
        return value.astype("boolean").mask(absent)

    def _wrong(self, why: str) -> InvalidInput:
        return InvalidInput(f"after: {self.text!r} cannot be computed: {why}")


def _amounts(value: Any) -> Any:
    """Numbers without codes, which are no amounts."""
    codes = value.attrs.get("codes") if isinstance(value, pd.Series) else None
    return value.mask(value.isin(codes)) if codes else value


def _column(column: pd.Series, kind: Kind | None) -> pd.Series:
    """Numbers (days for dates), logicals that may be missing, or texts, as the kind says."""
    if isinstance(kind, Dates):
        typed = "%" not in kind.format
        times = read_dates(column, None if typed else kind.format)
        days: pd.Series = (times - pd.Timestamp(0)) / pd.Timedelta(days=1)
        return days
    levels = kind.levels if isinstance(kind, Leveled) else ()
    logical = levels and all(isinstance(level, bool) for level in levels)
    if logical or (kind is None and pd.api.types.is_bool_dtype(column.dtype)):
        logicals: pd.Series = column.astype("boolean")
        return logicals
    numeric = levels and not any(isinstance(level, str | bool) for level in levels)
    if numeric or isinstance(kind, Number) or (not levels and is_number(column)):
        numbers: pd.Series = pd.Series(numbers_in(column), index=column.index)
        numbers.attrs["codes"] = kind.codes if isinstance(kind, Number) else ()
        return numbers
    texts: pd.Series = column.astype(object).map(str, na_action="ignore").astype("string")
    return texts


def _step(relation: Relation, kinds: Mapping[str, Kind]) -> float:
    decimals = form_of(relation, kinds).decimals
    return 0.0 if decimals is None else 10.0**-decimals


def form_of(relation: Relation, kinds: Mapping[str, Kind]) -> Form:
    """Form of a derived column: its declared type, or the decimals of what is added or multiplied;
    never what its values are."""
    declared = kinds.get(str(relation.column))
    if declared is not None:
        return declared
    read = [kinds.get(name) for name in relation.names.values()]
    nodes = [*ast.walk(relation.tree)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    decimals = [own.decimals if isinstance(own, Number) else 0 for own in read]
    exact = all(isinstance(value, int) for value in constants) and None not in decimals
    exact &= not any(isinstance(node, ast.Div) for node in nodes)
    exact &= not any(isinstance(own, Dates) for own in read)
    if any(isinstance(node, ast.Mult) for node in nodes):
        exact &= not any(decimals)
    most = max((places for places in decimals if places is not None), default=0)
    absent = any(
        own is None or own.missing or (isinstance(own, Number) and bool(own.codes)) for own in read
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
    for one in declared:
        if one.role in ("blank", "exactly"):
            where = np.asarray(one.value(table, kinds).fillna(False), dtype=bool)
            column = table[one.column]
            absent: Any = {"i": "Int64", "b": "boolean"}.get(column.dtype.kind)
            column = column if absent is None else column.astype(absent)
            table = with_columns(table, {one.column: column.mask(where)})
    for one in declared:
        if one.role == "derived":
            value = one.value(table, kinds)
            if value.dtype != "boolean":
                value = form_of(one, kinds).cast(value)
            table = with_columns(table, {one.column: value})
    broken = np.zeros(len(table), dtype=bool)
    for one in declared:
        if one.role != "derived":
            broken |= one.broken(table, kinds)
    if not broken.any():
        return table
    if broken.all():
        warnings.warn("no synthetic row keeps all relations of after=: none is changed",
                      stacklevel=2)  # fmt: skip
        return table
    names = [*changed, *(str(one.column) for one in declared if one.role == "derived")]
    names = [name for name in dict.fromkeys(names) if name in table]
    others = [pd.factorize(table[name], sort=True)[0] for name in table if name not in names]
    order = np.lexsort([rng.random(len(table)), *others[::-1]])
    place = np.empty(len(table), dtype=np.intp)
    place[order] = np.arange(len(table))
    kept = order[~broken[order]]
    source = np.arange(len(table))
    nearest = np.searchsorted(place[kept], place[broken])
    source[broken] = kept[np.minimum(nearest, len(kept) - 1)]
    return with_columns(
        table, {name: table[name].take(source).set_axis(table.index) for name in names}
    )
