"""Notebooks and reports as pages: stored bare, executed, whole in a real browser."""

import ast
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import PyhybridError
from pyhybrid.engines import SamplerSettings
from pyhybrid.reports.notebooks import (
    NotebookFailed,
    find_notebook,
    notebook_names,
    render_notebook,
)
from pyhybrid.reports.release import release_report
from tests.refusals import refuses

NAMES = notebook_names()
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def _cells(name: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(find_notebook(name).read_text("utf-8"))["cells"]
    return cells


def test_the_papers_notebooks_are_there() -> None:
    assert [name[:2] for name in NAMES] == [f"{n:02d}" for n in range(1, 11)]
    assert find_notebook("2") == find_notebook("02_reweighting")
    assert find_notebook("1") != find_notebook("10")
    refuses("notebook must be one of 01_quick_start", find_notebook, "nothing")


@pytest.mark.parametrize("name", NAMES)
def test_stored_without_outputs_and_with_words(name: str) -> None:
    cells = _cells(name)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "".join(cells[0]["source"]).startswith("# ")
    assert len(code) >= 5
    for cell in code:
        source = "".join(cell["source"])
        if not source.startswith("%"):
            ast.parse(source)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "quick_start.html"
    path.write_text(render_notebook(find_notebook("1")), encoding="utf-8")
    return path


@pytest.mark.long
def test_the_quick_start_runs_and_needs_nothing_else(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count('<img alt="') + text.count("<img src=") >= 3
    sources = re.findall(r"<(?:img|script|link|iframe)[^>]+(?:src|href)=\"([^\"]{0,40})", text)
    assert sources
    assert all(source.startswith("data:") for source in sources)
    assert "<script" not in text
    assert "epsilon of all three sets" in text
    assert "Traceback" not in text


def _notebook(path: Path, *sources: str) -> Path:
    cells = [
        {"cell_type": "code", "id": f"c{place}", "metadata": {}, "source": source, "outputs": [],
         "execution_count": None}
        for place, source in enumerate(sources)
    ]  # fmt: skip
    path.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


@pytest.mark.long
def test_what_fails_or_is_no_notebook_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    before = set(Path(os.environ.get("TMPDIR", "/tmp")).glob("pyhybrid-*"))
    with pytest.raises(NotebookFailed, match=r"own\.ipynb: ValueError: no such thing"):
        render_notebook(_notebook(tmp_path / "own.ipynb", "raise ValueError('no such thing')"))
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


_PROBE = """<script>window.addEventListener("load", () => {
  const images = [...document.images];
  const whole = images.filter(i => i.complete && i.naturalWidth > 50);
  const probe = document.createElement("pre");
  probe.id = "probe";
  probe.textContent = JSON.stringify({images: images.length, whole: whole.length,
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth + 1});
  document.body.append(probe);
});</script>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The owner's report of a release, as `synthesize` writes it."""
    table = pd.DataFrame({"y": np.random.default_rng(1).poisson(4, 150)})
    release = ph.LipschitzWeighted(ph.Poisson("y ~ 1"), reweighting=True).release(
        table, n_synthetic=2, seed=1, engine="embedded",
        settings=SamplerSettings(warmup=300, draws=400),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(release_report(release, table), encoding="utf-8")
    return path


@pytest.mark.long
@pytest.mark.pictures
@pytest.mark.parametrize("which", ["page", "report"])
def test_pages_are_whole_in_a_browser(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """All figures, no console output, no sideways scroll; a shot in PYHYBRID_SCREENSHOTS."""
    if CHROMIUM is None:
        pytest.skip("chromium was not found")
    source: Path = request.getfixturevalue(which)
    probed = tmp_path / "probed.html"
    probed.write_text(source.read_text("utf-8").replace("</head>", _PROBE + "</head>", 1), "utf-8")
    folder = Path(os.environ.get("PYHYBRID_SCREENSHOTS", tmp_path))
    common = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,1400",
              f"--user-data-dir={tmp_path}/profile", "--enable-logging=stderr"]  # fmt: skip
    dumped = subprocess.run(
        [*common, "--dump-dom", "--virtual-time-budget=3000", probed.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = re.search(r'<pre id="probe">(.*?)</pre>', dumped.stdout)
    assert found is not None, dumped.stderr[-2000:]
    seen = json.loads(found[1])
    assert seen["images"] == seen["whole"] >= 3
    assert not seen["wide"]
    assert [line for line in dumped.stderr.splitlines() if "CONSOLE" in line] == []
    shot = folder / f"{source.stem}.png"
    subprocess.run(
        [*common, f"--screenshot={shot}", source.as_uri()], capture_output=True, timeout=120
    )
    assert shot.stat().st_size > 20_000
