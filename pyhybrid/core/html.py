"""Results in notebooks: a short table of what may be seen by anyone."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence


def html_rows(title: str, rows: Mapping[str, object]) -> str:
    """A table of names and values; everything is escaped."""
    return html_table(title, (), [(name, value) for name, value in rows.items()])


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with a caption, whose first column names the rows; everything is escaped."""
    head = "".join(f'<th scope="col">{_cell(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{_cell(first)}</th>'
        + "".join(f'<td style="text-align:left">{_cell(each)}</td>' for each in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<table><caption style="text-align:left">{_cell(title)}</caption>'
        f"{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    return html.escape(str(value))
