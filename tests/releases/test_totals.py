"""Totals that are public: met by whole numbers, decimals, weighted and bounded values."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from tests.refusals import refuses


def test_whole_numbers_meet_public_totals_and_stay_whole(release: ph.Release) -> None:
    wanted = {"north": 400, "south": 333}
    scaled = ph.releases.with_totals(release, "visits", wanted, by="region")
    for free, table in zip(release.synthetic, scaled.synthetic, strict=True):
        assert dict(table.groupby("region")["visits"].sum()) == wanted
        assert table["visits"].dtype == free["visits"].dtype
        assert (table["visits"][free["visits"] == 0] == 0).all()
        by_region = free.groupby("region")["visits"].transform("sum")
        factor = table["region"].map(wanted) / by_region
        assert ((table["visits"] - free["visits"] * factor).abs() < 1).all()
    assert scaled.charge == release.charge


def test_decimals_are_kept_and_their_total_is_met(release: ph.Release) -> None:
    for table in ph.releases.with_totals(release, "income", 12345.67).synthetic:
        cents = (table["income"] * 100).round()
        np.testing.assert_array_equal(table["income"], cents / 100)
        assert cents.sum() == 1234567


def test_sums_of_households_follow_their_parts(release: ph.Release) -> None:
    agreed = ph.releases.with_households(release, unit="household", sums={"together": "income"})
    for table in ph.releases.with_totals(agreed, "income", 50_000).synthetic:
        summed = table.groupby("household")["income"].transform("sum")
        np.testing.assert_allclose(table["together"], summed)
    with pytest.raises(InvalidInput, match="is the sum of another column: scale that one"):
        ph.releases.with_totals(agreed, "together", 50_000)


def test_weighted_totals_of_amounts(release: ph.Release) -> None:
    for table in ph.releases.with_totals(release, "income", 1e6, weights="w").synthetic:
        off = (table["w"] * table["income"]).sum() - 1e6
        assert abs(off) <= 0.005 * table["w"].sum(), "the rounding to cents"


def test_none_exceeds_the_declared_upper_end() -> None:
    """The others are scaled further; a total that all rows at the end do not reach is refused."""
    table = pd.DataFrame({"y": np.random.default_rng(1).uniform(0, 10, 200)})
    made = ph.PerturbedHistogram(column="y", lower=0, upper=10, n_bins=20, epsilon=4).release(table)
    scaled = ph.releases.with_totals(made, "y", 1500).synthetic[0]["y"]
    assert scaled.sum() == pytest.approx(1500)
    assert scaled.max() == 10
    assert (made.synthetic[0]["y"] * 1500 / made.synthetic[0]["y"].sum()).max() > 10, "the control"
    refuses("cannot be met: rows above 0 are at most 10", ph.releases.with_totals, made, "y", 2001)


@pytest.mark.parametrize(("column", "totals", "more", "message"), [
    ("age", 100, {}, "'age' must be a synthesized column"),
    ("head", 100, {}, "must hold amounts, for a total: it has levels"),
    ("visits", 100.5, {}, "must be a whole number of its smallest step"),
    ("income", 100.001, {}, "must be a whole number of its smallest step"),
    ("visits", -1, {}, "totals must be >= 0"),
    ("visits", {}, {"by": "region"}, "must name at least one level"),
    ("visits", {"north": 1}, {}, "numbers by level of the column in by="),
    ("visits", {"nroth": 1}, {"by": "region"}, "'nroth' has none"),
    ("visits", 100, {"weights": "w"}, "take no weights"),
    ("income", 5, {"weights": "wages"}, "'wages' must be a column"),
])  # fmt: skip
def test_totals_that_cannot_be_met_are_refused_in_one_line(
    release: ph.Release, column: str, totals: Any, more: dict[str, str], message: str
) -> None:
    refuses(message, ph.releases.with_totals, release, column, totals, hidden="\n", **more)


def test_decimals_and_end_of_a_domain_are_kept() -> None:
    """Written as declared: no 10.100000000000001 after a column was scaled."""
    table = pd.DataFrame({"y": np.round(np.random.default_rng(5).gamma(2, 3, 400), 1).clip(0, 60)})
    domain = {"y": ph.mechanisms.ColumnDomain(bins=(0, 2.5, 6.6, 12, 60), step=0.1)}
    release = ph.NoisyMarginals(domain=domain, epsilon=50).release(table)
    made = ph.releases.with_totals(release, "y", 2500.3).synthetic[0]["y"]
    assert math.isclose(made.sum(), 2500.3)
    assert made.max() <= 60
    assert made.map(lambda y: len(str(y).partition(".")[2])).max() == 1
