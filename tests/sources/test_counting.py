"""Counts where the records are: those of pandas on the same rows, in every engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.sources.counting import Counted
from pyhybrid.sources.source import Source, open_source

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
    df = pd.DataFrame(
        {
            "age": RNG.integers(0, 101, N),
            "income": np.minimum(income, 1e6),
            "change": np.clip(change, -1000, 1000),
            "rate": rate,
            "region": RNG.choice(["north", "süd", "o'east", "", 'we"st'], N),
            "flag": RNG.random(N) < 0.3,
            "code": RNG.choice([1.0, 2.0, 7.5], N),
        }
    )
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


def in_file(df: pd.DataFrame, tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "survey.db")) as connection:
        connection.register("df", pa.Table.from_pandas(df, preserve_index=False))
        connection.execute('CREATE SCHEMA s; CREATE TABLE s."my table" AS SELECT * FROM df')
    return f"duckdb:///{tmp_path / 'survey.db'}::s.my table"


def relation(df: pd.DataFrame, tmp_path: Path) -> Any:
    own = duckdb.connect()
    return own.from_arrow(pa.Table.from_pandas(df, preserve_index=False))


def ibis_table(df: pd.DataFrame, tmp_path: Path) -> Any:
    return ibis.memtable(pa.Table.from_pandas(df, preserve_index=False))


@pytest.mark.parametrize(
    "made", [lambda df, path: parquet(df, path / "a"), in_file, relation, ibis_table]
)
@pytest.mark.filterwarnings("ignore")  # of ibis, in the user's own connection
def test_counts_are_those_of_pandas(made: Callable[..., Any], tmp_path: Path) -> None:
    df = table()
    with open_source(made(df, tmp_path)) as source:
        check_counts(source, df)
