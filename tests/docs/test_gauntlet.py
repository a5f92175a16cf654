"""A part of the gauntlet: tables that statsmodels and scikit-learn carry, as a newcomer types."""

from pathlib import Path

import pandas as pd
import pytest

from benchmarks import gauntlet
from benchmarks.gauntlet import OPEN, Gauntlet


@pytest.mark.long
def test_cells_end_in_a_release_or_in_what_to_type(tmp_path: Path) -> None:
    """How far a mean is depends on the draw: one cell in 400 is more than three errors off."""
    table = Gauntlet(next(row for row in OPEN if row.name == "heart"), tmp_path)
    for cell in ("local", "utility", "risk", "report", "strict", "whole 1", "reference 1"):
        found = table.cell(cell)
        assert found["outcome"] != "failed" or str(found["cause"]).startswith("mean "), found


def test_what_a_column_cannot_hold_is_found() -> None:
    """Negative controls: each is a way in which a release was wrong."""
    known = pd.Series([0.5, 1.25, 3.0])
    assert gauntlet._beyond(pd.Series([0.75, 2.0, 1234567.89]), known) == ""
    assert gauntlet._beyond(pd.Series([-1.0]), known) == "values below 0"
    assert gauntlet._beyond(pd.Series([0.125]), known) == "3 decimals, not 2"
    assert "dtype" in gauntlet._beyond(pd.Series(["a"]), known)
    assert "1 levels" in gauntlet._beyond(pd.Series(["c"]), pd.Series(["a", "b"]))
