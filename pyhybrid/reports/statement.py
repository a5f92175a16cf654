"""The privacy statement, which is Markdown, as sections of a page."""

from __future__ import annotations

import re

from pyhybrid.releases.release import Release
from pyhybrid.reports.page import Section

__all__ = ["statement_sections", "without_steps"]


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
            if bullets:  # a second list says something else, as of all steps after the last one
                found.append(
                    Section(heading=heading, level=own, paragraphs=paragraphs, bullets=bullets)
                )
                heading, paragraphs = "", []
            bullets = block[2:].split("\n- ")
        else:
            # Column names may hold asterisks: only the summary, which opens with them, has bold.
            bold = block.startswith("**")
            paragraphs.append(re.split(r"\*\*(.+?)\*\*", block) if bold else [block])
    return found


def without_steps(release: Release, sections: list[Section]) -> list[Section]:
    """The statement's sections less those of the steps of a sequence, which have a table here."""
    if not release.parts:
        return sections
    kept = [each for each in sections if not each.heading.startswith("Step ")]
    note = "How each step was made is in a table below; the statement has it in full."
    return [*kept, Section(paragraphs=[[note]])]
