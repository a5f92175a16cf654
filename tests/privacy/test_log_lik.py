"""The lazy log-likelihood against the whole matrix, whatever the blocks and shared rows."""

from __future__ import annotations

import numpy as np
import pytest

from pyhybrid.privacy.log_lik import LogLik

RNG = np.random.default_rng(5)
COLUMNS = RNG.normal(-2, 1, (7, 6))
ROW_OF = np.array([3, 0, 1, 1, 5, 2, 4, 3, 0])
ALPHA = np.array([1.0, 0.5, 0.0, 0.3, 1.0, 0.7, 0.0, 0.2, 0.5])
MATRIX = COLUMNS[:, ROW_OF]


@pytest.fixture(params=[[], [2], [1, 2, 5]])
def log_lik(request: pytest.FixtureRequest) -> LogLik:
    return LogLik(make=lambda: np.split(COLUMNS, request.param, axis=1), row_of=ROW_OF)


def test_reductions_are_those_of_the_matrix(log_lik: LogLik) -> None:
    assert (log_lik.n, log_lik.n_rows) == (9, 6)
    np.testing.assert_array_equal(log_lik.lowest, MATRIX.min(axis=0))
    np.testing.assert_array_equal(log_lik.highest, MATRIX.max(axis=0))
    np.testing.assert_allclose(log_lik.total(ALPHA), MATRIX @ ALPHA, rtol=1e-13)
    largest = np.abs(MATRIX * ALPHA).max(axis=1)
    np.testing.assert_array_equal(log_lik.largest_by_draw(ALPHA), largest)
    by_record = log_lik.by_record(lambda block: block.mean(axis=0))
    np.testing.assert_allclose(by_record, MATRIX.mean(axis=0), rtol=1e-13)


def test_clipped_total_is_that_of_the_matrix(log_lik: LogLik) -> None:
    reference = RNG.normal(-2, 0.5, 6)[ROW_OF]
    for center in (None, reference):
        moved = ALPHA * (MATRIX - (0 if center is None else center))
        expected = np.clip(moved, -0.4, 0.2).sum(axis=1)
        found = log_lik.clipped_total(ALPHA, 0.4, 0.2, center)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_some_of_the_draws(log_lik: LogLik) -> None:
    for draws in (np.array([5, 1, 1]), np.arange(7) > 3):
        np.testing.assert_array_equal(log_lik.at(draws).lowest, MATRIX[draws].min(axis=0))


def test_a_nan_is_unbounded_where_its_record_counts(log_lik: LogLik) -> None:
    columns = COLUMNS.copy()
    columns[4, 3] = np.nan
    broken = LogLik.of(columns)
    assert broken.largest_by_draw(np.ones(6))[4] == np.inf
    assert np.isfinite(broken.largest_by_draw(np.array([1.0, 1, 1, 0, 1, 1]))).all()
    assert np.isnan(broken.lowest[3])
