"""Clipped scores of two coordinates as plain loops; see pyhybrid.privacy.scores."""

import math
import random
from typing import Any

from tests.golden.formulas import Cases

Row = list[float]


def times(a: list[Row], b: list[Row]) -> list[Row]:
    return [[math.fsum(x * y for x, y in zip(r, c, strict=True)) for c in zip(*b, strict=True)]
            for r in a]  # fmt: skip


def transposed(a: list[Row]) -> list[Row]:
    return [list(column) for column in zip(*a, strict=True)]


def inverse(a: list[Row]) -> list[Row]:
    (p, q), (r, s) = a
    det = p * s - q * r
    return [[s / det, -q / det], [-r / det, p / det]]


def root(a: list[Row]) -> list[Row]:
    """Symmetric root of a symmetric 2 x 2 matrix."""
    (p, q), (_, s) = a
    det = math.sqrt(p * s - q * q)
    scale = math.sqrt(p + s + 2 * det)
    return [[(p + det) / scale, q / scale], [q / scale, (s + det) / scale]]


def whitening(information: list[Row]) -> list[Row]:
    size = [1 / math.sqrt(information[k][k]) for k in (0, 1)]
    scaled = [[information[j][k] * size[j] * size[k] for k in (0, 1)] for j in (0, 1)]
    inner = inverse(root(scaled))
    return [[size[j] * inner[j][k] for k in (0, 1)] for j in (0, 1)]


def clip_scores(scores: list[Row], whitening: list[Row], clip: float) -> list[Row]:
    clipped = []
    for row in scores:
        if not all(map(math.isfinite, row)):
            clipped.append([0.0, 0.0])
            continue
        white = times([row], whitening)[0]
        shrunk = min(1.0, clip / max(math.hypot(*white), 1e-300))
        clipped.append([shrunk * w for w in white])
    return clipped


def total(rows: list[Row], others: list[Row], share: float) -> list[Row]:
    """`share` times the sum over the rows of one's row times the other's, (2, 2)."""
    return [[share * x for x in r] for r in times(transposed(rows), others)]


def plus(a: list[Row], b: list[Row]) -> list[Row]:
    return [[x + y for x, y in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)]


def scoring_design(
    scores: list[list[Row]], precision: list[Row], mu: float, clips: list[float],
    sensitivity: float = 1.0,
) -> dict[str, Any]:  # fmt: skip
    rows = [row for table in scores for row in table]
    n, d = len(scores[0]), 2
    share = n / len(rows)
    information = plus(total(rows, rows, share), precision)
    W = whitening(information)
    white = times(rows, W)
    half, tried = inverse(W), []
    enough = max(math.hypot(*row) for row in white)
    for multiple in clips:
        clip = multiple * math.sqrt(d / n)
        psi = clip_scores(rows, W, clip)
        G = plus(total(psi, rows, share), times(transposed(W), precision))
        M = total(psi, psi, share)
        b = [share * math.fsum(p[k] - w[k] for p, w in zip(psi, white, strict=True))
             for k in (0, 1)]  # fmt: skip
        noise = (sensitivity * clip / mu) ** 2
        spread = plus(M, [[noise, 0.0], [0.0, noise]])
        left = times(half, inverse(G))
        error = times(times(left, spread), transposed(left))
        tried.append((error[0][0] + error[1][1], {
            "whitening": W, "clip": clip, "information": information, "jacobian": G, "center": b,
            "variance": M,
        }))  # fmt: skip
        if clip > enough:
            break
    most = max(1.15 * min(error for error, _ in tried), 2.0 * d)
    return [design for error, design in tried if error <= most][-1]


def scoring_step(
    theta: Row, noisy_sum: Row, design: dict[str, Any], prior_gradient: Row,
    precision: list[Row], noise_sd: float,
) -> Row:  # fmt: skip
    of_prior = times(transposed(design["whitening"]), precision)
    G = plus(design["jacobian"], [[-x for x in row] for row in of_prior])
    noise = [[noise_sd**2 + 1e-12, 0.0], [0.0, noise_sd**2 + 1e-12]]
    weighted = times(transposed(G), inverse(plus(design["variance"], noise)))
    off = [[q - b] for q, b in zip(noisy_sum, design["center"], strict=True)]
    right = plus(times(weighted, off), [[g] for g in prior_gradient])
    step = times(inverse(plus(times(weighted, G), precision)), right)
    return [t + s[0] for t, s in zip(theta, step, strict=True)]


def _scores(rng: random.Random, repeats: int, n: int) -> list[list[Row]]:
    return [[[round(rng.gauss(0, 1), 6), round(rng.gauss(0, 20) ** 3 / 400, 6)]
             for _ in range(n)] for _ in range(repeats)]  # fmt: skip


_PRECISION = [[0.01, 0.0], [0.0, 0.16]]


def clip_cases(rng: random.Random) -> Cases:
    rows = _scores(rng, 1, 6)[0]
    W = [[0.7, 0.1], [0.1, 0.3]]
    return [
        ("clipped", {"scores": rows, "whitening": W, "clip": 0.5}),
        ("whole", {"scores": rows, "whitening": W, "clip": 1e6}),
        ("a row that is not finite is 0",
         {"scores": [*rows, [math.inf, 1.0], [math.nan, 0.0]], "whitening": W, "clip": 0.5}),
    ]  # fmt: skip


def design_cases(rng: random.Random) -> Cases:
    made = {"scores": _scores(rng, 3, 12), "precision": _PRECISION}
    return [
        ("one clip", {**made, "mu": 0.2, "clips": [1.0]}),
        ("chosen, much noise", {**made, "mu": 0.1, "clips": [0.5, 1.0, 2.0, 4.0]}),
        ("chosen, little noise", {**made, "mu": 9.0, "clips": [0.5, 1.0, 2.0, 4.0, 64.0, 128.0]}),
        ("replace", {**made, "mu": 0.5, "clips": [0.5, 1.0, 2.0], "sensitivity": 2.0}),
    ]  # fmt: skip


def step_cases(rng: random.Random) -> Cases:
    design = scoring_design(_scores(rng, 2, 10), _PRECISION, 0.3, [1.0])
    step = {
        "theta": [0.5, -1.0], "noisy_sum": [0.3, -2.0], "design": design,
        "prior_gradient": [-0.005, 0.16], "precision": _PRECISION,
    }  # fmt: skip
    return [("a step", {**step, "noise_sd": 1.5}), ("without noise", {**step, "noise_sd": 0.0})]


SCORING_CASES = {
    "clip_scores": clip_cases, "scoring_design": design_cases, "scoring_step": step_cases,
}  # fmt: skip
