"""How numbers are written in reports and on the terminal: one way for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.releases.statement import in_words

__all__ = ["interval_text", "number_text", "setting_text"]


def number_text(value: Any) -> str:
    """A value as people write it: 54,508, 0.0123, 1.2e-07, yes, none.

    Not for an epsilon, which was rounded up and is shown in full: `epsilon_text`.
    """
    if value is None:
        return "none"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if np.isnan(value):
        return "–"
    if value == 0 or abs(value) >= 1e-4:
        return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.4g}"
    return f"{value:.1e}".replace(".0e", "e")


def setting_text(value: object) -> str:
    """A setting as people write it: a number, or what a mapping or a list holds, in words."""
    return in_words(value) if isinstance(value, (Mapping, list, tuple)) else number_text(value)


def interval_text(row: pd.Series, prefix: str = "", *, gap: str = " ") -> str:
    """Estimate and interval of a row with `estimate`, `lower` and `upper`, after `prefix`."""
    ends = (row[f"{prefix}{name}"] for name in ("estimate", "lower", "upper"))
    estimate, lower, upper = map(number_text, ends)
    return f"{estimate}{gap}[{lower}, {upper}]"
