"""Lipschitz weights by what a record tells: the map of the unweighted draws, stated."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.fitting.session import FitSession
from tests.fits import fit_options, session_fixture

pytestmark = pytest.mark.samples
OPTIONS = fit_options(chains=4, warmup=300, draws=300, seed=3)
MODEL = ph.Poisson("y ~ 1")
RISKS = {
    "size": lambda log_lik: np.abs(log_lik).max(axis=0),
    "range": lambda log_lik: np.ptp(log_lik, axis=0),
    "deviation": lambda log_lik: log_lik.std(axis=0, ddof=1),
}


def _counts() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    y = np.append(rng.poisson(5, 79), 21)  # one record that stands out
    return pd.DataFrame({"y": y})


session = session_fixture(lambda: MODEL.bind(_counts()), **OPTIONS)


def _log_lik(session: FitSession) -> np.ndarray:
    """Of the unweighted draws, by scipy, shape (S, n)."""
    beta = session.unweighted().draws.flat("beta").reshape(-1, 1)
    return np.asarray(stats.poisson.logpmf(_counts()["y"].to_numpy(), np.exp(beta)))


@pytest.mark.parametrize("risk", RISKS)
def test_weights_are_the_map_of_the_unweighted_draws(risk: str, session: FitSession) -> None:
    mechanism = ph.LipschitzWeighted(MODEL, risk=risk, scale=0.8, shift=-0.05)
    log_lik = _log_lik(session)
    f = RISKS[risk](log_lik)
    expected = (0.8 * (1 - (f - f.min()) / (f.max() - f.min())) - 0.05).clip(0, 1)
    fit = mechanism.fit(session).fit
    again = ph.lipschitz_weights(log_lik, risk=risk, scale=0.8, shift=-0.05)
    for weights in (expected, again):
        np.testing.assert_allclose(fit.alpha, weights, rtol=1e-9, atol=1e-12)
    assert fit.alpha[-1] == 0
    other = "size" if risk != "size" else "range"
    control = ph.LipschitzWeighted(MODEL, risk=other, scale=0.8, shift=-0.05)
    assert np.abs(control.fit(session).fit.alpha - fit.alpha).max() > 0.01, "by another risk"


def test_settings_name_the_risk_where_it_is_not_the_papers() -> None:
    assert "risk" not in ph.LipschitzWeighted(MODEL).describe()
    assert ph.LipschitzWeighted(MODEL, risk="range").describe()["risk"] == "range"
    with pytest.raises(ph.InvalidInput, match="risk must be one of size, range, deviation"):
        ph.LipschitzWeighted(MODEL, risk="mean")
