"""`pyhybrid plan`, and `synthesize --plan`: two commands from a file to a release; bad tables and
rules are one line, and nothing is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer

import pyhybrid as ph
from pyhybrid.cli.app import app
from pyhybrid.cli.synthesize import _TAKEN
from tests.conftest import Run, require_opendp
from tests.tables.conftest import TYPES, survey_of

NAMES = ("voted", "region")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    survey_of(200, 1).to_csv(path, index=False)
    types = {name: TYPES[name].as_dict() for name in NAMES}
    (tmp_path / "types.json").write_text(json.dumps(types))
    return path


def planned(run: Any, csv: Path, *more: str) -> Any:
    out = csv.parent / "plan.json"
    return run(
        "plan", str(csv), "--sensitive", "voted, region", "--id", "person", "--drop", "name",
        "--types", str(csv.parent / "types.json"), "--out", str(out), *more,
    )  # fmt: skip


@pytest.mark.long
def test_a_file_is_planned_changed_and_synthesized(run: Run, csv: Path, tmp_path: Path) -> None:
    code, shown, error = planned(run, csv)
    assert (code, error) == (0, "")
    assert "the plan, to keep; then: pyhybrid synthesize" in shown
    assert "1. voted: bernoulli given age, sex, visits, wage, income" in " ".join(shown.split())
    plan = tmp_path / "plan.json"
    given = json.loads(plan.read_text())
    for column in given["columns"]:  # by hand: both from noisy counts
        levels = column["type"]["levels"]
        column |= {"model": "perturbed_histogram", "options": {"levels": levels}, "predictors": []}
    plan.write_text(json.dumps(given))
    out = tmp_path / "out"
    code, shown, _ = run(
        "synthesize", str(csv), "--plan", str(plan), "--epsilon", "8", "--out", str(out)
    )
    assert code == 0
    made = pd.read_csv(next((out / "public").glob("synthetic*.csv")))
    own = pd.read_csv(csv)
    assert list(made.columns) == [name for name in own.columns if name != "name"]
    assert sorted(made["person"]) == list(range(1, 201)), "numbers in place of the id"
    assert set(made["voted"]) <= {"no", "yes"}
    pd.testing.assert_series_equal(made["wage"], own["wage"])
    statement = (out / "public" / "privacy_statement.md").read_text()
    assert "epsilon = 8" in statement
    assert "strict" in statement


@pytest.mark.parametrize(("more", "message"), [
    (("--sensitive", "voted, regoin"), "'regoin' is none (did you mean 'region'?)"),
    (("--keep", "voted"), "must not be sensitive and kept"),
    (("--rule", "wage <= incme"), "'incme' is none"),
    (("--rule", "wage > income"), "none meets it"), (("--split", "best"), "split must be one of"),
])  # fmt: skip
def test_bad_plans_are_one_line_and_nothing_is_written(
    refused: Any, csv: Path, more: tuple[str, ...], message: str
) -> None:
    assert message in planned(refused, csv, *more)


def test_a_plan_asks_for_decisions_and_names_columns_together(run: Run, tmp_path: Path) -> None:
    """Seen: a plan was made that synthesize refused, and columns were refused one by one."""
    table = survey_of(80, 1)[["name", "age", "wage"]].assign(year=2024, state="n")
    path = str(tmp_path / "survey.csv")
    table.to_csv(path, index=False)
    asked = ("plan", path, "--out", str(tmp_path / "plan.json"), "--sensitive")
    assert "'year', 'state' must vary: all" in run(*asked, "age,wage,year,state")[2]
    assert "--drop" in run(*asked, "age,wage")[2], "names of persons"
    code, shown, _ = run(*asked, "age,wage", "--drop", "name", "--keep", "year,state")
    assert code == 0
    assert "plan again with --types FILE, for a strict release; then: pyhybrid syn" in shown


def test_a_reference_gives_ranges_and_what_lies_beyond_is_counted_at_their_ends(
    run: Run, tmp_path: Path
) -> None:
    rng, paths = np.random.default_rng(5), [str(tmp_path / f"{each}.csv") for each in "ab"]
    for path, reach in zip(paths, (40, 90), strict=True):  # the records go further
        age, pay = rng.integers(18, reach, 120), rng.gamma(2, reach, 120).round(2)
        pd.DataFrame({"age": age, "pay": pay}).to_csv(path, index=False)
    given = ("--reference", paths[0], "--holds-no-released-record")
    plan, out = str(tmp_path / "plan.json"), tmp_path / "out"
    asked = ("synthesize", paths[1], "--plan", plan, "--mechanism", "marginals", "--epsilon", "4")
    assert run("plan", paths[1], "--sensitive", "age,pay", *given, "--out", plan)[0] == 0
    error = run(*asked, "--holds-no-released-record", "--out", str(out))[2]
    assert "column 'age', 'pay' must have a range for noisy marginals" in error
    assert "--types FILE" in error
    assert run(*asked, *given, "--out", str(out))[0] == 0
    assert pd.read_csv(out / "public" / "synthetic_1.csv")["age"].max() <= 40
    assert "in the first or last one: age, pay" in (out / "public" / "charge.json").read_text()


def released(run: Any, csv: Path, *more: str) -> Any:
    plan, out = csv.parent / "plan.json", csv.parent / "out"
    return run("synthesize", str(csv), "--plan", str(plan), "--out", str(out), *more)


@pytest.mark.parametrize(("more", "message"), [
    (("--epsilon", "1", "--formula", "voted ~ 1"), "leave out --formula, or --plan"),
    ((), "epsilon must be given to mechanism 'censored'"),
    (("--epsilon", "1", "--mechanism", "count"), "mechanism must be one of censored"),
    (("--epsilon", "1", "--mechanism", "scalar", "--mechanism", "scalar"), "one --mechanism"),
    (("--epsilon", "1", "--scale", "0.5", "--reweight", "--delta", "1e-7"),
        "leave out --scale, --reweight, or --plan"),
    (("--epsilon", "1", "--rows-per-unit", "2"), "is read by mechanism 'marginals' only"),
    (("--epsilon", "1", "--delta", "1e-7"), "delta is read by mechanism 'marginals' only"),
    (("--epsilon", "1", "--select", "all"), "select is read by mechanism 'marginals' only"),
    (("--epsilon", "1", "--mechanism", "marginals", "--select", "some"), "plan, all, private"),
    (("--epsilon", "1", "--mechanism", "marginals", "--delta", "0.5"), "must be below 1 / n"),
    (("--epsilon", "8", "--mechanism", "marginals", "--chains", "2"), "fits no model"),
    (("--epsilon", "1", "--mechanism", "marginals", "--reference", "survey.csv"),
        "a strict charge needs confirmation"),
    (("--epsilon", "1", "--mechanism", "marginals", "--reference", "survey.csv",
        "--holds-no-released-record"), "must be other records than those to be released"),
    (("--epsilon", "1", "--mechanism", "lipschitz"), "epsilon must not be given to mechanism"),
    (("--epsilon", "1", "--allow-unlike"), "--allow-unlike goes with --ledger"),
    (("--epsilon", "1", "--relation", "add"), "relation must be one of"),
])  # fmt: skip
def test_bad_releases_are_one_line_and_nothing_is_written(
    run: Run, refused: Any, csv: Path, more: tuple[str, ...], message: str
) -> None:
    assert planned(run, csv)[0] == 0
    assert message in released(refused, csv, *more)


def test_data_that_do_not_fit_the_plan_are_refused(run: Run, refused: Any, csv: Path) -> None:
    assert planned(run, csv)[0] == 0
    changed: dict[str, Any] = {"voted": "perhaps"}
    survey_of(200, 1).assign(**changed).to_csv(csv, index=False)
    assert "'voted' must vary" in released(refused, csv, "--epsilon", "1")
    other = survey_of(200, 1)
    other.loc[other.index[7], "voted"] = "perhaps"
    other.to_csv(csv, index=False)
    error = released(refused, csv, "--epsilon", "1")
    assert "'voted' must have declared levels only: row 7" in error
    assert "perhaps" not in error


_VALUES = {
    "--formula": "voted ~ 1", "--model": "poisson", "--calibration": "x", "--scale": "0.5",
    "--shift": "0.1", "--transform": "linear", "--threshold": "1", "--draw-quantile": "1",
    "--safety-factor": "1.01", "--accounting": "range", "--target-epsilon": "1",
    "--strict": None, "--local": None, "--program": "published",
    "--support": "visits=0..9", "--design": "w", "--reweight": None,
    "--k": "0.9", "--single-step": None, "--leave-one-out": "1", "--drop": "name",
    "--keep": "age", "--id": "person", "--types": "types.json",
}  # fmt: skip


def test_no_option_that_a_plan_does_not_take_is_ignored(run: Run, refused: Any, csv: Path) -> None:
    """Of all options of the command: a new one is taken, or has its row here."""
    command = typer.main.get_command(app).get_command(None, "synthesize")
    options = {own.opts[0] for own in command.params if own.opts[0].startswith("--")}
    taken = {f"--{name.replace('_', '-')}" for name in _TAKEN} | {"--format"}
    assert options - taken - {"--help"} == set(_VALUES)
    assert planned(run, csv)[0] == 0
    for option, value in _VALUES.items():
        more = (option,) if value is None else (option, value)
        error = released(refused, csv, "--epsilon", "1", *more)
        assert f"leave out {option}, or --plan" in error


@pytest.mark.parametrize(
    ("kind", "relation", "message"),
    [("strict", "replace", "must be for replace one record"), ("strict", "remove", "is left")],
)
def test_a_ledger_that_would_refuse_says_so_before_any_work(
    run: Run, refused: Any, csv: Path, kind: str, relation: str, message: str
) -> None:
    assert planned(run, csv)[0] == 0
    ph.Ledger(csv.parent / "ledger.json", budget=2, kind=kind, relation=relation)
    csv.unlink()  # the data are not even read
    more = ("--epsilon", "3", "--ledger", str(csv.parent / "ledger.json"))
    assert message in released(refused, csv, *more)


Change = Callable[[pd.DataFrame], pd.DataFrame]
DATA: dict[str, tuple[Change, str]] = {
    "a level not declared": (lambda t: t.assign(voted=t["voted"].where(t.index != 3, "maybe")),
                             "column 'voted' must"),
    "an all-missing column": (lambda t: t.assign(voted=None), "column 'voted' must have values"),
    "two ids per row": (lambda t: t.assign(person=t["person"].iloc[0]), "must name each row once"),
    "an unknown column": (lambda t: t.drop(columns="voted"), "'voted'"),
}  # fmt: skip
ENGINES = ("censored", "marginals")


@pytest.mark.parametrize("what", list(DATA))
def test_bad_data_are_refused_by_plan(refused: Any, csv: Path, what: str) -> None:
    change, words = DATA[what]
    change(pd.read_csv(csv)).to_csv(csv, index=False)
    error = planned(refused, csv)
    assert words in error
    assert "maybe" not in error


@pytest.mark.parametrize("mechanism", ENGINES)
def test_bad_data_are_refused_by_a_good_plan(
    run: Run, refused: Any, csv: Path, mechanism: str
) -> None:
    """A plan that was made of other data: this year's are read with it, and refused."""
    require_opendp()
    assert planned(run, csv)[0] == 0
    own = pd.read_csv(csv)
    for what, (change, words) in DATA.items():
        change(own).to_csv(csv, index=False)
        error = released(refused, csv, "--epsilon", "1", "--mechanism", mechanism)
        assert (words if what != "an unknown column" else "voted") in error
        assert "maybe" not in error


@pytest.mark.parametrize("mechanism", ENGINES)
def test_a_plan_changed_by_hand_is_refused(
    run: Run, refused: Any, csv: Path, mechanism: str
) -> None:
    """The true values of a sensitive column as a predictor, and predictors that are none."""
    assert planned(run, csv)[0] == 0
    plan = json.loads((csv.parent / "plan.json").read_text())
    for reads, words in ((["region"], "not synthesized before it"), (["agge"], "'agge'")):
        columns = [dict(each) for each in plan["columns"]]
        columns[0]["predictors"] = columns[0]["tables"] = reads
        (csv.parent / "plan.json").write_text(json.dumps({**plan, "columns": columns}))
        assert words in released(refused, csv, "--epsilon", "1", "--mechanism", mechanism)
