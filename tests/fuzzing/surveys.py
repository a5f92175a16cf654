"""Surveys: designs of any table, private answers, and what is done to a release afterwards."""

import functools
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import pyhybrid as ph
from pyhybrid.core.errors import PyhybridError
from tests.fuzzing.outcomes import attempted
from tests.fuzzing.releases import _mostly, _some
from tests.fuzzing.tables import OFTEN, Recipe, recipes

_column = st.sampled_from(["y", "x", "g", "q", "", None, 1, ["y"]])
_DESIGN = {
    "strata": _column, "clusters": _column, "unit": _column, "population": _mostly(1e5, 30.0),
    "largest": _mostly(2.0, 0.5), "calibrated": st.booleans(),
}  # fmt: skip


@st.composite
def designs(draw: Any) -> tuple[Recipe, dict[str, Any]]:
    """A table and a design, of columns that may or may not be fit for it."""
    weights = "y" if draw(OFTEN) else draw(_column)
    return draw(recipes()), {"weights": weights, **_some(draw, _DESIGN, 3)}


def check_design(case: tuple[Recipe, dict[str, Any]]) -> bool:
    """Weights above 0 of every record, and an interval; or a typed error."""
    recipe, options = case
    df = recipe.table()
    before = df.copy(deep=True)

    def call() -> tuple[Any, Any, Any]:
        design = ph.measures.SurveyDesign(**options)
        records = design.read(df)
        return records, design.normalized(df), ph.measures.survey_mean(np.arange(len(df)), records)

    found = attempted(call)
    pd.testing.assert_frame_equal(df, before)
    if isinstance(found, PyhybridError):
        return False
    records, normalized, mean = found
    assert records.weight.shape == records.stratum.shape == records.cluster.shape == (len(df),)
    assert (records.weight > 0).all()
    assert (normalized > 0).all()
    assert 0 <= mean.estimate <= len(df)
    assert mean.standard_error >= 0
    return True


_names = st.lists(st.sampled_from(["y", "y", "relation", "region", "age", "q"]), max_size=2)
_values = st.one_of(
    st.dictionaries(
        st.sampled_from(["relation", "y", "age", "q"]), st.sampled_from(["head", 1, None, "a"]),
        max_size=2,
    ),
    st.sampled_from([{"relation": "head"}, "relation", 3]),
)  # fmt: skip
_HOUSEHOLDS = {
    "unit": st.sampled_from(["home", "home", "region", "age", "q", None]),
    "same": st.one_of(_names, st.just("y")),
    "one": _values,
    "at_most_one": _values,
    "sums": st.dictionaries(
        st.sampled_from(["total", "age", "y"]), st.sampled_from(["y", "age"]), max_size=1
    ),
    "eligible": st.sampled_from(["age >= 16", "age > 900", "q > 1", "age >", "y > 3", 5]),
    "seed": _mostly(1, 2),
}
_amount = _mostly(300, 120.5, 0)
_TOTALS = {
    "column": st.sampled_from(["y", "y", "y", "total", "relation", "q", None]),
    "totals": st.one_of(
        _amount, st.dictionaries(st.sampled_from(["n", "s", "q"]), _amount, max_size=2)
    ),
    "by": st.sampled_from(["region", None, "q"]),
    "weights": st.sampled_from([None, None, "age", "relation", "q"]),
}
_ROWS = {
    "n_rows": _mostly(20, 100), "public": st.one_of(st.just(["age", "region", "home"]), _names),
    "unit": st.sampled_from(["home", None, "region", "q"]), "seed": _mostly(1, 2),
}  # fmt: skip
_CHANGES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "households": (
        ph.releases.with_households, _HOUSEHOLDS, {"unit": "home", "one": {"relation": "head"}},
    ),
    "totals": (ph.releases.with_totals, _TOTALS, {"column": "y", "totals": 300}),
    "rows": (ph.releases.with_rows, _ROWS, {"n_rows": 30, "unit": "home"}),
}  # fmt: skip


@functools.cache
def _release() -> ph.Release:
    """Forty persons in twenty homes; two columns from noisy tables."""
    rng = np.random.default_rng(1)
    home = np.arange(40) // 2
    table = pd.DataFrame({
        "home": home, "region": np.where(home % 2, "n", "s"), "age": rng.integers(1, 80, 40),
        "relation": rng.choice(["head", "other"], 40), "y": rng.integers(0, 9, 40),
        "total": rng.integers(0, 20, 40),
    })  # fmt: skip
    domain = {"relation": ["head", "other"], "y": list(range(9))}
    return ph.NoisyMarginals(domain=domain, epsilon=9.0).release(table, n_synthetic=2)


@st.composite
def changes(draw: Any) -> list[tuple[str, dict[str, Any]]]:
    """One to three changes, one after the other."""
    names = draw(st.lists(st.sampled_from(sorted(_CHANGES)), min_size=1, max_size=3))
    return [(name, {**_CHANGES[name][2], **_some(draw, _CHANGES[name][1], 2)}) for name in names]


def check_changes(case: list[tuple[str, dict[str, Any]]]) -> bool:
    """The same charge and unchanged columns, said in the statement; or a typed error."""
    release = before = _release()
    for name, options in case:
        changed = attempted(
            lambda name=name, options=options, now=release: _CHANGES[name][0](now, **options)
        )
        if isinstance(changed, PyhybridError):
            return False
        release = changed
    release.check_seal()
    assert release.charge == before.charge
    assert len(release.settings["afterwards"]) == len(case)
    assert "## Changed afterwards" in release.statement
    if not any(name == "rows" for name, _ in case):
        kept = [c for c in before.synthetic[0] if c not in release.synthesized]
        for table, own in zip(release.synthetic, before.synthetic, strict=True):
            pd.testing.assert_frame_equal(table[kept], own[kept])
    return True
