"""The audit of rounds: what they cost together, and a round that is not charged is seen."""

from __future__ import annotations

import pytest

from pyhybrid.validation.audits.rounds import rounds_audits


@pytest.mark.long
def test_rounds_pass_and_one_that_is_not_charged_is_caught() -> None:
    found = rounds_audits()
    assert [f.relation for f in found if f.passed] == ["remove", "replace"]
    assert all(f.loss > 0.6 for f in found), "near enough to epsilon to see what is above it"
