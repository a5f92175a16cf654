"""What a term of a formula may contain: the lists, and the reader that checks terms by them.

A name is a column, a call is one of the functions listed, an option is a constant that is written
out. Attributes, subscripts, reductions and functions of one's own are none of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput

__all__ = ["FUNCTIONS", "Factor", "TermReader", "no_column"]

_ELEMENTWISE = ("abs", "cos", "exp", "expm1", "log", "log10", "log1p", "log2", "sin", "sqrt")
"""Functions of one number; `log` takes a base as well."""
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "I": ("x",),
    "factor": ("x", "levels"),
    "C": ("x", "contr", "levels"),
    "scale": ("x", "center", "scale"),
    "poly": ("x", "degree", "raw"),
    "ns": ("x", "df", "knots", "intercept", "Boundary_knots"),
    "bs": ("x", "df", "knots", "degree", "intercept", "Boundary_knots"),
    "cut": ("x", "breaks", "labels", "include_lowest", "right"),
    "offset": ("x",),
    **dict.fromkeys(_ELEMENTWISE, ("x",)),
    "log": ("x", "base"),
}
"""What a term may call, with R's names of its arguments (dots as underscores)."""
_CONTRASTS = ("contr.treatment", "contr.sum", "contr.helmert", "contr.poly")
_LOGICAL: Mapping[str, bool] = {"TRUE": True, "FALSE": False, "T": True, "F": False}
_IN_ARITHMETIC = (*_ELEMENTWISE, "I", "scale")
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_OPTIONS: Mapping[str, str] = {
    "levels": "c(...)", "labels": "c(...) of texts", "contr": f"one of {', '.join(_CONTRASTS)}",
    "center": "a number, TRUE or FALSE", "scale": "a number above 0, TRUE or FALSE",
    "degree": "a whole number", "df": "a whole number", "knots": "c(...) of numbers",
    "Boundary_knots": "c(...) of numbers", "breaks": "a whole number, or c(...) of numbers",
    "raw": "TRUE or FALSE", "intercept": "TRUE or FALSE", "right": "TRUE or FALSE",
    "include_lowest": "TRUE or FALSE", "base": "a number above 0, not 1",
}  # fmt: skip
"""What each option must be; written out, and never computed from a column."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One factor of a term, e.g. ``log(age)``: checked, not yet evaluated.

    Attributes
    ----------
    text : str
        As written; the name of its columns.
    source : str
        The same as a Python expression, `columns` standing in for names that Python lacks.
    columns : mapping of str to str
        Column of the table by the name it has in `source`.
    """

    text: str
    source: str
    columns: Mapping[str, str]

    @property
    def tree(self) -> ast.expr:
        """Syntax tree of the factor."""
        return ast.parse(self.source, mode="eval").body

    @property
    def is_offset(self) -> bool:
        """True if the factor is added to the linear predictor as it is, without a coefficient."""
        return self.source.startswith("offset(")


def no_column(formula: str, name: str, columns: Sequence[str]) -> InvalidInput:
    return InvalidInput(
        f"formula {formula!r} must name columns of the data: {name!r} is none"
        f"{did_you_mean(name, columns)}"
    )


class TermReader:
    """Checks the syntax tree of one factor, and names its columns."""

    def __init__(
        self, *, formula: str, text: str, columns: Sequence[str], named: dict[str, str]
    ) -> None:
        self.formula, self.text, self.columns, self.named = formula, text, columns, named
        self.used: dict[str, str] = {}

    def refuse(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"formula {self.formula!r} has a term it must not have, {self.text!r}: {why}"
        )

    def read(self, tree: ast.expr) -> ast.expr:
        """The tree of a whole factor: a call of one of the functions."""
        if not isinstance(tree, ast.Call):
            raise self.refuse("write I(...) around arithmetic")
        return self._call(tree, [*FUNCTIONS])

    def _call(self, node: ast.Call, allowed: Sequence[str]) -> ast.expr:
        name = ast.unparse(node.func)
        if name not in FUNCTIONS:
            raise self.refuse(f"it calls {name}(); make a column of it")
        if name not in allowed:
            raise self.refuse(f"{name}() must be a term of its own; make a column of it")
        given = dict(self._arguments(name, node))
        inner = given.pop("x", None)
        if inner is None:
            raise self.refuse(f"{name}() must have a column to work on")
        keywords = []
        for key, value in given.items():
            constant = self._constant(key, value)
            if not _is_option(key, ast.literal_eval(constant)):
                raise self.refuse(f"{key} must be {_OPTIONS[key]}")
            keywords.append(ast.keyword(arg=key, value=constant))
        return ast.Call(
            func=ast.Name(id=name, ctx=ast.Load()),
            args=[self._argument(name, inner)],
            keywords=keywords,
        )

    def _arguments(self, name: str, node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        known, seen = FUNCTIONS[name], set()
        pairs = [*zip(known, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
        if len(node.args) > len(known):
            raise self.refuse(f"{name}() takes {', '.join(known)}")
        for key, value in pairs:
            if key not in known or key in seen:
                raise self.refuse(f"{name}() takes {', '.join(known)}, each once")
            seen.add(key)
            yield str(key), value

    def _argument(self, name: str, node: ast.expr) -> ast.expr:
        """What a function works on: a column of any type for some, arithmetic for the others."""
        column = self._column(node)
        if column is not None:
            return column
        if name in ("I", "factor", "C") and isinstance(node, ast.Compare):
            return self._compare(node)
        return self._arithmetic(node)

    def _column(self, node: ast.expr) -> ast.Name | None:
        """The node as the name of a column; dots are part of names, as in R."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        name = ast.unparse(node)
        name = self.named.get(name, name)
        if name not in self.columns:
            if isinstance(node, ast.Attribute):
                raise self.refuse(f"{name!r} is no column of the data; make a column of it")
            raise no_column(self.formula, name, self.columns)
        place = next(
            (own for own, of in self.used.items() if of == name), f"column_{len(self.used)}_"
        )
        self.used[place] = name
        return ast.Name(id=place, ctx=ast.Load())

    def _arithmetic(self, node: ast.expr) -> ast.expr:
        column = self._column(node)
        if column is not None:
            return column
        if isinstance(node, ast.Constant) and _is_number(node.value):
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return ast.UnaryOp(op=node.op, operand=self._arithmetic(node.operand))
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
            return ast.BinOp(
                left=self._arithmetic(node.left), op=node.op, right=self._arithmetic(node.right)
            )
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.Call):
            return self._call(node, _IN_ARITHMETIC)
        raise self.refuse(
            f"{ast.unparse(node)} is neither a column, a number, arithmetic (+ - * / ^), a "
            "comparison nor a function; make a column of it"
        )

    def _compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) != 1 or not isinstance(node.ops[0], _COMPARISONS):
            raise self.refuse("a comparison must have two sides, of < <= > >= == !=")
        left, right = node.left, node.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            column = self._column(left)
            if column is None or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                raise self.refuse("text must be compared with a column, by == or !=")
            return ast.Compare(left=column, ops=node.ops, comparators=[right])
        sides = self._arithmetic(left), self._arithmetic(right)
        return ast.Compare(left=sides[0], ops=node.ops, comparators=[sides[1]])

    def _constant(self, key: str, node: ast.expr) -> ast.expr:
        """An option of a function: a number, text, TRUE, FALSE, or a vector c(...) of them."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "c" and not node.keywords:
            node = ast.List(elts=node.args, ctx=ast.Load())
        if isinstance(node, (ast.List, ast.Tuple)):
            return ast.List(elts=[self._constant(key, each) for each in node.elts], ctx=ast.Load())
        if isinstance(node, ast.Name) and node.id in _LOGICAL:
            return ast.Constant(value=_LOGICAL[node.id])
        if key == "contr" and ast.unparse(node) in _CONTRASTS:
            return ast.Constant(value=ast.unparse(node))
        try:
            return ast.Constant(value=ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError):
            raise self.refuse(f"{key} must be {_OPTIONS[key]}, written out") from None


def _is_option(key: str, value: Any) -> bool:
    """Whether a constant is what an option must be; see `_OPTIONS`."""
    must = _OPTIONS[key]
    if isinstance(value, list):
        if key == "levels":
            return bool(value) and all(isinstance(v, (int, float, str)) for v in value)
        of = str if key == "labels" else (int, float)
        return "c(...)" in must and bool(value) and all(isinstance(v, of) for v in value)
    if isinstance(value, bool):
        return "TRUE" in must
    if isinstance(value, str):
        return value in _CONTRASTS and key == "contr"
    if key in ("scale", "base") and isinstance(value, (int, float)):
        return value > 0 and (key == "scale" or value != 1)
    if "whole" in must:
        return isinstance(value, int)
    return isinstance(value, (int, float)) and (key in ("center", "knots"))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
