"""The command line: releases from files, text kept, and every bad input one line and exit 2."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid import cli
from pyhybrid.tables.read import read_file
from tests.conftest import Run
from tests.refusals import fails, refuses

FAST = ["--fit", "engine=embedded,seed=1,draws=400,refits=0"]
LOOSE = ["--mechanism", "lipschitz"]
"""What few records need."""


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """A table whose text is easily damaged: leading zeros, NA, trailing zeros, quotes."""
    rng = np.random.default_rng(4)
    n = 80
    table = pd.DataFrame({
        "id": [f"{i % 5:04d}" for i in range(n)], "visits": rng.negative_binomial(2, 0.3, n),
        "country": rng.choice(["NA", "DE", ""], n),
        "price": rng.choice(["1.50", "2.00", "NA"], n), "sex": rng.choice(["f", "m"], n),
        "said": rng.choice(['"no", he', "é", "a b"], n),
    })  # fmt: skip
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False)
    return path


def test_synthesize_from_csv_keeps_the_text_of_other_columns(run: Run, csv: Path) -> None:
    arguments = ["--formula", "visits ~ sex", *LOOSE, "--out", "out", "--n-synthetic", "2", *FAST]
    code, out, err = run("synthesize", str(csv), *arguments)
    assert (code, err.count("\n")) == (0, 1)
    assert "column 'country': 'NA' is taken for a missing value" in err
    paths = [csv, *(csv.parent / f"out/public/synthetic_{place}.csv" for place in (1, 2))]
    original, *sets = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths)
    for made in sets:
        pd.testing.assert_frame_equal(made.drop(columns="visits"), original.drop(columns="visits"))
        assert not made["visits"].equals(original["visits"])
        assert made["visits"].astype(int).ge(0).all()
    release = ph.Release.load(csv.parent / "out")
    assert f"{release.charge.epsilon:g}" in out
    assert "This is local" in out
    assert "CONFIDENTIAL" in (csv.parent / "out/confidential/report.html").read_text()


FORMULA = ["--formula", "visits ~ 1"]
HISTOGRAM = ["--mechanism", "perturbed_histogram:epsilon=1,lower=0,upper=60,n_bins=6"]
POISSON = ["--model", "poisson", "--mechanism"]
NAMED = [*POISSON, "unweighted"]


@pytest.mark.parametrize(("change", "arguments", "message"), [
    (None, ["missing.csv", *FORMULA], "data file missing.csv must exist"),
    ("visits,visits\n1,2\n", ["data.csv", *FORMULA], "those of columns 1 and 2"),
    *((text, ["data.csv", *FORMULA], "as many cells as the first one")
      for text in ("visits\n1\n2,3\n", "a,visits\n1,2,9\n1,2,9\n", "visits,x\n1,2\n\n3\n")),
    ("visits\n1\n", ["data.doc", *FORMULA], "must end in .csv, .tsv, .txt, .parquet"),
    ("nothing\n1\n2\n", ["data.csv", *FORMULA], "outcome 'visits' must be a column"),
    ("visits,x\n,1\n2,1\n4,1\n", ["data.csv", *FORMULA, *NAMED],
     "or give the model missing=True"),
    ("visits,x,y\n1,,1\n2,1,2\n", ["data.csv", "--formula", "y ~ visits", "--formula", "x ~ visits",
     "--model", "normal:unit=2", "--model", "poisson:lower=0", "--mechanism", "unweighted"],
     "step 2: outcome 'x' must not be missing"),
    ("visits,x\n1,2\n", ["data.csv", *FORMULA, "--formula", "x ~ visits", *NAMED,
     *2 * ["--mechanism", "unweighted"]], "once per --formula: found 3 for 2"),
    *(("visits\n1\n2\n", ["data.csv", *FORMULA, *words], message) for words, message in (
        ([*POISSON, "unweighted:scale=1"], "takes no scale"),
        (["--n-synthetic", "0"], "--n-synthetic"), (["--no-such-option"], "--no-such-option"),
        ([*NAMED, "--fit", "seed=-3"], "seed must be"),
        (["--types", "t.json"], "leave out --types"),
        (["--fit", "chains=2", *POISSON[:2]], "leave out --fit"),
        (["--reference", "data.csv", *POISSON[:2]], "--holds-no-released-record"),
        ([*POISSON, "clipped-scores:wieghts=w"], "takes no wieghts"),
        (["--model", "poison"], "did you mean 'poisson'?"),
        (["--model", "poisson:priors=normal"], "did you mean 'prior'?"),
        (["--mechanism", "lipshitz"], "did you mean 'lipschitz'?"),
        (["--fit", "chain=2"], "did you mean 'chains'?"),
    )),
])  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(
    change: str | None, arguments: list[str], message: str, refused: Run, tmp_path: Path
) -> None:
    if change is not None:
        (tmp_path / arguments[0]).write_text(change)
    assert message in refused("synthesize", *arguments, "--out", "out")


@pytest.mark.usefixtures("opendp")
def test_a_full_output_folder_is_refused_before_any_work(run: Run, refused: Run, csv: Path) -> None:
    (csv.parent / "out").mkdir()
    (csv.parent / "out" / "old").write_text("x")
    asked = ("synthesize", str(csv), *FORMULA, *HISTOGRAM, "--out", "out")
    assert "overwrite=True" in refused(*asked)
    assert run(*asked, "--overwrite")[0] == 0
    assert not (csv.parent / "out" / "old").exists()


def test_a_traceback_of_ours_is_not_hidden(run: Run, csv: Path, monkeypatch: Any) -> None:
    """Only errors raised on purpose become one line: a defect must show itself."""

    def defect(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pyhybrid.cli.synthesize.read_table", defect)
    monkeypatch.setattr(sys, "argv", ["pyhybrid", "synthesize", str(csv), *FORMULA, "--out", "o"])
    fails(ZeroDivisionError, "", cli.main)


def test_python_m_is_the_command(tmp_path: Path) -> None:
    def answer(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pyhybrid", *arguments], cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(ph.__file__).parents[1])}, capture_output=True,
            text=True,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    assert answer("--version") == (0, f"pyhybrid {ph.__version__}\n", "")
    code, out, err = answer("synthesize", "none.csv", "--formula", "y ~ 1", "--out", "out")
    assert (code, out) == (2, "")
    assert err.startswith("pyhybrid: ")
    assert err.count("\n") == 1


def test_doctor_fails_when_nothing_can_fit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhybrid.core.errors import SamplingError
    from pyhybrid.engines import EngineStatus
    from pyhybrid.engines.cmdstan import CmdStanEngine
    from pyhybrid.engines.embedded import EmbeddedEngine

    def gone(self: Any) -> EngineStatus:
        return EngineStatus(name=self.name, cause="gone", remedy="mend it so")

    def broken(self: Any, *_: Any, **__: Any) -> None:
        raise SamplingError("it crashed")

    monkeypatch.setattr("pyhybrid.cli.validation.ENGINES", {"cmdstan": "", "embedded": ""})
    monkeypatch.setattr(CmdStanEngine, "status", gone)
    monkeypatch.setattr(EmbeddedEngine, "sample", broken)
    code, out, _ = run("doctor")
    assert code == 1
    assert "mend it so" in out
    assert "crashed" in out


def test_row_labels_of_a_file_are_columns_if_they_have_a_name(tmp_path: Path) -> None:
    """Seen: published unchanged, and named nowhere, in the index of a file of whole tables."""
    table = pd.DataFrame({"y": [1, 2, 3]}, index=pd.Index([71, 55, 62], name="ssn"))
    table.to_parquet(tmp_path / "t.parquet")
    assert [*read_file(tmp_path / "t.parquet").frame] == ["ssn", "y"]
    table.rename_axis(None).to_parquet(tmp_path / "t.parquet")
    assert read_file(tmp_path / "t.parquet").frame.index.equals(pd.RangeIndex(3))
    path = tmp_path / "t.csv"
    path.write_text("visits,b\n1,2\n", encoding="utf-8-sig")
    assert list(read_file(path).frame.columns) == ["visits", "b"]
    (tmp_path / "none").mkdir()
    refuses("must exist and be a file: it does not", read_file, tmp_path / "none")
