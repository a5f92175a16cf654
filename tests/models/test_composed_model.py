"""Composed programs beside the built-in models: terms, clip and center; entries of records."""

import json
import pickle
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.rstan import RStanEngine
from pyhybrid.fitting.exact import frozen_draws
from pyhybrid.mechanisms.censored.center import log_lik_at
from pyhybrid.models.stan_program.composed_text import ComposedText
from pyhybrid.privacy.censoring import Cap
from tests.conftest import require
from tests.refusals import refuses

POISSON = """
data { int<lower=1> K; }
record {
  int<lower=0> y;
  row_vector[K] X;
}
parameters { vector[K] beta; }
prior { beta ~ normal(0, 2); }
log_lik { return poisson_log_lpmf(y | X * beta); }
replicate { return poisson_log_rng(X * beta); }
"""
NORMAL = """
data { int<lower=1> K; }
record { real y; row_vector[K] X; }
parameters { vector[K] beta; real<lower=0> sigma; }
prior { beta ~ normal(0, 2); sigma ~ student_t(3, 0, 1); }
log_lik { return normal_lpdf(y | X * beta, sigma); }
replicate { return normal_rng(X * beta, sigma); }
"""
RNG = np.random.default_rng(4)
TABLE = pd.DataFrame({"x": RNG.normal(size=30).round(1), "g": RNG.choice(["a", "b", "c"], 30)})
TABLE["y"] = RNG.poisson(np.exp(0.5 + 0.4 * TABLE["x"])) + 0
FORMULA = "y ~ x + g"
BETA = np.random.default_rng(5).normal(0, 0.5, (6, 4))
SIGMA = np.exp(np.random.default_rng(6).normal(0, 0.3, 6))


def counts(**options: Any) -> ph.ComposedModel:
    given: dict[str, Any] = {"outcome": "y", "formula": FORMULA, "density_above_one": False,
                             "decimals": 0}  # fmt: skip
    return ph.ComposedModel(POISSON, **{**given, **options})


def matrix(bound: Any, **parameters: FloatArray) -> FloatArray:
    """log_lik at parameters, (S, n)."""
    own: Any = None
    log_lik = bound.log_lik(frozen_draws(parameters, own))
    return np.concatenate(list(log_lik.make()), axis=1)[:, log_lik.row_of]


def log_prior(beta: FloatArray) -> FloatArray:
    return stats.norm(0, 2).logpdf(beta).sum(axis=1)


def test_log_lik_is_that_of_the_built_in_models() -> None:
    pairs: list[tuple[Any, Any, dict[str, FloatArray]]] = [
        (counts(), ph.Poisson(FORMULA), {"beta": BETA}),
        (
            ph.ComposedModel(NORMAL, outcome="y", formula=FORMULA),
            ph.NormalRegression(FORMULA),
            {"beta": BETA, "sigma": SIGMA},
        ),
    ]
    for composed, built_in, parameters in pairs:
        ours, theirs = composed.bind(TABLE), built_in.bind(TABLE)
        expected = matrix(theirs, **parameters)
        np.testing.assert_allclose(matrix(ours, **parameters), expected, rtol=1e-12, atol=1e-12)
        center = {name: own[0] for name, own in parameters.items()}
        np.testing.assert_allclose(
            log_lik_at(ours, center), log_lik_at(theirs, center), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("cap", [None, 0.3, 2.0])
def test_weights_center_cap_and_sum_are_what_numpy_makes(
    cap: float | None, centered: bool, unit: bool
) -> None:
    """The prior's and the sum of clipped, weighted, centered terms; other weights move it."""
    bound = counts().bind(TABLE)
    f = matrix(ph.Poisson(FORMULA).bind(TABLE), beta=BETA)
    alpha = np.random.default_rng(7).uniform(0, 1, 30)
    alpha[3] = 0
    clip = None if cap is None else Cap(
        below=cap, above=cap, reference=f[0] if centered else None,
        unit=np.arange(30) // 3 if unit else None,
    )  # fmt: skip
    terms = alpha * (f - (f[0] if clip is not None and centered else 0))
    if clip is not None and unit:
        terms = terms.reshape(len(f), 10, 3).sum(axis=2)
    if cap is not None:
        terms = np.clip(terms, -cap, cap)
    expected = terms.sum(axis=1) + log_prior(BETA)

    def found(weights: FloatArray) -> FloatArray:
        at = ProgramAtPoints(bound.program, bound.stan_data(weights, cap=clip))
        return at.log_density(BETA) - at.log_density(BETA[:1])

    np.testing.assert_allclose(found(alpha), expected - expected[0], rtol=1e-12, atol=1e-11)
    assert np.abs(found(alpha / 10) - (expected - expected[0])).max() > 1e-6


def test_survey_weights_above_one_act_as_they_do_in_built_in_models() -> None:
    table = TABLE.assign(w=np.linspace(1, 5, 30).round(1))
    design = ph.measures.SurveyDesign(weights="w", population=30.0)
    ours, theirs = (
        ph.models.SurveyWeighted(model, design).bind(table)
        for model in (counts(), ph.Poisson(FORMULA))
    )
    np.testing.assert_allclose(
        matrix(ours, beta=BETA), matrix(theirs, beta=BETA), rtol=1e-12, atol=1e-12
    )
    at = ProgramAtPoints(ours.program, ours.stan_data(np.ones(30)))
    expected = matrix(theirs, beta=BETA).sum(axis=1) + log_prior(BETA)
    found = at.log_density(BETA)
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-12, atol=1e-10)


@pytest.mark.samples
def test_a_release_with_a_center_is_strict_and_says_what_it_rests_on() -> None:
    model = counts()
    mechanism = ph.Censored(
        model, epsilon=30, inner=ph.Unweighted(model), check_modes=False,
        center={"beta": [0.5, 0.4, 0.0, 0.0]},
    )  # fmt: skip
    release = mechanism.release(TABLE, seed=1, engine="embedded")
    assert (release.charge.kind, release.charge.epsilon) == ("strict", 30.0)
    assert "the outcome is not in scope in its prior" in release.statement
    assert "The user states that these are public: K." in release.statement
    assert release.synthetic[0]["y"].dtype == np.int64
    pd.testing.assert_frame_equal(release.synthetic[0].drop(columns="y"), TABLE.drop(columns="y"))


def test_only_what_is_by_record_is_strict() -> None:
    """The formula's terms, the decimals, and rows that come from elsewhere."""
    assert not counts().bind(TABLE).data_dependent
    assert counts(formula="y ~ scale(x) + g").bind(TABLE).data_dependent == ("scale(x)",)
    assert not counts(decimals=None).bind(TABLE).decimals_given
    given = {"formula": None, "data": {"K": 1}, "rows": {"X": np.ones((30, 1))}}
    assert counts(**given).bind(TABLE).data_dependent
    stated = counts(**given, by_record=True, predictors=("x",)).bind(TABLE)
    assert not stated.data_dependent
    assert stated.predictors == ("x",)
    assert "are left as they are: X." in " ".join(stated.assumptions)


def test_a_density_above_one_counts_as_one_where_the_user_denies_it() -> None:
    """A wrong flag does not take the cap away: what is above 0 is clipped there."""
    above = POISSON.replace("return poisson_log_lpmf", "return 9 + poisson_log_lpmf")
    model = ph.ComposedModel(above, outcome="y", formula=FORMULA, density_above_one=False)
    bound = model.bind(TABLE)
    at = ProgramAtPoints(bound.program, bound.stan_data(np.ones(30), cap=1.0))
    f = np.minimum(9 + matrix(ph.Poisson(FORMULA).bind(TABLE), beta=BETA), 0)
    expected = np.maximum(f, -1).sum(axis=1) + log_prior(BETA)
    found = at.log_density(BETA)
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-10, atol=1e-10)
    refuses("must be at most 0 where density_above_one=False", matrix, bound, beta=BETA)


@pytest.mark.needs_r
def test_rstan_reads_composed_programs_too(tmp_path: Path) -> None:
    """Its old language, with arrays rewritten as the engine does; brms's and functions, too."""
    status = RStanEngine().status()
    require(status.available, status.cause)
    root = Path(__file__).parents[2]
    given = json.loads((root / "tests/stored/brms/groups.json").read_text())
    brms = ph.models.from_brms(root / "tests/stored/brms/groups.stan", given, outcome="score")
    assert isinstance(brms, ph.ComposedModel)
    functions = POISSON.replace("X * beta", "middle(X, beta)") + (
        "functions { real middle(row_vector x, vector b) { return log1p(exp(x * b)); } }"
    )
    by_area, own = ComposedText("by_area", BY_AREA), ComposedText("functions", functions)
    for place, (text, entry) in enumerate([(brms.text, "Y"), (by_area, "visits"), (own, "y")]):
        for kind, program in enumerate((text.program(), text.replicates(entry))):
            (tmp_path / f"{place}{kind}.stan").write_text(program.text)
    code = (
        f"source('{root}/R/rewrite.R'); for (f in list.files('{tmp_path}', full.names = TRUE)) "
        "rstan::stanc(model_code = for_old_rstan(readLines(f)))"
    )
    ran = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


BY_AREA = """
data { int<lower=1> n_areas; }
record { real size; int<lower=1, upper=n_areas> area; int<lower=0> visits; }
parameters { vector[n_areas] level; }
prior { level ~ normal(0, 1); }
log_lik { return poisson_log_lpmf(visits | level[area] + size); }
replicate { return poisson_log_rng(level[area] + size); }
"""


def by_area(**options: Any) -> ph.ComposedModel:
    given: dict[str, Any] = {
        "outcome": "y", "columns": {"visits": "y", "area": "g", "size": "x"},
        "levels": {"g": ("a", "b", "c", "d")}, "data": {"n_areas": 4}, "decimals": 0,
    }  # fmt: skip
    return ph.ComposedModel(BY_AREA, **{**given, **options})


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_levels_are_places_in_what_is_declared(dtype: str) -> None:
    """Whatever levels the data have: a record without its neighbors is coded as with them."""
    table = TABLE.astype({"g": dtype})
    areas = by_area().bind(table).stan_data(np.ones(30))["pyhybrid_area"]
    assert areas.tolist() == ["abcd".index(g) + 1 for g in TABLE["g"]]
    few = table[table["g"] != "a"]
    alone = by_area().bind(few).stan_data(np.ones(len(few)))["pyhybrid_area"]
    np.testing.assert_array_equal(alone, areas[table["g"] != "a"])


@pytest.mark.parametrize(("options", "table", "message"), [
    ({"levels": {"g": ("a", "b")}}, TABLE, "'area' must be one of the levels declared: row"),
    ({"levels": {}}, TABLE, "column 'g' must be numeric to be entry 'area'"),
    ({"columns": {"visits": "y", "area": "g"}}, TABLE,
        "'size' of block 'record' must be a col"),
    ({"columns": {"visits": "y", "vists": "x"}}, TABLE,
        "must name entries of block 'record': 'vists'"),
    ({"data": {}}, TABLE, "'n_areas' is missing"),
    ({"data": {"n_areas": 4, "m": 1}}, TABLE, "'m' is none of them"),
    ({"data": {"n_areas": 2}}, TABLE, "does not take the data"),
    ({}, TABLE.assign(x=np.where(TABLE["x"] > 0, np.nan, 1)), "'size' must be a finite number"),
    ({}, TABLE.assign(y=TABLE["y"] + 0.5), "'visits' must be a whole number: row"),
    ({"rows": {"size": np.ones(3)}}, TABLE,
        r"one entry per record, 30: 'size' has shape \(3,\)"),
    ({"formula": "y ~ x"}, TABLE, "predictors, x, which block 'record' must read"),
    ({"formula": "x ~ 1"}, TABLE, "must have the outcome 'y' on its left"),
    ({"predictors": ("z",)}, TABLE, "'z' is not"),
    ({"monitored": ("nothing",)}, TABLE, "monitored must be variables"),
])  # fmt: skip
def test_what_does_not_fit_is_named(options: Any, table: pd.DataFrame, message: str) -> None:
    own: Any = None
    draws = frozen_draws({"log_lik": np.zeros((2, 30))}, own)
    refuses(message, lambda: by_area(**options).bind(table).monitored(draws), hidden=["0.5"])


def test_bound_models_travel() -> None:
    bound = counts().bind(TABLE)
    again = pickle.loads(pickle.dumps(bound))
    np.testing.assert_array_equal(matrix(again, beta=BETA), matrix(bound, beta=BETA))


@pytest.mark.parametrize(("change", "message"), [
    (("prior { beta ~ normal(0, 2); }\n", ""), "must have a block 'prior'"),
    (("int<lower=0> y;", "int<lower=0> y, z;"), "declarations of one variable each"),
    (("vector[K] beta;", "vector[K] beta = 1;"), "declarations of one variable each"),
    (("int<lower=0> y;", "int<lower=0> K; int<lower=0> y;"), "must be declared once"),
    (("vector[K] beta;", "vector[K] log_lik;"), "is a name of the program around"),
    (("beta ~ normal(0, 2);", "beta ~ normal(0, 2)"), r"must be valid Stan(.|\n)*\^"),
])  # fmt: skip
def test_programs_of_another_form_are_refused(change: tuple[str, str], message: str) -> None:
    text = POISSON.replace(*change)
    assert text != POISSON
    refuses(message, lambda: ph.ComposedModel(text, outcome="y", formula=FORMULA).bind(TABLE))


@pytest.mark.parametrize(("options", "message"), [
    ({"by_record": "yes"}, "by_record must be True or False"),
    ({"data": 3}, "data must be a mapping"), ({"decimals": -1}, "decimals"),
    ({"predictors": "x"}, "must be a tuple of names"),
    ({"outcome": "z"}, "must have one entry of the outcome 'z'"),
])  # fmt: skip
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    refuses(message, by_area, **options)
