"""Leave-one-out loss: against enumeration, and where it cannot be told."""

import numpy as np
import pytest

import pyhybrid as ph
from tests.audits.enumeration import log_posterior
from tests.privacy.enumerated import LOG_LIK


def test_a_posterior_that_is_enumerated() -> None:
    database = (2, 3, 5, 4, 3, 2, 6, 3, 4, 5, 12)
    terms = LOG_LIK[:, database]
    whole = log_posterior(terms)
    rng = np.random.default_rng(1)
    points = rng.choice(whole.size, size=20_000, p=np.exp(whole))
    loss = ph.leave_one_out_loss(terms[points])
    seen = np.unique(points)
    for i in range(len(database)):
        exact = np.abs(whole - log_posterior(np.delete(terms, i, axis=1)))
        assert loss.by_record[i] == pytest.approx(exact[seen].max(), rel=0.1)
    assert loss.by_draw.shape == (20_000,)
    assert loss.by_draw.max() == pytest.approx(loss.by_record.max())
    assert np.argmax(loss.by_record) == database.index(12)


def test_no_loss_exceeds_the_range() -> None:
    log_lik = np.random.default_rng(4).normal(0, 3, (500, 8))
    alpha = np.linspace(0, 1, 8)
    loss = ph.leave_one_out_loss(log_lik, alpha)
    assert (loss.by_record <= ph.loss_ranges(log_lik, alpha).by_record + 1e-12).all()
    assert (loss.by_record[0], loss.pareto_k[0]) == (0, -np.inf)


def test_heavy_tails_and_few_draws_are_unreliable() -> None:
    rng = np.random.default_rng(5)
    heavy = -np.log(rng.pareto(0.8, (4000, 1)) + 1)  # exp(-g) has no mean
    assert ph.leave_one_out_loss(heavy).pareto_k.max() > 0.7
    few = ph.leave_one_out_loss([[-1.0, -3.0], [-2.0, -3.0]])
    np.testing.assert_allclose(few.by_record, [np.log((1 + np.e) / 2), 0])
    assert few.pareto_k.tolist() == [np.inf, -np.inf]
    assert ph.leave_one_out_loss(rng.normal(size=(4000, 1))).pareto_k.max() < 0.7


def test_what_is_not_finite_is_unbounded_but_at_weight_0() -> None:
    rows = np.random.default_rng(6).normal(size=(200, 3))
    rows[3, 1] = -np.inf
    assert np.isinf(ph.leave_one_out_loss(rows).by_record).tolist() == [False, True, False]
    assert np.isfinite(ph.leave_one_out_loss(rows, [1, 0, 1]).by_draw).all()
