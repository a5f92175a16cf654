"""Brute force of guarantees.md sections 1, 3, 3a, 4 and 6: loops, fractions, 60-digit decimals.

Nothing of pyhybrid, numpy or R.
"""

import math
from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

from tests.golden.formulas import DECIMALS, Case, Matrix, ceiling_at, quantile7

getcontext().prec = 60
HALF_LOG_TWO_PI = (
    2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
).ln() / 2


# --- The Gaussian curve -------------------------------------------------------------------------


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


def bisect(holds: Callable[[Decimal], bool], low: Decimal, high: Decimal) -> float:
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(high)


def epsilon_of_mu(mu: float, delta: float) -> float:
    m, d = Decimal(mu), Decimal(delta)
    if exact_delta(m, Decimal(0)) <= d:
        return 0.0
    high = Decimal(1)
    while exact_delta(m, high) > d:
        high *= 2
    return bisect(lambda epsilon: exact_delta(m, epsilon) <= d, Decimal(0), high)


def mu_of_epsilon(epsilon: float, delta: float) -> float:
    e, d = Decimal(epsilon), Decimal(delta)
    high = Decimal(1)
    while exact_delta(high, e) <= d:
        high *= 2
    return bisect(lambda mu: exact_delta(mu, e) > d, Decimal(0), high)


def compose_mu(mus: list[float]) -> float:
    return float(sum((Decimal(mu) ** 2 for mu in mus), Decimal(0)).sqrt())


def mu_of_release(mu: float, n_draws_released: int = 1, relation: str = "remove") -> float:
    return float(sides(relation) * Decimal(mu) * Decimal(n_draws_released).sqrt())


# --- Ranges and what they cost ------------------------------------------------------------------


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


def center_and_censor(
    log_lik: Matrix, cap: Any, center: list[float] | None = None, alpha: list[float] | None = None,
    excess: list[float] | None = None,
) -> Matrix:  # fmt: skip
    n = len(log_lik[0])
    below, above = cap if isinstance(cap, list) else (cap, cap)
    middle = [0.0] * n if center is None else center
    weights = [1.0] * n if alpha is None else alpha
    added = [0.0] * len(log_lik) if excess is None else excess

    def one(f: float, c: float, a: float, e: float) -> float:
        if a == 0:
            return 0.0
        return -below if math.isnan(f) else min(max(a * (f - c) + e, -below), above)

    return [
        [one(*own, e) for own in zip(row, middle, weights, strict=True)]
        for row, e in zip(log_lik, added, strict=True)
    ]


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


# --- Leave-one-out loss -------------------------------------------------------------------------


def pareto_fit(excess: list[float]) -> tuple[float, float]:
    """Zhang and Stephens (2009), with the prior on the shape of Vehtari, Gelman, Gabry (2017)."""
    n = len(excess)
    points = 30 + math.isqrt(n)
    quartile = excess[math.floor(n / 4 + 0.5) - 1]
    theta = [
        1 / excess[-1] + (1 - math.sqrt(points / (j + 0.5))) / (3 * quartile) for j in range(points)
    ]
    shape = [math.fsum(math.log1p(-t * x) for x in excess) / n for t in theta]
    profile = [n * (math.log(-t / k) - k - 1) for t, k in zip(theta, shape, strict=True)]
    weight = [
        1 / math.fsum(math.exp(min(other - own, 700)) for other in profile) for own in profile
    ]
    used = [j for j in range(points) if weight[j] >= 10 * 2.0**-52]
    total = math.fsum(weight[j] for j in used)
    best = math.fsum(theta[j] * weight[j] for j in used) / total
    k = math.fsum(math.log1p(-best * x) for x in excess) / n
    return (n * k + 5) / (n + 10), -k / best


def smooth(logs: list[float]) -> tuple[list[float], float]:
    top = max(logs)
    if top - min(logs) <= 1e-10:
        return logs, -math.inf
    count = math.ceil(min(len(logs) / 5, 3 * math.sqrt(len(logs))))
    if count < 5:
        return logs, math.inf
    cut = max(sorted(logs)[-count - 1] - top, math.log(2.0**-1022))
    tail = sorted((s for s in range(len(logs)) if logs[s] - top > cut), key=lambda s: logs[s])
    if len(tail) < 5:
        return logs, math.inf
    k, sigma = pareto_fit([math.exp(logs[s] - top) - math.exp(cut) for s in tail])
    out = list(logs)
    for place, s in enumerate(tail):
        share = -math.log1p(-(place + 0.5) / len(tail))
        value = sigma * math.expm1(k * share) / k + math.exp(cut)
        out[s] = min(math.log(value), 0.0) + top
    return out, k


def log_mean_exp(values: list[float]) -> float:
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values) / len(values))


def leave_one_out_loss(log_lik: Matrix, alpha: list[float] | None = None) -> Case:
    losses, shapes = [], []
    for column in terms(log_lik, alpha):
        if not finite(column):
            losses.append([math.inf] * len(column))
            shapes.append(math.inf)
            continue
        smoothed, k = smooth([-g for g in column])
        constant = log_mean_exp(smoothed)
        losses.append([0.0 if k == -math.inf else abs(g + constant) for g in column])
        shapes.append(k)
    return {
        "by_record": [max(loss) for loss in losses],
        "by_draw": [max(loss[s] for loss in losses) for s in range(len(log_lik))],
        "quantiles": [[quantile7(loss, q) for q in (0.5, 0.9, 0.99)] for loss in losses],
        "probabilities": [0.5, 0.9, 0.99],
        "pareto_k": shapes,
    }


# --- Gaussian mu --------------------------------------------------------------------------------


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def effective(values: list[float], chains: int) -> float:
    """Geyer's initial monotone sequence over halved chains; at most the number of draws."""
    length = len(values) // chains
    half = length // 2
    parts = []
    for c in range(chains):
        chain = values[c * length : (c + 1) * length]
        parts += [chain[:half], chain[-half:]]
    means = [mean(part) for part in parts]

    def covariance(lag: int) -> float:
        return mean(
            [
                math.fsum((part[t] - m) * (part[t + lag] - m) for t in range(half - lag)) / half
                for part, m in zip(parts, means, strict=True)
            ]
        )

    within = covariance(0) * half / (half - 1)
    grand = mean(means)
    total = covariance(0) + math.fsum((m - grand) ** 2 for m in means) / (len(means) - 1)
    if total <= 0 or max(values) == min(values):
        return float(len(values))
    rho = [1.0] + [1 - (within - covariance(lag)) / total for lag in range(1, half)]
    time, smallest, pair = -1.0, math.inf, 0
    while pair < half // 2:
        both = rho[2 * pair] + rho[2 * pair + 1]
        if both <= 0 and pair > 0:
            break
        smallest = min(smallest, both)
        time += 2 * smallest
        pair += 1
    if pair < half // 2:
        time += max(rho[2 * pair], 0.0)
    return len(values) / max(time, 1.0)


def deviation(
    g: list[float], weights: list[float], chains: int, known: float | None
) -> tuple[float, float]:
    n = len(g)
    middle = mean([w * x for w, x in zip(weights, g, strict=True)])
    squares = [(x - middle) ** 2 for x in g]
    variance = mean([w * q for w, q in zip(weights, squares, strict=True)])
    sd = math.sqrt(variance * n / (n - 1))
    if max(g) == min(g):
        return 0.0, 0.0
    influence = [w * (q - variance) for w, q in zip(weights, squares, strict=True)]
    grand = mean(influence)
    noise = math.sqrt(math.fsum((q - grand) ** 2 for q in influence) / (n - 1))
    draws = effective(influence, chains) if known is None else known
    return sd, noise / math.sqrt(draws) / (2 * sd)


def gaussian_mu(
    log_lik: Matrix, alpha: list[float] | None = None, chains: int = 1, ess: float | None = None,
    neighbor: bool = True,
) -> Case:  # fmt: skip
    own, other, errors, uppers, shapes = [], [], [], [], []
    top: tuple[float, float] = (-1.0, 0.0)
    for column in terms(log_lik, alpha):
        if not finite(column):
            pair, beside, k = (math.inf, math.inf), (math.inf, math.inf), math.inf
        else:
            pair = deviation(column, [1.0] * len(column), chains, ess)
            beside, k = pair, -math.inf
            if neighbor:
                smoothed, k = smooth([-g for g in column])
                logs = [w - log_mean_exp(smoothed) for w in smoothed]
                beside = deviation(column, [math.exp(w) for w in logs], chains, ess)
        ends = [mu + 2 * error for mu, error in (pair, beside)]
        own.append(pair[0])
        other.append(beside[0])
        errors.append(pair[1] if ends[0] >= ends[1] else beside[1])
        uppers.append(max(ends))
        shapes.append(k)
        if max(pair[0], beside[0]) > top[0]:
            top = pair if pair[0] >= beside[0] else beside
    return {
        "by_record": own, "neighbor_by_record": other, "standard_error_by_record": errors,
        "upper_by_record": uppers, "pareto_k": shapes, "overall": top[0], "standard_error": top[1],
        "upper": max(uppers),
    }  # fmt: skip


GAUSSIAN_FORMULAS: dict[str, Callable[..., Any]] = {
    "center_and_censor": center_and_censor, "frozen_excess": frozen_excess,
    "compose_mu": compose_mu, "delta_of_mu": delta_of_mu,
    "epsilon_of_censoring": epsilon_of_censoring, "epsilon_of_mu": epsilon_of_mu,
    "epsilon_of_range": epsilon_of_range, "epsilon_of_rho": epsilon_of_rho,
    "gaussian_mu": gaussian_mu, "leave_one_out_loss": leave_one_out_loss,
    "loss_ranges": loss_ranges, "mu_of_epsilon": mu_of_epsilon, "mu_of_release": mu_of_release,
    "rho_of_range": rho_of_range,
}  # fmt: skip
