"""HTML pages of reports: sections of text, pictures and tables, in one file without references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from pyhybrid.reports.figures.mechanisms import figure_data_uri

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "Marked", "Picture", "Section", "Table", "picture_of", "render_page"]


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
