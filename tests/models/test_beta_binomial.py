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
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.mechanisms.censored import calibration

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


@pytest.mark.normal_draws
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


def test_far_out_the_density_is_that_of_a_binomial() -> None:
    """Differences of log gammas near 1e17 are all rounding, which chains took for modes."""
    bound = ph.BetaBinomial("y ~ x", upper=7, prior="normal").bind(_table())
    data = bound.stan_data(np.ones(N))
    program = ProgramAtPoints(bound.program, data)
    points = np.random.default_rng(1).normal(size=(12, 3)) / 4
    logs = np.resize([14.0, 26.0, 40.0], 12)
    points[:, 2] = (logs - data["center_lambda"]) / data["spread_lambda"]
    beta = program.quantities(points)["beta"]
    share = special.expit(beta @ np.column_stack([np.ones(N), X]).T)
    binomial = stats.binom.logpmf(DAYS, 7, share).sum(axis=1)
    prior = -1.5 * logs + stats.norm.logpdf(beta, scale=[10.0, 2.5]).sum(axis=1)
    beta_given_z = _log_jacobian(program, points)
    rest = program.log_density(points) - binomial - prior - beta_given_z
    np.testing.assert_allclose(rest, rest[0], atol=N * 49 / np.exp(14))
    beta_one, size = np.exp(40.0) * share, np.exp(40.0)
    cancelled = special.betaln(DAYS + beta_one, 7 - DAYS + size - beta_one)
    cancelled = (cancelled - special.betaln(beta_one, size - beta_one)).sum(axis=1)
    assert np.abs(cancelled - binomial).max() > 100, "what was there before: the check sees it"


def _log_jacobian(program: ProgramAtPoints, points: Any) -> Any:
    """log |d beta / d z|, constant in z: the coefficients are linear in it under this prior."""
    moved = np.array([program.quantities(points + step)["beta"] for step in np.eye(3)[:2] * 1e-3])
    slope = (moved - program.quantities(points)["beta"]) / 1e-3
    return np.linalg.slogdet(slope.transpose(1, 0, 2))[1]


@pytest.mark.samples
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_counts_of_less_spread_than_a_binomial_converge(seed: int) -> None:
    y = np.minimum(np.random.default_rng(seed).poisson(2, 300), 40)
    table: pd.DataFrame = pd.DataFrame({"y": y})
    fit = ph.Unweighted(ph.BetaBinomial("y ~ 1", upper=40)).release(
        table, engine="embedded", settings=SamplerSettings(chains=4, warmup=300, draws=300)
    )
    assert fit.diagnostics is not None
    assert fit.diagnostics.max_rhat < 1.05


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
    assert calibration._read_model(told, None) == MODEL
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL
    assert build_model("beta_binomial:lower=1,upper=5", "y ~ x") == ph.BetaBinomial(
        "y ~ x", lower=1, upper=5
    )
