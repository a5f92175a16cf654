"""Epsilon: what a bound costs, how it is rounded and how it is written.

References
----------
[S22] sec. 2 and 4.5, app. A.3; [C25] sec. 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from pyhybrid.core.checks import (
    check_choice,
    check_count,
    check_finite,
    check_flag,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput

__all__ = [
    "ASYMPTOTIC_LOCAL",
    "KINDS",
    "RELATIONS",
    "STRICT",
    "add_epsilons",
    "bound_of_epsilon",
    "epsilon_of_bound",
    "epsilon_text",
    "round_up",
]

ASYMPTOTIC_LOCAL = "asymptotic local"
STRICT = "strict"
KINDS = (ASYMPTOTIC_LOCAL, STRICT)
RELATIONS = ("remove", "replace")
_DECIMALS = {ASYMPTOTIC_LOCAL: 2, STRICT: 6}


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

    Returns
    -------
    float
        Epsilon in nats.

    References
    ----------
    [S22] sec. 2, sec. 4.5 and app. A.3.

    Examples
    --------
    >>> epsilon_of_bound(2.5, n_draws_released=3)
    15.0
    """
    bound = check_finite(bound, "bound")
    if bound < 0:
        raise InvalidInput(f"bound must be >= 0: found {bound:g}")
    draws = check_count(n_draws_released, "n_draws_released")
    check_choice(relation, "relation", RELATIONS)
    check_flag(density_above_one, "density_above_one")
    factor = check_finite(safety_factor, "safety_factor")
    if factor < 1:
        raise InvalidInput(f"safety_factor must be >= 1: found {factor:g}")
    check_choice(kind, "kind", KINDS)
    sides = 4 if relation == "replace" and density_above_one else 2
    # Exact arithmetic on the shortest repr, so that 2 x 0.15 is 0.3 and not just above it.
    return _ceiling(sides * draws * Fraction(repr(factor)) * Fraction(repr(bound)), kind)


def bound_of_epsilon(
    epsilon: float,
    *,
    relation: str = "remove",
    density_above_one: bool = False,
    safety_factor: float = 1.0,
) -> float:
    """Bound (or cap M) for which one released draw costs `epsilon`: epsilon / 2, or / 4.

    The inverse of `epsilon_of_bound`, whose parameters it shares; nats.
    """
    sides = (
        4 if check_choice(relation, "relation", RELATIONS) == "replace" and density_above_one else 2
    )
    return check_positive(epsilon, "epsilon") / (
        sides * check_positive(safety_factor, "safety_factor")
    )


def epsilon_text(epsilon: float) -> str:
    """Epsilon in full, never rounded down for display: 12345.64, 5, 0.000001."""
    return format(Decimal(repr(float(epsilon))), "f").removesuffix(".0")


def round_up(epsilon: float, *, kind: str = ASYMPTOTIC_LOCAL) -> float:
    """Round an epsilon (nats, >= 0) up as charges of this `kind` are rounded."""
    epsilon = check_finite(epsilon, "epsilon")
    check_choice(kind, "kind", KINDS)
    if epsilon < 0:
        raise InvalidInput(f"epsilon must be >= 0: found {epsilon:g}")
    return _ceiling(Fraction(repr(epsilon)), kind)


def _ceiling(value: Fraction, kind: str) -> float:
    # Fractions, as a Decimal context would round half to even at 28 digits before the ceiling.
    unit: int = 10 ** _DECIMALS[kind]
    try:
        return math.ceil(value * unit) / unit
    except OverflowError:
        raise InvalidInput("epsilon must be a number that floats can hold: it is larger") from None


def shown(number: float) -> Fraction:
    """The number that a reader sees, exactly; numpy's own floats are shown as Python's."""
    return Fraction(repr(float(number)))


def add_epsilons(epsilons: Iterable[float]) -> float:
    """Exact sum of stated epsilons: 0.1 + 0.1 + 0.1 is 0.3. Says nothing of what they mean."""
    return float(sum((Decimal(repr(float(epsilon))) for epsilon in epsilons), Decimal(0)))
