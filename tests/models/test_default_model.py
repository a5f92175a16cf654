"""What a column seems to hold: the draft that its owner declares."""

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.models.default_model import suggest_model

N = 2000


def drawn(seed):
    rng = np.random.default_rng(seed)
    return {
        "negative_binomial": rng.negative_binomial(1.5, 0.2, N),
        "lognormal:decimals=0,unit=": np.round(rng.lognormal(10, 0.7, N)),
        "gamma:decimals=2,unit=": np.round(rng.gamma(20, 5, N), 2),
        "normal:decimals=0,unit=10,lower=0": np.round(rng.normal(12, 2, N)),
        "normal:decimals=1,unit=": np.round(rng.normal(0, 20, N), 1),
        "normal:transform=asinh,decimals=0,unit=": np.round(rng.standard_t(2, N) ** 3 * 1000),
        "beta_regression:decimals=3": np.round(rng.beta(2, 5, N), 3),
        "bernoulli:levels=no+yes": rng.choice(["no", "yes"], N),
        "bernoulli:levels=0+1": rng.choice([0, 1], N),
        "ordinal:levels=1+2+3+4+5": rng.choice(5, N) + 1,
        "categorical:levels=a+b+c": rng.choice(list("abc"), N),
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_model_follows_from_kind_and_shape(seed):
    for text, values in drawn(seed).items():
        if "asinh" in text:  # its skewness is that of a few values
            continue
        assert str(suggest_model(pd.Series(values, name="y"))).startswith(text)


def blocks_of(values):
    suggested = suggest_model(pd.Series(values, name="y"))
    return suggested.name, sorted({"zeros", "missing"} & suggested.settings.keys())


@pytest.mark.parametrize("seed", range(3))
def test_zeros_and_missing_values_get_blocks_where_they_are_many(seed):
    rng = np.random.default_rng(seed)
    income, few = np.round(rng.lognormal(10, 0.5, N), 2), np.arange(N) < 9
    many, other = rng.random(N) < 0.1, rng.random(N) < 0.2
    gone = np.where(many, np.nan, income)
    assert blocks_of(gone) == ("lognormal", ["missing"])
    assert blocks_of(np.where(other, 0, gone)) == ("lognormal", ["missing", "zeros"])
    assert blocks_of(np.where(few, 0, income)) == ("lognormal", [])
    assert "a few zeros" in suggest_model(pd.Series(np.where(few, 0, income))).holds
    assert "missing values, which" in suggest_model(pd.Series(np.where(few, np.nan, income))).holds
    assert blocks_of(np.where(many, 0, rng.beta(2, 5, N).round(3))) == (
        "beta_regression",
        ["zeros"],
    )
    assert blocks_of(np.where(many, None, rng.choice(["a", "b"], N))) == ("bernoulli", ["missing"])


def test_answers_among_amounts_are_codes():
    rng = np.random.default_rng(0)
    income = np.round(rng.lognormal(9, 0.5, N))
    asked = np.where(rng.random(N) < 0.05, rng.choice([-9, -8], N), income)
    suggested = suggest_model(pd.Series(asked, name="y"))
    assert str(suggested).startswith("lognormal:decimals=0,unit=8000,codes=-9+-8")
    assert suggested.holds.endswith("codes -9, -8")
    few = np.where(rng.random(N) < 0.05, -9, rng.choice(5, N))
    assert "codes" not in suggest_model(pd.Series(few, name="y")).settings


def test_skewed_turnover_is_not_normal():
    turnover = pd.Series(np.round(np.random.default_rng(2).lognormal(12, 1.5, N)), name="turnover")
    assert suggest_model(turnover).name == "lognormal"


def test_columns_without_a_model_are_refused_in_one_line():
    for values, said in ((["x"] * 9, "two values or more"), ([f"p{k}" for k in range(99)], "99")):
        with pytest.raises(ph.InvalidInput, match=said):
            suggest_model(pd.Series(values, name="y"))
