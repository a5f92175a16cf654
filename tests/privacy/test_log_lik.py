"""The lazy log-likelihood against the whole matrix, whatever the blocks and shared rows. Bounds by
unit: the sum written out, memory in slices, and a bound by row as the control.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.privacy.bounds import bounds_by_unit
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


Array = np.ndarray


def _case(seed: int) -> tuple[Array, Array, Array, Array]:
    """Log-likelihoods (S, d) of distinct rows, weights, rows and units of 40 records."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(-2, 1.5, (30, 12))
    alpha = rng.uniform(0, 1, 40)
    alpha[rng.integers(0, 40, 5)] = 0
    unit = np.append(np.arange(9), rng.integers(0, 9, 31))
    return rows, alpha, np.append(np.arange(12), rng.integers(0, 12, 28)), unit


def _sliced(rows: Array, row_of: Array, size: int, width: int) -> Iterator[LogLik]:
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        blocks = [part[:, k : k + width] for k in range(0, part.shape[1], width)]
        yield LogLik(make=lambda blocks=blocks: blocks, row_of=row_of)  # type: ignore[misc]


def _units(of: Any) -> Units:
    return Units(column="person", of=np.asarray(of))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("quantile", [1.0, 0.8])
@pytest.mark.parametrize(("size", "width"), [(30, 12), (7, 5), (1, 1)])
def test_bounds_by_unit_are_those_of_the_sums(
    seed: int, quantile: float, size: int, width: int
) -> None:
    """Brute force: sum by unit, then the array function on (S, units)."""
    rows, alpha, row_of, unit = _case(seed)
    terms = np.zeros((30, 9))
    for i in range(40):
        terms[:, unit[i]] += alpha[i] * rows[:, row_of[i]]
    expected = ph.lipschitz_bounds(terms, draw_quantile=quantile)
    slices = partial(_sliced, rows, row_of, size, width)
    found = bounds_by_unit(slices, alpha, _units(unit), draw_quantile=quantile)
    np.testing.assert_allclose(found.by_record, expected.by_record[unit], rtol=1e-12)
    assert found.overall == pytest.approx(expected.overall, rel=1e-12)
    np.testing.assert_array_equal(found.kept_draws, expected.kept_draws)
    by_row = ph.lipschitz_bounds(rows[:, row_of], alpha, draw_quantile=quantile)
    assert by_row.overall < 0.7 * found.overall, "the control: by row, a unit is understated"


@pytest.mark.parametrize("quantile", [1.0, 0.5])
def test_units_of_one_record_are_records(quantile: float) -> None:
    rows, alpha, row_of, _ = _case(1)
    found = bounds_by_unit(lambda: _sliced(rows, row_of, 9, 4), alpha, _units(np.arange(40)),
                           draw_quantile=quantile)  # fmt: skip
    expected = ph.lipschitz_bounds(rows[:, row_of], alpha, draw_quantile=quantile)
    np.testing.assert_allclose(found.by_record, expected.by_record, rtol=1e-12)


def test_unbounded_terms_count_only_where_weights_are_positive() -> None:
    whole = LogLik.of(np.array([[-1.0, -np.inf, np.inf], [-2.0, -3.0, -1.0]]))
    for alpha, expected in (([1, 1, 0.0], [np.inf, np.inf, 0]), ([1, 0.0, 0.0], [2, 2, 0])):
        found = bounds_by_unit(lambda: [whole], np.array(alpha, dtype=float), _units([0, 0, 1]))
        assert found.by_record.tolist() == expected
    both = bounds_by_unit(lambda: [whole], np.ones(3), _units([0, 0, 0]), draw_quantile=0.5)
    assert np.isinf(both.overall), "inf - inf is no bound"
    with np.errstate(invalid="ignore"):
        assert np.isnan(unit_terms(whole, np.ones(3), np.zeros(3, dtype=int))[0, 0])


def test_values_of_units_are_the_lowest() -> None:
    units = Units(column="person", of=np.array([0, 0, 0, 1, 2]))
    assert units.lowest(np.array([3.0, 2, 9, 7, 1])).tolist() == [2, 2, 2, 7, 1]
