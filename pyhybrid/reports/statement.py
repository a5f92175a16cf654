"""The privacy statement as sections of a page."""

from __future__ import annotations

import re

from pyhybrid.reports.page import Section

__all__ = ["statement_sections"]


def statement_sections(statement: str, *, level: int) -> list[Section]:
    """Sections of the statement's Markdown: headings of two levels, paragraphs, bullets."""
    found: list[Section] = []
    heading, own = "", level
    paragraphs: list[list[str]] = []
    bullets: list[str] = []
    for block in [*statement.strip().split("\n\n"), "## "]:
        if block.startswith("# "):
            continue
        marks, _, rest = block.partition(" ")
        if marks in ("##", "###"):
            found.append(
                Section(heading=heading, level=own, paragraphs=paragraphs, bullets=bullets)
            )
            heading, paragraphs, bullets = rest, [], []
            own = level + len(marks) - 2
        elif block.startswith("- "):
            bullets = block[2:].split("\n- ")
        else:
            # Column names may hold asterisks: only the summary, which opens with them, has bold.
            bold = block.startswith("**")
            paragraphs.append(re.split(r"\*\*(.+?)\*\*", block) if bold else [block])
    return found
