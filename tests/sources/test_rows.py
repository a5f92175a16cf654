"""Columns of a table that stays where it is, read for a model of one of them."""

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli import sources as cli_sources
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.mechanism import read_for
from pyhybrid.sources import open_source, read_columns, rows
from pyhybrid.sources.counting import Counted
from pyhybrid.sources.rows import count_rows
from tests.conftest import Run, require_opendp
from tests.refusals import refuses
from tests.sources.test_counting import parquet

require_opendp()
AGES = {"age": ColumnDomain(bins=(20, 25, 31))}
OTHERS = ["age", "group", "dose", "owner"]


def table(n: int = 900, seed: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 30, n)
    made = pd.DataFrame({"visits": rng.poisson(age / 10), "age": age, "owner": age % 3 == 0})
    made["group"] = rng.choice(["a", "b", None], n)
    made["dose"] = np.where(rng.random(n) < 0.1, np.nan, age / 3)
    return made.assign(when=pd.Timestamp("2026-01-01"))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return parquet(table(), tmp_path / "survey")


def test_rows_are_those_of_the_table_in_an_order_that_tells_nothing(folder: str) -> None:
    """Seen: sorted by all columns but the outcome, a release told a column that was dropped."""
    names = ["visits", *OTHERS]
    whole, found = table()[names], read_columns(folder, names, outcomes=["visits"])
    expected = whole.sort_values([*OTHERS, "visits"], ignore_index=True)
    ordered = found.sort_values([*OTHERS, "visits"], ignore_index=True)
    pd.testing.assert_frame_equal(ordered, expected, check_dtype=False)
    assert [found[name].dtype.kind for name in ("visits", "age", "dose", "owner")] == [*"iifb"]
    again, same, other = (
        read_columns(folder, names, outcomes=["visits"], seed=seed) for seed in (1, 1, None)
    )
    assert again.equals(same)
    assert not other.equals(found)
    in_order = count_rows(folder, names, outcomes=["visits"]).records
    for made, told in ((found, False), (again, False), (in_order, True)):
        runs = 1 + int((np.diff(made["owner"].astype(int)) != 0).sum())
        assert (runs < 100) == told, "the control: in the order of the others"


def test_what_cannot_be_read(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses("'when' of .* must be numbers", read_columns, folder, ["when"], outcomes=[])
    refuses("'nope' must be in", read_columns, folder, ["nope"], outcomes=["visits"])
    monkeypatch.setattr(rows, "MOST_ROWS", 899)
    refuses("at most 899 rows: found 900", read_columns, folder, OTHERS, outcomes=["visits"])


@pytest.mark.samples
def test_a_formula_releases_a_table_that_stays_where_it_is(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run,
    refused: Callable[..., str],
) -> None:  # fmt: skip
    monkeypatch.setattr(cli_sources, "_MANY", 100)
    out, ledger = tmp_path / "out", str(tmp_path / "ledger.jsonl")
    asked = ["synthesize", folder, "--formula", "visits ~ age", "--mechanism", "unweighted"]
    more = ["--model", "poisson", "--keep", "dose", "--draws", "500", "--ledger", ledger]
    local = ["--kind", "asymptotic local", "--relation", "remove", "--delta", "1e-6"]
    run("ledger", "create", ledger, "--budget", "30", *local)
    code, _, said = run(*asked, *more, "--out", str(out))
    assert code == 0, said
    assert "900 rows, of which" in said
    made = pd.read_parquet(out / "public" / "synthetic_1.parquet")
    assert [*made] == ["visits", "age", "dose"], "what was named, and nothing else"
    assert sorted(made["age"]) == sorted(table()["age"])
    code, _, said = run(*asked, *more, "--out", str(tmp_path / "again"))
    assert code == 0, f"the same data, to the ledger: {said}"
    assert len(ph.Ledger(ledger).entries) == 2
    with duckdb.connect(tmp_path / "earlier.db") as connection:
        earlier = table(seed=5)  # noqa: F841  DuckDB reads it by its name
        connection.execute("CREATE TABLE persons AS SELECT * FROM earlier")
    like = ["--reference", "duckdb:///earlier.db::persons", "--holds-no-released-record"]
    code, _, said = run(*asked[:4], *like, "--out", str(tmp_path / "strict"))
    assert code == 0, said
    charge = json.loads((tmp_path / "strict" / "public" / "charge.json").read_text())
    assert (charge["kind"], charge["epsilon"]) == ("strict", 1)
    for wrong, says in (
        (["--survey", "weights=age"], "--survey take a file"),
        (["--formula", "visits ~ agee"], "did you mean 'age'"),
    ):
        given = asked[:2] if "~" in wrong[1] else asked
        assert says in refused(*given, *wrong, "--out", str(tmp_path / "x"))


def test_a_sample_has_rows_by_the_same_chance(tmp_path: Path, monkeypatch: Any) -> None:
    """Also of rows that are alike, the first ones and the last; all of a small table."""
    n, share, times = 2000, 0.2, 30
    df = pd.DataFrame({"id": np.arange(n), "g": np.where(np.arange(n) < 500, "a", "b"), "y": 1.5})
    folder, found, alike = parquet(df, tmp_path / "rows"), np.zeros(n), 0
    whole = rows.read_sample(folder)[0].sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(whole, df, check_dtype=False)
    monkeypatch.setattr(rows, "_SAMPLE", int(share * n))
    for _ in range(times):
        own, told = rows.read_sample(folder, ["g", "id"])
        assert (told, [*own], own["id"].is_unique) == (n, ["g", "id"], True)
        assert abs(len(own) - share * n) < 6 * np.sqrt(share * (1 - share) * n)
        found[own["id"]] += 1
        alike += len(rows.read_sample(folder, ["y"])[0])
    of_each = times * share * (1 - share)  # the variance
    assert abs(alike - times * share * n) < 6 * np.sqrt(of_each * n)
    assert abs(((found - share * times) ** 2).mean() / of_each - 1) < 6 * np.sqrt(2 / n)
    for part in (found[:500], found[500:], found[::4]):
        assert abs(part.mean() - share * times) < 6 * np.sqrt(of_each / part.size)


@pytest.mark.filterwarnings("ignore")  # of ibis
@pytest.mark.parametrize("engine", [duckdb, sqlite3])
def test_texts_that_a_collation_holds_alike_stay_apart(engine: Any, tmp_path: Path) -> None:
    """Seen: a record with "A" made an "A" of the "a" of all others, whatever a charge says. A
    SQLite file that is not there was made."""
    url = f"{engine.__name__.removesuffix('3')}:///{tmp_path}/own.db::t"
    refuses("must be in a .* file: .* is none", open_source, url)
    with contextlib.closing(engine.connect(tmp_path / "own.db")) as connection:
        connection.execute("CREATE TABLE t (y INT, x VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO t VALUES (1, 'A'), (1, 'a'), (2, 'a'), (2, NULL)")
        connection.commit() if engine is sqlite3 else None
    assert len(count_rows(url, ["x"], outcomes=["y"]).table) == 4
    found = read_columns(url, ["x"], outcomes=["y"])["x"]
    assert sorted(found.dropna()) == ["A", "a", "a"]
    with open_source(url) as source:
        counted = Counted(source, {"x": ColumnDomain(levels=("a", "b", "A"), missing=True)})
        assert counted.alone[("x",)][:, 0].tolist() == [2, 0, 1, 1]
        if engine is sqlite3:
            source.engine = "mysql, through ibis"
            refuses("compared letter by letter", count_rows, source, ["x"], outcomes=["y"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ibis
def test_whole_numbers_past_signed_ones_and_columns_without_values_are_read(tmp_path: Path) -> None:
    """Found by fuzzing. Without its last value a column had no type, and its table was refused."""
    df = pd.DataFrame({"y": [1, 2, 1], "x": np.array([2**64 - 1, 3, 2**64 - 1], dtype=np.uint64)})
    made = read_columns(parquet(df, tmp_path / "rows", n_files=1), ["x"], outcomes=["y"])
    assert sorted(made["x"]) == [3, 2**64 - 1, 2**64 - 1]
    gone = pd.DataFrame({"x": pd.Series([None], dtype=object), "y": 1})
    for data in (duckdb.sql("SELECT NULL AS x, 1 AS y"), ibis.memtable(gone)):
        assert read_columns(data, ["x"], outcomes=["y"])["x"].isna().all()
        counted = Counted(open_source(data), {"x": ColumnDomain(levels=("a", "b"), missing=True)})
        assert counted.alone[("x",)].ravel().tolist() == [0, 0, 1]


FORMS: dict[str, Callable[[str], Any]] = {
    "folder": str, "path": Path, "relation": lambda folder: duckdb.read_parquet(f"{folder}/*"),
    "ibis": lambda folder: ibis.read_parquet(f"{folder}/*"), "source": open_source,
}  # fmt: skip


@pytest.mark.normal_draws
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ibis
@pytest.mark.parametrize("form", FORMS)
def test_a_source_goes_where_a_data_frame_goes(form: str, tmp_path: Path) -> None:
    """What is read of it, and that it is all rows, or as many as are looked at."""
    whole, model = table()[["visits", "age", "owner"]], ph.Poisson("visits ~ age")
    data, pattern = FORMS[form](parquet(whole, tmp_path / "t")), ("owner",)
    masks = ph.masking.masks_by_type(data, pattern)
    masked = ph.masking.MaskedImputation(keys=pattern, masks=masks)
    noisy = ph.NoisyMarginals.for_formula("age ~ owner", domain=AGES, epsilon=1)
    for mechanism, columns in (
        (ph.Unweighted(model), ["visits", "age"]), (noisy, ["age", "owner"]),
        (ph.CountWeighted(model, pattern=pattern), [*whole]),
        (ph.masking.CartSynthesis(keys=pattern), [*whole]), (masked, [*whole]),
    ):  # fmt: skip
        made = mechanism.release(data).synthetic[0]
        assert ([*made], len(made)) == (columns, len(whole))
        assert sorted(made[columns[1]]) == sorted(whole[columns[1]]), "as it was"
    assert len(ph.calibrate(model, data, epsilon=1, seed=1).reference.of_model) == len(whole)
    compared = ph.compare({"a": ph.Unweighted(model)}, data, n_synthetic=2, seed=1)
    assert compared.session.bound.n == len(whole)
    of_parts = ph.TwoPart(zero=ph.Bernoulli("visits ~ owner"), positive=ph.Gamma("visits ~ age"))
    assert [*read_for([of_parts], data, 1)] == [*whole]
    planned = ph.Table(data, sensitive=["age"], drop=["visits"], types={"visits": ph.Counts()})
    assert ([*planned.df], len(planned.df)) == (["age", "owner"], len(whole))
    found, own = (ph.measures.risk_summary(*pair, keys=["age"], rows_correspond=False)
                  for pair in ((data, whole), (whole, [data])))  # fmt: skip
    assert found.overall() == own.overall()
    refuses("no order", ph.measures.matching_risk, data, whole, keys=["age"], rows_correspond=True)
    refuses("must be a pandas DataFrame", ph.masking.risk_subgroups, data, ["age"], 5)


def test_of_many_rows_measures_take_some(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_SAMPLE", 300)
    with pytest.warns(UserWarning, match=r"survey: \d+ of 900 rows, by chance"):
        found = ph.measures.column_utility(folder, table()[["age"]])
    assert 0 < found.distances["max_ecdf"][0] < 0.2


def test_a_set_as_csv_has_the_types_of_its_schema(tmp_path: Path) -> None:
    """Seen: refused by `count_distances`; levels "01" were read as numbers by `sample`."""
    named = table()[["age", "group"]].replace({"group": {"a": "01", "b": "02"}})
    types = {"age": {"kind": "Counts", "lower": 20, "upper": 30},
             "group": {"kind": "Nominal", "levels": ["01", "02"], "missing": True}}  # fmt: skip
    made = ph.sources.synthesize_source(
        parquet(named, tmp_path / "t"), types=types, epsilon=9, out=tmp_path / "out",
        file_format="csv", rows_per_part=250, n_synthetic=2,
    )  # fmt: skip
    assert {*made.sample(900)["group"].dropna()} == {"01", "02"}
    parts = [pd.read_csv(path, dtype={"group": str}) for path in made.synthetic[1].iterdir()]
    again = parquet(pd.concat(parts), tmp_path / "again")
    far = ph.sources.count_distances(made.synthetic[1], again, types=types)
    assert far["distance"].tolist() == [0, 0, 0]
