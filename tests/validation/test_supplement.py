"""`validate --supplement`: the printed script and program, and scripts that are none of it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pyhybrid import validation
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.engines import SamplerSettings, load_program
from pyhybrid.validation import published
from tests.refusals import fails, refuses

PRINTED = Path(__file__).resolve().parents[3] / "shared" / "supplement" / "supplement_1.R"
"""It belongs to the paper: it is read where it lies beside the checkout, and never shipped."""
needs_printed = pytest.mark.skipif(not PRINTED.is_file(), reason="it is not ours to ship")
LOG_LIK = -np.random.default_rng(2).gamma(2, 2, (30, 12))
QUICK = SamplerSettings(warmup=300, draws=400, adapt_delta=0.95)
OURS = Path(__file__).with_name("script_of_ours.R").read_text("utf-8")
"""Same names, another way: what the demonstration of a printed script needs in CI."""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.R"
    path.write_text(OURS)
    return path


def test_a_script_of_the_same_names_agrees_and_a_wrong_one_does_not(r: None, script: Path) -> None:
    longer = np.tile(0.5 * LOG_LIK, (2, 1))  # of a fit that went on
    rows = [r for f in (None, longer) for r in published.script_rows(script, LOG_LIK, f)]
    assert all(row.agrees for row in rows), [row.quantity for row in rows if not row.agrees]
    assert next(row.quantity for row in rows) == "2 Delta_alpha,x"
    assert {row.sides for row in rows} == {("printed", "ours")}
    script.write_text(OURS.replace("(1 - risks)", "(1 - risks * (1 + 1e-8))"))
    wrong = [row.quantity for row in published.script_rows(script, LOG_LIK) if not row.agrees]
    assert "weights" in wrong


@pytest.mark.samples
def test_other_scripts_are_refused(r: None, tmp_path: Path, refused: Callable[..., str]) -> None:
    said = "must be your copy of the printed R script"
    refuses(said, validation.validate_supplement, tmp_path / "none.R")
    (tmp_path / "other.R").write_text("x <- 1\n")
    refuses("it did not", list, published.script_rows(tmp_path / "other.R", LOG_LIK))
    (tmp_path / "broken.R").write_text("x <- (\n")
    asked = ("validate", "--supplement", str(tmp_path / "broken.R"), "--settings", "draws=50")
    assert "unexpected end of input" in refused(*asked)


def test_without_r_the_cause_is_named(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise EngineUnavailable("R must be installed: no R is on the path")

    monkeypatch.setattr(validation, "start_r", missing)
    fails(EngineUnavailable, "R must be installed", validation.validate_supplement, script)


def test_which_program_a_text_is_by_its_data(tmp_path: Path) -> None:
    for name in ("poisson", "negative_binomial", "beta", "beta_regression", "normal_mixture"):
        path = tmp_path / f"{name}.stan"
        path.write_text(load_program(f"published/{name}").text)
        assert published.read_printed(path)[0] == name
    path.write_text("data { int n; } parameters { real x; } model { }")
    refuses(r"with their names of data.*found n", published.read_printed, path)
    refuses(r"readable Stan file.*No such file", published.read_printed, tmp_path / "none.stan")


@pytest.mark.samples
def test_a_program_and_a_script_are_compared_number_by_number(
    r: None, script: Path, tmp_path: Path
) -> None:
    program = tmp_path / "nb.stan"
    old = load_program("published/negative_binomial").text
    program.write_text(old.replace("array[n] int<lower=0> y;", "int<lower=0> y[n];"))
    found = validation.validate_supplement(script, program, engine="embedded", settings=QUICK)
    assert found.agrees, found.table[~found.table["agrees"]].to_string()
    assert {row.sides for row in found.rows} == {("printed", "ours")}
    parts = {row.part.partition(",")[0] for row in found.rows}
    assert parts == {
        "supplement: the script",
        "supplement: program negative_binomial by embedded",
        "supplement: the script on the program's log_lik",
    }


@needs_printed
def test_the_script_is_nowhere_in_the_project() -> None:
    """Lines of the paper's code that are more than a word are in no file of ours."""
    lines = {line.strip() for line in PRINTED.read_text().splitlines() if len(line) > 40}
    root = Path(validation.__file__).parents[2]
    paths = [*root.glob("R/*.R"), *root.rglob("pyhybrid/**/*.py"), *root.glob("stan/**/*.stan")]
    for path in paths:
        assert not lines & {line.strip() for line in path.read_text().splitlines()}, path


@needs_printed
@pytest.mark.samples
def test_the_printed_ones_agree(r: None) -> None:
    program = PRINTED.with_name("supplement_2.stan")
    found = validation.validate_supplement(PRINTED, program, engine="embedded", settings=QUICK)
    assert found.agrees, found.table[~found.table["agrees"]].to_string()
