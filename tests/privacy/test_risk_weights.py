"""Weights from what a record tells: against numpy, and what they leave of a budget."""

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput


def test_risks_are_those_of_ranges_and_deviations() -> None:
    log_lik = np.random.default_rng(2).normal(-4, [0.1, 1, 3, 0.5], (500, 4))
    for risk, f in {
        "size": np.abs(log_lik).max(axis=0),
        "range": ph.loss_ranges(log_lik).by_record,
        "deviation": log_lik.std(axis=0, ddof=1),
    }.items():
        found = ph.lipschitz_weights(log_lik, risk=risk)
        np.testing.assert_allclose(found, 1 - (f - f.min()) / (f.max() - f.min()), rtol=1e-12)
    default = ph.lipschitz_weights(log_lik)
    np.testing.assert_array_equal(default, ph.lipschitz_weights(log_lik, risk="size"))


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
    with pytest.raises(InvalidInput, match="risk must be one of size, range, deviation"):
        ph.lipschitz_weights(log_lik, risk="mean")


@pytest.mark.parametrize(("p", "share"), [(1, 0.7), (3, 0.7 * 3**-0.5), (8, 0.175)])
def test_budget_weights_hold_each_record_to_its_share_of_mu(p: int, share: float) -> None:
    """Those that tell less have the public weight, which has no place for what they tell."""
    s = np.append(np.linspace(0.01, 4, 4000), [np.inf, 0.0])
    alpha = ph.arrays.budget_weights(s, mu=0.5, n_parameters=p)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(alpha, np.minimum(alpha[-1], share * 0.5 / s), rtol=1e-12)
    assert 0.1 < (alpha < alpha[-1]).mean() < 0.99
    other = ph.arrays.budget_weights(s[::-1] / 2, mu=0.5, n_parameters=p)
    assert other[0] == alpha[-1]
