"""Counts where the records are: those of pandas on the same rows, in every engine."""

import contextlib
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhybrid.cli.app import run
from pyhybrid.cli.tables import shown_name
from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.sources import source as at
from pyhybrid.sources.counting import Counted
from pyhybrid.sources.source import Source, open_source
from tests.refusals import fails, refuses

RNG = np.random.default_rng()
N = 3000
NUMBERS = {
    "steps": ColumnDomain(levels=(0,), bins=(1, 10_000, 50_000, 1_000_000), step=100),
    "tenths": ColumnDomain(levels=(0,), bins=(-50.0, -0.05, 0.1, 0.3, 6.6, 100.0), step=0.1),
    "cents": ColumnDomain(bins=(0.01 / 1000, 0.05, 0.5, 12.0), step=0.01, missing=True),
    "real": ColumnDomain(levels=(0, 0.5), bins=(-50.0, -0.05, 0.1, 0.3, 6.6, 100.0)),
    "whole": ColumnDomain(bins=(*range(80), 79.5), step=1.0),
    "clamped": ColumnDomain(levels=(0,), bins=(1, 5, 10), clamp=True),
    "codes": ColumnDomain(levels=(3, 1, 2.5), missing=True),
}


def places(domain: ColumnDomain, values: list[float]) -> list[int]:
    """Cell by cell, -1 of what is refused."""
    held = []
    for value in values:
        try:
            held += domain.places(pd.Series([value], name="x", dtype="float64")).tolist()
        except InvalidInput:
            held.append(-1)
    return held


@pytest.mark.parametrize("name", NUMBERS)
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_the_cell_of_any_float_is_found_by_comparisons(name: str, data: st.DataObject) -> None:
    domain = NUMBERS[name]
    starts, cells = domain.cuts("x")
    points = [*domain.bins, *domain.levels, *starts.tolist()]
    near = [p + o * (domain.step or 1) for p in points for o in (0, 0.5, -0.5, 1e-9, -1e-9, 1)]
    near += [float(np.nextafter(p, end)) for p in near for end in (-np.inf, np.inf)]
    anything = st.floats(allow_nan=False, allow_infinity=False, width=64)
    values = data.draw(st.lists(st.one_of(st.sampled_from(near), anything), min_size=20))
    values = [value for value in values if abs(value) < 1e300]
    found = cells[np.searchsorted(starts, values, side="right")]
    assert found.tolist() == places(domain, values)


def table() -> pd.DataFrame:
    """Every kind: missing, negative, decimals, text, logicals, edges."""
    income = np.round(RNG.lognormal(9, 1.5, N), 2)
    income[RNG.random(N) < 0.3] = 0
    change = np.round(RNG.normal(0, 300, N) / 5) * 5
    rate = RNG.choice([0.1, 0.3, 6.6, 0.30000000000000004, -0.0, 1 / 3, 99.95], N)
    df = pd.DataFrame({
        "age": RNG.integers(0, 101, N), "income": np.minimum(income, 1e6),
        "change": np.clip(change, -1000, 1000), "rate": rate,
        "region": RNG.choice(["north", "süd", "o'east", "", 'we"st'], N),
        "flag": RNG.random(N) < 0.3, "code": RNG.choice([1.0, 2.0, 7.5], N),
    })  # fmt: skip
    df.loc[RNG.random(N) < 0.1, ["rate", "region"]] = None
    return df


DOMAIN = {
    "age": ColumnDomain(bins=tuple(range(0, 101, 5)), step=1.0),
    "income": ColumnDomain(levels=(0,), bins=tuple(np.geomspace(0.01, 1e6, 30)), step=0.01),
    "change": ColumnDomain(levels=(0,), bins=tuple(range(-1000, 1001, 50)), step=5.0),
    "rate": ColumnDomain(bins=(-1.0, 0.0, 0.1, 0.3, 6.6, 100.0), step=0.1, missing=True),
    "region": ColumnDomain(levels=("", "o'east", "north", "süd", 'we"st'), missing=True),
    "flag": ColumnDomain(levels=(False, True)),
    "code": ColumnDomain(levels=(7.5, 1, 2)),
}
ORDER = {name: tuple(DOMAIN)[:place] for place, name in enumerate(DOMAIN)}
FEW = {**DOMAIN, "age": ColumnDomain(bins=(0, 20, 65, 100), step=1.0)}


def check_counts(source: Source, df: pd.DataFrame, **where: Any) -> None:
    """Of all columns alone, and with each other in fewer cells, against pandas."""
    counted = Counted(source, DOMAIN, **where)
    held = {name: domain.places(df[name]) for name, domain in DOMAIN.items()}
    for name, found in zip(DOMAIN, counted.one_way([*DOMAIN]), strict=True):
        expected = np.bincount(held[name], minlength=DOMAIN[name].n_cells)
        assert found.counts[:, 0].tolist() == expected.tolist(), name
    few = {name: domain.places(df[name]) for name, domain in FEW.items()}
    pairs = [(name, other) for name, reads in ORDER.items() for other in reads or (None,)]
    for (name, other), found in zip(pairs, counted.two_way(FEW, ORDER), strict=True):
        width = 1 if other is None else FEW[other].n_cells
        column = np.zeros(len(df), np.int64) if other is None else few[other]
        expected = np.bincount(few[name] * width + column, minlength=FEW[name].n_cells * width)
        assert found.counts.ravel().tolist() == expected.tolist(), (name, other)
    assert len(counted) == len(df)


def parquet(df: pd.DataFrame, folder: Path, n_files: int = 3) -> str:
    """A folder of Parquet files."""
    folder.mkdir()
    for place, part in enumerate(np.array_split(np.arange(len(df)), n_files)):
        df.iloc[part].to_parquet(folder / f"part{place}.parquet", index=False)
    return str(folder)


def arrow(df: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(df, preserve_index=False)


def in_file(df: pd.DataFrame, tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "survey.db")) as connection:
        connection.register("df", arrow(df))
        connection.execute('CREATE SCHEMA s; CREATE TABLE s."my table" AS SELECT * FROM df')
    return f"duckdb:///{tmp_path / 'survey.db'}::s.my table"


def in_sqlite(df: pd.DataFrame, tmp_path: Path) -> str:
    """Without grouping sets, NaN and logicals."""
    with contextlib.closing(sqlite3.connect(tmp_path / "survey.sqlite")) as connection:
        df.to_sql("persons", connection, index=False)
    return f"sqlite:///{tmp_path / 'survey.sqlite'}::persons"


@pytest.mark.parametrize("made", [
    lambda df, path: parquet(df, path / "a"), in_file, in_sqlite, lambda df, _:
    ibis.memtable(arrow(df)), lambda df, _: duckdb.connect().from_arrow(arrow(df)),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")  # of ibis, in the user's own connection
def test_counts_are_those_of_pandas(made: Callable[..., Any], tmp_path: Path) -> None:
    df = table()
    with open_source(made(df, tmp_path)) as source:
        if hasattr(source, "connection"):  # a bar would be in the way of what a command prints
            told = source.answer("SELECT current_setting('enable_progress_bar')")
            assert told == [(False,)]
        check_counts(source, df)


@pytest.mark.long
def test_files_are_counted_by_workers_of_a_cluster(tmp_path: Path) -> None:
    """Two processes of `distributed`, and two of our own."""
    distributed = pytest.importorskip("distributed")
    df = table()
    folder = parquet(df, tmp_path / "a", n_files=5)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client, open_source(folder) as source:
        check_counts(source, df, executor=client.get_executor())
        check_counts(source, df, workers=2)


OF_TYPES: dict[str, tuple[ColumnDomain, list[Any], list[Any]]] = {
    "whole": (ColumnDomain(levels=(0, 0.5, 3)), [0, 0, 3], [0.5] * 5),
    "large": (ColumnDomain(levels=(2**53, 2**53 + 2, 0.5)), [2**53 + 1, 2**53 + 2], [0.5]),
    "decimals": (ColumnDomain(bins=(0, 1, 9), step=0.1), [Decimal("1.5")] * 2, [Decimal("0.25")]),
    "texts": (ColumnDomain(levels=("1", "01", "2", "x")), ["x", "01", "2.0"], [1, 2, 2]),
    "empty texts": (ColumnDomain(levels=("1", "x"), missing=True), ["x", None], [None, None]),
    "empty numbers": (ColumnDomain(bins=(0, 2, 9), missing=True), [3, 2, None], [None, None]),
    "logicals": (ColumnDomain(levels=(False, True), missing=True), [True, False], [np.nan] * 2),
}
"""A domain, and values of two files that their writer gives other types."""


@pytest.mark.parametrize("name", OF_TYPES)
@pytest.mark.parametrize("turned", [False, True])
def test_the_type_of_one_file_moves_no_record_of_another(
    name: str, turned: bool, tmp_path: Path
) -> None:
    """Seen: files were read in the type of the first one, of each worker: 0.5 as 0 after a file of
    whole numbers, and as .5 where one of these was 3.5. The control: DuckDB's own reading."""
    domain, *files = OF_TYPES[name]
    files = files[::-1] if turned else files
    for place, values in enumerate(files):
        table = pa.table({"x": pa.array(values, from_pandas=True)})
        pq.write_table(table, tmp_path / f"{place}.parquet")
    each = [v for values in files for v in values]
    places = domain.places(pd.Series(each, name="x", dtype=object))
    expected = np.bincount(places, minlength=domain.n_cells).tolist()
    with open_source(str(tmp_path)) as source, ThreadPoolExecutor(2) as executor:
        for where in ({}, {"executor": executor}):
            found = Counted(source, {"x": domain}, **where).alone[("x",)][:, 0]
            assert found.tolist() == expected
    if name == "whole":
        own = duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/*.parquet' WHERE x = 0.5").fetchall()
        assert own == [(5 if turned else 0,)], "the control"


REFUSED = {
    "outside": (lambda df: df.assign(age=df.age.where(df.index > 0, 101)), "'age' must lie in its"),
    "missing": (lambda df: df.assign(income=df.income.where(df.index > 0)), "'income' must not be"),
    "nan": (lambda df: df.assign(flag=df.flag.where(df.index > 0, None)), "'flag' must not be"),
    "level": (lambda df: df.assign(region=df.region + "x"), "'region' must lie in its domain"),
    "text": (lambda df: df.assign(age=df.age.astype(str) + "y"), "'age' must lie in its"),
    "dates": (lambda df: df.assign(code=pd.Timestamp("2020-1-1")), "found timestamp; change it"),
    "gone": (lambda df: df.drop(columns="rate"), "'rate' must be in .*: it has age"),
    "empty": (lambda df: df.head(0), "must have rows: found none"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_cell_is_one_line_without_a_value(what: str, tmp_path: Path) -> None:
    change, words = REFUSED[what]
    folder = parquet(change(table()), tmp_path / "a", n_files=1)
    with open_source(folder) as source:
        refuses(words, Counted, source, DOMAIN, hidden=["\n", "101"])


def test_a_table_that_changes_between_two_passes_is_refused(tmp_path: Path) -> None:
    """A record more, a record less, and a record that another took the place of."""
    whole = table()
    changed = whole.assign(flag=whole["flag"] ^ (whole.index == 0))
    for other in (whole.head(-1), pd.concat([whole, whole.head(1)]), changed):
        own = duckdb.connect()
        own.register("whole", arrow(whole))
        own.register("other", arrow(other))
        own.execute("CREATE TABLE t AS SELECT * FROM whole")
        counted = Counted(open_source(own.table("t")), DOMAIN)
        own.execute("DELETE FROM t; INSERT INTO t SELECT * FROM other")
        refuses("changed between two passes; nothing was released", counted.two_way, FEW, ORDER)


def test_units_have_their_cap(tmp_path: Path) -> None:
    df = table().assign(person=np.arange(N) // 3)
    with open_source(parquet(df, tmp_path / "a")) as source:
        counted = Counted(source, DOMAIN)
        counted.check_units("person", 3)
        refuses(r"rows_per_unit=2 rows.*has more", counted.check_units, "person", 2)
        refuses("must not be synthesized", counted.check_units, "age", 9)
    with open_source(parquet(df.assign(person=None), tmp_path / "b")) as source:
        counted = Counted(source, {"age": DOMAIN["age"]})
        refuses(r"every row a unit.* is missing", counted.check_units, "person", N)
    own = duckdb.sql("SELECT 1 AS age, 'nan'::DOUBLE AS person FROM range(2)")
    counted = Counted(open_source(own), {"age": DOMAIN["age"]})
    refuses("'person' of the relation is missing", counted.check_units, "person", 2)


@pytest.mark.parametrize(("data", "words"), [
    ("nothing/*.parquet", "must be Parquet files: there is none"),
    ("*.csv", "types, those of CSV would be read from the records"),
    ("duckdb:///nothing.db::t", "must be in a DuckDB file: nothing.db is none"),
    ("postgres://me:pw@nowhere/x", "data postgres://nowhere/x must name a table"),
    ("broken/*.parquet", "must be readable: InvalidInputException"),
    (3, "must be a pattern of Parquet files, .*: found int"),
])  # fmt: skip
def test_what_is_no_source_is_one_line(
    data: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken").mkdir()
    Path("broken/a.parquet").write_bytes(b"PAR1 nothing")
    Path("a.csv").write_text("x\n1\n")
    refuses(words, open_source, data, hidden=["pw"])


@pytest.mark.parametrize(
    "url", ["me:pw@h/x", "me:a/pw@h/x", "me:a?pw@h/x", "me:a@pw@h/x", "me@h/x?sslpassword=pw"]
)
def test_no_password_is_told_or_taken_by_a_command(url: str) -> None:
    """Seen: `describe` printed it, marks that are not encoded told a part, `sslpassword` went, and
    what a command lacked, or took for a file, was said with it."""
    own = f"postgres://{url}::t"
    refuses("must have no password", at.stays_where_it_is, own, hidden=["pw"])
    for words in (["plan", own], ["risk", "a.csv", f"--key={own}"]):
        refuses("must have no password", run, words, hidden=["pw"])
    assert shown_name(own) == "postgres://h/x::t"
    names = [at.name_of(f"postgres://{url}::{table}") for table in "tu"]
    assert "pw" not in names[0] != names[1]
    assert at.stays_where_it_is("duckdb:///a@b:c/x.db::t")


@pytest.mark.parametrize("kind", ["INTERVAL", "UUID", "JSON", "BIT", "ENUM('a', '101')[]"])
def test_a_type_without_cells_is_named_and_the_others_are_counted(kind: str) -> None:
    """Seen: an interval, dropped or not, ended in a traceback; a UUID in an error without name."""
    own = duckdb.sql(f"SELECT NULL::{kind} AS own, 1::HUGEINT AS age, 9.99 AS income")
    named = f"'own' of .* found {kind.partition('(')[0].lower()}"
    refuses(named, Counted, open_source(own), {"own": DOMAIN["region"]}, hidden=["101"])
    counted = Counted(open_source(own), {name: DOMAIN[name] for name in ("age", "income")})
    where = DOMAIN["income"].places(pd.Series([9.99], name="income"))  # a DECIMAL there
    assert (len(counted), counted.alone[("income",)][where].tolist()) == (1, [[1]])


@pytest.mark.parametrize("library", ["ibis", "duckdb"])
def test_what_is_not_installed_is_named_with_its_extra(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = parquet(table(), tmp_path / "a")
    monkeypatch.setitem(sys.modules, library, None)
    fails(EngineUnavailable, f"needs {library}, .*'pyhybrid.tables.'", open_source, folder)
