"""The data blocks of every program: R's `stan_data` against Python's, but for where to look first.

Nothing is compiled or sampled: that any hints give the same posterior is held in
`tests/models/test_coefficients.py` and `test_mixture.py`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines.programs import declared_names
from tests.refusals import fails, refuses

HINTS = frozenset({
    "information_root", "score", "center_rphi", "spread_rphi", "center_shape",
    "spread_shape", "center_lambda", "spread_lambda",
    "center_beta", "spread_beta", "column_basis", "level_basis", "near",
    "center_sigma", "spread_sigma", "center", "factor", "information", "center_ratio",
    "spread_ratio", "middle",
})  # fmt: skip
NORMAL = {"prior": "normal", "prior_scale": 1.5, "prior_scale_intercept": 4.0}
LEVELS = {"levels": ("walk", "car", "bus", "train"), "prior_scale": 1.5}
LOG = {"transform": "log", "unit": 0.5}
TERMS = "x * g + offset(log(nights))"
CASES: dict[str, tuple[Any, str, Mapping[str, Any]]] = {
    "poisson": (ph.Poisson, f"count ~ {TERMS}", {}),
    "poisson, normal prior": (ph.Poisson, f"count ~ {TERMS}", NORMAL),
    "no intercept": (ph.Poisson, "count ~ 0 + g", NORMAL),
    "negative_binomial": (ph.NegativeBinomial, f"count ~ {TERMS}", {}),
    "bounds of counts": (ph.NegativeBinomial, "count ~ x", {"lower": 0, "upper": 900}),
    "bernoulli": (ph.Bernoulli, f"member ~ {TERMS}", {}),
    "bernoulli, published prior": (ph.Bernoulli, "member ~ x", {"prior": "published"}),
    "categorical": (ph.Categorical, "way ~ x * g", {}),
    "categorical, declared": (ph.Categorical, "way ~ 0 + g", LEVELS),
    "ordinal": (ph.Ordinal, "way ~ x * g", LEVELS),
    "ordinal of numbers": (ph.Ordinal, "code ~ 1", {}),
    "categorical of numbers": (ph.Categorical, "code ~ x", {}),
    "beta": (ph.Beta, "share ~ 1", {}),
    "beta, scaled": (ph.Beta, "income ~ 1", {"lower": -100.0, "upper": 400.0}),
    "beta_regression": (ph.BetaRegression, f"share ~ {TERMS}", NORMAL),
    "beta_regression at the edge": (ph.BetaRegression, "edge ~ x", {"edge": 0.01}),
    "normal_regression": (ph.NormalRegression, f"income ~ {TERMS}", {}),
    "log normal": (ph.NormalRegression, f"share ~ {TERMS}", {**LOG, "min_sd": 0.01, **NORMAL}),
    "LogNormal": (ph.LogNormal, f"share ~ {TERMS}", {**LOG, "prior": "normal"}),
    "gamma": (ph.Gamma, f"share ~ {TERMS}", {"unit": 0.5}),
    "gamma, published prior": (ph.Gamma, "share ~ x", {"prior": "published"}),
    "normal_mixture": (
        ph.MixtureRegression, f"income ~ {TERMS}",
        {"n_components": 3, "transform": "asinh", "unit": 10.0, "min_sd": 0.1},
    ),
    "mixture of one": (ph.MixtureRegression, "income ~ x", {"n_components": 1}),
}  # fmt: skip


@cache
def _table() -> pd.DataFrame:
    """Distinct rows, so that Python collapses none."""
    rng = np.random.default_rng(12)
    n = 50
    share = rng.beta(2, 3, n)
    edge = share.copy()
    edge[:3] = 0, 1, 0.001
    return pd.DataFrame({
        "count": rng.permutation(n), "share": share, "edge": edge, "member": rng.integers(0, 2, n),
        "way": rng.choice(["walk", "car", "bus"], n), "code": rng.choice([1, 2, 5], n),
        "income": rng.normal(20, 30, n), "x": rng.normal(size=n),
        "g": rng.choice(["a", "B", "c"], n), "nights": rng.integers(1, 30, n),
    })  # fmt: skip


def _sorted(data: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The block without hints; columns of X, with what belongs to them, in one order."""
    own = {k: np.asarray(v, dtype=float) for k, v in data.items() if k not in HINTS}
    if "n_levels" in data:  # rows by their predictors: programs of levels get them in that order
        own["X"] = own["X"].reshape(-1, int(data["K"]))
        order = np.lexsort([own["y"], *np.round(own["X"], 9).T])
        own |= {k: own[k][order] for k in ("X", "y", "weights")}
    if "X" in own:
        order = np.lexsort(np.round(own["X"], 9) + 0.0)
        own["X"] = own["X"][:, order]
        if "prior_scale" in own:
            own["prior_scale"] = own["prior_scale"].reshape(-1)[order]
    return own


def _both(case: str, r: Callable[..., Any], **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    model, formula, options = CASES[case]
    alpha = np.linspace(0, 1, len(_table()))
    bound = model(formula, **options).bind(_table())
    python = bound.stan_data(alpha, emit_log_lik=True)
    given = {**options, **more}
    program = bound.program.name
    in_r = r("stan_data", formula=formula, data=_table(), weights=alpha, program=program, **given)
    return python, in_r


def _assert_same(python: Mapping[str, Any], in_r: Mapping[str, Any]) -> None:
    one, two = _sorted(python), _sorted(in_r)
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_allclose(
            two[name].reshape(value.shape), value, rtol=1e-12, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("case", CASES)
def test_r_hands_over_the_data_that_python_does(case: str, r: Callable[..., Any]) -> None:
    python, in_r = _both(case, r)
    assert python.keys() == in_r.keys()
    model, formula, options = CASES[case]
    program = model(formula, **options).bind(_table()).program
    assert in_r.keys() == set(declared_names(program, "data"))
    _assert_same(python, in_r)
    for name in python.keys() & HINTS:
        assert np.shape(python[name]) == np.shape(in_r[name]) or np.size(in_r[name]) == 1
        assert np.isfinite(np.asarray(in_r[name], dtype=float)).all()


@pytest.mark.parametrize(("case", "other"), [
    ("poisson", NORMAL), ("poisson, normal prior", {"prior_scale": 1.4}),
    ("beta, scaled", {"upper": 401.0}), ("beta_regression at the edge", {"edge": 0.02}),
    ("log normal", {"unit": 0.6}), ("normal_mixture", {"min_sd": 0.2}),
])  # fmt: skip
def test_another_setting_would_be_seen(
    case: str, other: dict[str, Any], r: Callable[..., Any]
) -> None:
    """Negative control: one setting that differs between the languages."""
    fails(AssertionError, "", _assert_same, *_both(case, r, **other))


def test_settings_of_other_programs_are_refused(r: Callable[..., Any]) -> None:
    for case, wrong in (("beta", {"prior": "normal"}), ("poisson", {"unit": 2.0})):
        refuses(f"takes .*: found {next(iter(wrong))}", _both, case, r, **wrong)


def test_every_program_is_compared() -> None:
    programs = {model(f, **how).bind(_table()).program.name for model, f, how in CASES.values()}
    assert programs == {p.stem for p in (Path(__file__).parents[2] / "stan").glob("*.stan")}
