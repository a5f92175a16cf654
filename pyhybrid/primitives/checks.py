"""Checks of the confidential values that primitives take; messages name records, never values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_finite, check_flag, check_vector
from pyhybrid.core.errors import InvalidInput

__all__ = ["check_bounds", "check_within"]


def check_bounds(lower: Any, upper: Any) -> tuple[float, float]:
    """Return stated bounds, lower < upper, or say why they cannot be read from the data."""
    for name, value in (("lower", lower), ("upper", upper)):
        if value is None or isinstance(value, str):
            raise InvalidInput(
                f"{name} must be a number: found {value!r}; bounds are never read from the data: "
                "give them, they are part of the guarantee"
            )
    low, high = check_finite(lower, "lower"), check_finite(upper, "upper")
    if low >= high:
        raise InvalidInput(f"lower must be below upper: found {low:g} and {high:g}")
    if math.isinf(high - low):
        raise InvalidInput(f"upper - lower must be finite: found {low:g} and {high:g}")
    return low, high


def check_within(values: Any, low: float, high: float, *, clamp: bool, name: str) -> FloatArray:
    """Return `values` (n,), finite and within [low, high]; those outside clamped if asked."""
    check_flag(clamp, "clamp")
    array = check_vector(values, name)
    infinite = np.flatnonzero(~np.isfinite(array))
    if infinite.size:
        raise InvalidInput(f"{name} must be finite: record {infinite[0]} is not")
    outside = np.flatnonzero((array < low) | (array > high))
    if outside.size and not clamp:
        raise InvalidInput(
            f"{name} must lie in [{low:g}, {high:g}]: record {outside[0]} does not; clamp=True "
            "moves such values to the nearer bound"
        )
    return np.clip(array, low, high)
