"""Rules that every row must meet, such as ``wage <= income``: read, never run as code.

Synthetic values that break a rule are drawn again from the model of their column: the row's value
then comes from the model given that the rule holds, a function of the released draw, of the row's
other values and of the rule, none of which looks at the confidential data. A structural zero
(``age < 16 -> income == 0``) is put in place where its condition holds: what else could be there is
nothing. Neither costs epsilon.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import BoolArray, did_you_mean
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.formula.terms import ARITHMETIC, COMPARISONS, unquoted
from pyhybrid.models.formula.values import with_columns

_TRIES = 1000
_ALLOWED = (
    ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Load, ast.And,
    ast.Or, ast.Not, ast.USub, *COMPARISONS, ast.Add, ast.Sub, ast.Mult, ast.Div,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RowRule:
    """Comparisons of columns, numbers and texts, with ``+ - * /``, joined by ``and``, ``or``,
    ``not``; ``A -> B``: where A holds, B must. A row with a missing value among its columns meets
    it."""

    text: str
    columns: tuple[str, ...]

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """True where a row meets the rule, shape (n,)."""
        condition, consequence = self._sides
        met = self._true(consequence, table)
        if condition is not None:
            met |= ~self._true(condition, table)
        unknown = table[list(self.columns)].isna().any(axis=1).to_numpy()
        return np.asarray(met | unknown)

    def fixed(self, drawn: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
        """`drawn`, a structural zero ``A -> column == value``, A not reading it, in its place."""
        match self._sides:
            case (
                ast.expr() as condition,
                ast.Compare(ast.Name(id=name), [ast.Eq()], [ast.Constant(value=value)]),
            ) if name not in _names(condition):
                column = self._named.get(name, name)
                if column in drawn:
                    where = self._true(condition, with_columns(known, drawn))
                    values = drawn[column].mask(where, value).astype(drawn[column].dtype)
                    return with_columns(drawn, {column: values})
        return drawn

    @property
    def _sides(self) -> tuple[ast.expr | None, ast.expr]:
        parts = [_parsed(part, self.text) for part in unquoted(self.text)[0].split("->")]
        return (None, parts[0]) if len(parts) == 1 else (parts[0], parts[1])

    @property
    def _named(self) -> dict[str, str]:
        return unquoted(self.text)[1]

    def _true(self, side: ast.expr, table: pd.DataFrame) -> BoolArray:
        return _truth(_values(side, table, self._named), len(table))


def read_rules(texts: Sequence[str], columns: Iterable[str]) -> tuple[RowRule, ...]:
    """Rules against the names of a table's columns; InvalidInput quotes a text that is no rule, or
    names what is no column."""
    if isinstance(texts, str):
        raise InvalidInput(f"rules must be a list of texts: found {texts!r}")
    return tuple(_read(text, list(columns)) for text in texts)


def rules_met_by(
    table: pd.DataFrame,
    rules: Sequence[RowRule],
    declared: Mapping[str, Sequence[Any] | None] | None = None,
) -> None:
    """Raise InvalidInput, naming the rule, if no row of the table meets one of them. Of `declared`
    columns no record is looked at: each row has their levels in turn; with anything (None), or very
    many, a rule can be met."""
    for rule in rules:
        own = {name: each for name, each in (declared or {}).items() if name in rule.columns}
        levels = [each for each in own.values() if each is not None]
        if len(levels) < len(own) or math.prod(map(len, levels)) > _TRIES:
            continue
        rows = (with_columns(table, dict(zip(own, one, strict=True))) for one in product(*levels))
        if not any(rule.holds(each).any() for each in rows):
            raise InvalidInput(
                f"rule {rule.text!r} must be met by some row: none meets it; correct the rule"
            )


def meeting(
    rules: Sequence[RowRule], draw: Callable[[], pd.DataFrame], known: pd.DataFrame
) -> pd.DataFrame:
    """Columns drawn anew, for all rows by `draw`, in rows that break a rule, until all rows meet
    all. Columns of `rules` are drawn or among the rows' other values, `known`. SamplingError names
    a rule that the model has next to no probability to meet."""

    def draw_and_fix() -> pd.DataFrame:
        drawn = draw()
        for rule in rules:
            drawn = rule.fixed(drawn, known)
        return drawn

    drawn = draw_and_fix()
    for _ in range(_TRIES):
        whole = with_columns(known, drawn)
        broken = ~np.logical_and.reduce([rule.holds(whole) for rule in rules])
        if not broken.any():
            return drawn
        other = draw_and_fix()
        mixed = {column: drawn[column].where(~broken, other[column]) for column in drawn}
        drawn = pd.DataFrame(mixed, index=drawn.index)
    whole = with_columns(known, drawn)
    worst = next(rule for rule in rules if not rule.holds(whole).all())
    raise SamplingError(
        f"rule {worst.text!r} cannot be met: the model of {', '.join(map(str, drawn))} has next to "
        "no probability where it holds, in some synthetic row; give the columns another order, "
        "another type, or the rule as a structural zero (condition -> column == value)"
    )


def _read(text: Any, columns: list[str]) -> RowRule:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"a rule must be a text such as 'wage <= income': found {text!r}")
    source, named = unquoted(text)
    parts = source.split("->")
    if len(parts) > 2:
        raise InvalidInput(f"rule {text!r} must have one '->' at most")
    read: dict[str, None] = {}
    for part in parts:
        tree = _parsed(part, text)
        negated = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
        if not (isinstance(tree, ast.Compare | ast.BoolOp) or negated):
            raise InvalidInput(f"rule {text!r} must be a comparison, such as 'wage <= income'")
        read |= dict.fromkeys(named.get(name, name) for name in _names(tree))
    for name in read:
        if name not in columns:
            raise InvalidInput(
                f"rule {text!r} must name columns of the table: {name!r} is none"
                f"{did_you_mean(name, columns)}"
            )
    return RowRule(text=text, columns=tuple(read))


def _parsed(part: str, text: str) -> ast.expr:
    try:
        tree = ast.parse(part.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise InvalidInput(f"rule {text!r} does not parse") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise InvalidInput(
                f"rule {text!r} must have comparisons, + - * /, and, or, not: found "
                f"{type(node).__name__}"
            )
        if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float, str)):
            raise InvalidInput(f"rule {text!r} must have numbers and texts as constants")
    return tree


def _names(tree: ast.AST) -> list[str]:
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _values(node: ast.expr, table: pd.DataFrame, named: Mapping[str, str]) -> Any:
    """Value of an expression in each row."""

    def of(part: ast.expr) -> Any:
        return _values(part, table, named)

    if isinstance(node, ast.Name):
        return _column(table[named.get(node.id, node.id)])
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        with np.errstate(divide="ignore", invalid="ignore"):
            return ARITHMETIC[type(node.op)](of(node.left), of(node.right))
    if isinstance(node, ast.UnaryOp):
        negated = isinstance(node.op, ast.Not)
        return ~_truth(of(node.operand), len(table)) if negated else -of(node.operand)
    if isinstance(node, ast.BoolOp):
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return join.reduce([_truth(of(part), len(table)) for part in node.values])
    assert isinstance(node, ast.Compare)
    met, left = np.ones(len(table), dtype=bool), of(node.left)
    for kind, right in zip(node.ops, map(of, node.comparators), strict=True):
        try:
            met &= _truth(COMPARISONS[type(kind)](left, right), len(table))
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
    objects = values.astype(object)
    kind = pd.api.types.infer_dtype(objects.dropna(), skipna=True)
    if kind in ("integer", "floating", "boolean"):
        return pd.to_numeric(objects).to_numpy(dtype=np.float64, na_value=np.nan)
    return objects.fillna("").to_numpy(dtype=object)


def _truth(values: Any, n: int) -> BoolArray:
    return np.array(np.broadcast_to(np.asarray(values, dtype=bool), (n,)))
