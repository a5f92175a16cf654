"""The page for users of R: all its blocks run, and both languages give the same numbers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.engines.rstan import RStanEngine
from pyhybrid.running.files import cache_folder
from tests.conftest import require

pytestmark = [pytest.mark.samples, pytest.mark.needs_r]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "notebooks" / "07_moving_from_r.ipynb"
SEEDS = range(1, 9)  # largest terms scatter by .13: four of them can lie within .03 by chance

# What the test takes out of R when the page has run.
_RECORD = """
write_matrix <- function(x, file) writeBin(as.vector(x), file)
write_matrix(f, "f.bin")
write_matrix(weighted$log_lik, "weighted.bin")
jsonlite::write_json(
  list(
    alpha = alpha, by_record = bounds$by_record, overall = bounds$overall, epsilon = epsilon,
    alpha_final = alpha_final, overall_final = bounds_final$overall, n_draws = nrow(f),
    synthetic = lapply(synthetic, function(x) x$visits), columns = names(synthetic[[1]]),
    X = data$X
  ),
  "r.json", digits = NA
)
"""


def _cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def _blocks(language: str, *, until: str = "## Both") -> str:
    """Code of one language up to a heading; the side-by-side part needs both in one process."""
    found = []
    for cell in _cells():
        if cell["cell_type"] == "markdown" and until in cell["source"]:
            break
        text = cell["source"]
        if cell["cell_type"] == "code" and not text.startswith("%load_ext"):
            is_r = text.startswith("%%R")
            if is_r == (language == "r"):
                found.append(text.removeprefix("%%R\n"))
    assert len(found) >= 6
    return "\n".join(found)


@cache
def _python(folder: Path, seed: int) -> dict[str, Any]:
    """The page's variables after its Python blocks."""
    names: dict[str, Any] = {}
    until = "## Both" if seed == 1 else "## 6. Synthesize"  # other seeds are for the bounds
    text = _blocks("python", until=until).replace("seed=1", f"seed={seed}")
    before = os.getcwd()
    os.chdir(folder)
    try:
        exec(compile(text, str(PAGE), "exec"), names)
    finally:
        os.chdir(before)
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture
def in_r(folder: Path) -> dict[str, Any]:
    """What R computes: the page's R blocks in Rscript, with the R package installed."""
    result = folder / "r.json"
    if not result.exists():
        status = RStanEngine().status()
        require(status.available, f"rstan cannot be used: {status.cause}")
        _python(folder, 1)  # writes the table
        library = folder / "library"
        library.mkdir()
        _run("R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(ROOT), cwd=folder)
        (cache_folder() / "rstan").mkdir(parents=True, exist_ok=True)
        (folder / "compiled").symlink_to(cache_folder() / "rstan")
        (folder / "page.R").write_text(_blocks("r") + _RECORD, encoding="utf-8")
        _run("Rscript", "page.R", cwd=folder, R_LIBS=str(library))
    return dict(json.loads(result.read_text()))


def _run(*command: str, cwd: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_python_of_the_page_runs(folder: Path) -> None:
    page = _python(folder, 1)
    assert page["f"].shape == (4000, 120)
    assert page["alpha"].min() == 0
    assert page["bounds_final"].overall < page["unweighted"].bounds.overall
    np.testing.assert_array_equal(ph.lipschitz_weights(page["f"]), page["alpha"])
    assert [len(table) for table in page["synthetic"]] == [120] * 3
    assert list(page["synthetic"][0].columns) == ["visits", "age", "sex"]
    release = page["release"]  # one call is the steps one by one
    np.testing.assert_allclose(release.confidential.alpha, page["alpha"], rtol=1e-12)
    assert release.charge.epsilon == page["epsilon"]


def test_python_gives_rs_numbers_from_rs_draws(folder: Path, in_r: dict[str, Any]) -> None:
    page, shape = _python(folder, 1), (-1, 120)
    f = np.fromfile(folder / "f.bin").reshape(shape, order="F")
    weighted = np.fromfile(folder / "weighted.bin").reshape(shape, order="F")
    assert f.shape[0] == weighted.shape[0] == in_r["n_draws"][0] == 4000
    np.testing.assert_allclose(np.array(in_r["X"]), page["bound"].design.X, rtol=1e-12)
    alpha = ph.lipschitz_weights(f)
    np.testing.assert_allclose(in_r["alpha"], alpha, rtol=1e-10, atol=1e-13)
    bounds = ph.lipschitz_bounds(weighted, alpha)
    np.testing.assert_allclose(in_r["by_record"], bounds.by_record, rtol=1e-10, atol=1e-13)
    assert in_r["overall"][0] == pytest.approx(bounds.overall, rel=1e-10)
    assert in_r["epsilon"][0] == ph.arrays.epsilon_of_bound(bounds.overall, n_draws_released=3)
    step = ph.reweight(alpha, bounds.by_record, k=0.95)
    np.testing.assert_allclose(in_r["alpha_final"], step, rtol=1e-10, atol=1e-13)
    assert np.array(in_r["synthetic"]).shape == (3, 120)
    assert in_r["columns"] == ["visits", "age", "sex"]


def test_both_workflows_end_at_the_same_bounds(folder: Path, in_r: dict[str, Any]) -> None:
    """R's result against Python's under other seeds, in standard errors of one more run."""
    pages = [_python(folder, seed) for seed in SEEDS]
    for of_r, of_python in (
        (np.mean(in_r["alpha"]), [page["alpha"].mean() for page in pages]),
        (in_r["overall"][0], [page["bounds"].overall for page in pages]),
        (in_r["overall_final"][0], [page["bounds_final"].overall for page in pages]),
    ):
        error = np.std(of_python, ddof=1) * np.sqrt(1 + 1 / len(pages))
        assert 0 < error < 0.1 * np.mean(of_python)
        assert abs(of_r - np.mean(of_python)) < 5 * error


def test_names_on_the_page_exist() -> None:
    table = _cells()[-1]["source"].split("## Names")[1]
    for name in re.findall(r"\bph\.(\w+)", table):
        assert name in {*ph.__all__, *ph.ROOMS}
    exported = re.findall(r"export\((\w+)\)", (ROOT / "NAMESPACE").read_text())
    left = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    of_r = {name for cell in left for name in re.findall(r"\b([a-z]+(?:_[a-z]+)+)\b", cell)}
    assert of_r - {"n_draws_released", "log_lik", "pyhybrid_invalid_input"} <= set(exported)
