"""Outcomes with two levels: likelihood, weights, replicates, posterior, levels and their dtypes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

import pyhybrid as ph
from pyhybrid import cli
from pyhybrid.cli.options import build_model
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints
from tests.fuzzing.engine import RandomDraws

N = 300
RNG = np.random.default_rng(11)
X = RNG.normal(size=N).round(1)
TRUE = RNG.random(N) < special.expit(0.4 + 0.8 * X)
OPTIONS: dict[str, Any] = {
    "engine": RandomDraws(),
    "settings": SamplerSettings(chains=2, warmup=1, draws=8),
    "rule": ConvergenceRule(rhat=10.0, ess_per_chain=0.1, divergent_share=1.0),
}
KINDS: dict[str, Any] = {
    "bool": pd.Series(TRUE),
    "int64": pd.Series(TRUE.astype(int)),
    "uint8": pd.Series(TRUE.astype("uint8")),
    "float": pd.Series(TRUE.astype(float)),
    "boolean": pd.Series(TRUE).astype("boolean"),
    "Int8": pd.Series(TRUE.astype(int)).astype("Int8"),
    "bool[pyarrow]": pd.Series(TRUE).astype("bool[pyarrow]"),
    "object of logicals": pd.Series(TRUE).astype(object),
    "object of numbers": pd.Series(TRUE.astype(int)).astype(object),
    "text": pd.Series(np.where(TRUE, "yes", "no")),
    "object of texts": pd.Series(np.where(TRUE, "yes", "no")).astype(object),
    "string": pd.Series(np.where(TRUE, "yes", "no")).astype("string"),
    "category": pd.Series(pd.Categorical(np.where(TRUE, "yes", "no"), ["no", "yes"])),
    "category in another order": pd.Series(
        pd.Categorical(np.where(TRUE, "no", "yes"), ["yes", "no"])
    ),
    "ordered category": pd.Series(
        pd.Categorical(np.where(TRUE, "high", "low"), ["low", "high"], ordered=True)
    ),
    "category of numbers": pd.Series(pd.Categorical(np.where(TRUE, 1, 2), [2, 1])),
}


def _table(y: Any = TRUE) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame({"y": y, "x": X[: len(y)]})
    return table


class _Draws:
    """One draw of beta, as a replicate reads it."""

    def __init__(self, *beta: float) -> None:
        self.beta = np.array([beta])

    def flat(self, name: str) -> Any:
        return {"beta": self.beta}[name]


# --- Likelihood, target, replicates, posterior ----------------------------------------------------


def test_log_likelihood_far_out() -> None:
    far = ph.Bernoulli("y ~ 1").log_lik(
        {"beta": np.array([[800.0], [-800.0]])}, np.array([0.0, 1.0]), np.ones((2, 1))
    )
    np.testing.assert_array_equal(far, [[-800, 0], [0, -800]])


def _draws(bound: Any, *, chains: int = 2, draws: int = 40, warmup: int = 100, **data: Any) -> Any:
    settings = SamplerSettings(chains=chains, warmup=warmup, draws=draws, parallel_chains=1)
    stan_data = bound.stan_data(np.ones(bound.n), **data)
    return EmbeddedEngine().sample(bound.program, stan_data, seed=3, settings=settings)


@pytest.mark.samples
def test_the_posterior_is_near_maximum_likelihood_under_a_wide_prior() -> None:
    """Means and deviations against statsmodels' Logit: n = 4000, prior scales of 100. Means within
    5 Monte Carlo errors and the posterior's own skewness, which is of order sd / sqrt(n)."""
    import statsmodels.api as sm

    n, rng = 4000, np.random.default_rng(8)
    x, z = rng.normal(size=n).round(1), rng.integers(0, 2, n)
    y = rng.random(n) < special.expit(-0.3 + 0.6 * x + 0.5 * z)
    bound = ph.Bernoulli("y ~ x + z", prior_scale=100, prior_scale_intercept=100).bind(
        pd.DataFrame({"y": y, "x": x, "z": z})
    )
    draws = _draws(bound, chains=4, warmup=400, draws=1000)
    fit = sm.Logit(y.astype(float), bound.design.X).fit(disp=0)
    beta = draws.flat("beta")
    import arviz

    for k in range(3):
        error = float(arviz.mcse(draws.variables["beta"][..., k], method="mean"))
        assert abs(beta[:, k].mean() - fit.params[k]) < 5 * error + 0.05 * fit.bse[k]
    np.testing.assert_allclose(beta.std(axis=0), fit.bse, rtol=0.1)
    half = bound.stan_data(np.full(n, 0.25))
    settings = SamplerSettings(chains=2, warmup=300, draws=500, parallel_chains=1)
    wide = EmbeddedEngine().sample(bound.program, half, seed=1, settings=settings).flat("beta")
    np.testing.assert_allclose(wide.std(axis=0), 2 * fit.bse, rtol=0.15)


@pytest.mark.samples
@pytest.mark.parametrize("prior", ["normal", "published"])
def test_the_grids_posterior_is_the_programs(prior: str) -> None:
    """Mean and deviation of a weighted posterior on the grid, against Stan's draws."""
    import arviz

    bound = ph.Bernoulli("y ~ 1", prior=prior, prior_scale_intercept=1.0).bind(_table().head(40))
    form = bound.grid_form
    assert form is not None
    assert ph.Bernoulli("y ~ x").bind(_table()).grid_form is None
    at = {"logit": np.linspace(-8, 8, 8001)}
    f = bound.model.log_lik(form.parameters(at), bound.design.y, bound.design.X)
    settings = SamplerSettings(chains=4, warmup=400, draws=1000, parallel_chains=1)
    data = bound.stan_data(np.full(40, 0.5))
    sample = EmbeddedEngine().sample(bound.program, data, seed=3, settings=settings)
    draws = sample.variables["beta"][..., 0]
    error = {how: float(arviz.mcse(draws, method=how)) for how in ("mean", "sd")}

    def moments(weight: float) -> Any:
        p = special.softmax(form.log_prior(at) + weight * f.sum(axis=1))
        mean = float(p @ at["logit"])
        return mean, float(np.sqrt(p @ (at["logit"] - mean) ** 2))

    mean, sd = moments(0.5)
    assert abs(draws.mean() - mean) < 5 * error["mean"]
    assert abs(draws.std() - sd) < 5 * error["sd"]
    assert abs(draws.std() - moments(1.0)[1]) > 5 * error["sd"], "control"


@pytest.mark.samples
@pytest.mark.parametrize("prior", ["normal", "published"])
def test_separated_levels_have_a_proper_posterior_and_end(prior: str) -> None:
    """No maximum of the likelihood: the prior keeps the coefficients finite, trees stay small."""
    x = np.linspace(-2, 2, 60)
    bound = ph.Bernoulli("y ~ x", prior=prior).bind(pd.DataFrame({"y": x > 0.01, "x": x}))
    draws = _draws(bound, chains=2, warmup=400, draws=400)
    slope = draws.flat("beta")[:, 1]
    assert np.isfinite(slope).all()
    assert np.quantile(slope, 0.05) > 1
    if prior == "normal":
        assert slope.max() < 6 * 2.5
        narrow = ph.Bernoulli("y ~ x", prior_scale=0.1).bind(bound.table)
        assert np.median(_draws(narrow, draws=100).flat("beta")[:, 1]) < 0.5, "control"
    assert draws.treedepth.mean() < 5
    assert draws.divergent.mean() < 0.1


# --- Levels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_released_values_have_the_dtype_and_the_levels_of_the_data(kind: str) -> None:
    table = _table(KINDS[kind])
    table.index = pd.Index([f"row {i}" for i in range(N)])
    table["y"] = pd.Series(KINDS[kind].array, table.index)
    before = table.copy()
    bound = ph.Bernoulli("y ~ x").bind(table)
    np.testing.assert_array_equal(bound.outcome, TRUE.astype(float))
    made = bound.replicate(_Draws(0.2, 0.5), 0, np.random.default_rng(5))["y"]
    pd.testing.assert_frame_equal(table, before)
    assert made.dtype == table["y"].dtype
    assert made.index.equals(table.index)
    assert {type(v) for v in made} == {type(v) for v in table["y"]}
    assert set(made) == set(table["y"])
    codes = bound.numbers_of(made)
    assert abs(codes.mean() - special.expit(0.2 + 0.5 * X).mean()) < 5 * 0.5 / np.sqrt(N)
    # One draw at which the second level is certain.
    certain = bound.replicate(_Draws(90.0, 0.0), 0, np.random.default_rng(5))["y"]
    assert set(certain) == {table["y"].iloc[int(np.flatnonzero(TRUE)[0])]}


def test_the_categories_own_order_says_which_level_is_second() -> None:
    values = np.where(TRUE, "yes", "no")
    one = ph.Bernoulli("y ~ x").bind(_table(pd.Categorical(values, ["no", "yes"])))
    two = ph.Bernoulli("y ~ x").bind(_table(pd.Categorical(values, ["yes", "no"])))
    np.testing.assert_array_equal(one.outcome, 1 - two.outcome)
    three = pd.Categorical(values, ["maybe", "no", "yes"])
    declared = ph.Bernoulli("y ~ x", levels=("no", "yes")).bind(_table(three))
    np.testing.assert_array_equal(declared.outcome, one.outcome)
    made = declared.replicate(_Draws(0.0, 0.0), 0, np.random.default_rng(1))["y"]
    assert list(made.cat.categories) == ["maybe", "no", "yes"]


@pytest.mark.parametrize(
    ("values", "levels", "second"),
    [
        (np.where(TRUE, "yes", "no"), ("no", "yes"), "yes"),
        (np.where(TRUE, "yes", "no"), ("yes", "no"), "no"),
        (np.where(TRUE, 2, 1), (1, 2), 2),
        (np.where(TRUE, 2, 1), ("1", "2"), 2),
        (np.where(TRUE, 0.5, 1.5), (1.5, 0.5), 0.5),
        (TRUE, ("False", "True"), True),
        (TRUE, (True, False), False),
        (pd.Categorical(np.where(TRUE, 2, 1)), ("1", "2"), 2),
    ],
)
def test_declared_levels(values: Any, levels: Any, second: Any) -> None:
    table = _table(values)
    bound = ph.Bernoulli("y ~ x", levels=levels).bind(table)
    np.testing.assert_array_equal(bound.outcome == 1, table["y"] == second)
    assert bound.data_dependent == ()


@pytest.mark.parametrize("kind", KINDS)
def test_only_levels_that_are_read_make_a_charge_depend_on_the_data(kind: str) -> None:
    bound = ph.Bernoulli("y ~ x").bind(_table(KINDS[kind]))
    read = kind in ("text", "object of texts", "string") or "category" in kind
    assert bound.data_dependent == (("levels of y; levels= declares them",) if read else ())


@pytest.mark.parametrize("dtype", ["object", "category", pd.CategoricalDtype(["yes", "no"])])
def test_a_strict_charge_needs_declared_levels(dtype: Any) -> None:
    """Categories are none: `astype("category")` takes them from the records, as Table has it."""
    table = _table(pd.Series(np.where(TRUE, "yes", "no")).astype(dtype))
    kinds = {}
    for levels in (None, ("no", "yes")):
        model = ph.Bernoulli("y ~ x", levels=levels)
        release = ph.Censored(model, epsilon=2.0, inner=ph.Unweighted(model), check_modes=False)
        charge = release.release(table, n_synthetic=1, **OPTIONS).charge
        kinds[levels] = charge.kind
        read = any("levels of y" in each for each in charge.assumes)
        assert read == (levels is None)
    assert kinds[("no", "yes")] == "strict"
    assert kinds[None] != "strict"
    with pytest.raises(InvalidInput, match="coded record by record: levels of y; levels= declares"):
        ph.calibrate(
            ph.Bernoulli("y ~ x"), table, epsilon=1.0, holds_no_released_record=True, **OPTIONS
        )


def test_a_calibration_is_for_one_order_of_the_categories() -> None:
    """Of a predictor; those of the outcome are declared, in whatever order the column has them."""
    values = np.where(TRUE, "yes", "no")
    model = ph.Bernoulli("y ~ g", levels=("no", "yes"))
    groups = np.resize(["a", "b"], N)
    made = ph.calibrate(
        model,
        _table(pd.Categorical(values, ["no", "yes"])).assign(g=pd.Categorical(groups)),
        epsilon=1.0,
        holds_no_released_record=True,
        **OPTIONS,
    )
    other = _table(pd.Categorical(values, ["yes", "no"])).assign(g=pd.Categorical(groups))
    made.check_fits(model.bind(other))
    turned = other.assign(g=pd.Categorical(groups, ["b", "a"]))
    mechanism = ph.Censored(made.model, calibration=made, check_modes=False)
    with pytest.raises(InvalidInput, match="column 'g' must have the levels of the calibration"):
        mechanism.release(turned, n_synthetic=1, **OPTIONS)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([0, 1, 2, 1], {}, "outcome 'y' must be 0 or 1: row 2 is not; declare levels="),
        ([0, 1, 0.5, 1], {}, "outcome 'y' must be 0 or 1: row 2 is not"),
        ([1, 2, 2, 1], {}, "outcome 'y' must be 0 or 1: row 1 is not; declare levels="),
        (["a", "b", "c", "a"], {}, "must have 2 levels for Bernoulli: found 3"),
        (["a", "b", "c", "a"], {"levels": ("a", "b")}, "one of its levels: row 2 is not"),
        (pd.Categorical(list("abca")), {}, "must have 2 levels for Bernoulli: found 3"),
        (pd.Categorical(list("aaaa")), {}, "outcome 'y' must vary"),
        (pd.Categorical(list("abba")), {"levels": ("a", "z")}, "one of its levels: row 1 is not"),
        (pd.Categorical([1, 2, 2, 1]), {"levels": ("no", "yes")}, "'no' is none"),
        ([True, False, True, False], {"levels": ("no", "yes")}, "'no' is none"),
        ([0, 1, 1, 0], {"levels": ("no", "yes")}, "'no' is none.*numbers"),
        ([1, 1, 1, 1], {}, "outcome 'y' must vary: all 4 records have the same value"),
        (["a"] * 4, {}, "outcome 'y' must vary"),
        ([True] * 4, {}, "outcome 'y' must vary"),
        (pd.Categorical(list("aaaa"), ["a", "b"]), {}, "outcome 'y' must vary"),
        ([0, 1, None, 1], {}, "outcome 'y' must not be missing: row 2 is"),
        (["a", None, "b", "a"], {}, "outcome 'y' must not be missing: row 1 is"),
        (pd.array([True, False, None, True], "boolean"), {}, "must not be missing: row 2 is"),
        (pd.Categorical(["a", "b", None, "a"]), {}, "must not be missing: row 2 is"),
        ([0, 1, np.inf, 1], {}, "outcome 'y' must be 0 or 1: row 2 is not"),
        (pd.date_range("2020", periods=4), {}, "must be text, logicals, categories or numbers"),
        ([1j, 0, 1, 0], {}, "must be text, logicals, categories or numbers"),
        (pd.Series([0, "a", 1, 0], dtype=object), {}, "must be text, logicals, categories or num"),
    ],
)
def test_outcomes_without_two_levels_are_refused_by_row(
    values: Any, options: Any, message: str
) -> None:
    table = pd.DataFrame({"y": values})
    with pytest.raises(InvalidInput, match=message):
        ph.Bernoulli("y ~ 1", **options).bind(table)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (("a",), "2 different values: found 1"),
        (("a", "a"), "2 different values: found 2, 1 of them different"),
        (("a", "b", "c"), "2 different values: found 3"),
        ("ab", "levels must be a tuple: found str"),
        ((None, "a"), "texts, numbers or logicals"),
        (([1], "a"), "texts, numbers or logicals"),
        (7, "levels must be a tuple: found int"),
    ],
)
def test_levels_that_are_none_are_refused(levels: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ph.Bernoulli("y ~ 1", levels=levels)


# --- As users meet it -----------------------------------------------------------------------------


def test_the_command_lines_model() -> None:
    model = build_model("bernoulli:levels=no+yes,prior_scale=1", "voted ~ age")
    assert model == ph.Bernoulli("voted ~ age", levels=("no", "yes"), prior_scale=1.0)


@pytest.mark.parametrize("kind", ["int64", "float"])
def test_a_column_of_two_numbers_is_pointed_to_it(kind: str) -> None:
    """No model is chosen by counting the numbers of confidential records; it is named instead."""
    with pytest.raises(InvalidInput, match=r"bernoulli if it has two"):
        build_model(None, "y ~ 1").bind(_table(KINDS[kind]))


@pytest.mark.parametrize("kind", ["bool", "text", "category", "Int8"])
def test_a_release_and_its_folder(kind: str, tmp_path: Path) -> None:
    table = _table(KINDS[kind])
    release = ph.LipschitzWeighted(ph.Bernoulli("y ~ x")).release(
        table, n_synthetic=2, seed=1, **OPTIONS
    )
    release.save(tmp_path / "out")
    assert (tmp_path / "out" / "public").is_dir()
    for made in release.synthetic:
        assert made["y"].dtype == table["y"].dtype
        pd.testing.assert_series_equal(made["x"], table["x"])


def test_mechanisms_are_compared_on_a_column_of_text() -> None:
    model = ph.Bernoulli("y ~ x", levels=("no", "yes"))
    found = ph.compare(
        {"unweighted": ph.Unweighted(model), "lw": ph.LipschitzWeighted(model)},
        _table(np.where(TRUE, "yes", "no")),
        n_synthetic=2,
        **OPTIONS,
    )
    data = found.estimates.query("source == 'data' and statistic == 'mean'")
    np.testing.assert_allclose(data["estimate"], TRUE.mean())


@pytest.mark.samples
def test_a_column_of_text_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Released with shares of its levels; without a model that is named, too, and told so."""
    monkeypatch.chdir(tmp_path)
    _table(np.where(TRUE, "yes", "no")).to_csv("data.csv", index=False)
    asked = ["pyhybrid", "synthesize", "data.csv", "--formula", "y ~ x", "--seed", "1"]
    asked += ["--engine", "embedded", "--draws", "300", "--warmup", "200", "--on-not-converged"]
    assert _run([*asked, "warn", "--out", "chosen"]) == 0
    assert "levels of y" in Path("chosen/public/privacy_statement.md").read_text()
    assert '"Bernoulli"' in Path("chosen/confidential/run.json").read_text()
    capsys.readouterr()
    own = ["warn", "--model", "bernoulli:levels=no+yes", "--out", "out"]
    assert _run([*asked, *own]) == 0
    shown = capsys.readouterr().out
    assert f"{TRUE.mean():.4g}" in shown
    (made,) = Path("out/public").glob("synthetic_*.csv")
    assert set(pd.read_csv(made)["y"]) == {"no", "yes"}
    settings = json.loads(Path("out/confidential/run.json").read_text())
    assert '"levels": ["no", "yes"]' in json.dumps(settings)


def _run(arguments: list[str]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", arguments)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return int(stopped.value.code or 0)


def test_a_synthesized_level_is_a_predictor_of_the_next_column() -> None:
    table = _table(np.where(TRUE, "yes", "no"))
    table["visits"] = RNG.poisson(np.where(TRUE, 6, 2))
    steps = [
        ph.Unweighted(ph.Bernoulli("y ~ x", levels=("no", "yes"))),
        ph.Unweighted(ph.Poisson("visits ~ y")),
    ]
    release = ph.SequentialSynthesis(steps).release(table, n_synthetic=1, seed=1, **OPTIONS)
    (made,) = release.synthetic
    assert set(made["y"]) <= {"no", "yes"}
    assert not made["y"].equals(table["y"])


def test_log_density_where_probabilities_round_to_0_and_1() -> None:
    """Predictors of any size, also of records without weight, whose probability may be 0."""
    y, x = np.array([0, 1, 1, 0, 1]), np.array([-3.0, 2e5, 4.0, 3e3, -1e6])
    alpha = np.array([1.0, 1.0, 0.5, 1e-3, 0.0])
    bound = ph.Bernoulli("y ~ x", prior="normal", prior_scale=1.0).bind(
        pd.DataFrame({"y": y, "x": x})
    )
    data = bound.stan_data(alpha)
    K = data["K"]
    data |= {"information_root": np.zeros((K, K)), "score": np.zeros(K)}  # beta = scale * z
    points = np.array([[0.0, 0.0], [0.1, 0.5], [-0.2, 1.5], [0.0, 1e-7]])
    found = ProgramAtPoints(bound.program, data).log_density(points)
    eta = points * np.asarray(data["prior_scale"]) @ np.column_stack([np.ones(5), x]).T
    right = -np.logaddexp(0, (1 - 2 * y) * eta) @ alpha - (points**2).sum(axis=1) / 2
    np.testing.assert_allclose(found, right, rtol=1e-10)
