r"""The Gaussian trade-off: (epsilon, delta) of a mu-GDP release, inverses, composition by squares.

A release is mu-GDP if telling two neighboring databases apart from it is no easier than telling
N(0, 1) from N(mu, 1). It is then (epsilon, delta)-DP for every epsilon >= 0 with

.. math:: \delta(\epsilon) = \Phi(-\epsilon/\mu + \mu/2) - e^\epsilon \Phi(-\epsilon/\mu - \mu/2).

References
----------
[DRS22] Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37, sec. 2.4 (duality),
cor. 3.3 (composition) and thm. 2.14 (groups).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_finite,
    check_nonnegative_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.epsilon import RELATIONS

__all__ = [
    "check_delta",
    "compose_mu",
    "delta_of_mu",
    "epsilon_of_mu",
    "mu_of_epsilon",
    "mu_of_release",
]

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_LEVELS = 80  # of the continued fraction of Mills' ratio; exact to rounding from 3 on
_HALVINGS = 2100  # a double has 2^63 values: bisection meets its neighbors long before this


def delta_of_mu(mu: float, epsilon: float) -> float:
    r"""Smallest delta for which a mu-GDP release is (epsilon, delta)-DP.

    With x = epsilon/mu - mu/2 and Mills' ratio M = Phi(-x)/phi(x), delta is
    phi(x) (M(x) - M(x + mu)), whose difference is integrated where it would cancel. Relative error
    about 1e-13 for any delta that a double can hold.

    Parameters
    ----------
    mu : float
        >= 0, finite.
    epsilon : float
        >= 0, in nats.

    References
    ----------
    [DRS22] sec. 2.4.

    Examples
    --------
    >>> round(delta_of_mu(1.0, 1.0), 6)
    0.126937
    """
    return _delta(_nonnegative(mu, "mu"), _nonnegative(epsilon, "epsilon"))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon, in nats, at which a mu-GDP release is (epsilon, delta)-DP; rounded up.

    The smallest double whose `delta_of_mu` does not exceed `delta`, by bisection; charges round
    further (`round_up`).

    Parameters
    ----------
    mu : float
        >= 0, finite.
    delta : float
        In (0, 1); public, and below 1/n for n records.

    Examples
    --------
    >>> round(epsilon_of_mu(0.207, 1e-6), 2)
    0.87
    """
    mu, delta = _nonnegative(mu, "mu"), check_delta(delta)
    # delta(hi) <= Phi(-t) <= exp(-t^2/2) with t = sqrt(2 log(1/delta))
    hi = mu * (mu / 2 + math.sqrt(-2 * math.log(delta)))
    if not math.isfinite(hi):
        raise InvalidInput(f"mu must have an epsilon that floats can hold: found {mu:g}")
    return _boundary(lambda epsilon: _delta(mu, epsilon) <= delta, 0.0, hi)[1]


def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """Largest mu whose release is (epsilon, delta)-DP; rounded down. Inverse of `epsilon_of_mu`.

    Parameters
    ----------
    epsilon : float
        >= 0, in nats.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(mu_of_epsilon(1.0, 1e-6), 3)
    0.237
    """
    epsilon, delta = _nonnegative(epsilon, "epsilon"), check_delta(delta)
    hi = 1.0
    while _delta(hi, epsilon) <= delta:
        hi *= 2
    return _boundary(lambda mu: _delta(mu, epsilon) > delta, 0.0, hi)[0]


def compose_mu(mus: Any) -> float:
    """Mu of releases together: the root of the sum of squares, rounded up; 0 for none.

    Parameters
    ----------
    mus : array_like, shape (k,)
        Each >= 0, of releases computed from the same data, each allowed to know those before it.

    References
    ----------
    [DRS22] cor. 3.3.

    Examples
    --------
    >>> compose_mu([3.0, 4.0])
    5.0
    """
    if np.size(mus) == 0:
        return 0.0
    values = check_nonnegative_vector(mus, "mus")
    return _up(math.hypot(*values), lambda total: total**2 >= math.fsum(values**2))


def mu_of_release(mu: float, *, n_draws_released: int = 1, relation: str = "remove") -> float:
    """Mu of m released draws: mu sqrt(m), twice that where a record is replaced; rounded up.

    Replacing is taking one record out and putting another in, each of them mu-GDP: mu_i + mu_j.

    Parameters
    ----------
    mu : float
        Largest deviation of a record's term (`gaussian_mu`: its `upper`), of records present and,
        for "replace", of those that could take a place.
    n_draws_released : int, default 1
        Posterior draws released.
    relation : {"remove", "replace"}
        Neighboring databases.

    References
    ----------
    [DRS22] cor. 3.3 and thm. 2.14.

    Examples
    --------
    >>> mu_of_release(0.5, n_draws_released=4, relation="replace")
    2.0
    """
    mu = _nonnegative(mu, "mu")
    draws = check_count(n_draws_released, "n_draws_released")
    sides = 2 if check_choice(relation, "relation", RELATIONS) == "replace" else 1
    return _up(sides * mu * math.sqrt(draws), lambda mus: mus**2 >= sides**2 * mu**2 * draws)


def check_delta(delta: Any) -> float:
    """Return `delta` as a float; it must lie in (0, 1)."""
    number = check_finite(delta, "delta")
    if not 0 < number < 1:
        raise InvalidInput(f"delta must lie in (0, 1): found {number:g}")
    return number


def _nonnegative(value: Any, name: str) -> float:
    number = check_finite(value, name)
    if number < 0:
        raise InvalidInput(f"{name} must be >= 0: found {number:g}")
    return number


def _delta(mu: float, epsilon: float) -> float:
    if mu == 0:
        return 0.0
    x = epsilon / mu - mu / 2
    if x < 0 and mu > 0.25:
        log_other = min(epsilon + float(log_ndtr(-x - mu)), 0.0)  # above 0 by rounding only
        return max(0.0, float(ndtr(-x)) - math.exp(log_other))
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    if density == 0:
        return 0.0
    if mu > 0.25 * max(1.0, x):
        return density * (_mills(x) - _mills(x + mu))
    nodes = x + mu * (_NODES + 1) / 2  # M' = t M - 1 < 0: its integral does not cancel
    return density * mu / 2 * float(_NODE_WEIGHTS @ _mills_slope(nodes))


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _mills_slope(t: FloatArray) -> FloatArray:
    """1 - t M(t), elementwise, from M(t) = 1/(t + 1/(t + 2/(t + 3/(t + ...)))) for large t."""
    far = np.maximum(t, 3.0)
    rest = np.zeros_like(far)
    for level in range(_LEVELS, 0, -1):
        rest = level / (far + rest)
    near = 1 - t * math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
    return np.asarray(np.where(t >= 3, rest / (far + rest), near))


def _boundary(holds: Callable[[float], bool], lo: float, hi: float) -> tuple[float, float]:
    """Neighboring doubles between which `holds`, true at hi, turns true; (0, 0) if true at lo."""
    if holds(lo):
        return lo, lo
    for _ in range(_HALVINGS):
        middle = lo + (hi - lo) / 2
        if middle in (lo, hi):
            break
        lo, hi = (lo, middle) if holds(middle) else (middle, hi)
    return lo, hi


def _up(value: float, enough: Callable[[float], bool]) -> float:
    return value if enough(value) else math.nextafter(value, math.inf)
