"""Households that agree, totals that are met, rows drawn anew: what changes, and what must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.errors import InvalidInput


@pytest.fixture(scope="module")
def persons() -> pd.DataFrame:
    """Persons in 120 households, one head in each, whose incomes add up."""
    rng = np.random.default_rng(5)
    size = rng.integers(1, 5, 120)
    household = np.repeat(np.arange(120), size)
    n = household.size
    head = np.r_[True, np.diff(household) > 0].astype(int)
    age = np.where(head == 1, rng.integers(20, 80, n), rng.integers(0, 80, n))
    income = np.exp(3 + 0.5 * head + rng.normal(0, 0.4, 120)[household] + rng.normal(0, 0.3, n))
    table = pd.DataFrame(
        {
            "household": household,
            "w": rng.uniform(1, 4, 120).round(2)[household],
            "region": rng.choice(["north", "south"], 120)[household],
            "age": age,
            "head": head,
            "owner": rng.integers(0, 2, 120)[household],
            "visits": rng.poisson(2 + head),
            "income": income.round(2),
        }
    )
    return table.assign(together=table.groupby("household")["income"].transform("sum"))


@pytest.fixture(scope="module")
def release(persons: pd.DataFrame) -> ph.Release:
    design = ph.SurveyDesign(weights="w", unit="household", population=900)
    steps = [
        ph.Unweighted(ph.Bernoulli("head ~ age", prior="normal"), design=design),
        ph.Unweighted(ph.Bernoulli("owner ~ 1", prior="normal"), design=design),
        ph.Unweighted(ph.Poisson("visits ~ head", prior="normal"), design=design),
        ph.Unweighted(ph.LogNormal("income ~ head", decimals=2, prior="normal"), design=design),
    ]
    return ph.SequentialSynthesis(steps).release(persons, n_synthetic=2, seed=3, engine="embedded")


RULES: dict[str, Any] = {
    "unit": "household",
    "same": ["owner"],
    "one": {"head": 1},
    "sums": {"together": "income"},
    "eligible": "age >= 16",
}


def _heads(table: pd.DataFrame) -> pd.Series:
    return table.groupby("household")["head"].sum()


def test_households_agree_within_and_were_charged_by_household(
    release: ph.Release, persons: pd.DataFrame
) -> None:
    assert release.charge.unit == "household"
    agreed = ph.with_households(release, **RULES, seed=1)
    for free, table in zip(release.synthetic, agreed.synthetic, strict=True):
        assert (_heads(free) != 1).any(), "the control"
        assert (free.groupby("household")["owner"].nunique() > 1).any(), "the control"
        assert (_heads(table) == 1).all()
        assert (table.groupby("household")["owner"].nunique() == 1).all()
        summed = table.groupby("household")["income"].transform("sum")
        np.testing.assert_allclose(table["together"], summed)
        adults = (persons["age"] >= 16).groupby(persons["household"]).any()
        young = table.loc[(table["head"] == 1) & (table["age"] < 16), "household"]
        assert not adults[young].any()
        for column in ("household", "w", "region", "age", "visits", "income"):
            pd.testing.assert_series_equal(table[column], free[column])
        assert (table.dtypes == free.dtypes).all()
    assert agreed.charge == release.charge
    assert "together" in agreed.synthesized
    assert agreed.settings["afterwards"][0]["households"]["one"] == {"head": 1}


def test_at_most_one_gives_nobody_what_none_had(release: ph.Release) -> None:
    agreed = ph.with_households(release, unit="household", at_most_one={"head": 1}, seed=2)
    before, after = _heads(release.synthetic[0]), _heads(agreed.synthetic[0])
    assert after.max() == 1
    assert ((after == 1) == (before > 0)).all()


def test_an_agreeing_release_is_saved_with_what_was_done(
    release: ph.Release, tmp_path: Path
) -> None:
    agreed = ph.with_households(release, **RULES, seed=1)
    agreed.save(tmp_path / "out", keep=["household"], drop=["w"], report=False)
    assert "afterwards" in (tmp_path / "out" / "public" / "privacy_statement.md").read_text()
    again = ph.Release.load(tmp_path / "out")
    assert (_heads(again.synthetic[0]) == 1).all()


# --- Totals -----------------------------------------------------------------------------------


def test_whole_numbers_meet_public_totals_and_stay_whole(release: ph.Release) -> None:
    scaled = ph.with_totals(release, "visits", {"north": 400, "south": 333}, by="region")
    for free, table in zip(release.synthetic, scaled.synthetic, strict=True):
        sums = table.groupby("region")["visits"].sum()
        assert dict(sums) == {"north": 400, "south": 333}
        assert table["visits"].dtype == free["visits"].dtype
        assert (table["visits"][free["visits"] == 0] == 0).all()
        factor = table["region"].map({"north": 400, "south": 333}) / free.groupby("region")[
            "visits"
        ].transform("sum")
        assert ((table["visits"] - free["visits"] * factor).abs() < 1).all()
    assert scaled.charge == release.charge


def test_weighted_totals_of_amounts(release: ph.Release) -> None:
    scaled = ph.with_totals(release, "income", 1e6, weights="w")
    for table in scaled.synthetic:
        assert (table["w"] * table["income"]).sum() == pytest.approx(1e6, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("age", 100), "'age' must be a synthesized column"),
        (("visits", 100.5), "must be a whole number"),
        (("visits", -1), "totals must be >= 0"),
        (("visits", {"north": 1}), "numbers by level of the column in by="),
        (("income", 5, "wages"), "'wages' must be a column"),
    ],
)
def test_bad_totals_are_named(release: ph.Release, arguments: Any, message: str) -> None:
    column, totals, *weights = arguments
    with pytest.raises(InvalidInput, match=message):
        ph.with_totals(release, column, totals, weights=weights[0] if weights else None)


# --- Rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [50, 1000])
def test_rows_are_drawn_from_the_synthetic_ones(
    release: ph.Release, n_rows: int, tmp_path: Path
) -> None:
    drawn = ph.with_rows(release, n_rows, public=["household", "w", "age"], seed=4)
    own = ["household", "w", "age", "head", "owner", "visits", "income"]
    for whole, table in zip(release.synthetic, drawn.synthetic, strict=True):
        assert list(table.columns) == own
        assert len(table) == n_rows
        known = set(whole[own].itertuples(index=False, name=None))
        assert set(table.itertuples(index=False, name=None)) <= known
        assert table.duplicated().sum() < n_rows / 2 or n_rows > len(whole)
    drawn.save(tmp_path / "out", keep=["household", "w"])
    again = ph.Release.load(tmp_path / "out")
    pd.testing.assert_frame_equal(again.synthetic[0], drawn.synthetic[0])
    assert again.charge == drawn.charge


def test_confidential_predictors_are_refused(release: ph.Release) -> None:
    with pytest.raises(InvalidInput, match="'age' is read as it is in the data"):
        ph.with_rows(release, 50)


def test_what_was_not_synthesized_is_not_changed(release: ph.Release) -> None:
    for changes, message in (
        ({"same": ["region"]}, "'region' must be a synthesized"),
        ({"one": {"head": 7}}, "it is in none"),
        ({"sums": {"together": "age"}}, "'age' must be a synthesized"),
        ({"unit": "family"}, "'family' must be a column"),
    ):
        with pytest.raises(InvalidInput, match=message):
            ph.with_households(release, **{"unit": "household", **changes})
