"""HTML pages of reports: sections of text, pictures and tables, in one file without references.

What sections say is in `words.jinja`: by the name of a section, templates of its heading, its
paragraphs (``text``), its pictures (``alt`` and ``caption``) and the captions of its tables.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pyhybrid.releases.words import Words, environment
from pyhybrid.reports.figures import figure_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Marked:
    """A cell with a word that says how good its value is, shown beside it in a color of its own."""

    text: str
    word: str


Cell = str | Marked


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells are text or marked text; `numbers` aligns them to the right."""

    caption: str = ""
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: bool = False


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
class Card:
    """A column at a glance: a small picture, the worst of its words, and values with theirs."""

    name: str
    picture: Picture
    word: str
    values: Sequence[tuple[str, Marked]] = ()


@dataclass(frozen=True, kw_only=True)
class Section:
    """Heading, then paragraphs (odd runs of each are bold), cards, bullets, pictures, tables, the
    `markdown` of a statement and sections below it; a folded one is opened by a click."""

    heading: str = ""
    level: int = 2
    paragraphs: Sequence[Sequence[str]] = ()
    cards: Sequence[Card] = ()
    bullets: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    parts: Sequence[Section] = ()
    markdown: str = ""
    folded: bool = False


def frame_table(frame: pd.DataFrame) -> Table:
    """A data frame as people read it."""
    rows = [[number_text(cell) for cell in row] for row in frame.itertuples(index=False)]
    header = [str(name).replace("_", " ") for name in frame.columns]
    return Table(header=header, rows=rows, numbers=True)


def folded(heading: str, parts: Sequence[Section]) -> Section:
    """One folded section of several, whose headings are below its own."""
    return Section(heading=heading, parts=_below(parts), folded=True)


def picture_of(figure: Figure, alt: str, caption: str = "") -> Picture:
    """The figure as an inlined picture, the widest ones as wide as the page."""
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    share = min(100, round(100 * figure.get_figwidth() / _WIDEST))
    source = f"data:image/png;base64,{base64.b64encode(figure_png(figure)).decode('ascii')}"
    return Picture(source=source, width=width, height=height, share=share, alt=alt, caption=caption)


_WIDEST = 8.2  # inches


PUBLIC_ONLY, NOTHING = "publish only the folder public/", "publish no part of this page"


def render_page(
    title: str,
    sections: Sequence[Section],
    *,
    confidential: bool,
    advice: str = PUBLIC_ONLY,
    facts: Sequence[str] = (),
) -> str:
    """The page as HTML; a confidential one opens with a banner that says so and gives `advice`.
    `facts` stand below the title; from four headings on it has a table of contents."""
    contents = {place: each.heading for place, each in enumerate(sections) if each.heading}
    return filled(
        "report_template.html", title=title, sections=sections, confidential=confidential,
        advice=advice, facts=facts, contents=contents if confidential and len(contents) > 3 else {},
    )  # fmt: skip


def facts_of_table(table: str, n_records: int, n_columns: int | None = None) -> list[str]:
    """The date, and the table: its name and size, as far as they are known."""
    name, columns = f"{table}: " if table else "", f", {n_columns} columns" if n_columns else ""
    today = datetime.datetime.now(tz=datetime.timezone.utc).date()
    return [today.isoformat(), f"{name}{n_records:,} records{columns}"]


def filled(template: str, **values: Any) -> str:
    """A template of this room with its values, which are escaped."""
    text = files("pyhybrid.reports").joinpath(template).read_text(encoding="utf-8")
    return environment(autoescape=True).from_string(text).render(values) + "\n"


def number_text(value: Any) -> str:
    """A value in print: 54,508, 0.0123, 1.2e-07, yes, none; for an epsilon `epsilon_text`."""
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
        whole = "{:,.0f}" if abs(value) >= 1e4 else "{:.0f}"  # years have no commas
        return whole.format(value) if abs(value) >= 1e3 else f"{value:.4g}"
    return f"{value:.1e}".replace(".0e", "e")


_WORDS = Words("pyhybrid.reports", number=number_text)
rendered, sentence, meanings = _WORDS.rendered, _WORDS.sentence, _WORDS.meanings


def section(
    name: str,
    /,
    *,
    figures: Iterable[Figure] = (),
    tables: Iterable[Table] = (),
    paragraphs: Sequence[Sequence[str]] = (),
    bullets: Sequence[str] = (),
    parts: Sequence[Section] = (),
    **values: Any,
) -> Section:
    """The section of a name in `words.jinja`, with figures and tables in the order of its words,
    paragraphs before its own, and `parts` below it. Templates read `values`; a paragraph that comes
    out empty is left out, and a table may have a caption already."""
    heading, alts, captions, said, above = (
        _WORDS.all_of(name, field, values)
        for field in ("heading", "alt", "caption", "text", "table")
    )
    named = [t if t.caption else replace(t, caption=above[place]) for place, t in enumerate(tables)]
    return Section(
        heading="".join(heading), paragraphs=[*paragraphs, *([text] for text in said if text)],
        bullets=bullets, pictures=[*map(picture_of, figures, alts, captions)], tables=named,
        parts=_below(parts),
    )  # fmt: skip


def _below(parts: Sequence[Section]) -> list[Section]:
    return [replace(part, level=3) for part in parts]


def interval_text(row: pd.Series, prefix: str = "") -> str:
    """Estimate and interval of a row with `estimate`, `lower` and `upper`, after `prefix`."""
    ends = (row[f"{prefix}{name}"] for name in ("estimate", "lower", "upper"))
    estimate, lower, upper = map(number_text, ends)
    return f"{estimate} [{lower}, {upper}]"
