"""Audits of noisy marginals: attained exactly, each broken mechanism caught."""

from __future__ import annotations

import math

import pytest

from pyhybrid.audits.marginals import marginals_audits
from tests.conftest import require

try:
    import opendp
except ImportError:
    opendp = None


def test_the_loss_is_attained_and_the_broken_ones_are_caught() -> None:
    require(opendp is not None, "opendp must be installed")
    found = marginals_audits()
    assert all(each.passed for each in found)
    assert [each.loss for each in found] == [pytest.approx(1.0)] * len(found)
    losses = {(each.relation, each.control): each.control_loss for each in found}
    for relation in ("replace", "remove"):
        assert losses[relation, "noise / 2"] == pytest.approx(2.0)
        assert losses[relation, "a table not charged"] == pytest.approx(1.5)
        assert losses[relation, "levels read"] == math.inf
