"""Counts of a table that stays where it is equal those of a data frame, to the last record."""

import importlib.util
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import SourceFailed
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.models.columns.kinds import Dates
from pyhybrid.sources.ibis_table import IbisTable, thresholds
from pyhybrid.sources.opening import is_source, open_source
from pyhybrid.sources.source import Request, counts_of
from pyhybrid.tables.domains import domain_of
from tests.refusals import fails, refuses
from tests.sources.servers import has_postgres, postgres

pytestmark = pytest.mark.filterwarnings("ignore:::(dask|distributed|ibis|duckdb|pyspark)")
DOMAIN = {
    "income": ColumnDomain(
        levels=(0,), bins=(1, 10_000, 50_000, 1_000_000), step=100, missing=True
    ),
    "age": ColumnDomain(bins=(0, 18, 25, 45, 120)),
    "change": ColumnDomain(bins=(-1.5, 0.25, 0.3, 7.7), step=0.1, clamp=True),
    "score": ColumnDomain(bins=tuple(np.linspace(-3, 3, 60)), clamp=True),
    "area": ColumnDomain(levels=("x", "ÿ z", "00123"), missing=True),
    "owner": ColumnDomain(levels=(False, True)),
    "persons": ColumnDomain(levels=(1, 2, 3, 4)),
}


def records(n: int, seed: int = 1) -> pd.DataFrame:
    """Numbers at and beside all edges, halves between steps, missing and negative ones."""
    rng = np.random.default_rng(seed)
    edges = np.array([0, 1, 10_000, 50_000, 1_000_000, 49_950, 9_950])
    income = np.where(rng.random(n) < 0.3, rng.choice(edges, n), rng.uniform(1, 1e6, n))
    income = np.where(rng.random(n) < 0.1, np.nan, income)
    age = rng.integers(0, 121, n) - rng.choice([0, 0.5, 0.25, 1e-12], n)
    some, near = rng.normal(2, 3, n).round(2), rng.choice([0.25, 0.3, 0.1 + 0.2, -1.5], n)
    area = rng.choice(np.array(["x", "ÿ z", "00123", None], dtype=object), n)
    own = {"income": income, "age": np.clip(age, 0, 120), "area": area}
    own |= {"change": np.where(rng.random(n) < 0.5, some, near), "score": rng.normal(0, 1.2, n)}
    return pd.DataFrame({**own, "owner": rng.random(n) < 0.4, "persons": rng.integers(1, 5, n)})


def requests(names: list[str] | None = None) -> list[Request]:
    cells = {name: DOMAIN[name].cells(name) for name in names or DOMAIN}
    pairs = [(cells[a], cells[b]) for a in cells for b in cells if a < b]
    return [*((own,) for own in cells.values()), *pairs]


def assert_equal(counts: Any, expected: Any) -> None:
    for one, other in zip(counts, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return records(20_000)


@pytest.fixture(scope="module")
def stored(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a DuckDB file, a folder of Parquet files and one of CSV files."""
    root = tmp_path_factory.mktemp("stored")
    with duckdb.connect(str(root / "survey.duckdb")) as connection:
        connection.register("records", table)
        connection.execute("create table visits as select * from records")
    for kind in ("parquet", "csv"):
        (root / kind).mkdir()
    for place, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_parquet(root / "parquet" / f"{place}.parquet")
        table.iloc[part].to_csv(root / "csv" / f"{place}.csv", index=False)
    return root


@pytest.mark.parametrize("name", [n for n, domain in DOMAIN.items() if domain.bins])
def test_thresholds_cut_as_the_domain_does_next_to_every_threshold(name: str) -> None:
    cells = DOMAIN[name].cells(name)
    cut = thresholds(cells)
    near, rng = [cut.at], np.random.default_rng(3)
    for toward in (-np.inf, np.inf):
        step = cut.at
        near += [step := np.nextafter(step, toward) for _ in range(3)]
    numbers = np.concatenate([*near, rng.uniform(-10, 1.1e6, 50_000), rng.normal(0, 5, 50_000)])
    np.testing.assert_array_equal(cut.places(numbers), cells.cut(pd.Series(numbers, name=name)))


@pytest.mark.parametrize("kind", ["survey.duckdb", "parquet/*.parquet", "csv"])
@pytest.mark.parametrize("grouped", [False, True])
def test_counts_equal_those_of_the_data_frame(
    table: pd.DataFrame, stored: Path, kind: str, grouped: bool
) -> None:
    name = f"duckdb://{stored / kind}::visits" if kind.endswith("duckdb") else str(stored / kind)
    assert is_source(name)
    source = open_source(name)
    assert isinstance(source, IbisTable)
    source.grouped = grouped
    assert source.count() == len(table)
    asked = requests()[:12] if kind == "csv" else requests()
    assert_equal(source.counts(asked), counts_of(asked, table).parts)


@pytest.mark.parametrize(("written", "domain"), [
    ("(range / 10)::decimal(9, 1)", DOMAIN["change"]), ("(range / 10)::float", DOMAIN["change"]),
    ("(range / 10)::varchar", DOMAIN["change"]),
    ("range::hugeint", ColumnDomain(bins=(-15, 3, 78))),
    ("if(range % 9 = 0, '', range::varchar)", ColumnDomain(bins=(-15, 3, 78), missing=True)),
    ("if(range % 9 = 0, null, 9007199254740993 + 2 * (range % 2))",
     ColumnDomain(levels=("9007199254740991", "9007199254740993", "9007199254740995"),
                  missing=True)),
    ("date '2021-01-01' + (range % 2)::int",
     ColumnDomain(levels=("2020-12-31", "2021-01-01", "2021-01-02"))),
])  # fmt: skip
def test_counts_of_types_of_a_database_equal_those_of_numbers_or_texts(
    tmp_path: Path, written: str, domain: ColumnDomain
) -> None:
    """Seen: 9007199254740993 and ...995 were one level; texts of numbers lay in no domain."""
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute(f"create table t as select {written} as c from range(-15, 78)")
        rows = connection.sql("select c::varchar as c from t").fetchall()
    texts = pd.Series([text or None for (text,) in rows], dtype=object)
    held = texts.astype(float) if domain.bins else texts
    source = open_source(f"duckdb://{tmp_path / 'd.duckdb'}::t")
    asked = [(domain.cells("c"),)]
    for source.grouped in (False, True):
        assert_equal(source.counts(asked), counts_of(asked, pd.DataFrame({"c": held})).parts)


def test_counts_of_duckdb_relations_equal_those_of_the_data_frame(
    table: pd.DataFrame, stored: Path
) -> None:
    """Each its own, also after another was opened: seen, both sources read the later one."""
    rows, default = f"from '{stored}/parquet/*.parquet'", duckdb.connect(":default:")
    asked = [f"persons > {least}" for least in (1, 2)]
    sources = [open_source(default.sql(f"{rows} where {some}")) for some in asked]
    for source, some in zip(sources, asked, strict=True):
        part = table.query(some)
        assert source.count() == len(part)
        assert_equal(source.counts(requests()), counts_of(requests(), part).parts)
    with duckdb.connect() as other:
        fails(SourceFailed, "of DuckDB's default connection", open_source, other.sql(rows))


@pytest.mark.long
@pytest.mark.skipif(not has_postgres(), reason="needs the programs of a PostgreSQL server")
def test_counts_in_postgres_equal_those_of_the_data_frame(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ibis

    part = table.iloc[:2_000]
    with postgres() as connection:
        database = ibis.connect(connection)
        database.create_table("visits", part)
        database.disconnect()
        monkeypatch.setenv("SURVEY", connection)
        source = open_source("env:SURVEY::visits")
        assert isinstance(source, IbisTable)
        assert source.grouped
        assert_equal(source.counts(requests()), counts_of(requests(), part).parts)
        assert len(source.sample(["age"], 100)) <= 100
        values = source.sums(lambda batch: int(batch["persons"].sum()), ["persons"])
        assert values == int(part["persons"].sum())
        source.close()


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 5])
def test_counts_of_two_dask_workers_equal_those_of_the_data_frame(
    table: pd.DataFrame, partitions: int
) -> None:
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=partitions > 1, **options) as cluster, Client(cluster):
        source = open_source(dd.from_pandas(table, npartitions=partitions))
        assert source.count() == len(table)
        assert_equal(source.counts(requests()), counts_of(requests(), table).parts)
        narrow = ColumnDomain(bins=(0, 18, 25)).cells("age")
        refuses("'age' must lie in its domain", source.counts, [(narrow,)])


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="needs pyspark and Java")
def test_sums_of_spark_equal_those_of_the_data_frame(table: pd.DataFrame, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").getOrCreate()
    try:
        part = table.drop(columns=["area", "income"])  # Spark takes no NaN for missing text
        source = open_source(spark.createDataFrame(part).repartition(4))
        asked = requests([*part])
        assert_equal(source.counts(asked), counts_of(asked, part).parts)
        scores = ph.ClippedScores(ph.Poisson("persons ~ age", prior="normal"))
        whole, bound = scores.bind(part), scores.bind_source(source)
        theta = np.array([0.1, 0.01])
        design = scores._design(whole, theta, 0.3, streams(1))
        assert_equal([bound.score_sum(theta, design)], [whole.score_sum(theta, design)])
        ph.release_in_parts(scores, spark.createDataFrame(part), tmp_path / "out")
        assert len(pd.read_parquet(tmp_path / "out" / "public" / "synthetic_1")) == len(part)
    finally:
        spark.stop()


@pytest.mark.parametrize("grouped", [False, True])
def test_a_value_without_a_cell_is_refused_by_its_column_alone(stored: Path, grouped: bool) -> None:
    source = open_source(str(stored / "parquet"))
    source.grouped = grouped
    for domain, column, words in (
        (ColumnDomain(bins=(0, 9, 18)), "age", "must lie in its domain"),
        (ColumnDomain(levels=("x", "y")), "area", "must"),
        (ColumnDomain(levels=(0,), bins=(1, 10**6)), "income", "must not be missing"),
    ):
        said = refuses(words, source.counts, [(domain.cells(column),)], hidden=["00123"])
        assert column in said


def test_text_among_numbers_of_a_csv_file_is_refused_and_marks_are_missing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("income,age\n5,3\n.,4\nNA,5\n")
    source = open_source(str(tmp_path / "*.csv"))
    for source.grouped in (False, True):
        assert source.counts([(DOMAIN["income"].cells("income"),)])[0].tolist() == [0, 1, 0, 0, 2]
    (tmp_path / "u.csv").write_text("income,age\nsecret,3\n")
    source = open_source(str(tmp_path / "*.csv"))
    for source.grouped in (False, True):
        refuses("'income' must lie in its domain", source.counts,
                [(DOMAIN["income"].cells("income"),)], hidden=["secret"])  # fmt: skip


def test_texts_of_missing_values_are_levels_where_they_are_declared(tmp_path: Path) -> None:
    """Seen: '-' and 'null', levels of a file, were missing in a folder; Namibia always was."""
    (tmp_path / "t.csv").write_text("area,day\nNA,2021-03-01\n-,.\nx,NA\nnull,2021-03-02\n")
    source = open_source(str(tmp_path))
    declared = ColumnDomain(levels=("NA", "-", "x"), missing=True).cells("area")
    day = Dates(lower="2021-01-01", upper="2021-12-31", codes=(".",), missing=True)
    for source.grouped in (False, True):
        assert source.counts([(declared,)])[0].tolist() == [1, 1, 1, 1]
        counts = source.counts([(domain_of("day", day).cells("day"),)])[0]
        assert (counts[0], counts.sum(), counts[-1]) == (1, 4, 1)
        unsaid = ColumnDomain(levels=("NA", "-", "x")).cells("area")
        refuses("must not be missing", source.counts, [(unsaid,)])


def test_no_password_is_read_from_a_name_or_told_by_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refuses("environment variable NAME", open_source,
            "postgres://user:hunter2@localhost:1/db::visits", hidden=["hunter2"])  # fmt: skip
    monkeypatch.setenv("SURVEY", "postgres://user:hunter2@localhost:1/db")
    with pytest.raises(SourceFailed) as failed:
        open_source("env:SURVEY::visits")
    assert "hunter2" not in str(failed.value)
    assert failed.value.__cause__ is None
    for name, words in (
        ("env:NOT_SET_HERE::visits", "must be set"),
        (f"duckdb://{tmp_path}/none.duckdb::t", "must exist"),
        ("duckdb://x", "after '::'"),
        (f"{tmp_path}/*.parquet", "found none"),
    ):
        refuses(words, open_source, name)
    refuses("found list", open_source, [1])


@pytest.mark.parametrize(("other", "fine"), [
    ({"age": [1.5], "z": ["07"]}, False), ({"age": [1.5], "w": [3]}, False),
    ({"age": [1.5], "z": [3], "w": [3]}, False), ({"age": [1.5], "z": [None]}, True),
])  # fmt: skip
def test_parquet_files_of_unlike_columns_are_refused_by_name(
    tmp_path: Path, other: dict[str, Any], fine: bool
) -> None:
    """Seen: 7 and "07" were levels; a column of one file was left out."""
    for name, columns in (("a", {"age": [7], "z": [7]}), ("b", other)):
        pd.DataFrame(columns).to_parquet(tmp_path / f"{name}.parquet")
    if fine:
        read = pd.concat([*open_source(str(tmp_path)).batches(["age"])])
        assert sorted(read["age"]) == [1.5, 7]
    else:
        refuses(r"column '[zw]' of .*b.parquet is not that of|of a", open_source, str(tmp_path))


def test_a_table_that_is_gone_is_said_in_one_line(stored: Path, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes((stored / "parquet" / "0.parquet").read_bytes())
    source = open_source(str(tmp_path))
    (tmp_path / "a.parquet").unlink()
    fails(SourceFailed, "could not be read", source.count)
