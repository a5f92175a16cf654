"""Users' own Stan programs: the page about them runs; programs that break a demand are refused."""

import json
import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.engines import SamplerSettings, StanProgram
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints
from pyhybrid.engines.programs import block_text, declared_names
from pyhybrid.fitting.session import open_session
from tests.docs.snippets import short_chains
from tests.monte_carlo import assert_near
from tests.refusals import fails, refuses

pytestmark = pytest.mark.samples
PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "08_your_own_stan_model.ipynb"
SHORT = SamplerSettings(chains=4, warmup=500, draws=1500, adapt_delta=0.95)
RUN: dict[str, Any] = {"seed": 1, "engine": "embedded", "settings": SHORT}
PROGRAM = """
data {
  int<lower=1> n;
  array[n] int y;
  vector[n] weights;
  real cap;
}
parameters { real<lower=0> rate; }
model {
  rate ~ gamma(2, 1);
  for (i in 1:n) target += fmax(-cap, fmin(cap, weights[i] * poisson_lpmf(y[i] | rate)));
}
generated quantities {
  vector[n] log_lik;
  array[n] int y_rep;
  for (i in 1:n) {
    log_lik[i] = poisson_lpmf(y[i] | rate);
    y_rep[i] = poisson_rng(rate);
  }
}
"""
WEIGHTED = PROGRAM.replace("log_lik[i] = ", "log_lik[i] = weights[i] * ")
THREADED = """
functions {
  real part(array[] int y, int first, int last, vector weights, real cap, real rate) {
    real total = 0;
    for (i in 1:size(y)) {
      total += fmax(-cap, fmin(cap, weights[first + i - 1] * poisson_lpmf(y[i] | rate)));
    }
    return total;
  }
}
""" + PROGRAM.replace(
    "for (i in 1:n) target += fmax(-cap, fmin(cap, weights[i] * poisson_lpmf(y[i] | rate)));",
    "target += reduce_sum(part, y, 1, weights, cap, rate);",
)
UNCAPPED = PROGRAM.replace("real cap;", "").replace("fmax(-cap, fmin(cap, ", "((")


@cache
def _table() -> pd.DataFrame:
    y = np.random.default_rng(3).poisson(4, 60).astype("int16")
    return pd.DataFrame({"y": y, "group": np.arange(60) % 3}, index=[f"r{i}" for i in range(60)])


COMPOSED = """
record { int<lower=0> y; }
parameters { real<lower=0> rate; }
prior { rate ~ gamma(2, 1); }
log_lik { return poisson_lpmf(y | rate); }
replicate { return poisson_rng(rate); }
"""


def _composed(program: str = COMPOSED, **options: Any) -> ph.ComposedModel:
    given: dict[str, Any] = {"outcome": "y", "density_above_one": False}
    return ph.ComposedModel(program, **{**given, **options})


def _model(program: str = PROGRAM, **options: Any) -> ph.StanModel:
    given: dict[str, Any] = {"outcome": "y", "predict": "y_rep", "density_above_one": False}
    return ph.StanModel(program, **{**given, **options})


@cache
def _page() -> dict[str, Any]:
    names: dict[str, Any] = {}
    cells = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    blocks = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(blocks) == 9
    with short_chains():
        exec(compile("\n".join(blocks), str(PAGE), "exec"), names)
    return names


def test_the_page_runs() -> None:
    page = _page()
    assert page["strict"].charge.kind == "strict"
    assert page["strict"].charge.epsilon == 4
    assert page["release"].charge.kind == "asymptotic local"
    homes = page["homes"]
    for text, name in zip(page["leaking"].values(), ("rent_rep", "prior", "log_lik"), strict=True):
        own = {"outcome": "rent", "data": page["stan_data"], "predict": "rent_rep"}
        model = ph.StanModel(text, **own, predictors=("area", "rooms"))
        refuses(f"{name}.* must not read", model.bind, homes)
    for made in (*page["release"].synthetic, *page["again"].synthetic):
        pd.testing.assert_frame_equal(made.drop(columns="rent"), homes.drop(columns="rent"))
        given = any(made is each for each in page["release"].synthetic)  # decimals=0
        assert made["rent"].dtype == (np.int64 if given else homes["rent"].dtype)
        assert (made["rent"] == made["rent"].round()).all()
        assert 0.7 < made["rent"].median() / homes["rent"].median() < 1.4


def test_the_pages_weighted_log_lik_is_not_weighted_twice() -> None:
    page = _page()
    assert page["same"].charge.bound == pytest.approx(page["again"].charge.bound, rel=1e-9)
    np.testing.assert_allclose(page["same"].confidential.alpha, page["again"].confidential.alpha,
                               rtol=1e-9, atol=1e-12)  # fmt: skip


def test_the_pages_log_lik_is_scipys() -> None:
    page = _page()
    bound, fit = page["model"].bind(page["homes"]), page["release"].fit
    ours = np.concatenate(list(bound.log_lik_blocks(fit.draws)), axis=1)
    data = page["stan_data"](page["homes"])
    level = fit.draws.flat("level")[:, data["area"].to_numpy() - 1]
    mean = level + fit.draws.flat("slope")[:, None] * data["rooms"].to_numpy()
    sd = fit.draws.flat("sigma")[:, None]
    expected = stats.norm.logpdf(data["log_rent"].to_numpy(), mean, sd)
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)


def test_the_posterior_is_the_conjugate_one() -> None:
    """Weighted Poisson with a gamma prior: gamma(2 + sum a y, 1 + sum a)."""
    alpha = np.random.default_rng(1).uniform(0, 1, 60)
    session = open_session(_model().bind(_table()), seed=1, engine="embedded")
    rate = session.fit(alpha, label="fit").draws.variables["rate"]
    exact = stats.gamma(2 + alpha @ _table()["y"], scale=1 / (1 + alpha.sum()))
    assert_near(rate, exact.mean())
    assert_near(rate, exact.std(), method="sd")


@pytest.mark.parametrize("make", [
    ph.Unweighted, ph.LipschitzWeighted, ph.CountWeighted,
    lambda m: ph.ScalarWeighted(m, target_epsilon=4), lambda m: ph.Truncated(m, epsilon=6),
    lambda m: ph.LipschitzWeighted(m, reweighting=ph.mechanisms.Reweighting(recursive=False)),
    lambda m: ph.Censored(m, epsilon=5),
])  # fmt: skip
def test_every_mechanism_releases(make: Any) -> None:
    release = make(_model()).release(_table(), n_synthetic=2, **RUN)
    for made in release.synthetic:
        assert made["y"].dtype == np.dtype("int16")
        assert made.index.equals(_table().index)
        pd.testing.assert_series_equal(made["group"], _table()["group"])
    assert not release.synthetic[0]["y"].equals(release.synthetic[1]["y"])
    assert 0 < release.charge.bound < np.inf


def test_sets_from_one_draw_differ() -> None:
    release = ph.Unweighted(_model()).release(_table(), n_synthetic=2, n_draws_released=1, **RUN)
    assert not release.synthetic[0]["y"].equals(release.synthetic[1]["y"])


def test_only_a_composed_program_with_decimals_given_is_strict() -> None:
    models = (_model(decimals=0), _composed(), _composed(decimals=0))
    made = [ph.Censored(m, epsilon=5, inner=ph.Unweighted(m), check_modes=False) for m in models]
    kinds = [each.release(_table(), **RUN).charge.kind for each in made]
    assert kinds == ["asymptotic local", "asymptotic local", "strict"]


def test_a_weighted_log_lik_is_unweighted_also_at_weight_0() -> None:
    alpha = np.linspace(0, 1, 60)
    found = []
    for model in (_model(), _model(WEIGHTED, log_lik_weighted=True)):
        bound = model.bind(_table())
        draws = EmbeddedEngine().sample(bound.program, bound.stan_data(alpha), seed=2,
                                        settings=SHORT)  # fmt: skip
        found.append(np.concatenate(list(bound.log_lik_blocks(draws)), axis=1))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)
    assert (found[1][:, 0] != 0).all()


def test_survey_weights_above_one_are_tried_as_others_are() -> None:
    table = _table().assign(w=np.linspace(1, 4, 60).round(1))
    text = PROGRAM.replace("vector[n] weights", "vector<lower=0, upper=1>[n] weights")
    design = ph.measures.SurveyDesign(weights="w", population=60.0)
    bound = ph.models.SurveyWeighted(_model(text), design).bind(table)
    assert max(bound.stan_data(np.ones(60), cap=3.0)["weights"]) > 1


def test_blocks_are_views_of_the_engines_output() -> None:
    bound = _model().bind(_table())
    draws = EmbeddedEngine().sample(bound.program, bound.stan_data(np.ones(60)), seed=2,
                                    settings=SHORT)  # fmt: skip
    assert all(np.shares_memory(b, draws.variables["log_lik"]) for b in bound.log_lik_blocks(draws))


def _calibrated(model: Any) -> Any:
    return ph.calibrate(model, _table(), epsilon=4, **RUN, n_draws=30,
                        holds_no_released_record=True)  # fmt: skip


def test_calibrations_hold_and_are_read_again_with_their_model(tmp_path: Path) -> None:
    model = _composed()
    made = _calibrated(model)
    weights = made.weights(model.bind(_table().head(40)))
    np.testing.assert_allclose(weights, made.weights(model.bind(_table()))[:40], rtol=1e-12)
    refuses("coded record by record", _calibrated, _model())
    made.save(tmp_path / "calibration")
    read = ph.mechanisms.Calibration.load(tmp_path / "calibration", model=_composed())
    np.testing.assert_array_equal(read.weights(model.bind(_table().head(40))), weights)
    refuses("built in or given", ph.mechanisms.Calibration.load, tmp_path / "calibration")
    other = _composed(COMPOSED.replace("2, 1", "2, 2"))
    load = ph.mechanisms.Calibration.load
    refuses("program_sha256 was", load, tmp_path / "calibration", model=other)


def test_a_calibration_passes_on_what_the_model_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _composed()
    made = _calibrated(model)
    bound = model.bind(_table())

    def refuse(*_: Any) -> None:
        raise InvalidInput("a density above 1")

    monkeypatch.setattr(type(bound), "log_lik_blocks", refuse)
    refuses("a density above 1", made.weights, bound)


def test_programs_with_reduce_sum_give_the_same_bounds() -> None:
    settings = SamplerSettings(chains=4, warmup=500, draws=1500, threads_per_chain=1)
    model = _model(THREADED)
    session = open_session(model.bind(_table()), seed=1, engine="embedded", settings=settings)
    draws = session.unweighted().draws
    expected = stats.poisson(draws.flat("rate")[:, None]).logpmf(_table()["y"].to_numpy())
    np.testing.assert_allclose(draws.flat("log_lik"), expected, rtol=1e-9)
    threads = replace(settings, threads_per_chain=2)
    with pytest.raises(InvalidInput, match="only the cmdstan engine has threads"):
        open_session(model.bind(_table()), seed=1, engine="embedded", settings=threads).unweighted()


@pytest.mark.parametrize(("make", "text"), [(_model, PROGRAM), (_composed, COMPOSED)])
def test_programs_are_files_or_texts_and_travel(make: Any, text: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.stan"
    path.write_text(text)
    from_text = make()
    for place in (path, str(path)):
        described = make(place).describe()
        assert described["program"] == "counts"
        assert described["program_sha256"] == from_text.describe()["program_sha256"]
        assert str(tmp_path) not in str(described)
    bound = pickle.loads(pickle.dumps(from_text.bind(_table())))
    assert repr(bound) == f"<{type(from_text).__name__} 'user_program' bound to 60 records>"


def test_predictors_from_python_get_one_draw() -> None:
    seen: dict[str, Any] = {}

    def predict(parameters: Any, df: pd.DataFrame, rng: np.random.Generator) -> Any:
        seen.update(parameters)
        assert list(df.columns) == ["group"]  # not the confidential outcome
        return rng.poisson(parameters["rate"], len(df))

    model = _model(predict=predict)
    ph.Unweighted(model).release(_table(), **RUN)
    assert np.ndim(seen["rate"]) == 0
    assert "log_lik" not in seen


def test_points_are_where_they_were_put() -> None:
    at = ProgramAtPoints(
        StanProgram(name="p", text=PROGRAM),
        {"n": 60, "y": _table()["y"].tolist(), "weights": np.ones(60), "cap": 1e300},
    )
    points = np.linspace(0.1, 2, 7)[:, None]
    np.testing.assert_allclose(at.quantities(points)["rate"], np.exp(points[:, 0]), rtol=1e-14)


def test_blocks_of_programs() -> None:
    program = StanProgram(name="p", text=PROGRAM.replace("int<lower=1> n;", "int n; // data {x;}"))
    assert declared_names(program, "data") == ("n", "y", "weights", "cap")
    assert declared_names(program, "parameters") == ("rate",)
    assert "y_rep" in block_text(program, r"generated\s+quantities")
    assert block_text(program, "transformed data") == ""


def test_charges_say_what_is_only_known_from_the_user() -> None:
    local = ph.Unweighted(_model()).release(_table(), **RUN)
    assert "Program: the user's own, user_program, sha256" in local.statement
    said = " ".join(local.charge.assumes)
    for fact in ("not from the confidential outcome", "no density of the program exceeds 1",
                 "the data of the Stan program"):  # fmt: skip
        assert fact in said
    model = _composed(density_above_one=True, decimals=0)
    strict = ph.Censored(model, epsilon=8.0, inner=ph.Unweighted(model)).release(_table(), **RUN)
    assert strict.charge.kind == "strict"
    said = " ".join(strict.charge.assumes)
    assert "the outcome is not in scope in its prior" in said
    assert "exceeds 1" not in said


def test_densities_above_one_contradict_the_flag() -> None:
    shifted = PROGRAM.replace("poisson_lpmf(y[i] | rate)", "(9.0 + poisson_lpmf(y[i] | rate))")
    with pytest.raises(InvalidInput, match="must be at most 0 where density_above_one=False"):
        ph.Unweighted(_model(shifted)).release(_table(), **RUN)


@pytest.mark.parametrize(("change", "message"), [
    (("vector[n] weights;", ""), "must declare weights in its data block"),
    (("log_lik", "loglik"), "must yield log_lik in its generated quantities"),
    (("vector[n] log_lik;", "vector[n + 1] log_lik; log_lik[n + 1] = 0;"), "per record, 60"),
    (("rate ~ gamma(2, 1);", "rate ~ gamma(2, 1)"), r"line 11(.|\n)*\^"),
    (("weights[i] * poisson", "poisson"), "weights do not act at all"),
    (("weights[i] * poisson", "sqrt(weights[i]) * poisson"), "the same at all weights"),
    (("weights[i] * poisson", "weights[i] * weights[i] * poisson"), "they act otherwise"),
    (("rate ~ gamma(2, 1);", "target += weights[1] * gamma_lpdf(rate | 2, 1);"),
     "they act otherwise"),
    (("log_lik[i] = ", "log_lik[i] = (1 + weights[i]) * "), "neither the same as with all"),
    (("log_lik[i] = ", "log_lik[i] = 2 * "), "they act otherwise"),
    (("fmax(-cap, fmin(cap, weights", "fmax(-2 * cap, fmin(cap, weights"), "the same at all"),
    (("fmax(-cap, fmin(cap, weights", "fmax(-cap, fmin(cap, 2 * weights"), "act otherwise"),
    (("fmax(-cap, fmin(cap, weights[i]", "fmin(cap, fmax(cap, weights[i]"), "below 1e"),
    (("real cap;", "real cap; real other;"), "does not take the data"),
    (("rate ~ gamma(2, 1);", "target += log(-1);"), "must be finite somewhere"),
])  # fmt: skip
def test_programs_that_break_a_demand_are_refused(change: tuple[str, str], message: str) -> None:
    assert change[0] in PROGRAM
    refuses(message, lambda: _model(PROGRAM.replace(*change)).bind(_table()))


def test_dropped_constants_are_no_fault() -> None:
    kernel = "weights[i] * (y[i] * log(rate) - rate)"
    _model(UNCAPPED.replace("weights[i] * poisson_lpmf(y[i] | rate)", kernel)).bind(_table())


def test_censoring_needs_a_cap() -> None:
    model = _model(UNCAPPED)
    model.bind(_table())
    censored = ph.Censored(model, epsilon=4, inner=ph.Unweighted(model))
    refuses("censoring needs a program that takes a cap", censored.release, _table(), **RUN)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: _model("/nowhere/program.stan"), "must be a readable Stan file"),
    (lambda: _model(data=3), "must be a mapping or a function"),
    (lambda: _model(predict=3), "predict must name a generated quantity"),
    (lambda: _model(by_record="yes"), "by_record must be True or False"),
    (lambda: _model(log_lik_weighted=True).bind(_table()), "True says: it is not"),
    (lambda: _model(outcome="z").bind(_table()), "outcome 'z' must be a column"),
    (lambda: _model(predictors=("z",)).bind(_table()), "'z' is not"),
    (lambda: _model(data=lambda df: 3).bind(_table()), "must return a mapping"),
    (lambda: _model().bind(_table().assign(y=[None, *range(59)])), "must not be missing"),
])  # fmt: skip
def test_bad_arguments_are_named(make: Any, message: str) -> None:
    refuses(message, make)


@pytest.mark.parametrize(("predict", "message"), [
    ("nothing", "'nothing' is not"), ("rate", r"must have shape \(60,\)"),
    (lambda p, df, rng: np.ones(3), r"must have shape \(60,\)"),
    (lambda p, df, rng: ["a"] * len(df), "must return numbers"),
    (lambda p, df, rng: np.full(len(df), np.nan), "not finite"),
])  # fmt: skip
def test_bad_predictors_are_named(predict: Any, message: str) -> None:
    with pytest.raises((InvalidInput, ph.SamplingError), match=message):
        ph.Unweighted(_model(predict=predict)).release(_table(), **RUN)


def test_what_must_converge_can_be_named() -> None:
    bound = _model(monitored=("log_lik",)).bind(_table())
    session = open_session(bound, **RUN)
    assert session.unweighted().diagnostics.converged
    other = open_session(_model(monitored=("nothing",)).bind(_table()), **RUN)
    refuses("monitored must be variables", other.unweighted)
    # A parameter that nothing holds does not converge, and is reported.
    loose = PROGRAM.replace("parameters {", "parameters { real free;")
    few = {**RUN, "settings": SamplerSettings(chains=4, warmup=20, draws=20)}
    fails(NotConverged, "", open_session(_model(loose).bind(_table()), **few).unweighted)
