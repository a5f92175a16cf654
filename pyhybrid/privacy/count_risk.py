"""Count risk: radius risk and pairwise risk from the sensitive values alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    IntArray,
    check_choice,
    check_each,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput

_MISSING = ("nan", "NaT", "<NA>")


def radius_risk(
    y: Any, *, radius: float = 0.2, kind: str = "relative", pattern: Any = None
) -> FloatArray:
    """Share of records outside the closed ball around each record's value (count risk IR_i).

    O(n log n); |y_j - y_i| <= r_i is decided in floating point exactly as a double loop would
    [H22] sec. 2; [V25] alg. 3. Of categories coded by integers, an absolute radius of 0.5 counts
    those in another category: uniqueness of the record's own, or its isolation within `pattern`.

    Parameters
    ----------
    y : array_like, shape (n,)
        Sensitive values, finite.
    radius : float, default 0.2
        Above 0; a share of |y_i| (``kind="relative"``) or in the unit of y (``"absolute"``).
        Published values are 0.15, 0.20, 0.25 and 0.30, relative.
    kind : {"relative", "absolute"}
        With a relative radius, y_i = 0 is matched by exact ties only.
    pattern : array_like, shape (n,) or (n, p), optional
        What an intruder knows of each record (categorical). Records are compared, and the share
        is taken, only among those with the same pattern.

    Returns
    -------
    ndarray, shape (n,)
        IR_i in [0, 1); the record itself counts as inside. A record alone in its pattern gets 0.
    """
    return _by_pattern(y, radius, kind, pattern, pairwise=False)


def pairwise_risk(
    y: Any, *, radius: float = 0.2, kind: str = "relative", pattern: Any = None
) -> FloatArray:
    """Average over j != i of IR_ij, the share of records outside both balls of i and j.

    Parameters and errors as in `radius_risk`; a record alone in its pattern has no partner and
    gets its radius risk, 0. O(n log n): balls are intervals of the sorted values, so that the sum
    over j of the overlaps of i and j is a difference of two prefix sums. Shape (n,), in [0, 1); the
    weight of [H22] sec. 3 (pairwise identification risk) is one minus this (`count_weights`).
    """
    return _by_pattern(y, radius, kind, pattern, pairwise=True)


def _by_pattern(y: Any, radius: float, kind: str, pattern: Any, *, pairwise: bool) -> FloatArray:
    values = check_vector(y, "y")
    check_each(np.isfinite(values), "y must be finite: record {} is not")
    check_positive(radius, "radius")
    check_choice(kind, "kind", ("relative", "absolute"))
    groups = [np.arange(values.size)] if pattern is None else _groups(pattern, values.size)
    risk = np.empty(values.size)
    for rows in groups:
        risk[rows] = _in_group(values[rows], radius, kind, pairwise)
    return risk


def _in_group(y: FloatArray, radius: float, kind: str, pairwise: bool) -> FloatArray:
    """Balls are half-open ranges [low, high) of the d sorted distinct values, `times` records at
    each; `sizes` counts the records in the ball about each value."""
    distinct, place, times = np.unique(y, return_inverse=True, return_counts=True)
    n, d = y.size, distinct.size
    reach = radius * np.abs(distinct) if kind == "relative" else np.full(d, radius)
    # distinct -+ reach would be rounded; |y_j - y_i| <= r_i, as computed, is the definition, and it
    # is monotone in y_j on either side of y_i.
    here = np.arange(d)
    low = _first(np.zeros_like(here), here, lambda j: distinct - distinct[j] <= reach)
    high = _first(
        here + 1, np.full_like(here, d), lambda j: distinct[np.minimum(j, d - 1)] - distinct > reach
    )
    before = np.concatenate(([0], np.cumsum(times)))
    sizes = before[high] - before[low]
    if not pairwise or n == 1:
        return np.asarray((1 - sizes / n)[place])
    # cover[v]: how many of the n balls contain the distinct value v.
    edges = np.bincount(low, times, minlength=d + 1) - np.bincount(high, times, minlength=d + 1)
    overlap = np.concatenate(([0], np.cumsum(times * np.cumsum(edges)[:d])))
    shared = overlap[high] - overlap[low] - sizes  # sum over j != i
    inside_either = (n - 1) * sizes + (times @ sizes - sizes) - shared
    return np.asarray((1 - inside_either / (n * (n - 1)))[place])


def _first(
    low: IntArray, high: IntArray, holds: Callable[[IntArray], npt.NDArray[np.bool_]]
) -> IntArray:
    """Smallest index in low .. high - 1 at which `holds` turns true, `high` if none; vectorized."""
    while (low < high).any():
        middle = (low + high) // 2
        holds_here = holds(middle) | (low >= high)
        low, high = (
            np.where(holds_here, low, middle + 1),
            np.where(holds_here, np.minimum(middle, high), high),
        )
    return low


def _groups(pattern: Any, n: int) -> Sequence[IntArray]:
    columns = np.asarray(pattern, dtype=object)
    if columns.shape[:1] != (n,) or columns.ndim > 2:
        raise InvalidInput(
            f"pattern must have shape (n,) or (n, p), n = {n}: found {columns.shape}"
        )
    code = np.zeros(n, dtype=np.intp)
    for column in columns.reshape(n, -1).T:
        # A missing value is a value of its own, the same for all records that miss it.
        values = [
            "missing" if value is None or str(value) in _MISSING else (value,)
            for value in column.tolist()
        ]
        levels = {value: place for place, value in enumerate(dict.fromkeys(values))}
        level = np.array([levels[value] for value in values], dtype=np.intp)
        code = np.unique(code * len(levels) + level, return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code))[:-1])
