"""Brute force: the formulas of spec.md, sections 2, 3, 5 and 10, as plain loops.

Python numbers and fractions only: nothing of pyhybrid, numpy or R.
"""

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

INF = math.inf
Case = dict[str, Any]
Cases = list[tuple[Any, ...]]
"""Name and arguments of each."""
Matrix = list[list[float]]


def quantile7(values: list[float], q: float) -> float:
    ordered = sorted(values)
    place = (len(ordered) - 1) * q
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    if low == high:
        return low
    return low + (place - math.floor(place)) * (high - low)


def weighted(alpha: float, f: float) -> float:
    return 0.0 if alpha == 0 else alpha * (INF if math.isnan(f) else abs(f))


def lipschitz_bounds(
    log_lik: Matrix, alpha: list[float] | None = None, draw_quantile: float = 1.0
) -> Case:
    n = len(log_lik[0])
    weights = [1.0] * n if alpha is None else alpha
    rows = [[weighted(weights[i], row[i]) for i in range(n)] for row in log_lik]
    row_max = [max(row) for row in rows]
    overall = quantile7(row_max, draw_quantile)
    kept = [t <= overall for t in row_max]
    used = [row for row, keep in zip(rows, kept, strict=True) if keep]
    unbounded = [any(math.isinf(row[i]) for row in rows) for i in range(n)]
    return {
        "by_record": [math.inf if unbounded[i] else max(row[i] for row in used) for i in range(n)],
        "overall": math.inf if any(unbounded) else overall,
        "kept_draws": kept,
        "draw_quantile": draw_quantile,
    }


def clip(x: float, low: float = 0.0, high: float = 1.0) -> float:
    return min(max(x, low), high)


def risk_map(f: list[float], transform: str, threshold: float | None) -> list[float]:
    if transform == "linear":
        spread = max(f) - min(f)
        return [1 - ((x - min(f)) / spread if spread > 0 else 0.0) for x in f]
    if transform == "reciprocal":
        return [1 / (x + 1) for x in f]
    if transform == "threshold":
        assert threshold is not None
        return [1.0 if x < threshold else 0.0 for x in f]
    if transform == "logistic":
        return [1 - (2 / (1 + math.exp(-x / 2)) - 1) for x in f]
    mean = math.fsum(f) / len(f)
    if max(f) == min(f):
        return [0.5] * len(f)
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in f) / (len(f) - 1))
    return [1 - 1 / (1 + math.exp(-1.69897 * (x - mean) / sd)) for x in f]


def weights_from_lipschitz(
    lipschitz: list[float], scale: float = 1.0, shift: float = 0.0, transform: str = "linear",
    threshold: float | None = None,
) -> list[float]:  # fmt: skip
    finite = [x for x in lipschitz if math.isfinite(x)]
    mapped = iter(risk_map(finite, transform, threshold)) if finite else iter(())
    return [clip(scale * next(mapped) + shift) if math.isfinite(x) else 0.0 for x in lipschitz]


def lipschitz_weights(
    log_lik: Matrix, draw_quantile: float = 1.0, risk: str = "size", **how: Any
) -> list[float]:
    bounds = lipschitz_bounds(log_lik, None, draw_quantile)
    risks = list(bounds["by_record"])
    kept = [row for row, keep in zip(log_lik, bounds["kept_draws"], strict=True) if keep]
    for i, size in enumerate(risks):
        column = [row[i] for row in kept]
        if math.isfinite(size) and risk == "range":
            risks[i] = max(column) - min(column)
        elif math.isfinite(size) and risk == "deviation":
            risks[i] = statistics.stdev(column)
    return weights_from_lipschitz(risks, **how)


def ball(y: list[float], i: int, radius: float, kind: str, among: list[int]) -> set[int]:
    reach = radius * abs(y[i]) if kind == "relative" else radius
    return {j for j in among if abs(y[j] - y[i]) <= reach}


def same_pattern(pattern: list[Any] | None, i: int, n: int) -> list[int]:
    return [j for j in range(n) if pattern is None or pattern[j] == pattern[i]]


def radius_risk(
    y: list[float], radius: float = 0.2, kind: str = "relative", pattern: list[Any] | None = None
) -> list[float]:
    risk = []
    for i in range(len(y)):
        among = same_pattern(pattern, i, len(y))
        risk.append(float(1 - Fraction(len(ball(y, i, radius, kind, among)), len(among))))
    return risk


def pairwise_risk(
    y: list[float], radius: float = 0.2, kind: str = "relative", pattern: list[Any] | None = None
) -> list[float]:
    risk = []
    for i in range(len(y)):
        among = same_pattern(pattern, i, len(y))
        own = ball(y, i, radius, kind, among)
        pairs = [own | ball(y, j, radius, kind, among) for j in among if j != i]
        total = sum((1 - Fraction(len(inside), len(among)) for inside in pairs), Fraction(0))
        risk.append(float(total / max(len(pairs), 1)))
    return risk


def count_weights(risk: list[float], scale: float = 1.0, shift: float = 0.0) -> list[float]:
    return [clip(scale * (1 - r) + shift) for r in risk]


def scalar_weights(n: int, target_bound: float, unweighted_bound: float) -> list[float]:
    return [min(1.0, target_bound / unweighted_bound)] * n


def truncate_weights(alpha: list[float], lipschitz: list[float], cap: float) -> list[float]:
    return [0.0 if weighted(a, f) > cap else a for a, f in zip(alpha, lipschitz, strict=True)]


def reweight(
    alpha: list[float], by_record: list[float], k: float = 0.95, bound: float | None = None
) -> list[float]:
    top = max(by_record) if bound is None else bound
    return [
        0.0 if a == 0 else 1.0 if d == 0 else clip(k * a * top / d)
        for a, d in zip(alpha, by_record, strict=True)
    ]


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
        return -below if math.isnan(f) else clip(a * (f - c) + e, -below, above)

    return [
        [one(*own, e) for own in zip(row, middle, weights, strict=True)]
        for row, e in zip(log_lik, added, strict=True)
    ]


censor = center_and_censor


def histogram_counts(y: list[float], lower: float, upper: float, n_bins: int) -> list[int]:
    counts = [0] * n_bins
    for value in y:
        edges = [lower + (upper - lower) * b / n_bins for b in range(n_bins + 1)]
        place = max(b for b in range(n_bins) if edges[b] <= value)
        counts[place] += 1
    return counts


def perturbed_probabilities(counts: list[float], noise: list[float]) -> list[float]:
    kept = [max(c + e, 0.0) for c, e in zip(counts, noise, strict=True)]
    total = math.fsum(kept)
    return [k / total if total > 0 else 1 / len(kept) for k in kept]


def ceiling_at(exact: Fraction, decimals: int) -> float:
    return float(Fraction(math.ceil(exact * 10**decimals), 10**decimals))


DECIMALS = {"asymptotic local": 2, "strict": 6}


def epsilon_of_bound(
    bound: float, n_draws_released: int = 1, relation: str = "remove",
    density_above_one: bool = False, safety_factor: float = 1.0, kind: str = "asymptotic local",
) -> float:  # fmt: skip
    sides = 4 if relation == "replace" and density_above_one else 2
    # A number means its shortest decimal form: 0.15 is 15/100.
    exact = sides * n_draws_released * Fraction(repr(safety_factor)) * Fraction(repr(bound))
    return ceiling_at(exact, DECIMALS[kind])


def round_up(epsilon: float, kind: str = "asymptotic local") -> float:
    return ceiling_at(Fraction(repr(epsilon)), DECIMALS[kind])


def compose(charges: list[Case]) -> float:
    return float(sum((Fraction(repr(c["epsilon"])) for c in charges), Fraction(0)))


def mean_var(values: list[float]) -> tuple[Fraction, Fraction]:
    exact = [Fraction(v) for v in values]
    return statistics.mean(exact), statistics.variance(exact)


def squared(one: Fraction, top: Fraction, bottom: Fraction, sign: int) -> float:
    """(1 + sign top/bottom)^2, infinite for bottom = 0."""
    return INF if bottom == 0 else float((one + sign * top / bottom) ** 2)


def combined(
    estimate: Fraction, variance: Fraction, df: float, b: Fraction, v: Fraction, fixed: bool = False
) -> Case:
    return {
        "estimate": float(estimate), "variance": float(variance), "df": float(df),
        "between": float(b), "within": float(v), "adjusted": fixed,
    }  # fmt: skip


def one_of(q: list[float], v: list[float], whole: int, sign: int, size_ratio: float = 1.0) -> Case:
    """Total (whole + 1/m) b + sign v; where it is not positive, of fully synthetic sets, v."""
    m, (mean, b), within = len(q), mean_var(q), mean_var(v)[0]
    spread = (whole + Fraction(1, m)) * b
    if spread + sign * within <= 0 and sign < 0:
        return combined(mean, Fraction(size_ratio) * within, m - 1, b, within, True)
    df = (m - 1) * squared(Fraction(1), within, spread, sign)
    return combined(mean, spread + sign * within, df, b, within)


def nested_one(q: Matrix, v: Matrix) -> Case:
    m, r = len(q), len(q[0])
    mean, big_b = mean_var([mean_var(row)[0] for row in q])
    small_b = statistics.mean(mean_var(row)[1] for row in q)
    within = statistics.mean(Fraction(x) for row in v for x in row)
    spread = (1 + Fraction(1, m)) * big_b
    total = spread - small_b / r + within
    if total < 0:
        df = (m - 1) * squared(Fraction(1), within, spread, 1)
        return combined(mean, spread + within, df, big_b, within, True)
    parts = spread**2 / (m - 1) + (small_b / r) ** 2 / (m * (r - 1))
    return combined(mean, total, INF if parts == 0 else float(total**2 / parts), big_b, within)


def by_column(one: Callable[..., Case], depth: int) -> Callable[..., Case]:
    """Combine vectors element by element; scalars stay scalars."""

    def column(x: Any, k: int) -> Any:
        if isinstance(x, list) and not isinstance(x[0], list):
            return x[k]
        return [column(y, k) for y in x]

    def rule(estimates: Any, variances: Any, **how: Any) -> Case:
        inner = estimates
        for _ in range(depth):
            inner = inner[0]
        if not isinstance(inner, list):
            return one(estimates, variances, **how)
        parts = [one(column(estimates, k), column(variances, k), **how) for k in range(len(inner))]
        return {name: [part[name] for part in parts] for name in parts[0]}

    return rule


combine_partially_synthetic = by_column(partial(one_of, whole=0, sign=1), 1)
combine_multiple_imputation = by_column(partial(one_of, whole=1, sign=1), 1)
combine_fully_synthetic = by_column(partial(one_of, whole=1, sign=-1), 1)
combine_nested = by_column(nested_one, 2)
