r"""Estimates of columns with resampling intervals, under design weights or none; distances of
distributions.

Arrays in, records out. Everything here also takes synthetic data that were made elsewhere.
Estimates on the data are confidential; those on synthetic sets are post-processing. Under weights
a record of weight w counts as w records.

References
----------
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 5.2: estimates from m synthetic sets by
the Wasserstein barycenter of their resampling distributions.
[C25] Hu, Williams, Savitsky (2025), Statistica Sinica 35:563-584, sec. 4.3: max- and avg-ECDF.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_count, check_each, check_finite, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import generator_of

STATISTICS = ("mean", "median", "q15", "q90")
"""The papers' estimands: mean, median, 15th and 90th percentile."""
_BLOCK_ELEMENTS = 2_000_000
_FEWEST_RESAMPLES = 100


def check_level(level: Any) -> float:
    """Return the level of intervals; it must lie in (0, 1)."""
    if not 0 < check_finite(level, "level") < 1:
        raise InvalidInput(f"level must lie in (0, 1): found {level:g}")
    return float(level)


def check_weights(weights: Any, n: int, name: str = "weights") -> FloatArray | None:
    """Design weights (n,), finite and above 0; None if none are given or all are 1."""
    if weights is None:
        return None
    vector = check_vector(weights, name, length=n)
    message = name + " must be finite and above 0: element {} is not; leave such records out"
    check_each(np.isfinite(vector) & (vector > 0), message)
    return None if (vector == 1).all() else vector


def average_one(weights: FloatArray) -> FloatArray:
    """The weights over their mean, shape (n,)."""
    return np.asarray(weights / weights.mean())


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """Estimates of k statistics with intervals, from one vector or from m synthetic sets.

    Attributes
    ----------
    statistics : tuple of str, length k
        Names: "mean", "median" or "q" and a percentage.
    estimate : ndarray, shape (k,)
        The statistic; of m sets, its average over the sets.
    lower, upper : ndarray, shape (k,)
        Ends of the percentile interval, with the estimate between them.
    resampled : ndarray, shape (k, B)
        Resampled statistics in rising order: the quantile function from which the intervals are
        read; of m sets, their Wasserstein barycenter.
    """

    statistics: tuple[str, ...]
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    resampled: FloatArray = field(repr=False)


def estimates(
    values: Any,
    *,
    statistics: Sequence[str] = STATISTICS,
    n_resamples: int = 1000,
    level: float = 0.95,
    weights: Any = None,
    rng: np.random.Generator | int | None = None,
) -> Estimates:
    r"""Estimates with percentile intervals by resampling, of a vector or of m synthetic sets [S22].

    Each set is resampled with replacement B times. For m sets, the sets' resampling distributions
    are combined by their Wasserstein barycenter, whose quantile function is the average of the
    sets' quantile functions: the b-th smallest resampled statistics are averaged over the sets.

    Parameters
    ----------
    values : array_like, shape (n,), or sequence of m such
        Finite values; sets may differ in length.
    statistics : sequence of str
        "mean", "median", or "q" and a percentage above 0 and below 100, such as "q15" or "q2.5".
        Quantiles are R's type 7.
    n_resamples : int, default 1000
        B, at least 100.
    level : float, default 0.95
        Of the intervals, in (0, 1).
    weights : array_like, shape (n,), or sequence of m such or None, optional
        Design weights above 0, of each set: a record of weight w counts as w records. Resamples
        are of records, each with its weight; a survey's clusters are not seen.
    rng : Generator or int, optional
        Source of the resamples, or its seed.

    Raises
    ------
    InvalidInput
        For values that are not finite, an unknown statistic, too few resamples or a wrong level.

    Notes
    -----
    The resamples are exact draws, but none is stored: the order statistics that a quantile needs
    are those of n uniform numbers, which are beta variables. Unlike statistics are resampled
    independently of each other.

    Examples
    --------
    >>> estimates([1.0, 2.0, 6.0], rng=1).estimate
    array([3. , 2. , 1.3, 5.2])
    """
    samples = _samples(values, weights)
    probabilities = [_probability(name) for name in statistics]
    n_resamples = check_count(n_resamples, "n_resamples", at_least=_FEWEST_RESAMPLES)
    tail = (1 - check_level(level)) / 2
    generator = generator_of(rng)
    estimate = np.mean([sample.statistics(probabilities) for sample in samples], axis=0)
    resampled = np.zeros((len(probabilities), n_resamples))
    for sample in samples:
        drawn = sample.resampled(probabilities, n_resamples, generator)
        resampled += np.sort(drawn, axis=1) / len(samples)
    lower, upper = np.quantile(resampled, [tail, 1 - tail], axis=1)
    return Estimates(
        statistics=tuple(statistics),
        estimate=estimate,
        lower=np.minimum(lower, estimate),  # sums of equal values may differ in their last digit
        upper=np.maximum(upper, estimate),
        resampled=resampled,
    )


def summaries(
    values: Any, *, statistics: Sequence[str] = STATISTICS, weights: Any = None
) -> FloatArray:
    """Point estimates of `estimates`: of one vector, or their averages over m sets, shape (k,)."""
    probabilities = [_probability(name) for name in statistics]
    samples = _samples(values, weights)
    return np.asarray(np.mean([sample.statistics(probabilities) for sample in samples], axis=0))


def max_ecdf(
    data: Any, synthetic: Any, *, weights: Any = None, synthetic_weights: Any = None
) -> float:
    """Largest absolute difference of two empirical distribution functions, in [0, 1].

    Values (n,) and (n_syn,) are finite, design weights of either, if given, above 0; [C25] sec.
    4.3.

    Examples
    --------
    >>> max_ecdf([1, 2, 3, 4], [1, 2, 3, 9])
    0.25
    """
    return float(np.abs(_ecdf_differences(data, synthetic, weights, synthetic_weights)[0]).max())


def avg_ecdf(
    data: Any, synthetic: Any, *, weights: Any = None, synthetic_weights: Any = None
) -> float:
    """Mean squared difference of two empirical distribution functions, in [0, 1].

    The mean is over all values of both vectors pooled, each as often as it occurs, or as its weight
    says. Parameters and reference as in `max_ecdf`.
    """
    difference, weight = _ecdf_differences(data, synthetic, weights, synthetic_weights)
    return float(np.average(difference**2, weights=weight))


def _ecdf_differences(
    data: Any, synthetic: Any, weights: Any, synthetic_weights: Any
) -> tuple[FloatArray, FloatArray]:
    """F_data - F_syn at every pooled value, shape (n + n_syn,), and the values' weights."""
    first = _Sample.of(data, weights, "data")
    second = _Sample.of(synthetic, synthetic_weights, "synthetic")
    pooled = np.concatenate([first.ordered, second.ordered])
    heights = first.heights(pooled) - second.heights(pooled)
    return heights, np.concatenate([first.weights, second.weights])


@dataclass(frozen=True)
class _Sample:
    """Finite values (n,) in rising order, and their weights, which may all be 1 (`even`)."""

    ordered: FloatArray
    weights: FloatArray
    even: bool

    @classmethod
    def of(cls, values: Any, weights: Any, name: str) -> _Sample:
        vector = check_vector(values, name)
        check_each(np.isfinite(vector), name + " must be finite: element {} is not; leave it out")
        weight = check_weights(weights, vector.size, f"weights of {name}")
        order = np.argsort(vector, kind="stable")
        held = np.ones(vector.size) if weight is None else weight[order]
        return cls(vector[order], held, even=weight is None)

    def heights(self, at: FloatArray) -> FloatArray:
        """The distribution function at other values."""
        through = np.concatenate([[0.0], np.cumsum(self.weights)])
        below = np.searchsorted(self.ordered, at, side="right")
        return np.asarray(through[below] / through[-1])

    def statistics(self, probabilities: Sequence[float | None]) -> FloatArray:
        """Means (for None) and quantiles, shape (k,)."""
        x = self.ordered
        if self.even:
            return np.array([x.mean() if p is None else np.quantile(x, p) for p in probabilities])
        return _weighted_statistics(x, self.weights[None, :], probabilities)[:, 0]

    def resampled(
        self, probabilities: Sequence[float | None], n_resamples: int, rng: np.random.Generator
    ) -> FloatArray:
        """The statistics of resamples with replacement, shape (k, B)."""
        x, n = self.ordered, self.ordered.size
        if self.even:
            return np.array([
                _resampled_means(x, n_resamples, rng) if p is None
                else _resampled_quantiles(x, p, n_resamples, rng)
                for p in probabilities
            ])  # fmt: skip
        blocks = []
        for rows in _blocks(n_resamples, n):
            records = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
            counts = np.bincount(records.ravel(), minlength=rows * n).reshape(rows, n)
            blocks.append(_weighted_statistics(x, counts * self.weights, probabilities))
        return np.concatenate(blocks, axis=1)


def _weighted_statistics(
    ordered: FloatArray, weights: FloatArray, probabilities: Sequence[float | None]
) -> FloatArray:
    """Statistics (k, r) under each row of weights (r, n): quantiles are R's type 7 of a table that
    holds each record as often as its weight says (Akinshin 2023, arXiv:2304.07265, sec. 2)."""
    total = weights.sum(axis=1)
    values = np.empty((len(probabilities), len(weights)))
    middle = ordered[ordered.size // 2]  # sums of differences keep more digits
    start = np.zeros((len(weights), 1))
    through = np.hstack([start, np.cumsum(weights, axis=1)])
    sums = np.hstack([start, np.cumsum(weights * (ordered - middle), axis=1)])
    step = np.minimum(1.0, total / ordered.size)
    for k, p in enumerate(probabilities):
        if p is None:
            values[k] = weights @ ordered / total
            continue
        low = (total - step) * p
        ends = zip(np.stack([low, low + step], axis=1), through, sums, strict=True)
        values[k] = middle + np.diff([np.interp(*row) for row in ends])[:, 0] / step
    return values


def _resampled_quantiles(
    ordered: FloatArray, p: float, n_resamples: int, rng: np.random.Generator
) -> FloatArray:
    """A resample is ordered[floor(n U)] for n uniform U; its order statistics are those of U."""
    n = ordered.size
    position = (n - 1) * p
    rank = int(position) + 1
    uniform = rng.beta(rank, n - rank + 1, n_resamples)
    low = ordered[np.minimum((uniform * n).astype(np.intp), n - 1)]
    if rank == n:
        return low
    uniform = uniform + (1 - uniform) * rng.beta(1, n - rank, n_resamples)
    high = ordered[np.minimum((uniform * n).astype(np.intp), n - 1)]
    return np.asarray(low + (position - int(position)) * (high - low))


def _resampled_means(ordered: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    n = ordered.size
    distinct, counts = np.unique(ordered, return_counts=True)
    few = 12 * distinct.size < n  # a multinomial count takes as long as 12 random indices
    means = [
        rng.multinomial(n, counts / n, size=rows) @ distinct / n
        if few
        else ordered[rng.integers(n, size=(rows, n), dtype=np.int64)].mean(axis=1)
        for rows in _blocks(n_resamples, distinct.size if few else n)
    ]
    return np.concatenate(means)


def _blocks(n_resamples: int, width: int) -> list[int]:
    """Numbers of resamples to draw at once, each of so many elements."""
    size = max(1, _BLOCK_ELEMENTS // width)
    return [min(size, n_resamples - start) for start in range(0, n_resamples, size)]


def _samples(values: Any, weights: Any) -> list[_Sample]:
    """One vector is one set."""
    if not (isinstance(values, (list, tuple)) and any(np.ndim(v) > 0 for v in values)):
        return [_Sample.of(values, weights, "values")]
    by_set = [None] * len(values) if weights is None else weights
    if not isinstance(by_set, (list, tuple)) or len(by_set) != len(values):
        raise InvalidInput(f"weights of {len(values)} sets must be as many vectors, or None each")
    pairs = enumerate(zip(values, by_set, strict=True), start=1)
    return [_Sample.of(one_set, weight, f"set {k}") for k, (one_set, weight) in pairs]


def _probability(name: Any) -> float | None:
    """Probability of a quantile; None for the mean."""
    if name in ("mean", "median"):
        return None if name == "mean" else 0.5
    percent = re.fullmatch(r"q(\d+\.?\d*)", str(name))
    if percent is None or not 0 < float(percent[1]) < 100:
        raise InvalidInput(
            f"a statistic must be mean, median, or q and a percentage such as q15: found {name!r}"
        )
    return float(percent[1]) / 100
