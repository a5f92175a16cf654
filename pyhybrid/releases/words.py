"""Prose from templates: what statements and reports say, by section and field.

A room's ``words.jinja`` has sections, ``=== name``, of fields, ``field: template``, whose further
lines are indented; a field may be there several times.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pyhybrid.privacy.conversions import epsilon_text

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_ROW = re.compile(r"^(\w+): (.*(?:\n[ ]{4,}.*)*)", re.MULTILINE)


class Words:
    """The words of a room. Column names come as values, which are written as they are."""

    def __init__(self, room: str, **filters: Any) -> None:
        self.room, self.filters = room, filters

    def rendered(self, name: str, /, field: str = "text", **values: Any) -> list[str]:
        """Texts of a field, those that come out empty left out."""
        return [text for text in self.all_of(name, field, values) if text]

    def sentence(self, name: str, /, field: str = "text", **values: Any) -> str:
        """The one text of a field."""
        (text,) = self.rendered(name, field, **values)
        return text

    def meanings(self, name: str) -> dict[str, str]:
        """Texts by what they explain."""
        return {term: text for term, (text,) in self._sections[name].items()}

    def all_of(self, name: str, field: str, values: Mapping[str, Any]) -> list[str]:
        """Texts of a field, the empty ones, too; none if it is not there."""
        return [
            self.compiled(template).render(values) if "{" in template else template
            for template in self._sections[name].get(field, ())
        ]

    @functools.cache  # noqa: B019  (one object for each room)
    def compiled(self, template: str) -> Template:
        """A template, ready for use."""
        return self.environment.from_string(template)

    @functools.cached_property
    def environment(self) -> Environment:
        """Jinja's, imported when it is first needed."""
        return environment(autoescape=False, epsilon=epsilon_text, **self.filters)

    @functools.cached_property
    def _sections(self) -> dict[str, dict[str, list[str]]]:
        text = files(self.room).joinpath("words.jinja").read_text(encoding="utf-8")
        sections: dict[str, dict[str, list[str]]] = {}
        for part in text.split("\n=== ")[1:]:
            name, _, body = part.partition("\n")
            fields = sections.setdefault(name, {})
            for field, template in _ROW.findall(body):
                fields.setdefault(field, []).append(" ".join(template.split()))
        return sections


def in_one_line(*names: str) -> str:
    """Names in a row: a line break in one could forge a heading."""
    return " ".join(", ".join(names).split())


def environment(*, autoescape: bool, **filters: Any) -> Environment:
    """Jinja's settings: a value that is not given is an error; `fmt` is Python's `format`."""
    import jinja2

    templates = jinja2.Environment(
        autoescape=autoescape, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    templates.filters |= {"fmt": format, **filters}
    return templates
