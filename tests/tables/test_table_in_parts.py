"""Noisy marginals of a table that stays where it is: same counts, same noise, same model."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import SourceFailed
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms.marginals import measure, noisy_marginals
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.releases.release import Release
from pyhybrid.sources.ibis_table import IbisTable
from pyhybrid.tables.describe import seen_kind
from pyhybrid.tables.domains import domain_of
from tests.refusals import fails, refuses
from tests.tables.conftest import in_files

DOMAIN = {
    "age": ColumnDomain(bins=tuple(range(18, 94, 8))),
    "area": ColumnDomain(levels=("north", "south", "west"), missing=True),
    "income": ColumnDomain(
        levels=(0,), bins=(1, *range(10_000, 110_000, 10_000)), step=10, missing=True
    ),
    "owner": ColumnDomain(levels=(False, True)),
}


def survey(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.integers(18, 91, n)
    income = np.exp(rng.normal(9.5, 0.6, n) + 0.01 * (age - 45)).clip(10, 100_000).round(-1)
    income = np.where(rng.random(n) < 0.2, 0, income)
    return pd.DataFrame({
        "age": age, "area": rng.choice(np.array(["north", "south", "west", None], dtype=object), n),
        "income": np.where(rng.random(n) < 0.05, np.nan, income),
        "owner": rng.random(n) < 0.2 + 0.006 * (age - 18),
    })  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return survey(8_000)


@pytest.fixture(scope="module")
def stored(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_files(table, tmp_path_factory.mktemp("stored"), 3)


def mechanism(**changes: Any) -> ph.NoisyMarginals:
    settings = {"epsilon": 4, "delta": 1e-6, "most_bins": "auto", "relation": "remove"}
    return ph.NoisyMarginals(domain=DOMAIN, **{**settings, **changes})


@pytest.mark.parametrize("changes", [{}, {"delta": None}, {"most_bins": None}])
@pytest.mark.parametrize("grouped", [False, True])
def test_all_that_is_counted_is_what_is_counted_in_a_data_frame(
    changes: dict[str, Any], grouped: bool, table: pd.DataFrame, stored: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Both steps, with the same noise, none: the same numbers come out and the same model."""
    own = mechanism(**changes)
    asked: list[list[np.ndarray]] = []
    real = measure.noisy_tables

    def without_noise(tables: Any, **options: Any) -> Any:
        answer = real(tables, **options)
        counts = [one.ravel() for one in tables]
        asked[-1] += counts
        return dataclasses.replace(answer, value=np.concatenate(counts))

    monkeypatch.setattr(measure, "noisy_tables", without_noise)
    asked.append([])
    frame = own._estimated(own._counted(table), table, 1, streams(1))
    source = ph.open_source(stored)
    assert isinstance(source, IbisTable)
    source.grouped = grouped
    monkeypatch.setattr(noisy_marginals, "streams", lambda: streams(1))
    asked.append([])
    estimate = own.estimate(source, 1)
    assert len(asked[0]) == len(asked[1])
    for one, other in zip(*asked, strict=True):
        np.testing.assert_array_equal(one, other)
    assert estimate.domain == frame.domain
    for column, effects in frame.effects.items():
        np.testing.assert_allclose(estimate.effects[column], effects, rtol=1e-9, atol=1e-9)


def test_a_whole_table_is_released_in_parts_and_from_its_stored_model(
    table: pd.DataFrame, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    m = 3
    monkeypatch.setattr("pyhybrid.tables.in_parts._ROWS", 2_400)
    charge = ph.release_in_parts(mechanism(), str(stored), tmp_path / "out", n_synthetic=m)
    assert (charge.kind, charge.epsilon, charge.delta) == ("strict", 4, 1e-6)
    release = Release.load(tmp_path / "out")
    assert len(release.synthetic) == m
    for synthetic in release.synthetic:
        assert len(synthetic) == len(table)
        assert list(synthetic.columns) == list(table.columns)
        assert abs(synthetic["age"].mean() - table["age"].mean()) < 1.7  # 5 times .33, of 120 sets
        assert abs((synthetic["income"] == 0).mean() - (table["income"] == 0).mean()) < 0.03
        assert abs(synthetic["area"].isna().mean() - table["area"].isna().mean()) < 0.03
        slope = np.polyfit(synthetic["age"], synthetic["owner"].astype(float), 1)[0]
        assert 0.003 < slope < 0.009
    assert len(list((tmp_path / "out" / "public" / "synthetic_1").glob("part-*"))) == 4
    source = ph.open_source(stored)
    estimate = mechanism().estimate(source, m)
    again = mechanism().estimate_of(json.loads(json.dumps(estimate.state())), source)
    public = pd.DataFrame(index=range(500))
    for place in range(1, m + 1):
        pd.testing.assert_frame_equal(
            estimate.rows(public, place, streams(7)), again.rows(public, place, streams(7))
        )
    assert again.record.charge == estimate.record.charge


def test_a_table_that_changes_between_steps_is_not_released(
    table: pd.DataFrame, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ph.open_source(stored)
    counts, steps = source.counts, []

    def changing(requests: Any) -> Any:
        steps.append(requests)
        answer = counts(requests)
        if len(steps) == 2:
            answer[0].flat[0] += 1
        return answer

    monkeypatch.setattr(source, "counts", changing)
    fails(SourceFailed, "must not change", mechanism().estimate, source, 1)
    assert len(steps) == 2


def test_what_cannot_be_counted_where_it_is_is_said(stored: Path) -> None:
    source = ph.open_source(stored)
    for changes in ({"unit": "age", "rows_per_unit": 2}, {"given": ["age"]}):
        refuses("must be left out", mechanism(**changes).estimate, source, 1)
    refuses("delta must be below 1 / n", mechanism(delta=0.01).estimate, source, 1)
    wrong = ph.NoisyMarginals(domain={"nobody": [1, 2]}, epsilon=1)
    refuses("'nobody' must be in the table", wrong.estimate, source, 1)


def test_dates_of_a_database_are_those_of_a_data_frame(tmp_path: Path) -> None:
    """DATE and TIMESTAMP of DuckDB, texts of CSV files: the same cells, typed as they came. DATE is
    drafted as days, there and in Parquet, and `days` reads all three in a strict formula."""
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(4)
    days = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 18_000, 3000), unit="D")
    df = pd.DataFrame({"born": days, "seen": days + pd.Timedelta("13:05:09")})
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("create table t as select born::date born, seen from df")
    df.assign(born=days.strftime("%Y-%m-%d")).to_csv(tmp_path / "t.csv", index=False)
    df.assign(born=df["born"].dt.date).to_parquet(tmp_path / "t.parquet")
    ends = {"lower": "1950-01-01", "upper": "1999-12-31"}
    typed = {"born": ph.Dates(**ends, format="date"), "seen": ph.Dates(**ends, format="datetime")}
    texts = {"born": ph.Dates(**ends),
             "seen": ph.Dates(lower="1950-01-01 00:00:00", upper="1999-12-31 00:00:00",
                              format="%Y-%m-%d %H:%M:%S")}  # fmt: skip
    table = f"duckdb://{tmp_path / 't.duckdb'}::t"
    cells = []
    for kinds, where in ((typed, table), (texts, str(tmp_path / "*.csv"))):
        domain = {name: domain_of(name, kind) for name, kind in kinds.items()}
        source = ph.open_source(where)
        requests = [(domain["born"].cells("born"),)]
        cells.append(source.counts(requests)[0])
        mechanism = ph.NoisyMarginals(
            domain=domain, epsilon=1e4, delta=1e-6, relation="remove", most_bins="auto"
        )
        out = tmp_path / f"out_{len(cells)}"
        ph.release_in_parts(mechanism, source, out)
        made = pd.read_parquet(out / "public/synthetic_1")
        kind = "date" if kinds is typed else "string"
        assert pd.api.types.infer_dtype(made["born"]) == kind
        year = pd.to_datetime(made["born"]).dt.year.mean()
        assert abs(year - days.year.to_numpy().mean()) < 1
        bound = ph.ClippedScores(ph.Poisson("seen ~ days(born)")).bind_source(source)
        assert sorted(bound.sample.public.X[:, 1]) == sorted((days - pd.Timestamp(0)).days)
    for where in (table, str(tmp_path / "*.parquet")):
        drafted: Any = seen_kind(ph.open_source(where).sample(["born"])["born"])
        assert (drafted.format, drafted.lower) == ("date", "1950-01-01")
    assert np.array_equal(*cells)
    assert np.array_equal(cells[0], np.bincount(domain["born"].places(df["born"]), minlength=100))
