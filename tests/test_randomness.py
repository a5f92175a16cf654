"""Named random streams: functions of (seed, name), independent of one another."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.core.randomness import Streams, streams
from tests.refusals import refuses

N = 20_000


@given(st.integers(0, 2**130), st.text(max_size=20))
def test_same_seed_and_name_give_the_same_stream(seed: int, name: str) -> None:
    first, second = streams(seed), streams(seed)
    first.generator("another").random(7)  # using one stream does not move another
    np.testing.assert_array_equal(first.generator(name).random(9), second.generator(name).random(9))
    value = first.engine_seed(name)
    assert value == second.engine_seed(name)
    assert type(value) is int
    assert 1 <= value <= 2**31 - 2


def test_streams_of_different_name_seed_or_parent_are_uncorrelated() -> None:
    """Children of unlike names, and of their children, have roots of their own."""
    names = ["unweighted fit", "weighted fit", "synthesis", "synthesis/1", "synthesis/2", ""]
    child = streams(0).child("step 1")
    roots = [*map(streams, (0, 1, 2**64)), child, streams(0).child("step 2"), child.child("a")]
    assert len({root.entropy for root in roots}) == len(roots)
    pairs = [*itertools.product(roots[:3], names), *((root, "") for root in roots[3:])]
    draws = np.array([root.generator(name).standard_normal(N) for root, name in pairs])
    correlation = np.corrcoef(draws)[np.triu_indices(len(pairs), 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(N)
    assert len(np.unique(draws[:, 0])) == len(pairs)
    # The control: a shifted copy of one stream is caught.
    a = streams(3).generator("a").standard_normal(N)
    b = 0.05 * a + streams(3).generator("b").standard_normal(N)
    assert abs(np.corrcoef(a, b)[0, 1]) > 5 / np.sqrt(N)


def test_without_a_seed_two_sources_differ() -> None:
    a, b = streams(), streams()
    assert a.entropy != b.entropy
    assert a.entropy.bit_length() > 64, "128 bits from the system, not a clock"
    assert (a.seeded, streams(0).seeded) == (False, True)
    assert a.generator("x").random() != b.generator("x").random()


@pytest.mark.parametrize("state", [0, 2**31 - 2, 2**31 - 3, 2**64 - 1])
def test_engine_seed_at_the_ends_of_its_range(state: int, monkeypatch) -> None:
    class Sequence:
        def generate_state(self, n_words: int, dtype: type) -> np.ndarray:
            return np.array([state], dtype=dtype)

    monkeypatch.setattr(Streams, "_sequence", lambda self, name: Sequence())
    value = streams(0).engine_seed("fit")
    assert isinstance(value, int)
    assert 1 <= value <= 2**31 - 2


def test_engine_seeds_differ_by_name_and_fill_the_range() -> None:
    source = streams(8)
    values = [source.engine_seed(f"fit {i}") for i in range(2000)]
    assert len({*values}) == 2000
    # The mean of 2000 uniforms on the range has standard error range / sqrt(12 * 2000).
    assert abs(np.mean(values) / 2**31 - 0.5) < 5 / np.sqrt(12 * 2000)


def test_no_text_form_shows_the_entropy() -> None:
    source = streams(987654321)
    for shown in (repr(source), str(source), f"{source}"):
        assert "987654321" not in shown
        assert "confidential" in shown
    assert "987654321" in str(source.entropy), "the number is there for the private record"


def test_seeds_are_whole_numbers_of_numpy_too() -> None:
    for kind, seed in itertools.product((np.int64, np.uint32), (0, 41)):
        assert streams(kind(seed)) == Streams(entropy=seed, seeded=True)
    for wrong in (-1, 1.0, "1", True, np.float64(3), [1]):
        refuses("seed must be a whole number >= 0", streams, wrong)
