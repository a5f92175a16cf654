"""A column of survey weights: how many members of the population a record stands for."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput

_LARGEST = 1e15
"""Of a weight: beyond it sums and shares leave what floats can hold."""


def survey_weights(column: pd.Series, name: str, *, zero: bool = False) -> FloatArray:
    """The weights (n,), each from 1e-15 to 1e15, or 0 if that may be; others are refused."""
    try:
        weight = np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise InvalidInput(f"survey weights {name!r} must be numbers") from None
    allowed = (weight >= 0) & weight.any() if zero else weight > 0
    wrong = np.flatnonzero(~(np.isfinite(weight) & allowed))
    if wrong.size:
        raise InvalidInput(
            f"survey weights {name!r} must be {'0 or more, not all 0,' if zero else 'above 0'} and "
            f"not missing: {wrong.size} of "
            f"{weight.size} are not; leave these records out"
        )
    if weight.size and (weight.max() > _LARGEST or weight[weight > 0].min() < 1 / _LARGEST):
        raise InvalidInput(f"survey weights {name!r} must be from {1 / _LARGEST:g} to {_LARGEST:g}")
    return weight
