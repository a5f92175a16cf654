"""The form of a strict release (types, decimals, missing values) does not tell neighbors apart."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.releases.folder import published, table_schema
from pyhybrid.releases.statement import assumptions
from tests.conftest import command
from tests.fits import fit_options

N = 60
X = np.linspace(0, 1, N)
WHOLE = np.arange(N) % 9 + 1
OPTIONS = fit_options(chains=4, warmup=20, draws=400)
BINS = tuple(range(11))
TYPES: dict[str, Any] = {"y": ph.Counts(lower=0, upper=20, typical=5, spread=3, missing=True)}


def censored(model: Any) -> Callable[[pd.DataFrame], ph.Release]:
    mechanism = ph.Censored(
        model, cap=2.0, inner=ph.Unweighted(model), center=None, sampling="chains",
        check_modes=False,
    )  # fmt: skip
    return lambda df: mechanism.release(df, **OPTIONS)


def scores(model: Any) -> Callable[[pd.DataFrame], ph.Release]:
    return ph.ClippedScores(model, epsilon=50.0).release


def marginals(**domain: Any) -> Callable[[pd.DataFrame], ph.Release]:
    own = ph.NoisyMarginals(
        domain={"y": ph.mechanisms.ColumnDomain(**domain)}, given=["x"], epsilon=50.0
    )
    return own.release


def histogram(**given: Any) -> Callable[[pd.DataFrame], ph.Release]:
    return ph.PerturbedHistogram(column="y", epsilon=50.0, **given).release


def table(kind: Any) -> Callable[[pd.DataFrame], ph.Release]:
    def release(df: pd.DataFrame) -> ph.Release:
        kept = [name for name in df if name != "y"]
        return ph.synthesize_table(df, epsilon=50, types={"y": kind}, keep=kept)

    return release


def neighbor(place: int, value: Any) -> pd.Series:
    """As pandas, or a CSV file, makes a column of it: the dtype follows."""
    values = WHOLE.tolist()
    values[place] = value
    return pd.Series(values)


COLUMNS: dict[str, dict[str, pd.Series]] = {
    "whole": {
        "int64": pd.Series(WHOLE), "int8": pd.Series(WHOLE, dtype="int8"),
        "one 3.0": neighbor(7, 3.0), "Int64": pd.Series(WHOLE, dtype="Int64"),
        "objects": pd.Series(WHOLE, dtype=object).infer_objects(),
    },
    "gaps": {
        "int64": pd.Series(WHOLE), "one empty": neighbor(7, None),
        "one empty Int64": neighbor(7, None).astype("Int64"),
        "one empty, one 3.0": neighbor(7, None).where(np.arange(N) != 3, 3.0),
    },
    "numbers": {
        "int64": pd.Series(WHOLE), "one 3.5": neighbor(7, 3.5), "one 3.25": neighbor(7, 3.25),
        "float32": neighbor(7, 3.5).astype("float32"),
    },
    "texts": {
        "texts": pd.Series(np.where(WHOLE > 4, "a", "b")),
        "objects": pd.Series(np.where(WHOLE > 4, "a", "b"), dtype=object),
        "categories": pd.Series(np.where(WHOLE > 4, "a", "b")).astype("category"),
        "one a": pd.Series(np.where(np.arange(N) > 0, "b", "a")).astype("category"),
    },
    "texts with gaps": {
        "texts": pd.Series(np.where(WHOLE > 4, "a", "b")),
        "one empty": pd.Series(np.where(WHOLE > 4, "a", "b")).where(X > 0, None),
        "one empty object": pd.Series(np.where(WHOLE > 4, "a", "b"), dtype=object).where(X > 0),
    },
    "logicals": {
        "bool": pd.Series(WHOLE > 4), "one empty": pd.Series(WHOLE > 4).astype(object).where(X > 0),
        "boolean": pd.Series(WHOLE > 4).astype("boolean").where(X > 0),
    },
}  # fmt: skip
"""Columns that differ in one record, or in nothing but the dtype that a file or program gave."""

POISSON, AMOUNTS = ph.Poisson("y ~ x"), ph.LogNormal("y ~ x", decimals=1)
STRICT: dict[str, tuple[str, Callable[[pd.DataFrame], ph.Release]]] = {
    "marginals whole": ("numbers", marginals(bins=BINS)),
    "marginals tenths": ("numbers", marginals(bins=BINS, step=0.1)),
    "marginals reals": ("numbers", marginals(bins=(0, 2.5, 11))),
    "marginals gaps": ("gaps", marginals(bins=BINS, missing=True)),
    "marginals codes": ("gaps", marginals(levels=tuple(range(1, 10)), missing=True)),
    "marginals texts": ("texts", marginals(levels=("a", "b"))),
    "marginals texts with gaps": ("texts with gaps", marginals(levels=("a", "b"), missing=True)),
    "marginals logicals": ("logicals", marginals(levels=(False, True), missing=True)),
    "histogram whole": ("numbers", histogram(lower=0, upper=20, n_bins=7)),
    "histogram tenths": ("numbers", histogram(lower=0, upper=20, n_bins=7, decimals=1)),
    "histogram reals": ("numbers", histogram(lower=0, upper=20.5, n_bins=7)),
    "censored counts": ("whole", censored(POISSON)),
    "censored amounts": ("numbers", censored(AMOUNTS)),
    "censored levels": ("texts", censored(ph.Bernoulli("y ~ x", levels=("a", "b")))),
    "censored codes": ("whole", censored(ph.Ordinal("y ~ x", levels=tuple(range(1, 10))))),
    "scores of amounts": ("numbers", scores(ph.LogNormal("y ~ x", decimals=1, zeros=True))),
    "scores with gaps": ("gaps", scores(ph.Poisson("y ~ x", missing=True))),
    "scores of texts with gaps": ("texts with gaps", scores(ph.Bernoulli(
        "y ~ x", levels=("a", "b"), missing=True))),
    "table of marginals": ("gaps", table(TYPES["y"])),
    "table of tenths": ("numbers", table(ph.Amounts(
        lower=0, upper=20, typical=5, spread=3, decimals=1))),
    "table of levels": ("texts with gaps", table(ph.Nominal(levels=("a", "b"), missing=True))),
}  # fmt: skip


def form_of(column: pd.Series) -> str:
    """All that the form tells: schema, missing values, and how CSV values are written."""
    frame = column.to_frame("y")
    cells = [line for line in frame.to_csv(index=False).splitlines()[1:] if line not in ("", '""')]
    decimals = max(len(cell.partition(".")[2]) for cell in cells)
    told = {
        "schema": table_schema(published(frame, ["y"]), "csv", ["y"]),
        "point": sorted({"." in cell for cell in cells}),
        "decimals": decimals if decimals <= 2 else "many",
    }
    return json.dumps(told, sort_keys=True)


@pytest.mark.parametrize("name", STRICT)
def test_the_form_is_that_of_the_declaration(name: str) -> None:
    columns, release = STRICT[name]
    found = {}
    for which, y in COLUMNS[columns].items():
        own = pd.DataFrame({"y": y, "x": X})
        before = own.copy()
        made = release(own)
        assert made.charge.kind == "strict", (which, assumptions(made.charge))
        found[which] = form_of(made.synthetic[0]["y"])
        pd.testing.assert_frame_equal(own, before)
    assert len(set(found.values())) == 1, found


@pytest.mark.parametrize("columns", [name for name in COLUMNS if name != "texts"])
def test_a_form_that_follows_the_data_is_told_apart(columns: str) -> None:
    """The control: values in the dtype of the data, as version 0.2 released them."""
    assert len({form_of(y) for y in COLUMNS[columns].values()}) > 1


def test_forms_are_what_keeps_neighbors_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the mechanisms: neither read nor cast in its form, a column tells."""
    for one in ("read", "cast"):
        monkeypatch.setattr(f"pyhybrid.models.columns.form.Form.{one}", lambda self, column: column)
    for name in ("censored counts", "censored amounts"):
        columns, release = STRICT[name]
        own = (pd.DataFrame({"y": y, "x": X}) for y in COLUMNS[columns].values())
        assert len({form_of(release(df).synthetic[0]["y"]) for df in own}) > 1


CELLS = {"whole": "4", "one empty": "", "one 3.5": "3.5", "one 3.0": "3.0", "one NA": "NA"}


@pytest.mark.parametrize(("how", "cells"), [
    (("--formula", "y ~ 1", "--mechanism",
      "perturbed_histogram:epsilon=50,lower=0,upper=20,n_bins=7"),
     ["whole", "one 3.5", "one 3.0"]),
    (("--types", "FOLDER/types.json", "--keep", "x", "--epsilon", "50", "--delta", "0"),
     list(CELLS)),
], ids=["histogram", "table"])  # fmt: skip
def test_the_public_folder_has_one_form(
    how: tuple[str, ...], cells: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Schema, metadata and cells of the file: one cell of the data changes none."""
    (tmp_path / "types.json").write_text(json.dumps({"y": TYPES["y"].as_dict()}))
    found = {}
    for which in cells:
        values = [str(v) for v in WHOLE]
        values[7] = CELLS[which]
        data, out = tmp_path / "data.csv", tmp_path / which
        lines = (f"{x:.3f},{y}" for x, y in zip(X, values, strict=True))
        data.write_text("\n".join(["x,y", *lines]) + "\n")
        given = [own.replace("FOLDER", str(tmp_path)) for own in how]
        code = command("synthesize", str(data), "--out", str(out), *given)
        assert code == 0, capsys.readouterr().err
        public = {  # how many bins are merged follows the noise
            path.name: re.sub(r"\d+ counts", "counts", path.read_text())
            for path in sorted((out / "public").iterdir())
        }
        y = [line.rpartition(",")[2] for line in public.pop("synthetic_1.csv").splitlines()[1:]]
        assert all(re.fullmatch(r"\d+|", cell) for cell in y), y
        found[which] = public
    first = found["whole"]
    for which, public in found.items():
        for name, text in public.items():
            assert text == first[name], (which, name)
