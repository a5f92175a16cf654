"""Measures and masking: data and synthetic sets that do and do not belong together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import pyhybrid as ph
from pyhybrid.core.errors import PyhybridError
from pyhybrid.models.formula.design import read_design
from tests.fuzzing.outcomes import attempted
from tests.fuzzing.releases import WRONG, _mostly, _some, check_saved
from tests.fuzzing.tables import OFTEN, Recipe, formulas, recipes


def check_design(case: tuple[Recipe, str]) -> bool:
    """A formula on a table: a finite design of full rank, which codes its own table again."""
    recipe, formula = case
    df = recipe.table()
    design = attempted(lambda: read_design(formula, df))
    if isinstance(design, PyhybridError):
        return False
    assert design.X.shape == (len(df), len(design.columns))
    assert np.isfinite(design.X).all()
    assert np.isfinite(design.y).all()
    if not any(name.startswith("lag") for name in design.data_dependent):
        again = attempted(lambda: design.matrix_of(df))
        assert isinstance(again, PyhybridError) or np.array_equal(again, design.X)
    return True


designs = st.tuples(recipes(), formulas())


@dataclass(frozen=True, kw_only=True)
class SetsCase:
    """Data, m sets made from them or from elsewhere, and options."""

    real: Recipe
    others: tuple[Recipe | str, ...]
    options: dict[str, Any]

    def sets(self) -> list[pd.DataFrame]:
        """The sets: the data themselves, shuffled, cut, or another table."""
        real = self.real.table()
        ways = {
            "same": real.copy, "shuffled": lambda: real.iloc[::-1],
            "cut": lambda: real.iloc[: max(1, len(real) // 2)],
            "twice": lambda: pd.concat([real, real]),
            "columns reversed": lambda: real.iloc[:, ::-1],
            "one column less": lambda: real.iloc[:, 1:], "as text": lambda: real.astype(str),
            "as objects": lambda: real.astype(object), "empty": lambda: real.iloc[:0],
        }  # fmt: skip
        return [ways[each]() if isinstance(each, str) else each.table() for each in self.others]


_WAYS = [
    "same", "shuffled", "cut", "twice", "columns reversed", "one column less", "as text",
    "as objects", "empty",
]  # fmt: skip
_RISK = {
    "radius": _mostly(0, 1, 0.1, {"y": 1}, {"x": 2.0}, {"q": 1}, {"y": -1}),
    "kind": _mostly("absolute", "relative", "relative"),
    "rows_correspond": _mostly(True, False, None),
}
_UTILITY = {
    "columns": st.sampled_from([["y"], ["y", "x"], ["q"], [], "y", None, [1]]),
    "categorical": st.sampled_from([["y"], ["x"], ["q"], "y"]),
    "formulas": st.sampled_from([["y ~ x"], ["y ~ g"], ["y ~ q"], ["y"], "y ~ x", [1]]),
    "model": _mostly("ols", "poisson", "logit"),
    "rule": _mostly("partially_synthetic", "fully_synthetic", "single", None),
    "interactions": st.booleans(),
}


@st.composite
def set_cases(
    draw: Any, known: dict[str, Any], sizes: tuple[int, ...] = (12, 20, 3, 2, 24)
) -> SetsCase:
    """Data and sets."""
    calm = draw(OFTEN)
    way = st.sampled_from(_WAYS[:5] if calm else _WAYS)
    each = way if draw(OFTEN) else st.one_of(way, recipes())
    others = draw(st.lists(each, min_size=1 if calm else 0, max_size=3))
    return SetsCase(real=draw(recipes(sizes=sizes)), others=tuple(others),
                    options=_some(draw, known, 2))  # fmt: skip


def risk_cases() -> st.SearchStrategy[tuple[SetsCase, Any]]:
    keys = st.sampled_from(
        [["y"], ["y", "x"], ["x", "g"], ["g"], [], ["q"], "y", None, [1], ["y", "y"]]
    )
    return st.tuples(set_cases(_RISK), keys)


def check_matching(case: tuple[SetsCase, Any]) -> bool:
    """Shares in [0, 1], or a typed error."""
    sets, keys = case
    real = sets.real.table()
    risk = attempted(
        lambda: ph.measures.matching_risk(real, sets.sets(), keys=keys, **sets.options)
    )
    if isinstance(risk, PyhybridError):
        return False
    assert risk.by_record.shape == (len(real),)
    assert ((risk.by_record >= 0) & (risk.by_record <= 1)).all()
    return True


def utility_cases() -> st.SearchStrategy[SetsCase]:
    return set_cases(_UTILITY)


def check_utility(case: SetsCase) -> bool:
    """A summary whose numbers exist, or a typed error."""
    summary = attempted(
        lambda: ph.measures.utility_summary(
            case.real.table(), case.sets(), n_permutations=2, rng=1, **case.options
        )
    )
    if isinstance(summary, PyhybridError):
        return False
    assert all(isinstance(value, float) for value in summary.overall().values())
    return True


_value = st.one_of(st.floats(), st.integers(-3, 2**70), st.sampled_from([None, "1", True, [], 1j]))
_one = st.tuples(st.floats(-9, 9), st.floats(0, 9))
_errors = st.lists(st.floats(0, 9), min_size=2, max_size=2)
_both = st.tuples(st.lists(st.floats(-9, 9), min_size=2, max_size=2), _errors)
_vector = st.one_of(_value, st.lists(_value, max_size=3), _errors)
_pair = st.one_of(_one, st.tuples(_vector, _vector), _value, _both)
_pairs = st.lists(_pair, max_size=4)


def pool_cases() -> st.SearchStrategy[tuple[Any, str, Any]]:
    alike = st.lists(_one, min_size=2, max_size=5)
    models = st.one_of(alike, _pairs, st.lists(alike, max_size=3), st.lists(_pairs, max_size=3),
                       _value)  # fmt: skip
    rules = st.sampled_from(
        ["partially_synthetic", "fully_synthetic", "multiple_imputation", "nested"]
    )
    return st.tuples(models, st.one_of(rules, st.sampled_from(WRONG)), _mostly(1.0, 2.0))


def check_pool(case: tuple[Any, str, Any]) -> bool:
    """A table of finite estimates, or a typed error."""
    models, rule, ratio = case
    pooled = attempted(lambda: ph.measures.pool(models, rule=rule, size_ratio=ratio))
    if isinstance(pooled, PyhybridError):
        return False
    table = attempted(pooled.table)
    assert np.isfinite(table["estimate"]).all()
    assert (table["standard_error"] >= 0).all()
    return True


_MASKS: dict[str, Callable[[], Any]] = {
    "gaussian": lambda: ph.masking.GaussianMask(copies=3, variance=1.0),
    "mixture": lambda: ph.masking.MixtureMask(separation=6.0),
    "wrong": lambda: "mask",
    "none": dict,
}
_MASKING = {
    "association": _mostly("sequential", "copula"),
    "predictors": st.sampled_from([["x"], ["g"], ["y"], [], ["q"], "x", None]),
    "types": st.sampled_from(
        [{"y": kind} for kind in ("ordered", "nominal", "text")] + [{"q": "binary"}, None]
    ),
    "limits": st.sampled_from(
        [{"y": (0, 1)}, {"y": (1, 0)}, {"y": None}, {"q": (0, 1)}, {"x": (0, float("nan"))}]
    ),
    "n_imputations": _mostly(2, 3),
    "order": st.sampled_from([["y"], ["x", "y"], ["q"], []]),
}


@st.composite
def mask_cases(draw: Any) -> tuple[Recipe, dict[str, Any], str]:
    """A table and options of masking."""
    calm = draw(OFTEN)
    keys = st.sampled_from([["y"], ["y"], ["x"], ["y", "x"], ["g"], ["q"], [], "y", [1]])
    options: dict[str, Any] = {"keys": draw(keys), "n_synthetic": 1}
    if not calm:
        options |= {"n_synthetic": draw(_mostly(1, 2)), **_some(draw, _MASKING, 2)}
    elif draw(st.booleans()):
        options |= {"keys": ["y"], "types": {"y": "continuous"}}
    return draw(recipes(sizes=(40, 60, 12))), options, draw(st.sampled_from(sorted(_MASKS)))


def check_mask(case: tuple[Recipe, dict[str, Any], str]) -> bool:
    """A masked release, saved and read; or a typed error."""
    recipe, options, mask = case
    df = recipe.table()
    before = df.copy(deep=True)
    settings = ph.masking.GibbsSettings(warmup=50, draws=50)

    def call() -> ph.masking.MaskedRelease:
        given = _MASKS[mask]()
        masks = given if mask == "none" else {"y": given}
        made = ph.masking.MaskedImputation(masks=masks, settings=settings, on_not_converged="warn",
                                           **options)  # fmt: skip
        return made.release(df)

    release = attempted(call)
    pd.testing.assert_frame_equal(df, before)
    if isinstance(release, PyhybridError):
        return False
    keys = set(release.statement.keys)
    for table in release.synthetic:
        kept = [column not in keys for column in df.columns]
        pd.testing.assert_frame_equal(table.loc[:, kept], df.loc[:, kept])
        assert not table[list(keys)].isna().any().any()
    check_saved(release, "csv")
    return True
