"""What is said of a table, and what is refused: one line each, without a value of the data."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from tests.refusals import refuses
from tests.tables.conftest import TYPES

WHOLE: dict[str, Any] = {"sensitive": ["voted", "region"], "id": "person", "drop": ["name"]}


@pytest.mark.parametrize(("changes", "message"), [
    ({"sensitive": ["votd"]}, r"sensitive must name columns .*'votd' is none .did you mean"),
    ({"keep": ["agee"]}, "keep must name columns .*'agee' is none"),
    ({"sensitive": []}, "at least one column"), ({"sensitive": "voted"}, "must be a list"),
    ({"keep": ["voted"]}, "'voted' must not be sensitive and kept: .* no public predictor"),
    ({"drop": ["voted", "name"]}, "one role: found sensitive and drop"),
    ({"id": ["person", "name"]}, "id must name one column"),
    ({"id": "sex", "drop": ["name", "person"]}, "id 'sex' must name each row once: row 10"),
    ({"types": {"voted": ph.Nominal(levels=("no", "maybe"))}}, "declared levels only: row 1"),
    ({"types": {"nothing": TYPES["voted"]}}, "types must name columns"),
    ({"types": {"voted": "yes"}}, "must be a kind of column"),
    ({"rules": ["wage > income"]}, "rule 'wage > income' must be met by some row: none"),
    ({"rules": ["wage <= incme"]}, "'incme' is none .did you mean 'income'"),
    ({"rules": ["name == 'x'"]}, "'name' is none"),
    ({"order": ["voted"]}, "order must be 'auto' or name each sensitive column once"),
])  # fmt: skip
def test_bad_input_is_refused_in_one_line(
    survey: pd.DataFrame, changes: dict[str, Any], message: str
) -> None:
    hidden = ("\n", "'yes'", "'p0001'", "'north'")
    refuses(message, lambda: ph.Table(survey, **{**WHOLE, **changes}).plan(), hidden=hidden)


def test_columns_without_values_or_with_one_are_refused(survey: pd.DataFrame) -> None:
    for values, message in (("same", "vary: all rows have the same value"),
                            (None, "have values: all are missing")):  # fmt: skip
        refuses(f"'voted' must {message}", ph.Table, survey.assign(voted=values), **WHOLE)


def test_the_last_row_that_meets_a_rule_is_not_told_by_a_refusal() -> None:
    """Seen: a table was refused without it. The controls: a rule that no declared level meets, and
    types that are read from the data, which no strict charge takes."""
    levels = ph.Nominal(levels=("u", "v"))
    told = {"sensitive": ["a", "b"], "rules": ["a == 'u' -> b == 'u'"]}
    for last in ("u", "v"):
        df = pd.DataFrame({"a": ["u"] * 30, "b": ["v"] * 29 + [last], "x": range(30)})
        types = dict.fromkeys("ab", levels)
        assert ph.Table(df, types=types, **told).rules
        unmet = {**told, "rules": ["x < 90 -> a == 'w'"]}
        refuses("must be met by some row", ph.Table, df, types=types, **unmet)
    refuses("must be met by some row|must vary", ph.Table, df, **told)


@pytest.mark.parametrize("values", [("no", "yes"), (2, 3), (None, "no")])
def test_the_last_record_of_a_level_is_not_told_by_a_refusal(values: tuple[Any, Any]) -> None:
    """Seen: a table was refused where all rows had one declared value, and released with one row of
    another. The control: a type that is read from the data cannot be had of one value."""
    same, other = values
    whole = pd.DataFrame({"v": pd.Series([same] * 60, dtype=object), "x": np.arange(60) % 5})
    one = whole.copy()
    one.at[7, "v"] = other
    kind = (
        ph.Counts(lower=0, upper=9) if same == 2 else ph.Nominal(levels=("no", "yes"), missing=True)
    )
    for df in (whole.infer_objects(), one.infer_objects()):
        plan = ph.Table(df, sensitive=["v"], types={"v": kind}).plan()
        release = ph.synthesize_table(plan, epsilon=4, mechanism="marginals")
        assert release.charge.kind == "strict"
    refuses("must vary|must have values", ph.Table, whole, sensitive=["v"])


def test_kinds_say_where_they_came_from(survey: pd.DataFrame, reference: pd.DataFrame) -> None:
    own = survey.assign(sure=survey["age"] > 40, grade=pd.Categorical(survey["region"]))
    table = ph.Table(
        own, sensitive=["voted", "region", "visits", "sure", "grade"],
        types={"voted": TYPES["voted"]}, reference=reference.drop(columns="visits"),
        holds_no_released_record=True,
    )  # fmt: skip
    found = {name: (each.kind.name, each.source) for name, each in table.kinds().items()}
    assert found["voted"] == ("Nominal", "declared")
    assert found["region"] == ("Nominal", "reference")
    assert found["visits"][1] == "data"
    assert found["sure"] == ("Nominal", "dtype")
    assert found["grade"] == ("Nominal", "categories")
    assert found["age"] == ("Counts", "published")


@pytest.mark.parametrize("mechanism", ["censored", "marginals"])
@pytest.mark.parametrize("made", [lambda own: own.astype("category"), lambda own: own == "north"])
def test_dtypes_are_no_declaration_under_a_strict_charge(
    survey: pd.DataFrame, mechanism: str, made: Any
) -> None:
    """Seen: logicals were, and one empty cell among them made the type one that is read."""
    own = survey.assign(region=made(survey["region"]))
    sensitive = ["voted", "region"]
    said = {"voted": TYPES["voted"]}
    plan = ph.Table(own, sensitive=sensitive, types=said).plan()
    refuses(r"those of region come .*astype\('category'\)", ph.synthesize_table, plan, epsilon=1.0,
            mechanism=mechanism)  # fmt: skip
    again = ph.tables.Plan.from_dict(plan.as_dict(), own)
    assert again.not_declared == plan.not_declared == ("region",)
    levels = ph.Nominal(levels=tuple(sorted(own["region"].unique().tolist())))
    declared = ph.Table(own, sensitive=sensitive, types={**said, "region": levels}).plan()
    assert declared.not_declared == ()


def test_a_representation_holds_no_values(survey: pd.DataFrame) -> None:
    assert repr(ph.Table(survey, **WHOLE)).startswith("<Table of 300 rows: 2 sensitive columns")


def test_a_plan_reads_nothing_of_confidential_columns_but_their_declared_types(
    survey: pd.DataFrame,
) -> None:
    """Other confidential values, the same plan; and the control: undeclared, it differs."""
    rng = np.random.default_rng(3)
    sensitive = ["voted", "visits", "income"]
    other = survey.assign(
        voted=rng.choice(["no", "yes"], 300), visits=rng.integers(0, 5, 300), income=rng.random(300)
    )
    tables = [
        [ph.Table(df, sensitive=sensitive, id="person", drop=["name"], types=types)
         for df in (survey, other)]
        for types in ({name: TYPES[name] for name in sensitive}, {})
    ]  # fmt: skip
    declared, read = ([table.plan().as_dict() for table in pair] for pair in tables)
    assert declared[0] == declared[1]
    assert read[0] != read[1]


def test_levels_are_read_entry_by_entry() -> None:
    """A file in which one text stands among numbers has the numbers as texts, or as numbers where
    no record has the text. Seen: where two levels were one number, all entries were left as they
    were, and refused unless each was a level's text."""
    numbers = pd.DataFrame({"n": [4, 6, 8, 4], "x": [1, 2, 3, 4]})
    texts = numbers.assign(n=["4", "6.0", "8", "rotary"])
    alike = ["9007199254740992", "9007199254740993", "08", "8", "x"]
    for df, kind, read in (
        (numbers, ph.Nominal(levels=("4", "6", "8", "rotary")), ["4", "6", "8", "4"]),
        (texts, ph.Nominal(levels=("4", "6", "8", "rotary")), ["4", "6", "8", "rotary"]),
        (texts[:3], ph.Ordered(levels=(4, 6, 8)), [4, 6, 8]),
        (numbers, ph.Nominal(levels=("4", "06", "08", "8", "x")), ["4", "06", "8", "4"]),
        (numbers.assign(n=alike[:4]), ph.Nominal(levels=tuple(alike)), alike[:4]),
        (numbers.assign(n=alike[1:]), ph.Nominal(levels=tuple(alike)), alike[1:]),
    ):
        assert ph.Table(df, sensitive=["n"], types={"n": kind}).df["n"].tolist() == read
    with pytest.raises(InvalidInput, match="declared levels only: row 3"):
        ph.Table(texts, sensitive=["n"], types={"n": ph.Ordered(levels=(4, 6, 8))}).plan()
    types = {"n": ph.Nominal(levels=(False, True))}
    told = ph.Table(numbers.assign(n=[0, 1, 1, 0]), sensitive=["n"], types=types).df["n"]
    assert [*map(type, told.tolist())] == [bool] * 4
    refuses("2 different values: found 2, 1 of them", ph.Nominal, levels=("4", 4))
