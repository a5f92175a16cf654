"""Relations that all records keep are found, of every kind; independent columns have none."""

import numpy as np
import pandas as pd
import pytest

from pyhybrid.tables.describe import relations_of

N = 600


def independent(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "age": rng.integers(18, 90, N), "wage": rng.gamma(2, 2e4, N).round(2),
        "visits": rng.poisson(3, N), "sex": rng.choice(["f", "m"], N),
        "region": rng.choice([*"nsew"], N),
        "some": np.where(rng.random(N) < 0.3, np.nan, 1.0 * rng.integers(1, 9, N)),
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_independent_columns_have_none(seed: int) -> None:
    df = independent(seed)
    assert relations_of(df) == []
    apart = relations_of(df.assign(above=df["age"] + 1000))
    assert apart[0] == "age - above is -1000"
    assert not any("<=" in line for line in apart), "it could not have failed"
    assert relations_of(df[:15].assign(total=df["age"] + df["visits"])) == [], "too few"


def test_each_kind_is_found_with_missing_values_too() -> None:
    df = independent(1)
    bonus = np.round(df["wage"] / 7, 2)
    school = pd.Series(np.arange(N) % 40)
    out = df["region"].isin(["n", "s"])
    df = df.assign(
        bonus=bonus, income=(df["wage"] + bonus).round(2), born=2015 - df["age"],
        first=df["age"] - df["visits"] % 5, hours=df["visits"].where(~out), school=school,
        size=school * 3 + 5, sexes=df["sex"] + "x", kind=np.where(school < 20, "a", "b"),
    )  # fmt: skip
    df.loc[3, ["income", "born", "first"]] = np.nan
    found = relations_of(df)
    for relation in (
        "income = wage + bonus", "age + born is 2015", "first <= age",
        'hours exactly if region == "n" or region == "s"', "size has one value for each school",
        "kind has one value for each school", "sexes has one value for each sex",
    ):  # fmt: skip
        assert any(line.startswith(relation) for line in found), (relation, found)
    broken = relations_of(df.assign(income=df["income"] + (df.index == 9)))
    assert "income = wage + bonus" not in broken, "one record is enough"


def test_totals_of_many_products_and_cells_empty_beyond_a_number() -> None:
    """Seen: parts with a column between them were no total; seconds were one of an age."""
    rng, df = np.random.default_rng(0), independent(3)
    a, b, c = rng.integers(0, 30, (3, N))
    job = np.where(df["age"] < 30, None, rng.choice(["yes", "no"], N))
    sec = 1_672_531_200 + rng.integers(0, 31_000_000, N)
    df = df[["age", "sex"]].assign(
        a=a, x=rng.integers(0, 9, N), b=b, y=rng.integers(0, 9, N), c=c, total=a + b + c,
        price=2 + a, qty=1 + rng.integers(0, 12, N), s1=a, s2=b, s3=200 - a - b - df["age"],
        children=np.where(df["age"] < 25, np.nan, 1.0 * rng.integers(0, 4, N)), job=job,
        pay=np.where(job == "yes", rng.integers(1, 99, N), np.nan), sec=sec, msf=sec + 0.25,
    )  # fmt: skip
    df["amount"] = df["price"] * df["qty"]
    found = relations_of(df.drop(columns=["s1", "s2"]))
    for relation in (
        "total = a + b + c", "amount = price * qty", "age + a + b + s3 is 200",
        "children exactly if age < 25", "job exactly if age < 30",
        'pay exactly if age < 30 or job == "no"',
    ):  # fmt: skip
        assert relation in found
    assert not any("sec" in line and "+" in line for line in found), found


def test_dates_have_an_order_too() -> None:
    rng = np.random.default_rng(2)
    start = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 4000, N), unit="D")
    end = start + pd.to_timedelta(rng.integers(0, 4000, N), unit="D")
    df = pd.DataFrame({"start day": start.strftime("%d.%m.%Y"), "end": end.date})
    assert "`start day` <= end" in relations_of(df)
