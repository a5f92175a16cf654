"""Terms (1 | g) of a formula: intercepts by the levels of a column, whose spread is estimated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.quoted import bare
from pyhybrid.models.formula.whitelist import Factor, no_column

__all__ = ["has_groups", "without_groups"]

_TERM = re.compile(r"\(\s*(?P<left>[^|(]*?)\s*\|\s*(?P<right>.*?)\s*\)", re.DOTALL)
_COLUMN = re.compile(r"[A-Za-z_.][\w.]*|`[^`]+`")


def has_groups(formula: str) -> bool:
    """Whether the text of a formula that can be read has a term (1 | g)."""
    return isinstance(formula, str) and "|" in bare(formula)


def without_groups(
    formula: str, right: str, columns: Sequence[str]
) -> tuple[str, tuple[Factor, ...]]:
    """The right-hand side of a formula without its terms (1 | g), and these, in their order.

    Raises
    ------
    InvalidInput
        For a ``|`` anywhere else, for slopes by group, for groups that are not one column, for a
        name that is no column, and for a group that occurs twice; says what to write.
    """
    plain = bare(right)
    if "|" not in plain:
        return right, ()
    kept, groups = [], []
    for start, stop in _summands(plain):
        if "|" in plain[start:stop]:
            groups.append(_group(formula, right[start:stop].strip(), columns))
        elif right[start:stop].strip():
            kept.append(right[start:stop])
    twice = {own.text for own in groups if groups.count(own) > 1}
    if twice:
        raise InvalidInput(f"formula {formula!r} must have each group once: {min(twice)} is twice")
    return "+".join(kept) or "1", tuple(groups)


def _summands(plain: str) -> Iterator[tuple[int, int]]:
    """Where what stands between the plus signs begins and ends."""
    start = depth = 0
    for place, character in enumerate(plain):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == "+":
            yield start, place
            start = place + 1
    yield start, len(plain)


def _group(formula: str, term: str, columns: Sequence[str]) -> Factor:
    found = _TERM.fullmatch(term)
    if found is None:
        raise InvalidInput(
            f"formula {formula!r} must have '|' in terms (1 | g) alone, with + before them: found "
            f"{term!r}; write e.g. y ~ x + (1 | region)"
        )
    left, name = found["left"], found["right"]
    if left != "1":
        raise InvalidInput(
            f"formula {formula!r} must have no slope by group: found {term!r}; write "
            f"(1 | {name}) for an intercept by group, or x:{name} for coefficients by level"
        )
    if not _COLUMN.fullmatch(name):
        raise InvalidInput(
            f"formula {formula!r} must have one column as a group: found {term!r}; for nested or "
            "joined groups make a column of both, df['g_h'] = df['g'] + '/' + df['h'], and write "
            "(1 | g) + (1 | g_h)"
        )
    name = name.strip("`")
    if name not in columns:
        raise no_column(formula, name, columns)
    return Factor(text=f"(1 | {name})", source="C(column_)", columns={"column_": name})
