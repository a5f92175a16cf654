"""Lipschitz bounds, radius risk and pairwise risk against their literal definitions. Loss ranges:
against enumeration, the papers' bound, and what must stay infinite. Ranges with their delta:
exact coverage over repetitions of the sampling.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom, norm

import pyhybrid as ph
from pyhybrid.privacy.bounds import bounds_of, lipschitz_bounds, quantile_type7, share_bound
from pyhybrid.privacy.count_risk import pairwise_risk, radius_risk
from pyhybrid.privacy.log_lik import LogLik
from tests.audits.enumeration import log_posterior
from tests.golden import formulas
from tests.privacy.enumerated import LOG_LIK, databases, removals
from tests.refusals import refuses

# Multiples of 2^-10 and of 2^-6: their products are exact, so that ties are ties.
FINITE = st.integers(-50_000, 20_000).map(lambda k: k / 1024)
ANY = st.one_of(FINITE, st.sampled_from([-math.inf, math.inf, math.nan]))
WEIGHT = st.integers(0, 64).map(lambda k: k / 64)
QUANTILES = st.sampled_from([0.05, 0.25, 0.5, 0.9, 0.95, 1.0])


def matrices(elements: st.SearchStrategy[float] = FINITE) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=7)
    return hnp.arrays(float, shapes, elements=elements)


@st.composite
def weighted(draw: st.DrawFn, elements: st.SearchStrategy[float] = FINITE):
    matrix = draw(matrices(elements))
    return matrix, draw(hnp.arrays(float, matrix.shape[1], elements=WEIGHT))


@given(weighted(ANY), QUANTILES)
def test_bounds_equal_the_formulas(case: tuple[np.ndarray, np.ndarray], q: float) -> None:
    log_lik, alpha = case
    bounds = lipschitz_bounds(log_lik, alpha, draw_quantile=q)
    expected = formulas.lipschitz_bounds(log_lik.tolist(), alpha.tolist(), q)
    assert bounds.kept_draws.tolist() == expected["kept_draws"]
    assert bounds.overall == pytest.approx(expected["overall"], rel=1e-12, abs=1e-300)
    np.testing.assert_allclose(bounds.by_record, expected["by_record"], rtol=1e-12)
    assert bounds.draw_quantile == q


def test_a_quantile_between_equal_values_is_that_value_and_not_nan_between_infinite_ones() -> None:
    for value in (0.1, 0.7, 1.1, 3.3):
        for probability in np.linspace(0.01, 0.99, 50):
            assert quantile_type7(np.full(4, value), float(probability)) == value
    # R: quantile(c(1, 2, Inf), .5) is 2, and at .75 Inf; numpy gives NaN between infinities.
    values = np.array([1.0, np.inf, 2.0])
    assert (quantile_type7(values, 0.5), quantile_type7(values, 0.75)) == (2.0, math.inf)
    assert quantile_type7(np.array([np.inf, np.inf, 1.0]), 0.75) == math.inf


@st.composite
def shared_rows(draw: st.DrawFn):
    """Distinct columns, a record-to-column map that uses each of them, and a blocking."""
    columns = draw(matrices(ANY))
    d = columns.shape[1]
    extra = draw(st.lists(st.integers(0, d - 1), max_size=8))
    row_of = np.array(draw(st.permutations([*range(d), *extra])), dtype=np.intp)
    alpha = draw(hnp.arrays(float, row_of.size, elements=WEIGHT))
    cuts = sorted(draw(st.sets(st.integers(1, d - 1)))) if d > 1 else []
    return columns, row_of, alpha, cuts


@given(shared_rows(), QUANTILES)
def test_streaming_changes_nothing(
    case: tuple[np.ndarray, np.ndarray, np.ndarray, list[int]], q: float
) -> None:
    columns, row_of, alpha, cuts = case
    log_lik = LogLik(make=lambda: np.split(columns, cuts, axis=1), row_of=row_of)
    streamed = bounds_of(log_lik, alpha, draw_quantile=q)
    whole = lipschitz_bounds(columns[:, row_of], alpha, draw_quantile=q)
    np.testing.assert_array_equal(streamed.by_record, whole.by_record)
    np.testing.assert_array_equal(streamed.kept_draws, whole.kept_draws)
    assert streamed.overall == whole.overall


# Numbers whose balls end exactly at another number, or within a rounding of it.
EDGE = st.sampled_from([
    0.0, -0.0, 1e-20, -1e-20, 3e-20, 17.0, 20.0, 23.0, -20.0, -17.0, 0.7, 0.84, 0.56, 1.2, 1.38,
    1.02,
])  # fmt: skip
VALUES = st.lists(
    st.one_of(EDGE, st.integers(-30, 30).map(float), st.floats(-100, 100)), min_size=1, max_size=14
)
RADII = st.sampled_from([0.15, 0.2, 0.25, 0.3, 1.0, 3.0, 0.5])
KINDS = st.sampled_from(["relative", "absolute"])


@st.composite
def patterned(draw: st.DrawFn):
    y = draw(VALUES)
    labels = st.sampled_from([("north", 1), ("north", 2), ("south", 1)])
    pattern = draw(st.none() | st.lists(labels, min_size=len(y), max_size=len(y)))
    return np.array(y), pattern


@given(patterned(), RADII, KINDS)
def test_risks_equal_the_formulas(case, radius: float, kind: str) -> None:
    y, pattern = case
    table = None if pattern is None else np.array(pattern, dtype=object)
    options = {"radius": radius, "kind": kind, "pattern": table}
    expected = formulas.radius_risk(y.tolist(), radius, kind, pattern)
    np.testing.assert_allclose(radius_risk(y, **options), expected, atol=1e-15)
    expected = formulas.pairwise_risk(y.tolist(), radius, kind, pattern)
    np.testing.assert_allclose(pairwise_risk(y, **options), expected, atol=1e-14)


def test_pattern_of_strings_equals_pattern_of_numbers() -> None:
    rng = np.random.default_rng(5)
    y = rng.poisson(20, 60)
    codes = rng.integers(0, 3, (60, 2))
    words = np.array(["low", "mid", "high"])[codes]
    expected = formulas.radius_risk(y.tolist(), 0.2, "relative", codes.tolist())
    for pattern in (codes, words, words.astype(object)):
        np.testing.assert_allclose(radius_risk(y, pattern=pattern), expected, atol=1e-15)
    joined = [f"{a}/{b}" for a, b in words]
    np.testing.assert_allclose(radius_risk(y, pattern=joined), expected, atol=1e-15)


def test_patterns_of_several_columns_do_not_run_together() -> None:
    """First level 3 beside second level 1, and 1 beside 2, are alone, as all others are."""
    pattern = [["a", "p"], ["a", "q"], ["b", "p"], ["c", "p"]]
    assert radius_risk([1.0, 5.0, 7.0, 9.0], radius=0.1, pattern=pattern).tolist() == [0.0] * 4
    # Missing parts are one level, however they are written.
    y = np.array([1.0, 5.0, 9.0, 3.0])
    pattern = np.array([None, np.nan, None, "a"], dtype=object)
    found = radius_risk(y, radius=0.1, pattern=pattern)
    assert found == pytest.approx([2 / 3, 2 / 3, 2 / 3, 0.0])
    refuses("shape", radius_risk, [])


def test_efficiency_at_its_ends() -> None:
    assert lipschitz_bounds([[-1.0, -np.inf]]).efficiency == 0.0
    assert lipschitz_bounds([[0.0, 0.0]]).efficiency == 1.0
    assert lipschitz_bounds([[-1.0, -3.0]]).efficiency == pytest.approx(2 / 3)
    assert lipschitz_bounds([[-0.25, -0.5]]).efficiency == 0.75


@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_no_loss_of_an_enumerated_posterior_exceeds_the_range(alpha: float) -> None:
    closest = 0.0
    for database in databases():
        terms = LOG_LIK[:, database]
        ranges = ph.loss_ranges(terms, np.full(3, alpha)).by_record
        assert (ranges <= 2 * ph.lipschitz_bounds(terms, np.full(3, alpha)).by_record).all()
        whole = log_posterior(alpha * terms)
        for i, _ in removals(database):
            loss = np.abs(whole - log_posterior(alpha * np.delete(terms, i, axis=1))).max()
            assert loss <= ranges[i] * (1 + 1e-12)
            closest = max(closest, loss / ranges[i])
    assert closest > 0.9  # and it is no loose bound


def test_a_range_of_the_released_draw_only_is_caught() -> None:
    """Control: one draw has no range, and the loss of it is not 0."""
    terms = LOG_LIK[:, (0, 3, 15)]
    loss = log_posterior(terms) - log_posterior(terms[:, :2])
    assert ph.loss_ranges(terms[:1]).overall == 0 < np.abs(loss[0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("draw_quantile", [1.0, 0.9])
def test_what_is_not_finite_is_unbounded(value: float, draw_quantile: float) -> None:
    log_lik = np.random.default_rng(2).normal(size=(40, 3))
    log_lik[7, 1] = value
    ranges = ph.loss_ranges(log_lik, [1.0, 0.1, 1.0], draw_quantile=draw_quantile)
    assert np.isfinite(ranges.by_record).tolist() == [True, False, True]
    assert ranges.overall == np.inf
    zero = ph.loss_ranges(log_lik, [1.0, 0.0, 1.0], draw_quantile=draw_quantile)
    assert zero.by_record[1] == 0
    assert np.isfinite(zero.overall)


@pytest.mark.parametrize("n", [10, 1000])
def test_mu_is_the_deviation_of_the_own_term_of_a_normal_model(n: int) -> None:
    """Terms (y - theta)^2 / 2 at evenly spread quantiles of the posterior of a mean, flat prior."""
    y = np.random.default_rng(n).normal(size=n)
    theta = norm.ppf((np.arange(8001) + 0.5) / 8001, y.mean(), 1 / np.sqrt(n))
    alpha = np.array([1.0, 0.5, 0.0])
    exact = alpha * np.sqrt((y[:3] - y.mean()) ** 2 / n + 0.5 / n**2)
    terms = norm.logpdf(y[:3], theta[:, None])
    mu = ph.gaussian_mu(terms, alpha)
    np.testing.assert_allclose(mu, exact, rtol=5e-3)
    np.testing.assert_allclose(ph.gaussian_mu(terms - 1e5, alpha), mu, rtol=1e-7)
    terms[9, 1:] = np.nan
    assert np.isinf(ph.gaussian_mu(terms, alpha)).tolist() == [False, True, False]


def test_the_bound_of_a_share_is_that_of_clopper_and_pearson() -> None:
    for count, n in ((0, 50), (3, 50), (49, 50)):
        bound = share_bound(count / n, n, 0.95)
        assert binom.cdf(count, n, bound) == pytest.approx(0.05, rel=1e-6)
    assert share_bound(1.0, 50, 0.95) == 1.0
