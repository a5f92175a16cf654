"""One quantity, computed twice: the two numbers, how far apart they are and may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray

__all__ = ["ARITHMETIC", "ERRORS", "EXACT", "MONTE_CARLO", "RELATIVE", "UNITS", "Row", "compare"]

EXACT = 1e-12
"""Relative tolerance of the same formula on the same numbers."""
ARITHMETIC = 1e-10
"""Relative tolerance of the same quantity through a log-likelihood computed twice."""
MONTE_CARLO = 5.0
"""Tolerance between posterior means, in Monte Carlo standard errors of their difference."""

RELATIVE, ERRORS = "relative", "standard error"
UNITS = {RELATIVE: "relative difference", ERRORS: "difference in Monte Carlo standard errors"}
"""The units of differences in words."""
_FLOOR = 1e-3  # numbers below it are results of differences from 1: their error is absolute


@dataclass(frozen=True, kw_only=True)
class Row:
    """A quantity in both languages. Confidential if it was computed from a user's own table.

    Attributes
    ----------
    part : str
        Which part of the comparison it belongs to.
    quantity : str
        What was computed.
    python, r : float
        The values of the two `sides`; of several numbers the pair that is furthest apart, and if
        all are the same the largest.
    difference : float
        Largest difference over all numbers, in `unit`; infinite if shapes differ.
    tolerance : float
        Largest difference that is still agreement.
    unit : {"relative", "standard error"}
        Relative to the larger of the two numbers (at least 0.001), or in Monte Carlo standard
        errors of the difference of two posterior means.
    numbers : int
        How many pairs of numbers were compared.
    sides : tuple of two str, default ("Python", "R")
        What was held against what: two engines of Python's by name, where neither is R's.
    """

    part: str
    quantity: str
    python: float
    r: float
    difference: float
    tolerance: float
    unit: str = RELATIVE
    numbers: int = 1
    sides: tuple[str, str] = ("Python", "R")

    @property
    def agrees(self) -> bool:
        """True if the difference is within the tolerance; a NaN is not."""
        return bool(self.difference <= self.tolerance)


def compare(
    part: str,
    quantity: str,
    python: Any,
    r: Any,
    *,
    tolerance: float = EXACT,
    to_largest: bool = False,
) -> Row:
    """Compare two values of one quantity: numbers, arrays, or records of them.

    Parameters
    ----------
    part, quantity : str
    python, r : float, array_like, mapping or dataclass
        Of two records the numeric fields that both have are compared.
    tolerance : float
        Relative.
    to_largest : bool, default False
        Take differences relative to the largest number of all instead of element by element, for
        results of sums in which digits cancel.
    """
    left, right = _numbers(python, r)
    if left.shape != right.shape or left.size == 0:
        return Row(
            part=part,
            quantity=f"{quantity}: shapes {left.shape} and {right.shape}",
            python=np.nan,
            r=np.nan,
            difference=np.inf,
            tolerance=tolerance,
            numbers=max(left.size, right.size),
        )
    left, right = left.ravel(), right.ravel()
    apart = _differences(left, right, to_largest)
    with np.errstate(invalid="ignore"):
        size = np.where(np.isfinite(left), np.abs(left), -1.0)
    place = int(np.argmax(apart)) if apart.max() > 0 else int(np.argmax(size))
    return Row(
        part=part,
        quantity=quantity,
        python=float(left[place]),
        r=float(right[place]),
        difference=float(apart.max()),
        tolerance=tolerance,
        numbers=left.size,
    )


def _differences(left: FloatArray, right: FloatArray, to_largest: bool) -> FloatArray:
    """Relative differences, 0 for equal infinities and two NaN, infinite for unlike ones."""
    size = np.maximum(np.maximum(np.abs(left), np.abs(right)), _FLOOR)
    if to_largest:
        size = np.full_like(size, size.max())
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right) / size
    apart = np.where(np.isnan(apart), np.inf, apart)
    return np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, apart)


def _numbers(python: Any, r: Any) -> tuple[FloatArray, FloatArray]:
    """Both values as arrays of like meaning."""
    if is_dataclass(python) and not isinstance(python, type):
        python = asdict(python)
    if not isinstance(python, Mapping):
        return _array(python), _array(r)
    shared = [name for name in python if name in r and not isinstance(python[name], str)]
    left = [_array(python[name]) for name in shared]
    right = [_array(r[name]) for name in shared]
    if [a.shape for a in left] != [b.shape for b in right]:
        return np.zeros(sum(a.size for a in left)), np.zeros(sum(b.size for b in right) + 1)
    join = [np.concatenate([a.ravel() for a in side] or [np.zeros(0)]) for side in (left, right)]
    return join[0], join[1]


def _array(value: Any) -> FloatArray:
    """A value without axes of length 1: R has no scalars, and Python has no columns."""
    return np.atleast_1d(np.squeeze(np.asarray(value, dtype=np.float64)))
