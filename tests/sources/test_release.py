"""A release in parts: whole or not at all, charged once, gone on with after a kill."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import pytest

from pyhybrid.cli.ledger import open_ledger
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.mechanisms.marginals import log_linear
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.sources import compare_numbers, count_distances, open_source, parts, synthesize_source
from pyhybrid.sources.release import kinds_of, mechanism_of
from pyhybrid.sources.source import name_of
from tests.conftest import command, require_opendp
from tests.refusals import fails, refuses
from tests.sources.test_counting import parquet

require_opendp()
TYPES: dict[str, Any] = {
    "age": {"kind": "Counts", "lower": 0, "upper": 99},
    "region": {"kind": "Nominal", "levels": ["east", "north", "west"], "missing": True},
    "income": {"kind": "SemiContinuous", "lower": 0, "upper": 9000, "unit": 800, "decimals": 2},
}
N = 2500


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Parquet files of a survey; fits look at fewer rows than they would."""
    monkeypatch.setattr(log_linear, "SIMULATED", 2000)
    return parquet(survey(), tmp_path / "survey")


def survey() -> pd.DataFrame:
    rng = np.random.default_rng()
    region = rng.choice(["north", "west", "east", None], N, p=[0.6, 0.2, 0.1, 0.1])
    age = np.clip(rng.normal(np.where(region == "north", 60, 30), 10), 0, 99).astype(int)
    income = np.round(np.where(age < 25, 0, rng.gamma(4, 300, N)), 2)
    person = np.arange(N) // 2
    return pd.DataFrame({"person": person, "age": age, "region": region, "income": income})


def released(folder: str, out: Path, **changes: Any) -> Any:
    options = {"types": TYPES, "epsilon": 8.0, "drop": ["person"], "rows_per_part": 1000, **changes}
    return synthesize_source(folder, out=out, **options)


def written(out: Path) -> pd.DataFrame:
    made: pd.DataFrame = pd.read_parquet(out / "public" / "synthetic_1")
    return made


@pytest.mark.usefixtures("folder")
def test_a_release_is_the_table_again(tmp_path: Path) -> None:
    df = survey()
    folder = parquet(df, tmp_path / "own")
    release = released(folder, tmp_path / "out", id="person", drop=[])
    made = written(tmp_path / "out")
    assert (release.charge.epsilon, release.charge.kind) == (8, "strict")
    assert sorted(path.name for path in (tmp_path / "out/public/synthetic_1").iterdir()) == [
        "part_00001.parquet", "part_00002.parquet", "part_00003.parquet"
    ]  # fmt: skip
    assert list(made) == list(df)
    assert made.person.tolist() == list(range(1, N + 1))
    assert len(release.sample(1500)) == 1500
    for name in ("age", "income"):
        assert abs(made[name].mean() / df[name].mean() - 1) < 0.15
    north = made[made.region == "north"].age.mean() - made[made.region == "west"].age.mean()
    assert north > 15
    assert made.region.isna().mean() < 0.2
    told = count_distances(folder, tmp_path / "out/public/synthetic_1", types=TYPES)
    assert len(told) == 6
    assert told.distance.iloc[0] < 0.2
    assert count_distances(folder, folder, types=TYPES).distance.max() == 0
    numbers = compare_numbers(folder, tmp_path / "out/public/synthetic_1", types=TYPES)
    own, released_ones = (
        numbers.set_index(["column", "quantity"])[s] for s in ("real", "synthetic")
    )
    for name in ("age", "income"):
        assert own[name, "mean"] == pytest.approx(df[name].mean())
        assert released_ones[name, "mean"] == pytest.approx(made[name].mean())
    assert own["age", "median"] == df.age.quantile(0.5, interpolation="lower")
    assert own["age", "90 %"] == df.age.quantile(0.9, interpolation="lower")


@pytest.mark.parametrize(("file_format", "m"), [("parquet", 1), ("csv", 2)])
def test_what_is_public_and_what_is_not(
    file_format: str, m: int, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """And the report, which says that it is of a sample."""
    out, page = tmp_path / "out", tmp_path / "out/confidential/report.html"
    release = released(folder, out, file_format=file_format, n_synthetic=m)
    statement = (out / "public/privacy_statement.md").read_text()
    assert "Counted where the records are, by DuckDB" in statement
    assert f"of {N} records were replaced" in statement
    run = json.loads((out / "confidential/run.json").read_text())
    public = "".join(p.read_text() for p in out.glob("public/*.*"))
    assert run["seed"] not in public
    assert run["data"]["columns"]["age"] not in public
    assert (out / "confidential").stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in out.glob("confidential/*")} == {0o600}
    assert {p.stat().st_mode & 0o777 for p in out.glob("public/synthetic_1/*")} == {0o644}
    assert str(release.entropy) not in repr(release) + repr(release.record)
    described = json.loads((out / "public/metadata.json").read_text())["fileDscr"]
    assert [own["caseQnty"] for own in described] == [1000, 1000, 500] * m
    refuses("holds a release in parts, which is read as a table", Release.load, out)
    assert parts.ReleaseInParts.load(out).content_digest() == release.content_digest()
    monkeypatch.setattr("pyhybrid.sources.rows._SAMPLE", 300)
    if m > 1:
        one, two = (pd.read_csv(out / f"public/synthetic_{k}/part_00001.csv") for k in (1, 2))
        assert not one.equals(two)
    of_none = ["report", str(out), "--data", f"{folder}s"]
    assert (command("open", str(out)), command(*of_none)) == (2, 2)
    (tmp_path / "types.json").write_text(json.dumps(TYPES))
    assert command("utility", folder, str(out), "--types", str(tmp_path / "types.json")) == 0
    assert f"pyhybrid report {out} --data TABLE makes one" in capsys.readouterr().err
    assert command("report", str(out), "--data", folder) == 0
    text = page.read_text()
    assert re.search(r"survey: \d\d\d records, 3 columns · a sample of 2,500 records", text)
    assert f"of {N} records were replaced" in text
    assert "true match rate" not in text.lower(), "rows are in no common order"
    other = parquet(survey().head(N - 1), tmp_path / "other")
    assert command("report", str(out), "--data", other, "--overwrite") == 2
    assert "the 2,500 records of the release: found 2,499" in capsys.readouterr().err


@pytest.mark.long
def test_a_killed_run_goes_on_without_a_second_charge(folder: str, tmp_path: Path) -> None:
    """SIGKILL after the first parts: they stay, the others come as before, with one entry."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, time\nfrom pyhybrid.releases.ledger import Ledger\n"
        "from pyhybrid.sources import parts, synthesize_source\n"
        "draw = parts._draw\n"
        "def slowly(part):\n    draw(part)\n    time.sleep(float(sys.argv[1]))\n"
        "parts._draw = slowly\n"
        "from tests.sources.test_release import TYPES\n"
        f"synthesize_source({folder!r}, types=TYPES, epsilon=8.0, drop=['person'], out='out',\n"
        "  rows_per_part=100, ledger=Ledger('ledger.jsonl', budget=9, kind='strict',\n"
        "  relation='remove'))\n"
    )
    aside = tmp_path / ".out.parts/public/synthetic_1"
    aside.mkdir(parents=True)
    (aside / "part_00025.parquet").write_text("of an earlier release")
    running = subprocess.Popen(
        [sys.executable, str(script), "0.2"], cwd=tmp_path, start_new_session=True
    )
    while len(list(aside.glob("*.parquet"))) < 3:
        assert running.poll() is None
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in aside.glob("*.parquet")}
    assert not (tmp_path / "out").exists()
    whole = parts._drawn_in(tmp_path / ".out.parts")
    refuses("begun with other data or settings", released, folder, tmp_path / "out")
    model = tmp_path / ".out.parts/confidential/model.json"
    content = model.read_text()
    model.write_text(content.replace('"epsilon": 8.0', '"epsilon": 0.8'))
    refuses("whole and as saved: a file was changed", released, folder, tmp_path / "out")
    model.write_text(content)
    (aside / ".part_00009.parquet.x.tmp").write_text("torn by the kill")
    asked = {"ledger": tmp_path / "ledger.jsonl", "allow_unlike": False, "out": tmp_path / "out"}
    book = open_ledger(asked, "marginals", "remove", None, 8.0)
    assert book is not None
    assert book.left == 1, "what goes on needs no second 8"
    subprocess.run([sys.executable, str(script), "0"], cwd=tmp_path, check=True)
    after = tmp_path / "out/public/synthetic_1"
    for name, (at, content) in before.items():
        assert (after / name).stat().st_mtime_ns == at
        assert (after / name).read_bytes() == content
    assert len(book.entries) == 1
    assert {path.name[:5] for path in after.iterdir()} == {"part_"}
    assert not (tmp_path / ".out.parts").exists()
    last = pd.read_parquet(after / "part_00025.parquet")
    pd.testing.assert_frame_equal(last, whole.rows(1, 25))


@pytest.mark.parametrize(
    "taken", [lambda own: own, lambda own: ibis.memtable(own.to_arrow_table())]
)
def test_a_run_goes_on_with_the_same_query_alone(taken: Any) -> None:
    asked = [taken(duckdb.sql(f"SELECT {value} AS y")) for value in (1, 2)]
    assert name_of(asked[0]) == name_of(asked[0]) != name_of(asked[1])


def test_nothing_is_left_or_charged_of_what_is_refused(folder: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", budget=4, kind="strict", relation="remove")
    fails(BudgetExceeded, "", released, folder, tmp_path / "out", ledger=ledger)
    types = {**TYPES, "age": {"kind": "Counts", "lower": 0, "upper": 20}}
    with pytest.raises(InvalidInput, match="'age' must lie in its domain"):
        released(folder, tmp_path / "out", ledger=ledger, types=types, epsilon=1.0)
    assert sorted(os.listdir(tmp_path)) == ["ledger.jsonl", "survey"]
    assert not ledger.entries
    released(folder, tmp_path / "out", ledger=ledger, epsilon=2.0)
    assert ledger.left == 2
    more = parquet(pd.concat([survey(), survey()]), tmp_path / "other")
    with pytest.raises(InvalidInput, match="must be of the data of its first release"):
        released(more, tmp_path / "out2", ledger=ledger, epsilon=1.0)


def test_a_connection_that_breaks_leaves_nothing(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", budget=4, kind="strict", relation="remove")
    source = open_source(folder)
    answer, asked = source.answer, []

    def breaking(sql: str) -> Any:
        asked.append(sql)
        if len(asked) == 2:
            source.close()  # what is asked of a closed connection is refused by DuckDB
        return answer(sql)

    monkeypatch.setattr(source, "answer", breaking)
    with pytest.raises(InvalidInput, match=r"must be readable: ConnectionException$"):
        released(source, tmp_path / "out", ledger=ledger, epsilon=1.0)
    assert len(asked) == 2
    assert not ledger.entries
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("changes", "words"), [
    ({"types": {"age": TYPES["age"]}}, "have a type, or be left out: region, income have none"),
    ({"types": {**TYPES, "ages": TYPES["age"]}}, "'ages' is none .did you mean 'age'"),
    ({"drop": []}, "person have none"), ({"types": {**TYPES, "age": {"kind": "Real"}}}, "decimals"),
    ({"types": {**TYPES, "age": {"kind": "No"}}}, "type of 'age': kind must be one of"),
    ({"unit": "person", "rows_per_unit": 1}, "units must have at most rows_per_unit=1 rows"),
    ({"unit": "person"}, "unit and rows_per_unit must be given together"),
    ({"delta": 0.1}, "delta must be below 1 / n"), ({"epsilon": 0}, "epsilon must be above 0"),
])  # fmt: skip
def test_what_cannot_be_released_is_one_line(
    changes: dict[str, Any], words: str, folder: str, tmp_path: Path
) -> None:
    refuses(words, released, folder, tmp_path / "out", **changes)
    assert os.listdir(tmp_path) == ["survey"]


@pytest.mark.parametrize("changes", [{"select": "private"}, {"delta": 1e-6}])
def test_other_noise_and_units(changes: dict[str, Any], folder: str, tmp_path: Path) -> None:
    release = released(folder, tmp_path / "out", unit="person", rows_per_unit=2, **changes)
    assert release.charge.unit == "person"
    assert list(written(tmp_path / "out")) == ["age", "region", "income"]


def test_the_plan_is_a_function_of_the_types(folder: str) -> None:
    """Order, tables and bins, of any table."""
    made = mechanism_of(kinds_of(TYPES), {"epsilon": 1.0, "relation": "remove"})
    assert made.order == {"region": (), "age": ("region",), "income": ("region", "age")}
    assert made.domain["income"].levels == (0,)
    assert made.relation == "remove"


def test_a_table_is_described_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    df = survey().assign(when=pd.Timestamp("2020-01-01"))
    df.to_parquet(tmp_path / "dated.parquet")
    assert command("describe", str(tmp_path / "*.parquet")) == 0
    lines = {line.split("│")[1].strip(): line for line in capsys.readouterr().out.splitlines()
             if "│" in line}  # fmt: skip
    assert {*lines} >= {*df}
    assert "east, north, west" in lines["region"]
    assert f"{df.region.isna().mean():.1%}" in lines["region"]
    assert "of no kind" in lines["when"]
    assert command("synthesize", str(tmp_path / "*.parquet"), "--epsilon", "1",
                   "--out", str(tmp_path / "out")) == 2  # fmt: skip
    assert "when" in capsys.readouterr().err.split("--drop")[1]
