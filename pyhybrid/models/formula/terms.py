"""Formulas as in R: outcome, terms and their factors.

The operators between terms are read by formulaic; what a term may contain is in
`pyhybrid.models.formula.whitelist`. Nothing of a formula is ever run as code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.group_terms import without_groups
from pyhybrid.models.formula.quoted import QUOTED, bare
from pyhybrid.models.formula.whitelist import FUNCTIONS, Factor, TermReader, no_column

__all__ = ["Formula", "parse_formula"]

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
}  # fmt: skip
_CHARACTERS: Mapping[str, str] = {
    "&": "no '&': write I((a > 1) * (b > 2)), or make a column of it",
    "@": "no '@': terms are made record by record; make a column of it",
    "!": "no '!': write a comparison, such as I(x == 0)",
    "%": "no '%': write a:b for a %in% b, or make a column of it",
    "$": "names of columns without '$'",
    "{": "no '{': write I(...)",
    "\\": "no backslash: make a column of it",
}
_REASONS: Mapping[str, str] = {
    "Could not find matching context marker.": "a bracket is not closed",
}
_LITERAL = "literal"  # how formulaic marks the intercept
_CALLED = re.compile(r"([A-Za-z_.][\w.]*)\s*\(")
_DOTTED = re.compile(r"\b(include|Boundary)\.(lowest|knots)\b")
_SUBTRACTED = re.compile(r"-\s*offset\s*\(")


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Outcome and terms of a formula.

    Attributes
    ----------
    text : str
    outcome : str
    terms : tuple of tuple of Factor
        In R's order; the intercept is the term without factors.
    offsets : tuple of Factor
        What is added to the linear predictor without a coefficient.
    groups : tuple of Factor
        Columns g of the terms ``(1 | g)``, intercepts by level whose spread is estimated.
    """

    text: str
    outcome: str
    terms: tuple[tuple[Factor, ...], ...]
    offsets: tuple[Factor, ...] = ()
    groups: tuple[Factor, ...] = ()

    @property
    def factors(self) -> tuple[Factor, ...]:
        """Each factor once, in the order in which the terms name them."""
        own = (f for term in self.terms for f in term)
        return tuple({f.text: f for f in (*own, *self.offsets, *self.groups)}.values())

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns that the terms read, sorted."""
        return tuple(sorted({name for f in self.factors for name in f.columns.values()}))


def parse_formula(formula: Any, columns: Sequence[str]) -> Formula:
    """Read a formula against the names of a table's columns.

    Raises
    ------
    InvalidInput
        For a formula that does not parse, a name that is no column, and anything that terms may
        not contain; names the term and what to write instead.
    """
    if not isinstance(formula, str) or bare(formula).count("~") != 1:
        raise InvalidInput(
            "formula must be of the form 'outcome ~ predictors', e.g. 'visits ~ age + region', or "
            f"'visits ~ 1' without predictors: found {formula!r}"
        )
    left, right = formula[: _tilde(formula)], formula[_tilde(formula) + 1 :]
    outcome = left.strip().strip("`")
    if outcome not in columns:
        known = ", ".join(str(c) for c in columns[:20])
        raise InvalidInput(
            f"outcome {outcome!r} must be a column of the data{did_you_mean(outcome, columns)}: "
            f"found {known}"
        )
    right, groups = without_groups(formula, right, columns)
    for character, instead in _CHARACTERS.items():
        if character in bare(right):
            raise InvalidInput(f"formula {formula!r} must have {instead}")
    _check_calls(formula, bare(right))
    if _SUBTRACTED.search(bare(right)):
        raise InvalidInput(f"formula {formula!r} must not subtract an offset: write offset(-x)")
    terms = tuple(
        tuple(
            _factor(each, formula, columns)
            for each in term.factors
            if each.eval_method.value != _LITERAL
        )
        for term in _terms(formula, right, [c for c in columns if c != outcome])
    )
    parsed = _without_offsets(Formula(text=formula, outcome=outcome, terms=terms, groups=groups))
    if outcome in parsed.predictors:
        raise InvalidInput(f"outcome {outcome!r} must not be among the predictors of {formula!r}")
    return parsed


def _without_offsets(formula: Formula) -> Formula:
    """The formula with its offsets set apart from the terms that get coefficients."""
    found = [f for f in formula.factors if f.is_offset]
    kept = tuple(term for term in formula.terms if not any(f.is_offset for f in term))
    if any(f.is_offset for term in formula.terms if len(term) > 1 for f in term):
        raise InvalidInput(
            f"formula {formula.text!r} must have offset() as a term of its own: {found[0].text!r} "
            "is multiplied by another term"
        )
    if not kept:
        raise InvalidInput(
            f"formula {formula.text!r} must have a term beside offset(): leave the intercept in"
        )
    return replace(formula, terms=kept, offsets=tuple(found))


def _tilde(formula: str) -> int:
    return bare(formula).index("~")


def _terms(formula: str, right: str, others: Sequence[str]) -> list[Any]:
    """The terms of the right-hand side, as formulaic orders them."""
    import formulaic

    text = _powers(_DOTTED.sub(r"\1_\2", right.strip()))
    try:
        context = {"__formulaic_variables_available__": list(others)}
        terms = list(formulaic.Formula(text, _context=context))
    except Exception as error:  # its parser trips over some texts before it can refuse them
        reason = str(error).split("\n")[0]
        reason = _REASONS.get(reason, reason)
        raise InvalidInput(f"formula {formula!r} does not parse: {reason}") from None
    if not terms or not all(hasattr(term, "factors") for term in terms):
        raise InvalidInput(f"formula {formula!r} must have one right-hand side with a term")
    for term in terms:
        for each in term.factors:
            if each.eval_method.value == _LITERAL and each.expr != "1":
                raise InvalidInput(
                    f"formula {formula!r} must have terms without a number to scale them: found "
                    f"{each.expr}; write I({each.expr} * x)"
                )
    return terms


def _check_calls(formula: str, text: str) -> None:
    """Refuse functions that are not listed, and comparisons outside of them, in one line."""
    for name in _CALLED.findall(text):
        if name in FUNCTIONS or name == "c":
            continue
        known = ", ".join(sorted(FUNCTIONS))
        instead = _INSTEAD.get(name) or (
            f"it is not among {known}{did_you_mean(name, FUNCTIONS)}; make a column of it"
        )
        raise InvalidInput(f"formula {formula!r} must not call {name}(): {instead}")
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth == 0 and character in "<>=":
            raise InvalidInput(
                f"formula {formula!r} must have comparisons within I(), such as I(x > 3)"
            )


def _powers(text: str) -> str:
    """R's ``^`` as Python's ``**``, which binds as tightly, outside quotes."""
    quoted = bare(text)
    return "".join("**" if quoted[k] == "^" else c for k, c in enumerate(text))


def _factor(each: Any, formula: str, columns: Sequence[str]) -> Factor:
    """A factor that is allowed, from formulaic's."""
    text = str(each.expr)
    if each.eval_method.value == "lookup":
        if text not in columns:
            raise no_column(formula, text, columns)
        return Factor(text=text, source="column_", columns={"column_": text})
    named: dict[str, str] = {}

    def placeholder(found: re.Match[str]) -> str:
        name = f"quoted_{len(named)}_"
        if not found.group().startswith("`"):
            return found.group()
        named[name] = found.group().strip("`")
        return name

    source = QUOTED.sub(placeholder, text)
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError:
        raise InvalidInput(f"formula {formula!r} does not parse: term {text!r}") from None
    reader = TermReader(formula=formula, text=text, columns=columns, named=named)
    return Factor(text=text, source=ast.unparse(reader.read(tree)), columns=reader.used)
