"""Plans of whole tables and noisy marginals on any table, with any types, rules and domains."""

import json
import math
from typing import Any

from hypothesis import strategies as st

import pyhybrid as ph
from pyhybrid.core.errors import PyhybridError
from tests.fuzzing.outcomes import attempted
from tests.fuzzing.releases import WRONG, check_form, check_saved
from tests.fuzzing.tables import OFTEN, Recipe, recipes

_KINDS: list[Any] = [
    {"kind": "Counts", "lower": 0, "upper": 300, "unit": 3},
    {"kind": "Counts", "lower": 0, "upper": 9, "extra_zeros": True},
    {"kind": "Nominal", "levels": [0, 1]},
    {"kind": "Ordered", "levels": ["a", "b", "c"]},
    {"kind": "SemiContinuous", "lower": 0, "upper": 1e6, "unit": 10.0},
    {"kind": "Real", "lower": -1e6, "upper": 1e6, "missing": True},
    {"kind": "Amounts", "lower": 0, "upper": 1e6},
]
_BROKEN: list[Any] = [
    {"kind": "Counts", "lower": 5, "upper": 1}, {"kind": "Nominal", "levels": "ab"},
    {"kind": "Real", "unit": float("nan")}, {"kind": "Colors"}, {"levels": [1]}, None, 7,
]  # fmt: skip
_RULES = ["y >= 0", "y <= x", "x == 0 -> y == 0", "y < 0", "nothing > 1", "import os", "", 3]
_DOMAINS: list[Any] = [
    {"bins": [0, 1, 2, 5, 1e6], "step": 1}, {"levels": [0], "bins": [1, 10, 1e6], "missing": True},
    {"levels": ["a", "b", "c"], "missing": True}, [0, 1], {"bins": [3, 1]}, {"levels": [1, 1]},
    {"levels": "ab"}, {"bins": [0, float("nan")]}, {}, *WRONG,
]  # fmt: skip


@st.composite
def tables(draw: Any) -> tuple[Recipe, dict[str, Any], dict[str, Any]]:
    """A table, what is said of it, and arguments of its plan."""
    plain = draw(OFTEN)
    kinds = _KINDS if plain else [*_KINDS, *_BROKEN]
    said: dict[str, Any] = {
        "sensitive": draw(st.sampled_from([["y"], ["y"], ["y", "x"], ["x", "y"], ["nothing"], []])),
        "types": {name: draw(st.sampled_from(kinds)) for name in draw(_some_names())},
    }
    if not plain:
        said["rules"] = draw(st.lists(st.sampled_from(_RULES), max_size=2))
        said["drop"] = draw(st.sampled_from([[], ["x"], ["y"], ["nothing"], "x", 3]))
        said["id"] = draw(st.sampled_from([None, "x", "nothing", ["x"]]))
        said["order"] = draw(st.sampled_from(["auto", ["y"], ["x", "y"], "y", ["nothing"]]))
    planned = {} if plain else {"split": draw(st.sampled_from(["equal", "need", {"y": 1}, 3]))}
    return draw(recipes()), said, planned


def _some_names() -> st.SearchStrategy[list[str]]:
    return st.sampled_from([["y"], ["y"], ["y", "x"], ["y", "nothing"], []])


def check_plan(case: tuple[Recipe, dict[str, Any], dict[str, Any]]) -> bool:
    """A plan that is whole, comes back from JSON as it was, and releases or says why not."""
    recipe, said, planned = case
    df = recipe.table()
    plan = attempted(lambda: ph.Table(df, **said).plan(**planned))
    if isinstance(plan, PyhybridError):
        return False
    assert math.isclose(math.fsum(column.share for column in plan.columns), 1)
    assert all(column.name in str(plan) for column in plan.columns)
    stored = json.loads(json.dumps(plan.as_dict()))
    again = attempted(lambda: ph.tables.Plan.from_dict(stored, df))
    assert not isinstance(again, PyhybridError), again
    assert again.as_dict() == stored
    release = attempted(lambda: ph.synthesize_table(plan, epsilon=4.0, mechanism="marginals"))
    if not isinstance(release, PyhybridError):
        assert not plan.not_declared
        check_form(release, df)
    return True


@st.composite
def marginals(draw: Any) -> tuple[Recipe, dict[str, Any], dict[str, Any]]:
    """A table, the settings of noisy marginals, and arguments of their release."""
    plain = draw(OFTEN)
    domains = _DOMAINS[:4] if plain else _DOMAINS
    settings: dict[str, Any] = {
        "domain": {name: draw(st.sampled_from(domains)) for name in draw(_some_names())},
        "given": draw(st.sampled_from([[], [], ["x"], ["nothing"], ["y"]])),
        "epsilon": draw(st.sampled_from([1.0, 4.0] if plain else [1.0, *WRONG])),
    }
    if not plain:
        settings["predictors"] = draw(
            st.sampled_from([None, {"y": []}, {"y": ["x"]}, {"x": ["y"]}, {"nothing": []}])
        )
        settings["select"] = draw(st.sampled_from(["all", "private", "some"]))
        settings["relation"] = draw(st.sampled_from(["replace", "remove", "both"]))
    sizes = [1, 3] if plain else [1, *WRONG]
    return draw(recipes()), settings, {"n_synthetic": draw(st.sampled_from(sizes))}


def check_marginals(case: tuple[Recipe, dict[str, Any], dict[str, Any]]) -> bool:
    """As of any release; what comes out lies in the declared domain."""
    recipe, settings, arguments = case
    df = recipe.table()
    mechanism = attempted(lambda: ph.NoisyMarginals(**settings))
    if isinstance(mechanism, PyhybridError):
        return False
    release = attempted(lambda: mechanism.release(df, **arguments))
    if isinstance(release, PyhybridError):
        return False
    check_form(release, df)
    for made in release.synthetic:
        for name in mechanism.synthesizes:
            mechanism.domain[name].places(made[name])
    check_saved(release, "csv")
    return True
