r"""Trust in draws: effective numbers, smoothed weights, tails beyond the draws.

**Effective draws** of correlated chains, for many quantities at once: the initial monotone sequence
of [G92] over several chains [BDA].

**Pareto smoothing.** The largest importance weights of each column are replaced by quantiles of a
generalized Pareto distribution fitted to them; its shape k tells how far the weights can be
trusted. ArviZ has this (`psislw`) and the tests hold both together; it is written here because the
array layer needs numpy and scipy only, R has the same function without another package, and ArviZ
takes seconds to import.

**Tails.** A range of S draws says nothing of losses rarer than about 1/S. The loss of a record
depends on the distribution of its term g alone, and g of ordered draws is a function h of normal
scores z. h is continued beyond the draws by its expansion to second order,

.. math:: h(z) = a + b z + c (z^2 - 1), \quad b = E[g z], \quad c = E[g (z^2 - 1)] / 2,

under which z is N(0, 1) with the record and normal without it, too: the posterior without the
record has variance v = 1/(1 + 2c) and mean -b v, and the loss of a draw is

.. math:: L(z) = b z + c z^2 + b^2 v / 2 + \log(v) / 2.

Linear terms (c = 0) are the Gaussian limit; c is what a curved term, and a posterior without the
record that is wider or narrower, add to it. Both directions are followed to probability delta.

References
----------
[G92]; [BDA]; [V17]; [ZS09]; [CF38]; [DRS22]; [S22] sec. 2: loss but for a probability (pDP).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft
from scipy.special import ndtri

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


def expansion_of(terms: FloatArray, chains: int) -> FloatArray:
    """Upper end of b, and both ends of c, of each column of finite terms (S, k), shape (3, k): two
    standard errors of a normal term away, b / sqrt(2 S), b / sqrt(6 S), S being effective draws."""
    moved = terms - terms.mean(axis=0)
    size = np.abs(moved).max(axis=0)
    shown = moved / np.where(size > 0, size, 1.0)  # powers stay in the range of doubles
    few = np.minimum(effective_draws(shown**2, chains), effective_draws(shown**3, chains))
    z = ndtri((np.arange(len(terms)) + 0.5) / len(terms))
    ordered = np.sort(moved, axis=0)
    b, c = z @ ordered / len(z), (z**2 - 1) @ ordered / (2 * len(z))
    margin = STANDARD_ERRORS * b / np.sqrt(few)
    return np.stack([b + margin / np.sqrt(2), c - margin / np.sqrt(6), c + margin / np.sqrt(6)])


def loss_of_expansion(expansion: FloatArray, delta: float, n_draws: int = 1) -> FloatArray:
    """Loss of the released draws together, nats, exceeded with probability delta at most, (k,): the
    larger of both directions and ends of c. Infinite where there may be no posterior without the
    record. Of more than one draw by Chernoff's bound."""
    slope, *bends = expansion
    return np.maximum(*(_loss(slope, bend, delta / 2, n_draws) for bend in bends))


def loss_of_range(loss_range: Any, mu: Any, delta: float, n_draws: int = 1) -> FloatArray:
    """Loss of the released draws together, nats, (k,), where that of a draw stays within R and has
    the deviation mu: R for one draw, and for n of them n R, or with probability delta at most what
    Bennett's inequality leaves of it."""
    size, deviation = np.atleast_1d(loss_range).astype(float), np.atleast_1d(mu).astype(float)
    bent = np.isfinite(size) & (size > 0) & np.isfinite(deviation)
    if n_draws == 1 or not bent.any():
        return n_draws * size
    r, share = size[bent], (deviation[bent] / size[bent]) ** 2

    def log_moments(t: Any) -> FloatArray:
        return np.asarray(share * (np.expm1(t * r) - t * r))

    loss = n_draws * size
    with np.errstate(over="ignore"):  # of a range so large that n R is less
        mean = log_moments(1.0)  # E[L] of a loss with E[exp(-L)] = 1
        loss[bent] = np.minimum(loss[bent], n_draws * mean + chernoff(log_moments, delta, n_draws))
    return loss


def _loss(b: FloatArray, c: FloatArray, tail: float, n_draws: int) -> FloatArray:
    exists = 1 + 2 * c > 0
    c = np.where(exists, c, 0.0)
    variance = 1 / (1 + 2 * c)
    at = -0.5 * b / np.where(c == 0, np.inf, c)  # where the quadratic turns
    depth = -float(ndtri(tail))

    def loss(z: FloatArray) -> FloatArray:
        return b * z + c * z**2 + b**2 * variance / 2 + np.log(variance) / 2

    def largest(sign: int, center: FloatArray, scale: FloatArray) -> FloatArray:
        if n_draws > 1:
            linear, square = sign * scale * (b + 2 * c * center), sign * c * scale**2
            sums = chernoff(lambda t: _quadratic(t, linear, square), tail, n_draws)
            return sign * n_draws * loss(center) + sums
        reach = depth * scale
        ends = (center - reach, center + reach, np.clip(at, center - reach, center + reach))
        return np.asarray(np.max([sign * loss(z) for z in ends], axis=0))

    largest_loss = np.maximum(
        largest(1, np.zeros_like(b), np.ones_like(b)),
        largest(-1, -b * variance, np.sqrt(variance)),
    )
    return np.asarray(np.where(exists, largest_loss, np.inf))


def _quadratic(t: FloatArray, linear: FloatArray, square: FloatArray) -> FloatArray:
    """Log moments at t of linear w + square w^2, w standard normal."""
    left = 1 - 2 * t * square
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left > 0, (t * linear) ** 2 / (2 * left) - np.log(left) / 2, np.inf)


def chernoff(log_moments: Callable[[FloatArray], FloatArray], tail: float, n: int) -> FloatArray:
    """What a sum of n independent terms exceeds with probability `tail` at most, from the log of
    their moments E[exp(t X)], which takes t (g, 1) to (g, k): the least bound over a grid of t."""
    t = np.geomspace(1e-3, 1e6, 1000)[:, None]
    with np.errstate(over="ignore"):  # an infinite moment is never the least
        return np.asarray(((n * log_moments(t) - math.log(tail)) / t).min(axis=0))
