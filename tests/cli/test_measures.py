"""`pyhybrid utility` and `pyhybrid risk` as a user runs them: files, tables, HTML, errors."""

import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.app import run
from pyhybrid.reports.figures import plot_levels, plot_matching_risk, plot_pairs
from tests.refusals import refuses


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data, two partially synthetic sets, a resample in another order."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    data = pd.DataFrame({
        "age": rng.integers(20, 60, 200), "sex": rng.choice(["f", "m"], 200),
        "income": rng.lognormal(3, 1, 200).round(2), "zip": rng.choice(["007", "08"], 200),
    })  # fmt: skip
    data.to_csv("real.csv", index=False)
    for place in (1, 2):
        synthetic = data.assign(income=rng.lognormal(3, 1, 200).round(2))
        synthetic.to_csv(f"synthetic_{place}.csv", index=False)
    data.sample(150, replace=True, random_state=1).to_csv("plain.csv", index=False)
    return tmp_path


UTILITY = ["utility", "real.csv", "synthetic_1.csv", "synthetic_2.csv", "--permutations", "2"]
RISK = ["risk", "real.csv", "synthetic_1.csv", "synthetic_2.csv", "--key", "age:radius=2",
        "--key", "sex", "--key", "income:radius=0.1,kind=relative"]  # fmt: skip


def test_utility_leaves_out_what_a_release_dropped(folder: Path, capsys: Any) -> None:
    pd.read_csv("synthetic_1.csv").drop(columns="zip").to_csv("dropped.csv", index=False)
    assert run(["utility", "real.csv", "dropped.csv", "--permutations", "2"]) == 0
    assert "or not all sets have them: zip" in capsys.readouterr().err


@pytest.fixture
def summaries(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the commands have computed, in place of being shown."""
    computed: list[Any] = []
    finish = lambda _title, summary, *_: computed.append(summary)  # noqa: E731
    monkeypatch.setattr("pyhybrid.cli.measures._finish", finish)
    return computed


def test_utility_is_that_of_python(folder: Path, summaries: list[Any]) -> None:
    assert run([*UTILITY, "--formula", "income ~ `age` + sex"]) == 0
    files = ("real.csv", "synthetic_1.csv", "synthetic_2.csv")
    real, *sets = (pd.read_csv(file, dtype={"zip": str}) for file in files)  # "007" is a code
    how = {"formulas": ["income ~ `age` + sex"], "n_permutations": 2, "rng": 1}
    own = ph.measures.utility_summary(real, sets, **how)
    assert summaries[0].overall() == pytest.approx(own.overall())


def test_risk_is_that_of_python(folder: Path, summaries: list[Any]) -> None:
    assert run([*RISK, "--sensitive", "zip"]) == 0
    assert run([*RISK[:2], "plain.csv", *RISK[4:]]) == 0
    assert run([*RISK[:4], "--key", "age,sex"]) == 0
    sets = [pd.read_csv(f"synthetic_{i}.csv") for i in (1, 2)]
    own = ph.measures.matching_risk(
        pd.read_csv("real.csv"), sets, keys=["age", "sex", "income"],
        radius={"age": 2, "income": 0.1}, kind={"income": "relative"},
    )  # fmt: skip
    measures = summaries[0].overall()
    assert measures["expected_match_risk"] == own.expected_match_risk
    assert measures["matching_risk"] == own.mean_risk
    assert 0 < measures["attribute_risk, zip"] < 1
    assert "expected_match_risk" not in summaries[1].overall()
    assert summaries[2].keys == ("age", "sex")


@pytest.mark.long
@pytest.mark.parametrize("command", [UTILITY, RISK])
def test_files_are_private_and_say_so(folder: Path, capsys: Any, command: list[str]) -> None:
    outputs = ["--html", "out/report.html"]
    assert run([*command, *outputs]) == 0
    shown = capsys.readouterr().out
    assert "CONFIDENTIAL" in shown
    assert "out/report.html" in shown
    assert stat.S_IMODE(Path("out/report.html").stat().st_mode) == 0o600
    html = Path("out/report.html").read_text()
    for said in ("<strong>CONFIDENTIAL", " · real.csv: ", "publish no part of this page"):
        assert said in html
    assert not re.search(r"(src|href)=\"(?!data:|#part-)", html)
    assert html.count("<figure>") >= (2 if command is UTILITY else 1)
    refuses("must be a new file: it exists", run, [*command, *outputs])
    assert run([*command, *outputs, "--overwrite"]) == 0


def test_a_release_folder_stands_for_its_sets(folder: Path, summaries: list[Any]) -> None:
    (folder / "out" / "public").mkdir(parents=True)
    for place in (1, 2):
        (folder / f"synthetic_{place}.csv").rename(f"out/public/synthetic_{place}.csv")
    assert run(["risk", "real.csv", "out", "--key", "age"]) == 0
    assert summaries[0].matching.n_sets == 2


@pytest.mark.parametrize(("arguments", "message"), [
    ([*RISK, "--key", "town"], "key 'town' must be in the data"),
    ([*RISK, "--key", "sex"], "each --key must be given once: 'sex'"),
    ([*RISK[:4], "--key", "age:radius=two"], "radius of --key 'age' must be a number"),
    ([*RISK[:4], "--key", "age:size=2"], "takes radius and kind: found 'size'"),
    ([*RISK[:3], "plain.csv", "--key", "age", "--rows-correspond"], "only in sets of 200 rows"),
    ([*UTILITY, "--columns", "age", "--columns", "income,town"], "column 'town' must be"),
    ([*UTILITY, "--formula", "income ~ town"], "cannot be fitted to the data"),
    (["risk", *RISK[1:3], "--key", "age", "--holdout", "real.csv"],
        "name at least one sensitive column"),
    ([*UTILITY[:3], "--formula", "income ~ age", "--rule", "fully_synthetic"], "at least 2"),
    ([*UTILITY, "--html", "."], "must be a file: it is a folder"),
    (["utility", "real.csv", "nothing.csv"], "data file nothing.csv must exist"),
])  # fmt: skip
def test_bad_input_is_named_and_nothing_written(folder: Path, arguments: Any, message: str) -> None:
    before = sorted(folder.iterdir())
    if "--html" not in arguments:
        arguments = [*arguments, "--html", "report.html"]
    refuses(re.escape(message), run, arguments)
    assert sorted(folder.iterdir()) == before


def test_figures_show_what_they_are_given() -> None:
    pairs = plot_pairs(pd.DataFrame([[0.0, 50.0], [50.0, 1.0]], columns=["a", "b"])).axes[0]
    assert pairs.images[0].get_array().tolist() == [[0, 10], [10, 1]]
    assert [text.get_text() for text in pairs.texts] == ["0.0", "50.0", "50.0", "1.0"]
    risk = plot_matching_risk({"a": [0.0, 0.0, 0.5, 1.0]}).axes[0]
    assert risk.patches[-1].get_height() == 2
    assert [text.get_text() for text in risk.texts] == ["2", "1 at 1"]
    levels = plot_levels(["b", "a"], [0.7, 0.3], [[0.6, 0.4], [0.8, 0.2]], "one").axes[0]
    assert [bar.get_width() for bar in levels.patches] == [0.7, 0.3]
    np.testing.assert_allclose(levels.lines[0].get_xdata(), [0.7, 0.3])
    assert [text.get_text() for text in levels.get_yticklabels()] == ["b", "a"]
