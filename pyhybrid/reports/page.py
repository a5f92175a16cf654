"""HTML pages of reports: sections of text, pictures and tables, in one file without references."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pyhybrid.releases.release import Release
from pyhybrid.releases.statement import in_words
from pyhybrid.reports.figures.mechanisms import figure_data_uri

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "Marked", "Picture", "Section", "Table", "interval_text", "number_text",
           "picture_of", "render_page", "setting_text", "statement_sections",
           "without_steps"]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Marked:
    """A cell with a word that says how good its value is, shown beside it in a color of its own."""

    text: str
    word: str


Cell = str | Marked


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells are text or marked text; `numbers` aligns them to the right."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: bool = False

    @property
    def listed(self) -> bool:
        """True if a phone shows rows as lists: text, and marked cells, not to be cut off."""
        return not self.numbers or any(
            isinstance(cell, Marked) for row in self.rows for cell in row
        )


@dataclass(frozen=True, kw_only=True)
class Picture:
    """An inlined image with its text alternative; `share` of the page's width, in percent."""

    source: str
    width: int
    height: int
    share: int
    alt: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """Heading, then paragraphs (odd runs of each are bold), bullets, pictures, tables."""

    heading: str = ""
    level: int = 2
    paragraphs: Sequence[Sequence[str]] = ()
    bullets: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


def picture_of(figure: Figure, *, alt: str, caption: str) -> Picture:
    """The figure as an inlined picture, the widest ones as wide as the page."""
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    share = min(100, round(100 * figure.get_figwidth() / _WIDEST))
    return Picture(
        source=figure_data_uri(figure), width=width, height=height, share=share, alt=alt,
        caption=caption,
    )  # fmt: skip


_WIDEST = 8.2  # inches


def render_page(
    title: str,
    sections: Sequence[Section],
    *,
    confidential: bool,
    advice: str = "publish only the folder public/",
) -> str:
    """The page as HTML; a confidential one opens with a banner that says so and gives `advice`."""
    import jinja2

    text = files("pyhybrid").joinpath("report_template.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(text)
    page = template.render(title=title, sections=sections, confidential=confidential, advice=advice)
    return page + "\n"


def number_text(value: Any) -> str:
    """A value as people write it: 54,508, 0.0123, 1.2e-07, yes, none.

    Not for an epsilon, which was rounded up and is shown in full: `privacy.epsilon.epsilon_text`.
    """
    if value is None:
        return "none"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if np.isnan(value):
        return "–"
    if value == 0 or abs(value) >= 1e-4:
        return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.4g}"
    return f"{value:.1e}".replace(".0e", "e")


def setting_text(value: object) -> str:
    """A setting as people write it: a number, or what a mapping or a list holds, in words."""
    return in_words(value) if isinstance(value, (Mapping, list, tuple)) else number_text(value)


def interval_text(row: pd.Series, prefix: str = "", *, gap: str = " ") -> str:
    """Estimate and interval of a row with `estimate`, `lower` and `upper`, after `prefix`."""
    ends = (row[f"{prefix}{name}"] for name in ("estimate", "lower", "upper"))
    estimate, lower, upper = map(number_text, ends)
    return f"{estimate}{gap}[{lower}, {upper}]"


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
