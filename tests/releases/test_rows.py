"""Rows drawn anew: from the synthetic ones, with their columns, whole households together."""

from pathlib import Path

import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from tests.refusals import refuses

OWN = ["household", "w", "age", "head", "owner", "visits", "income"]


@pytest.mark.parametrize("n_rows", [50, 1000])
def test_rows_are_drawn_from_the_synthetic_ones(
    release: ph.Release, n_rows: int, tmp_path: Path
) -> None:
    drawn = ph.releases.with_rows(release, n_rows, public=["household", "w", "age"], seed=4)
    for whole, table in zip(release.synthetic, drawn.synthetic, strict=True):
        assert list(table.columns) == OWN
        assert len(table) == n_rows
        known = set(whole[OWN].itertuples(index=False, name=None))
        assert set(table.itertuples(index=False, name=None)) <= known
        assert table.duplicated().sum() < n_rows / 2 or n_rows > len(whole)
    first, second = drawn.synthetic
    pd.testing.assert_series_equal(first["age"], second["age"], check_names=False)
    drawn.save(tmp_path / "out", keep=["household", "w"], report=False)
    again = ph.Release.load(tmp_path / "out")
    pd.testing.assert_frame_equal(again.synthetic[0], drawn.synthetic[0])
    assert again.charge == drawn.charge
    assert f"{n_rows} of {len(release.synthetic[0])} rows were drawn, with" in again.statement


@pytest.mark.parametrize("n_rows", [100, 700])
def test_households_that_agree_are_drawn_whole(release: ph.Release, n_rows: int) -> None:
    agreed = ph.releases.with_households(release, unit="household", one={"head": 1}, seed=1)
    drawn = ph.releases.with_rows(agreed, n_rows, public=["w", "age"], unit="household", seed=2)
    sizes = set(agreed.synthetic[0].groupby("household").size())
    for table in drawn.synthetic:
        assert n_rows <= len(table) < n_rows + max(sizes)
        assert (table.groupby("household")["head"].sum() == 1).all()
        assert set(table.groupby("household").size()) <= sizes
        assert list(table["household"].unique()) == list(range(1, table["household"].max() + 1))
    with pytest.raises(InvalidInput, match="must be drawn together: give unit='household'"):
        ph.releases.with_rows(agreed, n_rows, public=["household", "w", "age"])


def test_confidential_predictors_are_refused(release: ph.Release) -> None:
    with pytest.raises(InvalidInput, match="'age' is read as it is in the data"):
        ph.releases.with_rows(release, 50, public=["w", "household"])
    assert "w" not in ph.releases.with_rows(release, 50, public=["age"]).synthetic[0], (
        "weighs terms alone"
    )
    refuses("n_rows must be", ph.releases.with_rows, release, 1)
    refuses("public must be a list", ph.releases.with_rows, release, 50, public="age")
