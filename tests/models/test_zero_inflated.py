"""Counts with extra zeros: likelihood, target, replicates; within missing values, too."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from tests.models.targets import assert_log_lik_is_stans, draws_of
from tests.refusals import refuses

pytestmark = pytest.mark.samples
N = 250
RNG = np.random.default_rng(2)
X = RNG.choice([-1.0, 0.0, 1.0], N)
COUNT = RNG.negative_binomial(3, 3 / (3 + np.exp(1.5 + 0.5 * X)))
Y = np.where(RNG.random(N) < special.expit(-0.5 + 0.5 * X), 0, COUNT)
MODEL = ph.ZeroInflated(ph.Poisson("y ~ x"), zero=ph.Bernoulli("y ~ x"))


def _terms(draws: Any) -> Any:
    """Written down again, by scipy, (S, n)."""
    design = np.column_stack([np.ones(N), X])
    zero = special.expit(draws.flat("beta_zero") @ design.T)
    count = stats.poisson.pmf(Y, np.exp(draws.flat("beta_count") @ design.T))
    return np.log(np.where(Y == 0, zero, 0) + (1 - zero) * count)


def test_missing_values_beside_extra_zeros() -> None:
    y = np.where(np.arange(N) % 5 == 0, np.nan, Y)
    bound = ph.WithMissing(MODEL).bind(pd.DataFrame({"y": y, "x": X}))
    assert [part.name for part in bound.parts] == ["missing", "zero", "count"]
    draws = draws_of(bound, warmup=200, draws=50, emit_log_lik=True)
    ours = assert_log_lik_is_stans(bound, draws, rtol=1e-8)
    gone = special.expit(draws.flat("beta_missing") @ np.column_stack([np.ones(N), X]).T)
    there = np.log1p(-gone) + _terms(draws)
    expected = np.where(np.isnan(y), np.log(gone), there)
    np.testing.assert_allclose(ours[:, bound.rows.row_of], expected, rtol=1e-7, atol=1e-9)
    made = bound.replicate(draws, 0, np.random.default_rng(1))["y"]
    assert 0 < made.isna().sum() < N
    assert (made == 0).any()


def test_refusals() -> None:
    for make, says in (
        (lambda: ph.ZeroInflated(ph.Bernoulli("y ~ x")), "must be a Poisson or"),  # type: ignore[arg-type]
        (lambda: ph.ZeroInflated(ph.Poisson("y ~ x", lower=1)), "from 0 on"),
        (lambda: ph.ZeroInflated(ph.Poisson("y ~ x"), zero=ph.Bernoulli("z ~ x")), "one outcome"),
        (lambda: MODEL.bind(pd.DataFrame({"y": Y - 3, "x": X})), "is negative"),
    ):
        refuses(says, make)
