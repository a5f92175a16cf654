"""Zeros and missing values: log-likelihoods against scipy, shares, markers and dtypes that come
back, one charge for all blocks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from tests.models.targets import draws_of, log_lik_of
from tests.normal_draws import FEW_DRAWS
from tests.refusals import refuses

pytestmark = pytest.mark.normal_draws
N = 300
RNG = np.random.default_rng(5)
X = RNG.normal(size=N).round(1)
DESIGN = np.column_stack([np.ones(N), X])
AMOUNT = np.exp(1 + 0.4 * X + RNG.normal(0, 0.6, N)).round(2) + 0.01
ZERO = RNG.random(N) < special.expit(-1 + 0.8 * X)
GONE = RNG.random(N) < special.expit(-1.5 - X)
Y = np.where(GONE, np.nan, np.where(ZERO, 0.0, AMOUNT))
BOTH = ph.LogNormal("y ~ x", decimals=2, zeros=True, missing=True)
COUNT = RNG.poisson(np.exp(1 + 0.3 * X)).astype(float)
TEXT = RNG.choice(["a", "b", "c"], N)


def _table(y: Any = Y) -> pd.DataFrame:
    return pd.DataFrame({"y": y, "x": X})


def _log_lik(get: Any) -> Any:
    """Of the records of `_table()` under BOTH, written down with scipy, (S, n)."""
    missing, zero = (special.expit(get(name) @ DESIGN.T) for name in ("beta_missing", "beta_zero"))
    log_y = np.log(np.where(Y > 0, Y, 1.0))
    amount = stats.norm.logpdf(log_y, get("beta_value") @ DESIGN.T, get("sigma_value")[:, None])
    there = np.log1p(-missing) + np.where(Y == 0, np.log(zero), np.log1p(-zero) + amount)
    return np.where(GONE, np.log(missing), there)


def assert_share(found: Any, chance: Any) -> None:
    """Of replicates (R, n), each record with its own chance (n,)."""
    error = np.sqrt((chance * (1 - chance)).sum() / len(found))
    assert abs(found.sum(axis=1).mean() - chance.sum()) < 5 * error


def test_a_record_tells_the_sum_of_its_blocks() -> None:
    bound = BOTH.bind(_table())
    draws = draws_of(bound, draws=30)
    expected = _log_lik(draws.flat)
    np.testing.assert_allclose(log_lik_of(bound, draws), expected, rtol=1e-9, atol=1e-12)
    assert bound.likelihood_parameters == ("beta_missing", "beta_zero", "beta_value", "sigma_value")
    assert bound.rows.first.size < N, "zeros with equal predictors are one row"
    np.testing.assert_array_equal(bound.matrix.X, DESIGN)
    assert np.isnan(bound.outcome).sum() == GONE.sum()


def test_codes_are_blocks_of_their_own() -> None:
    """-8 and 3 of all, then 0 of the others: a product's likelihood, and no amount is a code."""
    coded = np.where(ZERO, 0, np.where(GONE, -8, np.where(X > 0.8, 3, COUNT + 4)))
    bound = ph.Poisson("y ~ x", codes=(-8, 3), zeros=True).bind(_table(coded))
    assert [block.name for block in bound.blocks] == ["-8", "3", "zero", "value"]
    assert "Whether a value of y is -8 or 3 or 0" in bound.assumptions[0]
    draws = draws_of(bound, draws=30)
    of_each = (draws.flat(f"beta_{name}") for name in ("-8", "3", "zero"))
    first, second, zero = (special.expit(beta @ DESIGN.T) for beta in of_each)
    value = stats.poisson.logpmf(coded, np.exp(draws.flat("beta_value") @ DESIGN.T))
    rest = np.where(coded == 0, np.log(zero), np.log1p(-zero) + value)
    rest = np.log1p(-first) + np.where(coded == 3, np.log(second), np.log1p(-second) + rest)
    expected = np.where(coded == -8, np.log(first), rest)
    np.testing.assert_allclose(log_lik_of(bound, draws), expected, rtol=1e-9, atol=1e-12)
    made = np.stack([bound.replicate(draws, 3, np.random.default_rng(k))["y"] for k in range(20)])
    assert_share(made == -8, first[3])
    assert_share(made == 3, (1 - first[3]) * second[3])
    assert set(made[made < 0]) == {-8}


@pytest.mark.parametrize("model", [
    ph.NormalRegression("y ~ x", decimals=0, zeros=True),
    ph.Gamma("y ~ x", decimals=1, upper=400, zeros=True),
])  # fmt: skip
def test_values_beside_zeros_are_no_zeros(model: Any) -> None:
    """A value that would be 0, or round to it, is drawn again: zeros are those of their block."""
    bound = model.bind(_table(np.where(ZERO, 0, np.ceil(AMOUNT))))
    draws = draws_of(bound, draws=30)
    made = np.stack([bound.replicate(draws, 0, np.random.default_rng(k))["y"] for k in range(20)])
    assert_share(made == 0, special.expit(DESIGN @ draws.flat("beta_zero")[0]))


def _objects(values: Any, mark: Any) -> pd.Series:
    made: pd.Series = pd.Series(values, dtype=object)
    made[GONE] = mark
    return made


COLUMNS: dict[str, tuple[Any, Any]] = {
    "float": (ph.Poisson, pd.Series(np.where(GONE, np.nan, COUNT))),
    "Int64": (ph.Poisson, pd.Series(COUNT).astype("Int64").mask(GONE)),
    "Float64": (ph.Poisson, pd.Series(COUNT).astype("Float64").mask(GONE)),
    "text, None": (ph.Categorical, _objects(TEXT, None)),
    "text, NaN": (ph.Categorical, _objects(TEXT, np.nan)),
    "text, NA": (ph.Categorical, _objects(TEXT, pd.NA)),
    "string": (ph.Categorical, pd.Series(TEXT).astype("string").mask(GONE)),
    "category": (ph.Categorical, pd.Series(TEXT).astype("category").mask(GONE)),
    "ordered": (ph.Ordinal, pd.Series(TEXT).astype("category").cat.as_ordered().mask(GONE)),
    "boolean": (ph.Bernoulli, pd.Series(COUNT > 2).astype("boolean").mask(GONE)),
    "logicals, None": (ph.Bernoulli, _objects(COUNT > 2, None)),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_missing_stays_missing_with_its_marker_and_dtype(kind: str) -> None:
    make, y = COLUMNS[kind]
    table = pd.DataFrame({"y": y, "x": X}, index=pd.Index([f"r{i}" for i in range(N)]))
    table["y"] = pd.Series(y.array, table.index, dtype=y.dtype)
    before = table.copy()
    bound = make("y ~ x", missing=True).bind(table)
    draws = draws_of(bound, warmup=150, draws=60)
    made = bound.replicate(draws, 7, np.random.default_rng(1))["y"]
    pd.testing.assert_frame_equal(table, before)
    assert made.dtype == table["y"].dtype
    assert made.index.equals(table.index)
    assert {repr(v) for v in made[made.isna()]} == {repr(v) for v in table["y"][table["y"].isna()]}
    assert {type(v) for v in made.dropna()} == {type(v) for v in table["y"].dropna()}
    chance = special.expit(DESIGN @ draws.flat("beta_missing")[7])
    assert_share(made.isna().to_numpy()[None], chance)


def test_one_charge_covers_all_blocks_and_says_so() -> None:
    release = ph.LipschitzWeighted(BOTH).release(_table(), seed=2, **FEW_DRAWS)
    assert release.charge.kind == "asymptotic local"
    assert "Whether a value of y is missing or 0 was modeled, too" in release.statement
    assert release.synthetic[0]["y"].isna().any()
    assert ph.reports.release_pages(release)
    limited = replace(BOTH, lower=0.01, upper=900).bind(_table().assign(y=np.maximum(Y, 0)))
    assert any("at least 0 and at most 900" in text for text in limited.assumptions)


def test_survey_weights_act_in_every_block() -> None:
    table = _table().assign(w=np.linspace(1, 4, N).round(1))
    table["w"] /= table["w"].mean()
    bound: Any = ph.Unweighted(BOTH, design="w").bind(table)
    alpha = np.full(N, 0.5)
    for block in bound.blocks:
        data = block.bound.stan_data(alpha[block.at])
        total = (data["weights"] * data["frequency"]).sum()
        assert total == pytest.approx(0.5 * table["w"].to_numpy()[block.at].sum())


def test_which_records_reach_a_block_does_not_change_its_coding() -> None:
    """A level that only records at 0 have keeps its column in the model of the amounts."""
    region = np.where(ZERO, "c", np.where(X > 0, "a", "b"))
    table = _table(np.where(ZERO, 0.0, AMOUNT)).assign(region=region)
    bound = ph.LogNormal("y ~ region", zeros=True).bind(table)
    assert "region[T.c]" in bound.design_columns
    draws = draws_of(bound, draws=30)
    assert bound.replicate(draws, 0, np.random.default_rng(1)).shape == (N, 1)


def test_blocks_without_a_record_have_their_prior() -> None:
    for y in (np.where(GONE, np.nan, 0.0), np.where(ZERO, 0.0, AMOUNT)):
        bound = BOTH.bind(_table(y))
        assert np.isfinite(log_lik_of(bound, draws_of(bound, draws=30))).all()


@pytest.mark.parametrize(("make", "says"), [
    (lambda: ph.LogNormal("y ~ x", zeros=True).bind(_table()), "must not be missing: row"),
    (lambda: ph.LogNormal("y ~ x", missing=True).bind(_table()), "zeros=True if it is 0"),
    (lambda: ph.LogNormal("y ~ x", zeros=True).bind(_table(np.where(ZERO, 0, -AMOUNT))),
     "be above 0"),
    (lambda: ph.Poisson("y ~ x", zeros=True).bind(_table(TEXT)), "needs a numeric outcome"),
    (lambda: ph.Bernoulli("y ~ x", zeros=True), "zeros=True is for amounts and counts"),
    (lambda: ph.Bernoulli("y ~ x", codes=(9,)), "for amounts and counts"),
    (lambda: ph.Poisson("y ~ x", codes=("9",)), "each of codes must be"),
    (lambda: ph.Poisson("y ~ x", codes=(9, 9)), "codes must be different"),
    (lambda: ph.Poisson("y ~ x", codes=(0,), zeros=True), "0 none of them"),
    (lambda: ph.Poisson("y ~ x", codes=(0.5,)), "numbers of 0 decimals"),
    (lambda: ph.Poisson("y ~ x", codes=()), "codes must be a tuple"),
    (lambda: ph.Poisson("y ~ x", zeros="yes"), "zeros must be True or False"),
    (lambda: ph.Poisson("y ~ x", missing=1), "missing must be True or False"),
    (lambda: ph.Poisson("y ~ x", missing=True).bind(_table().assign(x=np.nan)), "predictor 'x'"),
    (lambda: BOTH.bind(pd.DataFrame({"z": Y, "x": X})), "must be a column of the data"),
    (lambda: BOTH.bind([1, 2]), "must be a pandas DataFrame"),
    (lambda: ph.Censored(BOTH, epsilon=2, inner=ph.Unweighted(BOTH), center=None).release(
        _table(), **FEW_DRAWS), "without zeros=, codes= and missing="),
    (lambda: ph.calibrate(BOTH, _table(), epsilon=2, holds_no_released_record=True,
                          **FEW_DRAWS), "without zeros=, codes= and missing="),
])  # fmt: skip
def test_what_cannot_be_is_named(make: Any, says: str) -> None:
    refuses(says, make)


def test_no_bound_model_shows_its_records() -> None:
    """The representation is of the model's name and formula alone."""
    table = pd.DataFrame({
        "y": np.arange(1, 41) + 0.125, "k": np.arange(1, 41), "g": ["no", "yes"] * 20,
        "x": np.arange(40) + 0.0625,
    })  # fmt: skip
    models = [
        ph.Bernoulli("g ~ x"), ph.Categorical("g ~ x"), ph.MixtureRegression("y ~ x"),
        ph.Gamma("y ~ x"), ph.Poisson("k ~ x"), ph.Ordinal("k ~ x"),
        ph.LogNormal("y ~ x", zeros=True), ph.Poisson("k ~ x", missing=True),
    ]  # fmt: skip
    for model in models:
        shown = repr(model.bind(table))
        assert len(shown) < 100
        assert "0625" not in shown
        assert ".125" not in shown
        assert model.name in shown
