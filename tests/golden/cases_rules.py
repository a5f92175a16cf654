"""Cases of histograms, accounting and combining rules."""

import random
from collections.abc import Callable
from typing import Any

from tests.golden.formulas import DECIMALS, Case, Cases, Matrix


def histogram_cases(rng: random.Random) -> Cases:
    y = [round(rng.random(), 3) for _ in range(40)]
    unit = {"lower": 0.0, "upper": 1.0}
    return [
        ("regular", {"y": y, **unit, "n_bins": 7}),
        ("edges", {"y": [0.0, 0.25, 0.5, 0.75, 1.0], **unit, "n_bins": 4}),
        ("all in one", {"y": [0.1, 0.1], **unit, "n_bins": 2}),
        ("wide", {"y": [-3.5, 12.0, 100.0], "lower": -10, "upper": 100, "n_bins": 11}),
    ]  # fmt: skip


def epsilon_cases(rng: random.Random) -> Cases:
    cases: Cases = []
    for bound in (
        0, 0.15, 0.1501, 1 / 3, 2.5, 0.005, 0.0050000001, 4.999999, 1e-300, 5.79, 1e12, 1e28,
        0.1 + 0.2, 0.07, 0.29, 1.005, 1.115, 78.7,
    ):  # fmt: skip
        for kind in DECIMALS:
            cases.append((f"{bound!r}, {kind}", {"bound": bound, "kind": kind}))
    for number in range(25):
        args: Case = {
            "bound": round(rng.expovariate(0.2), rng.choice([2, 4, 15])),
            "n_draws_released": rng.choice([1, 3, 20]),
            "safety_factor": rng.choice([1.0, 1.05, 1.1]),
            "relation": rng.choice(["remove", "replace"]),
            "density_above_one": rng.choice([True, False]), "kind": rng.choice(list(DECIMALS)),
        }  # fmt: skip
        cases.append((f"random {number}", args))
    return cases


def charges(*epsilons: float, kind: str = "asymptotic local") -> Case:
    return {"charges": [{"epsilon": e, "kind": kind, "relation": "remove"} for e in epsilons]}


def sets_cases(inputs: dict[str, tuple[Any, Any]]) -> Cases:
    return [(name, {"estimates": q, "variances": v}) for name, (q, v) in inputs.items()]


def rule_cases(rng: random.Random) -> Cases:
    def sets(m: int, spread: float) -> list[float]:
        return [round(rng.gauss(2, spread), 6) for _ in range(m)]

    def variances(m: int, size: float) -> list[float]:
        return [round(size * (0.5 + rng.random()), 6) for _ in range(m)]

    table = [[round(rng.gauss(0, s), 6) for s in (1.0, 0.01, 10.0)] for _ in range(6)]
    errors = [[round(0.5 + rng.random(), 6) for _ in range(3)] for _ in range(6)]
    return sets_cases({
        "wide": (sets(5, 1.0), variances(5, 0.1)), "narrow": (sets(5, 0.01), variances(5, 0.5)),
        "two sets": ([1.0, 1.5], [0.04, 0.05]), "twenty sets": (sets(20, 0.4), variances(20, 0.2)),
        "no spread": ([1.5, 1.5, 1.5], [0.25, 0.25, 0.25]),
        "no variance": ([1.0, 2.0, 4.0], [0.0, 0.0, 0.0]), "vectors": (table, errors),
    })  # fmt: skip


def fully_cases(rng: random.Random) -> Cases:
    narrow = {"estimates": [1.0, 1.01, 0.99], "variances": [0.3, 0.31, 0.29]}
    return [*rule_cases(rng), ("fix with a size ratio", {**narrow, "size_ratio": 0.5})]


def nested_cases(rng: random.Random) -> Cases:
    def table(m: int, r: int, nest: float, inner: float) -> Matrix:
        centers = [rng.gauss(0, nest) for _ in range(m)]
        return [[round(c + rng.gauss(0, inner), 6) for _ in range(r)] for c in centers]

    def flat(m: int, r: int, value: float) -> Matrix:
        return [[round(value * (0.5 + rng.random()), 6) for _ in range(r)] for _ in range(m)]

    deep = [[[round(rng.gauss(k, 1), 6) for k in range(2)] for _ in range(3)] for _ in range(4)]
    errors = [
        [[round(0.5 + rng.random(), 6) for _ in range(2)] for _ in range(3)] for _ in range(4)
    ]
    return sets_cases({
        "wide nests": (table(5, 3, 2.0, 0.2), flat(5, 3, 0.1)),
        "wide within": (table(4, 2, 0.1, 1.0), flat(4, 2, 0.9)),
        "negative variance": ([[-3.0, 3.0], [3.0, -3.1], [-2.9, 3.0]], flat(3, 2, 0.01)),
        "negative variance, no spread of nests": ([[-3.0, 3.0], [3.0, -3.0]], flat(2, 2, 0.01)),
        "no spread": ([[1.0, 1.0], [1.0, 1.0]], [[0.25, 0.25], [0.25, 0.25]]),
        "vectors": (deep, errors),
    })  # fmt: skip


RULE_CASES: dict[str, Callable[[random.Random], Cases] | Cases] = {
    "combine_fully_synthetic": fully_cases, "combine_multiple_imputation": rule_cases,
    "combine_nested": nested_cases, "combine_partially_synthetic": rule_cases,
    "compose": [
        ("none", charges()), ("one", charges(4.99)), ("tenths", charges(0.1, 0.1, 0.1)),
        ("three", charges(4.99, 0.01, 11.58)), ("strict", charges(0.000001, 2, kind="strict")),
    ],
    "epsilon_of_bound": epsilon_cases,
    "histogram_counts": histogram_cases,
    "perturbed_probabilities": [
        ("regular", {"counts": [3, 0, 5, 1], "noise": [0.5, -0.25, -1.125, 0.3]}),
        ("negative to 0", {"counts": [1, 2], "noise": [-3.5, 0.1]}),
        ("nothing left", {"counts": [1, 2, 0], "noise": [-3.5, -2.0, -0.1]}),
    ],
    "round_up": [
        (f"{x!r}, {kind}", {"epsilon": x, "kind": kind})
        for x in (0, 0.3, 0.1 + 0.2, 2.675, 1.0000001, 1.00000001, 15, 1e-9) for kind in DECIMALS
    ],
}  # fmt: skip
