"""How many decimals released values have: given by the user, or read from the data and said so.

Read from the data, the number is a function of all records that no epsilon covers: one record with
a further decimal changes every released value. A charge is strict only where it is given.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.support import plain_dtype
from pyhybrid.privacy.histogram import in_steps

__all__ = [
    "check_decimals",
    "decimals_of",
    "grid_ends",
    "in_decimals",
    "in_dtype_of",
    "in_form_of",
    "of_steps",
    "on_grid",
    "snapped",
]

_MOST_READ = 8
_MOST_GIVEN = 15


def check_decimals(decimals: int | None) -> None:
    """Raise InvalidInput unless `decimals` is None or a whole number from 0 to 15."""
    if decimals is not None and check_count(decimals, "decimals", at_least=0) > _MOST_GIVEN:
        raise InvalidInput(f"decimals must be at most {_MOST_GIVEN}: found {decimals}")


def decimals_of(values: FloatArray) -> int | None:
    """Smallest number of decimals, 0 to 8, that all values keep to; None if there is none."""
    for decimals in range(_MOST_READ + 1):
        if np.array_equal(np.round(values, decimals), values):
            return decimals
    return None


def of_steps(whole: FloatArray, step: float) -> FloatArray:
    """So many steps as the float nearest to their decimals: 10.1, not 10.100000000000001."""
    decimals = decimals_of(np.array([step]))
    own = np.asarray(whole, dtype=np.float64) * step
    return own if decimals is None else np.round(own, decimals)


def snapped(values: FloatArray, step: float) -> FloatArray:
    """`values`, of which those that are multiples of `step` but for rounding are exactly so."""
    steps = in_steps(values, step)
    return np.where(steps == np.rint(steps), of_steps(steps, step), values)


def on_grid(
    values: FloatArray, decimals: int | None, lower: float = -math.inf, upper: float = math.inf
) -> FloatArray:
    """`values` rounded, and within the numbers of so many decimals in [lower, upper]."""
    if decimals is None:
        return np.clip(values, lower, upper)
    first, last = grid_ends(decimals, lower, upper)
    return np.clip(np.round(values, decimals), first, last)


def grid_ends(decimals: int, lower: float, upper: float) -> tuple[float, float]:
    """Smallest and largest number of so many decimals in [lower, upper].

    Raises
    ------
    InvalidInput
        If there is none.
    """
    step = 10.0**-decimals
    first, last = round(lower, decimals), round(upper, decimals)
    first = first if first >= lower else round(first + step, decimals)
    last = last if last <= upper else round(last - step, decimals)
    if first > last:
        raise InvalidInput(
            f"decimals must leave values between lower and upper: none of {decimals} decimals lies "
            f"in [{lower:g}, {upper:g}]"
        )
    return first, last


def in_decimals(values: FloatArray, like: pd.Series, decimals: int) -> pd.Series:
    """`values` as a column whose dtype `decimals` decides: whole numbers if it is 0, else floats.

    A column of whole numbers that was read from text is of an integer dtype, and of a float one
    as soon as one record has a decimal: the dtype of the data would tell.
    """
    if decimals > 0 and not pd.api.types.is_integer_dtype(like.dtype):
        return pd.Series(values, index=like.index, name=like.name).astype(like.dtype)
    whole, nullable = decimals == 0, pd.api.types.is_extension_array_dtype(like.dtype)
    made: pd.Series = pd.Series(
        values.astype("int64" if whole else "float64"), index=like.index, name=like.name
    )
    if nullable:
        made = made.astype(pd.Int64Dtype() if whole else pd.Float64Dtype())
    return made


def in_form_of(values: FloatArray, like: pd.Series, decimals: int | None) -> pd.Series:
    """`values` as a column in the dtype of `like`, or in the one that `decimals` given decide."""
    if decimals is None or (decimals == 0 and pd.api.types.is_integer_dtype(like.dtype)):
        return in_dtype_of(values, like)
    return in_decimals(values, like, decimals)


def in_dtype_of(values: FloatArray, like: pd.Series) -> pd.Series:
    """`values` with the index and dtype of `like`; a wider integer dtype if they do not fit."""
    if not pd.api.types.is_integer_dtype(like.dtype):
        return pd.Series(values, index=like.index, name=like.name).astype(like.dtype)
    whole = pd.Series(values.astype(np.int64), index=like.index, name=like.name)
    limits = np.iinfo(plain_dtype(like.dtype))
    if limits.min <= values.min() and values.max() <= limits.max:
        return whole.astype(like.dtype)
    return whole.astype("Int64") if pd.api.types.is_extension_array_dtype(like.dtype) else whole
