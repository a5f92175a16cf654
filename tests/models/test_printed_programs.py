"""A program as papers print it: old arrays, weighted log_lik, no replicates, through StanModel."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.engines import ConvergenceRule, SamplerSettings, StanProgram, load_program
from pyhybrid.fitting.session import open_session
from pyhybrid.models.stan_program import stan_model
from pyhybrid.models.stan_program.printed import halved, modern_arrays
from pyhybrid.privacy.bounds import bounds_of
from pyhybrid.privacy.log_lik import LogLik
from tests.parity.test_supplement import PRINTED
from tests.refusals import refuses

SHORT = SamplerSettings(warmup=300, draws=300)
OLD = """
functions {
  real weighted_lpmf(int[] y, vector mu, vector weights) {
    real total;
    total = 0;
    for (i in 1:size(y)) total += weights[i] * poisson_log_lpmf(y[i] | mu[i]);
    return total;
  }
}
data { int<lower=1> n; int<lower=1> K;  // int k[n];
  int<lower=0> y[n]; vector<lower=0>[n] weights; matrix[n, K] X; }
parameters { vector[K] beta; real<lower=0> s; }
transformed parameters { vector[n] mu; mu = X * beta; }
model { s ~ student_t(3, 0, 1); beta ~ normal(0, s); target += weighted_lpmf(y | mu, weights); }
generated quantities {
  vector[n] log_lik;
  for (i in 1:n) log_lik[i] = weights[i] * poisson_log_lpmf(y[i] | mu[i]);
}
"""
"""As papers print: nothing of theirs."""
POISSON = ph.Poisson("y ~ x")


@cache
def _table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = np.resize([0.0, 1.0, 2.0], 60)
    return pd.DataFrame({"y": rng.poisson(np.exp(1.5 + 0.3 * x)), "x": x})


def _model(text: str = OLD, **how: Any) -> ph.StanModel:
    given: dict[str, Any] = {"outcome": "y", "predict": POISSON, "density_above_one": False}
    return ph.StanModel(text, **{**given, **how})


@pytest.mark.parametrize(("old", "new"), [
    ("int<lower=0> y[n];", "array[n] int<lower=0> y;"),
    ("  vector[K] b[2, m + 1] = f(1, 2);", "  array[2, m + 1] vector[K] b = f(1, 2);"),
    ("int a, b[n], c[g[1]];", "int a; array[n] int b; array[g[1]] int c;"),
    ("real f(int[] y, real[,] z) {", "real f(array[] int y, array[,] real z) {"),
    ("int[] f(vector[] v) {", "array[] int f(array[] vector v) {"),
    ("cholesky_factor_corr[K] L[2];", "array[2] cholesky_factor_corr[K] L;"),
])  # fmt: skip
def test_old_arrays_are_rewritten(old: str, new: str) -> None:
    assert modern_arrays(old) == new
    assert modern_arrays(new) == new


@pytest.mark.parametrize("text", [
    "// int y[n];", "/* real z[2]; */", 'print("int y[n];");', "vector[n] mu;\nmu[1] = y[2];",
    "matrix[n, K] X;", "target += weights[i] * f(y[i] | mu[i]);",
    *(load_program(f"published/{n}").text for n in ("poisson", "normal_mixture")),
    load_program("negative_binomial").text,
])  # fmt: skip
def test_all_else_stays(text: str) -> None:
    assert modern_arrays(text) == text


def test_weighted_is_told_from_unweighted_and_from_neither() -> None:
    program, f = StanProgram(name="p", text=""), -np.arange(1.0, 7.0).reshape(2, 3)
    assert halved(program, f, f / 2)
    assert not halved(program, f, f)
    refuses("neither the same as with all weights 1, nor half", halved, program, f, f / 4)


def test_the_printed_form_binds_and_its_weights_are_divided_out() -> None:
    bound = _model().bind(_table())
    assert bound.weighted
    assert bound.checked
    unweighted = OLD.replace("log_lik[i] = weights[i] * ", "log_lik[i] = ")
    assert not _model(unweighted).bind(_table()).weighted
    assert _model().formula == "y ~ x"
    assert _model().describe()["predict"] == "Poisson"


@pytest.mark.parametrize(("change", "how", "words"), [
    (("log_lik[i] = weights[i] *", "log_lik[i] = weights[i]^2 *"), {}, "must do the same at"),
    (("log_lik[i] = weights[i] *", "log_lik[i] = (1 + weights[i]) *"), {}, "neither the same"),
    (("", ""), {"log_lik_weighted": False}, "must not depend on weights"),
    (("log_lik[i] = weights[i] *", "log_lik[i] ="), {"log_lik_weighted": True}, "says: it is"),
    (("", ""), {"predict": ph.NegativeBinomial("y ~ x")}, "'phi' is no variable of it"),
    (("poisson_log_lpmf(y[i] | mu[i])", "poisson_log_lpmf(y[i] | 2 * mu[i])"), {},
     "their log-likelihoods differ"),
    (("", ""), {"formula": "y ~ 1"}, "formula must be that of the model that predict="),
    (("", ""), {"predict": ph.TwoPart(zero=ph.Bernoulli("y ~ x"), positive=ph.Gamma("y ~ x"))},
     "or a regression of ours"),
    (("", ""), {"predict": 3}, "or a regression of ours: found int"),
    (("", ""), {"by_record": True}, "asks for a strict charge"),
])  # fmt: skip
def test_what_is_not_so_is_refused(
    change: tuple[str, str], how: dict[str, Any], words: str
) -> None:
    refuses(words, lambda: _model(OLD.replace(*change), **how).bind(_table()))


def test_nothing_tried_and_weights_named_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: Any) -> Any:
        raise EngineUnavailable("stanli is gone")

    monkeypatch.setattr(stan_model, "check_bound", missing)
    refuses("makes epsilon too small", _model(if_unchecked="local").bind, _table())
    said = _model(if_unchecked="local", log_lik_weighted=True).bind(_table())
    assert said.weighted
    assert not said.checked


@pytest.mark.samples
def test_the_charge_is_of_the_unweighted_log_lik_times_the_weights_once() -> None:
    """Control: a weighted log_lik taken as it is counts the weights twice, and charges less."""
    table, alpha = _table(), np.linspace(0.2, 0.9, 60)
    model = _model()
    session = open_session(model.bind(table), seed=2, engine="embedded", settings=SHORT)
    mechanism = ph.mechanisms.GivenWeights(model, alpha=alpha, accounting="lipschitz")
    release = mechanism.release_from(session, n_synthetic=2, n_draws_released=1)
    fit = session.fit(alpha, label="weighted")
    ours = ph.Poisson("y ~ x").bind(table)
    bounds = bounds_of(ours.log_lik(fit.draws), alpha, draw_quantile=1.0)
    np.testing.assert_allclose(fit.bounds.by_record, bounds.by_record, rtol=1e-8)
    assert release.charge.epsilon == pytest.approx(2 * fit.bounds.overall, abs=0.011)
    assert release.charge.kind == "asymptotic local"
    twice = bounds_of(LogLik.of(fit.draws.flat("log_lik")), alpha, draw_quantile=1.0)
    assert twice.overall < 0.95 * fit.bounds.overall, "control"
    for made in release.synthetic:
        assert made["x"].tolist() == table["x"].tolist()
        assert (made["y"] >= 0).all()
        assert 0.7 < made["y"].mean() / table["y"].mean() < 1.4


@pytest.mark.samples
def test_the_program_that_the_supplement_prints_is_taken_as_it_is() -> None:
    if not PRINTED.is_file():
        pytest.skip("the supplement is not beside this checkout: it is not ours to ship")
    declared = ph.NegativeBinomial("y ~ x")
    model = _model(
        str(PRINTED.with_name("supplement_2.stan")), predict=declared, monitored=("beta", "phi")
    )
    x = _table()["x"].to_numpy()
    counts = np.random.default_rng(1).negative_binomial(2, 2 / (2 + np.exp(2 + 0.2 * x)))
    table, settings = _table().assign(y=counts), replace(SHORT, adapt_delta=0.95)
    release = ph.LipschitzWeighted(model, accounting="lipschitz").release(
        table, n_synthetic=1, seed=3, engine="embedded", settings=settings,
        rule=ConvergenceRule(rhat=1.1, ess_per_chain=10, divergent_share=0.2),
    )  # fmt: skip
    assert release.charge.kind == "asymptotic local"
    assert (release.synthetic[0]["y"] >= 0).all()
