"""Cases of ranges, the Gaussian curve, deviations and re-centered censoring."""

import random
from collections.abc import Callable, Iterable
from itertools import product

from tests.golden.cases_risk import INF, NAN, draw_matrix, log_lik_inputs, weighted_cases
from tests.golden.formulas import DECIMALS, Cases, Matrix


def correlated(rng: random.Random, draws: int, n: int, spread: float) -> Matrix:
    """Columns that wander, as the draws of a chain do."""
    row, rows = [0.0] * n, []
    for _ in range(draws):
        row = [0.6 * x + 0.8 * rng.gauss(0, 1) for x in row]
        rows.append([round(spread * x - 3, 6) for x in row])
    return rows


def range_cases(rng: random.Random) -> Cases:
    cases: Cases = []
    for name, matrix in log_lik_inputs(rng).items():
        cases += weighted_cases(rng, name, matrix)
    for quantile in (0.9, 0.5):
        long = draw_matrix(rng, 41, 4)
        args = {"log_lik": long, "alpha": [1.0, 0.5, 0.0, 0.9], "draw_quantile": quantile}
        cases.append((f"quantile {quantile}", args))
    return cases


def mu_cases(rng: random.Random) -> Cases:
    wide, narrow = correlated(rng, 60, 3, 1.0), correlated(rng, 96, 3, 0.05)
    cut = [list(row) for row in wide]
    cut[7][1] = NAN
    return [
        ("wide", {"log_lik": wide}),
        ("narrow", {"log_lik": narrow}),
        ("weighted", {"log_lik": wide, "alpha": [0.3, 0.0, 1.0]}),
        ("constant", {"log_lik": [[-0.1, -7.0]] * 12}),
        ("not finite", {"log_lik": cut}),
        ("two draws", {"log_lik": [[-1.0], [-2.5]]}),
    ]


MUS = (0.0, 1e-9, 0.001, 0.05, 0.207, 0.251, 1.0, 1.146, 4.0, 15.0)
DELTAS = (1e-12, 1e-6, 0.01, 0.4)


FAR = [(1e-9, 4e-9), (0.3, 11.0), (60.0, 1500.0), (60.0, 2000.0)]


def pairs(one: str, other: str, values: Iterable[tuple[float, float]]) -> Cases:
    """A case for each pair of values of two arguments."""
    return [(f"{a}, {b}", {one: a, other: b}) for a, b in values]


def center_cases(rng: random.Random) -> Cases:
    odd = {"log_lik": [[NAN, INF, -INF, -1.0], [-1.0, -2.0, -3.0, -4.0]]}
    clipped = excess_cases(rng)[:3]
    args = clipped[2][1]
    middle = {"center": args["center"]}
    return [
        *clipped,
        ("one-sided", {"log_lik": args["log_lik"], "cap": [0.0, 0.75], **middle}),
        ("not finite", {**odd, "cap": [0.5, 0.25], **middle}),
        ("not finite, weight 0", {**odd, "cap": 1.0, "alpha": [0.0] * 4}),
        ("excess", {**args, "excess": [0.1, -0.2, 0.0, 3.0, -4.0, 0.05]}),
    ]


def excess_cases(rng: random.Random) -> Cases:
    matrix = {"log_lik": draw_matrix(rng, 6, 4)}
    full = {"center": [-1.0, -2.0, -3.0, -0.5], "alpha": [1.0, 0.5, 0.0, 0.25]}
    return [
        ("centered", {**matrix, "cap": 0.5, **full}), ("no center", {**matrix, "cap": 2.0}),
        ("asymmetric", {**matrix, "cap": [1.0, 0.25], **full}),
        ("nothing is clipped", {**matrix, "cap": 1000.0, **full}),
    ]  # fmt: skip


GAUSSIAN_CASES: dict[str, Callable[[random.Random], Cases] | Cases] = {
    "center_and_censor": center_cases,
    "compose_mu": [
        ("three and four", {"mus": [3.0, 4.0]}),
        ("twenty", {"mus": [0.207] * 20}), ("one", {"mus": [0.3]}),
    ],
    "delta_of_mu": pairs("mu", "epsilon", [*product(MUS, (0.0, 1e-3, 0.5, 0.87, 5.7, 40.0)), *FAR]),
    "epsilon_of_censoring": [
        ("remove", {"cap": 0.25}),
        ("replace", {"cap": 0.25, "relation": "replace", "n_draws_released": 2}),
        ("discrete", {"cap": 0.25, "discrete_uncentered": True}),
        ("asymmetric", {"cap": [0.1, 0.2]}),
    ],
    "epsilon_of_mu": pairs("mu", "delta", product(MUS, DELTAS)),
    "epsilon_of_range": [
        (f"{x!r}, {draws} draws, {relation}, {kind}",
            {"loss_range": x, "n_draws_released": draws, "relation": relation, "kind": kind})
        for x in (0.0, 0.15, 0.364, 1 / 3)
        for draws, relation in ((1, "remove"), (3, "replace"))
        for kind in DECIMALS
    ],
    "epsilon_of_rho": pairs("rho", "delta", product((0.0, 1e-4, 0.625, 30.0), DELTAS)),
    "frozen_excess": excess_cases, "gaussian_mu": mu_cases, "loss_ranges": range_cases,
    "mu_of_epsilon": pairs("epsilon", "delta", product((0.0, 0.1, 1.0, 8.0), DELTAS)),
    "mu_of_release": [
        ("one draw", {"mu": 0.3}),
        ("twenty draws", {"mu": 0.207, "n_draws_released": 20}),
        ("replace", {"mu": 0.7, "n_draws_released": 3, "relation": "replace"}),
    ],
    "rho_of_range": [
        ("twenty draws", {"loss_range": 0.5, "n_draws_released": 20}),
        ("replace", {"loss_range": 0.364, "relation": "replace"}),
        ("nothing", {"loss_range": 0.0}),
    ],
}  # fmt: skip
