"""Equations of docstrings and pages, as MathML: shown by every browser, offline, and read aloud.

`Equations` is an extension of griffe, which reads the docstrings for mkdocstrings: it writes the
``math`` role and directive as the Markdown that arithmatex knows. `on_page_content` is a hook of
mkdocs: it puts MathML in the place of what arithmatex has found.
"""

from __future__ import annotations

import html
import inspect
import re
from typing import Any

import griffe
from latex2mathml.converter import convert

_ROLE = re.compile(r":math:`([^`]+)`")
_DIRECTIVE = re.compile(r"^( *)\.\. math::[ \n]*((?:.+\n?)+?)(?=\n|\Z)", re.MULTILINE)
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def in_markdown(text: str) -> str:
    """A docstring with ``$ ... $`` and ``$$ ... $$`` in the place of the role and the directive."""
    text = _DIRECTIVE.sub(_display, text)
    return _ROLE.sub(lambda found: f"${' '.join(found[1].split())}$", text)


def _display(found: re.Match[str]) -> str:
    formula = " ".join(found[2].split())
    return f"\n{found[1]}$$\n{found[1]}{formula}\n{found[1]}$$\n"


class Equations(griffe.Extension):
    """Rewrites every docstring before it is taken apart."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and "math:" in obj.docstring.value:
            obj.docstring.value = in_markdown(inspect.cleandoc(obj.docstring.value))


def on_page_content(content: str, **_: Any) -> str:
    """MathML for the formulas of a page."""
    content = _INLINE.sub(lambda found: _mathml(found[1], "inline"), content)
    return _BLOCK.sub(lambda found: _mathml(found[1], "block"), content)


def _mathml(formula: str, display: str) -> str:
    return convert(html.unescape(formula), display=display)
