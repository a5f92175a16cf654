"""The page for users of R: its columns run, and both languages give the same numbers."""

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
from pyhybrid.running.files import cache_folder
from tests.docs.snippets import python_snippets
from tests.reports.test_notebooks import cells_of

pytestmark = [pytest.mark.samples, pytest.mark.needs_r]
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "pages" / "howto" / "from_the_supplement.md"
# What the test takes out of R when the page has run.
_RECORD = Path(__file__).with_name("record.R").read_text("utf-8")


def _rows() -> list[tuple[str, str, str]]:
    """The page's three columns: the supplement's step, R and Python."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| **"):
            step, *columns = line.strip("| ").split(" | ")
            code = ["\n".join(re.findall(r"`(.+?)`(?:<br>|$)", column)) for column in columns]
            found.append((step, code[0], code[1]))
    assert len(found) == 10
    return found


_SETTINGS = "SamplerSettings(adapt_delta=0.99, warmup=500, draws=500)"
_RULE = '"rule": ph.engines.ConvergenceRule(rhat=1.05, ess_per_chain=40.0, divergent_share=0.05)'
_IN_R = "iter_warmup = 500, iter_sampling = 500"


def _changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@cache
def _python(folder: Path) -> dict[str, Any]:
    """The page's variables after its Python, of chains half as long."""
    names: dict[str, Any] = {}
    (table,) = python_snippets(PAGE)
    text = "\n".join(python for _, _, python in _rows())
    text = _changed(text, "SamplerSettings(adapt_delta=0.99)", f"{_SETTINGS}, {_RULE}")
    before = os.getcwd()
    os.chdir(folder)
    try:
        exec(compile(f"{table}\n{text}", str(PAGE), "exec"), names)
    finally:
        os.chdir(before)
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture
def in_r(folder: Path, rstan: None) -> dict[str, Any]:
    """What R computes: the page's R blocks in Rscript, with the R package installed."""
    result = folder / "r.json"
    if not result.exists():
        _python(folder)  # writes the table
        library = folder / "library"
        library.mkdir()
        _run("R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(ROOT), cwd=folder)
        (cache_folder() / "rstan").mkdir(parents=True, exist_ok=True)
        (folder / "compiled").symlink_to(cache_folder() / "rstan")
        text = "\n".join(of_r for _, of_r, _ in _rows())
        shorter = _changed(text, "adapt_delta = 0.99", f"adapt_delta = 0.99, {_IN_R}")
        (folder / "page.R").write_text(f"{shorter}\n{_RECORD}", encoding="utf-8")
        _run("Rscript", "page.R", cwd=folder, R_LIBS=str(library))
    return dict(json.loads(result.read_text()))


def _run(*command: str, cwd: Path, **more: str) -> None:
    environment = {**os.environ, **more}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_notebook_has_the_pages_lines() -> None:
    cells = cells_of("7")
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    words = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    for (step, of_r, of_python), place in zip(_rows(), range(2, 100, 2), strict=False):
        assert code[place : place + 2] == [f"%%R\n{of_r}", of_python]
        title, _, told = step.partition(".** ")
        assert f"## {title.strip('*')}\n\n{told}" in words
    assert [code[1]] == [text.rstrip("\n") for text in python_snippets(PAGE)]


def test_the_python_of_the_page_runs(folder: Path) -> None:
    page = _python(folder)
    assert page["session"].bound.program.name == "published/negative_binomial"
    assert page["f"].shape == (2000, 80)
    assert page["alpha"].min() == 0
    assert page["bounds_final"].overall < page["bounds_unweighted"].overall
    assert page["bounds_unweighted"].overall == page["unweighted"].bounds.overall
    assert (page["alpha_m"] == 0).sum() > (page["alpha"] == 0).sum()
    assert page["bounds_m"].overall < page["bounds_unweighted"].overall
    assert page["picture"]._repr_png_()
    np.testing.assert_array_equal(ph.lipschitz_weights(page["f"]), page["alpha"])
    release = page["release"]  # one call is the steps one by one
    assert [len(table) for table in release.synthetic] == [80] * 3
    assert list(release.synthetic[0].columns) == ["visits", "sex"]
    np.testing.assert_allclose(release.confidential.alpha, page["alpha"], rtol=1e-12)
    assert release.charge.epsilon == release.charge.epsilon_by("lipschitz")
    assert release.charge.epsilon == pytest.approx(page["epsilon"], rel=0.25)  # of other chains
    assert release.charge.epsilon_by("gaussian", delta=1e-6) < page["epsilon"]


def test_python_gives_rs_numbers_from_rs_draws(folder: Path, in_r: dict[str, Any]) -> None:
    f, weighted = (np.fromfile(folder / f"{name}.bin") for name in ("f", "weighted"))
    f, weighted = (values.reshape((-1, 80), order="F") for values in (f, weighted))
    assert f.shape[0] == weighted.shape[0] == in_r["n_draws"][0] == 2000
    alpha = ph.lipschitz_weights(f)
    by_record = ph.lipschitz_bounds(f).by_record
    bounds = ph.lipschitz_bounds(weighted)  # the published program has weighted it
    assert in_r["overall_unweighted"][0] == pytest.approx(by_record.max(), rel=1e-9)
    assert in_r["overall"][0] == pytest.approx(bounds.overall, rel=1e-9)
    assert in_r["epsilon"][0] == ph.arrays.epsilon_of_bound(bounds.overall, n_draws_released=3)
    for name, expected in (
        ("alpha", alpha), ("alpha_release", alpha), ("by_record", bounds.by_record),
        ("alpha_final", ph.reweight(alpha, bounds.by_record, k=0.95)),
        ("alpha_m", ph.truncate_weights(alpha, by_record, cap=2.5)),
    ):  # fmt: skip
        np.testing.assert_allclose(in_r[name], expected, rtol=1e-9, atol=1e-9, err_msg=name)
    assert np.array(in_r["synthetic"]).shape == (3, 80)
    assert in_r["columns"] == ["visits", "sex"]


def test_names_on_the_page_exist() -> None:
    table = cells_of("7")[-1]["source"].split("## Names")[1]
    for name in re.findall(r"\bph\.(\w+)", table):
        assert name in {*ph.__all__, *ph.ROOMS}
    exported = re.findall(r"export\((\w+)\)", (ROOT / "NAMESPACE").read_text())
    left = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    of_r = {name for cell in left for name in re.findall(r"\b([a-z]+(?:_[a-z]+)+)\b", cell)}
    assert of_r - {"n_draws_released", "log_lik", "pyhybrid_invalid_input"} <= set(exported)
