"""Formulas as in R: outcome, terms and their factors, and what a term may contain.

The operators between terms are read by formulaic. A name in a term is a column, a call is one of
`FUNCTIONS`, an option is a constant that is written out. Attributes, subscripts, reductions and
functions of one's own are none of these, and nothing of a formula is ever run as code.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput

ELEMENTWISE: Mapping[str, Callable[[FloatArray], Any]] = {
    "abs": np.abs, "cos": np.cos, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "sin": np.sin, "sqrt": np.sqrt,
}  # fmt: skip
"""Functions of one number; `log` takes a base as well."""
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
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
    "cut": ("x", "breaks", "labels", "include_lowest", "right"),
    "offset": ("x",),
    **dict.fromkeys(ELEMENTWISE, ("x",)),
    "log": ("x", "base"),
}
"""Functions that a term may call, with R's names of its arguments (dots as underscores)."""
_IN_ARITHMETIC = (*ELEMENTWISE, "I", "scale")
_CONTRASTS = ("contr.treatment", "contr.sum", "contr.helmert", "contr.poly")
_LOGICAL: Mapping[str, bool] = {"TRUE": True, "FALSE": False, "T": True, "F": False}
_OPTIONS: Mapping[str, str] = {
    "levels": "c(...)", "labels": "c(...) of texts", "contr": f"one of {', '.join(_CONTRASTS)}",
    "center": "a number, TRUE or FALSE", "scale": "a number above 0, TRUE or FALSE",
    "degree": "a whole number", "df": "a whole number", "knots": "c(...) of numbers",
    "Boundary_knots": "c(...) of numbers", "breaks": "a whole number, or c(...) of numbers",
    "raw": "TRUE or FALSE", "intercept": "TRUE or FALSE", "right": "TRUE or FALSE",
    "include_lowest": "TRUE or FALSE", "base": "a number above 0, not 1",
}  # fmt: skip
"""Demands on each option: written out, and never computed from a column."""
_INSTEAD: Mapping[str, str] = {
    "center": "write scale(x, scale=FALSE)",
    "standardize": "write scale(x)",
    "cr": "write ns(x, df=4)",
    "cs": "write ns(x, df=4)",
    "cc": "write ns(x, df=4)",
    "ordered": "give the column an ordered category as its type",
    "relevel": "write factor(x, levels=c(...)) with the reference first",
    "as.factor": "write factor(x)",
    "as.numeric": "make a column of it",
    "exp2": "write I(2^x)",
    "exp10": "write I(10^x)",
}
_CHARACTERS: Mapping[str, str] = {
    "&": "no '&': write I((a > 1) * (b > 2)), or make a column of it",
    "@": "no '@': terms are made record by record; make a column of it",
    "!": "no '!': write a comparison, such as I(x == 0)",
    "%": "no '%': write a:b for a %in% b, or make a column of it",
    "|": "no '|': write g, a coefficient for each level, in the place of (1 | g)",
    "$": "names of columns without '$'",
    "{": "no '{': write I(...)",
    "\\": "no backslash: make a column of it",
}
_REASONS: Mapping[str, str] = {
    "Could not find matching context marker.": "a bracket is not closed",
}
_LITERAL = "literal"  # how formulaic marks the intercept
_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
_CALLED = re.compile(r"([A-Za-z_.][\w.]*)\s*\(")
_DOTTED = re.compile(r"\b(include|Boundary)\.(lowest|knots)\b")
_SUBTRACTED = re.compile(r"-\s*offset\s*\(")


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One factor of a term, e.g. ``log(age)``: checked, not yet evaluated. `text` is as written,
    and the name of its columns; `source` the same in Python, `columns` standing in for names it
    lacks."""

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
        return tuple(sorted({name for f in self.factors for name in f.columns.values()}))


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
        known = ", ".join(str(c) for c in columns[:20])
        raise InvalidInput(
            f"outcome {outcome!r} must be a column of the data{did_you_mean(outcome, columns)}: "
            f"found {known}{_backticks(formula, columns)}"
        )
    _check_text(formula, _bare(right), columns)
    terms = tuple(
        tuple(
            _factor(factor, formula, columns)
            for factor in term.factors
            if factor.eval_method.value != _LITERAL
        )
        for term in _terms(formula, right, columns, outcome)
    )
    parsed = _without_offsets(Formula(text=formula, outcome=outcome, terms=terms))
    if outcome in parsed.predictors:
        raise InvalidInput(f"outcome {outcome!r} must not be among the predictors of {formula!r}")
    return parsed


def sides_of(formula: str) -> tuple[str, str]:
    """The outcome that a formula's text names, and its right-hand side, whatever names within
    backticks hold."""
    left = len(_bare(formula).partition("~")[0])
    return formula[:left].strip().strip("`"), formula[left + 1 :].strip()


def divided(formula: str, units: Mapping[str, float]) -> str:
    """The formula with columns that are terms by themselves in these units."""
    right = sides_of(formula)[1]
    terms = [right[start:stop].strip() for start, stop in _summands(_bare(right))]
    scaled = [
        f"I({term} / {units[term.strip('`')]:.12g})" if term.strip("`") in units else term
        for term in terms
    ]
    return formula.rstrip().removesuffix(right) + " + ".join(scaled)


def unquoted(text: str) -> tuple[str, dict[str, str]]:
    """The text with names in backticks replaced by plain ones, and what these stand for."""
    named: dict[str, str] = {}

    def plain(quoted: re.Match[str]) -> str:
        if not quoted.group().startswith("`"):
            return quoted.group()
        name = f"quoted_{len(named)}_"
        named[name] = quoted.group().strip("`")
        return name

    return _QUOTED.sub(plain, text), named


def _bare(text: str) -> str:
    """The text with what is quoted blanked out, so that places stay the same."""
    return _QUOTED.sub(lambda quoted: " " * len(quoted.group()), text)


def _no_column(formula: str, name: str, columns: Sequence[str]) -> InvalidInput:
    return InvalidInput(
        f"formula {formula!r} must name columns of the data: {name!r} is none"
        f"{did_you_mean(name, columns)}"
    )


def _check_text(formula: str, text: str, columns: Sequence[str]) -> None:
    """Refuse, in one line, characters and functions that are not listed, comparisons outside of
    functions, and offsets that are subtracted."""
    for character, instead in _CHARACTERS.items():
        if character in text:
            raise InvalidInput(f"formula {formula!r} must have {instead}")
    for name in _CALLED.findall(text):
        if name not in FUNCTIONS and name != "c":
            instead = _INSTEAD.get(name) or (
                f"it is not among {', '.join(sorted(FUNCTIONS))}{did_you_mean(name, FUNCTIONS)}; "
                "make a column of it"
            )
            meant = _backticks(formula, columns).removeprefix("; ")
            raise InvalidInput(f"formula {formula!r} must not call {name}(): {meant or instead}")
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth == 0 and character in "<>=":
            raise InvalidInput(
                f"formula {formula!r} must have comparisons within I(), such as I(x > 3)"
            )
    if _SUBTRACTED.search(text):
        raise InvalidInput(f"formula {formula!r} must not subtract an offset: write offset(-x)")


def _summands(plain: str) -> Iterator[tuple[int, int]]:
    """Where what stands between the plus signs begins and ends."""
    start = depth = 0
    for place, character in enumerate(plain):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == "+":
            yield start, place
            start = place + 1
    yield start, len(plain)


def _without_offsets(formula: Formula) -> Formula:
    """The formula with its offsets set apart from the terms that get coefficients."""
    offsets = [f for f in formula.factors if f.is_offset]
    kept = tuple(term for term in formula.terms if not any(f.is_offset for f in term))
    if any(f.is_offset for term in formula.terms if len(term) > 1 for f in term):
        raise InvalidInput(
            f"formula {formula.text!r} must have offset() as a term of its own: "
            f"{offsets[0].text!r} is multiplied by another term"
        )
    if not kept:
        raise InvalidInput(
            f"formula {formula.text!r} must have a term beside offset(): leave the intercept in"
        )
    return replace(formula, terms=kept, offsets=tuple(offsets))


def _backticks(formula: str, columns: Sequence[str]) -> str:
    """How to write a name that the formula has outside of backticks, and must have within."""
    text = re.sub("`[^`]*`", " ", formula)
    odd = [name for name in columns if not name.isidentifier() or name[:1].isdigit()]
    meant = [name for name in odd if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text)]
    shown = ", ".join(f"`{name}`" for name in meant)
    return f"; write names like these in backticks: {shown}" if meant else ""


def _terms(formula: str, right: str, columns: Sequence[str], outcome: str) -> list[Any]:
    """The terms of the right-hand side, as formulaic orders them."""
    import formulaic

    text = _powers(_DOTTED.sub(r"\1_\2", right.strip()))
    try:
        others = [name for name in columns if name != outcome]
        context = {"__formulaic_variables_available__": others}
        terms = list(formulaic.Formula(text, _context=context))
    except Exception as error:  # its parser trips over some texts before it can refuse them
        reason = str(error).split("\n")[0]
        reason = _REASONS.get(reason, reason)
        meant = _backticks(formula, columns)
        raise InvalidInput(f"formula {formula!r} does not parse: {reason}{meant}") from None
    if not terms or not all(hasattr(term, "factors") for term in terms):
        raise InvalidInput(f"formula {formula!r} must have one right-hand side with a term")
    for factor in (factor for term in terms for factor in term.factors):
        if factor.eval_method.value == _LITERAL and factor.expr != "1":
            raise InvalidInput(
                f"formula {formula!r} must have terms without a number to scale them: found "
                f"{factor.expr}; write I({factor.expr} * x)"
            )
    return terms


def _powers(text: str) -> str:
    """R's ``^`` as Python's ``**``, which binds as tightly, outside quotes."""
    bare = _bare(text)
    return "".join("**" if bare[k] == "^" else c for k, c in enumerate(text))


def _factor(read: Any, formula: str, columns: Sequence[str]) -> Factor:
    """A factor that is allowed, from formulaic's."""
    text = str(read.expr)
    if read.eval_method.value == "lookup":
        if text not in columns:
            raise _no_column(formula, text, columns)
        return Factor(text=text, source="column_", columns={"column_": text})
    source, named = unquoted(text)
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError:
        raise InvalidInput(f"formula {formula!r} does not parse: term {text!r}") from None
    reader = _FactorReader(formula=formula, text=text, columns=columns, named=named)
    return Factor(text=text, source=ast.unparse(reader.read(tree)), columns=reader.used)


@dataclass(frozen=True, kw_only=True)
class _FactorReader:
    """Checks the syntax tree of one factor, and names its columns."""

    formula: str
    text: str
    columns: Sequence[str]
    named: Mapping[str, str]
    used: dict[str, str] = field(default_factory=dict)

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
        given = self._arguments(name, node)
        inner = given.pop("x", None)
        if inner is None:
            raise self.refuse(f"{name}() must have a column to work on")
        keywords = []
        for key, value in given.items():
            constant = self._constant(key, value)
            if not _is_option(key, ast.literal_eval(constant)):
                raise self.refuse(f"{key} must be {_OPTIONS[key]}")
            keywords.append(ast.keyword(arg=key, value=constant))
        if name in ("I", "factor", "C") and isinstance(inner, ast.Compare):
            inner = self._compare(inner)
        else:
            inner = self._arithmetic(inner)
        return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[inner], keywords=keywords)

    def _arguments(self, name: str, node: ast.Call) -> dict[str, ast.expr]:
        known = FUNCTIONS[name]
        if len(node.args) > len(known):
            raise self.refuse(f"{name}() takes {', '.join(known)}")
        given: dict[str, ast.expr] = {}
        pairs = [*zip(known, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
        for key, value in pairs:
            if key not in known or key in given:
                raise self.refuse(f"{name}() takes {', '.join(known)}, each once")
            given[str(key)] = value
        return given

    def _column(self, node: ast.expr) -> ast.Name | None:
        """The node as the name of a column; dots are part of names, as in R."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        name = ast.unparse(node)
        name = self.named.get(name, name)
        if name not in self.columns:
            if isinstance(node, ast.Attribute):
                raise self.refuse(f"{name!r} is no column of the data; make a column of it")
            raise _no_column(self.formula, name, self.columns)
        stands_for_it = (plain for plain, column in self.used.items() if column == name)
        plain = next(stands_for_it, f"column_{len(self.used)}_")
        self.used[plain] = name
        return ast.Name(id=plain, ctx=ast.Load())

    def _arithmetic(self, node: ast.expr) -> ast.expr:
        column = self._column(node)
        if column is not None:
            return column
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return ast.UnaryOp(op=node.op, operand=self._arithmetic(node.operand))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            left, right = self._arithmetic(node.left), self._arithmetic(node.right)
            return ast.BinOp(left=left, op=node.op, right=right)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.Call):
            return self._call(node, _IN_ARITHMETIC)
        raise self.refuse(
            f"{ast.unparse(node)} is neither a column, a number, arithmetic (+ - * / ^), a "
            "comparison nor a function; make a column of it"
        )

    def _compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARISONS:
            raise self.refuse("a comparison must have two sides, of < <= > >= == !=")
        right = node.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            column = self._column(node.left)
            if column is None or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                raise self.refuse("text must be compared with a column, by == or !=")
            return ast.Compare(left=column, ops=node.ops, comparators=[right])
        left = self._arithmetic(node.left)
        return ast.Compare(left=left, ops=node.ops, comparators=[self._arithmetic(right)])

    def _constant(self, key: str, node: ast.expr) -> ast.expr:
        """An option of a function: a number, text, TRUE, FALSE, or a vector c(...) of them."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "c" and not node.keywords:
            node = ast.List(elts=node.args, ctx=ast.Load())
        if isinstance(node, (ast.List, ast.Tuple)):
            return ast.List(elts=[self._constant(key, part) for part in node.elts], ctx=ast.Load())
        if isinstance(node, ast.Name) and node.id in _LOGICAL:
            return ast.Constant(value=_LOGICAL[node.id])
        if key == "contr" and ast.unparse(node) in _CONTRASTS:
            return ast.Constant(value=ast.unparse(node))
        try:
            return ast.Constant(value=ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError):
            raise self.refuse(f"{key} must be {_OPTIONS[key]}, written out") from None


def _is_option(key: str, value: Any) -> bool:
    """True if a constant is what an option must be; see `_OPTIONS`."""
    must = _OPTIONS[key]
    if isinstance(value, list):
        kinds: dict[str, tuple[type, ...]] = {"levels": (int, float, str), "labels": (str,)}
        of = kinds.get(key, (int, float))
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
