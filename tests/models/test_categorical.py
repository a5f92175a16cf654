"""Outcomes with any number of levels: likelihood, target, replicates, posterior, levels, dtypes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from tests.models.targets import draws_of

N = 240
RNG = np.random.default_rng(11)
X = RNG.normal(size=N).round(1)
BETA = np.array([[0.4, -0.3], [0.8, -0.5]])  # (K, C - 1)
NAMES = np.array(["bus", "car", "walk"])
PLACES = (
    np.column_stack([np.zeros(N), np.column_stack([np.ones(N), X]) @ BETA])
    + RNG.gumbel(size=(N, 3))
).argmax(axis=1)


def _table(y: Any = None) -> pd.DataFrame:
    return pd.DataFrame({"y": NAMES[PLACES] if y is None else y, "x": X})


@pytest.mark.samples
def test_blocks_of_the_log_likelihood_keep_rows_of_the_same_predictors_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound = ph.Categorical("y ~ x").bind(_table())
    draws = draws_of(bound, draws=4, warmup=1)
    whole = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)
    for room in ("levels", "regression"):
        monkeypatch.setattr(f"pyhybrid.models.families.{room}.BLOCK_ELEMENTS", 8 * 3 * 2)
    blocks = list(bound.log_lik_blocks(draws))
    assert len(blocks) > 10
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), whole, rtol=1e-10)
    by_record = bound.model.log_lik({"beta": draws.flat("beta")}, bound.design.y, bound.design.X, 0)
    np.testing.assert_allclose(by_record, whole[:, bound.row_of], rtol=1e-10)
    made = bound.replicate(draws, 0, np.random.default_rng(1))
    monkeypatch.undo()
    pd.testing.assert_frame_equal(bound.replicate(draws, 0, np.random.default_rng(1)), made)


def _log_prior(beta: Any) -> Any:
    """Of contrasts of three levels with independent coefficients, by scipy."""
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    return sum(
        stats.multivariate_normal.logpdf(beta[:, k], cov=covariance * scale**2)
        for k, scale in enumerate((10.0, 2.5))
    )


NO_HINTS = {
    "center_beta": np.zeros((2, 2)), "spread_beta": np.ones((2, 2)),
    "column_basis": np.eye(2), "level_basis": np.eye(2),
}  # fmt: skip


@pytest.mark.parametrize("hints", ["the data's", "none"])
def test_the_target_is_the_documented_posterior(hints: str) -> None:
    bound = ph.Categorical("y ~ x").bind(_table())
    alpha = np.linspace(0.2, 1, N)
    data = bound.stan_data(alpha)
    if hints == "none":
        data |= NO_HINTS
    at = ProgramAtPoints(bound.program, data)
    points = np.random.default_rng(3).normal(size=(6, 4))
    beta = at.quantities(points)["beta"]
    f = bound.model.log_lik({"beta": beta}, bound.design.y, bound.design.X, 0)
    expected = (alpha * f).sum(axis=1) + _log_prior(beta)
    apart = at.log_density(points) - expected
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)
    assert np.ptp(apart + 0.1 * _log_prior(beta)) > 0.01, "control"


def test_the_order_of_the_levels_does_not_move_the_posterior() -> None:
    """Densities at the same probabilities, whichever level is the first."""
    found = []
    for levels in (("bus", "car", "walk"), ("walk", "bus", "car")):
        bound = ph.Categorical("y ~ x", levels=levels).bind(_table())
        data = bound.stan_data(np.ones(N)) | NO_HINTS
        full = np.random.default_rng(4).normal(size=(5, 2, 3))[..., np.argsort(levels)]
        own = np.empty_like(full)
        own[..., np.argsort(levels)] = np.random.default_rng(4).normal(size=(5, 2, 3))
        beta = own[..., 1:] - own[..., :1]
        points = beta.transpose(0, 2, 1).reshape(5, 4)  # Stan's matrices are by columns
        found.append(ProgramAtPoints(bound.program, data).log_density(points))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)


def test_a_declared_level_that_no_category_has_can_be_released() -> None:
    table = _table(pd.Series(NAMES[PLACES]).astype("category"))
    bound = ph.Categorical("y ~ x", levels=(*NAMES, "nowhere")).bind(table)
    made = bound.released(np.full(N, float(len(NAMES))), table["y"])
    assert set(made) == {"nowhere"}
    assert list(made.cat.categories) == [*NAMES, "nowhere"]
