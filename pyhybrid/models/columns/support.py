"""Numbers of a column: its support, its decimals, its transformations.

A model's density is that of t(y / unit), not of y: log densities, Lipschitz bounds and epsilon
belong to the transformed scale. The density of y itself would add log t'(y), which no parameter
enters: the posterior is the same, but f_i and with it the bound would change by that term [S22].
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.values import column_like, is_number
from pyhybrid.privacy.histogram import in_steps

LARGEST = float(2**53)
"""Beyond this, about 9e15, floating point no longer holds every whole number."""

_Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, kw_only=True)
class Transform:
    """A strictly increasing function of y / unit, of y > 0 if `positive`, and its inverse."""

    forward: _Function
    inverse: _Function
    positive: bool = False


TRANSFORMS: Mapping[str, Transform] = {
    "identity": Transform(forward=np.positive, inverse=np.positive),
    "log": Transform(forward=np.log, inverse=np.exp, positive=True),
    "asinh": Transform(forward=np.arcsinh, inverse=np.sinh),
}
"""Transforms by name."""


FEW = 10
"""Whole numbers with at most so many different values may be codes: no model is chosen for them."""
_TRIES = 1000
_MOST_CODES, _RECORDS_OF_A_CODE = 5, 3
_NONE = r"1e\+\d\d|214748364[78]"  # no amount is so, of one record, too
_NINES, _ROUND = rf"[6-9.]+|9+[45]|.+e\+\d+|{_NONE}", r"[1-9]0*"  # 66, 888.8, 9995; -100
_USUAL_GAPS, _NO_YEAR = (5, 3), 5  # that an answer, and several, are above amounts; 0 below years


def plain_dtype(dtype: Any) -> Any:
    """numpy's dtype of the same numbers."""
    return next((getattr(dtype, n) for n in ("numpy_dtype", "subtype") if hasattr(dtype, n)), dtype)


def shortest(column: pd.Series) -> pd.Series:
    """Floats of four bytes as those of eight that are written alike: 0.1, not 0.10000000149."""
    if column.dtype not in ("float32", "Float32"):
        return column
    codes, values = pd.factorize(column.to_numpy(np.float32, na_value=np.nan))
    written = np.where(values == np.floor(values), values, values.astype(str).astype(np.float64))
    numbers = np.append(written, np.nan)
    return column_like(numbers[codes], column)


def limits_of_dtype(dtype: Any) -> tuple[float, float]:
    """Smallest and largest float that a column of this dtype can hold; infinite for floats."""
    if not pd.api.types.is_integer_dtype(dtype):
        return -np.inf, np.inf
    limits = np.iinfo(plain_dtype(dtype))
    highest = float(limits.max)
    if highest > limits.max:  # rounded up: 2^63
        highest = float(np.nextafter(highest, 0))
    return float(limits.min), highest


def support_said(outcome: str, ends: tuple[float, float] | None) -> tuple[str, ...]:
    """What a charge states of a declared support (inclusive ends, infinite for none)."""
    low, high = (-np.inf, np.inf) if ends is None else ends
    if np.isinf(low) and np.isinf(high):
        return ()
    least = "" if np.isinf(low) else f" at least {low:.15g}"
    most = "" if np.isinf(high) else f" at most {high:.15g}"
    return (
        f"Released values of {' '.join(outcome.split())} are{least}{' and' * bool(least and most)}"
        f"{most}, as declared: replicates are drawn from the model given that they are "
        "(truncated), which reads no record and costs nothing.",
    )


def draw_within(
    draw: Callable[[Any], FloatArray],
    n: int,
    limits: tuple[float, float],
    apart: Sequence[float] = (),
) -> FloatArray:
    """n outcomes by `draw`, which gets rows; those outside of the limits, or at values `apart`, are
    drawn again: the model given that it lies within, which costs nothing. Where it has next to no
    probability within, values are at the nearer end, with a warning."""
    low, high = limits
    values = draw(slice(None))
    left: npt.NDArray[np.intp] = np.arange(n)
    for _ in range(_TRIES):
        again = (values[left] < low) | (values[left] > high) | np.isin(values[left], apart)
        if not (left := left[again]).size:
            return values
        values[left] = draw(left)
    left = left[(values[left] < low) | (values[left] > high)]
    if left.size:  # far out, the truncated law is about that of its end
        values[left] = np.clip(values[left], low, high)
        warnings.warn(
            f"{left.size} of {n} synthetic values are at an end of the declared range: the model "
            "has next to no probability within it there; give another model, or other limits",
            stacklevel=2,
        )
    return values


_MOST_EACH, _RECORDS_OF_EACH = 60, 10
_MOST_READ = 8
_MOST_GIVEN = 15


def check_decimals(decimals: int | None) -> None:
    if decimals is not None and check_count(decimals, "decimals", at_least=0) > _MOST_GIVEN:
        raise InvalidInput(f"decimals must be at most {_MOST_GIVEN}: found {decimals}")


def decimals_of(values: FloatArray) -> int | None:
    """Smallest number of decimals, 0 to 8, and to 10 below 1000, that all values keep to but for
    the last digits of a float; None if there is none."""
    most = _MOST_READ + 2 * bool((np.abs(values) < 1000).all())
    error = 16 * np.finfo(np.float64).eps * np.maximum(np.abs(values), 1.0)
    for decimals in range(most + 1):
        if bool((np.abs(np.round(values, decimals) - values) <= error).all()):
            return decimals
    return None


def of_steps(whole: FloatArray, step: float) -> FloatArray:
    """So many steps as the float nearest to their decimals: 10.1, not 10.100000000000001."""
    decimals = decimals_of(np.array([step]))
    numbers = np.asarray(whole, dtype=np.float64) * step
    return numbers if decimals is None else np.round(numbers, decimals)


def snapped(values: FloatArray, step: float) -> FloatArray:
    """`values`, of which those that are multiples of `step` but for rounding are exactly so."""
    steps = in_steps(values, step)
    return np.where(steps == np.rint(steps), of_steps(steps, step), values)


def each_occurs(values: pd.Series) -> bool:
    """Whether numbers are few and whole, and many records have each from end to end, ten or a
    quarter of the mean, as of months or minutes: their ends seem to be what can occur."""
    levels, records = np.unique(values, return_counts=True)
    several = 1 < levels.size <= _MOST_EACH and records.mean() >= _RECORDS_OF_EACH / 2
    several = several and records.min() >= min(_RECORDS_OF_EACH, records.mean() / 4)
    return bool(several and levels[0] % 1 == 0 and (np.diff(levels) == 1).all())


def on_grid(
    values: FloatArray, decimals: int | None, lower: float = -math.inf, upper: float = math.inf
) -> FloatArray:
    """`values` rounded, and within the numbers of so many decimals in [lower, upper]."""
    if decimals is None:
        return np.clip(values, lower, upper)
    first, last = grid_ends(decimals, lower, upper)
    return np.clip(np.round(values, decimals), first, last)


def grid_ends(decimals: int, lower: float, upper: float) -> tuple[float, float]:
    """Smallest and largest number of so many decimals in [lower, upper]; InvalidInput if none."""
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


def in_form_of(values: FloatArray, like: pd.Series, decimals: int | None = None) -> pd.Series:
    """`values` as a column like `like`, in a wider dtype where whole numbers do not fit. `decimals`
    that are given decide whether they are whole: the data's dtype would tell of a record."""
    dtype, nullable = like.dtype, pd.api.types.is_extension_array_dtype(like.dtype)
    integer = pd.api.types.is_integer_dtype(dtype)
    whole = integer if decimals is None else decimals == 0
    widest: Any = (pd.Int64Dtype() if whole else pd.Float64Dtype()) if nullable else (
        np.dtype(np.int64 if whole else np.float64))  # fmt: skip
    if whole != integer:
        dtype = widest
    if whole:
        limits = np.iinfo(plain_dtype(dtype))
        fit = limits.min <= values.min(initial=0) and values.max(initial=0) <= limits.max
        dtype, values = dtype if fit else widest, values.astype(np.int64)
    return column_like(values, like).astype(dtype)


def codes_among(column: pd.Series) -> tuple[float, ...]:
    """Numbers that seem to be answers and no amounts: few, of several records each, and below 0, as
    -9, -8, -7 or -100, or of sixes to nines and far from all others, as 97, 98, 99, 888.8, -9999;
    0 among years; and what no amount is, as 1e20, of one record, too."""
    if not is_number(column):
        return ()
    values, counts = np.unique(column.dropna().to_numpy(dtype=np.float64), return_counts=True)
    if values.size <= FEW or not np.isfinite(values).all():
        return ()
    above = values.size - _answers(values, counts)
    codes, values, counts = [*values[above:]], values[:above], counts[:above]
    below = int((values < 0).sum())
    whole = values[0] > -100 and (values[:below] % 1 == 0).all()
    several = (counts[:below] >= _RECORDS_OF_A_CODE).all() and below <= values.size - 2
    told = several and (whole or _written(values[:below], rf"{_ROUND}|{_NINES}"))
    if not told or below > _MOST_CODES:
        below = _answers(-values[::-1], counts[::-1])
    codes, values, counts = [*codes, *values[:below]], values[below:], counts[below:]
    if values.size > 2 and values[0] == 0 < _NO_YEAR * np.ptp(values[1:]) < values[1]:
        codes += [0.0] * bool(counts[0] >= _RECORDS_OF_A_CODE)
    exact = {code for code in codes if code % 1 == 0 and abs(code) < LARGEST}
    return tuple(int(code) if code in exact else float(code) for code in sorted(codes))


def _answers(values: FloatArray, counts: npt.NDArray[Any]) -> int:
    """How many of the largest numbers, in order, are answers, of nines to sixes and apart."""
    for size in range(min(_MOST_CODES, values.size - 2), 0, -1):
        found, others = values[-size:], values[:-size]
        gap, usual = found[0] - others[-1], np.diff(others[-FEW:]).max()
        apart = 2 * gap > np.ptp(others)  # or 99 above ages to 85, which are close
        apart |= _written(found[-1:], r"[9.]+") and gap >= _USUAL_GAPS[size > 1] * usual
        few = found[counts[-size:] < _RECORDS_OF_A_CODE]
        if apart and found[0] > 0 and _written(found, _NINES) and _written(few, _NONE):
            return size
    return 0


def _written(values: FloatArray, pattern: str) -> bool:
    return all(re.fullmatch(pattern, f"{abs(value):.15g}") for value in values)
