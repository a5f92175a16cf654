"""Audits of centered censoring: each passes, and one that cannot see a broken mechanism fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyhybrid.audits.centered import centered_audits
from pyhybrid.mechanisms.center import Center


def test_centered_posteriors_pass_and_their_controls_are_caught() -> None:
    found = centered_audits({"engine": "embedded", "seed": 1})
    assert [f.mechanism for f in found if not f.passed] == []
    assert len(found) == 8
    assert all(f.loss > 0.5 for f in found), "near enough to epsilon to see what is above it"


def test_an_excess_that_is_not_charged_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times what the calibration charged for."""
    own = Center.excess_on

    def larger(center: Center, *where: Any) -> np.ndarray:
        return 10 * own(center, *where)

    made: list[Any] = []
    # Calibrations are made before: only what the mechanism adds is larger.
    from pyhybrid.audits import centered

    calibrate = centered.calibrate

    def honest(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(Center, "excess_on", own)
        made.append(calibrate(*args, **options))
        monkeypatch.setattr(Center, "excess_on", larger)
        return made[-1]

    monkeypatch.setattr(centered, "calibrate", honest)
    found = centered_audits({"engine": "embedded", "seed": 1})
    assert any(not f.holds for f in found if f.relation == "remove")
    assert all(f.holds for f in found if f.relation == "replace"), "n is the same: it cancels"
