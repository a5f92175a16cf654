"""The documentation: every name exists, tables are those stored, no link is dead."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyhybrid as ph
from pyhybrid.cli.app import COMMANDS
from pyhybrid.reports.notebooks import digest, find_notebook, notebook_names
from tests.conftest import require
from tests.docs.snippets import ROOT, TEXTS, name_of, snippets_of

PAGES = TEXTS[:-1]
BENCHMARKS = "\n\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "docs/pages/benchmarks").glob("*.md")
)
_COMMAND = re.compile(r"^pyhybrid ([a-z]+)", re.MULTILINE)


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_names_and_commands_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    missing = {name for name in re.findall(r"\bph\.([A-Za-z_]\w*)", text) if not hasattr(ph, name)}
    assert missing == set()
    shell = "\n".join(s.text for s in snippets_of(text, "") if s.language == "shell")
    assert set(_COMMAND.findall(shell)) <= set(COMMANDS)


UNLISTED = ("engines", "models", "studies")
"""Rooms with names for those who extend them."""


def test_every_public_name_has_a_reference() -> None:
    pages = "\n".join(p.read_text() for p in (ROOT / "docs" / "pages" / "reference").glob("*.md"))
    named = set(re.findall(r"^::: pyhybrid\.[\w.]*?\.?(\w+)$", pages, re.MULTILINE))
    rooms = [ph, *(getattr(ph, room) for room in ph.ROOMS if room not in UNLISTED)]
    calls = {
        name
        for room in rooms
        for name in room.__all__
        if name in ph.__all__ or name.islower() or room is ph.arrays
        if callable(getattr(room, name)) and not hasattr(getattr(room, name), "with_traceback")
    }
    assert sorted(calls - named) == []  # of all but errors


@pytest.mark.long
def test_the_site_builds_and_no_link_is_dead(tmp_path: Path) -> None:
    """`strict` in docs/mkdocs.yml turns every warning, a dead link among them, into a failure."""
    mkdocs = subprocess.run([sys.executable, "-m", "mkdocs", "--version"], capture_output=True)
    require(mkdocs.returncode == 0, "mkdocs is not installed: pip install 'pyhybrid[docs]'")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "-f", "docs/mkdocs.yml", "-d",
         str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-2000:]
    pages = [p for p in (tmp_path / "site").rglob("*.html") if p.parent.name != "notebooks"]
    assert len(pages) >= len(PAGES)
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"(https?:[^\"]+)\"", text)
        assert loaded == [], page.name
        assert not re.search(r":math:|\.\. math::|class=\"arithmatex", text), page.name
        assert 'javascripts/iframe-worker.js"' in text, "search under file:// has no worker"
    index = (tmp_path / "site" / "search" / "search_index.js").read_text()
    assert index.startswith("var __index = {")
    equations = (tmp_path / "site" / "reference" / "accounting.html").read_text().count("<math")
    assert equations >= 11


@pytest.mark.parametrize("name", notebook_names())
def test_a_notebook_has_a_page_with_outputs_of_the_same_cells(name: str) -> None:
    page = (ROOT / "docs" / "notebooks" / f"{name}.html").read_text("utf-8")
    cells = json.loads(find_notebook(name).read_text("utf-8"))["cells"]
    assert f'name="cells" content="{digest(cells)}"' in page, "changed since `make notebooks`"
    bare = re.sub(r"data:image/png;base64,[^\"]*", "data:", page)
    assert not re.search(r"<script|(src|href)=\"(?!data:|#)|/(tmp|root|home|work)/", bare)


@pytest.mark.parametrize("name", ["gauntlet", "guarantees", "peers.stored", "scale", "tables"])
def test_tables_that_benchmarks_write_are_the_stored_ones(name: str) -> None:
    page, benchmark = BENCHMARKS, importlib.import_module(f"benchmarks.{name}")
    mark = f"<!-- {name.partition('.')[0]} -->"
    table = page.partition(mark)[2].strip().partition("\n\n")[0].splitlines()
    rows = benchmark.page_rows()
    assert rows
    assert table[2:] == rows
    if name == "peers.stored":
        ours = page.partition("<!-- peers.winners -->")[2].strip().partition("\n\n")[0].splitlines()
        assert ours[2:] == benchmark.winner_rows()


def test_every_test_that_the_security_page_names_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", text))
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 100
    assert named - set(re.findall(r"^def (test_\w+)\(", tests, re.M)) == set()
    assert max(map(len, text.splitlines())) <= 140
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    assert [row for row in rows if "`test_" not in row and "held by" not in row] == []
