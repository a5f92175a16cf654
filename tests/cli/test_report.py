"""`pyhybrid report` and `pyhybrid open`: the owner's page made anew from the data, and opened."""

import webbrowser
from pathlib import Path
from typing import Any

import pandas as pd

from tests.conftest import Run


def test_a_report_is_made_anew_and_opened(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    csv, released = tmp_path / "survey.csv", tmp_path / "out"
    pd.DataFrame({"g": [0, 1, 0, 2] * 50}).to_csv(csv, index=False)
    histogram = "perturbed_histogram:lower=0,upper=2,n_bins=3,epsilon=1"
    mechanism = ["--mechanism", histogram, "--formula", "g ~ 1"]
    assert run("synthesize", str(csv), *mechanism, "--out", str(released))[0] == 0
    page = released / "confidential" / "report.html"
    page.unlink()
    code, _, error = run("open", str(released))
    assert (code, "--data TABLE makes one" in error) == (2, True)
    anew = ("report", str(released), "--data", str(csv))
    assert run(*anew)[0] == 0
    assert "<html" in page.read_text()
    assert page.stat().st_mode & 0o077 == 0
    assert run(*anew)[0] == 2, "it is there: --overwrite"
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))
    assert run("open", str(released))[0] == 0
    assert opened == [page.resolve().as_uri()]


def test_what_is_no_release_is_named(refused: Any, tmp_path: Path) -> None:
    for command in (("report", "--data", str(Path(__file__))), ("open",)):
        assert "it is no release" in refused(command[0], str(tmp_path), *command[1:])
        words = "nosuch must be the folder of a release (--out): it does not exist"
        assert words in refused(command[0], "nosuch", *command[1:])
