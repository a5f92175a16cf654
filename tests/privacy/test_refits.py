"""Refits without single records: against exact posteriors, and what predictors tell alone."""

import numpy as np
import pytest
from scipy.stats import norm

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy import refits
from pyhybrid.privacy.refits import MARGIN, LocalLoss, Refit, candidates
from tests.audits.enumeration import log_posterior
from tests.privacy.enumerated import LOG_LIK, databases, exact_delta
from tests.refusals import refuses


def test_the_loss_of_two_normals_on_paper() -> None:
    """N(mu, 1) and N(0, 1): T is mu theta, c is mu^2 / 2, the loss N(mu^2 / 2, mu^2)."""
    z = norm.ppf((np.arange(4000) + 0.5) / 4000)
    for mu in (0.1, 0.5, 2.0):
        found = ph.arrays.refit_of(mu * (z + mu), mu * z, delta=1e-6, record=7)
        assert found.record == 7
        assert found.loss == pytest.approx(mu**2 / 2 + 4.7534 * mu, rel=2e-3)
    shifted = ph.arrays.refit_of(3 + 0.5 * (z + 0.5), 3 + 0.5 * z)
    assert shifted.loss == pytest.approx(ph.arrays.refit_of(0.5 * (z + 0.5), 0.5 * z).loss)


def test_a_draw_that_nothing_allows_is_an_infinite_loss_and_no_change_is_none() -> None:
    assert ph.arrays.refit_of([-1.0, -3.0], [-2.0, -np.inf]).loss == np.inf
    assert ph.arrays.refit_of([2.0, 2.0], [2.0, 2.0]).loss == pytest.approx(0, abs=1e-9)
    refuses("change must have 2 draws or more", ph.arrays.refit_of, [1.0], [1.0, 2.0])
    refuses("none of them NaN", ph.arrays.refit_of, [1.0, 2.0], [np.nan, 2.0])


def test_the_ratio_of_evidences_is_that_of_the_sums() -> None:
    """All neighbors of databases of three counts on a grid, weights of 1: exact enumeration."""
    for database in [d for k, d in enumerate(databases()) if k % 97 == 0]:
        terms = LOG_LIK[:, database]
        whole = log_posterior(terms)
        for i in range(len(database)):
            rest = log_posterior(np.delete(terms, i, axis=1))
            change = terms[:, i]
            exact = change - (whole - rest)
            levels = (np.arange(20_000) + 0.5) / 20_000
            places = (np.searchsorted(np.cumsum(np.exp(p)), levels) for p in (whole, rest))
            at, without = (change[place.clip(max=len(change) - 1)] for place in places)
            found = refits._log_evidence_ratio(at, without)
            assert found == pytest.approx(exact.mean(), abs=0.01)


@pytest.mark.parametrize(("shift", "scale"), [(0.1, 1.0), (0.5, 1.0), (2.0, 1.0), (1.0, 0.8)])
def test_the_charge_covers_the_exact_delta_of_two_normals(shift: float, scale: float) -> None:
    """N(shift, scale^2) and N(0, 1). Control: the deviation of T alone, as of one covariance."""
    z = norm.ppf((np.arange(4000) + 0.5) / 4000)

    def change(theta: FloatArray) -> FloatArray:
        return norm.logpdf(theta, shift, scale) - norm.logpdf(theta) + 7.0

    there, gone = change(shift + scale * z), change(z)
    loss = LocalLoss(
        lipschitz=np.ones(1), ranges=np.zeros(1), deviations=np.zeros(1),
        refits=(ph.arrays.refit_of(there, gone, delta=1e-6),),
    )  # fmt: skip
    grid = np.linspace(-12, 12, 40_001)
    step = np.log(grid[1] - grid[0])
    log_p, log_q = norm.logpdf(grid, shift, scale) + step, norm.logpdf(grid) + step
    assert exact_delta(log_p, log_q, loss.change) <= 1e-6
    assert exact_delta(log_q, log_p, loss.change) <= 1e-6
    assert ph.epsilon_of_mu(loss.mu, 1e-6) == pytest.approx(loss.change, rel=1e-6)
    assert exact_delta(log_p, log_q, loss.change / 2) > 1e-6


def test_the_largest_of_own_terms_and_refits_counts() -> None:
    def loss(*made: Refit) -> LocalLoss:
        return LocalLoss(
            lipschitz=np.array([2.0, 3.0]), ranges=np.array([1.0, 0.5]),
            deviations=np.array([0.2, 0.1]), refits=made,
        )  # fmt: skip

    own = loss()
    assert (own.bound, own.change, own.loss_range, own.mu) == (3.0, 0.0, 1.0, 0.2)
    more = loss(Refit(record=0, loss=6.4))
    assert (more.bound, more.change, more.loss_range) == (3.0, MARGIN * 6.4, MARGIN * 6.4)
    assert more.mu == ph.arrays.mu_of_epsilon(MARGIN * 6.4, 1e-6)
    less = loss(Refit(record=0, loss=0.4))
    assert (less.loss_range, less.mu) == (1.0, 0.2)
    assert loss(Refit(record=0, loss=np.inf)).mu == np.inf


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
    levels[:1, 0], levels[1:7, 1] = 1, 1
    return np.column_stack([np.ones(n), rng.normal(size=n), levels])


def test_a_level_that_one_record_has_is_found() -> None:
    (found,) = ph.arrays.sole_informants(_design())
    assert (found.record, found.column) == (0, 2)
    assert found.share == pytest.approx(1)
    assert ph.arrays.sole_informants(_design()[1:, [0, 1, 3]]) == []  # six share the other


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
    """Six records of one person share a level that nobody else has."""
    X = _design()
    unit = np.arange(60)
    unit[1:7] = 1
    assert {each.record for each in ph.arrays.sole_informants(X, unit)} == {0, 1}
    even = np.repeat(np.arange(30), 2)
    share = [each.share for each in ph.arrays.sole_informants(X, even)]
    assert all(a > 0.3 for a in share)
