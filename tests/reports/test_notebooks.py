"""Notebooks as pages: stored bare, executed, whole."""

import ast
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from pyhybrid.core.errors import PyhybridError
from pyhybrid.reports.notebooks import (
    NotebookFailed,
    find_notebook,
    notebook_names,
    render_notebook,
)
from tests.refusals import fails, refuses

NAMES = notebook_names()


def cells_of(name: str) -> list[dict[str, Any]]:
    """Of a stored notebook, with the source of each as one text."""
    cells = json.loads(find_notebook(name).read_text("utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def test_the_papers_notebooks_are_there() -> None:
    assert [name[:2] for name in NAMES] == [f"{n:02d}" for n in range(1, 11)]
    assert find_notebook("2") == find_notebook("02_reweighting")
    assert find_notebook("1") != find_notebook("10")
    refuses("notebook must be one of 01_quick_start", find_notebook, "nothing")


@pytest.mark.parametrize("name", NAMES)
def test_stored_without_outputs_and_with_words(name: str) -> None:
    cells = cells_of(name)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert cells[0]["source"].startswith("# ")
    assert len(code) >= 5
    for cell in code:
        if not cell["source"].startswith("%"):
            ast.parse(cell["source"])


@pytest.mark.long
def test_the_quick_start_runs_and_needs_nothing_else() -> None:
    text = render_notebook(find_notebook("1"))
    described = re.findall(r'<img alt="([^"]+)"', text)
    assert "by-record Lipschitz bound (nats); record weight α" in described
    assert not any("No description" in words for words in described)
    sources = re.findall(r"<(?:img|script|link|iframe)[^>]+(?:src|href)=\"([^\"]{0,40})", text)
    assert sources
    assert all(source.startswith("data:") for source in sources)
    assert "<script" not in text
    assert "epsilon of all three sets" in text
    assert "Traceback" not in text


@pytest.mark.long
def test_what_fails_or_is_no_notebook_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    before = set(Path(os.environ.get("TMPDIR", "/tmp")).glob("pyhybrid-*"))
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "id": "c",
            "source": "raise ValueError('no such thing')"}  # fmt: skip
    made = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "own.ipynb").write_text(json.dumps(made))
    said = r"own\.ipynb: ValueError: no such thing"
    fails(NotebookFailed, said, render_notebook, tmp_path / "own.ipynb")
    assert set(Path(os.environ.get("TMPDIR", "/tmp")).glob("pyhybrid-*")) <= before
    assert issubclass(NotebookFailed, PyhybridError)
    (tmp_path / "x.ipynb").write_text("no json")
    refuses("must be a notebook", render_notebook, tmp_path / "x.ipynb")
    refuses("size", render_notebook, tmp_path / "x.ipynb", size="huge")


def test_the_command(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    assert run("notebook")[1].split() == ["Notebooks:", *NAMES]
    monkeypatch.setattr("pyhybrid.cli.studies.render_notebook", lambda *_, **__: "<p>page</p>")
    assert run("notebook", "3")[0] == 0
    assert Path("03_local_to_global_bounds.html").read_text() == "<p>page</p>"
    code, _, err = run("notebook", "3")
    assert (code, err.count("\n")) == (2, 1)
    assert "overwrite=True" in err
