"""Count risk of single records: radius risk and pairwise risk, from the sensitive values alone.

References
----------
[H22] Hu, Savitsky, Williams (2022), JSSAM 10:1370-1399.
[V25] Hu, Savitsky, Williams, Maximizing utility for vector-weighted pseudo posterior mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput

__all__ = [
    "Balls",
    "balls_around",
    "pairwise_risk",
    "radius_risk",
    "values_by_pattern",
]


IntArray = npt.NDArray[np.intp]


def radius_risk(
    y: Any, *, radius: float = 0.2, kind: str = "relative", pattern: Any = None
) -> FloatArray:
    """Share of records outside the closed ball around each record's value (count risk IR_i).

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

    Raises
    ------
    InvalidInput
        For radius <= 0, an unknown kind, non-finite values or a pattern of another length.

    Notes
    -----
    O(n log n). |y_j - y_i| <= r_i is decided in floating point exactly as a double loop would.

    References
    ----------
    [H22] sec. 2; [V25] alg. 3.
    """
    values, groups = values_by_pattern(y, radius, kind, pattern)
    risk = np.empty(values.size)
    for rows in groups:
        balls = balls_around(values[rows], radius, kind)
        risk[rows] = 1 - balls.sizes / rows.size
    return risk


def pairwise_risk(
    y: Any, *, radius: float = 0.2, kind: str = "relative", pattern: Any = None
) -> FloatArray:
    """Average over j != i of IR_ij, the share of records outside both balls of i and j.

    Parameters and errors as in `radius_risk`; a record alone in its pattern has no partner and
    gets its radius risk, 0. O(n log n): balls are intervals of the sorted values, so that the sum
    over j of the overlaps of i and j is a difference of two prefix sums.

    Returns
    -------
    ndarray, shape (n,)
        Pairwise risk in [0, 1); the weight of [H22] is one minus this (`count_weights`).

    References
    ----------
    [H22] sec. 3 (pairwise identification risk).
    """
    values, groups = values_by_pattern(y, radius, kind, pattern)
    risk = np.empty(values.size)
    for rows in groups:
        risk[rows] = _pairwise_in_group(balls_around(values[rows], radius, kind))
    return risk


@dataclass(frozen=True, kw_only=True, eq=False)
class Balls:
    """Closed balls as half-open ranges [low, high) of the sorted distinct values."""

    low: IntArray  # (n,)
    high: IntArray  # (n,)
    multiplicity: IntArray  # (d,) records at each distinct value
    sizes: IntArray  # (n,) records inside each ball


def balls_around(y: FloatArray, radius: float, kind: str) -> Balls:
    distinct, place, multiplicity = np.unique(y, return_inverse=True, return_counts=True)
    reach = radius * np.abs(distinct) if kind == "relative" else np.full(distinct.size, radius)
    # distinct -+ reach would be rounded; |y_j - y_i| <= r_i, as computed, is the definition, and it
    # is monotone in y_j on either side of y_i.
    own = np.arange(distinct.size)
    low = _first(np.zeros_like(own), own, lambda j: distinct - distinct[j] <= reach)
    last = distinct.size - 1
    high = _first(
        own + 1,
        np.full_like(own, distinct.size),
        lambda j: distinct[np.minimum(j, last)] - distinct > reach,
    )
    before = np.concatenate(([0], np.cumsum(multiplicity)))
    sizes = before[high] - before[low]
    return Balls(low=low[place], high=high[place], multiplicity=multiplicity, sizes=sizes[place])


def _first(
    low: IntArray, high: IntArray, holds: Callable[[IntArray], npt.NDArray[np.bool_]]
) -> IntArray:
    """Smallest index in low .. high - 1 at which `holds` turns true, `high` if none; vectorized."""
    while (low < high).any():
        middle = (low + high) // 2
        found = holds(middle) | (low >= high)
        low, high = (
            np.where(found, low, middle + 1),
            np.where(found, np.minimum(middle, high), high),
        )
    return low


def _pairwise_in_group(balls: Balls) -> FloatArray:
    n = balls.sizes.size
    if n == 1:
        return np.zeros(1)
    d = balls.multiplicity.size
    # cover[v]: how many of the n balls contain the distinct value v.
    edges = np.bincount(balls.low, minlength=d + 1) - np.bincount(balls.high, minlength=d + 1)
    cover = np.cumsum(edges)[:d]
    overlap = np.concatenate(([0], np.cumsum(balls.multiplicity * cover)))
    shared = overlap[balls.high] - overlap[balls.low] - balls.sizes  # sum over j != i
    others = balls.sizes.sum() - balls.sizes
    inside_either = (n - 1) * balls.sizes + others - shared
    return np.asarray(1 - inside_either / (n * (n - 1)))


def values_by_pattern(
    y: Any, radius: float, kind: str, pattern: Any
) -> tuple[FloatArray, Sequence[IntArray]]:
    values = check_vector(y, "y")
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise InvalidInput(f"y must be finite: record {wrong[0]} is not")
    check_positive(radius, "radius")
    check_choice(kind, "kind", ("relative", "absolute"))
    if pattern is None:
        return values, [np.arange(values.size)]
    return values, _groups(pattern, values.size)


def _is_missing(value: Any) -> bool:
    return value is None or str(value) in ("nan", "NaT", "<NA>")


def _groups(pattern: Any, n: int) -> Sequence[IntArray]:
    columns = np.asarray(pattern, dtype=object)
    if columns.shape[:1] != (n,) or columns.ndim > 2:
        raise InvalidInput(
            f"pattern must have shape (n,) or (n, p), n = {n}: found {columns.shape}"
        )
    code = np.zeros(n, dtype=np.intp)
    for column in columns.reshape(n, -1).T:
        # A missing value is a value of its own, the same for all records that miss it.
        values = ["missing" if _is_missing(value) else (value,) for value in column.tolist()]
        levels = {value: place for place, value in enumerate(dict.fromkeys(values))}
        own = np.array([levels[value] for value in values], dtype=np.intp)
        code = np.unique(code * len(levels) + own, return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code))[:-1])
