"""Posteriors that can be written down: a grid of Poisson rates, and conjugate models."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import logsumexp
from scipy.stats import poisson

from pyhybrid.core.checks import FloatArray

RATES = np.geomspace(0.1, 50, 40)
SUPPORT = tuple(range(16))
LOG_LIK = np.array([poisson.logpmf(y, RATES) for y in SUPPORT]).T  # (grid, support)
Database = tuple[int, ...]
Terms = Callable[[Database], FloatArray]


def log_posterior(terms: FloatArray) -> FloatArray:
    """Log mass on the grid under a flat prior, from terms (grid, n)."""
    total = terms.sum(axis=1)
    return np.asarray(total - logsumexp(total))


def databases(n: int = 3) -> Iterator[Database]:
    return itertools.combinations_with_replacement(SUPPORT, n)


def removals(database: Database) -> Iterator[tuple[int, Database]]:
    for i in range(len(database)):
        yield i, database[:i] + database[i + 1 :]


def largest_losses(terms: Terms, n: int = 3) -> tuple[float, float]:
    """Exact largest loss over ALL databases of n records: one removed, one replaced."""
    held: dict[Database, FloatArray] = {}

    def posterior(database: Database) -> FloatArray:
        key = tuple(sorted(database))
        if key not in held:
            held[key] = log_posterior(terms(key))
        return held[key]

    removed = replaced = 0.0
    for rest in databases(n - 1):
        own = np.array([posterior((*rest, value)) for value in SUPPORT])
        removed = max(removed, float(np.abs(own - posterior(rest)).max()))
        replaced = max(replaced, float(np.ptp(own, axis=0).max()))
    return removed, replaced


def exact_delta(log_p: FloatArray, log_q: FloatArray, epsilon: float) -> float:
    """Largest delta of both directions between two distributions on one grid."""
    p, q = np.exp(log_p), np.exp(log_q)
    factor = np.exp(epsilon)
    return float(max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum()))
