r"""Trust in draws: effective numbers, smoothed weights, tails beyond the draws.

**Effective draws** of correlated chains, for many quantities at once: the initial monotone sequence
of [G92] over several chains [BDA].

**Pareto smoothing.** The largest importance weights of each column are replaced by quantiles of a
generalized Pareto distribution fitted to them; its shape k tells how far the weights can be
trusted. ArviZ has this (`psislw`) and the tests hold both together; it is written here because the
array layer needs numpy and scipy only, R has the same function without another package, and ArviZ
takes seconds to import.

**Chance of moments.** Without a record a posterior moves little, and what its draws tell of that is
mostly chance: their third moments are, of which few are known to be there. Where the density is
nearly normal its values at the draws part the two: with weights that turn them into draws of the
normal, variances of quadratic terms under a quadratic log ratio are known without them. What the
draws' variances differ by is chance, and it is taken off those of the terms and ratios themselves.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft
from scipy.special import ndtri

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput

STANDARD_ERRORS = 2.0
"""Standard errors above the estimate that are charged."""
RELIABLE_K, _HEAVY_K, _RAREST = 0.7, 0.5, 1e-9
DEPTH = 5.0
"""Normal deviations out, where a delta of 1e-6 is decided."""
_FEWEST_DRAWS, _FEWEST_IN_TAIL = 4, 5
_SMALLEST = math.log(np.finfo(float).tiny)
_CONSTANT = 1e-10
_NEARLY = 0.7  # deviation of a log-likelihood from a quadratic one
_OF_LIKELIHOOD = (0.85, 1.3)  # share of the precision along an axis, that of draws being by chance
_MOST_SQUARED = 12  # axes, of which squares and products are known, too
_LEFT = 0.2  # least precision of a posterior without a record, beside that with it
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


def heavy_tail(values: FloatArray) -> float:
    """What finite values (S,) exceed with probability 1e-9 by the generalized Pareto distribution
    of their largest, if its k is above 0.5 (no variance): no cubic goes on so steeply. Else 0."""
    n_tail = math.ceil(min(values.size / 5, 3 * math.sqrt(values.size)))
    ordered = np.sort(values)
    excess = ordered[-n_tail:] - ordered[-n_tail - 1]
    k, sigma = _pareto_fit(excess) if excess[0] > 0 else (0.0, 0.0)
    if not (k > _HEAVY_K and sigma > 0):
        return 0.0
    share = np.float64(_RAREST * values.size / n_tail)
    with np.errstate(over="ignore"):  # beyond doubles: infinite
        return float(ordered[-n_tail - 1] + sigma / k * (share**-k - 1))


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
    ends = _hermite(np.array([-DEPTH, DEPTH])).T @ _expanded(moved)
    out = np.abs(ends).max(axis=0) / DEPTH
    return np.where(finite, np.maximum(out, moved.std(axis=0)), np.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class NearlyNormal:
    """Draws of a nearly normal density, by which the chance of moments is known. Confidential.

    Attributes
    ----------
    powers : ndarray, shape (S, 1 + q)
        A constant, parameters at the draws, whitened, along those K axes whose spread is the
        likelihood's, and their squares and products, unless there are too many.
    n_axes : int
        K.
    weights : ndarray, shape (S,)
        That turn them into draws of a normal distribution; their sum is 1.
    """

    powers: FloatArray
    n_axes: int
    weights: FloatArray

    @classmethod
    def of(cls, points: FloatArray, log_likelihood: FloatArray) -> NearlyNormal | None:
        """From parameters (S, p) and their log-likelihood (S,), up to a constant; None where it is
        not nearly quadratic, or draws are few beside its squares. Where a prior adds to the
        precision along an axis its shape is not known, and the axis is left out."""
        points = _straightened(points)
        spread = points.std(axis=0)
        if points.shape[1] ** 2 * 2 > len(points) or not np.isfinite(spread).all():
            return None
        moved = (points - points.mean(axis=0))[:, spread > 0] / spread[spread > 0]
        values, axes = np.linalg.eigh(moved.T @ moved / len(moved))
        seen = values > _CONSTANT  # a simplex has one point less than values
        white = moved @ axes[:, seen] / np.sqrt(values[seen])
        shown = _powers(white)
        known = np.linalg.lstsq(shown, log_likelihood, rcond=None)[0]
        beside = log_likelihood - shown @ known
        first, second = np.triu_indices(white.shape[1])
        precision = np.zeros((white.shape[1], white.shape[1]))
        precision[first, second] = -known[1 + white.shape[1] :]
        share, axes = np.linalg.eigh(precision + precision.T)
        own = (share > _OF_LIKELIHOOD[0]) & (share < _OF_LIKELIHOOD[1])
        if not (own.any() and beside.std() < _NEARLY):  # NaN is not
            return None
        powers = _powers(white @ axes[:, own], squares=own.sum() <= _MOST_SQUARED)
        return cls(powers=powers, n_axes=int(own.sum()), weights=_softmax(-beside))

    def slopes(self, terms: FloatArray) -> FloatArray:
        """Coefficients (1 + q, b) of terms (S, b) in the powers."""
        return np.asarray(np.linalg.lstsq(self.powers, terms, rcond=None)[0])

    def chance(self, log_ratio: FloatArray, slopes: FloatArray, used: FloatArray) -> FloatArray:
        """What chance adds to the variance of terms of `slopes` (1 + q, b) as the density of the
        draws that are `used`, 1 or 0, (S,), is multiplied by exp(log_ratio), (S, k): (k, b)."""
        weights, shown = self.weights * used, self.powers[:, 1:]
        mean, covariance = _moments(shown, weights / weights.sum())
        k, slopes = self.n_axes, slopes[1:]
        start = mean[:k], covariance[:k, :k]
        differences = [covariance - _of_normal(*start, squares=shown.shape[1] > k)]
        for tilt in self.slopes(log_ratio)[1:].T:
            moved = _tilted(*start, tilt)
            if moved is None:  # of squares that have no normal density: their place alone
                tilt = np.append(tilt[:k], np.zeros(tilt.size - k))
                moved = _tilted(*start, tilt)
            assert moved is not None
            found = _moments(shown, _softmax(shown @ tilt, weights))[1]
            differences.append(found - _of_normal(*moved, squares=shown.shape[1] > k))
        by_tilt = [((each - differences[0]) @ slopes * slopes).sum(axis=0) for each in differences]
        return np.stack(by_tilt[1:])


def _powers(points: FloatArray, *, squares: bool = True) -> FloatArray:
    first, second = np.triu_indices(points.shape[1] if squares else 0)
    return np.column_stack([np.ones(len(points)), points, points[:, first] * points[:, second]])


def _tilted(
    mean: FloatArray, covariance: FloatArray, tilt: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Mean and covariance of N(mean, covariance) times exp of the powers with these coefficients;
    None if that has no integral."""
    k = mean.size
    first, second = np.triu_indices(k if tilt.size > k else 0)
    squares = np.zeros((k, k))
    squares[first, second] = tilt[k:]
    precision = np.linalg.inv(covariance)
    moved = precision - squares - squares.T
    if np.linalg.eigvalsh(moved)[0] <= _LEFT * np.linalg.eigvalsh(precision)[0]:
        return None
    return np.linalg.solve(moved, precision @ mean + tilt[:k]), np.linalg.inv(moved)


def _of_normal(mean: FloatArray, covariance: FloatArray, *, squares: bool) -> FloatArray:
    """Covariance (q, q) of the powers of a normal, without the constant."""
    first, second = np.triu_indices(mean.size if squares else 0)
    a, b = mean[first], mean[second]
    across = covariance[:, first] * b + covariance[:, second] * a
    here, there = covariance[np.ix_(first, first)], covariance[np.ix_(second, second)]
    mixed = covariance[np.ix_(first, second)]
    both = here * there + mixed * mixed.T + np.outer(a, a) * there + np.outer(b, b) * here
    both += np.outer(a, b) * mixed.T + np.outer(b, a) * mixed
    return np.block([[covariance, across], [across.T, both]])


def _straightened(points: FloatArray) -> FloatArray:
    """Points (S, p), by their logarithm where these are positive and less skewed."""
    logarithms = np.log(np.where((points > 0).all(axis=0), points, 1.0))
    straighter = (np.ptp(logarithms, axis=0) > 0) & (_skewness(logarithms) < _skewness(points))
    return np.where(straighter, logarithms, points)


def _skewness(points: FloatArray) -> FloatArray:
    moved = points - points.mean(axis=0)
    cubes, scale = (moved**3).mean(axis=0), moved.std(axis=0) ** 3
    return np.asarray(np.abs(np.divide(cubes, scale, out=np.zeros_like(cubes), where=scale > 0)))


def _moments(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = weights @ points
    return mean, (points * weights[:, None]).T @ points - np.outer(mean, mean)


def _softmax(logarithms: FloatArray, times: FloatArray | None = None) -> FloatArray:
    weights = np.exp(logarithms - logarithms.max())
    if times is not None:
        weights = weights * times
    return np.asarray(weights / weights.sum())


def _expanded(ordered: FloatArray) -> FloatArray:
    """b, c, d of each column of terms in ascending order, less their mean; (3, k)."""
    scores = ndtri((np.arange(len(ordered)) + 0.5) / len(ordered))
    return np.asarray(_hermite(scores) @ ordered / len(ordered) / _FACTORIALS)


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
    finite if they rise again before that, or are beyond doubles."""
    log_density = log_density - _log_sum(log_density)
    seen = log_density > math.log(_NEGLIGIBLE * delta)
    if not seen.any():
        return np.full(seen.size, -np.inf)
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
