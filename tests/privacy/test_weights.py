"""Weight maps against their formulas, written out record by record."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pyhybrid.privacy.censoring import censor
from pyhybrid.privacy.weights import TRANSFORMS, lipschitz_weights, reweight, weights_from_lipschitz
from tests.golden import formulas

BOUNDS = st.lists(st.floats(0, 1e3), min_size=1, max_size=12)
NUMBER = st.floats(-5, 5)
WEIGHT = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


def options(name: str) -> dict[str, object]:
    return {"transform": name, "threshold": 4.0 if name == "threshold" else None}


@pytest.mark.parametrize("name", TRANSFORMS)
@given(f=BOUNDS, scale=NUMBER, shift=NUMBER)
def test_maps_equal_their_formulas(name: str, f: list[float], scale: float, shift: float) -> None:
    assume(max(f) == min(f) or max(f) - min(f) > 1e-6)
    alpha = weights_from_lipschitz(f, scale=scale, shift=shift, **options(name))
    expected = formulas.weights_from_lipschitz(f, scale, shift, **options(name))
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


def test_one_draw_has_no_deviation_and_a_term_that_does_not_move_keeps_its_weight() -> None:
    single = lipschitz_weights([[-1.0, -np.inf, -3.0]], risk="deviation")
    np.testing.assert_array_equal(single, [1, 0, 1])
    log_lik = np.column_stack([np.full(100, -50.0), np.linspace(-2, -1, 100)])
    np.testing.assert_array_equal(lipschitz_weights(log_lik, risk="range"), [1, 0])


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


MATRIX = hnp.arrays(float, (4, 3), elements=st.floats(allow_nan=True, allow_infinity=True))


@given(MATRIX, hnp.arrays(float, 3, elements=WEIGHT), st.floats(1e-6, 1e6))
def test_terms_never_leave_the_cap(log_lik: np.ndarray, alpha: np.ndarray, cap: float) -> None:
    result = censor(log_lik, alpha, cap=cap)
    assert (np.abs(result) <= cap).all(), "NaN fails this as well"
    for (s, i), f in np.ndenumerate(log_lik):
        expected = -cap if math.isnan(f) else max(-cap, min(cap, alpha[i] * f)) if alpha[i] else 0
        assert result[s, i] == (0 if alpha[i] == 0 else expected)


@pytest.mark.parametrize("f", [0.1 * 2.0**60, 0.1 * 2.0**900])
@pytest.mark.parametrize("n", [2, 3, 6, 7, 13])
def test_softmax_of_equal_bounds_is_half_though_their_mean_is_rounded(f: float, n: int) -> None:
    assert (weights_from_lipschitz([f] * n, transform="softmax") == 0.5).all()
