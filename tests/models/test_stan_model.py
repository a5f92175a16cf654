"""Users' own Stan programs: what they yield; programs that break a demand are refused."""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import modern_arrays
from pyhybrid.fitting.session import open_session
from pyhybrid.releases.statement import assumptions
from tests.models.targets import draws_of, log_lik_of
from tests.monte_carlo import assert_near
from tests.refusals import refuses

pytestmark = pytest.mark.samples
SHORT = SamplerSettings(chains=4, warmup=300, draws=600, adapt_delta=0.95)
RUN: dict[str, Any] = {"seed": 1, "engine": "embedded", "settings": SHORT}
PROGRAM = Path(__file__).with_name("own_counts.stan").read_text("utf-8")
BY_DESIGN = PROGRAM
for of_rate, of_design in (
    ("int<lower=1> n;", "int<lower=1> n;\n  int<lower=1> K;\n  matrix[n, K] X;"),
    ("real<lower=0> rate;", "vector[K] beta;"), ("rate ~ gamma(2, 1)", "beta ~ normal(0, 2)"),
    ("vector[n] weights", "vector<lower=0, upper=1>[n] weights"),
    ("poisson_lpmf(y[i] | rate)", "poisson_log_lpmf(y[i] | X[i] * beta)"),
    ("poisson_rng(rate)", "poisson_log_rng(X[i] * beta)"),
):  # fmt: skip
    BY_DESIGN = BY_DESIGN.replace(of_rate, of_design)


@cache
def _table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    y = rng.poisson(4, 60).astype("int16")
    rows = [f"r{i}" for i in range(60)]
    return pd.DataFrame({"y": y, "group": np.arange(60) % 3, "x": rng.normal(size=60)}, index=rows)


def _model(program: str = PROGRAM, **options: Any) -> ph.StanModel:
    given: dict[str, Any] = {"outcome": "y", "predict": "y_rep", "density_above_one": False}
    return ph.StanModel(program, **{**given, **options})


def test_the_posterior_is_the_conjugate_one() -> None:
    """Weighted Poisson with a gamma prior: gamma(2 + sum a y, 1 + sum a)."""
    alpha = np.random.default_rng(1).uniform(0, 1, 60)
    session = open_session(_model().bind(_table()), seed=1, engine="embedded")
    rate = session.fit(alpha, label="fit").draws.variables["rate"]
    exact = stats.gamma(2 + alpha @ _table()["y"], scale=1 / (1 + alpha.sum()))
    assert_near(rate, exact.mean())
    assert_near(rate, exact.std(), method="sd")


def test_nothing_strict_takes_a_program() -> None:
    model = _model(decimals=0)
    censored = ph.Censored(model, epsilon=5, inner=ph.Unweighted(model))
    refuses("censoring needs a built-in model", censored.release, _table(), **RUN)
    refuses("coded record by record", ph.calibrate, model, _table(), epsilon=4, **RUN,
            holds_no_released_record=True)  # fmt: skip


def test_survey_weights_above_one_are_taken() -> None:
    table = _table().assign(w=np.linspace(0.2, 1.9, 60).round(2))
    text = PROGRAM.replace("vector[n] weights", "vector<lower=0, upper=1>[n] weights")
    bound = ph.Unweighted(_model(text), design="w").bind(table)
    data = bound.stan_data(np.ones(60))
    assert max(data["weights"]) > 1
    assert np.isfinite(ProgramAtPoints(bound.program, data).log_density(np.zeros((1, 1)))).all()


def test_the_design_is_that_of_the_built_in_models() -> None:
    formula = "y ~ x + factor(group)"
    own = _model(BY_DESIGN, formula=formula).bind(_table())
    built_in = ph.Poisson(formula).bind(_table())
    np.testing.assert_array_equal(own.stan_data(np.ones(own.n))["X"], built_in.design.X)
    assert own.design_columns == built_in.design.columns
    draws = draws_of(own, draws=10)
    theirs = log_lik_of(built_in, draws)
    np.testing.assert_allclose(log_lik_of(own, draws), theirs, rtol=1e-10)
    given = _table().assign(group=1)  # one level only: coded by itself it would lose columns
    made = own.replicate(draws, 0, np.random.default_rng(1), given)
    assert list(made.columns) == ["y"]
    said, other = "must have one of its levels: row 'r0'", _table().assign(group=9)
    refuses(said, own.replicate, draws, 0, np.random.default_rng(1), other)


def test_programs_are_files_or_texts_and_travel(tmp_path: Path) -> None:
    path = tmp_path / "counts.stan"
    path.write_text(PROGRAM)
    for place in (path, str(path)):
        described = _model(place).describe()  # type: ignore[arg-type]
        assert described["program"] == "counts"
        assert described["program_sha256"] == _model().describe()["program_sha256"]
        assert str(tmp_path) not in str(described)
    bound = pickle.loads(pickle.dumps(_model().bind(_table())))
    assert repr(bound) == "<StanModel 'user_program' bound to 60 records>"


def test_predictors_from_python_get_one_draw() -> None:
    seen: dict[str, Any] = {}

    def predict(parameters: Any, df: pd.DataFrame, rng: np.random.Generator) -> Any:
        seen.update(parameters)
        assert list(df.columns) == ["group", "x"]  # not the confidential outcome
        return rng.poisson(parameters["rate"], len(df))

    _model(predict=predict).bind(_table()).replicate(_draws(), 0, np.random.default_rng(1))
    assert np.ndim(seen["rate"]) == 0
    assert "log_lik" not in seen


def test_a_later_step_reads_the_synthetic_first_column() -> None:
    """Data of the program, and what a function in Python sees, are of the synthetic table."""
    text = PROGRAM.replace("vector[n] weights;", "vector[n] weights; vector[n] x;")
    text = text.replace("poisson_rng(rate)", "x[i] > 1e3 ? 1000 + poisson_rng(rate) : 0")
    bound = _model(text, data=lambda df: {"x": [*df["x"]]}, predictors=("x",)).bind(_table())
    draws = draws_of(bound, draws=10)
    given = _table().drop(columns="y").assign(x=1e6)
    assert bound.replicate(draws, 0, np.random.default_rng(1), given)["y"].min() >= 1000
    assert bound.replicate(draws, 0, np.random.default_rng(1))["y"].max() == 0


@pytest.mark.parametrize(("old", "new"), [
    ("int y[n];", "array[n] int y;"),
    ("real<lower=0> a[n, K], b;", "array[n, K] real<lower=0> a; real<lower=0> b;"),
    ("vector[K] z[n] = f(x[1]);", "array[n] vector[K] z = f(x[1]);"),
    ("real f(int[] y, vector[,] z)", "real f(array[] int y, array[,] vector z)"),
    ("// int y[n];\nint y[n];", "// int y[n];\narray[n] int y;"),
    ("array[n] int y; vector[n] x;", "array[n] int y; vector[n] x;"),
    ("\u03a8int y[n];\n\u03a8real x;", "\tarray[n] int y;\n\treal x;"),
])  # fmt: skip
def test_arrays_of_old_stan_are_rewritten(old: str, new: str) -> None:
    assert modern_arrays(old).split() == new.split()


@pytest.mark.parametrize("block", ["", "transformed data { int zero; zero = 0; }"])
def test_a_log_lik_times_weights_is_read_without_them(block: str) -> None:
    """As the papers print it: one function of weight and record in both blocks."""
    function = "real wt_lpmf(int y, real rate, real w) { return w * poisson_lpmf(y | rate); }"
    printed = PROGRAM.replace("weights[i] * poisson_lpmf(y[i] | rate)", "poisson_lpmf(y[i] | rate)")
    printed = printed.replace("poisson_lpmf(y[i] | rate)", "wt_lpmf(y[i] | rate, weights[i])")
    printed = printed.replace("parameters {", f"{block}\nparameters {{")
    bound = _model(f"functions {{ {function} }}\n{printed}").bind(_table())
    draws = open_session(bound, **RUN).fit(np.linspace(0, 1, 60), label="fit").draws
    expected = stats.poisson.logpmf(_table()["y"].to_numpy(), draws.flat("rate")[:, None])
    np.testing.assert_allclose(log_lik_of(bound, draws), expected, rtol=1e-9)
    assert set(draws.variables) == {"rate", "log_lik", "y_rep"}


def test_charges_say_what_is_only_known_from_the_user() -> None:
    local = ph.Unweighted(_model()).release(_table(), **RUN)
    assert "Program: the user's own, user_program, sha256" in local.statement
    said = " ".join(assumptions(local.charge))
    for fact in ("The user answers for the rest", "no density of the program exceeds 1",
                 "the data of the Stan program"):  # fmt: skip
        assert fact in said


@pytest.mark.parametrize(("change", "message"), [
    (("vector[n] weights;", ""), "must declare weights in its data block"),
    (("log_lik", "loglik"), "must yield log_lik in its generated quantities"),
    (("vector[n] log_lik;", "vector[n + 1] log_lik; log_lik[n + 1] = 0;"), "per record, 60"),
    (("rate ~ gamma(2, 1);", "rate ~ gamma(2, 1)"), r"line 9(.|\n)*\^"),
    (("weights[i] * poisson", "poisson"), "must multiply each record's log_lik"),
    (("weights[i] * poisson", "sqrt(weights[i]) * poisson"), "must multiply each record's"),
    (("weights[i] * poisson", "square(weights[i]) * poisson"), "must multiply each record's"),
    (("weights[i] * poisson", "weights[n + 1 - i] * poisson"), "must multiply each record's"),
    (("rate ~ gamma(2, 1);", "target += weights[1] * gamma_lpdf(rate | 2, 1);"),
     "must multiply each record's"),
    (("log_lik[i] = ", "log_lik[i] = first * "), "must not depend on weights"),
    (("log_lik[i] = ", "log_lik[i] = 2 * "), "must multiply each record's"),
    (("vector[n] weights;", "vector[n] weights; real other;"), "does not take the data"),
    (("rate ~ gamma(2, 1);", "target += log(-1);"), "must be finite somewhere"),
    (("weights[i] * poisson_lpmf(y[i] | rate)", "fmax(-2, weights[i] * poisson_lpmf(y[i] | rate))"),
     "must multiply each record's"),
    (("poisson_lpmf(y[i] | rate)", "(9.0 + poisson_lpmf(y[i] | rate))"),
     "must be at most 0 where density_above_one=False"),
    (("poisson_rng(rate)", "y[i]"), "must not read the confidential outcome"),
    (("poisson_rng(rate)", "max(y) + poisson_rng(rate) + y[1]"), "must not read the confidential"),
])  # fmt: skip
def test_programs_that_break_a_demand_are_refused(change: tuple[str, str], message: str) -> None:
    assert change[0] in PROGRAM
    text = PROGRAM.replace(*change)
    if "first" in text:  # a parameter's name that hides the weights
        hidden = "transformed parameters { real first = weights[1]; }"
        text = text.replace("model {", f"{hidden}\nmodel {{")
    refuses(message, lambda: _model(text).bind(_table()))


def test_dropped_constants_are_no_fault() -> None:
    kernel = "weights[i] * (y[i] * log(rate) - rate)"
    _model(PROGRAM.replace("weights[i] * poisson_lpmf(y[i] | rate)", kernel)).bind(_table())


@pytest.mark.parametrize(("make", "message"), [
    (lambda: _model("/nowhere/program.stan"), "must be a readable Stan file"),
    (lambda: _model(data=3), "must be a mapping or a function"),
    (lambda: _model(predict=3), "predict must name a generated quantity"),
    (lambda: _model(density_above_one="yes"), "density_above_one must be True or False"),
    (lambda: _model(outcome="z").bind(_table()), "outcome 'z' must be a column"),
    (lambda: _model(predictors="x"), "predictors must be a tuple of names"),
    (lambda: _model(predictors=("z",)).bind(_table()), "must be columns of the data"),
    (lambda: _model(formula="x ~ group").bind(_table()), "must have the outcome 'y' on its left"),
    (lambda: _model(formula="y ~ group + offset(x)").bind(_table()),
     r"design matrix X alone: found offset\(\).*in data="),
    (lambda: _model(data=lambda df: 3).bind(_table()), "must return a mapping"),
    (lambda: _model(data={"y": np.arange(60)}).bind(_table()), "function of the table"),
    (lambda: _model().bind(_table().assign(y=[None, *range(59)])), "must not be missing"),
])  # fmt: skip
def test_bad_arguments_are_named(make: Any, message: str) -> None:
    refuses(message, make)


@cache
def _draws() -> Any:
    return draws_of(_model().bind(_table()), draws=10)


@pytest.mark.parametrize(("predict", "message"), [
    ("nothing", "'nothing' is not"), ("rate", r"must have shape \(60,\)"),
    (lambda p, df, rng: np.ones(3), r"must have shape \(60,\)"),
    (lambda p, df, rng: ["a"] * len(df), "must return numbers"),
    (lambda p, df, rng: np.full(len(df), np.nan), "not finite"),
])  # fmt: skip
def test_bad_predictors_are_named(predict: Any, message: str) -> None:
    with pytest.raises((InvalidInput, ph.SamplingError), match=message):
        _model(predict=predict).bind(_table()).replicate(_draws(), 0, np.random.default_rng(1))


def test_terms_of_a_formula_that_read_all_records_are_named() -> None:
    bound = _model(BY_DESIGN, formula="y ~ poly(x, 2)").bind(_table())
    assert "poly(x, 2)" in bound.data_dependent
