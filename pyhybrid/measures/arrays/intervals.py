"""Inference on synthetic data against inference on the data: interval overlap, distances.

References
----------
[JC] Jiang (2025), short course on data privacy; Karr, Kohnen, Oganian, Reiter, Sanil (2006),
The American Statistician 60:224-232.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_numeric
from pyhybrid.core.errors import InvalidInput

__all__ = ["interval_overlap", "standardised_difference"]


def interval_overlap(original: Any, synthetic: Any) -> FloatArray:
    """Half of [overlap / original length + overlap / synthetic length].

    overlap = min(upper ends) - max(lower ends), negative for disjoint intervals, by how far they
    are apart. 1 for equal intervals, at most 0 for disjoint ones, without a lower end.

    Parameters
    ----------
    original, synthetic : array_like, shape (2,) or (2, p)
        Lower and upper ends, finite; lower < upper. Two equal intervals may have no length.

    Returns
    -------
    ndarray, shape () or (p,)

    Raises
    ------
    InvalidInput
        For unlike shapes, ends that are not finite, or an interval without length.

    References
    ----------
    [JC], utility of inference.

    Examples
    --------
    >>> float(interval_overlap([0, 2], [1, 3]))
    0.5
    """
    first, second = check_numeric(original, "original"), check_numeric(synthetic, "synthetic")
    if first.shape != second.shape or first.shape[:1] != (2,) or first.ndim > 2:
        raise InvalidInput(
            "original and synthetic must share a shape (2,) or (2, p): found "
            f"{first.shape} and {second.shape}"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InvalidInput("ends of intervals must be finite")
    equal = (first == second).all(axis=0)
    lengths = [each[1] - each[0] for each in (first, second)]
    if ((np.minimum(*lengths) <= 0) & ~equal).any():
        raise InvalidInput("intervals must have a length above 0: lower < upper")
    shared = np.minimum(first[1], second[1]) - np.maximum(first[0], second[0])
    with np.errstate(invalid="ignore"):
        found = 0.5 * (shared / lengths[0] + shared / lengths[1])
    return np.asarray(np.where(equal, 1.0, found))


def standardised_difference(original: Any, synthetic: Any, standard_error: Any) -> FloatArray:
    """abs(original - synthetic) / standard error of the original estimate, from 0.

    Parameters
    ----------
    original, synthetic : array_like, shape () or (p,)
        Point estimates, finite.
    standard_error : array_like, shape () or (p,)
        Of the original ones, above 0.
    """
    parts = [
        check_numeric(values, name)
        for values, name in (
            (original, "original"),
            (synthetic, "synthetic"),
            (standard_error, "standard_error"),
        )
    ]
    if len({part.shape for part in parts}) > 1 or not all(np.isfinite(p).all() for p in parts):
        raise InvalidInput("original, synthetic and standard_error must be finite, of one shape")
    if not (parts[2] > 0).all():
        raise InvalidInput("standard_error must be above 0")
    return np.asarray(np.abs(parts[0] - parts[1]) / parts[2])
