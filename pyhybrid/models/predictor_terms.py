"""How a column of a kind enters the formulas of others: terms with public constants only."""

from __future__ import annotations

import keyword

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.kinds import Kind, Leveled, Number, SemiContinuous
from pyhybrid.models.default_model import MOST_LEVELS

__all__ = [
    "FEWEST_GROUPED",
    "formula_of",
    "is_grouped",
    "n_coefficients",
    "quoted",
    "terms_of",
    "unusable",
]

FEWEST_GROUPED = 12
"""Levels from which on a predictor enters as ``(1 | g)``: a spread that is estimated holds the
intercepts of levels with few records together, where a coefficient for each is left to its prior,
and under a small cap nearly all of them are."""


def quoted(name: str) -> str:
    """The name as formulas take it."""
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else f"`{name}`"


def unusable(kind: Kind) -> str | None:
    """Why a column of this kind is no predictor; None if it can be one."""
    if isinstance(kind, Leveled) and len(kind.levels) > MOST_LEVELS:
        return f"{len(kind.levels)} levels"
    if isinstance(kind, Number) and kind.typical is None:
        return "no center and unit"
    return None


def terms_of(name: str, kind: Kind) -> list[str]:
    """Terms of a formula.

    Levels are coded against the first. A number x enters as s = sign(z) log(1 + abs(z)), z = (x -
    center) / unit, nearly z about the center and slow in the tails, and as its square; where it has
    a point mass at 0, that has a term, too.
    """
    own = quoted(name)
    if isinstance(kind, Leveled):
        return [own]
    assert isinstance(kind, Number)
    if kind.typical is None:
        raise InvalidInput(
            f"column {name!r} must have a typical difference to be a predictor: give unit= in its "
            "type, or lower= and upper="
        )
    center, unit = kind.typical
    if isinstance(kind, SemiContinuous):
        center = 0.0
    size = f"log1p(abs({own} - {_number(center)}) / {_number(unit)})"
    sign = f"(({own} > {_number(center)}) - ({own} < {_number(center)}))"
    terms = [f"I({sign} * {size})", f"I({size} ** 2)"]
    return [f"I({own} == 0)", *terms] if isinstance(kind, SemiContinuous) else terms


def n_coefficients(kind: Kind) -> int:
    """Columns of the design that the terms make."""
    if isinstance(kind, Leveled):
        return len(kind.levels) - 1
    return 3 if isinstance(kind, SemiContinuous) else 2


def is_grouped(kind: Kind) -> bool:
    """Whether a predictor of this kind enters as ``(1 | g)`` in models that take such terms."""
    return isinstance(kind, Leveled) and len(kind.levels) >= FEWEST_GROUPED


def formula_of(outcome: str, predictors: dict[str, Kind], *, groups: bool = False) -> str:
    """Formula of an outcome given predictors by name; with `groups` those of many levels enter as
    ``(1 | g)``."""
    terms = [
        f"(1 | {term})" if groups and is_grouped(kind) else term
        for name, kind in predictors.items()
        for term in terms_of(name, kind)
    ]
    return f"{quoted(outcome)} ~ {' + '.join(terms) or '1'}"


def _number(value: float) -> str:
    """As it stands in a formula: no sign before it that would follow another."""
    text = f"{value:.12g}"
    return f"({text})" if value < 0 else text
