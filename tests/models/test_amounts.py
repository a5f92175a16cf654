"""Gamma and bounded amounts: likelihoods against scipy and Stan, replicates within the bounds."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines.embedded import as_json
from tests.models.targets import AtPoints
from tests.refusals import refuses

N = 100
RNG = np.random.default_rng(6)
X = RNG.normal(size=N).round(1)
Y = RNG.gamma(2.0, np.exp(3 + 0.5 * X) / 2).round(2) + 0.01
TOP = 150.0


def test_replicates_have_the_law_within_the_bounds() -> None:
    """By Kolmogorov's distance; the law without bounds is another one."""
    model = ph.NormalRegression("y ~ x", lower=0, upper=TOP, unit=20)
    bound = model.bind(pd.DataFrame({"y": np.clip(Y, 2, 149), "x": X}))
    at = AtPoints({"beta": np.array([[1.2, 0.6]]), "sigma": np.array([1.5])})
    made = np.stack([
        bound.replicate(at, 0, np.random.default_rng(k))["y"].to_numpy(dtype=float)
        for k in range(100)
    ])  # fmt: skip
    low, high = model.ends
    assert made.min() >= low
    assert made.max() <= high
    law = stats.norm(20 * bound.design.X @ [1.2, 0.6], 20 * 1.5)
    share = (law.cdf(made) - law.cdf(low)) / (law.cdf(high) - law.cdf(low))
    assert stats.kstest(share.ravel(), "uniform").pvalue > 1e-6
    assert stats.kstest(law.cdf(made).ravel(), "uniform").pvalue < 1e-6


def test_bounds_leave_the_likelihood_as_it_is() -> None:
    table = pd.DataFrame({"y": np.clip(Y, 2, 149), "x": X})
    for make in (ph.Gamma, ph.LogNormal, ph.NormalRegression):
        both = make("y ~ x", lower=1, upper=TOP), make("y ~ x")
        data = [as_json(model.bind(table).stan_data(np.ones(N))) for model in both]
        assert data[0] == data[1]
    assert "lower" not in ph.LogNormal("y ~ x").describe()
    assert ph.LogNormal("y ~ x", upper=9.0).describe()["upper"] == 9.0


@pytest.mark.parametrize(("make", "says"), [
    (lambda: ph.Gamma("y ~ x", lower=3, upper=2), "lower must be below upper"),
    (lambda: ph.LogNormal("y ~ x", upper=0), "upper must be above 0"),
    (lambda: ph.LogNormal("y ~ x", transform="asinh"), "must be 'log'"),
    (lambda: ph.Gamma("y ~ x", unit=-1), "unit must be"),
    (lambda: ph.Gamma("y ~ x").bind(pd.DataFrame({"y": Y - 2, "x": X})), "above 0: row"),
    (lambda: ph.Gamma("y ~ x", upper=9).bind(pd.DataFrame({"y": Y, "x": X})),
        r"in \[-inf, 9\]"),
    (lambda: ph.LogNormal("y ~ x", lower=1, upper=9).bind(pd.DataFrame({"y": Y, "x": X})),
        r"in \[1, 9\]: row .* does not"),
])  # fmt: skip
def test_what_cannot_be_is_named(make: Any, says: str) -> None:
    refuses(says, make)
