"""Audits of centered censoring: each passes, and one that cannot see a broken mechanism fails."""

from __future__ import annotations

import pytest

from pyhybrid.validation.audits.centered import centered_audits

pytestmark = pytest.mark.samples


def test_centered_posteriors_pass_and_their_controls_are_caught() -> None:
    found = centered_audits({"engine": "embedded", "seed": 1})
    assert [f.mechanism for f in found if not f.passed] == []
    assert len(found) == 8
    assert {f.control_loss > 1.05 for f in found} == {True}, "the least of the broken ones"
    assert all(f.loss > 0.5 for f in found), "near enough to epsilon to see what is above it"
