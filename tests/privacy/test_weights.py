"""Weight maps against their formulas, written out record by record."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.censoring import censor
from pyhybrid.privacy.count_risk import pairwise_risk, radius_risk
from pyhybrid.privacy.weights import (
    TRANSFORMS,
    count_weights,
    lipschitz_weights,
    reweight,
    scalar_weights,
    truncate_weights,
    weights_from_lipschitz,
)

SMOOTH = [name for name in TRANSFORMS if name != "threshold"]
BOUNDS = st.lists(st.floats(0, 1e3), min_size=1, max_size=12)
NUMBER = st.floats(-5, 5)
WEIGHT = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


def clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


def by_hand(f: list[float], name: str, limit: float | None) -> list[float]:
    """The maps m(f) of [S22] and of the published R code, one record at a time."""
    low, high, mean = min(f), max(f), math.fsum(f) / len(f)
    if name == "linear":
        return [1.0 if high == low else 1 - (x - low) / (high - low) for x in f]
    if name == "reciprocal":
        return [1 / (x + 1) for x in f]
    if name == "threshold":
        return [1.0 if x < limit else 0.0 for x in f]
    if name == "logistic":
        return [1 - (2 / (1 + math.exp(-x / 2)) - 1) for x in f]
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in f) / max(len(f) - 1, 1))
    return [0.5 if low == high else 1 - 1 / (1 + math.exp(-1.69897 * (x - mean) / sd)) for x in f]


def options(name: str) -> dict[str, object]:
    return {"transform": name, "threshold": 4.0 if name == "threshold" else None}


# --- Lipschitz weights --------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSFORMS)
@given(f=BOUNDS, scale=NUMBER, shift=NUMBER)
def test_maps_equal_their_formulas(name: str, f: list[float], scale: float, shift: float) -> None:
    assume(max(f) == min(f) or max(f) - min(f) > 1e-6)
    alpha = weights_from_lipschitz(f, scale=scale, shift=shift, **options(name))
    expected = [clipped(scale * m + shift) for m in by_hand(f, name, 4.0)]
    np.testing.assert_allclose(alpha, expected, rtol=1e-9, atol=1e-9)
    assert ((alpha >= 0) & (alpha <= 1)).all()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_published_constants(name: str) -> None:
    # f = 2, 4, 6 has mean 4 and sd 2, so that standardized values are -1, 0, 1.
    # e^1.69897 = 5.46831, 1/6.46831 = 0.154600.
    # e^-1 = 0.367879, 2/1.367879 - 1 = 0.462117, one minus it 0.537883.
    expected = {
        "linear": [1, 0.5, 0],
        "reciprocal": [1 / 3, 1 / 5, 1 / 7],
        "threshold": [1, 0, 0],  # strict: f = f* = 4 is over the threshold
        "logistic": [0.537882843, 0.238405844, 0.094851746],
        "softmax": [0.845400, 0.5, 0.154600],
    }[name]
    alpha = weights_from_lipschitz([2.0, 4.0, 6.0], **options(name))
    np.testing.assert_allclose(alpha, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["reciprocal", "logistic", "threshold"])
def test_maps_of_a_single_record_run_from_one_to_zero(name: str) -> None:
    assert weights_from_lipschitz([0.0], **options(name)).tolist() == [1.0]
    assert weights_from_lipschitz([1e9], **options(name))[0] <= 1e-9


@pytest.mark.parametrize("name", TRANSFORMS)
@given(f=BOUNDS, scale=st.floats(0, 5), shift=NUMBER)
def test_a_larger_bound_never_gets_a_larger_weight(
    name: str, f: list[float], scale: float, shift: float
) -> None:
    alpha = weights_from_lipschitz(f, scale=scale, shift=shift, **options(name))
    assert (np.diff(alpha[np.argsort(f, kind="stable")]) <= 0).all()


@given(BOUNDS)
def test_riskiest_record_gets_exactly_zero(f: list[float]) -> None:
    assume(max(f) > min(f))
    alpha = weights_from_lipschitz(f)
    assert alpha[int(np.argmax(f))] == 0.0
    assert alpha[int(np.argmin(f))] == 1.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [("linear", 1.0), ("softmax", 0.5), ("reciprocal", 1 / 1.1), ("threshold", 1.0)],
)
@pytest.mark.parametrize("n", [1, 3, 7])
def test_equal_bounds(name: str, expected: float, n: int) -> None:
    # np.full(3, 0.1).mean() is not 0.1, so that a standard deviation alone would not see equality.
    alpha = weights_from_lipschitz([0.1] * n, **options(name))
    assert alpha.tolist() == [expected] * n


def test_softmax_of_one_low_outlier_among_many() -> None:
    f = np.full(300_000, 2.0)
    f[0] = 1.0
    alpha = weights_from_lipschitz(f, transform="softmax")
    assert alpha[0] == 1.0
    assert alpha[1] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan])
def test_unbounded_records_get_zero_whatever_the_shift(name: str, bad: float) -> None:
    log_lik = np.array([[-1.0, bad, -3.0, -2.0], [-2.0, -1.0, -5.0, -1.0]])
    alpha = lipschitz_weights(log_lik, scale=0.5, shift=0.75, **options(name))
    assert alpha[1] == 0.0
    others = [clipped(0.5 * m + 0.75) for m in by_hand([2.0, 5.0, 2.0], name, 4.0)]
    np.testing.assert_allclose(alpha[[0, 2, 3]], others, rtol=1e-12)


def test_all_records_unbounded() -> None:
    assert weights_from_lipschitz([np.inf, np.inf], shift=1.0).tolist() == [0.0, 0.0]


def test_draw_quantile_reaches_the_weights() -> None:
    # Row maxima 3, 4, 40: the median keeps draws 0 and 1, so f = (2, 4, 3) and not (2, 40, 3).
    log_lik = [[-2.0, -1.0, -3.0], [-1.0, -4.0, -2.0], [-1.0, -40.0, -1.0]]
    assert lipschitz_weights(log_lik, draw_quantile=0.5) == pytest.approx([1.0, 0.0, 0.5])
    assert lipschitz_weights(log_lik) == pytest.approx([1.0, 0.0, 37 / 38])


def test_scale_and_shift_clip() -> None:
    assert weights_from_lipschitz([1.0, 2.0, 3.0], scale=2.0, shift=-0.5).tolist() == [1, 0.5, 0]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"scale": np.nan}, "scale"),
        ({"scale": np.inf}, "scale"),
        ({"scale": "1"}, "scale"),
        ({"shift": -np.inf}, "shift"),
        ({"shift": None}, "shift"),
        ({"transform": "cubic"}, "linear, reciprocal"),
        ({"transform": "threshold"}, "threshold"),
        ({"threshold": 1.0}, "threshold"),
        ({"transform": "threshold", "threshold": 0.0}, "threshold must be above 0"),
    ],
)
def test_bad_input_of_weights(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        lipschitz_weights([[-1.0, -2.0]], **kwargs)
    with pytest.raises(InvalidInput, match=message):
        weights_from_lipschitz([1.0, 2.0], **kwargs)


@pytest.mark.parametrize("f", [[-1.0], [np.nan], [], [[1.0]]])
def test_bad_bounds(f: list[float]) -> None:
    with pytest.raises(InvalidInput, match="lipschitz"):
        weights_from_lipschitz(f)


# --- Count, scalar and truncated weights --------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), NUMBER, NUMBER)
def test_count_weights(risk: list[float], scale: float, shift: float) -> None:
    expected = [clipped(scale * (1 - r) + shift) for r in risk]
    assert count_weights(risk, scale=scale, shift=shift).tolist() == expected


@pytest.mark.parametrize("risk", [[1.1], [-0.1], [np.nan], [np.inf], []])
def test_bad_risk(risk: list[float]) -> None:
    with pytest.raises(InvalidInput, match="risk"):
        count_weights(risk)


@given(st.integers(1, 5), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_scalar_weights_meet_the_target(n: int, target: float, unweighted: float) -> None:
    alpha = scalar_weights(n, target_bound=target, unweighted_bound=unweighted)
    assert alpha.shape == (n,)
    assert len({*alpha.tolist()}) == 1
    assert alpha[0] * unweighted == pytest.approx(min(target, unweighted))
    assert alpha[0] <= 1


@pytest.mark.parametrize(
    ("n", "target", "unweighted", "message"),
    [(0, 1, 1, "n must"), (1.5, 1, 1, "n must"), (1, 0, 1, "target"), (1, 1, np.inf, "unweighted")],
)
def test_bad_scalar(n: float, target: float, unweighted: float, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        scalar_weights(n, target_bound=target, unweighted_bound=unweighted)


def test_truncation_is_strict_at_the_cap() -> None:
    alpha = truncate_weights([0.5, 0.5, 1.0, 0.0, 1.0], [4.0, 4.1, 2.0, np.inf, np.inf], cap=2.0)
    assert alpha.tolist() == [0.5, 0.0, 1.0, 0.0, 0.0]


@given(hnp.arrays(float, 5, elements=WEIGHT), st.floats(0.1, 9))
def test_truncated_weights_are_old_ones_or_zero(alpha: np.ndarray, cap: float) -> None:
    f = np.array([0.0, 1.0, 5.0, 20.0, np.inf])
    result = truncate_weights(alpha, f, cap=cap)
    for old, new, bound in zip(alpha, result, f, strict=True):
        risky = old > 0 and old * bound > cap
        assert new == (0.0 if risky else old)


@pytest.mark.parametrize("cap", [0.0, -1.0, np.inf, np.nan])
def test_bad_cap(cap: float) -> None:
    with pytest.raises(InvalidInput, match="cap"):
        truncate_weights([1.0], [1.0], cap=cap)
    with pytest.raises(InvalidInput, match="cap"):
        censor([[1.0]], cap=cap)


# --- Re-weighting -------------------------------------------------------------------------------


def test_reweighting_worked_out_by_hand() -> None:
    # k alpha D / D_i, D = 4, k = .9: .9*.5*4/4, .9*.5*4/2, .9*1*4/3 -> 1, 0 stays, D_i = 0 -> 1.
    alpha = reweight([0.5, 0.5, 1.0, 0.0, 0.5], [4.0, 2.0, 3.0, 0.0, 0.0], k=0.9)
    np.testing.assert_allclose(alpha, [0.45, 0.9, 1.0, 0.0, 1.0], rtol=1e-15)


POSITIVE = st.one_of(st.just(0.0), st.floats(1e-320, 50))


@given(
    hnp.arrays(float, 6, elements=WEIGHT),
    hnp.arrays(float, 6, elements=POSITIVE),
    st.floats(0.01, 1),
)
def test_reweighting_lifts_records_to_the_bound(alpha: np.ndarray, f: np.ndarray, k: float) -> None:
    by_record = alpha * f  # the fit holds f, as on a grid of theta
    raised = reweight(alpha, by_record, k=k)
    bound = by_record.max()
    assert (raised[alpha == 0] == 0).all()
    assert ((raised >= 0) & (raised <= 1)).all()
    normal = (by_record > 1e-300) & (alpha * bound > 1e-300)  # no product has lost its digits
    assert (raised * f)[normal].max(initial=0) <= k * bound * (1 + 1e-12)
    for i in np.flatnonzero(normal & (raised < 1)):
        assert raised[i] * f[i] == pytest.approx(k * bound, rel=1e-9), "slack is left"


def test_full_efficiency_is_a_fixed_point_at_k_one() -> None:
    alpha = np.array([0.25, 0.5, 1.0, 0.0])
    f = np.array([16.0, 8.0, 4.0, 99.0])
    np.testing.assert_allclose(reweight(alpha, alpha * f, k=1.0), alpha, rtol=1e-15)
    np.testing.assert_allclose(reweight(alpha, alpha * f, k=0.5), alpha / 2, rtol=1e-15)


def test_the_overall_bound_of_dropped_draws_is_used() -> None:
    assert reweight([0.5, 0.5], [2.0, 1.0], k=1.0, bound=2.5) == pytest.approx([0.625, 1.0])


def test_maxima_per_draw_would_break_the_cap_of_reweighting() -> None:
    """The published R code recycles per-draw maxima in place of D_i: the k D cap is then lost."""
    f = np.array([[2.0, 3.0, 20.0], [2.5, 3.5, 1.0], [1.0, 1.5, 2.0]])
    alpha = np.array([1.0, 0.9, 0.25])
    by_record = (alpha * f).max(axis=0)
    by_draw = (alpha * f).max(axis=1)
    bound = by_record.max()
    right = reweight(alpha, by_record) * f.max(axis=0)
    broken = reweight(alpha, by_draw, bound=bound) * f.max(axis=0)
    assert right.max() <= 0.95 * bound * (1 + 1e-12)
    assert broken.max() > 1.5 * bound


@pytest.mark.parametrize(
    ("alpha", "by_record", "k", "message"),
    [
        ([0.5], [np.inf], 0.95, "record 0 has no bound"),
        ([0.5], [np.nan], 0.95, "by_record"),
        ([0.5], [-1.0], 0.95, "by_record"),
        ([0.5, 1.0], [1.0], 0.95, "1 elements"),
        ([1.5], [1.0], 0.95, "alpha"),
        ([0.5], [1.0], 0.0, r"\(0, 1\]"),
        ([0.5], [1.0], 1.1, r"\(0, 1\]"),
    ],
)
def test_bad_reweighting(
    alpha: list[float], by_record: list[float], k: float, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        reweight(alpha, by_record, k=k)


# --- Censoring ----------------------------------------------------------------------------------

MATRIX = hnp.arrays(float, (4, 3), elements=st.floats(allow_nan=True, allow_infinity=True))


@given(MATRIX, hnp.arrays(float, 3, elements=WEIGHT), st.floats(1e-6, 1e6))
def test_censored_terms_never_leave_the_cap(
    log_lik: np.ndarray, alpha: np.ndarray, cap: float
) -> None:
    result = censor(log_lik, alpha, cap=cap)
    assert (np.abs(result) <= cap).all(), "NaN fails this as well"
    for (s, i), f in np.ndenumerate(log_lik):
        expected = -cap if math.isnan(f) else max(-cap, min(cap, alpha[i] * f)) if alpha[i] else 0
        assert result[s, i] == (0 if alpha[i] == 0 else expected)


def test_both_sides_of_the_cap_are_attained() -> None:
    log_lik = [[-np.inf, np.inf, np.nan, -3.0, 3.0, 0.5, -np.inf]]
    result = censor(log_lik, [1.0, 0.1, 1.0, 1.0, 1.0, 1.0, 0.0], cap=2.0)
    assert result.tolist() == [[-2.0, 2.0, -2.0, -2.0, 2.0, 0.5, 0.0]]


def test_a_wide_cap_changes_nothing() -> None:
    log_lik = np.random.default_rng(3).normal(-3, 2, (5, 4))
    np.testing.assert_array_equal(censor(log_lik, cap=1e6), log_lik)


@pytest.mark.parametrize("quantile", [1.0, 0.9])
def test_float32_is_never_rounded_down(quantile: float) -> None:
    """Half the memory; bounds at least those of the values that were rounded, by little."""
    exact = np.random.default_rng(3).normal(-20, 8, size=(400, 300))
    alpha = np.random.default_rng(4).random(300)
    single = exact.astype(np.float32)
    ours = ph.lipschitz_bounds(single, alpha, draw_quantile=quantile)
    truth = ph.lipschitz_bounds(exact, alpha, draw_quantile=quantile)
    assert (single.astype(np.float64).max(axis=0) < exact.max(axis=0)).any()  # some rounded down
    assert (ours.by_record >= truth.by_record).all()
    assert ours.overall >= truth.overall
    np.testing.assert_allclose(ours.by_record, truth.by_record, rtol=4e-7)
    assert ours.by_record.dtype == np.float64
    np.testing.assert_array_equal(ours.kept_draws, truth.kept_draws)
    np.testing.assert_allclose(
        ph.lipschitz_weights(single), ph.lipschitz_weights(exact), rtol=0, atol=1e-5
    )
    censored = (ph.arrays.censor(f, alpha, cap=2.0) for f in (single, exact))
    np.testing.assert_allclose(*censored, atol=1e-5)
    single[3, 7] = np.nan
    assert ph.lipschitz_bounds(single).by_record[7] == np.inf


@pytest.mark.parametrize("f", [0.1 * 2.0**60, 0.1 * 2.0**900])
@pytest.mark.parametrize("n", [2, 3, 6, 7, 13])
def test_softmax_of_equal_bounds_is_half_though_their_mean_is_rounded(f: float, n: int) -> None:
    assert (weights_from_lipschitz([f] * n, transform="softmax") == 0.5).all()


def test_defaults_of_count_weights_and_risks() -> None:
    assert count_weights([0.25, 1.0]).tolist() == [0.75, 0.0]
    y = [100.0, 115.0, 130.0]  # 15 of 100 is inside 20 per cent, 30 of 130 is not
    assert radius_risk(y).tolist() == pytest.approx([1 / 3, 0, 1 / 3])
    far = [1.0, 2.0, 10.0, 100.0]
    assert pairwise_risk(far).tolist() == pairwise_risk(far, radius=0.2).tolist()
    assert pairwise_risk(far).tolist() != pairwise_risk(far, radius=1.2).tolist()


def test_one_wrong_value_among_right_ones_is_refused() -> None:
    with pytest.raises(InvalidInput, match="record 1 is above"):
        count_weights([0.5, 1.5])
    with pytest.raises(InvalidInput, match="record 1 has no bound"):
        reweight([1.0, 1.0], [1.0, np.inf])


def test_records_without_a_bound_to_meet_go_to_one() -> None:
    assert reweight([0.5, 0.5, 0.0], [0.0, 1.0, 0.0], k=0.9).tolist() == [1.0, 0.45, 0.0]
