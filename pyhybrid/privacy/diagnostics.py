r"""Trust in draws: effective numbers and smoothed weights.

**Effective draws** of correlated chains, for many quantities at once: the initial monotone sequence
of [G92] over several chains [BDA].

**Pareto smoothing.** The largest importance weights of each column are replaced by quantiles of a
generalized Pareto distribution fitted to them; its shape k tells how far the weights can be
trusted. ArviZ has this (`psislw`) and the tests hold both together; it is written here because the
array layer needs numpy and scipy only, R has the same function without another package, and ArviZ
takes seconds to import.

References
----------
[G92]; [BDA]; [V17]; [ZS09].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import fft

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput

STANDARD_ERRORS = 2.0
"""Standard errors above the estimate that are charged."""
RELIABLE_K = 0.7
_FEWEST_DRAWS, _FEWEST_IN_TAIL = 4, 5
_SMALLEST = math.log(np.finfo(float).tiny)
_CONSTANT = 1e-10


def check_chains(n_draws: int, chains: Any) -> int:
    """Return the number of chains; each must have the same number of draws, at least 4."""
    number = check_count(chains, "chains")
    if n_draws % number or n_draws // number < _FEWEST_DRAWS:
        raise InvalidInput(
            f"draws must be stacked chain after chain, at least {_FEWEST_DRAWS} in each of "
            f"{number}: found {n_draws}; or give ess"
        )
    return number


def effective_draws(values: FloatArray, chains: int) -> FloatArray:
    """Effective draws for the mean of each column, (S, b) to (b,): at most S, without the credit
    that alternating draws could claim. Halved chains, so that one that drifts disagrees with
    itself."""
    n_draws, n_columns = values.shape
    length = n_draws // chains
    half = length // 2
    by_chain = np.ascontiguousarray(values.T).reshape(n_columns, chains, length)
    halves = np.concatenate((by_chain[..., :half], by_chain[..., -half:]), axis=1)
    means = halves.mean(axis=2)  # (b, 2 chains)
    covariance = _autocovariance(halves - means[..., None])  # (b, half)
    within = covariance[:, 0] * half / (half - 1)
    total = covariance[:, 0] + means.var(axis=1, ddof=1)
    varies = (total > 0) & (np.ptp(values, axis=0) > 0)  # the mean of equal numbers is rounded
    scale = np.where(varies, total, 1.0)
    rho = 1 - (within - covariance.T) / scale
    rho[0] = 1.0
    time = _correlation_time(rho)
    return np.asarray(np.where(varies, n_draws / np.maximum(time, 1.0), float(n_draws)))


def _autocovariance(centered: FloatArray) -> FloatArray:
    """Biased autocovariance by lag, averaged over the halves, from (b, halves, length)."""
    length = centered.shape[2]
    size = fft.next_fast_len(2 * length, real=True)
    power = np.abs(fft.rfft(centered, size, axis=2)) ** 2
    return np.asarray(fft.irfft(power.mean(axis=1), size, axis=1)[:, :length] / length)


def _correlation_time(rho: FloatArray) -> FloatArray:
    """Sum of correlations over pairs of lags while they are positive, made monotone."""
    n_pairs = rho.shape[0] // 2
    even, odd = rho[0 : 2 * n_pairs : 2], rho[1 : 2 * n_pairs : 2]
    pairs = even + odd
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    positive[0] = True
    summed = (np.minimum.accumulate(pairs, axis=0) * positive).sum(axis=0)
    last = positive.sum(axis=0)  # the first pair that was left out, if any
    rest = np.where(last < n_pairs, even[np.minimum(last, n_pairs - 1), np.arange(rho.shape[1])], 0)
    return np.asarray(2 * summed - 1 + np.maximum(rest, 0))


def smoothed_log_weights(log_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smoothed log weights (S, b), not normalized, and each column's Pareto k, unreliable above
    0.7: -inf if it does not vary, inf with fewer than 5 draws in the tail. No value grows above the
    largest."""
    columns = np.array(log_weights.T, order="C")  # each one contiguous, and a copy
    k = np.array([_smooth(column) for column in columns])
    return columns.T, k


def _smooth(x: FloatArray) -> float:
    """Smooth one column in place; returns k."""
    largest = float(x.max())
    if largest - float(x.min()) <= _CONSTANT:
        return -math.inf
    n_tail = math.ceil(min(x.size / 5, 3 * math.sqrt(x.size)))
    if n_tail < _FEWEST_IN_TAIL:
        return math.inf
    cut = max(float(np.partition(x, -n_tail - 1)[-n_tail - 1]) - largest, _SMALLEST)
    tail = np.flatnonzero(x - largest > cut)  # fewer than n_tail where weights are tied
    if tail.size < _FEWEST_IN_TAIL:
        return math.inf
    tail = tail[np.argsort(x[tail], kind="stable")]
    excess = np.exp(x[tail] - largest) - math.exp(cut)
    k, sigma = _pareto_fit(excess)
    if not (math.isfinite(k) and sigma > 0):
        return math.inf
    share = -np.log1p(-(np.arange(tail.size) + 0.5) / tail.size)
    with np.errstate(over="ignore"):  # beyond doubles, for which the largest stands
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
