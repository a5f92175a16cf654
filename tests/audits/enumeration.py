"""Exact privacy losses: posteriors on a grid, all databases of a few records, all neighbors.

A mechanism that releases one theta of a grid with a flat prior has the privacy loss
max |log xi(A | x) - log xi(A | x')| over sets A of the grid. A ratio of sums lies between the
extreme ratios of its terms, so that single points suffice.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.special import logsumexp

Array = np.ndarray
Terms = Callable[[Array], Array]
"""From the values of a database, shape (n,), to its weighted terms on a grid, (grid, n)."""
Database = tuple[float, ...]
RELATIONS = ("remove", "replace")
EPSILON = 1.0
ROUNDING = 1 + 1e-9


def log_posterior(terms: Array) -> Array:
    """Log xi on the grid from weighted log-likelihood terms (grid, n) and a flat prior."""
    return normalized(terms.sum(axis=1))


def normalized(log_density: Array) -> Array:
    return log_density - logsumexp(log_density)


def loss(one: Array, other: Array) -> float:
    """Privacy loss between two databases, each given by its terms (grid, n)."""
    return float(np.abs(log_posterior(one) - log_posterior(other)).max())


def held_loss(terms: Array) -> float:
    """Largest loss over the removed record, the others' terms held as they are."""
    return max(loss(terms, np.delete(terms, i, axis=1)) for i in range(terms.shape[1]))


def largest_loss(
    terms: Terms, support: Sequence[float], relation: str, *, records: int = 3
) -> float:
    """Largest loss, nats, over ALL databases of `records` values, terms computed anew."""
    rests = itertools.combinations_with_replacement(support, records - 1)
    posterior = functools.cache(lambda database: log_posterior(terms(np.array(database))))
    return largest_of(lambda d: posterior(tuple(sorted(d))), rests, support, relation)


def largest_of(
    posterior: Callable[[Database], Array],
    rests: Iterable[Database],
    support: Sequence[float],
    relation: str,
) -> float:
    """Over databases of a rest and one value of the support, and all their neighbors in it."""
    worst = 0.0
    for rest in rests:
        whole = np.array([posterior((*rest, value)) for value in support])
        others = posterior(rest) if relation == "remove" else whole[:, None]
        worst = max(worst, float(np.abs(whole - others).max()))
    return worst
