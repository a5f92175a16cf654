"""The lazy log-likelihood against the whole matrix, whatever the blocks and shared rows. Terms of
units: the sum written out, and a bound by row as the control.
"""

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.privacy.log_lik import LogLik, Units, unit_terms

RNG = np.random.default_rng(5)
COLUMNS = RNG.normal(-2, 1, (7, 6))
ROW_OF = np.array([3, 0, 1, 1, 5, 2, 4, 3, 0])
ALPHA = np.array([1.0, 0.5, 0.0, 0.3, 1.0, 0.7, 0.0, 0.2, 0.5])
MATRIX = COLUMNS[:, ROW_OF]


@pytest.fixture(params=[[], [2], [1, 2, 5]])
def log_lik(request: pytest.FixtureRequest) -> LogLik:
    return LogLik(make=lambda: np.split(COLUMNS, request.param, axis=1), row_of=ROW_OF)


def _lowest(log_lik: LogLik) -> np.ndarray:
    return log_lik.by_record(lambda block: block.min(axis=0))


def test_reductions_are_those_of_the_matrix(log_lik: LogLik) -> None:
    assert (log_lik.n, log_lik.n_rows) == (9, 6)
    np.testing.assert_allclose(log_lik.total(ALPHA), MATRIX @ ALPHA, rtol=1e-13)
    largest = np.abs(MATRIX * ALPHA).max(axis=1)
    np.testing.assert_array_equal(log_lik.largest_by_draw(ALPHA), largest)
    np.testing.assert_array_equal(_lowest(log_lik), MATRIX.min(axis=0))


def test_clipped_total_is_that_of_the_matrix(log_lik: LogLik) -> None:
    reference = RNG.normal(-2, 0.5, 6)[ROW_OF]
    for center in (None, reference):
        moved = ALPHA * (MATRIX - (0 if center is None else center))
        expected = np.clip(moved, -0.4, 0.2).sum(axis=1)
        found = log_lik.clipped_total(ALPHA, 0.4, 0.2, center)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_some_of_the_draws(log_lik: LogLik) -> None:
    for draws in (np.array([5, 1, 1]), np.arange(7) > 3):
        np.testing.assert_array_equal(_lowest(log_lik.at(draws)), MATRIX[draws].min(axis=0))


def test_a_nan_is_unbounded_where_its_record_counts(log_lik: LogLik) -> None:
    columns = COLUMNS.copy()
    columns[4, 3] = np.nan
    broken = LogLik.of(columns)
    assert broken.largest_by_draw(np.ones(6))[4] == np.inf
    assert np.isfinite(broken.largest_by_draw(np.array([1.0, 1, 1, 0, 1, 1]))).all()
    assert np.isnan(_lowest(broken)[3])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [12, 5, 1])
def test_terms_of_units_are_the_sums_of_their_records(seed: int, width: int) -> None:
    """Brute force; the control: by row, a unit is understated."""
    rng = np.random.default_rng(seed)
    rows, alpha = rng.normal(-2, 1.5, (30, 12)), rng.uniform(0, 1, 40)
    alpha[rng.integers(0, 40, 5)] = 0
    unit = np.append(np.arange(9), rng.integers(0, 9, 31))
    row_of = np.append(np.arange(12), rng.integers(0, 12, 28))
    expected = np.zeros((30, 9))
    for i in range(40):
        expected[:, unit[i]] += alpha[i] * rows[:, row_of[i]]
    blocks = [rows[:, k : k + width] for k in range(0, 12, width)]
    found = unit_terms(LogLik(make=lambda: blocks, row_of=row_of), alpha, unit)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    by_row = ph.lipschitz_bounds(rows[:, row_of], alpha).overall
    assert by_row < 0.7 * ph.lipschitz_bounds(found).overall


def test_unbounded_terms_count_only_where_weights_are_positive() -> None:
    whole = LogLik.of(np.array([[-1.0, -np.inf, np.inf], [-2.0, -3.0, -1.0]]))
    for alpha, expected in (([1, 1, 0.0], [np.inf, 0]), ([1, 0.0, 0.0], [2, 0])):
        found = unit_terms(whole, np.array(alpha, dtype=float), np.array([0, 0, 1]))
        assert ph.lipschitz_bounds(found).by_record.tolist() == expected
    with np.errstate(invalid="ignore"):
        both = unit_terms(whole, np.ones(3), np.zeros(3, dtype=int))
    assert np.isinf(ph.lipschitz_bounds(both).overall), "inf - inf is no bound"


def test_values_of_units_are_the_lowest() -> None:
    units = Units(column="person", of=np.array([0, 0, 0, 1, 2]))
    assert units.lowest(np.array([3.0, 2, 9, 7, 1])).tolist() == [2, 2, 2, 7, 1]
