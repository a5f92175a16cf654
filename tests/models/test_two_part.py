"""Amounts with zeros and signs: one joint target, shares that come back, one charge for all."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.engines.programs import joint_program
from pyhybrid.privacy.censoring import Cap
from tests.fuzzing.engine import RANDOM_DRAWS
from tests.models.targets import assert_weights_alone_move_the_target, caps, draws_of
from tests.refusals import refuses

N = 240
RNG = np.random.default_rng(5)
X = RNG.normal(size=N).round(1)
AMOUNT = np.exp(1 + 0.4 * X + RNG.normal(0, 0.6, N)).round(2) + 0.01
KIND = RNG.choice([0, 1, -1], N, p=[0.2, 0.7, 0.1])
Y = np.where(KIND == 0, 0.0, KIND * AMOUNT)


def _table(y: Any = Y) -> pd.DataFrame:
    return pd.DataFrame({"y": y, "x": X[: len(y)]})


def _model(**changes: Any) -> ph.TwoPart:
    given: dict[str, Any] = {
        "zero": ph.Bernoulli("y ~ x"),
        "positive": ph.LogNormal("y ~ x", decimals=2),
        "negative": ph.LogNormal("y ~ 1", decimals=2),
    }
    return ph.TwoPart(**{**given, **changes})


def _terms(draws: Any) -> Any:
    """Log-likelihood of the records, written down a second time, (S, n)."""
    get = draws.flat
    design = np.column_stack([np.ones(N), X])
    at_zero = special.expit(get("beta_zero") @ design.T)
    below = special.expit(get("beta_sign") @ design.T)
    log_y = np.log(np.where(Y == 0, 1, np.abs(Y)))
    up = stats.norm.logpdf(log_y, get("beta_positive") @ design.T, get("sigma_positive")[:, None])
    down = stats.norm.logpdf(log_y, get("beta_negative"), get("sigma_negative")[:, None])
    rest = np.log1p(-at_zero)
    return np.where(
        Y == 0, np.log(at_zero), rest + np.where(Y > 0, np.log1p(-below) + up, np.log(below) + down)
    )


@pytest.mark.normal_draws
def test_a_record_tells_the_sum_of_its_parts() -> None:
    """numpy, Stan, and the same written down again."""
    bound = _model().bind(_table())
    draws = draws_of(bound, draws=30, emit_log_lik=True)
    blocks = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)
    np.testing.assert_allclose(blocks, draws.flat("log_lik"), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(blocks[:, bound.rows.row_of], _terms(draws), rtol=1e-9, atol=1e-12)
    assert set(bound.likelihood_parameters) == {
        "beta_zero", "beta_sign", "beta_positive", "sigma_positive", "beta_negative",
        "sigma_negative",
    }  # fmt: skip
    assert bound.design_columns[:3] == ("zero: Intercept", "zero: x", "sign: Intercept")
    assert bound.rows.first.size < N, "zeros with equal predictors are one row"


CENTER = RNG.normal(-2, 1, N)
CAPS = caps(N, 1.5, (0.3, 0.6), (1.0, 1.4), CENTER, units=80)


@pytest.mark.parametrize("y", [Y, -np.abs(Y), np.abs(Y)], ids=["all", "below", "above"])
@pytest.mark.parametrize("cap", CAPS)
def test_the_target_moves_with_the_clipped_sum_of_a_record(cap: str, y: Any) -> None:
    """Clipping part by part is another target. Parts without a record have their prior."""
    bound, own = _model().bind(_table(y)), CAPS[cap]
    weights = np.random.default_rng(2).choice([0.0, 0.3, 0.7, 1.0], (2, N))
    if isinstance(own, Cap):  # a center is a function of the record: equal records have one
        own = replace(own, reference=CENTER[bound.rows.first[bound.rows.row_of]])
    assert_weights_alone_move_the_target(
        bound, own, log_lik=_terms if y is Y else None, weights=weights, spread=0.5, rtol=1e-8
    )


@pytest.mark.samples
def test_shares_signs_and_amounts_come_back() -> None:
    """5 Monte Carlo standard errors over 20 replicates of one draw; no value at an excluded end."""
    bound = _model().bind(_table())
    draws = draws_of(bound, draws=20)
    made = np.stack([
        bound.replicate(draws, 3, np.random.default_rng(k))["y"].to_numpy() for k in range(20)
    ])  # fmt: skip
    design = np.column_stack([np.ones(N), X])
    at_zero = special.expit(design @ draws.flat("beta_zero")[3])
    below = (1 - at_zero) * special.expit(design @ draws.flat("beta_sign")[3])
    for found, chance in ((made == 0, at_zero), (made < 0, below)):
        error = np.sqrt((chance * (1 - chance)).sum() / 20)
        assert abs(found.sum(axis=1).mean() - chance.sum()) < 5 * error
    np.testing.assert_array_equal(made, made.round(2))
    logs = np.log(made[made > 0])
    mean = np.broadcast_to(design @ draws.flat("beta_positive")[3], made.shape)[made > 0]
    spread = draws.flat("sigma_positive")[3] / np.sqrt(logs.size)
    assert abs((logs - mean).mean()) < 5 * spread + 0.01


@pytest.mark.samples
def test_a_model_of_any_sign_gives_no_zero_and_no_other_sign() -> None:
    amount = ph.NormalRegression("y ~ 1", decimals=0)
    model = ph.TwoPart(zero=ph.Bernoulli("y ~ 1"), positive=amount)
    bound = model.bind(_table(np.maximum(Y, 0).round()))
    draws = draws_of(bound, draws=30)
    made = bound.replicate(draws, 0, np.random.default_rng(1))["y"]
    assert (made >= 0).all()
    chance = special.expit(draws.flat("beta_zero")[0, 0])
    assert abs((made == 0).sum() - N * chance) < 5 * np.sqrt(N * chance * (1 - chance))


@pytest.mark.samples
def test_a_point_elsewhere_takes_its_records_alone() -> None:
    normal = ph.NormalRegression("y ~ x", decimals=1, upper=20)
    model = ph.TwoPart(zero=ph.Bernoulli("y ~ 1"), positive=normal, point=99.0)
    bound = model.bind(_table(np.where(KIND == 0, 99.0, X.round(1))))
    made = bound.replicate(draws_of(bound, draws=30), 0, np.random.default_rng(1))["y"]
    assert "Released values of y are at most 99, as declared" in " ".join(bound.assumptions)
    assert made[made != 99].abs().max() < 20 < made.max() == 99
    near = replace(model, positive=ph.Poisson("y ~ 1"), point=1.0)  # draws 1 in a third
    draws = draws_of(bound := near.bind(_table(np.where(KIND == 0, 1, KIND + 1))), draws=30)
    made = bound.replicate(draws, 0, np.random.default_rng(1))["y"]
    chance = special.expit(draws.flat("beta_zero")[0, 0])
    assert abs((made == 1).sum() - N * chance) < 5 * np.sqrt(N * chance * (1 - chance))


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "float32"])
def test_the_dtype_of_the_data_is_kept(dtype: str) -> None:
    table = _table(pd.Series(np.where(KIND == 0, 0, np.ceil(AMOUNT))).astype(dtype))
    model = ph.TwoPart(zero=ph.Bernoulli("y ~ x"), positive=ph.LogNormal("y ~ x", decimals=0))
    release = ph.Unweighted(model).release(table, seed=1, **RANDOM_DRAWS)
    made = release.synthetic[0]["y"]
    assert made.dtype == table["y"].dtype or str(made.dtype).lower().startswith("int")
    assert (made >= 0).all()


def test_one_charge_and_strict_where_all_parts_are() -> None:
    for decimals, kind in ((2, "strict"), (None, "asymptotic local")):
        own = _model(negative=ph.LogNormal("y ~ 1", decimals=decimals))
        mechanism = ph.Censored(own, epsilon=2.0, inner=ph.Unweighted(own), center=None,
                                check_modes=False)  # fmt: skip
        charge = mechanism.release(_table(), seed=2, **RANDOM_DRAWS).charge
        assert (charge.kind, charge.epsilon) == (kind, 2.0)
    assert json.loads(json.dumps(_model().describe()))["positive"]["decimals"] == 2


@pytest.mark.samples
def test_which_records_reach_a_part_does_not_change_its_coding() -> None:
    """A level that only records at 0 have keeps its column in the model of the amounts."""
    region = np.where(KIND == 0, "c", np.where(X > 0, "a", "b"))
    table = _table(np.maximum(Y, 0)).assign(region=region)
    bound = ph.TwoPart.of_formula("y ~ region").bind(table[table["y"] >= 0])
    assert "positive: region[T.c]" in bound.design_columns
    draws = draws_of(bound, draws=30)
    assert bound.replicate(draws, 0, np.random.default_rng(1)).shape == (N, 1)


@pytest.mark.parametrize(("changes", "y", "says"), [
    ({"negative": None}, Y, "must be 0 or above: row .* is below; give negative="),
    ({}, np.where(np.arange(N) == 7, np.nan, Y), "must not be missing: row 7 is"),
    ({}, np.where(Y > 0, "much", "none"), "must be numeric"),
])  # fmt: skip
def test_outcomes_that_the_parts_cannot_take_are_named(changes: Any, y: Any, says: str) -> None:
    refuses(says, _model(**changes).bind, _table(y))


@pytest.mark.parametrize(("changes", "says"), [
    ({"zero": ph.Poisson("y ~ x")}, "zero of TwoPart must be a Bernoulli"),
    ({"zero": ph.Bernoulli("y ~ x", levels=(0, 1))}, "without levels"),
    ({"positive": "lognormal"}, "must be a model of this package"),
    ({"negative": None, "sign": ph.Bernoulli("y ~ 1")}, "sign goes with negative"),
    ({"point": 3}, "negative goes with a point of 0"),
    ({"zero": ph.Bernoulli("z ~ x")}, "one outcome: found y, z"),
    ({"point": float("nan")}, "point must be"),
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(changes: Any, says: str) -> None:
    refuses(says, _model, **changes)


def test_no_message_about_names_is_lost() -> None:
    refuses("must be a column of the data", _model().bind, pd.DataFrame({"z": Y, "x": X}))
    refuses("must be a pandas DataFrame", _model().bind, [1, 2])


@pytest.mark.parametrize("other", [
    "poisson", "negative_binomial", "beta", "beta_regression", "normal_mixture", "gamma_regression",
    "categorical", "ordinal",
])  # fmt: skip
def test_the_joint_text_of_every_program_compiles(other: str) -> None:
    """Names of the parts do not meet, and nothing that a part declares is left without suffix."""
    import stanli

    program = joint_program({"zero": "bernoulli", "positive": other}, "of_zero + of_positive")
    stanli.stan_to_mir(program.text)
    assert program.name == f"bernoulli_and_{other}"
    assert "use_cap_" not in program.text
    assert program.text.count("real pseudo_log_lik(") == 1
    defined = re.findall(r"^  (?:real|vector|matrix)\s+(\w+)\(", program.text, flags=re.M)
    local = re.findall(r"^ +(?:real|int|vector\[.*\]|matrix\[.*\])\s+(\w+)\s*[;=]", program.text,
                       flags=re.M)  # fmt: skip
    assert defined
    assert local
    assert not set(defined) & set(local), "rstan 2.21 takes no variable by a function's name"


def test_no_bound_model_shows_its_records() -> None:
    """The representation is of the model's name and formula alone."""
    table = pd.DataFrame({
        "y": np.arange(1, 41) + 0.125, "k": np.arange(1, 41), "g": ["no", "yes"] * 20,
        "x": np.arange(40) + 0.0625,
    })  # fmt: skip
    models = [
        ph.Bernoulli("g ~ x"), ph.Categorical("g ~ x"), ph.MixtureRegression("y ~ x"),
        ph.Gamma("y ~ x"), ph.Poisson("k ~ x"), ph.Ordinal("k ~ x"),
        ph.TwoPart(zero=ph.Bernoulli("y ~ x"), positive=ph.LogNormal("y ~ x")),
        ph.WithMissing(ph.Poisson("k ~ x")), ph.ZeroInflated(ph.Poisson("k ~ x")),
    ]  # fmt: skip
    for model in models:
        shown = repr(model.bind(table))
        assert len(shown) < 100
        assert "0625" not in shown
        assert ".125" not in shown
        assert model.name in shown
