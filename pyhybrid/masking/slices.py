"""Draws that hold for many records at once: elliptical slices and truncated normals.

References
----------
Murray, Adams, MacKay (2010), Elliptical slice sampling, AISTATS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from pyhybrid.checks import FloatArray

__all__ = ["draw_levels", "elliptical_slice", "truncated_normal"]

_MOST_SHRINKS = 200


def elliptical_slice(
    current: FloatArray,
    mean: FloatArray,
    prior_draw: FloatArray,
    log_likelihood: Callable[[FloatArray, npt.NDArray[np.intp]], FloatArray],
    rng: np.random.Generator,
) -> FloatArray:
    """One update of each record under its normal prior and its own likelihood.

    Parameters
    ----------
    current : ndarray, shape (n, d)
        Where the records stand.
    mean : ndarray, shape (n, d)
        Prior means.
    prior_draw : ndarray, shape (n, d)
        Draws from the prior less its mean.
    log_likelihood : callable
        Takes values (k, d) and the k records they belong to; returns (k,).
    """
    n = len(current)
    centred, moved = current - mean, current.copy()
    rows = np.arange(n)
    level = log_likelihood(current, rows) + np.log(rng.random(n))
    angle = rng.uniform(0, 2 * np.pi, n)
    low, high = angle - 2 * np.pi, angle.copy()
    for _ in range(_MOST_SHRINKS):
        cos, sin = np.cos(angle[rows])[:, None], np.sin(angle[rows])[:, None]
        tried = mean[rows] + cos * centred[rows] + sin * prior_draw[rows]
        inside = ~(log_likelihood(tried, rows) < level[rows])
        moved[rows[inside]] = tried[inside]
        rows = rows[~inside]
        if not rows.size:
            break
        left = angle[rows] < 0
        low[rows[left]], high[rows[~left]] = angle[rows[left]], angle[rows[~left]]
        angle[rows] = rng.uniform(low[rows], high[rows])
    return np.asarray(moved)


def truncated_normal(
    mean: Any, sd: Any, low: Any, high: Any, rng: np.random.Generator
) -> FloatArray:
    """Draws from N(mean, sd^2) within [low, high], by inversion."""
    a, b = (np.asarray(low) - mean) / sd, (np.asarray(high) - mean) / sd
    turned = a > -b  # the mass lies to the right: mirror it, where probabilities keep their digits
    a, b = np.where(turned, -b, a), np.where(turned, -a, b)
    under, over = ndtr(a), ndtr(b)
    z = ndtri(under + rng.random(over.shape) * (over - under))
    lost = over == 0  # beyond 37 sd, where the normal falls like an exponential
    if lost.any():
        z[lost] = b[lost] - rng.exponential(size=int(lost.sum())) / np.abs(b[lost])
    z = np.clip(z, a, b)
    return np.asarray(mean + sd * np.where(turned, -z, z))


def draw_levels(log_weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """One level of each record, with probabilities proportional to exp(log_weights) (n, levels)."""
    noise = rng.gumbel(size=log_weights.shape)
    return np.asarray((log_weights + noise).argmax(axis=1))
