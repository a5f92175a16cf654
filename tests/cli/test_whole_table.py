"""`pyhybrid describe`, and a whole table by one command: types are drafted, confirmed and taken."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.models.columns.kinds import Real
from pyhybrid.tables import read_types
from pyhybrid.tables.domains import ranged
from pyhybrid.tables.read import read_file
from tests.conftest import Run
from tests.tables.conftest import survey_of


def confirm() -> None:
    """As its owner does who has looked at it."""
    DRAFT.write_text(json.dumps({**json.loads(DRAFT.read_text()), "confirmed": True}))


def again(error: str) -> list[str]:
    """The options that a refusal ends with."""
    return shlex.split(error.partition("run this again with ")[2])


OUT, DRAFT = Path("released"), Path("survey.types.json")
ASKED = ["synthesize", "survey.csv", "--epsilon", "40", "--out", "released"]


def write(path: Path, seed: int = 1) -> Path:
    survey_of(300, seed).drop(columns=["wage", "income"]).assign(const=1).to_csv(path, index=False)
    return path


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return write(tmp_path / "survey.csv")


def test_a_draft_of_types_is_confirmed_and_the_table_released(run: Run, csv: Path) -> None:
    """What is risky is left out of the draft; the command that is named runs as it stands."""
    code, shown, error = run(*ASKED)
    types = read_types(DRAFT)
    assert code == 2
    assert not OUT.exists()
    schema = json.loads((csv.parent / json.loads(DRAFT.read_text())["$schema"]).read_text())
    assert schema["additionalProperties"]["oneOf"]
    assert [shown, *types] == ["", "age", "sex", "voted", "region", "visits"]
    assert types["sex"]["levels"] == ["f", "m"]
    found = {(own["note"], own["confirmed"]) for own in types.values()}
    assert found == {("from the data: confirm or change", False)}
    assert DRAFT.stat().st_mode & 0o077 == 0, "of the confidential data: for the owner alone"
    command = [*ASKED, *again(error)]
    assert command[-2:] == ["--drop", "person,name,const"]

    types["visits"] |= {"lower": 0, "upper": 60, "note": "nobody has more", "confirmed": True}
    DRAFT.write_text(json.dumps(types))
    code, _, error = run(*command)
    assert (code, OUT.exists()) == (2, False)
    assert "those of 'age', 'sex', 'voted', 'region' are a draft" in error
    DRAFT.write_text(json.dumps({name: {**own, "confirmed": True} for name, own in types.items()}))
    code, shown, error = run(*command)
    assert code == 0, error
    said = "The owner states that the types of the columns are public"
    for page in ("privacy_statement.md", "charge.json", "../confidential/checklist.html"):
        assert said in (OUT / "public" / page).read_text()
    assert not [path for path in (OUT / "public").iterdir() if "fewer_than" in path.read_text()]
    made = pd.read_csv(next((OUT / "public").glob("synthetic*.csv")))
    assert list(made.columns) == list(types)
    charge = json.loads((OUT / "public" / "charge.json").read_text())
    assert (charge["kind"], charge["epsilon"], charge["delta"]) == ("strict", 40.0, 1e-6)


def test_text_among_numbers_and_many_dates_are_refused_and_years_have_both_ends(
    run: Run, csv: Path
) -> None:
    """Seen: levels of numbers took 16 minutes, dates were levels in no order, years began at 0."""
    table = pd.read_csv(csv, dtype=str)
    days = np.datetime64("2015-01-01") + np.arange(300) // 6
    k = np.arange(300)
    own = {"year": k % 27 + 1988, "day": days, "school": k % 15 + 0.5, "share": k % 16 / 4}
    own["until"] = np.datetime64("2014-03-01") + k // 2
    own["unclear"] = [f"{1 + i % 9:02d}/{1 + i // 9 % 9:02d}/2014" for i in k]
    table.loc[[4, 7, 9, 11], "visits"] = "secret"
    table.assign(**own).to_csv(csv)
    code, shown, error = run("describe", str(csv))
    assert code == 0
    assert "column 'visits': it holds numbers, but text in row 4, 7, 9 and 1 more" in error
    code, _, refused = run(*ASKED)
    assert (code, [*csv.parent.glob("*.types.json")]) == (2, [])
    assert "'unclear': it holds 81 dates whose format they do not tell: declare it" in refused
    assert "'visits': it holds numbers, but text in row 4, 7, 9 and 1 more" in refused
    assert "categorical" in run(*ASKED[:2], "--formula", "visits ~ 1", *ASKED[4:])[2]
    assert "secret" not in shown + error + refused
    run(*ASKED, "--drop", "unclear,visits")
    types = read_types(DRAFT)
    assert [types["year"][end] for end in ("lower", "upper")] == [1988, 2014]
    assert types["day"]["kind"] == types["school"]["kind"] == "Ordered"
    assert types["school"]["levels"][:2] == [0.5, 1.5]
    assert "levels" not in types["share"], "18 records a value are too few"
    assert "no other day can come out" in types["day"]["note"]
    ends = {"lower": "2014-03-01", "upper": "2014-07-31", "format": "%Y-%m-%d"}
    assert types["until"].items() >= {"kind": "Dates", **ends}.items()


@pytest.mark.filterwarnings("ignore:.*records are too few")
def test_the_end_names_what_is_poor_and_what_stays_as_it_is(run: Run, csv: Path) -> None:
    """Columns come back as they stand in the file, but for those whose values were replaced."""
    table = pd.read_csv(csv)
    table.assign(const=[*range(299), 1e308], code="007").to_csv(csv, index=False)  # seen: refused
    words = "synthesize survey.csv --epsilon .001 --out released --keep name,code --id person"
    run(*(asked := [*words.split(), "--drop", "const"]))
    confirm()
    code, shown, error = run(*asked, "--types", str(DRAFT))
    assert code == 0, error
    assert "2 other columns are published unchanged: name, code" in shown
    assert re.search(r"\w+: [\w -]+[^\n]*POOR", shown)
    made = pd.read_csv(OUT / "public" / "synthetic_1.csv", dtype=str)
    assert set(made["code"]) == {"007"}
    assert sorted(made["person"].astype(int)) == list(range(1, 301))
    assert not made["person"].equals(table["person"])


def test_a_draft_is_not_written_over_and_an_empty_one_not_at_all(run: Run, csv: Path) -> None:
    """Seen: of one row a draft without a column, and options that drop all of them."""
    DRAFT.write_text("mine")
    assert "survey.types.json; --overwrite writes a new one" in run(*ASKED)[2]
    assert DRAFT.read_text() == "mine"
    run(*ASKED, "--overwrite")
    assert DRAFT.read_text() != "mine"
    DRAFT.unlink()
    csv.write_text("age,owns\n7,no\n")
    assert "no column is left that can be synthesized: 'age': constant" in run(*ASKED)[2]
    assert not DRAFT.exists()


def test_a_draft_counts_the_records_of_levels_codes_and_ends(run: Run, tmp_path: Path) -> None:
    """Seen: a diagnosis of one person was drafted; a column may have the name of a word."""
    wage, icd = [-9] * 12 + [*range(1000, 1580)] + [14_321] * 8, ["I10"] * 599 + ["Q87"]
    table = pd.DataFrame({"wage": wage, "icd": icd, "confirmed": ["n", "y"] * 300})
    table["dx"] = ["250.00", "401.90"] * 300
    table.loc[:3, "confirmed"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    run("synthesize", str(tmp_path / "t.csv"), "--epsilon", "4", "--out", str(tmp_path / "o"))
    draft = json.loads((tmp_path / "t.types.json").read_text())
    assert draft["icd"]["records"] == {"I10": 599, "Q87": 1}
    assert draft["icd"]["fewer_than_10"] == ["Q87"]
    assert draft["dx"]["records"] == dict.fromkeys(draft["dx"]["levels"], 300)
    assert draft["dx"]["levels"] == ["250.00", "401.90"], "seen: 250.0 and 401.9"
    assert draft["wage"]["records"] == {"-9": 12, "upper": 8}, "no end at 0"
    assert draft["confirmed"]["fewer_than_10"] == ["missing"]
    assert not any(own["confirmed"] for name, own in draft.items() if isinstance(own, dict))


@pytest.mark.parametrize(("values", "ends"), [
    ([0.31, 0.9994], (0.3, 1)), ([12.4, 99.2], (12, 100)), ([-0.97, 0.96], (-1, 1)),
    ([3.0, 512.3], (0, 520)), ([-512.3, -3.0], (-520, 0)), ([0.4, 98.7], (0, 100)),
])  # fmt: skip
def test_drafted_ends_are_rounded_outward_within_natural_limits(
    values: list[float], ends: tuple[float, float]
) -> None:
    """They cross neither 0 nor 1 or 100."""
    kind: Any = ranged(Real(decimals=4), pd.Series(values))
    assert (kind.lower, kind.upper) == ends


@pytest.mark.parametrize("changes", [{}, {"voted": "yes", "sex": "f"}])
def test_a_reference_stands_for_types(run: Run, csv: Path, changes: dict[str, str]) -> None:
    """Seen: without the last record of a value that the reference has, a column was refused."""
    pd.read_csv(csv).assign(**changes).to_csv(csv, index=False)
    earlier = str(write(csv.with_name("earlier.csv"), 2))
    drop = ["--drop", "person,name", "--drop", "const"]
    code, _, error = run(*ASKED, "--reference", earlier, "--holds-no-released-record", *drop)
    assert code == 0, error
    assert json.loads((OUT / "public" / "charge.json").read_text())["kind"] == "strict"


_TYPES = "--types t.json --delta 0"


@pytest.mark.parametrize(("levels", "last", "route"), [
    (["nan", "1", "2", "x"], "x", _TYPES), (["nan", "0", "1"], "True", _TYPES),
    (["01", "1", "x"], "x", _TYPES),
    (["nan", "1", "2", "x"], "x", "--reference r.csv --holds-no-released-record --delta 0"),
])  # fmt: skip
def test_one_cell_changes_how_no_other_is_read(
    run: Run, tmp_path: Path, levels: list[str], last: str, route: str
) -> None:
    """Seen: a column is one of numbers if all its cells are, and "nan" is missing then. One record
    moved 990 of 2,000, or decided between a release and a refusal. The control: undeclared, they
    are read so."""
    sex, found, read = np.random.default_rng(1).choice(["f", "m"], 600), [], []
    types = {"code": {"levels": levels, "missing": True}, "sex": {"levels": ["f", "m"]}}
    types = {name: {"kind": "Nominal", **of} for name, of in types.items()}
    (tmp_path / "t.json").write_text(json.dumps(types))
    other = pd.DataFrame({"code": (levels * 600)[:600], "sex": sex[::-1]})
    other.to_csv(tmp_path / "r.csv", index=False)
    for end in (last, levels[1]):
        code = [*levels[:1] * 300, *levels[1:2] * 200, *levels[-2:-1] * 99, end]
        pd.DataFrame({"code": code, "sex": sex}).to_csv(tmp_path / "a.csv", index=False)
        words = "synthesize a.csv --epsilon 5e3 --out o --overwrite " + route
        code, _, error = run(*words.split())
        assert code == 0, error
        assert '"strict"' in (tmp_path / "o/public/charge.json").read_text()
        made = pd.read_csv(tmp_path / "o/public/synthetic_1.csv", keep_default_na=False, dtype=str)
        found.append(made["code"].value_counts())
        read.append(read_file(tmp_path / "a.csv").frame["code"].isna().sum())
    assert found[0].sub(found[1], fill_value=0).abs().sum() < 200, "of 600, as they were drawn"
    assert (read[0] != read[1]) == (levels[0] == "nan")


def test_nothing_is_said_of_a_cell_of_a_declared_column(run: Run, tmp_path: Path) -> None:
    """The control: without a declaration the owner is told of its row."""
    codes, kind = [str(k % 3) for k in range(300)], {"kind": "Nominal", "levels": [*"012x"]}
    (tmp_path / "t.json").write_text(json.dumps({"code": kind}))
    command = ["synthesize", "a.csv", "--epsilon", "50", "--out", "o", "--overwrite"]
    said = []
    for cell in ("2", "x"):
        pd.DataFrame({"code": [*codes, cell]}).to_csv(tmp_path / "a.csv", index=False)
        code, _, error = run(*command, "--types", "t.json")
        assert code == 0, error
        said.append([line for line in error.splitlines() if "row" in line])
    assert said == [[], []]
    assert "text in row 300" in run("synthesize", "a.csv", "--epsilon", "50", "--out", "p")[2]


@pytest.mark.parametrize(("more", "said"), [
    ([], "--epsilon must be given for a whole table"),
    (["--epsilon", "4", "--fit", "seed=1"], "leave out --fit"),
    (["--epsilon", "4", "--drop", "nope"], "drop must name columns of the data: 'nope'"),
    (["--epsilon", "4", "--id", "person,name"], "--id must name one column"),
    (["--epsilon", "4", "--types", "none.json"], "types must be in a readable file"),
    (["--epsilon", "-1"], "--epsilon must be above 0"),
    (["--epsilon", "4", "--drop", "person,name,const", "--reference", "empty.csv",
     "--holds-no-released-record"], "a strict charge needs types of columns"),
    (["--epsilon", "4", "--types", "own.json"], "Leave them out (drop)"),
    (["--epsilon", "4", "--types", "empty.json"], "the type of a column or more: found none"),
    (["--epsilon", "4", "--unit", "sex"], "unit and rows_per_unit must be given together"),
])  # fmt: skip
def test_what_is_wrong_is_one_line(refused: Run, csv: Path, more: list[str], said: str) -> None:
    (csv.parent / "own.json").write_text('{"sex": {"kind": "Nominal", "levels": ["f", "m"]}}')
    (csv.parent / "empty.json").write_text("{}")
    (csv.parent / "empty.csv").write_text("sex\nf\nm\n")
    assert said in refused("synthesize", str(csv), "--out", "released", *more)


@pytest.mark.filterwarnings("ignore:.*records are too few")
def test_repeated_persons_are_noticed_and_protected_together(run: Run, csv: Path) -> None:
    """Seen: a panel was released at an epsilon of single rows without a word."""
    table = pd.read_csv(csv)[["sex", "visits"]].assign(pid=np.arange(300) // 3)
    table["again"], table["visits"] = table["sex"], table["visits"].where(table.index != 5)
    table.to_csv(csv, index=False)
    assert "it may identify" in run("describe", str(csv))[1]
    assert "epsilon protects one row, not all rows of a person. --unit pid" in run(*ASKED)[2]
    *_, error = run(*ASKED, "--unit", "pid:rows=3", "--overwrite")
    command = [*ASKED, "--unit", "pid:rows=3", *again(error)]
    confirm()
    DRAFT.write_text(DRAFT.read_text().replace('"missing": true', '"missing": false'))
    error = run(*command)[2]
    assert "declare missing=True in its domain or type" in error
    DRAFT.write_text(DRAFT.read_text().replace('"missing": false', '"missing": true'))
    book = ph.Ledger(csv.parent / "ledger.jsonl", budget=50, kind="strict", relation="remove")
    code, shown, error = run(*command, "--ledger", str(book.path))
    assert "This is strict" in shown
    assert "posterior draws" not in shown, "nothing was fitted"
    assert code == 0, error
    assert "all records of one pid" in (OUT / "public" / "privacy_statement.md").read_text()
    assert "pid" not in pd.read_csv(OUT / "public" / "synthetic_1.csv")
    narrower = ["pid:rows=2" if word == "pid:rows=3" else word for word in command]
    assert "more of its 'pid'" in run(*narrower, "--out", "o")[2]


def test_a_table_is_described(run: Run, csv: Path) -> None:
    code, shown, error = run("describe", str(csv))
    assert (code, error) == (0, "")
    lines = {line.split()[0]: line for line in shown.splitlines() if line.strip()}
    assert re.search("Nominal .*f, m", lines["sex"])
    assert "identifier" in shown
    assert "constant" in lines["const"]
    table = pd.DataFrame({"row": np.arange(100) + 7, "code": [f"x{k}" for k in range(100)]})
    table = table.assign(wage=np.arange(100) ** 3, note=["a, " + "long " * 99, "b"] * 50)
    pd.concat([table, table[:3]]).to_csv(csv, index=False)
    _, shown, _ = run("describe", str(csv))
    assert shown.count("long") < 10, "seen: pages of free text"
    assert shown.count("it looks like an") == 2, "nearly in sequence, and texts; no amounts"
    assert run("describe", str(csv.parent / "none.csv"))[0] == 2


def test_describe_says_what_is_odd_and_what_fields_mean(
    run: Run, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: a total below the records was a level, and of a person's file numbers, of levels with
    few records, and of levels that look alike nothing was said."""
    k = np.arange(300)
    table = pd.DataFrame({
        "region": np.array([*"nsew"])[k % 4], "n": k % 37, "file": [f"AZ-{i % 280:04d}" for i in k],
        "kw": [f"{2000 + i % 41}-W05" for i in k], "yes": np.where(k % 3, "yes", "yes "),
        "box": np.where(k % 2, "x", None), "sick, code": "c", "zip": k % 40,
    })  # fmt: skip
    total = pd.DataFrame({"region": ["n total", '{"ImportId":"Q1"}', "Total"], "n": [9, 9, 5e3]})
    pd.concat([table, total.assign(**{"sick, code": "c"})]).to_csv(csv, index=False)
    monkeypatch.setenv("COLUMNS", "300")
    _, shown, _ = run("describe", str(csv))
    for said in (
        "The last rows seem to be a total", "it may be an identifier: few rows share most",
        "41 of 41 levels have fewer than 10 records", "some levels differ by blanks or capitals",
        "some rows seem to be totals of others, the first rows seem to be questions and labels",
        "Nominal: Levels in no order. ", "decimals: Of released numbers", "codes by its name: as",
    ):  # fmt: skip
        assert said in shown
    _, _, error = run(*ASKED)
    assert "the last rows seem to be a total" in error
    assert again(error)[-4:] == ["--drop", "file", "--drop", "sick, code"]
    assert json.loads(csv.with_suffix(".types.json").read_text())["box"]["levels"] == ["x"]


def test_a_column_may_have_the_name_of_a_schema(run: Run, csv: Path) -> None:
    pd.DataFrame({"$schema": np.arange(300) % 90, "sex": ["f", "m"] * 150}).to_csv(csv, index=False)
    command = [*ASKED, *again(run(*ASKED)[2])]
    confirm()
    code, _, error = run(*command)
    assert code == 0, error


def test_describe_looks_at_folders_and_databases(run: Run, csv: Path) -> None:
    pytest.importorskip("ibis")
    Path("parts").mkdir()
    table = pd.read_csv(csv).assign(zip=[f"{k % 40:05d}" for k in range(300)])
    for part in (0, 1):
        table[part::2].to_csv(f"parts/{part}.csv", index=False)
    code, shown, error = run("describe", "parts")
    assert (code, error) == (0, "")
    for said in ("300 rows, 300 of them looked at", "age +Counts", "00001"):
        assert re.search(said, shown)


@pytest.mark.filterwarnings("ignore:.*records are too few")
def test_cells_that_spreadsheets_compute_are_named(run: Run, csv: Path) -> None:
    levels = {"=group": ["=1+1", "b"], "change": [-1.5, 2.5]}
    table = pd.DataFrame({name: two * 150 for name, two in levels.items()})
    table.assign(twice=["x", *["5"] * 299]).to_csv(csv, index=False)  # "x" refuses nothing
    types: dict[str, Any] = {n: {"kind": "Nominal", "levels": two} for n, two in levels.items()}
    types["after"] = ["twice = change + change"]
    (csv.parent / "t.json").write_text(json.dumps(types))
    asked = [*ASKED, "--types", "t.json"]
    assert "=group: names or cells begin with = + - or @" in run(*asked)[2]
    run(*asked, "--read", "formulas=escaped", "--overwrite")
    written = pd.read_csv(OUT / "public" / "synthetic_1.csv")
    assert set(written["'=group"]) <= {"'=1+1", "b"}
    assert [*ph.Release.load(OUT).synthetic[0]] == ["=group", "change", "twice"]
    assert set(written["change"]) <= {-1.5, 2.5}
