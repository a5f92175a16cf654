"""Cases of histograms, accounting and combining rules."""

import random
from collections.abc import Callable
from typing import Any

from tests.golden.cases_risk import INF, NAN
from tests.golden.formulas import DECIMALS, Case, Cases, Matrix


def histogram_cases(rng: random.Random) -> Cases:
    y = [round(rng.random(), 3) for _ in range(40)]
    unit = {"lower": 0.0, "upper": 1.0}
    return [
        ("regular", {"y": y, **unit, "n_bins": 7}),
        ("edges", {"y": [0.0, 0.25, 0.5, 0.75, 1.0], **unit, "n_bins": 4}),
        ("all in one", {"y": [0.1, 0.1], **unit, "n_bins": 2}),
        ("wide", {"y": [-3.5, 12.0, 100.0], "lower": -10, "upper": 100, "n_bins": 11}),
        ("outside", {"y": [0.5, 1.5], **unit, "n_bins": 2},
            "y must lie in [lower, upper]: {record 1} does not"),
        ("NaN", {"y": [NAN], **unit, "n_bins": 2}, "y must lie in [lower, upper]: {record 0}"),
        ("bounds turned", {"y": [0.5], "lower": 1, "upper": 0, "n_bins": 2},
            "lower must be below upper: found 1 and 0"),
        ("one bin", {"y": [0.5], **unit, "n_bins": 1},
            "n_bins must be a whole number >= 2: found 1"),
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
    cases += [
        ("negative", {"bound": -1}, "bound must be >= 0: found -1"),
        ("infinite", {"bound": INF}, "bound must be a finite number"),
        ("too large", {"bound": 1e308}, "epsilon must be a number that floats can hold"),
        ("a number for a flag", {"bound": 1, "density_above_one": 1},
            "density_above_one must be"),
        ("factor below 1", {"bound": 1, "safety_factor": 0.9},
            "safety_factor must be >= 1: found 0.9"),
        ("no draws", {"bound": 1, "n_draws_released": 0},
            "n_draws_released must be a whole number >= 1: found 0"),
        ("unknown relation", {"bound": 1, "relation": "swap"},
            "relation must be one of remove, replace: found 'swap'"),
        ("unknown kind", {"bound": 1, "kind": "global"},
            "kind must be one of asymptotic local, strict: found 'global'"),
    ]  # fmt: skip
    return cases


def round_up_cases(_: random.Random) -> Cases:
    numbers = (0, 0.3, 0.1 + 0.2, 2.675, 1.0000001, 1.00000001, 15, 1e-9)
    cases: Cases = [
        (f"{x!r}, {kind}", {"epsilon": x, "kind": kind}) for x in numbers for kind in DECIMALS
    ]
    return [
        *cases, ("NaN", {"epsilon": NAN}, "epsilon must be a finite number"),
        ("negative", {"epsilon": -0.5}, "epsilon must be >= 0: found -0.5"),
    ]  # fmt: skip


def compose_cases(_: random.Random) -> Cases:
    def charge(epsilon: float, kind: str = "asymptotic local", relation: str = "remove") -> Case:
        return {"epsilon": epsilon, "kind": kind, "relation": relation}

    unlike = [charge(5), charge(3, "strict", "replace")]
    return [
        ("none", {"charges": []}),
        ("one", {"charges": [charge(4.99)]}),
        ("tenths", {"charges": [charge(0.1)] * 3}),
        ("three", {"charges": [charge(4.99), charge(0.01), charge(11.58)]}),
        ("strict", {"charges": [charge(0.000001, "strict"), charge(2, "strict")]}),
        (
            "unlike kinds",
            {"charges": unlike},
            "charges must be of one kind, relation and unit: found asymptotic local, remove one "
            "record; strict, replace one record",
        ),
        (
            "unlike relations",
            {"charges": [charge(1), charge(1, relation="replace")]},
            "charges must be of one kind, relation and unit: found asymptotic local, remove one "
            "record; asymptotic local, replace one record",
        ),
    ]


def rule_cases(rng: random.Random) -> Cases:
    def sets(m: int, spread: float) -> list[float]:
        return [round(rng.gauss(2, spread), 6) for _ in range(m)]

    def variances(m: int, size: float) -> list[float]:
        return [round(size * (0.5 + rng.random()), 6) for _ in range(m)]

    table = [[round(rng.gauss(0, s), 6) for s in (1.0, 0.01, 10.0)] for _ in range(6)]
    errors = [[round(0.5 + rng.random(), 6) for _ in range(3)] for _ in range(6)]
    inputs = {
        "wide": (sets(5, 1.0), variances(5, 0.1)), "narrow": (sets(5, 0.01), variances(5, 0.5)),
        "two sets": ([1.0, 1.5], [0.04, 0.05]), "twenty sets": (sets(20, 0.4), variances(20, 0.2)),
        "no spread": ([1.5, 1.5, 1.5], [0.25, 0.25, 0.25]),
        "no variance": ([1.0, 2.0, 4.0], [0.0, 0.0, 0.0]), "vectors": (table, errors),
    }  # fmt: skip
    cases: Cases = [(name, {"estimates": q, "variances": v}) for name, (q, v) in inputs.items()]
    finite = "estimates must be finite and variances finite and >= 0"
    cases += [
        ("unlike shapes", {"estimates": [1.0, 2.0], "variances": [1.0, 2.0, 3.0]},
            "estimates and variances must share a shape (m,) or (m, p): found (2,) and (3,)"),
        ("text", {"estimates": ["a", "b"], "variances": [1.0, 2.0]},
            "estimates must be numeric: found"),
        ("negative variance", {"estimates": [1.0, 2.0], "variances": [1.0, -2.0]}, finite),
        ("estimate NaN", {"estimates": [1.0, NAN], "variances": [1.0, 2.0]}, finite),
        ("variance infinite", {"estimates": [1.0, 2.0], "variances": [1.0, INF]}, finite),
    ]  # fmt: skip
    return cases


def fully_cases(rng: random.Random) -> Cases:
    narrow = {"estimates": [1.0, 1.01, 0.99], "variances": [0.3, 0.31, 0.29]}
    return [
        *rule_cases(rng), ("fix with a size ratio", {**narrow, "size_ratio": 0.5}),
        ("ratio 0", {**narrow, "size_ratio": 0}, "size_ratio must be above 0: found 0"),
    ]  # fmt: skip


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
    inputs: dict[str, tuple[Any, Any]] = {
        "wide nests": (table(5, 3, 2.0, 0.2), flat(5, 3, 0.1)),
        "wide within": (table(4, 2, 0.1, 1.0), flat(4, 2, 0.9)),
        "negative variance": ([[-3.0, 3.0], [3.0, -3.1], [-2.9, 3.0]], flat(3, 2, 0.01)),
        "negative variance, no spread of nests": ([[-3.0, 3.0], [3.0, -3.0]], flat(2, 2, 0.01)),
        "no spread": ([[1.0, 1.0], [1.0, 1.0]], [[0.25, 0.25], [0.25, 0.25]]),
        "vectors": (deep, errors),
    }
    cases: Cases = [(name, {"estimates": q, "variances": v}) for name, (q, v) in inputs.items()]
    one = [[1.0], [2.0]]
    cases += [
        (
            "one synthesis", {"estimates": one, "variances": one},
            "the rule 'nested' needs at least 2 sets along (m, r) or (m, r, p): found shape (2, 1)",
        ),
        ("a vector", {"estimates": [1.0, 2.0], "variances": [1.0, 2.0]},
            "estimates and variances must share a shape (m, r) or (m, r, p): found (2,) and (2,)"),
    ]  # fmt: skip
    return cases


RULE_CASES: dict[str, Callable[[random.Random], Cases] | Cases] = {
    "combine_fully_synthetic": fully_cases, "combine_multiple_imputation": rule_cases,
    "combine_nested": nested_cases, "combine_partially_synthetic": rule_cases,
    "compose": compose_cases, "epsilon_of_bound": epsilon_cases,
    "histogram_counts": histogram_cases,
    "perturbed_probabilities": [
        ("regular", {"counts": [3, 0, 5, 1], "noise": [0.5, -0.25, -1.125, 0.3]}),
        ("negative to 0", {"counts": [1, 2], "noise": [-3.5, 0.1]}),
        ("nothing left", {"counts": [1, 2, 0], "noise": [-3.5, -2.0, -0.1]}),
        ("count NaN", {"counts": [1, NAN], "noise": [0, 0]}, "counts and noise must be finite"),
        ("unlike lengths", {"counts": [1, 2], "noise": [0.5]},
            "noise must have 2 elements: found 1"),
    ],
    "round_up": round_up_cases,
}  # fmt: skip
