"""Refits without single records: against exact posteriors, and what predictors tell alone."""

import numpy as np
import pytest
from scipy.stats import norm

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.refits import MARGIN, LocalLoss, Refit, candidates
from tests.privacy.enumerated import LOG_LIK, databases, exact_delta, log_posterior
from tests.refusals import refuses


def test_range_and_deviation_are_those_of_both_posteriors() -> None:
    found = ph.arrays.refit_of([-1.0, -3.0, -2.0], [-2.0, -6.0], record=7)
    assert (found.record, found.loss_range) == (7, 5.0)
    assert found.deviation == pytest.approx(8**0.5)
    unbounded = ph.arrays.refit_of([-1.0, -3.0], [-2.0, -np.inf])
    assert unbounded.loss_range == unbounded.deviation == np.inf
    refuses("change must have 2 draws or more", ph.arrays.refit_of, [1.0], [1.0, 2.0])
    refuses("none of them NaN", ph.arrays.refit_of, [1.0, 2.0], [np.nan, 2.0])


def test_no_loss_of_a_draw_exceeds_the_range() -> None:
    """All neighbors of databases of three counts on a grid, weights of 1: exact enumeration."""
    for database in [d for k, d in enumerate(databases()) if k % 97 == 0]:
        terms = LOG_LIK[:, database]
        whole = log_posterior(terms)
        for i in range(len(database)):
            change = terms[:, i]
            loss = whole - log_posterior(np.delete(terms, i, axis=1))
            refit = ph.arrays.refit_of(change, change)
            assert np.abs(loss).max() <= refit.loss_range + 1e-9


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_mu_covers_the_exact_delta_of_two_normals(mu: float) -> None:
    """Posteriors N(mu, 1) and N(0, 1): T is mu theta. Control: a half of its deviation does not."""
    z = norm.ppf((np.arange(4000) + 0.5) / 4000)
    loss = LocalLoss(
        lipschitz=np.ones(1), ranges=np.zeros(1), deviations=np.zeros(1),
        refits=(ph.arrays.refit_of(mu * (z + mu), mu * z),),
    )  # fmt: skip
    assert loss.mu == pytest.approx(MARGIN * mu, rel=1e-2)
    grid = np.linspace(-10, 12, 20_001)
    step = np.log(grid[1] - grid[0])
    log_p, log_q = norm.logpdf(grid, mu) + step, norm.logpdf(grid) + step
    for multiple in (1, 2, 3):
        exact = exact_delta(log_p, log_q, multiple * mu)
        assert ph.arrays.delta_of_mu(loss.mu, multiple * mu) >= exact
        assert ph.arrays.delta_of_mu(loss.mu / 2, multiple * mu) < exact


def test_the_largest_of_own_terms_and_refits_counts() -> None:
    def loss(*refits: Refit) -> LocalLoss:
        return LocalLoss(
            lipschitz=np.array([2.0, 3.0]), ranges=np.array([1.0, 0.5]),
            deviations=np.array([0.2, 0.1]), refits=refits,
        )  # fmt: skip

    own = loss()
    assert (own.bound, own.change, own.loss_range, own.mu) == (3.0, 0.0, 1.0, 0.2)
    more = loss(Refit(record=0, loss_range=8.0, deviation=0.4))
    assert (more.bound, more.change, more.loss_range, more.mu) == (3.0, 8.0, 8.0, 0.5)
    less = loss(Refit(record=0, loss_range=0.5, deviation=0.1))
    assert (less.loss_range, less.mu) == (1.0, 0.2)


def test_candidates_are_of_both_orders_and_not_alike() -> None:
    own = np.array([5.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    told = np.array([1.0, 1.0, 2.0, 9.0, 8.0, 7.0])
    assert candidates(own, told, 4) == [0, 2, 3, 4]  # 1 is like 0
    assert candidates(own, told, 0) == []
    assert sorted(candidates(own, told, 20)) == [0, 2, 3, 4, 5]
    assert candidates(own, own, 4) == [0, 2]


def _design(n: int = 60) -> FloatArray:
    rng = np.random.default_rng(1)
    levels = np.zeros((n, 2))
    levels[:1, 0], levels[1:4, 1] = 1, 1
    return np.column_stack([np.ones(n), rng.normal(size=n), levels])


def test_a_level_that_one_record_has_is_found() -> None:
    (found,) = ph.arrays.sole_informants(_design())
    assert (found.record, found.column) == (0, 2)
    assert found.share == pytest.approx(1)
    assert ph.arrays.sole_informants(_design()[1:, [0, 1, 3]]) == []  # three share the other


def test_shares_are_leverages_whatever_the_scale_and_rank() -> None:
    X = _design()
    X[5, 1] = 1e6
    leverage = np.einsum("ij,jk,ik->i", X, np.linalg.pinv(X.T @ X, rcond=1e-30), X)
    found = {each.record: each.share for each in ph.arrays.sole_informants(X)}
    assert found == pytest.approx({0: leverage[0], 5: leverage[5]}, rel=1e-6)
    twice = np.column_stack([X * 1e-8, X])
    assert [each.record for each in ph.arrays.sole_informants(twice)] == [0, 5]
    assert ph.arrays.sole_informants(np.empty((4, 0))) == []


def test_a_unit_is_all_of_its_records() -> None:
    """Three records of one person share a level that nobody else has."""
    X = _design()
    unit = np.arange(60)
    unit[1:4] = 1
    assert {each.record for each in ph.arrays.sole_informants(X, unit)} == {0, 1}
    even = np.repeat(np.arange(30), 2)
    share = [each.share for each in ph.arrays.sole_informants(X, even)]
    assert all(a > 0.5 for a in share)
