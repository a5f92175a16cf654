"""What every page must hold for a keyboard, a screen reader and weak eyes; used by many tests."""

import itertools
import re
from html.parser import HTMLParser

from matplotlib.colors import to_rgb

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Tags with attributes, visible text, and a check that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        """What is read."""
        return " ".join(" ".join(self.texts).split())

    def attributes(self, tag: str) -> list[dict[str, str]]:
        """Of every tag of this name."""
        return [attrs for name, attrs in self.tags if name == tag]


def check_page(html: str) -> None:
    """One h1, headings that skip no level, a verdict first, alt texts, captions, reachable data."""
    tags = Page(html).tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    headings = re.findall(r"<h2>(.*?)</h2>", html)
    assert headings[0] in ("In short", "Verdict")
    assert len(headings) == len(set(headings)), "two headings cannot be told apart"
    images = [attrs for tag, attrs in tags if tag == "img"]
    assert all(len(attrs["alt"]) > 30 for attrs in images)
    assert all({"width", "height"} <= set(attrs) for attrs in images)
    assert all(attrs["scope"] in ("row", "col") for tag, attrs in tags if tag == "th")
    names = [tag for tag, _ in tags]
    assert names.count("table") == names.count("caption") == names.count("thead")
    assert names.count("figcaption") == names.count("figure")
    regions = [attrs for tag, attrs in tags if tag == "div" and attrs.get("role") == "region"]
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in regions)
    text = re.sub(r"<[^>]+>", " ", html)
    assert not re.search(r"\d\.?\d*e\+\d", text), "a number as computers write it"
    assert "{&#39;" not in text, "a Python dict"


def contrast(one: str, other: str) -> float:
    """Ratio of WCAG 2.1, from 1 to 21, of two colors such as ``#fff``."""
    bright, dark = sorted(map(_luminance, (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    parts = to_rgb(color)
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
