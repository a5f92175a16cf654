"""Posteriors that can be written down: a grid of Poisson rates, and conjugate models."""

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.stats import poisson

from pyhybrid.core.checks import FloatArray

RATES = np.geomspace(0.1, 50, 40)
SUPPORT = tuple(range(16))
LOG_LIK = np.array([poisson.logpmf(y, RATES) for y in SUPPORT]).T  # (grid, support)
Database = tuple[int, ...]


def databases(n: int = 3) -> Iterator[Database]:
    return itertools.combinations_with_replacement(SUPPORT, n)


def removals(database: Database) -> Iterator[tuple[int, Database]]:
    for i in range(len(database)):
        yield i, database[:i] + database[i + 1 :]


def exact_delta(log_p: FloatArray, log_q: FloatArray, epsilon: float) -> float:
    """Largest delta of both directions between two distributions on one grid."""
    p, q = np.exp(log_p), np.exp(log_q)
    factor = np.exp(epsilon)
    return float(max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum()))
