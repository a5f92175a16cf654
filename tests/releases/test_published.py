"""What is written beside the values of a table: levels in use, no notes, no fill values."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhybrid as ph
from pyhybrid.releases.folder import published, write_table
from tests.fits import fit_options
from tests.refusals import fails, refuses

SECRET = "Quasimodo"
FAST = fit_options(chains=4, warmup=300, draws=200, seed=1, refits=0)


def _subset() -> pd.DataFrame:
    """50 rows cut out of a larger table: its categories still name 400 people, and a group."""
    names = [f"surname {k}" for k in range(399)] + [SECRET]
    y, group = np.random.default_rng(1).poisson(9, 400), pd.Categorical(["a", "b"] * 200)
    group = group.add_categories(SECRET)
    return pd.DataFrame({"y": y, "group": group, "surname": pd.Categorical(names)}).head(50)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_levels_that_no_record_has_are_not_published(form: str, tmp_path: Path) -> None:
    model = ph.Categorical("group ~ 1")
    release = ph.Unweighted(model).release(_subset()[["group", "surname"]], **{**FAST, "seed": 2})
    table = release.synthetic[0]
    for name in table:
        assert SECRET in table[name].cat.categories, "the attack: levels travel with the rows"
    release.save(tmp_path / "out", file_format=form, keep="surname")
    public = list((tmp_path / "out" / "public").iterdir())
    assert all(SECRET.encode() not in path.read_bytes() for path in public)
    schema = json.loads((tmp_path / "out/public/schema.json").read_text())
    assert len(schema["columns"][1]["levels"]) == 50
    loaded = ph.Release.load(tmp_path / "out").synthetic[0]
    assert loaded["surname"].astype(str).tolist() == table["surname"].astype(str).tolist()


def _bytes(table: pd.DataFrame, tmp_path: Path) -> bytes:
    write_table(table, tmp_path / "t.parquet")
    return (tmp_path / "t.parquet").read_bytes()


def _indexed(kind: str) -> pd.DataFrame:
    table = _subset()
    if kind == "levels":
        return table.set_index("surname")[["y"]]
    if kind == "multi":
        return table.set_index(["group", "surname"])[["y"]]
    if kind == "dictionary":
        words = pa.array(["x", "z"] * 25).dictionary_encode()
        held = pa.DictionaryArray.from_arrays(words.indices, pa.array(["x", "z", SECRET]))
        return table[["y"]].assign(word=pd.arrays.ArrowExtensionArray(held))
    table = table[["y"]].copy()
    table.attrs = {"note": SECRET}
    table.columns.name = SECRET
    return table


@pytest.mark.parametrize("kind", ["levels", "multi", "dictionary", "notes"])
def test_indexes_dictionaries_and_notes(kind: str, tmp_path: Path) -> None:
    table = _indexed(kind)
    assert SECRET.encode() in _bytes(table, tmp_path), "the control: it would be written"
    clean = published(table)
    assert SECRET.encode() not in _bytes(clean, tmp_path)
    assert SECRET not in str(pq.read_schema(tmp_path / "t.parquet").metadata)
    assert clean["y"].tolist() == table["y"].tolist()
    assert list(map(str, clean.index)) == list(map(str, table.index))


def test_declared_levels_of_synthesized_columns_stay() -> None:
    kept = published(_subset(), declared=("surname",))
    assert len(kept["surname"].cat.categories) == 400
    assert len(published(_subset())["surname"].cat.categories) == 50
    assert published(_subset())["group"].cat.categories.tolist() == ["a", "b"]


def test_a_fill_value_of_a_sparse_column_is_no_value() -> None:
    sparse = pd.arrays.SparseArray([1.0, 2.0], fill_value=4711.0)
    assert str(published(pd.DataFrame({"s": sparse}))["s"].dtype) == "float64"


def test_what_cannot_be_written_or_read_is_named_without_its_value(tmp_path: Path) -> None:
    """pyarrow, json and pandas quote the value that they trip over."""
    mixed = pd.DataFrame({"fine": [1, 2], "mixed": pd.Series([1, SECRET], dtype=object)})
    fails(Exception, SECRET, mixed.to_parquet, tmp_path / "control.parquet")
    said = "holds values that Parquet has no type for"
    refuses(said, write_table, mixed, tmp_path / "t.parquet", hidden=[SECRET])
    release = ph.Unweighted(ph.Poisson("y ~ 1")).release(_subset()[["y"]], **FAST)
    release.save(tmp_path / "out", report=False)
    for name, text in (("confidential/run.json", f'{{"a": {SECRET}}}'),
                       ("confidential/records.csv", f'a,b\n"{SECRET}'),
                       ("public/synthetic_1.csv", f"y\n{SECRET}")):  # fmt: skip
        held = (tmp_path / "out" / name).read_bytes()
        (tmp_path / "out" / name).write_text(text)
        refuses("whole and as saved", ph.Release.load, tmp_path / "out", hidden=[SECRET])
        (tmp_path / "out" / name).write_bytes(held)
