"""Counts with two public ends: likelihood, posterior, replicates, support."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import ProgramAtPoints
from tests.refusals import refuses

RNG = np.random.default_rng(3)
N = 200
X = RNG.normal(size=N).round(1)
DAYS = RNG.binomial(7, RNG.beta(3 * special.expit(0.5 * X), 3 * special.expit(-0.5 * X)))
MODEL = ph.BetaBinomial("y ~ x", upper=7)


def _table(y: Any = DAYS) -> pd.DataFrame:
    return pd.DataFrame({"y": y, "x": X})


def test_log_likelihood_far_out() -> None:
    design = np.column_stack([np.ones(N), X])
    far = {"beta": np.array([[900.0, 0], [-900.0, 0]]), "lambda": np.array([1.0, 1e6])}
    assert np.isfinite(MODEL.log_lik(far, DAYS.astype(float), design)).all()


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
    assert fit.diagnostics.converged


@pytest.mark.parametrize(("given", "values", "message"), [
    ({}, DAYS, "upper must be given for BetaBinomial"),
    ({"upper": 5}, DAYS, "at most 5: row .* is larger"),
    ({"lower": 1, "upper": 7}, DAYS, "at least 1: row .* is smaller"),
    ({"upper": 7}, DAYS / 2, "a whole number: row .* is not"),
    ({"lower": 7, "upper": 7}, DAYS, "upper must be above lower"),
])  # fmt: skip
def test_ends_are_public_and_hold(given: Any, values: Any, message: str) -> None:
    refuses(message, lambda: ph.BetaBinomial("y ~ x", **given).bind(_table(values)))
