"""Rules that every row must meet, such as ``wage <= income``: read, never run as code.

Synthetic values that break a rule are drawn again from the model of their column: the row's value
then comes from the model given that the rule holds, a function of the released draw, of the row's
other values and of the rule, none of which looks at the confidential data. A structural zero
(``age < 16 -> income == 0``) is put in place where its condition holds: what else could be there is
nothing. Neither costs epsilon.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.formula.values import with_columns

__all__ = ["RowRule", "meeting", "read_rules", "rules_met_by"]

_TRIES = 1000
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_QUOTED = re.compile(r"`([^`]*)`")
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class RowRule:
    """One rule.

    Attributes
    ----------
    text : str
        Comparisons (``< <= > >= == !=``) of columns, numbers and texts, with ``+ - * /``, joined by
        ``and``, ``or``, ``not``; ``A -> B`` for: where A holds, B must. Names that Python lacks in
        backticks. A row with a missing value among its columns meets it.
    columns : tuple of str
        That it reads, in the order of first appearance.
    """

    text: str
    columns: tuple[str, ...]

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """Whether each row meets the rule, shape (n,)."""
        condition, consequence = self._sides
        met = _values(consequence, table, self._named)
        if condition is not None:
            met = ~_truth(_values(condition, table, self._named), len(table)) | met
        unknown = table[list(self.columns)].isna().any(axis=1).to_numpy()
        return np.asarray(_truth(met, len(table)) | unknown)

    @property
    def fixes(self) -> tuple[str, Any] | None:
        """Column and value of a structural zero ``A -> column == value``, A not reading it."""
        condition, own = self._sides
        if condition is None or not isinstance(own, ast.Compare) or len(own.ops) != 1:
            return None
        left, right = own.left, own.comparators[0]
        if not (isinstance(own.ops[0], ast.Eq) and isinstance(left, ast.Name)):
            return None
        if not isinstance(right, ast.Constant) or left.id in _names(condition):
            return None
        return self._named.get(left.id, left.id), right.value

    def where(self, table: pd.DataFrame) -> BoolArray:
        """Rows whose value is fixed, shape (n,)."""
        condition, _ = self._sides
        assert condition is not None
        return _truth(_values(condition, table, self._named), len(table))

    @property
    def _sides(self) -> tuple[ast.expr | None, ast.expr]:
        parts = [_parsed(part, self.text) for part in _unquoted(self.text)[0].split("->")]
        return (None, parts[0]) if len(parts) == 1 else (parts[0], parts[1])

    @property
    def _named(self) -> dict[str, str]:
        return _unquoted(self.text)[1]


def read_rules(texts: Sequence[str], columns: Iterable[str]) -> tuple[RowRule, ...]:
    """Rules against the names of a table's columns.

    Raises
    ------
    InvalidInput
        For a text that is no rule, or names what is no column; quotes the rule.
    """
    if isinstance(texts, str):
        raise InvalidInput(f"rules must be a list of texts: found {texts!r}")
    return tuple(_read(text, list(columns)) for text in texts)


def rules_met_by(table: pd.DataFrame, rules: Sequence[RowRule]) -> None:
    """Raise InvalidInput, naming the rule, if no row of the table meets one of them."""
    for rule in rules:
        if not rule.holds(table).any():
            raise InvalidInput(
                f"rule {rule.text!r} must be met by some row: none meets it; correct the rule"
            )


def meeting(
    rules: Sequence[RowRule], draw: Callable[[], pd.DataFrame], known: pd.DataFrame
) -> pd.DataFrame:
    """Columns drawn anew in rows that break a rule, until all rows meet all.

    Parameters
    ----------
    rules : sequence of RowRule
        Whose columns are in `known` or drawn.
    draw : callable
        Draws the columns for all rows.
    known : DataFrame
        The rows' other values.

    Raises
    ------
    SamplingError
        If the model has next to no probability where a rule holds; names the rule.
    """
    made = _fixed(rules, draw(), known)
    for _ in range(_TRIES):
        broken = _broken(rules, made, known)
        if not broken.any():
            return made
        other = _fixed(rules, draw(), known)
        made = pd.DataFrame({c: made[c].where(~broken, other[c]) for c in made}, index=made.index)
    whole = with_columns(known, made)
    worst = next(rule for rule in rules if not rule.holds(whole).all())
    raise SamplingError(
        f"rule {worst.text!r} cannot be met: the model of {', '.join(map(str, made))} has next to "
        "no probability where it holds, in some synthetic row; give the columns another order, "
        "another type, or the rule as a structural zero (condition -> column == value)"
    )


def _broken(rules: Sequence[RowRule], made: pd.DataFrame, known: pd.DataFrame) -> BoolArray:
    whole = with_columns(known, made)
    met = np.ones(len(made), dtype=bool)
    for rule in rules:
        met &= rule.holds(whole)
    return ~met


def _fixed(rules: Sequence[RowRule], made: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Structural zeros in their place."""
    for rule in rules:
        if rule.fixes is not None and rule.fixes[0] in made:
            column, value = rule.fixes
            own = made[column]
            whole = with_columns(known, made)  # its condition is of drawn ones
            fixed = own.mask(rule.where(whole), value).astype(own.dtype)
            made = with_columns(made, {column: fixed})
    return made


def _read(text: Any, columns: list[str]) -> RowRule:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"a rule must be a text such as 'wage <= income': found {text!r}")
    source, named = _unquoted(text)
    parts = source.split("->")
    if len(parts) > 2:
        raise InvalidInput(f"rule {text!r} must have one '->' at most")
    found: dict[str, None] = {}
    for part in parts:
        tree = _parsed(part, text)
        if not isinstance(tree, ast.Compare | ast.BoolOp) and not _is_not(tree):
            raise InvalidInput(f"rule {text!r} must be a comparison, such as 'wage <= income'")
        found |= dict.fromkeys(named.get(name, name) for name in _names(tree))
    for name in found:
        if name not in columns:
            raise InvalidInput(
                f"rule {text!r} must name columns of the table: {name!r} is none"
                f"{did_you_mean(name, columns)}"
            )
    return RowRule(text=text, columns=tuple(found))


def _unquoted(text: str) -> tuple[str, dict[str, str]]:
    """The text with names in backticks replaced by plain ones, and what these stand for."""
    named: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        name = f"quoted_{len(named)}_"
        named[name] = found.group(1)
        return name

    return _QUOTED.sub(plain, text), named


def _parsed(part: str, text: str) -> ast.expr:
    try:
        tree = ast.parse(part.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise InvalidInput(f"rule {text!r} does not parse") from None
    for node in ast.walk(tree):
        allowed = (
            ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Load,
            ast.And, ast.Or, ast.Not, ast.USub, *_COMPARE, *_ARITHMETIC,
        )  # fmt: skip
        if not isinstance(node, allowed):
            raise InvalidInput(
                f"rule {text!r} must have comparisons, + - * /, and, or, not: found "
                f"{type(node).__name__}"
            )
        if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float, str)):
            raise InvalidInput(f"rule {text!r} must have numbers and texts as constants")
    return tree


def _is_not(tree: ast.expr) -> bool:
    return isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)


def _names(tree: ast.AST) -> list[str]:
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _values(node: ast.expr, table: pd.DataFrame, named: Mapping[str, str]) -> Any:
    """Value of an expression in each row."""
    if isinstance(node, ast.Name):
        return _column(table[named.get(node.id, node.id)])
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        sides = (_values(side, table, named) for side in (node.left, node.right))
        with np.errstate(divide="ignore", invalid="ignore"):
            return _ARITHMETIC[type(node.op)](*sides)
    if isinstance(node, ast.UnaryOp):
        own = _values(node.operand, table, named)
        return ~_truth(own, len(table)) if isinstance(node.op, ast.Not) else -own
    if isinstance(node, ast.BoolOp):
        parts = [_truth(_values(each, table, named), len(table)) for each in node.values]
        both = isinstance(node.op, ast.And)
        return np.logical_and.reduce(parts) if both else np.logical_or.reduce(parts)
    assert isinstance(node, ast.Compare)
    met, left = np.ones(len(table), dtype=bool), _values(node.left, table, named)
    for kind, each in zip(node.ops, node.comparators, strict=True):
        right = _values(each, table, named)
        try:
            met &= _truth(_COMPARE[type(kind)](left, right), len(table))
        except TypeError:
            raise InvalidInput(
                f"rule must compare like with like: {ast.unparse(node)!r} compares texts with "
                "numbers"
            ) from None
        left = right
    return met


def _column(values: pd.Series) -> npt.NDArray[Any]:
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    own = values.astype(object)
    if pd.api.types.infer_dtype(own.dropna(), skipna=True) in ("integer", "floating", "boolean"):
        return pd.to_numeric(own).to_numpy(dtype=np.float64, na_value=np.nan)
    return own.fillna("").to_numpy(dtype=object)


def _truth(values: Any, n: int) -> BoolArray:
    return np.array(np.broadcast_to(np.asarray(values, dtype=bool), (n,)))
