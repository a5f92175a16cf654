"""Counts with two public ends: likelihood, posterior, replicates, support."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.cli.options import build_model
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.errors import InvalidInput
from pyhybrid.mechanisms import calibration_files

RNG = np.random.default_rng(3)
N = 200
X = RNG.normal(size=N).round(1)
DAYS = RNG.binomial(7, RNG.beta(3 * special.expit(0.5 * X), 3 * special.expit(-0.5 * X)))
MODEL = ph.BetaBinomial("y ~ x", upper=7)


def _table(y: Any = DAYS) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame({"y": y, "x": X})
    return table


class _Draws:
    def flat(self, name: str) -> Any:
        return {"beta": np.array([[0.3, 0.8]]), "lambda": np.array([2.5])}[name]


def test_log_likelihood_against_scipy_and_far_out() -> None:
    beta, size = RNG.normal(size=(20, 2)), RNG.lognormal(1, 1.5, 20)
    design = np.column_stack([np.ones(N), X])
    found = ph.BetaBinomial("y ~ x", lower=2, upper=9).log_lik(
        {"beta": beta, "lambda": size}, DAYS + 2.0, design
    )
    mu = special.expit(beta @ design.T)
    expected = stats.betabinom.logpmf(DAYS, 7, size[:, None] * mu, size[:, None] * (1 - mu))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    far = {"beta": np.array([[900.0, 0], [-900.0, 0]]), "lambda": np.array([1.0, 1e6])}
    assert np.isfinite(MODEL.log_lik(far, DAYS.astype(float), design)).all()


@pytest.mark.parametrize("prior", ["normal", "published"])
def test_numpy_log_lik_is_stans(prior: str) -> None:
    model = ph.BetaBinomial("y ~ x", lower=1, upper=8, prior=prior)
    bound = model.bind(_table(DAYS + 1))
    settings = SamplerSettings(chains=2, warmup=100, draws=40, parallel_chains=1)
    data = bound.stan_data(np.ones(N), emit_log_lik=True)
    draws = EmbeddedEngine().sample(bound.program, data, seed=3, settings=settings)
    ours = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)
    np.testing.assert_allclose(ours, draws.flat("log_lik"), rtol=1e-8, atol=1e-9)
    assert draws.treedepth.mean() < 4
    assert bound.stan_data(np.ones(N))["n"] < N


def test_replicates_have_the_models_frequencies_within_the_ends() -> None:
    n = 60_000
    x = np.resize([-1.0, 0.0, 2.0], n)
    table = pd.DataFrame({"y": np.resize([1, 8], n), "x": x}).astype({"y": "uint8"})
    made = (
        ph.BetaBinomial("y ~ x", lower=1, upper=8)
        .bind(table)
        .replicate(
            _Draws(),
            0,
            np.random.default_rng(5),  # type: ignore[arg-type]
        )["y"]
    )
    assert made.dtype == "uint8"

    def chi_square(size: float) -> float:
        total = 0.0
        for value in np.unique(x):
            mu = special.expit(0.3 + 0.8 * value)
            own = made[x == value].to_numpy().astype(int) - 1
            expected = own.size * stats.betabinom.pmf(np.arange(8), 7, size * mu, size * (1 - mu))
            total += ((np.bincount(own, minlength=8) - expected) ** 2 / expected).sum()
        return float(total)

    assert chi_square(2.5) < stats.chi2.ppf(1 - 1e-6, 21)
    assert chi_square(3.0) > stats.chi2.ppf(1 - 1e-6, 21)


@pytest.mark.parametrize(
    ("given", "values", "message"),
    [
        ({}, DAYS, "upper must be given for BetaBinomial"),
        ({"upper": 5}, DAYS, "at most 5: row .* is larger"),
        ({"lower": 1, "upper": 7}, DAYS, "at least 1: row .* is smaller"),
        ({"upper": 7}, DAYS / 2, "a whole number: row .* is not"),
        ({"lower": 7, "upper": 7}, DAYS, "upper must be above lower"),
    ],
)
def test_ends_are_public_and_hold(given: Any, values: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ph.BetaBinomial("y ~ x", **given).bind(_table(values))


def test_settings_outlive_files_and_processes() -> None:
    told = json.loads(json.dumps(MODEL.describe()))
    assert calibration_files._model(told, None) == MODEL
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL
    assert build_model("beta_binomial:lower=1,upper=5", "y ~ x") == ph.BetaBinomial(
        "y ~ x", lower=1, upper=5
    )
