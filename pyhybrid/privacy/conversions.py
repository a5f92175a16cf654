r"""Epsilon, rho and mu: what a bound costs, at which delta, and the inverses.

**Lipschitz.** One draw whose terms stay within Delta costs epsilon = 2 Delta.

**Range and zCDP.** A mechanism whose log density ratio between neighbors has range eta is eta-DP,
and eta^2/8-zCDP, whatever its ratio's location [CR21]; mu-GDP is mu^2/2-zCDP. Noise from
N(0, sigma^2), on the reals or on whole numbers, added to an answer of L2 sensitivity S is rho-zCDP
with rho = S^2 / (2 sigma^2). rho-zCDP is
:math:`(\rho + 2 \sqrt{\rho \log(1/\delta)}, \delta)`-DP for every delta; for every alpha > 1 it is
also (epsilon, delta)-DP with

.. math:: \epsilon = \alpha \rho + \frac{\log(1 / (\alpha \delta))}{\alpha - 1}
    + \log(1 - 1 / \alpha),

whose smallest over alpha is below the former by 2 to 60 percent, most at small epsilon.

**Gaussian.** A release is mu-GDP if telling two neighboring databases apart from it is no easier
than telling N(0, 1) from N(mu, 1). It is then (epsilon, delta)-DP for every epsilon >= 0 with

.. math:: \delta(\epsilon) = \Phi(-\epsilon/\mu + \mu/2) - e^\epsilon \Phi(-\epsilon/\mu - \mu/2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from scipy.special import erfcx, log_ndtr, ndtr

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_finite,
    check_flag,
    check_nonnegative,
    check_nonnegative_vector,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput

ASYMPTOTIC_LOCAL = "asymptotic local"
STRICT = "strict"
KINDS = (ASYMPTOTIC_LOCAL, STRICT)
CHANGED = {"remove": 1, "replace": 2}
"""Records that a neighbor differs by: a replacement takes one out and puts one in."""
RELATIONS = tuple(CHANGED)
_DECIMALS = {ASYMPTOTIC_LOCAL: 2, STRICT: 6}
_ABOVE = 1e-12  # what rounding of the few operations can hide, relative
_BELOW = 1e-11  # by which rho stays below what an epsilon allows
_LEAST_RHO = 1e-300  # smaller ones count as this
_REACH = 40.0  # of log(alpha - 1)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_LEVELS = 80  # of the continued fraction of Mills' ratio; exact to rounding from 3 on
_HALVINGS = 2100  # a double has 2^63 values: bisection meets its neighbors long before this


def epsilon_of_bound(
    bound: float,
    *,
    n_draws_released: int = 1,
    relation: str = "remove",
    density_above_one: bool = False,
    safety_factor: float = 1.0,
    kind: str = ASYMPTOTIC_LOCAL,
) -> float:
    r"""Privacy cost :math:`\epsilon = 2 s \Delta` per released draw, summed over draws, rounded up.

    In nats [S22] sec. 2, sec. 4.5 and app. A.3.

    Parameters
    ----------
    bound : float
        Overall Lipschitz bound Delta in nats, >= 0, finite.
    n_draws_released : int, default 1
        Posterior draws released; data sets simulated from one draw cost no more than one.
    relation : {"remove", "replace"}
        Leaving one record out changes one term of the log posterior. Replacing it changes two,
        f(x) and f(x'); their difference stays within Delta if both lie in [-Delta, 0], so nothing
        is added for discrete outcomes. If a density can exceed 1 they may have unlike signs:
    density_above_one : bool, default False
        doubles the cost under "replace" (epsilon = 4 Delta).
    safety_factor : float, default 1
        s >= 1, to turn a local bound into a global one: up to 1.05 for n > 1000, 1.10 below.
    kind : {"asymptotic local", "strict"}
        Decides the rounding: up, to 2 decimals for estimates, to 6 for strict charges.

    Examples
    --------
    >>> epsilon_of_bound(2.5, n_draws_released=3)
    15.0
    """
    bound = check_nonnegative(bound, "bound")
    draws = check_count(n_draws_released, "n_draws_released")
    check_flag(density_above_one, "density_above_one")
    factor = check_finite(safety_factor, "safety_factor")
    if factor < 1:
        raise InvalidInput(f"safety_factor must be >= 1: found {factor:g}")
    check_choice(kind, "kind", KINDS)
    sides = lipschitz_sides(relation, density_above_one)
    # Exact arithmetic on the shortest repr, so that 2 x 0.15 is 0.3 and not just above it.
    return _ceiling(sides * draws * shown(factor) * shown(bound), kind)


def bound_of_epsilon(
    epsilon: float,
    *,
    relation: str = "remove",
    density_above_one: bool = False,
    safety_factor: float = 1.0,
) -> float:
    """Bound (or cap M), nats, of one draw at `epsilon`: the inverse of `epsilon_of_bound`."""
    sides = lipschitz_sides(relation, density_above_one)
    return check_positive(epsilon, "epsilon") / (
        sides * check_positive(safety_factor, "safety_factor")
    )


def lipschitz_sides(relation: str, density_above_one: bool) -> int:
    """Bounds that one draw costs: 2, or 4 where two densities may have unlike signs."""
    sides = _sides(relation)
    return 2 * sides if density_above_one else 2


def epsilon_text(epsilon: float) -> str:
    """Epsilon in full, never rounded down for display: 12345.64, 5, 0.000001."""
    return format(Decimal(repr(float(epsilon))), "f").removesuffix(".0")


def round_up(epsilon: float, *, kind: str = ASYMPTOTIC_LOCAL) -> float:
    """Round an epsilon (nats, >= 0) up as charges of this `kind` are rounded."""
    check_choice(kind, "kind", KINDS)
    return _ceiling(shown(check_nonnegative(epsilon, "epsilon")), kind)


def _ceiling(value: Fraction, kind: str) -> float:
    # Fractions, as a Decimal context would round half to even at 28 digits before the ceiling.
    unit: int = 10 ** _DECIMALS[kind]
    return at_least(Fraction(math.ceil(value * unit), unit))


def shown(number: float) -> Fraction:
    """The number that a reader sees, exactly; numpy's own floats are shown as Python's."""
    return Fraction(repr(float(number)))


def at_least(exact: Fraction) -> float:
    """The smallest double that is shown as no less than `exact`."""
    try:
        value = float(exact)
    except OverflowError:
        raise InvalidInput("epsilon must be a number that floats can hold: it is larger") from None
    return value if shown(value) >= exact else math.nextafter(value, math.inf)


def add_epsilons(epsilons: Iterable[float]) -> float:
    """Exact sum of stated epsilons: 0.1 + 0.1 + 0.1 is 0.3. Says nothing of what they mean."""
    return float(sum((Decimal(repr(float(epsilon))) for epsilon in epsilons), Decimal(0)))


def epsilon_of_range(
    loss_range: float,
    *,
    n_draws_released: int = 1,
    relation: str = "remove",
    kind: str = ASYMPTOTIC_LOCAL,
) -> float:
    """Pure epsilon of m released draws: m R, or 2 m R where a record is replaced; rounded up.

    Parameters
    ----------
    loss_range : float
        R in nats, >= 0, finite: `loss_ranges(...).overall`, or a + b of clipped terms. Under
        "replace" it must also hold for every record that could replace another.
    n_draws_released, relation, kind
        As in `epsilon_of_bound`; [DR19] sec. 3.
    """
    eta = _sides(relation) * shown(check_nonnegative(loss_range, "loss_range"))
    return round_up(at_least(check_count(n_draws_released, "n_draws_released") * eta), kind=kind)


def rho_of_range(
    loss_range: float, *, n_draws_released: int = 1, relation: str = "remove"
) -> float:
    """Rho of zCDP of m draws: m eta^2 / 8, eta = R or, under "replace", 2 R; rounded up.

    Parameters as in `epsilon_of_range`; a replacement changes two terms of range R each [CR21]
    sec. 3.
    """
    eta = _sides(relation) * shown(check_nonnegative(loss_range, "loss_range"))
    return at_least(check_count(n_draws_released, "n_draws_released") * eta**2 / 8)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Epsilon at a public delta of a rho-zCDP release: rho + 2 sqrt(rho log(1/delta)), rounded up.

    Rho, >= 0, is in nats, of several releases the sum; delta in (0, 1) [BS16] prop. 1.3.

    Examples
    --------
    >>> epsilon_of_range(0.5, n_draws_released=20), rho_of_range(0.5, n_draws_released=20)
    (10.0, 0.625)
    >>> round(epsilon_of_rho(0.625, 1e-6), 1)
    6.5
    """
    rho, delta = check_nonnegative(rho, "rho"), check_delta(delta)
    value = rho + 2 * math.sqrt(rho * -math.log(delta))
    return value * (1 + 4 * math.ulp(1.0))  # above what rounding of four operations can hide


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Epsilon as of `epsilon_of_rho`, the smallest over the orders alpha [CKS20] prop. 12; nats."""
    number, at = check_nonnegative(rho, "rho"), check_delta(delta)
    if number == 0:
        return 0.0
    number = max(number, _LEAST_RHO)

    def of(log_order: float) -> float:
        less = math.exp(log_order)  # alpha - 1
        order = 1 + less
        parts = -math.log(at) - math.log1p(less)
        return order * number + parts / less + log_order - math.log1p(less)

    # The best order of the simple bound, and a wide interval about it: any order is valid.
    middle = 0.5 * math.log(-math.log(at) / number)
    best = scipy.optimize.minimize_scalar(
        of, bounds=(middle - _REACH, middle + _REACH), method="bounded"
    )
    value = min(of(middle), float(best.fun))
    return max(0.0, value) + _ABOVE * (1 + abs(value))


def rho_of_zcdp(epsilon: float, delta: float) -> float:
    """The largest rho, nearly, whose `epsilon_of_zcdp` at `delta` is at most `epsilon`, above 0."""
    eps, at = check_positive(epsilon, "epsilon"), check_delta(delta)
    low, high = -60.0, math.log(eps)  # of log(rho)
    if epsilon_of_zcdp(math.exp(low), at) > eps:
        raise InvalidInput(
            f"epsilon must be large enough for Gaussian noise at delta={at:g}: found {eps:g}"
        )
    while epsilon_of_zcdp(math.exp(high), at) <= eps:
        high += 1.0
    log_rho = scipy.optimize.brentq(
        lambda x: epsilon_of_zcdp(math.exp(x), at) - eps, low, high, xtol=1e-12
    )
    rho = math.exp(log_rho) * (1 - _BELOW)
    while epsilon_of_zcdp(rho, at) > eps:
        rho *= 1 - _BELOW
    return rho


def _sides(relation: str) -> int:
    return CHANGED[check_choice(relation, "relation", RELATIONS)]


def delta_of_mu(mu: float, epsilon: float) -> float:
    """Smallest delta for which a mu-GDP release is (epsilon, delta)-DP [DRS22] sec. 2.4.

    Both numbers are >= 0 and finite, epsilon in nats. With x = epsilon/mu - mu/2 and Mills' ratio
    M = Phi(-x)/phi(x), delta is phi(x) (M(x) - M(x + mu)), whose difference is integrated where it
    would cancel. Relative error about 1e-13 for any delta that a double can hold.

    Examples
    --------
    >>> round(delta_of_mu(1.0, 1.0), 6)
    0.126937
    """
    return _delta(check_nonnegative(mu, "mu"), check_nonnegative(epsilon, "epsilon"))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon, in nats, at which a mu-GDP release is (epsilon, delta)-DP; rounded up.

    The smallest double whose `delta_of_mu` does not exceed `delta`, by bisection; charges round
    further (`round_up`). Delta, in (0, 1), is public, and below 1/n for n records.

    Examples
    --------
    >>> round(epsilon_of_mu(0.207, 1e-6), 2), round(mu_of_epsilon(1.0, 1e-6), 3)
    (0.87, 0.237)
    >>> compose_mu([3.0, 4.0])
    5.0
    >>> mu_of_release(0.5, n_draws_released=4, relation="replace")
    2.0
    """
    return _epsilon_of_mu(check_nonnegative(mu, "mu"), check_delta(delta))


@lru_cache(maxsize=1024)  # a release asks for one number some five times
def _epsilon_of_mu(mu: float, delta: float) -> float:
    # delta(hi) <= Phi(-t) <= exp(-t^2/2) with t = sqrt(2 log(1/delta))
    hi = mu * (mu / 2 + math.sqrt(-2 * math.log(delta)))
    if not math.isfinite(hi):
        raise InvalidInput(f"mu must have an epsilon that floats can hold: found {mu:g}")
    return _boundary(lambda epsilon: _delta(mu, epsilon) <= delta, 0.0, hi)[1]


def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """Largest mu whose release is (epsilon, delta)-DP; rounded down. Inverse of `epsilon_of_mu`."""
    epsilon, delta = check_nonnegative(epsilon, "epsilon"), check_delta(delta)
    hi = 1.0
    while _delta(hi, epsilon) <= delta:
        hi *= 2
    return _boundary(lambda mu: _delta(mu, epsilon) > delta, 0.0, hi)[0]


def compose_mu(mus: Any) -> float:
    """Mu of releases together: the root of the sum of squares, rounded up; 0 for none.

    Each, >= 0, of a release computed from the same data, which may know those before it [DRS22]
    cor. 3.3.
    """
    if np.size(mus) == 0:
        return 0.0
    values = check_nonnegative_vector(mus, "mus")
    return _up(math.hypot(*values), lambda total: total**2 >= math.fsum(values**2))


def mu_of_release(mu: float, *, n_draws_released: int = 1, relation: str = "remove") -> float:
    """Mu of m released draws: mu sqrt(m), twice that where a record is replaced; rounded up.

    Replacing is taking one record out and putting another in, each of them mu-GDP: mu_i + mu_j
    [DRS22] cor. 3.3 and thm. 2.14.

    Parameters
    ----------
    mu : float
        Largest deviation of a record's term (`gaussian_mu`), of records present and,
        for "replace", of those that could take a place.
    n_draws_released, relation
        As in `epsilon_of_bound`.
    """
    mu, sides = check_nonnegative(mu, "mu"), _sides(relation)
    draws = check_count(n_draws_released, "n_draws_released")
    return _up(sides * mu * math.sqrt(draws), lambda mus: mus**2 >= sides**2 * mu**2 * draws)


def check_delta(delta: Any) -> float:
    """Return `delta` as a float; it must lie in (0, 1)."""
    number = check_finite(delta, "delta")
    if not 0 < number < 1:
        raise InvalidInput(f"delta must lie in (0, 1): found {number:g}")
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
