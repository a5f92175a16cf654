"""The snippets of a page of the documentation, in their order, and how each is run."""

import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyhybrid.engines import ConvergenceRule, SamplerSettings

SHORT = {
    SamplerSettings: {"warmup": 300},
    ConvergenceRule: {"rhat": 1.1, "ess_per_chain": 15.0, "divergent_share": 0.1},
}
"""Defaults in the suite: a shorter warm-up, and what can be asked after it. Draws are as many as a
reader has."""

ROOT = Path(__file__).parents[2]
TEXTS = [*sorted((ROOT / "docs" / "pages").rglob("*.md")), ROOT / "README.md"]
TABLE = ROOT / "docs" / "pages" / "guide" / "first_steps.md"
"""Its first snippet makes the table that all pages of the guide use."""

_LINK_TO_TABLE = "first_steps.md#the-table-of-the-guide"
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>[^\n`]*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_NOT_RUN = re.compile(r'^ title="not run by the tests: ([^"]{10,})"$')
_LANGUAGES = {"python": "python", "": "shell", "sh": "shell", "r": "r"}


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """One fenced block: ``not_run`` is the reason in its title, which readers see, too."""

    page: str
    line: int
    language: str
    text: str
    not_run: str | None


@contextmanager
def short_chains() -> Iterator[None]:
    """Defaults of `SHORT` for what is run within."""
    with pytest.MonkeyPatch.context() as patch:
        for settings, defaults in SHORT.items():
            for name, value in defaults.items():
                patch.setitem(settings.__init__.__kwdefaults__, name, value)  # type: ignore[misc]
        yield


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def snippets_of(text: str, page: str) -> list[Snippet]:
    """All fenced blocks of a page; an attribute that is not understood is an error."""
    found = []
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 1
        reason = _NOT_RUN.match(fence["rest"])
        if fence["language"] not in _LANGUAGES or (fence["rest"] and reason is None):
            raise ValueError(f"{page}, line {line}: a fence of unknown form, {fence[0][:60]!r}")
        found.append(
            Snippet(
                page=page, line=line, language=_LANGUAGES[fence["language"]],
                text=textwrap.dedent(fence["text"]), not_run=None if reason is None else reason[1],
            )
        )  # fmt: skip
    if len(found) * 2 != len(re.findall(r"^ *```", text, re.MULTILINE)):
        raise ValueError(f"{page}: a fence is not closed, or not understood")
    return found


def python_snippets(path: Path) -> list[str]:
    """Python that is run, of a file of any tree."""
    found = snippets_of(path.read_text(encoding="utf-8"), path.name)
    return [each.text for each in found if each.language == "python" and each.not_run is None]


def with_table(path: Path) -> list[Snippet]:
    """Snippets of a page; before them that of the guide's table, if the page names it."""
    text = path.read_text(encoding="utf-8")
    own = snippets_of(text, name_of(path))
    if path == TABLE or _LINK_TO_TABLE not in text:
        return own
    return [snippets_of(TABLE.read_text(encoding="utf-8"), name_of(TABLE))[0], *own]


def shell_commands(text: str) -> list[list[str]]:
    """Commands of a shell block: continued lines joined, comments left out, && split."""
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), "&&"]:
            if word != "&&":
                words.append(word)
            elif words:
                commands.append(words)
                words = []
    return commands


def run_page(
    snippets: Sequence[Snippet], run_command: Callable[[list[str], str], None]
) -> dict[str, Any]:
    """Run Python and commands in order, in one namespace; returns that."""
    namespace: dict[str, Any] = {}
    for snippet in snippets:
        if snippet.not_run is not None:
            continue
        place = f"{snippet.page}, line {snippet.line}"
        if snippet.language == "python":
            exec(compile(snippet.text, place, "exec"), namespace)
        elif snippet.language == "shell":
            for command in shell_commands(snippet.text):
                run_command(command, place)
    return namespace
