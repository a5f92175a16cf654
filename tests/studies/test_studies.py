"""Studies: resumed after a kill bit for bit, failures kept apart, folders not mixed, numbers."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid import __version__
from pyhybrid.core.errors import SaveFailed
from pyhybrid.core.randomness import Streams
from pyhybrid.studies import (
    STUDIES,
    Measured,
    Published,
    Size,
    Study,
    load_study,
    run_study,
    summarize,
)
from pyhybrid.studies.claims import all_hold, falls, nearer
from pyhybrid.studies.runner import made_with, reproduce, reproduction_page
from pyhybrid.studies.study import NOTES, Claim
from tests.refusals import fails, refuses

ROOT = Path(__file__).parents[2]


def measure(setting: str, streams: Streams, options: Mapping[str, Any]) -> list[Measured]:
    """The mean of n normal numbers; "fails" fails for some, "slow" takes time."""
    value = streams.generator("data").normal(size=100).mean()
    if setting == "fails" and value > 0:
        raise ValueError(f"value {value:.3f} is above 0")
    if setting == "slow":
        time.sleep(0.05)
    return [Measured("plain", "mean", float(value)), Measured("plain", "square", float(value**2))]


def _study(*settings: str, **changes: Any) -> Study:
    plain = Study(
        name="T", title="means", source="here", settings=settings, measure=measure,
        quick=Size(replicates=4), paper=Size(replicates=8, options={"x": 1}),
    )  # fmt: skip
    return replace(plain, **changes)


OPTIONS: dict[str, Any] = {"engine": "embedded"}


def _values(values: Any, synthesizer: str = "LW", quantity: str = "bound") -> pd.DataFrame:
    """Rows of one quantity, a database each."""
    whole = {"setting": "a", "synthesizer": synthesizer, "quantity": quantity}
    return pd.DataFrame({"replicate": range(len(values)), "value": values}).assign(**whole)


_published = partial(Published, setting="a", synthesizer="LW", quantity="bound", shown="x")


def test_summary_is_the_mean_with_its_error(tmp_path: Path) -> None:
    result = run_study(_study("a"), out=tmp_path / "out", replicates=9, **OPTIONS)
    values = result.rows.loc[result.rows["quantity"] == "mean", "value"]
    row = result.summary.iloc[0]
    assert row["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert row["mc_error"] == pytest.approx(values.std(ddof=1) / 3, rel=1e-12)
    assert (row["n"], row["lowest"], row["highest"]) == (9, values.min(), values.max())


@pytest.mark.long
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """SIGKILL in the middle; the same file as without it, whatever the number of workers."""
    script = tmp_path / "run.py"
    script.write_text(
        "from tests.studies.test_studies import _study, run_study\n"
        'if __name__ == "__main__":\n'
        '    run_study(_study("slow"), out="killed", replicates=20, engine="embedded")\n'
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, env=environment)
    parts, deadline = tmp_path / "killed" / "parts", time.monotonic() + 60
    while time.monotonic() < deadline and not (parts.exists() and len(list(parts.iterdir())) > 5):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = len(list(parts.glob("*.parquet")))
    assert 5 <= finished < 20
    assert load_study(tmp_path / "killed").rows["replicate"].nunique() == finished
    begun = {path: path.stat().st_mtime_ns for path in parts.glob("*.parquet")}
    study = _study("slow")
    run_study(study, out=tmp_path / "killed", replicates=20, workers=2, **OPTIONS)
    assert {path: path.stat().st_mtime_ns for path in begun} == begun
    result = run_study(study, out=tmp_path / "whole", replicates=20, **OPTIONS)
    files = [(tmp_path / each / "results.parquet").read_bytes() for each in ("killed", "whole")]
    assert files[0] == files[1]
    assert len(result.rows) == result.rows["value"].nunique() == 2 * 20  # no number is used twice


def test_a_failing_database_is_noted_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    result = run_study(_study("fails", "a"), out=tmp_path / "out", **OPTIONS)
    assert 0 < len(result.failed) < 4
    label, message = next(iter(result.failed.items()))
    assert label.startswith("fails / ")
    assert message.startswith("ValueError: value 0.")
    assert result.rows["replicate"][result.rows["setting"] == "a"].nunique() == 4
    assert load_study(tmp_path / "out").failed == result.failed
    monkeypatch.setitem(STUDIES, "T", _study("fails", "a"))
    code, out, _ = run("study", "run", "T", "--out", str(tmp_path / "out"), "--engine", "embedded")
    assert code == 1
    assert " databases failed" in out


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """The folder of a study that has been run."""
    run_study(_study("a"), out=tmp_path / "out", **OPTIONS)
    return tmp_path / "out"


@pytest.mark.parametrize(("change", "message"), [
    ({"seed": 2}, "of seed 1, not 2"), ({"size": "paper"}, "of options"),
    ({"study": _study("a", "b")}, "of settings"),
    ({"study": _study("a", name="U")}, "of study 'T', not 'U'"),
])  # fmt: skip
def test_other_results_are_not_mixed(change: dict[str, Any], message: str, done: Path) -> None:
    refuses(message, run_study, **{"study": _study("a"), "out": done, **OPTIONS, **change})


def test_results_of_another_version_are_refused_and_a_damaged_part_is_named(done: Path) -> None:
    header = json.loads((done / "study.json").read_text())
    (done / "study.json").write_text(json.dumps({**header, "pyhybrid": "0.0.9"}))
    refuses(r"pyhybrid '0.0.9', not", run_study, _study("a"), out=done, **OPTIONS)
    assert load_study(done).header["pyhybrid"] == "0.0.9"  # reading mixes nothing
    part = next((done / "parts").iterdir())
    part.write_bytes(b"no parquet")
    refuses(part.name, load_study, done)


def test_folders_that_will_not_do(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    study = _study("a")
    refuses("new, empty or of this study", run_study, study, out=tmp_path / "full", **OPTIONS)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    (tmp_path / "file").write_text("x")
    fails(SaveFailed, "cannot be written", run_study, study, out=tmp_path / "file/sub", **OPTIONS)
    refuses("must hold a study, whole and as saved", load_study, tmp_path)
    for wrong, message in (({"replicates": 0}, "replicates"), ({"size": "huge"}, "quick, paper"),
                           ({"workers": 0}, "workers"), ({"seed": -1}, "seed"),
                           ({"data": __file__}, "give no data"),
                           ):  # fmt: skip
        refuses(message, run_study, study, out=tmp_path / "new", **{**OPTIONS, **wrong})


ONE = {"one_database": True}


@pytest.mark.parametrize(("n", "low", "high", "line", "verdict"), [
    (100, 2.9, 3.1, {}, "agrees"), (100, 3.5, 4.0, {}, "differs, unexplained"),
    (100, 3.5, 4.0, {"experiment": "tried"}, "differs, with experiment"),
    (100, 3.25, 3.25, {}, "differs, unexplained"), (100, 3.25, 3.25, {"error": 0.1}, "agrees"),
    (100, 4.5, 4.5, ONE, "agrees"), (100, 5.5, 5.5, ONE, "differs, unexplained"),
    (100, 1.5, 1.5, ONE, "no evidence"),  # 0 would agree, too
    (9, 2.9, 3.1, {}, "no evidence"), (9, 30.0, 30.0, ONE, "no evidence"),
])  # fmt: skip
def test_verdicts_of_numbers(n: int, low: float, high: float, line: Any, verdict: str) -> None:
    """Mean 3 and deviation 1 among databases exactly."""
    values = np.random.default_rng(1).normal(size=n)
    rows = _values(3 + (values - values.mean()) / values.std(ddof=1))
    study = _study("a", published=(_published(low=low, high=high, **line),))
    lines = reproduce(study, summarize(rows))
    assert lines["verdict"].tolist() == [verdict]
    assert "±" in lines["threshold"][0]


def test_verdicts_of_claims() -> None:
    summary, published = summarize(_values(np.ones(10))), _published(low=1, high=1, setting="b")
    one, few = {"text": "it holds", "threshold": "one row"}, {"fewest": 11}
    claims = tuple(
        Claim(**one, check=lambda rows, holds=holds: (f"{len(rows)} row", holds), **of)
        for holds, of in ((True, {}), (False, {}), (None, {}), (True, few))
    )
    lines = reproduce(_study("a", published=(published,), claims=claims), summary)
    assert lines["ours"].tolist() == ["not run", *["1 row"] * 4]
    assert lines["verdict"].tolist() == [
        "no evidence", "agrees", "differs, unexplained", "no evidence", "no evidence"
    ]  # fmt: skip


@pytest.mark.parametrize(("synthesizer", "quantity", "verdict"), [
    ("data", "q15 upper", "no evidence"), ("Censor_w", "q15 upper", "no evidence"),
    ("CW", "q15 upper", "agrees"), ("Censor_w", "q15 less the data's", "agrees"),
    ("CW", "of other data", "no evidence"),
])  # fmt: skip
def test_the_papers_data_are_no_evidence(synthesizer: str, quantity: str, verdict: str) -> None:
    rows = _values(np.random.default_rng(1).normal(3, 0.1, 20), synthesizer, quantity)
    other = {"one_database": True, "other_data": quantity == "of other data"}
    lines = [
        _published(low=3, high=3, synthesizer=name, quantity=what, **other)
        for name, what in ((synthesizer, quantity), ("Censor_w", "q15 less the data's"))
    ]
    study = _study("a", published=tuple(lines))
    first = reproduce(study, summarize(rows)).iloc[0]
    assert (first["verdict"], first["why"]) == (verdict, NOTES.get(synthesizer, ""))


@pytest.mark.parametrize("to_data", [True, False])
def test_synthesizers_on_the_same_databases_are_compared_on_each(to_data: bool) -> None:
    """What databases have in common hides a difference of means, and not that on each."""
    rng, n = np.random.default_rng(1), 20
    common = rng.normal(100, 5, n)
    off = {"data": 0.0, "A": -0.1, "B": -0.2} if to_data else {"A": 0.0, "B": 0.1}
    parts = [_values(common + x + 0.01 * rng.normal(size=n), name, "q") for name, x in off.items()]
    for compared, holds in (({}, None), ({"q": [("A", "B"), ("A", "C")]}, True)):
        summary = summarize(pd.concat(parts), compared)
        text, found = nearer(summary, "a", "A", ["B"], "q", to_data=to_data)
        assert (found, text.endswith("different databases")) == (holds, not compared)
    pair = summary[summary["synthesizer"] == "difference"]
    assert pair["quantity"].tolist() == ["q, A less B"]
    assert pair["mean"].iloc[0] == pytest.approx(-0.1, abs=0.02)


@pytest.mark.parametrize(("before", "after", "to", "expected"), [
    ((2.0, 0.1), (1.0, 0.1), 0.0, True), ((1.0, 0.1), (2.0, 0.1), 0.0, False),
    ((1.0, 0.1), (1.2, 0.1), 0.0, None),  # within 2 x 0.14
    ((1.0, 0.1), (1.2, 0.1), 1.6, None),
    ((1.0, 0.1), (2.0, 0.1), 1.5, None),  # on both sides, equally far
    ((1.0, np.nan), (2.0, 0.1), 0.0, None),  # one database
])  # fmt: skip
def test_a_difference_within_two_errors_is_no_evidence(
    before: tuple[float, float], after: tuple[float, float], to: float, expected: bool | None
) -> None:
    rows = (pd.Series({"mean": m, "mc_error": error, "n": 20}) for m, error in (before, after))
    assert falls(*rows, to=to) is expected


def test_all_hold_if_none_fails_and_each_could_be_said() -> None:
    parts: list[list[bool | None]] = [[True, True], [True, None], [None, False], []]
    assert [all_hold(part) for part in parts] == [True, None, False, None]


@pytest.mark.samples
def test_the_commands(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # so that no cell goes on in the next line
    code, out, _ = run("study", "list")
    assert (code, "[S22]" in out) == (0, True)
    options = ("--replicates", "2", "--engine", "embedded")
    code, out, _ = run("study", "run", "a", "--out", "A", *options)
    assert (code, "contracts onto 3.5" in out) == (0, True)
    assert run("study", "run", "a", "--out", "A", *options)[1] == out, "finished: nothing is run"
    code, _, err = run("study", "run", "Z", "--out", "Z")
    assert (code, err.count("\n")) == (2, 1)
    code, _, err = run("study", "table", "A", "A", "--out", "t.md")
    assert "'A' is there twice" in err
    code, _, _ = run("study", "table", "A", "--out", "t.md", "--csv", "t.csv")
    assert "| A | Weighted-M, Lipschitz bound (n = 6400) |" in Path("t.md").read_text()
    rows = pd.read_csv("t.csv")
    bounds = rows[rows["quantity"] == "Lipschitz bound"]
    assert len(bounds) == 12  # 4 sizes x 3 synthesizers
    assert len(rows) == 4 * len(bounds)


def test_pages_of_unlike_seeds_are_refused(tmp_path: Path) -> None:
    results = [run_study(_study("a"), out=tmp_path / str(s), seed=s, **OPTIONS) for s in (1, 2)]
    refuses("agree in seed", made_with, results)
    old = replace(results[0], header={**results[0].header, "study": "J", "pyhybrid": "0"})
    assert f"pyhybrid {__version__} (J: 0), engine embedded, seed 1" in made_with([results[0], old])
    claim = Claim(text="all is well", threshold="at all", fewest=1, experiment="tried",
                  check=lambda summary: ("found", False))  # fmt: skip
    studies = {name: _study("a", name=name, claims=(claim,)) for name in ("A", "B", "K")}
    page = reproduction_page(studies, dict.fromkeys(studies, results[0].summary), "x")
    assert "**No evidence**: fewer than 10 databases" in page
    assert "here. 4 databases (size 'paper' makes 8)\n" in page
    assert "| A | all is well |" in page
    assert "| A to I | 0 | 2 | 0 | 0 |\n| K | 0 | 1 | 0 | 0 |" in page
