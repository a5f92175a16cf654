"""Cases of bounds, weights and risks: name and arguments."""

import math
import random
from collections.abc import Callable

from tests.golden.formulas import Case, Cases, Matrix

INF, NAN = math.inf, math.nan


def draw_matrix(rng: random.Random, draws: int, n: int) -> Matrix:
    return [[round(-rng.expovariate(0.4), 6) for _ in range(n)] for _ in range(draws)]


def log_lik_inputs(rng: random.Random) -> dict[str, Matrix]:
    regular = draw_matrix(rng, 12, 7)
    tied = [[-2.5, -1.0, -2.5], [-1.0, -2.5, -1.0], [-2.5, -2.5, -2.5]]
    return {
        "regular": regular, "positive and negative": [[x + 2.0 for x in row] for row in regular],
        "ties": tied, "zeros": [[0.0, 0.0], [0.0, 0.0]],
        "one zero column": [[0.0, -3.25], [0.0, -1.5]], "all equal": [[-0.7] * 5] * 4,
        "all equal, not a binary fraction": [[-0.1] * 3] * 2,
        "one record": [[-1.5], [-2.75], [-0.5]], "one draw": [[-1.0, -2.0, -3.0]],
        "one record, one draw": [[-1.25]],
        "minus infinity": [[-1.0, -INF, -2.0], [-1.5, -2.0, -2.5]],
        "infinity": [[-1.0, INF, -2.0], [-1.5, -2.0, -2.5]],
        "NaN": [[-1.0, NAN, -2.0], [-1.5, -2.0, -2.5]],
        "all infinite": [[-INF, -INF], [-1.0, -INF]],
        "tiny and huge": [[-1e-300, -1e300], [-2e-300, -1e299]],
    }  # fmt: skip


def weighted_cases(rng: random.Random, name: str, matrix: Matrix) -> Cases:
    """Without weights, under weights at random, and under weights of 0 and 1."""
    alpha = [round(rng.random(), 6) for _ in matrix[0]]
    ends = [float(i % 2) for i in range(len(matrix[0]))]
    return [
        (name, {"log_lik": matrix}),
        (f"{name}, weighted", {"log_lik": matrix, "alpha": alpha}),
        (f"{name}, weights 0 and 1", {"log_lik": matrix, "alpha": ends}),
    ]


def bounds_cases(rng: random.Random) -> Cases:
    cases: Cases = []
    for name, matrix in log_lik_inputs(rng).items():
        weighted = weighted_cases(rng, name, matrix)
        args = weighted[1][1]
        none = {"log_lik": matrix, "alpha": [0.0] * len(matrix[0])}
        cases += [*weighted, (f"{name}, weights 0", none)]
        for q in (0.9, 0.5):
            cases.append((f"{name}, weighted, quantile {q}", {**args, "draw_quantile": q}))
    long = draw_matrix(rng, 101, 4)
    cases.append(("quantile on a draw", {"log_lik": long, "draw_quantile": 0.9}))
    for value, alpha in ((-math.inf, 0.5), (math.nan, 0.5), (-math.inf, 0.0)):
        dropped = [list(row) for row in long]
        dropped[50][2] = value
        args = {"log_lik": dropped, "alpha": [1.0, 1.0, alpha, 1.0], "draw_quantile": 0.9}
        cases.append((f"{value} in a dropped draw, weight {alpha}", args))
    cases.append(("smallest draw", {"log_lik": long, "draw_quantile": 1e-9}))
    return cases


TRANSFORMS: dict[str, Case] = {
    name: {"transform": name}
    for name in ("linear", "reciprocal", "threshold", "logistic", "softmax")
}
TRANSFORMS["threshold"]["threshold"] = 2.5


def lipschitz_weights_cases(rng: random.Random) -> Cases:
    cases: Cases = []
    for name, matrix in log_lik_inputs(rng).items():
        if name == "tiny and huge":
            continue
        for transform, how in TRANSFORMS.items():
            args: Case = {"log_lik": matrix, **how}
            cases.append((f"{name}, {transform}", args))
            if "inf" not in name and name != "NaN":
                fewer_draws = {**args, "draw_quantile": 0.9}
                cases.append((f"{name}, {transform}, quantile 0.9", fewer_draws))
    regular = draw_matrix(rng, 6, 5)
    for scale, shift in ((0.7, 0.0), (0.5, -0.3), (1.0, 0.2), (0.0, 0.5), (-1.0, 1.0)):
        args = {"log_lik": regular, "scale": scale, "shift": shift}
        cases.append((f"scale {scale}, shift {shift}", args))
    unbounded = [[*row[:-1], -math.inf if s == 2 else row[-1]] for s, row in enumerate(regular)]
    for risk in ("range", "deviation"):
        for name, matrix in {"regular": regular, "one -inf": unbounded}.items():
            for transform in ("linear", "reciprocal", "softmax"):
                args = {"log_lik": matrix, "risk": risk, "transform": transform, "scale": 0.9}
                cases.append((f"{risk}, {name}, {transform}", args))
        args = {"log_lik": regular, "risk": risk, "draw_quantile": 0.7}
        cases.append((f"{risk}, quantile 0.7", args))
    return cases


def weights_cases(rng: random.Random) -> Cases:
    inputs = {
        "regular": [round(rng.expovariate(0.3), 6) for _ in range(9)],
        "ties": [3.0, 3.0, 1.0, 7.0, 7.0], "zeros": [0.0, 0.0, 0.0], "one record": [4.0],
        "infinite": [1.0, INF, 3.0, 2.0], "infinite but one": [INF, 3.0, INF],
        "all infinite": [INF, INF], "all equal": [0.1, 0.1, 0.1],
        "on the threshold": [2.4999999, 2.5, 2.5000001],
    }  # fmt: skip
    scaled = {"scale": 0.9, "shift": 0.05}
    return [
        (f"{name}, {transform}", {"lipschitz": f, "transform": transform, **scaled, **how})
        for name, f in inputs.items()
        for transform, how in TRANSFORMS.items()
    ]


def risk_cases(rng: random.Random) -> Cases:
    regular = [round(rng.gauss(50, 20), 1) for _ in range(25)]
    counts = [float(rng.randint(0, 12)) for _ in range(30)]
    groups = [rng.choice(["a", "b", "c"]) for _ in range(25)]
    pairs = [[rng.choice(["a", "b"]), rng.choice([1, 2, 3])] for _ in range(25)]
    absolute = {"kind": "absolute"}
    inputs: dict[str, Case] = {
        "regular": {"y": regular}, "ties and zeros": {"y": counts},
        "negative": {"y": [-5.0, -4.0, 4.0, 5.0, 0.0]}, "all equal": {"y": [3.0] * 6},
        "all zero": {"y": [0.0] * 4}, "one record": {"y": [3.0]}, "two records": {"y": [1.0, 10.0]},
        "on the edge": {"y": [10.0, 12.0, 8.0, 12.000001, 7.999999], "radius": 0.2},
        "edge that rounds": {"y": [0.1, 0.3, 0.2, 0.4, 0.6, 0.7], "radius": 0.1, **absolute},
        "edge among tiny values": {
            "y": [1.0, -1e-17, -2e-17, -3e-17, -4e-17, -5e-17], "radius": 1.0, **absolute,
        },
        "tiny radius": {"y": regular, "radius": 1e-12},
        "radius above 1": {"y": counts, "radius": 2.5},
        "absolute": {"y": regular, "radius": 7.5, **absolute},
        "absolute, ties": {"y": counts, "radius": 1.0, **absolute},
        "pattern": {"y": regular, "pattern": groups},
        "pattern of two columns": {"y": regular, "pattern": pairs, "radius": 0.3},
        "pattern, each alone": {"y": [1.0, 2.0, 3.0], "pattern": ["a", "b", "c"]},
        "pattern of numbers": {"y": [1.0, 1.1, 3.0, 1.2], "pattern": [1, 1, 2, 2]},
    }  # fmt: skip
    published = {
        f"published radius {r}": {"y": regular, "radius": r} for r in (0.15, 0.2, 0.25, 0.3)
    }
    return [*inputs.items(), *published.items()]


def count_cases(rng: random.Random) -> Cases:
    risk = [round(rng.random(), 6) for _ in range(8)] + [0.0, 1.0]
    return [
        ("plain", {"risk": risk}),
        ("scaled", {"risk": risk, "scale": 0.6, "shift": -0.1}),
        ("clipped above", {"risk": risk, "scale": 2.0, "shift": 0.3}),
        ("one record", {"risk": [0.25]}),
    ]


CUT = {"alpha": [0.0, 0.5, 1.0, 0.7, 1.0], "lipschitz": [INF, 7.0, 3.5, 5.0000001, 0.0]}


def reweight_cases(rng: random.Random) -> Cases:
    alpha = [round(rng.random(), 6) for _ in range(8)]
    lipschitz = [round(5 * a * rng.random(), 6) for a in alpha]
    args: Case = {"alpha": alpha, "by_record": lipschitz}
    return [
        ("regular", args),
        ("k 1", {**args, "k": 1}),
        ("k small", {**args, "k": 0.3}),
        ("bound given", {**args, "bound": 9.5}),
        ("weight 0", {"alpha": [0.0, 0.5, 1.0], "by_record": [0.0, 1.0, 4.0]}),
        ("bound 0", {"alpha": [0.5, 0.5], "by_record": [0.0, 2.0]}),
        ("all bounds 0", {"alpha": [0.5, 0.0], "by_record": [0.0, 0.0]}),
        ("no slack", {"alpha": [0.4, 0.6], "by_record": [2.0, 2.0], "k": 1}),
        ("one record", {"alpha": [0.4], "by_record": [2.0]}),
    ]  # fmt: skip


def censor_cases(rng: random.Random) -> Cases:
    cases: Cases = []
    for name, matrix in log_lik_inputs(rng).items():
        alpha = [(0.0, 1.0, 0.37)[i % 3] for i in range(len(matrix[0]))]
        cases += [
            (name, {"log_lik": matrix, "cap": 2.5}),
            (f"{name}, weighted", {"log_lik": matrix, "alpha": alpha, "cap": 0.9}),
        ]
    return cases


RISK_CASES: dict[str, Callable[[random.Random], Cases] | Cases] = {
    "censor": censor_cases, "count_weights": count_cases, "lipschitz_bounds": bounds_cases,
    "lipschitz_weights": lipschitz_weights_cases, "pairwise_risk": risk_cases,
    "radius_risk": risk_cases, "reweight": reweight_cases,
    "scalar_weights": [
        (name, {"n": n, "target_bound": target, "unweighted_bound": unweighted})
        for name, n, target, unweighted in (
            ("down", 4, 2.5, 10.1), ("already below", 2, 12, 10), ("equal", 1, 3.3, 3.3),
        )
    ],
    "truncate_weights": [
        ("on the cap", {**CUT, "cap": 3.5}), ("all below", {**CUT, "cap": 100.0}),
        ("infinite", {"alpha": [0.1, 0.0], "lipschitz": [INF, INF], "cap": 9.0}),
        ("one record", {"alpha": [1.0], "lipschitz": [4.0], "cap": 3.5}),
    ],
    "weights_from_lipschitz": weights_cases,
}  # fmt: skip
