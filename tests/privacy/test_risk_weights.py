"""Weights from what a record tells: against numpy."""

import numpy as np

import pyhybrid as ph


def test_a_large_term_that_does_not_move_keeps_its_weight() -> None:
    """A density of a constant, whose size is a matter of the unit, tells nothing."""
    log_lik = np.column_stack([np.full(100, -50.0), np.linspace(-2, -1, 100)])
    assert ph.lipschitz_weights(log_lik, risk="size")[0] == 0
    for risk in ("range", "deviation"):
        np.testing.assert_array_equal(ph.lipschitz_weights(log_lik, risk=risk), [1, 0])


def test_unbounded_records_get_weight_0() -> None:
    log_lik = np.random.default_rng(3).normal(-3, 1, (50, 3))
    log_lik[4, 1] = -np.inf
    for risk in ("range", "deviation"):
        for q in (1.0, 0.5):
            weights = ph.lipschitz_weights(
                log_lik, risk=risk, draw_quantile=q, scale=0.5, shift=0.5
            )
            assert weights[1] == 0
            assert (weights[[0, 2]] > 0).all()
    single = ph.lipschitz_weights([[-1.0, -np.inf, -3.0]], risk="deviation")
    np.testing.assert_array_equal(single, [1, 0, 1])
