"""`pyhybrid report` and `pyhybrid open`: where the owner's pages are, made anew from the data."""

import itertools
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.tables import typed_sets
from tests.conftest import Run
from tests.fuzzing.engine import RANDOM_DRAWS


def test_a_report_is_found_made_anew_and_opened(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv, released = tmp_path / "survey.csv", tmp_path / "out"
    pd.DataFrame({"g": ["a", "b", "a", "c"] * 50}).to_csv(csv, index=False)
    mechanism = ["--mechanism", "perturbed_histogram:levels=a+b+c,epsilon=1", "--formula", "g ~ 1"]
    assert run("synthesize", str(csv), *mechanism, "--out", str(released))[0] == 0
    page = released / "confidential" / "report.html"
    assert run("report", str(released))[1].strip() == str(page)
    page.unlink()
    code, _, error = run("report", str(released))
    assert (code, "--data TABLE makes one" in error) == (2, True)
    assert run("report", str(released), "--data", str(csv))[0] == 0
    assert "<html" in page.read_text()
    assert page.stat().st_mode & 0o077 == 0
    assert run("report", str(released), "--data", str(csv))[0] == 2, "it is there: --overwrite"
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))
    assert run("open", str(released))[0] == 0
    assert opened == [page.resolve().as_uri()]


def test_texts_of_a_saved_release_are_numbers_as_those_of_the_data() -> None:
    """Seen: where values are missing, marked by NA, the report ended in a traceback."""
    df = pd.DataFrame({"visits": [0, 3, 1, 2, 5, 1, 4, 2]})
    saved = ph.Unweighted(ph.Poisson("visits ~ 1")).release(df, **RANDOM_DRAWS)
    (name,) = saved.synthesized
    text = saved.synthetic[0].reset_index(drop=True).astype({name: object})
    text.loc[:1, name] = ["NA", "7"]
    made = typed_sets(replace(saved, synthetic=[text])).synthetic[0][name]
    assert made.isna().tolist()[:3] == [True, False, False]
    assert made.iloc[1] == 7


def test_what_is_no_release_is_named(refused: Callable[..., str], tmp_path: Path) -> None:
    words = "nosuch must be the folder of a release (--out): it does not exist"
    for command, what in itertools.product(("report", "open"), (tmp_path, Path(__file__))):
        assert "it is no release" in refused(command, str(what))
        assert words in refused(command, "nosuch")
