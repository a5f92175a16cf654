"""Columns that need a decision before they are published: found, and others left alone."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.fitting.disclosive_columns import exposed_columns, repeated_identifiers

N = 400
RNG = np.random.default_rng(5)
INCOME = np.exp(RNG.normal(10, 0.6, N)).round(2)
COUNT = RNG.poisson(3, N)
ENDS = ("man", "berg", "ski", "sen", "er", "elli", "ova", "ic", "ou", "ham")
SURNAMES = np.array([f"{a}{b}{c}" for a in "KLMNP" for b in ("ar", "ol", "in") for c in ENDS])
TOP = float(np.quantile(INCOME, 0.9))
GIVEN_AWAY: dict[str, Any] = {
    "name": RNG.choice(SURNAMES, N), "surname_of_owner": RNG.choice(SURNAMES, N),
    "who": [f"{SURNAMES[k % 150]} {SURNAMES[(7 * k) % 150]}" for k in range(N)],
    "person_id": np.arange(N) // 2, "record": RNG.permutation(N) + 1,
    "social": RNG.choice(900_000_000, N, replace=False) + 100_000_000,
    "pidnum": RNG.integers(0, 10_000_000, N), "idcode": RNG.integers(0, N, N),
    "file_no_twice": [f"ZH-{max(k, 1)}" for k in range(N)], "account": np.maximum(np.arange(N), 1),
    "file_no_shared": [f"AZ-{k % 350:04d}/19" for k in range(N)],
    "policy": 100_000 + 7 * (np.arange(N) % 350), "pairs": RNG.permutation(np.arange(N) // 2),
    "zeros": [f"{7 * (k % 200):05d}" for k in range(N)],
    "seen": pd.to_timedelta(np.maximum(np.arange(N), 3), unit="s"),
    "social_or_missing": pd.array([*range(300_000, 300_000 + N - 1), None], dtype="Int64"),
    "code": [f"x{k:04d}" for k in range(N)],
    "mail": [f"{SURNAMES[k % 140]}@b.org" for k in range(N)],
    "remark": [f"was seen {k % 90} times at the clinic in town" for k in range(N)],
    "levels": pd.Categorical([f"x{k:04d}" for k in range(N)]), "twice": 2 * INCOME,
    "log": np.log(INCOME), "negative": -INCOME, "rounded": INCOME.round(-3),
    "rank": pd.Series(INCOME).rank() + 0.5, "band": pd.cut(INCOME, 7).astype(str),
    "ordered_band": pd.cut(INCOME, 7), "high": INCOME > TOP,
    "with_gaps": np.where(np.arange(N) % 3, INCOME, np.nan), "coded": (COUNT * 7919) % 13,
    "word": np.array(list("qzxvbnmklpoiuytrew"))[COUNT],
}  # fmt: skip
DAYS = pd.date_range("2020-01-01", periods=300).strftime("%Y-%m-%d").tolist()
HARMLESS: dict[str, Any] = {
    "age": RNG.integers(18, 90, N), "region": RNG.choice(["north", "east", "south"], N),
    "score": RNG.normal(size=N), "salary": RNG.integers(10_000, 5_000_000, N) // 10,
    "noisy": INCOME * np.exp(RNG.normal(0, 0.05, N)), "rare": np.arange(N) == 17,
    "constant": np.ones(N), "missing": np.full(N, np.nan),
    "day": pd.date_range("2020-01-01", periods=N).to_numpy()[RNG.integers(0, 90, N)],
    "sex": pd.Categorical(RNG.choice(["f", "m"], N)), "note": RNG.choice(["", "x"], N),
    "width": RNG.integers(0, 9, N), "day_text": RNG.choice(DAYS, N), "yyyymmdd": RNG.choice(
        [int(day.replace("-", "")) for day in DAYS], N),
    "revenue": [f"{1000 * k:,}" for k in RNG.integers(100, 999, N)],
    "price": RNG.integers(100, 1000, N) * 1000, "house": RNG.permutation(N) * 90 + 200_000,
    "grams": RNG.integers(0, N, N), "amount_paid": RNG.integers(0, N, N),
    "uric_acid": RNG.integers(0, N, N), "triglycerid": RNG.integers(0, N, N),
    "noted": np.where(RNG.random(N) < 0.1, "*", RNG.integers(0, 900, N).astype(str)),
}  # fmt: skip


def _found(name: str) -> dict[str, str]:
    column = {**GIVEN_AWAY, **HARMLESS}[name]
    table = pd.DataFrame({"income": INCOME, "count": COUNT, name: column})
    return exposed_columns(table, ("income", "count"))


@pytest.mark.parametrize("name", GIVEN_AWAY)
def test_what_gives_people_or_values_away_is_named(name: str) -> None:
    found = _found(name)
    assert list(found) == [name]
    values = [str(v) for v in np.asarray(GIVEN_AWAY[name], dtype=object)[:40]]
    assert not any(value in found[name] for value in values if len(value) > 3)


@pytest.mark.parametrize("name", HARMLESS)
def test_other_columns_are_left_alone(name: str) -> None:
    """The control: what is found must be worth a decision."""
    assert _found(name) == {}


@pytest.mark.parametrize("kind", ["text", "category", "bool", "objects"])
def test_a_copy_of_an_outcome_of_levels_is_named(kind: str) -> None:
    """Seen: a synthesized column of text was not looked at, so that its copy could be published."""
    voted = RNG.random(N) < 0.4
    text = np.where(voted, "yes", "no")
    columns: dict[str, Any] = {
        "text": text, "category": pd.Categorical(text), "bool": voted,
        "objects": voted.astype(object),
    }  # fmt: skip
    region = RNG.choice(["north", "east", "south"], N)
    other = RNG.integers(0, 2, N)
    table = pd.DataFrame({"y": columns[kind], "copy": voted + 1, "r": region, "o": other})
    assert list(exposed_columns(table, ("y",))) == ["copy"]
    assert list(exposed_columns(table.assign(copy=np.where(voted, "b", "a")), ("y",))) == ["copy"]


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_give_an_outcome_together_are_named(seed: int) -> None:
    """Seen: a share was synthesized, and both of its amounts were published beside it."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.lognormal(10, 1, (300, 3)), columns=["wage", "a b", "rent"])
    table["rent"] *= rng.random(300) < 0.5
    total = table.assign(y=table["wage"] + table["rent"])
    share = table.assign(y=(100 * table["wage"] / table["a b"]).round(2))
    said = "together with 'wage' it gives the values of 'y', which is synthesized"
    for made, last in ((total, "rent"), (share, "a b")):
        assert exposed_columns(made, ("y",)) == {last: said}
        assert not exposed_columns(made.drop(columns=last), ("y",))
    noisy = total.assign(y=total["y"] * np.exp(rng.normal(0, 0.1, 300)))
    assert not exposed_columns(noisy, ("y",))


def test_all_that_gives_an_outcome_is_named_dates_and_texts_too() -> None:
    """Seen: one column of a total was named; without it a second one told the same."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 40, (300, 3)), columns=["a", "y", "c"])
    table["total"], table["rest"] = table.sum(axis=1), table["y"] + table["c"]
    found = exposed_columns(table, ("y",))
    assert {*found} == {"total", "rest"}
    assert not exposed_columns(table.drop(columns=[*found]), ("y",))
    days = rng.integers(0, 300, 300), rng.integers(1, 25, 300)
    start = pd.Timestamp("2023-01-01") + pd.to_timedelta(days[0], unit="D")
    end = start + pd.to_timedelta(days[1], unit="D")
    stay = pd.DataFrame({"y": days[1], "in": start.strftime("%d.%m.%Y"), "out": end})
    money = pd.DataFrame({"y": days[0], "other": 900 + days[1]})
    money["sum"] = [f"{y + other:,}" for y, other in money.to_numpy()]
    for made, last in ((stay, "out"), (money, "sum")):
        assert list(exposed_columns(made, ("y",))) == [last]


def test_labels_of_rows_are_looked_at() -> None:
    table = pd.DataFrame({"y": COUNT}, index=[f"person {k * k}" for k in range(N)])
    assert list(exposed_columns(table, ("y",))) == ["index"]
    assert list(exposed_columns(table.rename_axis("who"), ("y",))) == ["who"]
    assert exposed_columns(table.reset_index(drop=True), ("y",)) == {}
    counted = table.set_axis([f"row {k + 3}" for k in range(N)])
    assert exposed_columns(counted, ("y",)) == {}, "they tell the order, which is public"
    keys = pd.Index(7 * RNG.permutation(N) + 123_456)
    assert list(exposed_columns(table.set_axis(keys.rename("key")), ("y",))) == ["key"]
    assert list(exposed_columns(table.set_axis(pd.Index(COUNT, name="v")), ("y",))) == ["v"]
    assert list(exposed_columns(table.set_axis(pd.Index(COUNT, name=0)), ("y",))) == ["index"]
    assert exposed_columns(table.set_axis(keys), ("y",)) == {}, "rows of a part of another table"


@pytest.mark.parametrize("seed", range(8))
def test_chance_alone_is_no_relation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 60))
    table = pd.DataFrame({"y": rng.poisson(2, n)})
    for k in range(60):
        table[f"c{k}"] = rng.integers(0, rng.integers(2, 6), n)
    assert exposed_columns(table, ("y",)) == {}


def test_cells_that_are_lists_or_bytes_are_compared_by_their_text() -> None:
    few = pd.DataFrame({"y": [1.5, 2.5, 3.5, 4.5], "z": [2, 4, 6, 8], "id": list("abcd")})
    assert exposed_columns(few, ("y",)) == {}, "too few records"
    table = pd.DataFrame({"y": np.arange(24) % 7, "x": [[i % 3, 1] for i in range(24)]})
    assert exposed_columns(table, ("y",)) == {}
    made = table.assign(x=[[v] for v in table["y"]], b=[b"\xff", b"p"] * 12)
    assert [*exposed_columns(made, ("y",)), *exposed_columns(made, ("x",))] == ["x", "y"]


def test_identifiers_with_several_rows_each_are_named() -> None:
    """By their names; the controls are unique, of few values, or most often 0."""
    k = np.arange(300)
    table = pd.DataFrame({"pid": k // 3, "Patient_No": [f"p{each % 60}" for each in k], "id": k,
                          "household": k % 5, "user_id": np.where(k % 2, 0, k), "wave": k % 3,
                          "USUBJID": [f"A-{each // 3}" for each in k], "Patientennummer": k // 3,
                          "MRN": k // 3, "bsn": k // 3.0, "nir": k // 3 / 7, "lipid": k // 3,
                          "age_then": 20 + np.sqrt(k // 3), "idcode": k // 2})  # fmt: skip
    assert repeated_identifiers(table) == [
        "pid", "Patient_No", "USUBJID", "Patientennummer", "MRN", "bsn", "idcode"]  # fmt: skip


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_persons_of_a_panel_are_seen_whatever_their_column_is_named(text: bool, seed: int) -> None:
    """Seen: only names were looked at. The controls: one row a person, and columns by chance."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(2, 21, 60)
    who, n = np.repeat(rng.permutation(60), rows), int(rows.sum())
    waves = np.concatenate([rng.choice(20, own, replace=False) for own in rows])
    panel = pd.DataFrame({"nr": [f"A{k:03d}" for k in who] if text else who, "wave": waves,
                          "born": who % 23, "area": rng.integers(0, 60, n)})  # fmt: skip
    assert repeated_identifiers(panel.sample(frac=1, random_state=seed)) == ["nr"]
    assert repeated_identifiers(panel.drop_duplicates("nr")) == []
    assert repeated_identifiers(panel.assign(wave=rng.permutation(waves))) == []
