"""Bad tables, rules and plans by command: one line each, nothing written, for models and tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.conftest import require_opendp
from tests.tables.conftest import TYPES, survey_of

Run = Callable[..., tuple[int, str, str]]
Change = Callable[[pd.DataFrame], pd.DataFrame]
DATA: dict[str, tuple[Change, str]] = {
    "a level not declared": (lambda t: t.assign(voted=t["voted"].where(t.index != 3, "maybe")),
                             "column 'voted' must"),
    "an all-missing column": (lambda t: t.assign(voted=None), "column 'voted' must have values"),
    "two ids per row": (lambda t: t.assign(person=t["person"].iloc[0]), "must name each row once"),
    "an unknown column": (lambda t: t.drop(columns="voted"), "'voted'"),
}  # fmt: skip
ENGINES = ("censored", "marginals")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    survey_of(200, 1).to_csv(tmp_path / "survey.csv", index=False)
    types = {name: TYPES[name].as_dict() for name in ("voted", "region")}
    (tmp_path / "types.json").write_text(json.dumps(types))
    return tmp_path


def planned(run: Any, folder: Path) -> Any:
    return run(
        "plan", f"{folder}/survey.csv", "--sensitive", "voted, region", "--id", "person", "--drop",
        "name", "--types", f"{folder}/types.json", "--out", f"{folder}/plan.json",
    )  # fmt: skip


def synthesized(run: Any, folder: Path, mechanism: str) -> Any:
    return run(
        "synthesize", f"{folder}/survey.csv", "--plan", f"{folder}/plan.json", "--epsilon", "1",
        "--mechanism", mechanism, "--out", f"{folder}/out",
    )  # fmt: skip


@pytest.mark.parametrize("what", list(DATA))
def test_bad_data_are_refused_by_plan(refused: Any, files: Path, what: str) -> None:
    change, words = DATA[what]
    change(pd.read_csv(files / "survey.csv")).to_csv(files / "survey.csv", index=False)
    error = planned(refused, files)
    assert words in error
    assert "maybe" not in error


@pytest.mark.parametrize("mechanism", ENGINES)
def test_bad_data_are_refused_by_a_good_plan(
    run: Run, refused: Any, files: Path, mechanism: str
) -> None:
    """A plan that was made of other data: this year's are read with it, and refused."""
    require_opendp()
    assert planned(run, files)[0] == 0
    own = pd.read_csv(files / "survey.csv")
    for what, (change, words) in DATA.items():
        change(own).to_csv(files / "survey.csv", index=False)
        error = synthesized(refused, files, mechanism)
        assert (words if what != "an unknown column" else "voted") in error
        assert "maybe" not in error


@pytest.mark.parametrize("mechanism", ENGINES)
def test_a_plan_changed_by_hand_is_refused(
    run: Run, refused: Any, files: Path, mechanism: str
) -> None:
    """The true values of a sensitive column as a predictor, and predictors that are none."""
    assert planned(run, files)[0] == 0
    plan = json.loads((files / "plan.json").read_text())
    for reads, words in ((["region"], "not synthesized before it"), (["agge"], "'agge'")):
        columns = [dict(each) for each in plan["columns"]]
        columns[0]["predictors"] = columns[0]["tables"] = reads
        (files / "plan.json").write_text(json.dumps({**plan, "columns": columns}))
        assert words in synthesized(refused, files, mechanism)
