"""Estimates under design weights: a record of weight w counts as w records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_vector
from pyhybrid.core.errors import InvalidInput

__all__ = ["average_one", "check_weights", "effective_size", "resampled", "statistic"]

_BLOCK_ELEMENTS = 2_000_000


def check_weights(weights: Any, n: int, name: str = "weights") -> FloatArray | None:
    """Design weights of n records, shape (n,); None if none are given or all are 1.

    Raises
    ------
    InvalidInput
        For another number of weights, or one that is missing, infinite or not above 0.
    """
    if weights is None:
        return None
    own = check_vector(weights, name, length=n)
    wrong = np.flatnonzero(~(np.isfinite(own) & (own > 0)))
    if wrong.size:
        raise InvalidInput(
            f"{name} must be finite and above 0: element {wrong[0]} is not; leave such records out"
        )
    return None if (own == 1).all() else own


def average_one(weights: FloatArray) -> FloatArray:
    """The weights over their mean, shape (n,)."""
    return np.asarray(weights / weights.mean())


def effective_size(weights: FloatArray) -> float:
    r"""Kish's effective sample size, :math:`(\sum w)^2 / \sum w^2`; n for equal weights.

    References
    ----------
    Kish (1965), Survey sampling, sec. 11.7.
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def statistic(ordered: FloatArray, weights: FloatArray, p: float | None) -> float:
    """Weighted mean (p is None) or quantile of values in rising order.

    Quantiles are R's type 7 of a table that holds each record as often as its weight says: with N
    the sum of the weights, the mean over [t, t + 1], t = (N - 1) p, of the value at each place of
    the cumulated weights. Weights that sum to less than n are set to average 1 first.

    References
    ----------
    Akinshin (2023), Weighted quantile estimators, arXiv:2304.07265, sec. 2.
    """
    return float(_statistics(ordered, weights[None, :], [p])[0, 0])


def resampled(
    ordered: FloatArray,
    weights: FloatArray,
    probabilities: Sequence[float | None],
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Weighted statistics of resamples of the records, shape (k, B).

    Records are drawn with replacement, each with its weight; all statistics are of the same
    resamples.
    """
    n = ordered.size
    rows = max(1, _BLOCK_ELEMENTS // n)
    blocks = [
        _statistics(ordered, counts * weights, probabilities)
        for counts in _counts(n, rows, n_resamples, rng)
    ]
    return np.concatenate(blocks, axis=1)


def _counts(n: int, rows: int, total: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """How often each of n records is in a resample, some resamples at a time."""
    for start in range(0, total, rows):
        here = min(rows, total - start)
        drawn = rng.integers(n, size=(here, n)) + n * np.arange(here)[:, None]
        yield np.bincount(drawn.ravel(), minlength=here * n).reshape(here, n).astype(np.float64)


def _statistics(
    ordered: FloatArray, weights: FloatArray, probabilities: Sequence[float | None]
) -> FloatArray:
    """Statistics under each row of weights (r, n), some of which may be 0, shape (k, r)."""
    total = weights.sum(axis=1)
    found = np.empty((len(probabilities), len(weights)))
    middle = ordered[ordered.size // 2]  # sums of differences keep more digits
    start = np.zeros((len(weights), 1))
    through = np.hstack([start, np.cumsum(weights, axis=1)])
    sums = np.hstack([start, np.cumsum(weights * (ordered - middle), axis=1)])
    step = np.minimum(1.0, total / ordered.size)
    for place, p in enumerate(probabilities):
        if p is None:
            found[place] = weights @ ordered / total
            continue
        low = (total - step) * p
        ends = [
            np.array([np.interp(*row) for row in zip(at, through, sums, strict=True)])
            for at in (low, low + step)
        ]
        found[place] = middle + (ends[1] - ends[0]) / step
    return found
