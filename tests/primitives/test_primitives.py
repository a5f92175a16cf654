"""Primitives: noise of the stated distribution and scale, charges, refusals.

OpenDP's noise has no seed: every Monte Carlo check allows 5 standard errors or a p-value of 1e-6.
"""

import math
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.masking import MisclassificationMask
from pyhybrid.primitives.kmeans import _uniform_in_l1_ball, dp_kmeans
from pyhybrid.primitives.laplace import (
    laplace_counts,
    laplace_histogram,
    laplace_mean,
    laplace_sum,
    laplace_vector,
)
from pyhybrid.primitives.selection import exponential_mechanism, randomized_response
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import epsilon_text
from tests.conftest import require
from tests.refusals import refuses

try:
    import opendp.prelude as dp
except ImportError:
    dp = None

P_VALUE = 1e-6
SUM: dict[str, Any] = {"lower": 0, "upper": 1, "epsilon": 1.0}
CHOICE: dict[str, Any] = {"sensitivity": 1, "relation": "remove"}


@pytest.fixture(autouse=True)
def _opendp(request: pytest.FixtureRequest) -> None:
    if "without_opendp" not in request.node.name:
        require(dp is not None, "opendp must be installed")


def within(estimate: float, truth: float, standard_error: float) -> bool:
    return abs(estimate - truth) <= 5 * standard_error


@pytest.mark.parametrize(("answer", "sensitivity", "scale"), [
    (lambda: laplace_sum([1, 0, 1], lower=0, upper=1, epsilon=0.5), 1, 2),
    (lambda: laplace_sum([1, -3], lower=-3, upper=2, epsilon=1.0), 3, 3),
    (lambda: laplace_sum([7, 9], lower=5, upper=9, epsilon=2.0, relation="replace"), 4, 2),
    (lambda: laplace_sum([0.5] * 4, lower=-1, upper=2, epsilon=1.5, relation="replace"), 3, 2),
    (lambda: laplace_sum([0.5] * 4, lower=0, upper=2, epsilon=1.0), 2, 2),
    (lambda: laplace_mean([0.5] * 10, lower=0, upper=20, epsilon=0.25), 2, 8),
    (lambda: laplace_vector([4.0, -1.5], sensitivity=3, epsilon=1.5), 3, 2),
    (lambda: laplace_counts([0, 1, 1], n_categories=3, epsilon=0.5), 1, 2),
    (lambda: laplace_counts([0, 1], n_categories=3, epsilon=0.5, relation="replace"), 2, 4),
    (lambda: laplace_histogram([0.5, 1], lower=0, upper=2, n_bins=40, epsilon=1.0,
        relation="replace"), 2, 2),
    (lambda: exponential_mechanism([1, 2], **{**CHOICE, "sensitivity": 3}, epsilon=1.5), 3, 4),
])  # fmt: skip
def test_scale_is_sensitivity_over_epsilon(answer: Any, sensitivity: float, scale: float) -> None:
    made = answer()
    assert made.sensitivity == pytest.approx(sensitivity, rel=1e-6)
    assert made.scale == pytest.approx(scale, rel=1e-6)
    assert made.scale >= made.sensitivity / made.charge.epsilon * (1 - 2**-50)


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 0.7, 1.1, 3.0, 7.7, 12.345])
@pytest.mark.parametrize("primitive", [
    lambda e: laplace_counts([0], n_categories=2, epsilon=e, relation="replace"),
    lambda e: laplace_mean([0.1, 0.7, 0.4], lower=-0.1, upper=1.3, epsilon=e),
    lambda e: laplace_sum([0.1, 0.7], lower=-0.1, upper=1.3, epsilon=e),
    lambda e: laplace_vector([0.1, 0.7, 12.3], sensitivity=0.3, epsilon=e),
    lambda e: randomized_response([True], epsilon=e),
    lambda e: exponential_mechanism([1, 2], **{**CHOICE, "sensitivity": 0.3}, epsilon=e),
    lambda e: dp_kmeans([[0.2]], n_clusters=1, n_rounds=3, epsilon=e),
])  # fmt: skip
def test_noise_never_costs_more_than_stated(primitive: Any, epsilon: float) -> None:
    """And not noticeably less: the scale is tight."""
    answer = primitive(epsilon)
    charge = answer.charge
    assert (charge.kind, charge.n_synthetic, charge.n_draws_released) == ("strict", 0, 1)
    assert epsilon <= charge.epsilon < epsilon + 1e-6
    assert answer.cost() == pytest.approx(epsilon, rel=1e-9)
    assert Fraction(answer.cost()) <= Fraction(epsilon) * (1 + Fraction(1, 2**50))
    assert f"epsilon = {epsilon_text(charge.epsilon)} (strict" in repr(answer)


def test_a_misclassified_level_has_the_epsilon_of_randomized_response() -> None:
    keep = np.exp(0.7) / (1 + np.exp(0.7))
    assert MisclassificationMask.keep(keep, 2).epsilon == pytest.approx(0.7, rel=1e-12)
    assert MisclassificationMask(matrix=((1, 0), (0.5, 0.5))).epsilon == np.inf
    assert MisclassificationMask(matrix=((0, 0.5, 0.5),) * 3).epsilon == 0


def test_a_scale_of_sensitivity_over_epsilon_may_overstep() -> None:
    """Why calibration asks the library: 2 / 3 costs more than 3 in binary."""
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    assert (space >> dp.m.then_laplace(scale=2 / 3)).map(2) > 3.0
    made = laplace_counts([0], n_categories=2, epsilon=3.0, relation="replace")
    assert made.scale > 2 / 3
    assert (space >> dp.m.then_laplace(scale=made.scale)).map(2) <= 3.0


def test_counts_get_discrete_laplace_noise() -> None:
    """P(z) proportional to exp(-|z| / scale), on true counts, empty categories included."""
    codes = np.repeat(np.arange(1000), 3)
    counts = [laplace_counts(codes, n_categories=2000, epsilon=0.8).value for _ in range(5)]
    noise = np.array(counts) - np.where(np.arange(2000) < 1000, 3, 0)
    q = math.exp(-0.8)
    places = np.arange(-6, 7)
    share = (1 - q) / (1 + q) * q ** np.abs(places)
    expected = noise.size * np.array([(1 - share.sum()) / 2, *share, (1 - share.sum()) / 2])
    found = np.bincount(np.clip(noise.ravel(), -7, 7) + 7, minlength=15)
    assert stats.chisquare(found, expected).pvalue > P_VALUE


def test_real_sums_and_means_get_laplace_noise() -> None:
    y = np.array([0.25, 0.5, 0.125])
    own: dict[str, Any] = {**SUM, "epsilon": 2.0}
    sums = [laplace_sum(y, **own, relation="replace") for _ in range(800)]
    assert stats.kstest([s.value - 0.875 for s in sums], "laplace", (0, 0.5)).pvalue > P_VALUE
    means = [laplace_mean(y, **own) for _ in range(800)]
    off = [m.value - 0.875 / 3 for m in means]
    assert stats.kstest(off, "laplace", (0, 1 / 6)).pvalue > P_VALUE


@pytest.mark.parametrize(("lower", "upper"), [(0, 2**31 - 1), (-7.3, 1e-3), (1e300, 1.1e300)])
def test_sums_are_exact_in_any_order(lower: float, upper: float) -> None:
    """Whole units hold what 32 bits and the last digits of floats do not; noise has their scale."""
    y = np.random.default_rng(1).uniform(lower, upper, 1000)
    made = [laplace_sum(v, lower=lower, upper=upper, epsilon=1e5) for v in (y, y[::-1])]
    for answer in made:
        assert abs(answer.value - math.fsum(y)) < 40 * answer.scale + 1000 * 2**-30 * abs(upper)
    assert made[0].sensitivity == pytest.approx(max(-lower, upper))


def test_form_and_scale_of_a_sum_are_those_of_its_arguments() -> None:
    """Seen: one .5 made the answer real, of a larger scale."""
    values = ([0, 1, 1], [0.0, 0.5, 1], [True, False, True], np.int8([0, 1, 1]))
    answers = [laplace_sum(y, lower=-5, upper=10, epsilon=1.0) for y in values]
    assert {(type(a.value), a.sensitivity, a.scale) for a in answers} == {(float, 10, 10)}


def test_the_estimator_is_unbiased_and_its_variance_exact() -> None:
    """All 2^n reports of n persons, each with its probability: no Monte Carlo."""
    truth = np.array([True, False, True, True])
    made = randomized_response(truth, epsilon=0.9)
    p = made.keep_probability
    moments = np.zeros(2)
    for code in range(16):
        value = np.array([bool(code >> i & 1) for i in range(4)])
        probability = np.prod(np.where(value == truth, p, 1 - p))
        estimate = replace(made, value=value).estimate
        moments += probability * np.array([estimate, estimate**2])
    assert moments[0] == pytest.approx(0.75, abs=1e-12)
    assert moments[1] - moments[0] ** 2 == pytest.approx(made.variance, rel=1e-12)


@pytest.mark.long
def test_the_exponential_mechanism_has_its_probabilities() -> None:
    scores, epsilon = np.array([0.0, 1.0, 3.0, 2.5]), 1.4
    weight = np.exp(epsilon * scores / (2 * 0.8))
    own: dict[str, Any] = {**CHOICE, "sensitivity": 0.8}
    chosen = [exponential_mechanism(scores, **own, epsilon=epsilon) for _ in range(2000)]
    found = np.bincount([c.value for c in chosen], minlength=4)
    assert stats.chisquare(found, 2000 * weight / weight.sum()).pvalue > P_VALUE
    # Report-noisy-max with exponential noise, OpenDP's other choice, is another distribution.
    other = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float),
        dp.max_divergence(), scale=2 * 0.8 / epsilon,
    )  # fmt: skip
    # It prefers the best score more strongly; 20,000 answers tell the two apart (power > 1 - 1e-9).
    flipped = np.bincount([other(scores) for _ in range(20_000)], minlength=4)
    assert stats.chisquare(flipped, 20_000 * weight / weight.sum()).pvalue < P_VALUE


def test_kmeans_is_lloyds_algorithm_when_noise_is_small() -> None:
    rng = np.random.default_rng(4)
    centers = np.array([[0.4, 0.1], [-0.3, 0.3], [0.0, -0.5]])
    rows = np.repeat(centers, 400, axis=0) + rng.uniform(-0.05, 0.05, (1200, 2))
    start = centers + 0.1
    found = dp_kmeans(rows, n_clusters=3, n_rounds=4, epsilon=1e5, start=start)
    np.testing.assert_allclose(found.value, rows.reshape(3, 400, 2).mean(axis=1), atol=1e-4)
    np.testing.assert_array_equal(found.counts, [400, 400, 400])
    assert found.scale == pytest.approx(4 * 4 / 1e5)
    assert found.charge.relation == "replace"


def test_kmeans_noise_has_the_scale_of_the_formula() -> None:
    """One cluster, one round: count + Laplace(4 / eps) and, times the count, a sum likewise."""
    rows, epsilon = np.full((1000, 1), 0.5), 2.0
    found = [dp_kmeans(rows, n_clusters=1, n_rounds=1, epsilon=epsilon) for _ in range(800)]
    counts = np.array([f.counts[0] for f in found]) - 1000
    q = math.exp(-epsilon / 4)
    sd, kurtosis = math.sqrt(2 * q) / (1 - q), 6
    assert within(counts.std(), sd, sd * math.sqrt(kurtosis / 4 / 800))
    sums = np.array([f.value[0, 0] * f.counts[0] for f in found]) - 500
    assert stats.kstest(sums, "laplace", (0, 4 / epsilon)).pvalue > P_VALUE


@pytest.mark.parametrize("averaged", [1, 4])
def test_averaged_rounds_of_kmeans_have_less_noise(averaged: int) -> None:
    """One cluster, whose rounds are independent: variance (2 + 0.5^2 2) scale^2 / n^2 of each."""
    rows, scale = np.full((2000, 1), 0.5), 4 * 4 / 2.0
    found = [
        dp_kmeans(rows, n_clusters=1, n_rounds=4, epsilon=2.0, n_averaged=averaged).value[0, 0]
        for _ in range(400)
    ]
    sd = math.sqrt(2.5 / averaged) * scale / 2000
    assert within(np.std(found), sd, sd * math.sqrt(6 / 4 / 400))  # as of a Laplace variable


def test_uniform_in_the_l1_ball() -> None:
    points = _uniform_in_l1_ball(4000, 3, np.random.default_rng(5))
    assert stats.kstest(np.abs(points).sum(axis=1) ** 3, "uniform").pvalue > P_VALUE
    assert within(points.mean(), 0, points.std() / math.sqrt(points.size))


def test_empty_clusters_start_anew_in_the_ball() -> None:
    own: dict[str, Any] = {"n_clusters": 2, "n_rounds": 1, "start": np.array([[0.0], [5.0]])}
    found = [dp_kmeans(np.zeros((50, 1)), **own, epsilon=50.0) for _ in range(20)]
    fresh = [f.value[1, 0] for f in found if f.counts[1] < 1]
    assert len(fresh) > 5
    assert max(map(abs, fresh)) <= 1
    assert len(set(fresh)) == len(fresh)


def test_an_answer_refuses_a_charge_below_its_noise() -> None:
    answers = [
        laplace_counts([0, 1], n_categories=2, epsilon=1.0),
        randomized_response([True], epsilon=1.0),
        exponential_mechanism([1, 2], **CHOICE, epsilon=1.0),
        dp_kmeans([[0.1]], n_clusters=1, n_rounds=2, epsilon=1.0),
    ]
    cheap = PrivacyCharge.strict(mechanism="by hand", epsilon=0.1, relation="remove")
    for answer in answers:
        refuses("at least what the noise costs", replace, answer, charge=cheap)
    assert len({answer.identifier for answer in answers}) == len(answers)


@pytest.mark.parametrize(("changes", "message"), [
    ({"epsilon": 0}, "epsilon must be above 0"), ({"epsilon": -1}, "epsilon must be above 0"),
    ({"epsilon": float("nan")}, "epsilon must be a finite number"),
    ({"epsilon": 1e-320}, "within what OpenDP can calibrate"),
    ({"lower": 1}, "lower must be below upper: found 1 and 1"),
    ({"lower": 2}, "lower must be below upper: found 2 and 1"),
    ({"upper": None}, "give them, lower and upper"), ({"lower": "auto"}, "lower must be"),
])  # fmt: skip
@pytest.mark.parametrize(
    "primitive", [laplace_sum, laplace_mean, lambda y, **k: laplace_histogram(y, n_bins=3, **k)]
)
def test_bad_settings(primitive: Any, changes: dict[str, Any], message: str) -> None:
    refuses(message, primitive, [0.5, 0.5], **{**SUM, **changes})


@pytest.mark.parametrize(("values", "message"), [
    ([0.5, 1.5], r"lie in \[0, 1\]: record 1 does not; clip them"), ([-0.1, 0.5], "record 0"),
    ([0.5, 0.5, np.nan], "record 2"), ([0.5, np.inf], "record 1"),
    ([], "n >= 1"), (["a"], "numeric"),
])  # fmt: skip
def test_bad_values_are_named_by_record(values: list[Any], message: str) -> None:
    for primitive in (laplace_sum, laplace_mean):
        refuses(message, primitive, values, hidden=["1.5"], **SUM)  # a message shows no value


@pytest.mark.parametrize(("call", "message"), [
    (lambda: laplace_sum([0.5], **SUM, relation="add"), "remove, replace"),
    (lambda: laplace_histogram([0.5], **SUM, n_bins=1), "n_bins must be a whole number >= 2"),
    (lambda: laplace_counts([0, 3], n_categories=3, epsilon=1.0), "record 1"),
    (lambda: laplace_counts([0.5], n_categories=3, epsilon=1.0), "record 0"),
    (lambda: randomized_response([1, 2], epsilon=1.0), "record 1"),
    (lambda: randomized_response([1, pd.NA], epsilon=1.0), "numeric"),
    (lambda: randomized_response([True], epsilon=50.0), "keep probability"),
    (lambda: exponential_mechanism([1], **CHOICE, epsilon=1.0), "at least 2"),
    (lambda: exponential_mechanism([1, 2], **{**CHOICE, "sensitivity": 0}, epsilon=1.0),
        "sensitivity must be above 0"),
    (lambda: dp_kmeans([[3.0, 1.0]], n_clusters=1, n_rounds=1, epsilon=1.0), "L1 norm.*record 0"),
    (lambda: dp_kmeans([[0.1]], n_clusters=0, n_rounds=1, epsilon=1.0), "n_clusters"),
    (lambda: dp_kmeans([[0.1]], n_clusters=1, n_rounds=1, epsilon=1.0, start=[[1, 2]]),
        r"shape \(1, 1\)"),
])  # fmt: skip
def test_bad_input(call: Any, message: str) -> None:
    refuses(message, call)


def test_without_opendp_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(EngineUnavailable, match=r"pip install 'pyhybrid\[dp\]'"):
        laplace_counts([0], n_categories=2, epsilon=0.1234567)
