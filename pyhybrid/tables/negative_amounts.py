"""Whether a plan models amounts below zero by the predictors: from a reference that has enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pyhybrid.models.registry import PREDICTED

__all__ = ["FEWEST_BELOW_ZERO", "below_zero"]

FEWEST_BELOW_ZERO = 100
"""Records of a reference below zero from which their sign and size are told by the predictors."""


def below_zero(
    name: str, options: Mapping[str, Any], reference: pd.DataFrame | None
) -> tuple[dict[str, Any], list[str]]:
    """Settings of a column's model with its `negative`, and what the plan notes of it."""
    if options.get("negative") is not True:
        return dict(options), []
    found = 0 if reference is None or name not in reference else int((reference[name] < 0).sum())
    if found >= FEWEST_BELOW_ZERO:
        return {**options, "negative": PREDICTED}, []
    note = (
        f"{name}: whether and how far below zero is modeled without predictors, as the reference "
        f"has fewer than {FEWEST_BELOW_ZERO} such records or is missing; negative="
        f"{PREDICTED!r} in its options takes them"
    )
    return dict(options), [note]
