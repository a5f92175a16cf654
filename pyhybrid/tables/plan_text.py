"""A plan for people: 80 columns of text, or a table of HTML."""

from __future__ import annotations

import html
import textwrap
from typing import Any

from pyhybrid.tables.table_spec import SOURCES

__all__ = ["plan_html", "plan_text"]

_WIDTH = 80
_IN = " " * 5
Plan = Any  # a circle of imports otherwise


def plan_text(plan: Plan) -> str:
    """The plan in lines of at most 80 characters where names allow it."""
    table = plan.table
    lines = _wrapped(
        f"Plan for {len(table.df)} rows: {len(plan.columns)} columns are synthesized, "
        f"{len(table.kept)} kept.",
        "",
    )
    for place, column in enumerate(plan.columns, start=1):
        given = f" given {', '.join(column.predictors)}" if column.predictors else ""
        lines += _wrapped(f"{column.name}: {column.model}{given}", _IN, f"{place:>3}. ")
        lines += _wrapped(_why(column), _IN, _IN)
        if column.tables and column.tables != column.predictors:
            lines += _wrapped(f"noisy marginals: with {', '.join(column.tables)}", _IN, _IN)
    if table.kept:
        lines += _wrapped(f"Kept: {', '.join(table.kept)}.", "  ")
    if table.drop:
        lines += _wrapped(f"Not released: {', '.join(table.drop)}.", "  ")
    if table.id is not None:
        lines += _wrapped(f"Replaced by running numbers: {table.id}.", "  ")
    for rule in table.rules:
        lines += _wrapped(f"Rule: {rule}", "  ")
    for note in _notes(plan):
        lines += _wrapped(f"Note: {note}.", "  ")
    return "\n".join(lines)


def plan_html(plan: Plan) -> str:
    """The plan as a table of HTML."""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(cell)}</td>"
            for cell in (
                str(place),
                column.name,
                column.model,
                ", ".join(column.predictors) or "none",
                f"{column.share:.1%}",
                _why(column, share=False),
            )
        )
        + "</tr>"
        for place, column in enumerate(plan.columns, start=1)
    )
    head = "".join(
        f"<th>{name}</th>" for name in ("", "column", "model", "given", "of epsilon", "why")
    )
    notes = [*(f"Rule: {rule}" for rule in plan.table.rules), *_notes(plan)]
    below = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"{f'<ul>{below}</ul>' if below else ''}"
    )


def _why(column: Any, *, share: bool = True) -> str:
    shown = f"; {column.share:.1%} of epsilon" if share else ""
    kind = column.kind
    return f"{kind.kind.name}, {SOURCES[kind.source]}; {column.why}{shown}"


def _notes(plan: Plan) -> list[str]:
    read = plan.not_declared
    said = (
        [
            f"types of {', '.join(read)} were read from confidential columns: a strict charge "
            "needs types= or reference="
        ]
        if read
        else []
    )
    return [*plan.notes, *said]


def _wrapped(text: str, rest: str = "", first: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False
    )
