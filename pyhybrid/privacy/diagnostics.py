r"""Effective draws of correlated chains, for many quantities at once.

The initial monotone sequence of [G92] over several chains [BDA]. ArviZ takes seconds to import, and
the array layer needs numpy and scipy only.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from pyhybrid.core.checks import FloatArray


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
