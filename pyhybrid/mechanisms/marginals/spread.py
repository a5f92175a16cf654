"""Uniform numbers that are evenly spread over the records of each group."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray

__all__ = ["spread"]


def spread(groups: npt.NDArray[np.int64], rng: np.random.Generator) -> FloatArray:
    """Numbers in [0, 1) for each record, evenly spread among those of its group, shape (n,)."""
    order = np.lexsort((rng.random(groups.size), groups))
    _, first, count = np.unique(groups[order], return_index=True, return_counts=True)
    place = np.arange(groups.size) - np.repeat(first, count)
    found = np.empty(groups.size)
    found[order] = (place + rng.random(groups.size)) / np.repeat(count, count)
    return found
