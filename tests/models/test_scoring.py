"""Scores of the families: derivatives, expectations, priors, simulation and starts."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as st

import pyhybrid as ph
from pyhybrid.models.formula.design import read_design

N = 400
MODELS = {
    "poisson": ph.Poisson("y ~ x + g"),
    "negative_binomial": ph.NegativeBinomial("y ~ x + g"),
    "bernoulli": ph.Bernoulli("y ~ x + g", levels=("no", "yes")),
    "categorical": ph.Categorical("y ~ x", levels=("a", "b", "c")),
    "ordinal": ph.Ordinal("y ~ x + g", levels=(1, 2, 3, 4)),
    "normal": ph.NormalRegression("y ~ x + g", decimals=2),
    "normal, floor": ph.NormalRegression("y ~ x", decimals=2, min_sd=0.5),
    "lognormal": ph.LogNormal("y ~ x", decimals=2),
    "gamma": ph.Gamma("y ~ x", decimals=2),
    "beta": ph.Beta("y ~ 1", decimals=3),
    "beta_regression": ph.BetaRegression("y ~ x", decimals=3),
}
BLOCKS = {
    "zeros": ph.LogNormal("y ~ x", decimals=2, zeros=True),
    "both": ph.NegativeBinomial("y ~ x", zeros=True, missing=True),
    "levels": ph.Categorical("y ~ x", levels=("a", "b", "c"), missing=True),
}
ALL = {**MODELS, **BLOCKS}


def scoring_of(name):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=N), "g": rng.choice(["u", "v"], N), "y": 0.0})
    model = ALL[name]
    return model.scoring(read_design(model.formula, table, any_rank=True, one_value=True))


def point(scoring):
    return np.random.default_rng(7).normal(size=scoring.d) * 0.4


def log_lik(model, scoring, theta, y):
    """The model's, of every block that a record reaches, (N,)."""
    total = np.zeros(N)
    columns = y.reshape(N, -1).T
    for (label, part, at), outcome in zip(scoring.blocks_at(theta), columns, strict=True):
        of_block = model if label == "value" else ph.Bernoulli("y ~ x")
        reached = np.isfinite(outcome)
        terms = of_block.log_lik(part.parameters(at), outcome[reached], part.X[reached], 0.0)
        total[reached] += terms[0]
    return total


@pytest.mark.parametrize("name", ALL)
def test_scores_are_the_derivatives_of_the_log_likelihood(name):
    """A record without outcome has none; one that reaches no block tells nothing."""
    scoring = scoring_of(name)
    theta = point(scoring)
    y = scoring.simulate(theta, np.random.default_rng(2))
    y[5] = np.nan
    scores = scoring.scores(theta, y)
    numeric = np.empty_like(scores)
    for k, step in enumerate(np.diag(1e-4 * np.maximum(1.0, np.abs(theta)))):
        ends = (log_lik(ALL[name], scoring, theta + sign * step, y) for sign in (1, -1))
        numeric[:, k] = -np.diff(list(ends), axis=0)[0] / (2 * step[k])
    kept = np.arange(N) != 5
    np.testing.assert_allclose(scores[kept], numeric[kept], rtol=1e-4, atol=2e-5)
    assert (scores[5] == 0).all() if name in BLOCKS else not np.isfinite(scores[5]).all()


@pytest.mark.parametrize("name", ALL)
def test_expected_scores_are_zero(name):
    scoring = scoring_of(name)
    theta, rng = point(scoring), np.random.default_rng(100)
    total = np.array([scoring.scores(theta, scoring.simulate(theta, rng)).sum(axis=0)
                      for _ in range(100)])  # fmt: skip
    error = total.std(axis=0, ddof=1) / 10
    assert (np.abs(total.mean(axis=0)) < 5 * error).all()


def _of_counts(at):
    normal = st.norm.logpdf(at[:3], 0, [10, 2.5, 2.5]).sum()
    return normal + st.halfcauchy.logpdf(np.exp(-at[3]), scale=5) - at[3]


def _of_shares(at):
    phi, size = 1 / (1 + np.exp(-at[0])), 0.1 + np.exp(at[1])
    return np.log(phi * (1 - phi)) + st.pareto.logpdf(size, 1.5, scale=0.1) + at[1]


def _of_ordered(at):
    thresholds = at[0] + np.append(0, np.exp(at[1:3]).cumsum())
    slopes = st.norm.logpdf(at[3:], 0, 2.5).sum()
    return st.norm.logpdf(thresholds, 0, 10).sum() + at[1:3].sum() + slopes


@pytest.mark.parametrize(
    ("name", "log_prior"),
    [("negative_binomial", _of_counts), ("beta", _of_shares), ("ordinal", _of_ordered)],
)
def test_priors_are_the_stated_ones(name, log_prior):
    scoring = scoring_of(name)
    at, steps = point(scoring), 1e-5 * np.eye(scoring.d)
    numeric = [(log_prior(at + step) - log_prior(at - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(scoring.prior(at)[0], numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "theta"), [
    ("poisson", [4.6, 0, 0]), ("negative_binomial", [1.0, 0, 0, 0.5]),
    ("normal", [1990.0, 0, 0, 1.0]), ("lognormal", [9.0, 0, -0.5]), ("gamma", [7.0, 0, 1.0]),
    ("beta_regression", [-1.5, 0, 2.0]),
])  # fmt: skip
def test_starts_from_noisy_histograms_are_near(name, theta, seed):
    """Noise of epsilon 1 in the counts of 4,000 records; near: where scoring converges from."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.normal(size=4000), "g": "u", "y": 0.0})
    model = MODELS[name]
    formula = model.formula.replace(" + g", "")
    scoring = model.scoring(read_design(formula, table, any_rank=True, one_value=True))
    theta = np.array([theta[0], 0.0, *theta[2 + ("+ g" in model.formula) :]])
    y = scoring.simulate(theta, rng)

    def noisy(bin_of, n_bins):
        place = bin_of(y)
        return np.bincount(place.astype(int), minlength=n_bins) + rng.normal(0, 27, n_bins)

    start = scoring.start(noisy, 27.0)
    scale = np.exp(theta[-1]) if name == "normal" else 1.0
    assert abs(start[0] - theta[0]) < 0.6 * scale
    if len(theta) > 2:
        assert abs(start[-1] - theta[-1]) < 1.2


@pytest.mark.parametrize(("name", "cells", "read"), [
    ("poisson", [1, "2", -1, "x", 2.5, None, 1e300], [1, 2, *[np.nan] * 5]),
    ("bernoulli", ["no", "yes", "maybe", None, 7], [0, 1, *[np.nan] * 3]),
    ("lognormal", [1.0, 0, -3, np.inf, "e"], [0, *[np.nan] * 4]),
    ("beta", [0.5, -0.1, 1.1, "half"], [0.5, *[np.nan] * 3]),
    ("ordinal", ["1", 4.0, 5, True], [0, 3, np.nan, 0]),
])  # fmt: skip
def test_cells_are_read_each_by_itself(name, cells, read):
    """A cell that the model does not take is NaN, and no other cell is read otherwise."""
    model = MODELS[name]
    found = model.outcome_numbers(pd.Series(cells, dtype=object))
    np.testing.assert_array_equal(found, read)
    for place in range(len(cells)):
        alone = model.outcome_numbers(pd.Series([cells[place]], dtype=object))
        np.testing.assert_array_equal(alone, found[[place]])


@pytest.mark.parametrize("seed", range(3))
def test_a_start_of_blocks_has_their_shares(seed):
    """Noise of epsilon 1 in the counts of 4,000 records, of whom a fifth have no value."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.normal(size=4000), "y": 0.0})
    scoring = BLOCKS["zeros"].scoring(read_design("y ~ x", table, any_rank=True, one_value=True))
    theta = np.array([-1.4, 0, 9.0, 0, -0.5])
    y = scoring.simulate(theta, rng)
    looks = []

    def noisy(bin_of, n_bins):
        looks.append(n_bins)
        place = bin_of(y)
        known = place[np.isfinite(place)].astype(int)
        return np.bincount(known, minlength=n_bins) + rng.normal(0, 50, n_bins)

    start = scoring.start(noisy, 50.0)
    assert len(looks) == scoring.looks
    assert abs(start[0] + 1.4) < 0.4
    assert abs(start[2] - 9) < 0.3
    assert scoring.prior(theta)[1].shape == (5, 5)
    assert set(scoring.parameters(theta)) == {"beta_zero", "beta_value", "sigma_value"}
