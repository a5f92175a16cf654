"""What a cap is: its ends, its key, what it refuses. The clipping itself: tests/models."""

from __future__ import annotations

import numpy as np
import pytest

from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.censoring import Cap


def test_a_number_is_the_symmetric_cap_and_a_cap_is_itself() -> None:
    plain = Cap.of(1.5)
    assert (plain.below, plain.above, plain.span, plain.is_plain) == (1.5, 1.5, 3.0, True)
    assert plain.n_units == 0
    assert Cap.of(plain) is plain


def test_what_is_more_than_one_number_is_not_plain_and_has_a_key_of_its_own() -> None:
    caps = [
        Cap.of(1.0),
        Cap(below=0.5, above=1.0),
        Cap(below=1.0, above=1.0, reference=np.zeros(3)),
        Cap(below=1.0, above=1.0, reference=np.array([0.0, 0.0, 1.0])),
        Cap(below=1.0, above=1.0, unit=np.array([0, 1, 1])),
        Cap(below=1.0, above=1.0, unit=np.array([0, 0, 1])),
    ]
    assert [cap.is_plain for cap in caps] == [True] + [False] * 5
    assert len({cap.key for cap in caps}) == len(caps)
    assert caps[4].n_units == 2
    assert repr(caps[4]) == "<Cap [-1, 1], 2 units>"


@pytest.mark.parametrize("below", [0.0, -1.0, np.nan, np.inf])
def test_ends_must_be_finite_and_above_zero(below: float) -> None:
    with pytest.raises(InvalidInput, match="below must be"):
        Cap(below=below, above=1.0)


def test_a_center_without_a_likelihood_is_refused_by_its_record() -> None:
    with pytest.raises(InvalidInput, match="record 2 has a likelihood of 0 at the center"):
        Cap(below=1.0, above=1.0, reference=np.array([0.0, -1.0, -np.inf]))
