"""`synthesize` of a table that stays where it is, as it is typed."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from pyhybrid.releases.release import Release
from tests.conftest import Run


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, rng, n = tmp_path_factory.mktemp("stored"), np.random.default_rng(1), 6_000
    age = rng.integers(18, 90, n)
    area, visits = rng.choice(["north", "south"], n), rng.poisson(1 + age / 30)
    table = pd.DataFrame({"age": age, "area": area, "visits": visits})
    (root / "files").mkdir()
    table.to_parquet(root / "files" / "a.parquet")
    with duckdb.connect(str(root / "s.duckdb")) as connection:
        connection.register("records", table)
        connection.execute("create table visits as select * from records")
    return root


def test_a_column_of_a_database(run: Run, stored: Path, tmp_path: Path) -> None:
    code, shown, error = run(
        "synthesize", f"duckdb://{stored}/s.duckdb::visits", "--formula", "visits ~ age + area",
        "--model", "poisson", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert code == 0, error
    assert "epsilon = 1" in shown
    release = Release.load(tmp_path / "out")
    assert release.synthesized == ("visits",)
    assert len(release.synthetic[0]) == 6_000


def test_a_table_of_files(run: Run, stored: Path, tmp_path: Path) -> None:
    types = {
        "age": {"kind": "Counts", "lower": 18, "upper": 90},
        "area": {"kind": "Nominal", "levels": ["north", "south"]},
        "visits": {"kind": "Counts", "upper": 50},
    }
    (tmp_path / "types.json").write_text(json.dumps(types))
    asked = ["synthesize", str(stored / "files"), "--epsilon", "2", "--out", str(tmp_path / "out")]
    code, _, error = run(*asked, "--types", str(tmp_path / "types.json"))
    assert code == 0, error
    assert set(Release.load(tmp_path / "out").synthesized) == {"age", "area", "visits"}
    (tmp_path / "draft.json").write_text(json.dumps({**types, "confirmed": False}))
    for more, words in (
        ((), "needs --types"),
        (("--types", str(tmp_path / "draft.json")), "must be confirmed by the owner"),
        (("--formula", "visits ~ age"), "--model poisson"),
        (("--unit", "age"), "leave out --unit"),
    ):
        code, _, error = run(*asked[:-1], str(tmp_path / "other"), *more)
        assert code == 2
        assert words in error
