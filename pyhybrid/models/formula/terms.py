"""Formulas as in R: outcome, terms and their factors, and what a term may contain.

The operators between terms are read by formulaic. A name in a term is a column, a call is one of
`FUNCTIONS`, an option is a constant that is written out. Attributes, subscripts, reductions and
functions of one's own are none of these, and nothing of a formula is ever run as code.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput

ELEMENTWISE: Mapping[str, Callable[[FloatArray], Any]] = {
    "abs": np.abs, "cos": np.cos, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "sin": np.sin, "sqrt": np.sqrt,
}  # fmt: skip
"""Functions of one number; `log` takes a base as well."""
COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "I": ("x",),
    "factor": ("x", "levels"),
    "C": ("x", "contr", "levels"),
    "scale": ("x", "center", "scale"),
    "poly": ("x", "degree", "raw"),
    "ns": ("x", "df", "knots", "intercept", "Boundary_knots"),
    "bs": ("x", "df", "knots", "degree", "intercept", "Boundary_knots"),
    "cut": ("x", "breaks"),
    "offset": ("x",),
    "days": ("x",),
    **dict.fromkeys(ELEMENTWISE, ("x",)),
    "log": ("x", "base"),
}
"""Functions that a term may call, with R's names of its arguments (dots as underscores)."""
_IN_ARITHMETIC = (*ELEMENTWISE, "I", "scale", "days")
_CONTRASTS = ("contr.treatment", "contr.sum", "contr.helmert", "contr.poly")
_LOGICAL: Mapping[str, bool] = {"TRUE": True, "FALSE": False, "T": True, "F": False}


def _number(value: Any) -> bool:
    return type(value) in (int, float)


def _vector(value: Any, *types: type) -> bool:
    return isinstance(value, list) and bool(value) and all(type(v) in types for v in value)


def _whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


_FLAG = "TRUE or FALSE", lambda v: isinstance(v, bool)
_OPTIONS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "levels": ("c(...) of different levels",
               lambda v: _vector(v, bool, int, float, str) and len({*v}) == len(v)),
    "contr": (f"one of {', '.join(_CONTRASTS)}", lambda v: v in _CONTRASTS),
    "center": ("a number, TRUE or FALSE", lambda v: isinstance(v, bool) or _number(v)),
    "scale": ("a number above 0, TRUE or FALSE",
              lambda v: isinstance(v, bool) or (_number(v) and v > 0)),
    "degree": ("a whole number from 1 to 20", lambda v: _whole(v, 1, 20)),
    "df": ("a whole number from 1 to 200", lambda v: _whole(v, 1, 200)),
    "knots": ("c(...) of numbers", lambda v: _number(v) or _vector(v, int, float)),
    "Boundary_knots": ("c(...) of two numbers, the smaller one first",
                       lambda v: _vector(v, int, float) and len(v) == 2 and v[0] < v[1]),
    "breaks": ("c(...) of different numbers",
               lambda v: _vector(v, int, float) and 1 < len({*v}) == len(v)),
    "base": ("a number above 0, not 1", lambda v: _number(v) and v > 0 and v != 1),
    **dict.fromkeys(("raw", "intercept"), _FLAG),
}  # fmt: skip
"""Of each option what it must be, written out, never computed from a column."""
_LITERAL = "literal"  # how formulaic marks the intercept
_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
_CHARACTER = re.compile(r"[&@!%|${\\](?!=)")
_BACKTICKS = "names with spaces, or that begin with a digit, stand in backticks"


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One factor of a term, e.g. ``log(age)``: checked, not yet evaluated. `text` is as written,
    and the name of its columns; in the syntax `tree` names are columns, and options constants."""

    text: str
    tree: ast.expr
    columns: tuple[str, ...]

    @property
    def calls(self) -> Mapping[str, ast.Call]:
        """Calls in it, by the name of the function."""
        nodes = ast.walk(self.tree)
        return {function_of(node): node for node in nodes if isinstance(node, ast.Call)}

    @property
    def contrasts(self) -> str | None:
        """Name of R's contrasts that the factor asks for."""
        return options_of(self.calls["C"]).get("contr") if "C" in self.calls else None


def function_of(call: ast.Call) -> str:
    """Name of the function that is called."""
    return ast.unparse(call.func)


def options_of(call: ast.Call) -> dict[str, Any]:
    """Options of a call by name."""
    return {str(option.arg): ast.literal_eval(option.value) for option in call.keywords}


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Outcome and terms of a formula: `terms` in R's order, the intercept being the one without
    factors, and `offsets`, which have no coefficient."""

    text: str
    outcome: str
    terms: tuple[tuple[Factor, ...], ...]
    offsets: tuple[Factor, ...] = ()

    @property
    def factors(self) -> tuple[Factor, ...]:
        """Each factor once, in the order in which the terms name them."""
        in_terms = (f for term in self.terms for f in term)
        return tuple({f.text: f for f in (*in_terms, *self.offsets)}.values())

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns that the terms read, sorted."""
        return tuple(sorted({name for f in self.factors for name in f.columns}))


def parse_formula(formula: Any, names: Iterable[Any]) -> Formula:
    """Read a formula against the names of a table's columns; InvalidInput names the term that does
    not parse, is no column or may not be there, and what to write instead."""
    columns = [name for name in names if isinstance(name, str)]
    if not isinstance(formula, str) or _bare(formula).count("~") != 1:
        raise InvalidInput(
            "formula must be of the form 'outcome ~ predictors', e.g. 'visits ~ age + region', or "
            f"'visits ~ 1' without predictors: found {formula!r}"
        )
    outcome, right = sides_of(formula)
    if outcome not in columns:
        raise InvalidInput(
            f"outcome {outcome!r} must be a column of the data{did_you_mean(outcome, columns)}: "
            f"found {', '.join(columns[:20])}; {_BACKTICKS}"
        )
    if odd := _CHARACTER.search(_bare(right)):
        raise InvalidInput(f"formula {formula!r} must have no {odd[0]!r}: make a column of it")
    if re.search(r"-\s*offset\s*\(", _bare(right)):
        raise InvalidInput(f"formula {formula!r} must not subtract an offset: write offset(-x)")
    terms = list[tuple[Factor, ...]]()
    for term in _terms(formula, right, columns, outcome):
        factors = [f for f in term.factors if f.eval_method.value != _LITERAL]
        terms.append(tuple(_factor(formula, f, columns) for f in factors))
    of_offset = [term for term in terms if any("offset" in factor.calls for factor in term)]
    offsets, terms = sum(of_offset, ()), [term for term in terms if term not in of_offset]
    if len(offsets) > len(of_offset):
        raise InvalidInput(
            f"formula {formula!r} must have offset() as a term of its own: it is multiplied by "
            "another term"
        )
    if not terms:
        raise InvalidInput(f"formula {formula!r} must have a term beside offset(): an intercept")
    parsed = Formula(text=formula, outcome=outcome, terms=tuple(terms), offsets=offsets)
    if outcome in parsed.predictors:
        raise InvalidInput(f"outcome {outcome!r} must not be among the predictors of {formula!r}")
    return parsed


def sides_of(formula: str) -> tuple[str, str]:
    """The outcome that a formula's text names, and its right-hand side, whatever backticks hold."""
    left = len(_bare(formula).partition("~")[0])
    return formula[:left].strip().strip("`"), formula[left + 1 :].strip()


def syntax_of(text: str) -> tuple[ast.expr, dict[str, str]]:
    """Python's syntax tree of an expression, and of each placeholder in it the name that stood in
    backticks; SyntaxError and the like for what is none."""
    quoted: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        if not match.group().startswith("`"):
            return match.group()
        quoted[f"quoted_{len(quoted)}_"] = match.group().strip("`")
        return [*quoted][-1]

    return ast.parse(_QUOTED.sub(plain, text).strip(), mode="eval").body, quoted


def _bare(text: str) -> str:
    """The text with what is quoted blanked out, so that places stay the same."""
    return _QUOTED.sub(lambda quoted: " " * len(quoted.group()), text)


def _terms(formula: str, right: str, columns: Sequence[str], outcome: str) -> list[Any]:
    """The terms of the right-hand side, as formulaic orders them; R's ``^``, which binds as
    tightly, is Python's ``**``."""
    import formulaic

    text = right.replace("Boundary.knots", "Boundary_knots").replace("as.factor(", "factor(")
    text = "".join("**" if b == "^" else c for b, c in zip(_bare(text), text, strict=True))
    try:
        others = [name for name in columns if name != outcome]
        context = {"__formulaic_variables_available__": others}
        terms = list(formulaic.Formula(text, _context=context))
    except Exception as error:  # its parser trips over some texts before it can refuse them
        reason = str(error).split("\n")[0]
        if "context marker" in reason:
            reason = "a bracket is not closed"
        elif re.search("operator '[<>=]'", reason):
            reason = "write comparisons within I(), such as I(x > 3)"
        raise InvalidInput(f"formula {formula!r} does not parse: {reason}; {_BACKTICKS}") from None
    if not terms or not all(hasattr(term, "factors") for term in terms):
        raise InvalidInput(f"formula {formula!r} must have one right-hand side with a term")
    for factor in (factor for term in terms for factor in term.factors):
        if factor.eval_method.value == _LITERAL and factor.expr != "1":
            raise InvalidInput(
                f"formula {formula!r} must have terms without a number to scale them: found "
                f"{factor.expr}; write I({factor.expr} * x)"
            )
    return terms


def _factor(formula: str, parsed: Any, columns: Sequence[str]) -> Factor:
    """A factor of formulaic's that is allowed: a column, or a call of one of the functions."""
    text, quoted = str(parsed.expr), dict[str, str]()
    tree: ast.expr = ast.Name(id=text)
    if parsed.eval_method.value != "lookup":
        try:
            tree, quoted = syntax_of(text)
        except SyntaxError:
            raise InvalidInput(f"formula {formula!r} does not parse: term {text!r}") from None
    reader = _Reader(formula=formula, columns=columns, text=text, quoted=quoted)
    if isinstance(tree, ast.Name):
        reader.column(tree)
    elif isinstance(tree, ast.Call):
        tree = reader.call(tree, FUNCTIONS)
    else:
        raise reader.refuse("write I(...) around arithmetic")
    return Factor(text=text, tree=tree, columns=tuple(dict.fromkeys(reader.used)))


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Copies the syntax tree of one factor, part by part, refuses what is not listed, and notes the
    columns that it uses; `quoted` has the names that stood in backticks."""

    formula: str
    columns: Sequence[str]
    text: str
    quoted: Mapping[str, str]
    used: list[str] = field(default_factory=list)

    def refuse(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"formula {self.formula!r} has a term it must not have, {self.text!r}: {why}"
        )

    def call(self, node: ast.Call, allowed: Collection[str]) -> ast.Call:
        name = function_of(node)
        if name not in allowed:
            why = f"is no function of a term{did_you_mean(name, FUNCTIONS)}"
            why = "must be a term of its own" if name in FUNCTIONS else why
            raise self.refuse(f"{name}() {why}; make a column of it")
        known, arguments = FUNCTIONS[name], dict[str, ast.expr]()
        pairs = [*zip(known, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
        for key, value in pairs:
            if key not in known or key in arguments or len(node.args) > len(known):
                raise self.refuse(f"{name}() takes {', '.join(known)}, each once")
            arguments[str(key)] = value
        inner = arguments.pop("x", None)
        if inner is None or (name == "days" and self.column(inner) is None):
            raise self.refuse(f"{name}() must have a column to work on")
        options = [
            ast.keyword(arg=key, value=ast.Constant(value=self.option(key, value)))
            for key, value in arguments.items()
        ]
        return ast.Call(func=ast.Name(id=name), args=[self.numbers(inner)], keywords=options)

    def column(self, node: ast.expr) -> ast.Name | None:
        """The node as the name of a column; dots are part of names, as in R."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        name = ast.unparse(node)
        name = self.quoted.get(name, name)
        if name not in self.columns:
            raise InvalidInput(
                f"formula {self.formula!r} must name columns of the data: {name!r} is none"
                f"{did_you_mean(name, self.columns)}"
            )
        self.used.append(name)
        return ast.Name(id=name)

    def numbers(self, node: ast.expr) -> ast.expr:
        if (column := self.column(node)) is not None:
            return column
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return ast.UnaryOp(op=node.op, operand=self.numbers(node.operand))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            left, right = self.numbers(node.left), self.numbers(node.right)
            return ast.BinOp(left=left, op=node.op, right=right)
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.Call):
            return self.call(node, _IN_ARITHMETIC)
        raise self.refuse(
            f"{ast.unparse(node)} is neither a column, a number, arithmetic (+ - * / ^), a "
            "comparison nor a function; make a column of it"
        )

    def comparison(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARISONS:
            raise self.refuse("a comparison must have two sides, of < <= > >= == !=")
        right, left = node.comparators[0], self.numbers(node.left)
        if not (isinstance(right, ast.Constant) and isinstance(right.value, str)):
            right = self.numbers(right)
        elif not (isinstance(left, ast.Name) and isinstance(node.ops[0], (ast.Eq, ast.NotEq))):
            raise self.refuse("text must be compared with a column, by == or !=")
        return ast.Compare(left=left, ops=node.ops, comparators=[right])

    def option(self, key: str, node: ast.expr) -> Any:
        """Value of an option: a number, text, TRUE, FALSE, or a vector c(...) of them."""
        must, is_one = _OPTIONS[key]
        try:
            value = _constant(node)
        except (ValueError, TypeError, SyntaxError):
            raise self.refuse(f"{key} must be {must}, written out") from None
        if not is_one(value):
            raise self.refuse(f"{key} must be {must}")
        return value


def _constant(node: ast.expr) -> Any:
    """Value of a constant, as R or Python writes it."""
    text = ast.unparse(node)
    if isinstance(node, ast.Call) and function_of(node) == "c" and not node.keywords:
        return [_constant(part) for part in node.args]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_constant(part) for part in node.elts]
    if text in _LOGICAL:
        return _LOGICAL[text]
    return text if text in _CONTRASTS else ast.literal_eval(node)
