"""Loss ranges: against enumeration, the papers' bound, and what must stay infinite."""

from __future__ import annotations

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.log_lik import LogLik
from tests.privacy.enumerated import LOG_LIK, databases, log_posterior, removals


@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_no_loss_of_an_enumerated_posterior_exceeds_the_range(alpha: float) -> None:
    closest = 0.0
    for database in databases():
        terms = LOG_LIK[:, database]
        ranges = ph.loss_ranges(terms, np.full(3, alpha)).by_record
        bounds = ph.lipschitz_bounds(terms, np.full(3, alpha)).by_record
        assert (ranges <= 2 * bounds).all()
        whole = log_posterior(alpha * terms)
        for i, _ in removals(database):
            loss = np.abs(whole - log_posterior(alpha * np.delete(terms, i, axis=1))).max()
            assert loss <= ranges[i] * (1 + 1e-12)
            closest = max(closest, loss / ranges[i])
    assert closest > 0.9  # and it is no loose bound


def test_a_range_of_the_released_draw_only_is_caught() -> None:
    """Control: one draw has no range, and the loss of it is not 0."""
    terms = LOG_LIK[:, (0, 3, 15)]
    loss = log_posterior(terms) - log_posterior(terms[:, :2])
    assert ph.loss_ranges(terms[:1]).overall == 0 < np.abs(loss[0])


def test_a_constant_cancels_and_weights_scale() -> None:
    rng = np.random.default_rng(1)
    log_lik, alpha = rng.normal(-5, 1, (50, 6)), rng.random(6)
    ranges = ph.loss_ranges(log_lik, alpha)
    moved = ph.loss_ranges(log_lik + 1000 * rng.normal(size=6), alpha)
    np.testing.assert_allclose(ranges.by_record, moved.by_record, rtol=1e-11)
    np.testing.assert_allclose(ranges.by_record, alpha * np.ptp(log_lik, axis=0))
    assert ranges.overall == ranges.by_record.max()
    assert ranges.kept_draws.all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("draw_quantile", [1.0, 0.9])
def test_what_is_not_finite_is_unbounded(value: float, draw_quantile: float) -> None:
    log_lik = np.random.default_rng(2).normal(size=(40, 3))
    log_lik[7, 1] = value
    ranges = ph.loss_ranges(log_lik, [1.0, 0.1, 1.0], draw_quantile=draw_quantile)
    assert np.isfinite(ranges.by_record).tolist() == [True, False, True]
    assert ranges.overall == np.inf
    zero = ph.loss_ranges(log_lik, [1.0, 0.0, 1.0], draw_quantile=draw_quantile)
    assert zero.by_record[1] == 0
    assert np.isfinite(zero.overall)


def test_float32_is_never_below_the_values_before_rounding() -> None:
    exact = np.random.default_rng(3).normal(-100, 5, (30, 200))
    single = ph.loss_ranges(exact.astype(np.float32)).by_record
    double = ph.loss_ranges(exact).by_record
    assert (single >= double).all()
    np.testing.assert_allclose(single, double, rtol=1e-5)
    nearest = np.ptp(exact.astype(np.float32).astype(float), axis=0)
    assert (nearest < double).any()  # control: without the rise some would be below


def test_dropped_draws_are_the_farthest() -> None:
    log_lik = np.random.default_rng(4).normal(size=(101, 4))
    log_lik[17, 2] = 50.0
    ranges = ph.loss_ranges(log_lik, draw_quantile=0.99)
    assert np.flatnonzero(~ranges.kept_draws).tolist() == [17]
    assert ranges.overall < 10


@pytest.mark.parametrize("draw_quantile", [1.0, 0.9])
def test_streamed_rows_give_the_same(draw_quantile: float) -> None:
    rng = np.random.default_rng(5)
    rows, row_of, alpha = rng.normal(size=(60, 9)), rng.integers(0, 9, 30), rng.random(30)
    row_of[0] = 8
    lazy = LogLik(make=lambda: np.array_split(rows, [2, 3, 7], axis=1), row_of=row_of)
    streamed = ph.loss_ranges(lazy, alpha, draw_quantile=draw_quantile)
    whole = ph.loss_ranges(rows[:, row_of], alpha, draw_quantile=draw_quantile)
    np.testing.assert_array_equal(streamed.by_record, whole.by_record)
    np.testing.assert_array_equal(streamed.kept_draws, whole.kept_draws)
    assert streamed.overall == whole.overall


def test_rows_that_no_block_has_are_refused() -> None:
    with pytest.raises(InvalidInput, match="row_of must name columns of the blocks, 0 to 1"):
        ph.loss_ranges(LogLik(make=lambda: [np.zeros((4, 2))], row_of=np.array([0, 2])), np.ones(2))
