"""Cases of bounds, weights and risks: name, arguments, and for bad input the message."""

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
    few = {"log_lik": [[-1.0, -2.0]]}
    cases += [
        ("a vector", {"log_lik": [-1.0, -2.0]}, "log_lik must have shape (S draws, n records)"),
        ("text", {"log_lik": [["a", "b"]]}, "log_lik must be numeric"),
        ("weight above 1", {**few, "alpha": [0.5, 1.5]},
            "alpha must lie in [0, 1]: {record 1} has another weight"),
        ("weight below 0", {**few, "alpha": [-0.5, 0.5]},
            "alpha must lie in [0, 1]: {record 0} has another weight"),
        ("weight NaN", {**few, "alpha": [0.5, NAN]}, "alpha must lie in [0, 1]: {record 1}"),
        ("weights too few", {**few, "alpha": [0.5, 0.5, 0.5]},
            "alpha must have 2 elements: found 3"),
        ("quantile 0", {**few, "draw_quantile": 0}, "draw_quantile must lie in (0, 1]: found 0"),
        ("quantile above 1", {**few, "draw_quantile": 1.01},
            "draw_quantile must lie in (0, 1]: found 1.01"),
        ("quantile NaN", {**few, "draw_quantile": NAN}, "draw_quantile must be a finite number"),
    ]  # fmt: skip
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
    cases += [
        ("unknown risk", {"log_lik": regular, "risk": "mean"},
            "risk must be one of size, range, deviation: found 'mean'"),
        (
            "unknown transform",
            {"log_lik": regular, "transform": "cubic"},
            "transform must be one of linear, reciprocal, threshold, logistic, softmax: "
            "found 'cubic'",
        ),
        ("threshold missing", {"log_lik": regular, "transform": "threshold"},
            "threshold must be given with transform='threshold', and only then"),
        ("threshold not wanted", {"log_lik": regular, "threshold": 1.0},
            "threshold must be given with transform='threshold', and only then"),
        ("scale infinite", {"log_lik": regular, "scale": INF}, "scale must be a finite number"),
        ("a vector", {"log_lik": [1.0]}, "log_lik must have shape (S draws, n records)"),
    ]  # fmt: skip
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
    cases: Cases = [
        (f"{name}, {transform}", {"lipschitz": f, "transform": transform, **scaled, **how})
        for name, f in inputs.items()
        for transform, how in TRANSFORMS.items()
    ]
    cases += [
        ("negative", {"lipschitz": [1.0, -1.0]},
            "lipschitz must be >= 0 and not NaN: {record 1} is not"),
        ("NaN", {"lipschitz": [NAN, 1.0]}, "lipschitz must be >= 0 and not NaN: {record 0}"),
        ("empty", {"lipschitz": []}, "lipschitz must be a vector of shape (n,), n >= 1"),
        ("threshold 0", {"lipschitz": [1.0], "transform": "threshold", "threshold": 0},
            "threshold must be above 0: found 0"),
    ]  # fmt: skip
    return cases


def risk_cases(rng: random.Random) -> Cases:
    regular = [round(rng.gauss(50, 20), 1) for _ in range(25)]
    counts = [float(rng.randint(0, 12)) for _ in range(30)]
    groups = [rng.choice(["a", "b", "c"]) for _ in range(25)]
    pairs = [[rng.choice(["a", "b"]), rng.choice([1, 2, 3])] for _ in range(25)]
    inputs: dict[str, Case] = {
        "regular": {"y": regular},
        "ties and zeros": {"y": counts},
        "negative": {"y": [-5.0, -4.0, 4.0, 5.0, 0.0]},
        "all equal": {"y": [3.0] * 6},
        "all zero": {"y": [0.0] * 4},
        "one record": {"y": [3.0]},
        "two records": {"y": [1.0, 10.0]},
        "on the edge": {"y": [10.0, 12.0, 8.0, 12.000001, 7.999999], "radius": 0.2},
        "edge that rounds": {
            "y": [0.1, 0.3, 0.2, 0.4, 0.6, 0.7], "radius": 0.1, "kind": "absolute",
        },
        "edge among tiny values": {
            "y": [1.0, -1e-17, -2e-17, -3e-17, -4e-17, -5e-17], "radius": 1.0, "kind": "absolute",
        },
        "tiny radius": {"y": regular, "radius": 1e-12},
        "radius above 1": {"y": counts, "radius": 2.5},
        "absolute": {"y": regular, "radius": 7.5, "kind": "absolute"},
        "absolute, ties": {"y": counts, "radius": 1.0, "kind": "absolute"},
        "pattern": {"y": regular, "pattern": groups},
        "pattern of two columns": {"y": regular, "pattern": pairs, "radius": 0.3},
        "pattern, each alone": {"y": [1.0, 2.0, 3.0], "pattern": ["a", "b", "c"]},
        "pattern of numbers": {"y": [1.0, 1.1, 3.0, 1.2], "pattern": [1, 1, 2, 2]},
    }  # fmt: skip
    cases: Cases = list(inputs.items())
    for radius in (0.15, 0.2, 0.25, 0.3):
        cases.append((f"published radius {radius}", {"y": regular, "radius": radius}))
    y = {"y": [1.0, 2.0]}
    cases += [
        ("radius 0", {**y, "radius": 0}, "radius must be above 0: found 0"),
        ("radius negative", {**y, "radius": -0.2}, "radius must be above 0: found -0.2"),
        ("unknown kind", {**y, "kind": "ratio"},
            "kind must be one of relative, absolute: found 'ratio'"),
        ("value NaN", {"y": [1.0, NAN]}, "y must be finite: {record 1}"),
        ("value infinite", {"y": [INF, 1.0]}, "y must be finite: {record 0}"),
        ("pattern too short", {**y, "pattern": ["a"]},
            "pattern must have shape (n,) or (n, p), n = 2: found (1,)"),
    ]  # fmt: skip
    return cases


def count_cases(rng: random.Random) -> Cases:
    risk = [round(rng.random(), 6) for _ in range(8)] + [0.0, 1.0]
    return [
        ("plain", {"risk": risk}),
        ("scaled", {"risk": risk, "scale": 0.6, "shift": -0.1}),
        ("clipped above", {"risk": risk, "scale": 2.0, "shift": 0.3}),
        ("one record", {"risk": [0.25]}),
        ("above 1", {"risk": [0.5, 1.25]}, "risk must lie in [0, 1]: {record 1} is above"),
        ("negative", {"risk": [-0.5]}, "risk must be >= 0 and not NaN: {record 0} is not"),
        ("shift NaN", {"risk": [0.5], "shift": NAN}, "shift must be a finite number"),
    ]


def scalar_cases(_: random.Random) -> Cases:
    def args(n: float, target: float, unweighted: float) -> Case:
        return {"n": n, "target_bound": target, "unweighted_bound": unweighted}

    return [
        ("down", args(4, 2.5, 10.1)),
        ("already below", args(2, 12, 10)),
        ("equal", args(1, 3.3, 3.3)),
        ("no records", args(0, 1, 1), "n must be a whole number >= 1: found 0"),
        ("part of a record", args(1.5, 1, 1), "n must be a whole number >= 1: found 1.5"),
        ("target 0", args(2, 0, 1), "target_bound must be above 0: found 0"),
        ("unweighted infinite", args(2, 1, INF), "unweighted_bound must be a finite number"),
    ]


def truncate_cases(_: random.Random) -> Cases:
    alpha, f = [0.0, 0.5, 1.0, 0.7, 1.0], [INF, 7.0, 3.5, 5.0000001, 0.0]
    return [
        ("on the cap", {"alpha": alpha, "lipschitz": f, "cap": 3.5}),
        ("all below", {"alpha": alpha, "lipschitz": f, "cap": 100.0}),
        ("infinite", {"alpha": [0.1, 0.0], "lipschitz": [INF, INF], "cap": 9.0}),
        ("one record", {"alpha": [1.0], "lipschitz": [4.0], "cap": 3.5}),
        ("cap 0", {"alpha": [1.0], "lipschitz": [4.0], "cap": 0}, "cap must be above 0: found 0"),
        ("unlike lengths", {"alpha": [1.0, 1.0], "lipschitz": [4.0], "cap": 1},
            "alpha must have 1 elements: found 2"),
        ("f negative", {"alpha": [1.0], "lipschitz": [-4.0], "cap": 1},
            "lipschitz must be >= 0 and not NaN: {record 0} is not"),
    ]  # fmt: skip


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
        ("infinite", {"alpha": [0.4, 0.4], "by_record": [2.0, INF]},
            "by_record must be finite: {record 1} has no bound; give it weight 0"),
        ("k 0", {**args, "k": 0}, "k must lie in (0, 1]: found 0"),
        ("k above 1", {**args, "k": 1.5}, "k must lie in (0, 1]: found 1.5"),
        ("bound 0 given", {**args, "bound": 0}, "bound must be above 0: found 0"),
    ]  # fmt: skip


def censor_cases(rng: random.Random) -> Cases:
    cases: Cases = []
    for name, matrix in log_lik_inputs(rng).items():
        n = len(matrix[0])
        cases.append((name, {"log_lik": matrix, "cap": 2.5}))
        alpha = [(0.0, 1.0, 0.37)[i % 3] for i in range(n)]
        args = {"log_lik": matrix, "alpha": alpha, "cap": 0.9}
        cases.append((f"{name}, weighted", args))
    cases += [
        ("cap negative", {"log_lik": [[1.0]], "cap": -1}, "cap must be above 0: found -1"),
        ("cap infinite", {"log_lik": [[1.0]], "cap": INF}, "cap must be a finite number"),
    ]
    return cases


RISK_CASES: dict[str, Callable[[random.Random], Cases] | Cases] = {
    "censor": censor_cases, "count_weights": count_cases, "lipschitz_bounds": bounds_cases,
    "lipschitz_weights": lipschitz_weights_cases, "pairwise_risk": risk_cases,
    "radius_risk": risk_cases, "reweight": reweight_cases,
    "scalar_weights": scalar_cases, "truncate_weights": truncate_cases,
    "weights_from_lipschitz": weights_cases,
}  # fmt: skip
