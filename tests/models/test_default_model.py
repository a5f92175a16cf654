"""What a column seems to hold: the draft that its owner declares."""

import numpy as np
import pandas as pd
import pytest

from pyhybrid.models.default_model import MODELS, chosen_model, suggest_model
from tests.refusals import refuses

N = 2000


def drawn(seed):
    rng = np.random.default_rng(seed)
    return {
        "negative_binomial": rng.negative_binomial(1.5, 0.2, N),
        "lognormal:decimals=0,unit=": np.round(rng.lognormal(10, 0.7, N)),
        "lognormal:decimals=0,unit=2": np.round(rng.lognormal(12.4, 1.5, N)),  # turnover
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
def test_a_model_follows_from_kind_and_shape_and_of_a_reference_declares_it(seed):
    """Seen: negative affairs, no zeros, and a refusal on every second table."""
    for text, values in drawn(seed).items():
        if "asinh" in text:  # its skewness is that of a few values
            continue
        suggested = suggest_model(pd.Series(values, name="y"))
        assert str(suggested).startswith(text)
        table = pd.DataFrame({"y": values})
        found, model = (chosen_model("y ~ 1", table, of_reference=own) for own in (False, True))
        assert type(found) is type(model) is MODELS[suggested.name]
        assert {name: getattr(model, name) for name in suggested.settings} == suggested.settings
        bound = model.bind(table)
        assert bound.decimals_given
        assert not bound.data_dependent


def test_a_single_zero_among_amounts_gets_a_block_in_a_model_that_is_chosen():
    table = pd.DataFrame({"y": np.maximum(np.arange(300) - 9, -9) / 3 + 3})
    for own in (False, True):
        model = chosen_model("y ~ 1", table, of_reference=own)
        assert (model.name, model.zeros) == ("Gamma", True)


def test_rare_counts_get_no_threshold_of_their_own():
    """Visits of a health survey: by levels the one record with 9 had a mu of 10, epsilon 100."""
    values = np.repeat(np.arange(10), [4141, 782, 174, 30, 24, 20, 20, 20, 20, 20])
    assert chosen_model("y ~ 1", pd.DataFrame({"y": values})).name == "Ordinal"
    assert chosen_model("y ~ 1", pd.DataFrame({"y": values[:-1]})).name == "NegativeBinomial"


def test_a_column_with_missing_values_gets_a_model_of_these_too():
    table = pd.DataFrame({"y": drawn(0)["negative_binomial"].astype(float), "x": np.arange(N)})
    table.loc[::5, "y"] = np.nan
    for own in (False, True):
        assert chosen_model("y ~ x", table, of_reference=own).missing


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
    shares = np.where(many, 0, rng.beta(2, 5, N).round(3))
    assert blocks_of(shares) == ("beta_regression", ["zeros"])
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


def test_columns_without_a_model_are_refused_in_one_line():
    for values, said in ((["x"] * 9, "two values or more"), ([f"p{k}" for k in range(99)], "99")):
        refuses(said, suggest_model, pd.Series(values, name="y"))
