"""Declared relations hold in every synthetic row, cost nothing, and call nothing."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.tables.after import apply, relations
from tests.refusals import refuses

pytestmark = [
    pytest.mark.usefixtures("opendp"),
    pytest.mark.filterwarnings("ignore:.*records are too few"),
]
N = 1500
TYPES: dict[str, Any] = {
    "sex": ph.Nominal(levels=("f", "m")),
    "births": ph.Counts(upper=9, missing=True),
    "start": ph.Counts(upper=60),
    "end": ph.Counts(upper=60),
    "wage": ph.Real(lower=0, upper=100, decimals=1),
    "bonus": ph.Real(lower=0, upper=20, decimals=2),
    "joined": ph.Dates(lower="2000-01-01", upper="2009-12-31"),
    "left": ph.Dates(lower="2000-01-01", upper="2019-12-31", codes=("open",)),
}
AFTER = [
    'births exactly if sex == "m"', "start <= end", "pay = wage + bonus", "joined <= left",
    "rich = pay > 60", "days = left - joined",
]  # fmt: skip


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m"], N)
    start, wage = rng.integers(0, 40, N), rng.uniform(0, 100, N).round(1)
    joined = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 3600, N), unit="D")
    left = (joined + pd.to_timedelta(rng.integers(0, 3600, N), unit="D")).strftime("%Y-%m-%d")
    return pd.DataFrame({
        "sex": sex, "births": np.where(sex == "m", np.nan, rng.poisson(2, N).clip(0, 9)),
        "start": start, "end": start + rng.integers(0, 20, N), "wage": wage,
        "bonus": (wage / 5).round(2), "pay": (wage + (wage / 5).round(2)).round(2),
        "joined": joined.strftime("%Y-%m-%d"), "left": np.where(rng.random(N) < 0.2, "open", left),
        "public": np.arange(N) % 3,
    })  # fmt: skip


def test_relations_hold_in_each_row_at_the_same_charge(people: pd.DataFrame) -> None:
    options: dict[str, Any] = {"epsilon": 4, "types": TYPES, "keep": ["public"]}
    odd = people.astype({"pay": object})  # seen: one text refused a release, digits were an error
    odd.loc[[3, 4], "pay"] = "x", "9" * 20
    release = ph.synthesize_table(odd, after=["pay <= 200", *AFTER], n_synthetic=2, **options)
    assert release.origin is not None
    assert release.origin.relations["pay = wage + bonus"][0] == pytest.approx(1 - 1 / N)
    plain = ph.synthesize_table(people.drop(columns="pay"), n_synthetic=2, **options)
    assert release.charge.epsilon == plain.charge.epsilon
    assert "pay = wage + bonus" in release.statement
    names = [*people, "rich", "days"]
    for made in release.synthetic:
        assert [*made] == names
        assert (made["births"].isna() == (made["sex"] == "m")).all()
        assert (made["start"] <= made["end"]).all()
        np.testing.assert_allclose(made["pay"], made["wage"] + made["bonus"], atol=1e-9)
        assert (made["rich"] == (made["pay"] > 60)).all()
        known = made[made["left"] != "open"]
        assert 0 < len(known) < N
        days = pd.to_datetime(known["left"]) - pd.to_datetime(known["joined"])
        assert (days >= pd.Timedelta(0)).all()
        assert (known["days"] == days.dt.days).all()
        assert made.loc[made["left"] == "open", "days"].isna().all()
        assert made["public"].equals(people["public"]), "public columns stay where they are"
    broken = plain.synthetic[0]
    assert (broken["start"] > broken["end"]).any(), "the check can fail"


def test_rules_keep_what_public_columns_tell() -> None:
    """Rows are replaced by those with the nearest public values."""
    kinds: dict[str, Any] = {"a": ph.Counts(upper=9), "b": ph.Counts(upper=9)}
    table = pd.DataFrame(
        {"g": [0, 0, 0, 1, 1, 1], "a": [1, 5, 2, 7, 9, 8], "b": [1, 4, 2, 7, 1, 9]}
    )
    (rule,) = relations(["a <= b"], [*table], ["a", "b"])
    made = apply(table, [rule], kinds, ["a", "b"], np.random.default_rng(0))
    assert set(made["a"][:3]) == {1, 2}
    assert set(made["a"][3:]) == {7, 8}
    assert made["g"].equals(table["g"])


@pytest.mark.parametrize(("text", "message"), [
    ("a <= ", "cannot be read"), ("a.b <= 1", "Attribute is none of these"),
    ("__import__('os').system('x') == 1", "Call is none"), ("a[0] == 1", "Subscript is none"),
    ("(lambda: 1) == 1", "none of these"), ("a ** 9 == 1", "Pow is none"),
    ("nope <= a", "'nope' is none"), ("x = nope + 1", "'nope' is none"),
    ("g == 1", "is synthesized"),
    ("g if a == 1", "is synthesized"), ("x = x + 1", "computed once"), ("a + b", "must compare"),
    ('s < "k"', "cannot be computed"), ("s == 1", "cannot be computed"),
    ("a == 'x'", "cannot be computed"), ("y = s + 1", "cannot be computed"),
    ("y = 'k'", "columns of numbers"), ("1 == 1", "synthesized"),
    ("a == 1 and not b", "cannot be computed"),
    ("a and b == 1", "cannot be computed"), ("x = (a if b == 1 else 2)", "IfExp is none"),
    ("f'{a}' == 1", "none of"), ("a <= 1 / 0", "cannot be computed"),
])  # fmt: skip
def test_what_is_not_understood_is_refused_before_anything_is_spent(
    text: str, message: str, people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = pd.DataFrame({"a": [1, 2] * 20, "b": [2, 2] * 20, "s": ["k", "l"] * 20, "g": [1, 2] * 20})
    types: dict[str, Any] = {"a": ph.Counts(upper=3), "b": ph.Counts(upper=3),
                             "s": ph.Nominal(levels=("k", "l"))}  # fmt: skip
    monkeypatch.setattr(ph.NoisyMarginals, "release", None)
    refuses(message, ph.synthesize_table, df, epsilon=1, types=types, keep=["g"], after=[text])


def test_a_missing_value_breaks_no_rule_and_empties_nothing() -> None:
    df = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [0.0, 1.0, np.nan]})
    rule, blank = relations(["a <= b", "a exactly if b == 1"], [*df], ["a", "b"])
    assert rule.broken(df, {}).tolist() == [True, False, False]
    assert blank.broken(df, {}).tolist() == [False, False, False]
    amounts = {"a": ph.Counts(upper=9, codes=(-9,))}
    coded = pd.DataFrame({"a": [-9, 2, 3], "b": [0, 5, 0]})
    for text, held in (
        ("b <= a", [False, True, False]),
        ("a == -9 or b == 5", [False, False, True]),
    ):
        (own,) = relations([text], [*coded], ["a"])
        assert own.broken(coded, amounts).tolist() == held, "a code is no amount"
    (both,) = relations(["not (a > 2 or b > 0) and 0 <= a < 9"], [*df], ["a"])
    assert both.broken(df, {}).tolist() == [False, True, True]


@pytest.mark.parametrize("code", ["9999-12-31", "1111-11-11"])
def test_dates_that_stand_for_something_else_break_no_rule(code: str) -> None:
    """Seen: an error of pandas, which quoted them, on the way of a strict release."""
    days = ["2001-05-06", "2003-01-01", code]
    kinds = {"a": ph.Dates(lower="2000-01-01", upper="2009-12-31", codes=(code,)),
             "b": ph.Dates(lower="2000-01-01", upper="2009-12-31", format="date")}  # fmt: skip
    table = pd.DataFrame({"a": days, "b": pd.to_datetime(["2002-01-01"] * 3).date})
    for text in ("a <= b", "b >= a"):
        (relation,) = relations([text], ["a", "b"], ["a", "b"])
        assert relation.broken(table, kinds).tolist() == [False, True, False]


def test_the_owners_report_measures_what_was_declared(people: pd.DataFrame) -> None:
    after = ["start <= end", "start >= 10"]
    release = ph.synthesize_table(
        people[["start", "end", "sex"]], epsilon=4, after=after,
        types={name: TYPES[name] for name in ("start", "end", "sex")},
    )  # fmt: skip
    assert release.origin is not None
    assert release.origin.relations["start <= end"] == (1, 1)
    share, of_rows = release.origin.relations["start >= 10"]
    assert (share, of_rows) == (pytest.approx((people["start"] >= 10).mean()), 1)
    page = ph.reports.release_pages(release)["report.html"]
    assert "Declared relations" in page
    assert f"{share:.1%}" in page
