"""Brute force of guarantees.md sections 1, 3a, 4 and 6: loops, fractions, 60-digit decimals.

Nothing of pyhybrid, numpy or R.
"""

import math
import statistics
from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

from tests.golden.formulas import DECIMALS, Case, Matrix, ceiling_at, center_and_censor, quantile7

getcontext().prec = 60
HALF_LOG_TWO_PI = (
    2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
).ln() / 2


def upper_tail(x: Decimal) -> Decimal:
    """P(Z > x) of a standard normal."""
    if x < 0:
        return 1 - upper_tail(-x)
    density = (-x * x / 2 - HALF_LOG_TWO_PI).exp()
    if x >= 7:
        rest = Decimal(0)
        for level in range(400, 0, -1):
            rest = level / (x + rest)
        return density / (x + rest)
    # P(0 < Z < x) = phi(x) (x + x^3/3 + x^5/(3 5) + ...)
    term = total = x
    odd = 1
    while term > Decimal("1e-70"):
        odd += 2
        term = term * x * x / odd
        total += term
    return Decimal("0.5") - density * total


def exact_delta(mu: Decimal, epsilon: Decimal) -> Decimal:
    if mu == 0:
        return Decimal(0)
    x = epsilon / mu - mu / 2
    if x > 1000:  # below exp(-500000)
        return Decimal(0)
    return upper_tail(x) - epsilon.exp() * upper_tail(x + mu)


def delta_of_mu(mu: float, epsilon: float) -> float:
    return float(exact_delta(Decimal(mu), Decimal(epsilon)))


def least(holds: Callable[[Decimal], bool]) -> float:
    """The number above 0 from which on it holds."""
    low, high = Decimal(0), Decimal(1)
    while not holds(high):
        high *= 2
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(high)


def epsilon_of_mu(mu: float, delta: float) -> float:
    m, d = Decimal(mu), Decimal(delta)
    if exact_delta(m, Decimal(0)) <= d:
        return 0.0
    return least(lambda epsilon: exact_delta(m, epsilon) <= d)


def mu_of_epsilon(epsilon: float, delta: float) -> float:
    return least(lambda mu: exact_delta(mu, Decimal(epsilon)) > Decimal(delta))


def compose_mu(mus: list[float]) -> float:
    return float(sum((Decimal(mu) ** 2 for mu in mus), Decimal(0)).sqrt())


def mu_of_release(mu: float, n_draws_released: int = 1, relation: str = "remove") -> float:
    return float(sides(relation) * Decimal(mu) * Decimal(n_draws_released).sqrt())


def terms(log_lik: Matrix, alpha: list[float] | None) -> list[list[float]]:
    """Columns g_i; all 0 for a weight of 0."""
    n = len(log_lik[0])
    weights = [1.0] * n if alpha is None else alpha
    return [[a * row[i] if a > 0 else 0.0 for row in log_lik] for i, a in enumerate(weights)]


def finite(column: list[float]) -> bool:
    return all(math.isfinite(g) for g in column) and math.isfinite(max(column) - min(column))


def loss_ranges(
    log_lik: Matrix, alpha: list[float] | None = None, draw_quantile: float = 1.0
) -> Case:
    columns = terms(log_lik, alpha)
    far = [0.0] * len(log_lik)
    for column in columns:
        if finite(column):
            middle = quantile7(column, 0.5)
            far = [max(t, abs(g - middle)) for t, g in zip(far, column, strict=True)]
    limit = math.inf if draw_quantile == 1 else quantile7(far, draw_quantile)
    kept = [t <= limit for t in far]
    ranges = []
    for column in columns:
        used = [g for g, keep in zip(column, kept, strict=True) if keep]
        ranges.append(max(used) - min(used) if finite(column) else math.inf)
    return {
        "by_record": ranges, "overall": max(ranges), "kept_draws": kept,
        "draw_quantile": draw_quantile,
    }  # fmt: skip


def sides(relation: str) -> int:
    return 2 if relation == "replace" else 1


def epsilon_of_range(
    loss_range: float, n_draws_released: int = 1, relation: str = "remove",
    kind: str = "asymptotic local",
) -> float:  # fmt: skip
    exact = sides(relation) * n_draws_released * Fraction(repr(loss_range))
    return ceiling_at(exact, DECIMALS[kind])


def rho_of_range(loss_range: float, n_draws_released: int = 1, relation: str = "remove") -> float:
    return float(n_draws_released * (sides(relation) * Fraction(repr(loss_range))) ** 2 / 8)


def epsilon_of_rho(rho: float, delta: float) -> float:
    r = Decimal(rho)
    return float(r + 2 * (r * -Decimal(delta).ln()).sqrt())


def frozen_excess(
    log_lik: Matrix, cap: Any, center: list[float] | None = None, alpha: list[float] | None = None
) -> list[float]:
    clipped = center_and_censor(log_lik, cap, center, alpha)
    whole = center_and_censor(log_lik, [1e300, 1e300], center, alpha)
    return [
        math.fsum(w - c for w, c in zip(one, two, strict=True)) / len(one)
        for one, two in zip(whole, clipped, strict=True)
    ]


def epsilon_of_censoring(
    cap: Any, n_draws_released: int = 1, relation: str = "remove", discrete_uncentered: bool = False
) -> float:
    below, above = cap if isinstance(cap, list) else (cap, cap)
    width = Fraction(repr(below)) + (0 if discrete_uncentered else Fraction(repr(above)))
    return ceiling_at(sides(relation) * n_draws_released * width, DECIMALS["strict"])


def deviation(values: list[float]) -> float:
    return statistics.stdev(values)


def gaussian_mu(log_lik: Matrix, alpha: list[float] | None = None) -> list[float]:
    return [deviation(g) if finite(g) else math.inf for g in terms(log_lik, alpha)]
