"""Households, totals and rows from the command line: the page that shows them, and bad input."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.released import check_afterwards, predictors_of, read_afterwards
from pyhybrid.releases.column_decisions import Decisions
from tests.conftest import Run
from tests.refusals import refuses
from tests.tables.conftest import TYPES, survey_of

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "howto" / "households.md"


def persons(tmp_path: Path) -> pd.DataFrame:
    """The page's survey, written where it says."""
    made: dict[str, Any] = {}
    snippet = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(snippet.group(1), made)
    table: pd.DataFrame = made["persons"]
    assert (tmp_path / "persons.csv").exists()
    return table


def commands() -> list[list[str]]:
    """The page's commands, without `pyhybrid`."""
    shown = re.search(r"```\n(pyhybrid ledger.*?)```", PAGE.read_text(), re.DOTALL)
    return [shlex.split(line)[1:] for line in shown.group(1).replace("\\\n", " ").splitlines()]


@pytest.mark.long
def test_the_page_releases_households_end_to_end(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    real = persons(tmp_path)
    create, synthesize = commands()
    assert run(*create)[0] == 0
    ends = ("--rows", "500", "--public", "age,region", "--engine", "embedded")
    code, shown, error = run(*synthesize, *ends)
    assert (code, [line for line in error.splitlines() if "pyhybrid:" in line]) == (0, [])
    assert "remove all records of one household" in " ".join(shown.split())
    release = ph.Release.load(tmp_path / "out")
    made = pd.read_csv(tmp_path / "out" / "public" / "synthetic_1.csv")
    assert list(made.columns) == [name for name in real.columns if name != "w"]
    of = made.groupby("household")
    assert ((made["relation"] == "head").groupby(made["household"]).sum() == 1).all()
    assert (of["tenure"].nunique() == 1).all()
    assert (of["wage"].sum() == of["income"].first()).all()
    assert dict(made.groupby("region")["wage"].sum()) == {"north": 200000, "south": 190000}
    assert 500 <= len(made) < 504
    assert set(of.size()) <= set(real.groupby("household").size())
    assert release.charge.unit == "household"
    assert ph.Ledger("budget.jsonl").spent == pytest.approx(release.charge.epsilon)
    statement = (tmp_path / "out" / "public" / "privacy_statement.md").read_text()
    for said in (
        "one value of tenure; exactly one row has relation = head (one with age >= 16",
        "by region (north: 200000; south: 190000)",
        "Rows of whole units (household",
    ):
        assert said in statement


def test_a_plan_takes_them(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    survey_of(80, 1)[["person", "sex", "voted", "visits"]].to_csv("survey.csv", index=False)
    types = {name: TYPES[name].as_dict() for name in ("voted", "visits")}
    Path("types.json").write_text(json.dumps(types))
    code, _, error = run("plan", "survey.csv", "--sensitive", "voted,visits", "--id", "person",
                         "--types", "types.json", "--out", "plan.json")  # fmt: skip
    assert (code, error) == (0, "")
    given = ("synthesize", "survey.csv", "--plan", "plan.json", "--mechanism", "marginals",
             "--epsilon", "6", "--out", "out", "--total", "visits:by=sex,f=150,m=100")  # fmt: skip
    code, _, error = run(*given)
    assert (code, error) == (0, "")
    made = pd.read_csv("out/public/synthetic_1.csv")
    assert dict(made.groupby("sex")["visits"].sum()) == {"f": 150, "m": 100}
    said = "visits was scaled to public totals by sex (f: 150; m: 100)"
    assert said in Path("out/public/privacy_statement.md").read_text()
    code, _, error = run(*given, "--rows", "90", "--overwrite")
    assert (code, error.count("\n")) == (2, 1)
    assert "--rows needs --public" in error


TABLE = pd.DataFrame(
    {"household": [1, 1, 2], "region": ["n", "n", "s"], "age": [40, 8, 50], "y": [1, 2, 3],
     "head": [1, 0, 1], "w": [2.0, 2.0, 3.0]}
)  # fmt: skip


@pytest.mark.parametrize(("given", "message"), [
    ({"households": "one=head:1"}, "--households must name unit=COLUMN, or --unit"),
    ({"households": "unit=household,oen=head:1"}, "found 'oen' .did you mean 'one'"),
    ({"households": "unit=household,one=head"}, "one must be COLUMN:VALUE"),
    ({"households": "unit=house,one=head:1"}, "'house' must be a column of the data"),
    ({"households": "unit=household,one=age:1"}, "changed afterwards: 'age' is not"),
    ({"households": "unit=household,one=head:1,eligible=ages > 15"}, "'ages' is none"),
    ({"totals": ["y"]}, "--total must be COLUMN:total=NUMBER or"),
    ({"totals": ["y:total=5,by=region"]}, "--total must be COLUMN:total=NUMBER or"),
    ({"totals": ["y:by=regions,n=5"]}, "'regions' must be a column of the data"),
    ({"totals": ["age:total=5"]}, "changed afterwards: 'age' is not"),
    ({"totals": ["y:by=region,n=5"], "rows": 9, "public": ["age"]}, "needs --public region"),
    ({"totals": ["y:total=5,weights=w"]}, "'w' must be published as it is"),
    ({"rows": 1}, "--rows must be"), ({"rows": 9}, "needs --public age"),
    ({"public": ["age"]}, "--public goes with --rows"),
])  # fmt: skip
def test_bad_options_are_one_line_before_any_fit(given: dict[str, Any], message: str) -> None:
    full = {"households": None, "totals": None, "rows": None, "public": None, **given}
    steps = [ph.Unweighted(ph.Poisson("y ~ age")), ph.Unweighted(ph.Bernoulli("head ~ 1"))]
    mechanism = ph.SequentialSynthesis(steps)
    read = predictors_of(mechanism, TABLE)
    assert read == ["age"]

    def checked() -> None:
        asked = read_afterwards(**full, unit=None)
        check_afterwards(asked, TABLE, mechanism.synthesizes, Decisions.of(["w"]), read)

    refuses(message, checked, hidden="\n")


@pytest.mark.parametrize(("survey", "message"), [
    ("strata=region", "--survey must name weights=COLUMN"),
    ("weights=w,unit=household,largest=2", "largest of a survey must come with population"),
])  # fmt: skip
def test_bad_designs_are_one_line(survey: str, message: str, refused: Any) -> None:
    words = ("--formula", "y ~ 1", "--survey", survey, "--out", "out")
    assert message in refused("synthesize", "t.csv", *words)
