"""Counts in given bins, and probabilities from noisy counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.privacy.histogram import histogram_counts, perturbed_probabilities
from tests.refusals import refuses


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3),
    st.integers(2, 30),
)  # fmt: skip
def test_counts_equal_numpy_off_the_edges(
    shares: list[float], lower: float, width: float, n_bins: int
) -> None:
    upper = lower + width
    edges = np.linspace(lower, upper, n_bins + 1)
    y = np.clip(lower + width * np.array(shares), lower, upper)
    y = y[np.abs(y[:, None] - edges).min(axis=1) > 1e-9 * (abs(lower) + width)]
    if y.size == 0:
        return
    counts = histogram_counts(y, lower=lower, upper=upper, n_bins=n_bins)
    np.testing.assert_array_equal(counts, np.histogram(y, bins=edges)[0])


@given(st.lists(st.integers(0, 64), min_size=1, max_size=40), st.sampled_from([2, 4, 8, 16, 64]))
def test_edges_belong_to_the_bin_on_their_right(sixtyfourths: list[int], n_bins: int) -> None:
    # Sixty-fourths are exact in binary: the bin of k/64 is floor(k B / 64), the last one closed.
    expected = [0] * n_bins
    for k in sixtyfourths:
        expected[min(int(Fraction(k * n_bins, 64)), n_bins - 1)] += 1
    y = np.array(sixtyfourths) / 64
    assert histogram_counts(y, lower=0, upper=1, n_bins=n_bins).tolist() == expected
    shifted = histogram_counts(y - 3, lower=-3, upper=-2, n_bins=n_bins)
    assert shifted.tolist() == expected


@pytest.mark.parametrize("outside", [-1e-12, 1.0000001, np.inf, -np.inf, np.nan])
def test_values_outside_are_refused_by_record_and_not_by_value(outside: float) -> None:
    own = {"lower": 0, "upper": 1, "n_bins": 4}
    refuses("record 1 does not$", histogram_counts, [0.5, outside], **own, hidden=[repr(outside)])


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(-60, 60)), min_size=1, max_size=12))
def test_probabilities_are_clipped_shares(pairs: list[tuple[int, float]]) -> None:
    kept = [max(Fraction(count) + Fraction(noise), Fraction(0)) for count, noise in pairs]
    total = sum(kept)
    result = perturbed_probabilities([c for c, _ in pairs], [z for _, z in pairs])
    assert result.sum() == pytest.approx(1)
    if float(total) > 1e-9:
        np.testing.assert_allclose(result, [float(k / total) for k in kept], atol=1e-6)


def test_one_record_moves_counts_by_at_most_two_in_l1() -> None:
    """Replacing a record has L1 sensitivity 2, what the noise scale 2/epsilon rests on."""
    rng = np.random.default_rng(4)
    y = rng.uniform(0, 1, 30)
    base = histogram_counts(y, lower=0, upper=1, n_bins=7)
    moved = set()
    for i in range(30):
        neighbor = y.copy()
        neighbor[i] = rng.uniform(0, 1)
        moved.add(int(np.abs(histogram_counts(neighbor, lower=0, upper=1, n_bins=7) - base).sum()))
    assert moved == {0, 2}
