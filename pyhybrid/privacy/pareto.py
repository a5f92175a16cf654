r"""Pareto smoothing of importance weights, on arrays.

The largest weights of each column are replaced by quantiles of a generalized Pareto distribution
fitted to them; its shape k tells how far the weights can be trusted. ArviZ has this (`psislw`) and
the tests hold both together; it is written here because the array layer needs numpy and scipy only,
R has the same function without another package, and ArviZ takes seconds to import.

References
----------
[V17] Vehtari, Gelman, Gabry (2017), Practical Bayesian model evaluation using leave-one-out
cross-validation and WAIC, Statistics and Computing 27:1413-1432.
[ZS09] Zhang, Stephens (2009), A new and efficient estimation method for the generalized Pareto
distribution, Technometrics 51:316-325.
"""

from __future__ import annotations

import math

import numpy as np

from pyhybrid.core.checks import FloatArray

__all__ = ["RELIABLE_K", "smoothed_log_weights"]

RELIABLE_K = 0.7
_FEWEST = 5
_SMALLEST = math.log(np.finfo(float).tiny)
_CONSTANT = 1e-10


def smoothed_log_weights(log_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smoothed log weights, not normalized, and the Pareto shape k of each column.

    Parameters
    ----------
    log_weights : ndarray, shape (S, b)
        Finite.

    Returns
    -------
    smoothed : ndarray, shape (S, b)
        The same below the tail; no value above the largest of its column.
    k : ndarray, shape (b,)
        Above 0.7 the weights are unreliable. -inf for a column that does not vary (nothing to
        smooth), inf where fewer than 5 draws are in the tail.
    """
    columns = np.array(log_weights.T, order="C")  # each one contiguous, and a copy
    k = np.array([_smooth(column) for column in columns])
    return columns.T, k


def _smooth(x: FloatArray) -> float:
    """Smooth one column in place; returns k."""
    largest = float(x.max())
    if largest - float(x.min()) <= _CONSTANT:
        return -math.inf
    n_tail = math.ceil(min(x.size / 5, 3 * math.sqrt(x.size)))
    if n_tail < _FEWEST:
        return math.inf
    cut = max(float(np.partition(x, -n_tail - 1)[-n_tail - 1]) - largest, _SMALLEST)
    tail = np.flatnonzero(x - largest > cut)  # fewer than n_tail where weights are tied
    if tail.size < _FEWEST:
        return math.inf
    tail = tail[np.argsort(x[tail], kind="stable")]
    excess = np.exp(x[tail] - largest) - math.exp(cut)
    k, sigma = _pareto_fit(excess)
    if not (math.isfinite(k) and sigma > 0):
        return math.inf
    share = -np.log1p(-(np.arange(tail.size) + 0.5) / tail.size)
    quantiles = sigma * (share if abs(k) < np.finfo(float).eps else np.expm1(k * share) / k)
    x[tail] = np.minimum(np.log(quantiles + math.exp(cut)), 0.0) + largest
    return k


def _pareto_fit(excess: FloatArray) -> tuple[float, float]:
    """Shape and scale from sorted excesses over the threshold; [ZS09], prior on k as in [V17]."""
    n = excess.size
    n_points = 30 + int(math.sqrt(n))
    quartile = excess[int(n / 4 + 0.5) - 1]
    with np.errstate(all="ignore"):  # excesses that were rounded to 0: no fit, k is not finite
        steps = np.sqrt(n_points / (np.arange(n_points) + 0.5))
        theta = 1 / excess[-1] + (1 - steps) / (3 * quartile)
        shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
        profile = n * (np.log(-theta / shape) - shape - 1)
        weight = np.exp(profile - profile.max())
        weight /= weight.sum()
        used = weight >= 10 * np.finfo(float).eps
        best = float((theta * weight)[used].sum() / weight[used].sum())
        k = float(np.log1p(-best * excess).mean())
        return (n * k + 5) / (n + 10), -k / best if best else math.nan
