"""Three accounts of one fit: against the array functions on all records, and by enumeration."""

import numpy as np
import pytest

from pyhybrid.privacy import local_account as module
from pyhybrid.privacy.bounds import loss_ranges
from pyhybrid.privacy.count_risk import count_without
from pyhybrid.privacy.gaussian_limit import gaussian_limit
from pyhybrid.privacy.local_account import LocalAccount, columns_of, local_account
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weight_sensitivity import lipschitz_without, recomputed_terms


def normal_terms(n: int, n_draws: int, seed: int) -> np.ndarray:
    """Terms of a normal mean: nearly linear in one parameter, as in the limit."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 1 / np.sqrt(400), n_draws)
    x = rng.normal(0, 1, n)
    return -0.5 * (x - theta[:, None]) ** 2


def account(matrix: np.ndarray, alpha: np.ndarray, **options: object) -> LocalAccount:
    options = {"chains": 4, **options}
    return local_account(LogLik.of(matrix), alpha, n_draws=len(matrix), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(5))
def test_of_few_records_it_is_the_array_functions(seed: int) -> None:
    matrix = normal_terms(60, 2000, seed)
    alpha = np.random.default_rng(seed).uniform(0, 1, 60)
    found = account(matrix, alpha)
    limit = gaussian_limit(matrix, alpha, chains=4)
    np.testing.assert_allclose(found.loss_ranges, loss_ranges(matrix, alpha).by_record)
    assert found.mu == pytest.approx(limit.overall)
    assert found.mu_standard_error == pytest.approx(limit.mu.standard_error)
    assert found.limit_holds >= limit.reliable
    assert 0 < found.mu < found.loss_range


@pytest.mark.parametrize("seed", range(3))
def test_examining_some_of_many_records_finds_the_largest(seed: int) -> None:
    matrix = normal_terms(900, 800, seed)
    found = account(matrix, np.ones(900))
    assert found.mu == pytest.approx(gaussian_limit(matrix, chains=4).overall, rel=1e-9)
    assert (found.mu_by_record <= found.mu).all()


def test_a_record_of_weight_zero_tells_nothing_also_where_it_is_unbounded() -> None:
    matrix = normal_terms(20, 400, 3)
    matrix[7, 4] = -np.inf
    alpha = np.ones(20)
    unbounded = account(matrix, alpha)
    assert unbounded.loss_range == unbounded.mu == np.inf
    assert not unbounded.limit_holds
    alpha[4] = 0
    without = account(matrix, alpha)
    assert np.isfinite([without.loss_range, without.mu]).all()
    assert without.loss_ranges[4] == without.mu_by_record[4] == 0


@pytest.mark.parametrize("seed", range(5))
def test_small_curved_terms_beside_a_larger_one_do_no_harm(seed: int) -> None:
    """Loss of a curved term at the depth of delta against what mu allows; both by enumeration."""
    z = np.random.default_rng(seed).standard_normal(4000)
    straight = 0.3 * z
    small, large = (size * (0.02 * z + 0.02 * (z**2 - 1)) for size in (1.0, 10.0))
    far = np.linspace(-5, 5, 2001)

    def deep(size: float) -> float:
        return float(np.abs(size * (0.02 * far + 0.02 * (far**2 - 1))).max())

    beside = account(np.column_stack([straight, small]), np.ones(2))
    assert beside.limit_holds
    assert deep(1.0) < 5 * beside.mu
    heavy = account(np.column_stack([straight, large]), np.ones(2))
    assert not heavy.limit_holds, "the control: its tail is heavier than what is charged"
    assert deep(10.0) > 5 * 0.3
    assert not account(small[:, None], np.ones(1)).limit_holds


@pytest.mark.parametrize("n", [30, 700])
def test_recounting_in_slices_and_watching_some_finds_the_largest(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts recounted a few draws at a time; softmax, where every record moves all others."""
    matrix = normal_terms(n, 200, 4)
    matrix *= 1 + 5 * np.random.default_rng(1).random(n) ** 4
    y = np.random.default_rng(2).poisson(6, n).astype(float)
    counted = count_without(y, radius=0.3)
    terms = recomputed_terms(matrix, counted)
    monkeypatch.setattr(module, "_RECOUNTED", 17 * n)
    found = account(matrix, counted.alpha, without=counted)
    np.testing.assert_allclose(found.loss_ranges, np.ptp(terms, axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_less(terms.std(axis=0), found.mu_by_record * (1 + 1e-9))
    moving = lipschitz_without(matrix, transform="softmax")
    every = recomputed_terms(matrix, moving)
    soft = account(matrix, moving.alpha, without=moving)
    assert soft.loss_range == pytest.approx(np.ptp(every, axis=0).max())
    assert soft.mu >= every.std(axis=0).max()


def test_weights_that_move_are_charged() -> None:
    """The record that alone holds the largest risk moves all other weights when it leaves."""
    matrix = normal_terms(200, 1000, 1)
    matrix[:, 0] = 8 * matrix[:, 0] - 30
    moving = lipschitz_without(matrix)
    held = account(matrix, moving.alpha)
    charged = account(matrix, moving.alpha, without=moving)
    terms = recomputed_terms(matrix, moving)
    assert charged.loss_ranges[0] == pytest.approx(np.ptp(terms[:, 0]))
    assert charged.mu >= gaussian_limit(terms, chains=4).overall * (1 - 1e-9)
    # The control: weights held fixed say that this record, of weight 0, tells nothing.
    assert held.loss_ranges[0] == 0 < charged.loss_ranges[0]
    assert charged.draws_recounted == 1000


def test_too_few_draws_say_nothing_of_a_limit() -> None:
    found = account(normal_terms(5, 12, 1), np.ones(5))
    assert (found.mu, found.limit_holds) == (np.inf, False)
    assert np.isfinite(found.loss_range)


def test_columns_of_shared_rows() -> None:
    columns, row_of = np.arange(12.0).reshape(2, 6), np.array([5, 0, 3, 3, 1])
    log_lik = LogLik(make=lambda: np.split(columns, [2, 5], axis=1), row_of=row_of)
    chosen = np.array([0, 2, 3, 4])
    np.testing.assert_array_equal(columns_of(log_lik, chosen), columns[:, row_of[chosen]])
