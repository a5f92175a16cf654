"""The audit of local charges by range: attained by no more than charged, both controls caught."""

from __future__ import annotations

from pyhybrid.validation.audits.local_ranges import HELD, RELEASED_ONLY, local_audits


def test_no_database_loses_more_than_its_range_and_both_controls_are_caught() -> None:
    found = local_audits()
    assert {(each.mechanism.split(",")[0], each.control) for each in found} == {
        (name, control)
        for name in ("LipschitzWeighted", "CountWeighted")
        for control in (HELD, RELEASED_ONLY)
    }
    for each in found:
        assert each.passed, each
        assert each.loss > 0.5 * each.epsilon, "the audit looks where it could see a violation"
