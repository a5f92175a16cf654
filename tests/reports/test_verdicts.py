"""What the verdicts of curves and comparisons name, and what they do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from pyhybrid.reports.verdicts import _costs_more, _mean_lost


def _curve(errors: list[float], standard_error: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "mechanism": ["Unweighted", *["LW"] * len(errors)],
            "error_mean": [0.1, *errors],
            "error_mean_se": standard_error,
        }
    )


def test_a_curve_names_weights_that_lose_the_mean_beyond_chance() -> None:
    (said,) = _mean_lost(_curve([0.1, 0.9, 0.8], standard_error=0.1))
    assert said.startswith("LW: ")
    assert "at 2 of 3 points" in said
    assert _mean_lost(_curve([0.1, 0.9, 0.8], standard_error=1.0)) == []


def _release(epsilon: float, risk: str | None = None, scale: float = 1.0) -> Any:
    return SimpleNamespace(
        charge=SimpleNamespace(epsilon=epsilon, accounting="gaussian"),
        reweighted=None if risk is None else SimpleNamespace(risk=risk),
        settings={"scale": scale, "reweighting": risk is not None},
    )


@pytest.mark.parametrize(
    ("risk", "kept"), [("size", "the Lipschitz bound"), ("deviation", "the deviation")]
)
def test_a_comparison_names_reweighting_that_costs_more(risk: str, kept: str) -> None:
    def said(before: Any, after: Any) -> list[str]:
        return _costs_more(SimpleNamespace(releases={"LW": before, "LW_final": after}))  # type: ignore[arg-type]

    (found,) = said(_release(2.0), _release(3.0, risk))
    assert found.startswith("LW_final costs more than LW: epsilon 3 against 2.")
    assert kept in found
    assert said(_release(3.0), _release(2.0, risk)) == []
    assert said(_release(2.0, scale=0.5), _release(3.0, risk)) == [], "other weights"
