"""Utility: resampling against enumeration of all resamples, barycenters, ECDF distances."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.measures.estimates import STATISTICS, avg_ecdf, estimates, max_ecdf, summaries
from tests.refusals import refuses

VECTORS = st.lists(st.integers(-5, 20), min_size=1, max_size=30)


def _naive(values: np.ndarray, name: str) -> float:
    if name == "mean":
        return float(np.mean(values))
    return float(np.quantile(values, 0.5 if name == "median" else float(name[1:]) / 100))


@pytest.mark.parametrize("values", [[0.0, 1.0, 4.0, 9.0], [1.0, 1.0, 2.0, 5.0, 5.0]])
@pytest.mark.parametrize("name", ["mean", "median", "q15", "q90", "q99.9"])
def test_resamples_have_the_distribution_of_all_resamples(values: list[float], name: str) -> None:
    """Every one of the n^n resamples is enumerated; frequencies agree within 5 standard errors."""
    everything = [_naive(np.array(x), name) for x in itertools.product(values, repeat=len(values))]
    levels, counts = np.unique(np.round(everything, 9), return_counts=True)
    exact = counts / counts.sum()
    n_resamples = 40_000
    found = estimates(values, statistics=[name], n_resamples=n_resamples, rng=7)
    drawn = np.round(found.resampled[0], 9)
    assert np.isin(drawn, levels).all()
    shares = np.array([(drawn == level).mean() for level in levels])
    error = 5 * np.sqrt(exact * (1 - exact) / n_resamples)
    assert (np.abs(shares - exact) <= error + 1e-12).all()


def test_the_two_ways_to_draw_means_agree() -> None:
    """By distinct value where they are few, else by record: equal moments, 5 standard errors."""
    rng = np.random.default_rng(3)
    few = np.sort(rng.negative_binomial(3, 0.2, 400).astype(float))
    many = few + np.arange(400) * 1e-9  # all distinct: the other branch
    means = [estimates(v, statistics=["mean"], n_resamples=20_000, rng=5) for v in (few, many)]
    expected = few.std() / np.sqrt(few.size)
    for found in means:
        draws = found.resampled[0]
        assert abs(draws.mean() - few.mean()) < 5 * expected / np.sqrt(draws.size)
        assert abs(draws.std() / expected - 1) < 5 / np.sqrt(2 * draws.size)


@given(VECTORS)
def test_point_estimates_are_numpys_and_lie_in_their_intervals(values: list[int]) -> None:
    found = estimates(values, n_resamples=100, rng=0)
    expected = [_naive(np.array(values, dtype=float), name) for name in STATISTICS]
    np.testing.assert_allclose(found.estimate, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.estimate, summaries(values))
    assert (found.lower <= found.estimate).all()
    assert (found.estimate <= found.upper).all()
    assert (np.diff(found.resampled, axis=1) >= 0).all()


def test_the_barycenter_averages_quantile_functions() -> None:
    """Sets that are shifts of each other: their barycenter is the one of the mean shift."""
    y = np.random.default_rng(2).normal(size=200)
    found = estimates([y - 3, y + 9, y], n_resamples=4000, rng=1)
    center = estimates(y + 2, n_resamples=4000, rng=2)
    np.testing.assert_allclose(found.estimate, center.estimate, rtol=1e-12)
    # Averages of 3 order statistics each: within a small share of the spread of the resamples.
    spread = center.resampled.std(axis=1)
    assert (np.abs(found.lower - center.lower) < 0.3 * spread).all()
    assert (np.abs(found.upper - center.upper) < 0.3 * spread).all()


def test_a_million_counts_need_little_memory() -> None:
    y = np.random.default_rng(1).negative_binomial(20, 20 / 120, 10**6)
    tracemalloc.start()
    found = estimates(y, rng=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # the data themselves are 8 MB
    assert found.lower[0] < y.mean() < found.upper[0]


@given(VECTORS, VECTORS)
def test_ecdf_distances_against_brute_force(data: list[int], synthetic: list[int]) -> None:
    at, both = [*data, *synthetic], (data, synthetic)
    gaps = np.subtract(*([np.mean([v <= x for v in own]) for x in at] for own in both))
    assert max_ecdf(data, synthetic) == pytest.approx(np.max(np.abs(gaps)), abs=1e-12)
    assert avg_ecdf(data, synthetic) == pytest.approx(np.mean(np.square(gaps)), abs=1e-12)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"values": [1.0, np.nan]}, "element 1 is not"),
    ({"values": [[1.0, 2.0], [np.inf, 1.0]]}, "set 2 must be finite: element 0"),
    ({"values": [1.0], "statistics": ["mode"]}, "mean, median, or q"),
    ({"values": [1.0], "statistics": ["q100"]}, "mean, median, or q"),
    ({"values": [1.0], "n_resamples": 99}, "n_resamples must be a whole number >= 100"),
    ({"values": [1.0], "level": 1.0}, r"level must lie in \(0, 1\)"),
])  # fmt: skip
def test_bad_arguments(arguments: dict, message: str) -> None:
    values = arguments.pop("values")
    refuses(message, estimates, values, **arguments)
