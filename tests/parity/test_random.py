"""Seeded random arguments: Python and live R give the same numbers, and R's loop its identity."""

from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
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
def test_the_loop_of_the_supplement_gives_pythons_bounds(seed: int, r: Any) -> None:
    rng = np.random.default_rng(seed)
    log_lik = -rng.gamma(2.0, 2.0, (30, 20))
    alpha = rng.random(20)
    loop = r("lipschitz_bounds_loo", log_lik=log_lik, alpha=alpha)
    bounds = ph.lipschitz_bounds(log_lik, alpha)
    # Differences of sums of 20 terms: absolute error of about 20 x 40 x 2^-53.
    np.testing.assert_allclose(loop["by_record"], bounds.by_record, rtol=0, atol=1e-12)


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
def test_accounting_and_histogram(seed: int, r: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        how = {
            "bound": float(np.round(rng.exponential(5), rng.choice([1, 2, 3, 6, 17]))),
            "n_draws_released": int(rng.integers(1, 30)),
            "safety_factor": float(rng.choice([1, 1.05, 1.1, 1.0333])),
            "kind": str(rng.choice(["strict", "asymptotic local"])),
        }
        assert in_python("epsilon_of_bound", how) == r("epsilon_of_bound", **how)
    y = rng.random(50)
    counts = _both(r, "histogram_counts", y=y, lower=0.0, upper=1.0, n_bins=9)
    _both(r, "perturbed_probabilities", counts=counts, noise=rng.laplace(0, 3, 9))


@pytest.mark.parametrize("seed", SEEDS)
def test_combining_rules(seed: int, r: Any) -> None:
    rng = np.random.default_rng(seed)
    q, v = rng.normal(0, 1, (6, 3)), rng.gamma(2, 0.2, (6, 3))
    for rule in ("partially_synthetic", "multiple_imputation"):
        _both(r, f"combine_{rule}", estimates=q, variances=v)
    q4, v4 = rng.normal(0, 1, (4, 3, 2)), rng.gamma(2, 0.2, (4, 3, 2))
    # T is a difference here: a digit may go with each power of ten between it and its parts.
    for name, one, two in (("fully_synthetic", q, v), ("nested", q4, v4)):
        mine = in_python(f"combine_{name}", {"estimates": one, "variances": two})
        other = r(f"combine_{name}", estimates=one, variances=two)
        assert_same(other["variance"], mine["variance"], relative=1e-10)
        assert_same(other["df"], mine["df"], relative=1e-9)
        assert_same(other["adjusted"], mine["adjusted"])
