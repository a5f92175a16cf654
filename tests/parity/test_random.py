"""Seeded random arguments: Python and live R give the same numbers."""

from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.validation.arrays import array_rows
from tests.parity.golden import assert_same, in_python

SEEDS = range(12)
TRANSFORMS = ("linear", "reciprocal", "threshold", "logistic", "softmax")


def _both(r: Any, function: str, **arguments: Any) -> Any:
    value = in_python(function, arguments)
    other = r(function, **arguments)
    shared = (
        {k: value[k] for k in value.keys() & other.keys()} if isinstance(value, dict) else value
    )
    assert_same(other, shared)
    return value


def _log_lik(rng: np.random.Generator) -> Any:
    draws, n = rng.integers(1, 60), rng.integers(1, 40)
    matrix = -rng.gamma(2.0, 2.0, (draws, n))
    if rng.random() < 0.4:
        hit = rng.integers(0, n, 2)
        matrix[rng.integers(0, draws, 2), hit] = rng.choice([-np.inf, np.inf, np.nan], 2)
    return matrix


@pytest.mark.parametrize("seed", SEEDS)
def test_every_function_of_both_languages(seed: int, r: Any) -> None:
    """As `validate` holds them against each other; here by other numbers than in its report."""
    rows = list(array_rows(np.random.default_rng(seed)))
    assert [row.quantity for row in rows if not row.agrees] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_and_weights(seed: int, r: Any) -> None:
    rng = np.random.default_rng(seed)
    log_lik = _log_lik(rng)
    n = log_lik.shape[1]
    alpha = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    for q in (1.0, 0.95, 0.5):
        _both(r, "lipschitz_bounds", log_lik=log_lik, alpha=alpha, draw_quantile=q)
        for transform in TRANSFORMS:
            extra = {"threshold": 4.0} if transform == "threshold" else {}
            scale, shift = rng.normal(1, 0.3), rng.normal(0, 0.2)
            _both(
                r, "lipschitz_weights", log_lik=log_lik, transform=transform, draw_quantile=q,
                scale=scale, shift=shift, **extra,
            )  # fmt: skip
    _both(r, "censor", log_lik=log_lik, alpha=alpha, cap=2.5)
    f = ph.lipschitz_bounds(log_lik).by_record
    _both(r, "truncate_weights", alpha=alpha, lipschitz=f, cap=2.5)
    finite = np.where(np.isfinite(f), alpha * np.where(np.isfinite(f), f, 0), 0)
    _both(r, "reweight", alpha=alpha, by_record=finite, k=float(rng.uniform(0.1, 1)))


@pytest.mark.parametrize("seed", SEEDS)
def test_risks(seed: int, r: Any) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    y = rng.choice([rng.normal(20, 15, n).round(1), rng.poisson(4, n).astype(float)])
    pattern = rng.choice(["a", "b", "c"], n).astype(object) if seed % 2 else None
    for kind, radius in (("relative", 0.2), ("absolute", 1.0), ("relative", 1.3)):
        how = {"y": y, "radius": radius, "kind": kind, "pattern": pattern}
        risk = _both(r, "radius_risk", **how)
        _both(r, "pairwise_risk", **how)
        _both(r, "count_weights", risk=risk, scale=0.8, shift=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_up(seed: int, r: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        how = {
            "bound": float(np.round(rng.exponential(5), rng.choice([1, 2, 3, 6, 17]))),
            "n_draws_released": int(rng.integers(1, 30)),
            "safety_factor": float(rng.choice([1, 1.05, 1.1, 1.0333])),
            "kind": str(rng.choice(["strict", "asymptotic local"])),
        }
        assert in_python("epsilon_of_bound", how) == r("epsilon_of_bound", **how)
