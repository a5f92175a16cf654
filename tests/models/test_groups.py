"""Group intercepts (1 | g): design, where the sampler looks, posterior, replicates, refusals.

That the programs' target is the documented one is held in `test_coefficients.py`.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.models.formula.groups import _arranged, _log_evidence, grouped_hints
from tests.models.targets import draws_of
from tests.monte_carlo import assert_below
from tests.refusals import refuses

MODELS: dict[str, tuple[Any, str]] = {
    "poisson": (ph.Poisson, "count"), "negative_binomial": (ph.NegativeBinomial, "count"),
    "bernoulli": (ph.Bernoulli, "member"),
    "beta_binomial": (partial(ph.BetaBinomial, upper=40), "count"),
    "beta_regression": (ph.BetaRegression, "share"), "normal": (ph.NormalRegression, "amount"),
    "within bounds": (partial(ph.NormalRegression, lower=-20.0, upper=20.0), "amount"),
    "lognormal": (ph.LogNormal, "share"), "gamma": (ph.Gamma, "share"),
}  # fmt: skip
SHORT = SamplerSettings(chains=2, warmup=150, draws=50, parallel_chains=1)


def _table(levels: int = 6, n: int = 90, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    g, h = np.arange(n) % levels, rng.integers(0, 3, n)
    effect = np.linspace(-1, 1, levels)[g]
    return pd.DataFrame({
        "count": rng.poisson(np.exp(1 + effect)),
        "member": rng.random(n) < 1 / (1 + np.exp(-effect)),
        "share": rng.beta(3, 3 * np.exp(-effect)), "amount": rng.normal(effect, 0.5),
        "x": rng.normal(size=n).round(1), "g": [f"level {k}" for k in g], "h": h,
    })  # fmt: skip


def test_levels_are_indicators_after_the_other_columns_the_longest_group_last() -> None:
    df = _table()
    design = ph.Poisson("count ~ (1 | g) + x + (1 | `h`)").bind(df).design
    levels = sorted(df["g"].unique())
    assert design.columns[:2] == ("Intercept", "x")
    assert design.columns[2:] == (
        *(f"(1 | h)[{k}]" for k in range(3)), *(f"(1 | g)[{own}]" for own in levels),
    )  # fmt: skip
    np.testing.assert_array_equal(design.group, [0, 0, 1, 1, 1, *[2] * 6])
    np.testing.assert_array_equal(design.X[:, 2:5], df["h"].to_numpy()[:, None] == np.arange(3))
    np.testing.assert_array_equal(design.X[:, 5:], df["g"].to_numpy()[:, None] == np.array(levels))
    assert design.predictors == ("g", "h", "x")
    assert design.data_dependent == ()
    pairs = {tuple(row) for row in np.column_stack([design.X, design.keys])}
    assert len(pairs) == len({tuple(row) for row in design.keys})


def test_a_category_declares_levels_that_no_record_has() -> None:
    df = _table()
    df["g"] = pd.Categorical(df["g"], categories=[*sorted(df["g"].unique()), "of nobody"])
    bound = ph.Poisson("count ~ x + (1 | g)").bind(df)
    assert bound.design.columns[-1] == "(1 | g)[of nobody]"
    df["g"] = pd.Categorical(["of nobody"] * len(df), df["g"].cat.categories)
    model = ph.Poisson("count ~ x + (1 | g)", prior="normal")  # which says what records do not
    assert model.bind(df).design.X.shape == bound.design.X.shape
    assert np.isfinite(model.bind(df).stan_data(np.ones(90))["information_root"]).all()


def test_models_without_groups_have_none_in_their_data() -> None:
    data = ph.Poisson("count ~ x").bind(_table()).stan_data(np.ones(90))
    assert data["n_group_terms"] == data["n_grouped"] == data["n_apart"] == 0
    assert data["information_root"].shape == (2, 2)


def _hints(n_apart: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Information of a design whose last columns are indicators, a root of it, and a score."""
    rng = np.random.default_rng(8)
    indicators = np.eye(n_apart)[rng.integers(0, n_apart - 1, 40)]  # one level has no record
    X = np.hstack([np.ones((40, 1)), rng.normal(size=(40, 2)), indicators])
    root = np.linalg.qr(X, mode="r").T
    return X.T @ X, root, rng.normal(size=X.shape[1])


def test_the_arranged_root_is_a_root_of_the_same_information() -> None:
    information, root, _ = _hints(5)
    rows, sizes = _arranged(root, 5)
    whole = np.zeros((8, 8))
    whole[:3], whole[3:, 3:] = rows, np.diag(sizes)
    np.testing.assert_allclose(whole @ whole.T, information, atol=1e-12)
    assert sizes.min() >= 0
    same, none = _arranged(root, 0)
    assert same is root
    assert none.size == 0


def test_the_evidence_is_that_of_the_normal_distribution() -> None:
    """log of the integral of exp(s'b - b'Ib/2) N(b; 0, D^2), against its closed form."""
    information, root, score = _hints(5)
    rows, sizes = _arranged(root, 5)
    for scale in (np.full(8, 0.7), np.linspace(0.1, 3, 8)):
        precision = information + np.diag(scale**-2.0)
        expected = score @ np.linalg.solve(precision, score) / 2
        expected -= np.linalg.slogdet(precision)[1] / 2 + np.log(scale).sum()
        assert abs(_log_evidence(rows, sizes, score, scale) - expected) < 1e-10


def test_tau_is_looked_for_where_it_is() -> None:
    """Many levels with many records each: the guess is the deviation of their means."""
    rng = np.random.default_rng(4)
    effect = rng.normal(0, 0.6, 80)
    level = np.repeat(np.arange(80), 40)
    df = pd.DataFrame({"y": rng.normal(effect[level], 1), "g": [f"l{k}" for k in level]})
    data = ph.NormalRegression("y ~ (1 | g)").bind(df).stan_data(np.ones(3200))
    assert abs(data["center_tau"][0] - np.log(np.std(effect))) < 0.15
    assert 0.05 < data["spread_tau"][0] < 0.12  # about 1 / sqrt(2 * 80)
    wider = ph.NormalRegression("y ~ (1 | g)").bind(df).stan_data(np.ones(3200), dispersion=2.0)
    np.testing.assert_allclose(wider["spread_tau"], 2 * data["spread_tau"])
    np.testing.assert_allclose(wider["apart_root"], data["apart_root"] / 2)


def _differ(one: Any, two: Any, error: float) -> float:
    import arviz

    return abs(one.mean() - two) / float(np.hypot(arviz.mcse(one, method="mean"), error))


def _means(model: Any, df: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Draws of coefficients and tau by name, and their squares."""
    bound = model.bind(df)
    draws = draws_of(bound, chains=4, warmup=400, draws=1000, seed=seed)
    assert draws.divergent.mean() < 0.001
    own = {name: draws.variables["beta"][..., k] for k, name in enumerate(bound.design.columns)}
    own["tau"] = draws.variables["tau"][..., 0]
    return own | {f"{name}^2": v**2 for name, v in own.items()}


@pytest.mark.samples
def test_the_posterior_is_that_of_rstanarm() -> None:
    """Means and second moments of stan_glmer under the same priors, see make_rstanarm.R."""
    folder = Path(__file__).parents[1] / "stored" / "rstanarm"
    stored = json.loads((folder / "groups.json").read_text(encoding="utf-8"))
    df, theirs = pd.DataFrame(stored["data"]), stored["posterior"]
    model = ph.Poisson("y ~ x + (1 | g)", prior="normal")
    ours = _means(model, df, 5)
    assert ours.keys() == theirs.keys()
    for name, own in theirs.items():
        assert _differ(ours[name], own["mean"], own["error"]) < 5, name
    narrow = _means(ph.Poisson("y ~ x + (1 | g)", prior="normal", prior_scale_groups=0.1), df, 5)
    assert _differ(narrow["tau"], theirs["tau"]["mean"], theirs["tau"]["error"]) > 10


@pytest.mark.samples
def test_many_levels_sample_without_a_funnel() -> None:
    """61 levels of unlike size, from 1 record to 60."""
    rng = np.random.default_rng(6)
    level = np.repeat(np.arange(61), np.arange(61) // 3 * 3 + 1)
    y = rng.poisson(np.exp(0.5 + rng.normal(0, 0.3, 61)[level]))
    df = pd.DataFrame({"y": y, "g": [f"l{k:02d}" for k in level]})
    bound = ph.Poisson("y ~ (1 | g)", prior="normal").bind(df)
    draws = draws_of(bound, warmup=200, draws=200)
    assert_below(draws.treedepth, 4.5)
    assert draws.divergent.mean() < 0.01


def test_tables_of_other_levels_are_refused() -> None:
    df = _table()
    bound = ph.Poisson("count ~ x + (1 | g)").bind(df)
    moved = df.assign(g=df["g"].replace("level 2", "level 9"))
    refuses(r"'\(1 \| g\)' must have one of its levels: row 2", bound.design.recoded, moved)


@pytest.mark.normal_draws
def test_weights_cap_and_equal_rows_are_as_without_groups() -> None:
    df = _table().drop(columns="x").assign(x=0.5)
    df = pd.concat([df, df], ignore_index=True)
    bound = ph.Poisson("count ~ 1 + (1 | g)").bind(df)
    assert bound.rows.first.size <= 90
    np.testing.assert_array_equal(bound.rows.row_of[:90], bound.rows.row_of[90:])
    release = ph.Censored(ph.Poisson("count ~ 1 + (1 | g)", prior="normal"), epsilon=8.0).release(
        df, n_synthetic=1, seed=3, settings=SamplerSettings(chains=2, warmup=200, draws=200)
    )
    assert release.charge.epsilon <= 8.0 + 1e-9
    assert release.synthetic[0]["g"].equals(df["g"])


@pytest.mark.samples
def test_parts_of_a_model_may_have_groups() -> None:
    df = _table()
    df["income"] = np.where(df["member"], np.exp(df["amount"]), 0.0)
    model = ph.TwoPart(
        zero=ph.Bernoulli("income ~ x + (1 | g)"), positive=ph.LogNormal("income ~ x + (1 | h)")
    )
    bound = model.bind(df)
    for cap in (None, 2.0):
        draws = draws_of(bound, warmup=150, draws=50, cap=cap)
        assert np.isfinite(bound.log_lik(draws).total(np.ones(bound.n))).all()


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore:.*did not converge")  # short chains
@pytest.mark.parametrize("name", ["zeros and counts", "missing"])
def test_mixtures_and_missing_values_may_have_groups(name: str) -> None:
    """Released, strict or not, with the groups' differences in them."""
    rng = np.random.default_rng(4)
    quick = SamplerSettings(chains=2, warmup=150, draws=50, max_draws=50)
    g, high = rng.integers(0, 12, 250), np.arange(12) % 2 * 2.5
    y = rng.poisson(np.exp(0.2 + high[g])) * (rng.random(250) < 0.8)
    df = pd.DataFrame({"g": pd.Categorical(g), "x": rng.normal(size=250), "y": y})
    model: Any = ph.ZeroInflated(ph.Poisson("y ~ x + (1 | g)", prior="normal"))
    if name == "missing":
        df = df.assign(y=np.where(rng.random(250) < 0.1, np.nan, y))
        df.loc[rng.random(250) < 0.1, "g"] = None
        model = ph.WithMissing(value=model)
    frozen = ph.calibrate(model, df.assign(x=df["x"] + 0.01), epsilon=4, seed=1, engine="embedded",
                          settings=quick, on_not_converged="warn",
                          holds_no_released_record=True)  # fmt: skip
    for mechanism in (ph.Unweighted(model), ph.Censored(calibration=frozen, check_modes=False)):
        made = mechanism.release(
            df, seed=2, settings=quick, on_not_converged="warn", engine="embedded"
        )
        means = made.synthetic[0].groupby(df["g"], observed=True)["y"].mean()
        assert means[1::2].min() > means[::2].max()


@pytest.mark.parametrize(("column", "says"), [
    (np.arange(90), "each of the 90 has a level of its own; write it as a predictor if it is"),
    ([f"p{k}" for k in range(90)], "must have records in common"),
    (["one"] * 90, "2 levels or more: all records have the same; leave it out, e.g. y ~ x"),
    (np.where(np.arange(90) == 4, None, "a"), "must not be missing: row 4 is"),
    (pd.to_datetime(["2024-01-01"] * 90), "holds dates"),
])  # fmt: skip
def test_columns_that_are_no_group_are_refused_in_one_line(column: Any, says: str) -> None:
    model = ph.Poisson("count ~ x + (1 | k)")
    assert says in refuses("", model.bind, _table().assign(k=column), hidden="\n")


@pytest.mark.parametrize("model", [
    ph.Categorical("count ~ (1 | g)"), ph.Ordinal("count ~ x + (1 | g)"),
    ph.MixtureRegression("amount ~ (1 | g)"), ph.Beta("share ~ (1 | g)"),
])  # fmt: skip
def test_models_that_take_no_groups_say_what_to_write(model: Any) -> None:
    refuses(r"write g here, a coefficient for each level", model.bind, _table())


def test_the_prior_of_tau_is_public_checked_and_told_where_there_are_groups() -> None:
    model = ph.Poisson("count ~ x + (1 | g)", prior_scale_groups=1.5)
    assert model.describe()["prior_scale_groups"] == 1.5
    assert "prior_scale_groups" not in ph.Poisson("count ~ x").describe()
    assert model.bind(_table()).stan_data(np.ones(90))["prior_scale_groups"] == 1.5
    refuses("prior_scale_groups must be", ph.Poisson, "count ~ x", prior_scale_groups=0)


def test_hints_of_two_groups_keep_the_smaller_one_among_the_others() -> None:
    information, root, score = _hints(5)
    group = np.array([0, 1, 1, 2, 2, 2, 2, 2])
    found = grouped_hints({"information_root": root, "score": score}, group, 2.5)
    assert found["n_apart"] == 5
    assert found["information_root"].shape == (3, 8)
    np.testing.assert_array_equal(found["group_term"], [1, 1, 2, 2, 2, 2, 2])
    assert found["center_tau"].shape == found["spread_tau"].shape == (2,)
    np.testing.assert_allclose(found["apart_root"] ** 2, np.diag(information)[3:])


@pytest.mark.samples
def test_a_strict_release_has_the_levels_of_its_calibration() -> None:
    settings = SamplerSettings(chains=2, warmup=200, draws=200, parallel_chains=1)
    model = ph.Poisson("count ~ x + (1 | g)", prior="normal")
    calibration = ph.calibrate(
        model, _table(n=120, seed=8), epsilon=4, seed=3, settings=settings,
        holds_no_released_record=True,
    )  # fmt: skip
    mechanism, df = ph.Censored(calibration=calibration), _table(n=120)
    release = mechanism.release(df, n_synthetic=1, settings=settings)
    assert release.charge.kind == "strict"
    assert release.charge.epsilon == 4
    fewer = df[df["g"] != "level 2"]
    for other in (fewer, df.assign(g=df["g"].replace("level 2", "level 9"))):
        refuses("the calibration", mechanism.release, other, n_synthetic=1, settings=settings)
