"""A whole table by one call: form, charge, roles of columns, what is refused."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.releases.statement import not_covered
from pyhybrid.reports.release import release_report
from tests.refusals import refuses
from tests.tables.conftest import TYPES

pytestmark = [
    pytest.mark.usefixtures("opendp"),
    pytest.mark.filterwarnings("ignore:.*records are too few"),
]
ROLES: dict[str, Any] = {"id": "person", "drop": ["name"], "keep": ["age", "sex"]}


def released(df: pd.DataFrame, **changes: Any) -> ph.Release:
    given = {"epsilon": 8.0, "types": TYPES, **ROLES, **changes}
    return ph.synthesize_table(df, **given)


def test_the_table_comes_back_in_the_declared_form(survey: pd.DataFrame) -> None:
    release = released(survey, n_synthetic=3)
    assert (release.charge.epsilon, release.charge.kind) == (8, "strict")
    assert (release.charge.relation, release.charge.n_synthetic) == ("remove", 3)
    assert len(release.synthetic) == 3
    made = release.synthetic[0]
    assert list(made.columns) == [name for name in survey if name != "name"]
    pd.testing.assert_frame_equal(
        made[["age", "sex"]].reset_index(drop=True), survey[["age", "sex"]].reset_index(drop=True)
    )
    assert not set(made["person"]) & set(survey["person"])
    assert made["voted"].dtype == pd.CategoricalDtype(["no", "yes"])
    assert made["visits"].dtype == np.int64
    for name, kind in TYPES.items():
        if isinstance(kind, ph.Counts | ph.Real):
            for each in release.synthetic:
                assert each[name].between(kind.lower, kind.upper).all()
                decimals = getattr(kind, "decimals", 0)
                np.testing.assert_array_equal(each[name].round(decimals), each[name])


def test_kept_columns_are_predictors_and_what_they_tell_is_kept(survey: pd.DataFrame) -> None:
    survey = survey[["person", "name", "age", "sex", "visits", "voted"]]
    few = {"types": {name: TYPES[name] for name in ("visits", "voted")}}
    release = released(survey, epsilon=1e5, n_synthetic=5, **few)
    slopes = [np.polyfit(made["age"], made["visits"], 1)[0] for made in release.synthetic]
    truth, spread = np.polyfit(survey["age"], survey["visits"], 1, cov=True)
    assert abs(np.mean(slopes) - truth[0]) < 5 * np.sqrt(spread[0, 0])
    assert {"age", "sex"} <= set(release.predictors)
    alone = released(survey, keep=[], drop=["name", "age", "sex"], **few)
    assert alone.predictors == ()


@pytest.mark.parametrize("values", [("no", "yes"), (2, 3), (None, "no")])
def test_the_last_record_of_a_level_is_not_told_by_a_refusal(values: tuple[Any, Any]) -> None:
    """Seen: a table was refused where all rows had one declared value, but not with another row."""
    same, other = values
    whole = pd.DataFrame({"v": pd.Series([same] * 60, dtype=object), "x": np.arange(60) % 5})
    one = whole.copy()
    one.at[7, "v"] = other
    levels = ph.Nominal(levels=("no", "yes"), missing=True)
    kind = ph.Counts(lower=0, upper=9) if same == 2 else levels
    for df in (whole.infer_objects(), one.infer_objects()):
        release = ph.synthesize_table(df, epsilon=4, types={"v": kind}, keep=["x"])
        assert release.charge.kind == "strict"


def test_levels_are_read_entry_by_entry() -> None:
    """A file with one text among numbers has the numbers as texts, or as numbers without it."""
    numbers = pd.DataFrame({"n": [4, 6, 8, 4] * 5, "x": [1, 2, 3, 4] * 5})
    texts = numbers.assign(n=["4", "6.0", "8", "rotary"] * 5)
    own = {"epsilon": 1e4, "keep": ["x"]}
    for df, kind, among in (
        (numbers, ph.Nominal(levels=("4", "6", "8", "rotary")), {"4", "6", "8", "rotary"}),
        (texts, ph.Nominal(levels=("4", "6", "8", "rotary")), {"4", "6", "8", "rotary"}),
        (texts[:3], ph.Ordered(levels=(4, 6, 8)), {4, 6, 8}),
    ):
        made = ph.synthesize_table(df, types={"n": kind}, **own).synthetic[0]["n"]
        assert set(made) <= among
    refuses("row 3 does not", ph.synthesize_table, texts,
            types={"n": ph.Ordered(levels=(4, 6, 8))}, hidden=["rotary"], **own)  # fmt: skip


def test_missing_values_stay_missing_in_the_declared_form(survey: pd.DataFrame) -> None:
    gone = np.random.default_rng(4).random(300) < 1 / 3
    own = survey[["age", "voted", "region"]].assign(voted=survey["voted"].mask(gone))
    types = {"voted": ph.Nominal(levels=("no", "yes"), missing=True), "region": TYPES["region"]}
    made = ph.synthesize_table(own, epsilon=40, types=types, keep=["age"]).synthetic[0]
    assert made["voted"].dtype == pd.CategoricalDtype(["no", "yes"])
    assert abs(made["voted"].isna().mean() - gone.mean()) < 5 * np.sqrt(2 * 0.22 / 300)
    assert made["region"].notna().all()
    unsaid = {**types, "voted": TYPES["voted"]}
    refuses("must not be missing", ph.synthesize_table, own, epsilon=40, types=unsaid, keep=["age"])


def test_a_reference_that_has_drifted_is_named() -> None:
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 3000)
    then = pd.DataFrame({"pay": rng.normal(100, 20, 3000).round(), "sex": sex})
    now = pd.DataFrame({"pay": then["pay"][::-1].to_numpy(), "sex": rng.choice(["f", "m"], 3000)})
    types = {"pay": ph.Real(lower=0, upper=300, decimals=0), "sex": ph.Nominal(levels=("f", "m"))}
    own = {"epsilon": 2.0, "types": types, "reference": then, "holds_no_released_record": True}
    alike = ph.synthesize_table(now, **own)
    now["pay"] = (1.2 * now["pay"]).round()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing of the records decides whether a release ends
        off = ph.synthesize_table(now, **own)
    for release, drifted in ((alike, []), (off, ["pay"])):
        assert release.origin.drifted == drifted
        page = release_report(release, now)
        assert ("The reference differs from the records in pay" in page) == bool(drifted)
        assert "differs from the records" not in release.statement


def test_a_reference_gives_types_and_needs_its_owners_word(
    survey: pd.DataFrame, reference: pd.DataFrame
) -> None:
    columns = ["voted", "visits", "wage"]
    own = {"df": survey[columns], "epsilon": 2.0, "reference": reference[columns]}
    refuses("a reference must be confirmed", ph.synthesize_table, **own)
    release = ph.synthesize_table(**own, holds_no_released_record=True)
    assert release.charge.kind == "strict"
    made = release.synthetic[0]
    assert made["visits"].dtype == np.int64
    np.testing.assert_array_equal(made["wage"].round(1), made["wage"])
    assert "reference" in " ".join(not_covered(release.charge))
    wide = {"wage": ph.Real(lower=0, upper=500, spread=20)}  # decimals are the reference's
    both = ph.synthesize_table(**own, types=wide, holds_no_released_record=True)
    np.testing.assert_array_equal(both.synthetic[0]["wage"].round(1), both.synthetic[0]["wage"])


def test_a_unit_is_protected_and_not_released(survey: pd.DataFrame) -> None:
    own = survey[["voted", "visits"]].assign(home=np.arange(300) // 2)
    types = {name: TYPES[name] for name in ("voted", "visits")}
    unit = {"unit": "home", "rows_per_unit": 2}
    release = ph.synthesize_table(own, epsilon=8, types=types, **unit)
    assert release.charge.unit == "home"
    assert list(release.synthetic[0]) == ["voted", "visits"]
    refuses("at most rows_per_unit=1", ph.synthesize_table, own, epsilon=8, types=types,
            unit="home", rows_per_unit=1)  # fmt: skip


@pytest.mark.parametrize("made", [lambda own: own.astype("category"), lambda own: own == "no"])
def test_dtypes_are_no_declaration(survey: pd.DataFrame, made: Any) -> None:
    """astype("category") takes the levels from the records; one empty cell makes no logicals."""
    df = survey[["age"]].assign(voted=made(survey["voted"]))
    refuses("voted have none", ph.synthesize_table, df, epsilon=1.0, keep=["age"])


@pytest.mark.parametrize(("changes", "message"), [
    ({"types": {}}, "voted, region, visits, wage, income have none"),
    ({"types": {**TYPES, "vote": TYPES["voted"]}}, "did you mean 'voted'"),
    ({"types": {**TYPES, "visits": 3}}, "type of 'visits' must be a kind of column"),
    ({"types": {**TYPES, "wage": ph.Real(spread=10, decimals=1)}}, "'wage' must have a range"),
    ({"types": {**TYPES, "wage": ph.Real(lower=0, upper=200)}}, "'wage' must have decimals"),
    ({"types": {**TYPES, "wage": ph.Amounts(lower=0, upper=1, decimals=0)}}, "domain of 'wage'"),
    ({"drop": ["nam"]}, "did you mean 'name'"),
    ({"keep": ["age", "sex", "name"]}, "'name' must be in one of drop, keep and ids"),
    ({"id": "sex", "keep": ["age"]}, "id 'sex' must name each row once: row 10"),
    ({"id": None}, "person have none"),
    ({"select": "plan"}, "select must be one of few, all"),
    ({"epsilon": 0}, "epsilon must be above 0"),
    ({"n_synthetic": 0}, "n_synthetic must be"),
])  # fmt: skip
def test_bad_input_is_refused_in_one_line(
    changes: dict[str, Any], message: str, survey: pd.DataFrame
) -> None:
    refuses(message, released, survey, **changes)


def test_a_table_has_rows_and_columns_with_names(survey: pd.DataFrame) -> None:
    refuses("df must be a pandas DataFrame", released, [1, 2])
    refuses("two rows or more", released, survey[:1])
    refuses("names of columns must be texts", released, survey.rename(columns={"sex": 0}))


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y%m%d", "date"])
def test_dates_are_synthesized_and_keep_what_they_tell(form: str) -> None:
    rng = np.random.default_rng(8)
    days = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 18_000, 2000), unit="D")
    visits = np.where(days.year < 1975, 8, 2)
    column = days.date if form == "date" else days.strftime(form)
    column = column.astype(int) if form == "%Y%m%d" else column
    ends = ("19500101", "19991231") if form == "%Y%m%d" else ("1950-01-01", "1999-12-31")
    born = ph.Dates(lower=ends[0], upper=ends[1], format=form, missing=True)
    types = {"born": born, "visits": ph.Nominal(levels=(2, 8))}
    df = pd.DataFrame({"born": column, "visits": visits})
    release = ph.synthesize_table(df, epsilon=1e4, delta=1e-6, types=types)
    made = release.synthetic[0]
    assert pd.api.types.infer_dtype(made["born"]) == pd.api.types.infer_dtype(df["born"])
    assert "counted in the first or last one" in " ".join(release.charge.facts["assumes"])
    born = pd.to_datetime(made["born"].astype(str), format="%Y%m%d" if "Y%m%d" in form else None)
    old = born.dt.year < 1975
    assert (made.loc[old, "visits"] == 8).mean() > 0.95
    assert abs(old.mean() - (visits == 8).mean()) < 0.05
    refuses("dates written as|must lie in its domain", ph.synthesize_table,
            df.assign(born=["never", *column[1:]]), epsilon=1, types=types)  # fmt: skip


def test_persons_of_both_tables_are_refused(survey: pd.DataFrame) -> None:
    survey = survey[["person", "name", "age", "sex", "visits", "voted"]]
    types = {name: TYPES[name] for name in ("visits", "voted")}
    told: dict[str, Any] = {"types": types, "id": None, "holds_no_released_record": True}
    told["drop"] = ["name", "person"]
    both = "50 rows, with their 'person', are in both"
    refuses(both, released, survey, reference=survey[:50], **told)
    for same in (survey.assign(person=range(300)), survey.drop(columns="person")):
        refuses(" rows are in both", released, survey, reference=same, **told)
    now, other = survey[:150], survey[150:].assign(person=survey["person"][:150].to_numpy())
    assert released(now, reference=other, **told).charge.kind == "strict", "numbers given anew"
