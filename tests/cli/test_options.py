"""What the options of re-weighting ask for."""

from __future__ import annotations

import pytest

from pyhybrid.cli.options import reweighting_of
from pyhybrid.errors import InvalidInput
from pyhybrid.fitting.reweighting import Reweighting


def test_a_single_step_is_the_published_one() -> None:
    assert reweighting_of(True, 0.9, True) == Reweighting.published(k=0.9)
    assert reweighting_of(True, None, True) == Reweighting.published(k=0.95)
    assert reweighting_of(True, 0.9, False) == Reweighting(k=0.9)
    assert reweighting_of(True, None, False) == Reweighting()
    assert reweighting_of(False, None, False) is None
    for k, single_step in ((0.9, False), (None, True)):
        with pytest.raises(InvalidInput, match="go with --reweight"):
            reweighting_of(False, k, single_step)
