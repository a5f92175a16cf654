"""Households that agree: what changes, and what must not."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from tests.refusals import refuses

RULES: dict[str, Any] = {
    "unit": "household", "same": ["owner"], "one": {"head": 1}, "sums": {"together": "income"},
    "eligible": "age >= 16",
}  # fmt: skip


def _heads(table: pd.DataFrame) -> pd.Series:
    return table.groupby("household")["head"].sum()


def test_households_agree_within_and_were_charged_by_household(
    release: ph.Release, persons: pd.DataFrame
) -> None:
    assert release.charge.unit == "household"
    agreed = ph.releases.with_households(release, **RULES, seed=1)
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


def test_at_most_one_gives_nobody_what_none_had(release: ph.Release) -> None:
    agreed = ph.releases.with_households(release, unit="household", at_most_one={"head": 1}, seed=2)
    before, after = _heads(release.synthetic[0]), _heads(agreed.synthetic[0])
    assert after.max() == 1
    assert ((after == 1) == (before > 0)).all()


def test_one_head_and_at_most_one_spouse_hold_together(persons: pd.DataFrame) -> None:
    """Whoever loses the one value must not take the other."""
    rng = np.random.default_rng(2)
    kinds = ["head", "spouse", "child"]
    table = persons[["household"]].assign(
        relation=pd.Categorical(rng.choice(kinds, len(persons)), categories=kinds)
    )
    made = ph.PerturbedHistogram(column="relation", levels=tuple(kinds), epsilon=8).release(
        table, n_synthetic=2
    )
    agreed = ph.releases.with_households(
        made, unit="household", one={"relation": "head"}, at_most_one={"relation": "spouse"}
    )
    for own in agreed.synthetic:
        counts = pd.crosstab(own["household"], own["relation"])
        assert (counts["head"] == 1).all()
        assert counts["spouse"].max() == 1
        assert (counts["child"] > 1).any()


@pytest.mark.parametrize(("changes", "message"), [
    ({"same": ["region"]}, "'region' must be a synthesized"), ({}, "must be given same, one"),
    ({"same": "owner"}, "same must be a list"), ({"one": {"head": 7}}, "it is in none"),
    ({"one": {"head": 1}, "same": ["head"]}, "no household can be of this composition"),
    ({"one": {"head": 1}, "at_most_one": {"head": 1}}, "no household can be"),
    ({"sums": {"together": "together"}}, "no household can be"),
    ({"sums": {"together": "age"}}, "'age' must be a synthesized"),
    ({"sums": {"age": "income"}}, "'age' must not be replaced by a sum: it is read by"),
    ({"unit": "family", "one": {"head": 1}}, "'family' must be a column"),
    ({"one": {"head": 1}, "eligible": "age > 200"}, "none meets it"),
])  # fmt: skip
def test_impossible_households_are_refused_in_one_line(
    release: ph.Release, changes: dict[str, Any], message: str
) -> None:
    given = {"unit": "household", **changes}
    refuses(message, ph.releases.with_households, release, hidden="\n", **given)
