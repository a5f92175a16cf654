"""Plans: order, predictors, models, shares; printed, changed, kept as JSON."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.kinds import kind_from_dict
from pyhybrid.models.default_model import rule_for
from pyhybrid.models.registry import build_model
from tests.refusals import refuses
from tests.tables.conftest import TYPES

SENSITIVE = ["income", "wage", "visits", "region", "voted"]


@pytest.fixture(scope="module")
def plan(survey: pd.DataFrame) -> Any:
    table = ph.Table(
        survey, sensitive=SENSITIVE, id="person", drop=["name"], types=TYPES,
        rules=["wage <= income"],
    )  # fmt: skip
    return table.plan()


def test_few_levels_come_first_and_the_smaller_side_of_a_rule_before_the_larger(plan: Any) -> None:
    assert [column.name for column in plan.columns] == [
        "voted", "region", "visits", "wage", "income",
    ]  # fmt: skip
    assert plan["voted"].predictors == ("age", "sex")
    assert plan["income"].predictors == ("age", "sex", "voted", "region", "visits", "wage")


def test_kinds_give_models(plan: Any) -> None:
    assert {column.name: column.model for column in plan.columns} == {
        "voted": "bernoulli", "region": "categorical", "visits": "negative_binomial",
        "wage": "normal", "income": "normal",
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "model", "options"), [
    (ph.Counts(lower=0, upper=21), "negative_binomial", {"lower": 0, "upper": 21}),
    (ph.Counts(unit=3), "negative_binomial", {"lower": 0, "upper": None}),
    (ph.Counts(unit=3, extra_zeros=True), "zero_inflated", {"upper": None}),
    (ph.Counts(upper=9, extra_zeros=True), "zero_inflated", {"upper": 9}),
])  # fmt: skip
def test_counts_get_a_model_by_their_ends_and_zeros(kind: Any, model: str, options: Any) -> None:
    assert rule_for(ph.Counts(center=39, unit=3), predicted=True).model == "normal"
    rule = rule_for(kind, predicted=True)
    assert rule.model == model
    assert rule.options(kind) == {"prior": "normal", **options}
    made: Any = build_model(model, "y ~ x", rule.options(kind))
    assert made.name.lower() == model.replace("_", "")
    main = made.main if model == "zero_inflated" else made
    assert main.upper == options["upper"]
    assert kind_from_dict(kind.as_dict()) == kind


def test_extra_zeros_are_counted_from_zero() -> None:
    refuses("lower must be 0 with extra_zeros: found 1", ph.Counts, lower=1, extra_zeros=True)


def test_every_model_binds_and_none_depends_on_all_records(plan: Any, survey: pd.DataFrame) -> None:
    from pyhybrid.tables.table_spec import working_table

    working = working_table(survey, plan.kinds, list(plan.kinds))
    for column in plan.columns:
        bound = column.model_of(plan.kinds).bind(working)
        assert bound.data_dependent == ()
        assert bound.decimals_given


def test_many_levels_come_from_noisy_shares_and_predict_nothing(survey: pd.DataFrame) -> None:
    codes = [f"c{k:03d}" for k in range(300)]
    own = survey.assign(code=codes)
    types = {"voted": TYPES["voted"], "code": ph.Nominal(levels=tuple(codes))}
    plan = ph.Table(own, sensitive=["voted", "code"], drop=["person", "name"], types=types).plan()
    assert plan["code"].model == "perturbed_histogram"
    assert plan["code"].predictors == ()
    assert "more than 30 levels" in str(plan)
    first = ph.Table(own[["voted", "code"]], sensitive=["voted", "code"], types=types).plan()
    assert first["voted"].model == "perturbed_histogram", "nothing stands before it"


def test_a_plan_prints_in_80_columns_and_says_why(plan: Any) -> None:
    lines = str(plan).splitlines()
    assert max(map(len, lines)) <= 80
    assert "  1. voted: bernoulli given age, sex" in lines
    assert any("Nominal, declared; two levels; 20.0% of epsilon" in line for line in lines)
    assert "Rule: wage <= income" in lines
    assert ">voted</td>" in plan._repr_html_()
    assert repr(plan) == "<Plan for voted, region, visits, wage, income>"


def test_html_escapes_what_names_hold(survey: pd.DataFrame) -> None:
    own = survey.rename(columns={"voted": "<b>&"})
    types = {"<b>&": TYPES["voted"]}
    plan = ph.Table(own, sensitive=["<b>&"], drop=["name", "person"], types=types).plan()
    assert ">&lt;b&gt;&amp;</td>" in plan._repr_html_()


def test_json_gives_the_plan_back(plan: Any, survey: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan.save(path)
    again = ph.tables.Plan.load(path, survey)
    assert again.as_dict() == plan.as_dict()
    assert str(again) == str(plan)
    assert again["region"].model_of(again.kinds) == plan["region"].model_of(plan.kinds)


@pytest.mark.parametrize(("change", "message"), [
    ({"pyhybrid_plan": 7}, "pyhybrid_plan: 1"), ({"columns": None}, "must be whole"),
    ({"sensitive": ["voted"]}, "order must"), ({"rules": ["voted == 'x'"]}, "none meets it"),
    ({"id": "sex"}, "must name each row once"),
])  # fmt: skip
def test_a_plan_that_was_changed_wrongly_is_refused(
    plan: Any, survey: pd.DataFrame, change: dict[str, Any], message: str
) -> None:
    given = {**json.loads(json.dumps(plan.as_dict())), **change}
    refuses(message, ph.tables.Plan.from_dict, given, survey)


def test_a_plan_can_be_changed(plan: Any) -> None:
    other = plan.with_column("visits", model="poisson", predictors=["age"])
    assert (other["visits"].model, other["visits"].why) == ("poisson", "chosen by hand")
    assert plan["visits"].model == "negative_binomial", "the plan itself is as it was"
    with pytest.raises(InvalidInput, match=r"must not read 'income', a sensitive column"):
        plan.with_column("visits", predictors=["income"])
    refuses("'name' is neither", plan.with_column, "visits", predictors=["name"])
    refuses("model must be one of", plan.with_column, "visits", model="neural")
    refuses(r"a column 'vists': it has none .did you mean 'visits'", plan.with_column, "vists")


def test_shares_add_to_one_by_each_rule(plan: Any) -> None:
    assert [c.share for c in plan.columns] == [pytest.approx(0.2)] * 5
    need = plan.with_shares("need")
    assert math.fsum(c.share for c in need.columns) == pytest.approx(1)
    # age has 2 coefficients, sex, voted 1 each, region 2, visits and wage 2 each, intercepts 1.
    expected = [math.sqrt(k) for k in (4, 5, 7, 9, 11)]
    assert [c.share for c in need.columns] == pytest.approx(
        [own / sum(expected) for own in expected]
    )
    given = plan.with_shares(dict.fromkeys(SENSITIVE, 1.0) | {"voted": 6.0})
    assert given["voted"].share == pytest.approx(0.6)
    refuses("a share to each", plan.with_shares, {"voted": 1.0})
    refuses("split must be one of", plan.with_shares, "best")


def test_coefficients_are_limited_and_the_plan_says_so(survey: pd.DataFrame) -> None:
    table = ph.Table(
        survey, sensitive=SENSITIVE, drop=["name", "person"], keep=["age"], types=TYPES
    )
    plan = table.plan(most_coefficients=5)
    assert plan["income"].predictors == ("age", "sex", "wage")
    assert "income is not given voted, region, visits: 5 coefficients at most" in " ".join(
        str(plan).split()
    )
