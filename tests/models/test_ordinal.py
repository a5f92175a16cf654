"""Outcomes with ordered levels: the prior and sampling of many; the rest is in test_leveled.py."""

import numpy as np
import pandas as pd
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints

N = 240
RNG = np.random.default_rng(11)
X = RNG.normal(size=N).round(1)
THRESHOLD, SLOPE = np.array([-1.0, 0.3, 1.5]), 0.8
PLACES = np.searchsorted(THRESHOLD, SLOPE * X + RNG.logistic(size=N))
NAMES = np.array(["never", "rarely", "often", "always"])
TABLE = pd.DataFrame({"y": pd.Categorical(NAMES[PLACES], NAMES, ordered=True), "x": X})


def test_the_target_has_the_documented_prior() -> None:
    """At weights of 0: log density less that of normals, Jacobian of the coordinates included."""
    bound = ph.Ordinal("y ~ x").bind(TABLE)
    data = bound.stan_data(np.zeros(N))
    at = ProgramAtPoints(bound.program, data)
    points = np.random.default_rng(3).normal(size=(6, 4))
    values = at.quantities(points)
    threshold, slope = values["threshold"], values["beta"][:, 1]
    np.testing.assert_allclose(values["beta"][:, 0], -threshold[:, 0])
    expected = stats.norm.logpdf(threshold, scale=10).sum(axis=1)
    expected += stats.norm.logpdf(slope, scale=2.5)
    steps = 1e-5 * np.eye(4)
    jacobian = []
    for point in points:
        moved = at.quantities(np.vstack([point + steps, point - steps]))
        rows = np.column_stack([moved["threshold"], moved["beta"][:, 1]])
        jacobian.append(np.linalg.slogdet((rows[:4] - rows[4:]) / 2e-5)[1])
    apart = at.log_density(points) - expected - jacobian
    np.testing.assert_allclose(apart, apart[0], atol=2e-5)
    assert np.ptp(apart + 0.1 * threshold[:, 0]) > 0.01, "control"
