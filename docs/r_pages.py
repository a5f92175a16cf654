"""The help pages of the R package, man/*.Rd, beside the reference of their Python twins.

A hook of mkdocs: `reference/r.md` ends in all help pages, and below each Python name of the
reference that R has too stands how R calls it. R is not needed.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAN = Path(__file__).resolve().parent.parent / "man"
_PYTHON = re.compile(r"^::: pyhybrid\.[\w.]*\.(\w+)\n(?: {4}options:.*\n)?", re.MULTILINE)
_MACRO = re.compile(r"\\([A-Za-z]+)(?:\[[^\]]*\])?\{|\\([%\\{}])")
_METHOD = re.compile(r"\\method\{([^}]*)\}\{([^}]*)\}")
_LINK = re.compile(r"\\link(?:\[[^\]]*\])?\{(.*?)\}")
_ITEM = re.compile(r"\\item *")


@dataclass(frozen=True, kw_only=True)
class Help:
    """One help page: `parts` by name, `aliases` the functions that it is of."""

    parts: dict[str, str]
    aliases: tuple[str, ...]

    def call(self, name: str) -> str:
        """How `name` is called, on one line; empty where the page does not show it."""
        shown = self.parts.get("usage", "")
        found = re.search(rf"^{re.escape(name)}\((?:.*\)$|\n(?:.*\n)*?\))", shown, re.MULTILINE)
        return "" if found is None else re.sub(r"\(\s+|\s+", _squeezed, found[0]).replace(" )", ")")


def _squeezed(space: re.Match[str]) -> str:
    return "(" if space[0].startswith("(") else " "


def _closing(text: str, start: int) -> int:
    """Place of the brace that closes the one before `start`."""
    depth = 1
    for place in range(start, len(text)):
        if text[place - 1] != "\\":
            depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(f"a brace is not closed: {text[start : start + 60]!r}")


def read_help(text: str) -> Help:
    """The parts of an .Rd file, in their own markup."""
    text = re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)
    parts: dict[str, str] = {}
    aliases = []
    place = 0
    while found := re.compile(r"^\\(\w+)\{", re.MULTILINE).search(text, place):
        place = _closing(text, found.end())
        body = text[found.end() : place].strip()
        aliases += [body] if found[1] == "alias" else []
        parts[found[1]] = body
    return Help(parts=parts, aliases=tuple(aliases))


def in_markdown(text: str) -> str:
    """Markdown of Rd markup."""
    done = []
    place = 0
    while found := _MACRO.search(text, place):
        done.append(text[place : found.start()])
        if found[2]:
            done.append(found[2])
            place = found.end()
            continue
        end = _closing(text, found.end())
        done.append(_macro(found[1], text[found.end() : end]))
        place = end + 1
    return "".join([*done, text[place:]])


def _macro(name: str, body: str) -> str:
    if name in ("code", "verb"):
        return f"`{_LINK.sub(lambda found: found[1], body)}`"
    if name == "link":
        return f"`{body}`"
    if name == "eqn":
        return f"${body}$"
    if name == "strong":
        return f"**{body}**"
    if name == "pkg":
        return body
    if name == "itemize":
        return "\n" + _ITEM.sub("\n- ", in_markdown(body))
    raise ValueError(f"docs/r_pages.py does not know \\{name}{{}} of man/: write what it becomes")


def _arguments(text: str) -> str:
    """One point for each argument."""
    lines = []
    place = 0
    while found := re.compile(r"\\item\{([^}]*)\}\{").search(text, place):
        place = _closing(text, found.end())
        said = " ".join(in_markdown(text[found.end() : place]).split())
        names = ", ".join(f"`{name.strip()}`" for name in found[1].split(","))
        lines.append(f"- {names}: {said}")
    return "\n".join(lines)


def page_of(topic: Help) -> str:
    """A help page in Markdown."""
    parts = topic.parts
    anchors = "".join(f'<a id="{name}"></a>' for name in topic.aliases)
    lines = [f"### {in_markdown(parts['title'])}", anchors, in_markdown(parts["description"])]
    if "usage" in parts:
        usage = _METHOD.sub(r"# of class \2\n\1", parts["usage"])
        lines += ["```r\n" + usage.replace("\\%", "%") + "\n```"]
    if "arguments" in parts:
        lines += [_arguments(parts["arguments"])]
    if "details" in parts:
        lines += [in_markdown(parts["details"])]
    if "value" in parts:
        lines += ["**Value.** " + in_markdown(parts["value"])]
    if "examples" in parts:
        shown = re.sub(r"\\donttest\{\n(.*)\n\}", r"\1", parts["examples"], flags=re.DOTALL)
        lines += ["```r\n" + shown.replace("\\%", "%") + "\n```"]
    if "references" in parts:
        lines += ["**References.** " + in_markdown(parts["references"])]
    return "\n\n".join(lines)


@functools.cache
def help_pages() -> dict[str, Help]:
    """Help pages of functions by file name."""
    read = {each.stem: read_help(each.read_text(encoding="utf-8")) for each in MAN.glob("*.Rd")}
    return {name: read[name] for name in sorted(read) if "usage" in read[name].parts}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The help pages, at the end of their page; calls in R, below Python names."""
    source = page.file.src_uri
    if source == "reference/r.md":
        return "\n\n".join([markdown, *map(page_of, help_pages().values())])
    if source.startswith("reference/"):
        return _PYTHON.sub(_beside, markdown)
    return markdown


def _beside(found: re.Match[str]) -> str:
    if "show_root_heading: false" in found[0]:  # what a module says of itself
        return found[0]
    for topic in help_pages().values():
        if found[1] in topic.aliases and (call := topic.call(found[1])):
            return f"{found[0]}\nIn R: [`{call}`](r.md#{found[1]})\n"
    return found[0]
