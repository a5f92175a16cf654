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
scores z. h is continued beyond the draws by its expansion to third order,

.. math:: h(z) = b z + c (z^2 - 1) + d (z^3 - 3 z), \quad b = E[g z], \quad
    c = E[g (z^2 - 1)] / 2, \quad d = E[g (z^3 - 3 z)] / 6,

moved outwards by two standard errors (to second order where the cubic has no posterior without the
record). z is N(0, 1) with the record and has a density proportional
to phi(z) exp(-h(z)) without it; the loss of a draw is the logarithm of their ratio. Linear terms
are the Gaussian limit; c and d are what a curved term, and a posterior without the record that is
wider or narrower, add to it. Both directions are followed to probability delta.

References
----------
[G92]; [BDA]; [V17]; [ZS09]; [CF38]; [DRS22]; [S22] sec. 2: loss but for a probability (pDP).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import fft
from scipy.special import ndtri

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput

STANDARD_ERRORS = 2.0
"""Standard errors above the estimate that are charged."""
RELIABLE_K = 0.7
DEPTH = 5.0
"""Normal deviations out, where a delta of 1e-6 is decided."""
_FEWEST_DRAWS, _FEWEST_IN_TAIL = 4, 5
_SMALLEST = math.log(np.finfo(float).tiny)
_CONSTANT = 1e-10
_NEGLIGIBLE = 1e-6  # of delta: density of a step of the grid that is left out
_TILT = np.geomspace(1e-2, 1e4, 150)


def _hermite(z: FloatArray) -> FloatArray:
    return np.stack([z, z**2 - 1, z**3 - 3 * z])


_Z = np.linspace(-20, 20, 4001)
_FACTORIALS = np.array([[1.0], [2.0], [6.0]])
_VARIANCES = 1 / np.array([2.0, 6.0, 24.0])
"""Of b, c and d of a normal term, over b^2 / S."""


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


def expansion_of(terms: FloatArray, chains: int) -> FloatArray:
    """b, c, d of each column of finite terms (S, k), and b over the root of effective draws, of
    which standard errors are made; (4, k)."""
    moved = terms - terms.mean(axis=0)
    size = np.abs(moved).max(axis=0)
    shown = moved / np.where(size > 0, size, 1.0)  # powers stay in the range of doubles
    few = np.minimum(effective_draws(shown**2, chains), effective_draws(shown**3, chains))
    expansion = _expanded(np.sort(moved, axis=0))
    return np.vstack([expansion, expansion[0] / np.sqrt(few)])


def depth_of(terms: FloatArray) -> FloatArray:
    """How far terms (S, k) are from their mean `DEPTH` normal deviations out, to the farther side,
    over `DEPTH`; their deviation if that is larger, infinity if one is not finite: (k,)."""
    terms = np.asarray(terms, dtype=np.float64)
    finite = np.isfinite(terms).all(axis=0)
    moved = np.sort(np.where(finite, terms, 0.0), axis=0)
    moved = moved - moved.mean(axis=0)
    return np.where(finite, np.maximum(_out(_expanded(moved)), moved.std(axis=0)), np.inf)


def depth_moved(ordered: FloatArray, weights: FloatArray) -> FloatArray:
    """Depth of terms in ascending order (S, k) where their draws have `weights` (S, k) that sum to
    1, over that without weights, (k,).

    Terms are the same functions of normal scores before and after, and only mean and deviation of
    these move; a curvature within two standard errors of none counts as none. What chance adds to
    the weights of many records together would be charged.
    """
    z = _scores(len(ordered))[:, None]
    m = (weights * z).sum(axis=0)
    s = np.sqrt((weights * (z - m) ** 2).sum(axis=0) / np.square(z).mean())
    before = _expanded(ordered - ordered.mean(axis=0))
    chance = STANDARD_ERRORS * np.sqrt(_VARIANCES[1:, None] / len(ordered)) * np.abs(before[0])
    before[1:] = np.sign(before[1:]) * np.maximum(np.abs(before[1:]) - chance, 0.0)
    b, c, d = before
    beside = 3 * d * (m**2 + s**2 - 1)  # h(m + s z) has these coefficients
    after = np.stack([s * (b + 2 * c * m + beside), s**2 * (c + 3 * d * m), s**3 * d])
    there, here = (np.maximum(_out(h), np.sqrt(_FACTORIALS[:, 0] @ h**2)) for h in (after, before))
    return np.asarray(np.divide(there, here, out=np.ones_like(here), where=here > 0))


def _scores(n_draws: int) -> FloatArray:
    return np.asarray(ndtri((np.arange(n_draws) + 0.5) / n_draws))


def _expanded(ordered: FloatArray) -> FloatArray:
    """b, c, d of each column of terms in ascending order, less their mean; (3, k)."""
    return np.asarray(_hermite(_scores(len(ordered))) @ ordered / len(ordered) / _FACTORIALS)


def _out(expansion: FloatArray) -> FloatArray:
    """Distance `DEPTH` normal deviations out, to the farther side, over `DEPTH`, (k,)."""
    ends = _hermite(np.array([-DEPTH, DEPTH])).T @ expansion
    return np.asarray(np.abs(ends).max(axis=0) / DEPTH)


def loss_of_expansion(expansion: FloatArray, delta: float, n_draws: int = 1) -> FloatArray:
    """Loss of the released draws together, nats, exceeded with probability delta at most, (k,): the
    larger of both directions. Infinite where there may be no posterior without the record. Of more
    than one draw by Chernoff's bound."""
    return np.array(
        [
            _loss(column, delta, n_draws) if np.isfinite(column).all() else np.inf
            for column in expansion.T
        ]
    )


def _loss(column: FloatArray, delta: float, n_draws: int, order: int = 3) -> float:
    he, above = _hermite(_Z)[:order], _Z > 0
    error = STANDARD_ERRORS * column[3] * np.sqrt(np.square(he).T @ _VARIANCES[:order])
    h = column[:order] @ he + np.where(above, error, -error)
    h[above] = np.maximum.accumulate(h[above])  # ordered draws only rise
    h[~above] = np.minimum.accumulate(h[~above][::-1])[::-1]
    normal = _density(-(_Z**2) / 2, delta)
    without = _density(-(_Z**2) / 2 - h, delta)
    both = np.flatnonzero(np.isfinite(normal) & np.isfinite(without))
    if not both.size:
        return _loss(column, delta, n_draws, 2) if order == 3 else math.inf
    loss = h - h[both[0]] + normal[both[0]] - without[both[0]]
    return max(
        _exceeded(normal, loss, delta, n_draws),
        _exceeded(without[::-1], -loss[::-1], delta, n_draws),
    )


def _density(log_density: FloatArray, delta: float) -> FloatArray:
    """Normalized logarithms on the grid, cut where the rest is negligible beside delta; nowhere
    finite if they rise again before that."""
    log_density = log_density - _log_sum(log_density)
    seen = log_density > math.log(_NEGLIGIBLE * delta)
    first, last = np.flatnonzero(seen)[[0, -1]]
    if first == 0 or last == seen.size - 1 or not seen[first : last + 1].all():
        return np.full(seen.size, -np.inf)
    log_density[~seen] = -np.inf
    return np.asarray(log_density - _log_sum(log_density))


def _log_sum(terms: FloatArray) -> float:
    """log sum exp, the largest finite. Of some thousand terms SciPy's takes seven times as long."""
    largest = terms.max()
    return float(largest + np.log(np.exp(terms - largest).sum()))


def _exceeded(log_density: FloatArray, loss: FloatArray, delta: float, n_draws: int) -> float:
    """What the losses of the draws, rising along the grid, add up to but for probability delta."""
    seen = np.isfinite(log_density)
    mass, loss = log_density[seen], loss[seen]
    if n_draws == 1:
        beyond = np.cumsum(np.exp(mass[::-1]))[::-1]
        return float(loss[np.argmax(beyond <= delta)])

    def bound(place: int) -> float:
        moment = _log_sum(mass + _TILT[place] * loss)
        return float((n_draws * moment - math.log(delta)) / _TILT[place])

    low, high = 0, _TILT.size - 1  # convex over linear, it falls and then rises with the tilt
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= bound(middle + 1) else (middle + 1, high)
    return bound(low)
