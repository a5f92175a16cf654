"""Recomputed changes: every map against leaving each record out, by brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.checks import FloatArray
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.recomputed import moved_terms, weights_without
from tests.privacy.enumerated import LOG_LIK, log_posterior

IntArray = Any
Weigh = Callable[[IntArray], FloatArray]
DRAWS = 9


def _brute(log_lik: FloatArray, weigh: Weigh) -> FloatArray:
    """T by its definition: the weighted sum of all, less that of the others weighed anew."""
    n = log_lik.shape[1]
    whole = log_lik @ weigh(np.arange(n))
    out = []
    for i in range(n):
        kept = np.delete(np.arange(n), i)
        out.append(whole - log_lik[:, kept] @ weigh(kept))
    return np.array(out).T


def _data(seed: int, n: int = 8) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    log_lik, weighted = -rng.gamma(2, 2, (DRAWS, n)), -rng.gamma(2, 2, (DRAWS, n))
    return log_lik, np.abs(log_lik).max(axis=0), np.abs(weighted).max(axis=0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"scale": 1.7, "shift": -0.3},
        {"transform": "softmax", "scale": 0.8},
        {"transform": "reciprocal"},
        {"transform": "threshold", "threshold": 6.0},
        {"transform": "logistic", "shift": 0.2},
    ],
)
def test_lipschitz_weights(seed: int, how: dict[str, Any]) -> None:
    log_lik, f, _ = _data(seed)
    found = ph.recomputed_terms(log_lik, ph.lipschitz_without(f, **how))
    expected = _brute(log_lik, lambda kept: ph.weights_from_lipschitz(f[kept], **how))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_lipschitz_weights_are_moved_by_sole_extremes_only() -> None:
    assert ph.lipschitz_without([1.0, 5.0, 3.0, np.inf]).movers.tolist() == [0, 1]
    assert ph.lipschitz_without([1.0, 5.0, 5.0, 1.0]).movers.tolist() == []
    assert ph.lipschitz_without([1.0, 5.0, 5.0]).movers.tolist() == [0]
    assert ph.lipschitz_without([2.0]).movers.tolist() == []
    assert ph.lipschitz_without([1.0, 2.0], transform="logistic").movers.tolist() == []


@pytest.mark.parametrize("seed", range(4))
def test_scalar_truncated_scaled_and_reweighted(seed: int) -> None:
    log_lik, f, largest = _data(seed)

    def lipschitz(kept: IntArray) -> FloatArray:
        return ph.weights_from_lipschitz(f[kept], scale=0.9, shift=0.05)

    def reweighted(kept: IntArray) -> FloatArray:
        alpha = lipschitz(kept)
        return ph.reweight(alpha, alpha * largest[kept], k=0.9)

    base = ph.lipschitz_without(f, scale=0.9, shift=0.05)
    cases: list[tuple[Any, Weigh]] = [
        (
            ph.scalar_without(f, target_bound=3.0),
            lambda kept: ph.scalar_weights(
                len(kept), target_bound=3.0, unweighted_bound=f[kept].max()
            ),
        ),
        (
            ph.truncate_without(base, f, cap=2.5),
            lambda kept: ph.truncate_weights(lipschitz(kept), f[kept], cap=2.5),
        ),
        (
            ph.scale_without(base, scale=0.6, shift=-0.1),
            lambda kept: np.clip(0.6 * lipschitz(kept) - 0.1, 0, 1),
        ),
        (ph.reweight_without(base, largest, k=0.9), reweighted),
        (weights_without(reweighted, f.size), reweighted),
        (
            ph.truncate_without(ph.reweight_without(base, largest, k=0.9), f, cap=4.0),
            lambda kept: ph.truncate_weights(reweighted(kept), f[kept], cap=4.0),
        ),
    ]
    for without, weigh in cases:
        np.testing.assert_allclose(without.alpha, weigh(np.arange(f.size)), rtol=1e-13)
        np.testing.assert_allclose(
            ph.recomputed_terms(log_lik, without), _brute(log_lik, weigh), rtol=1e-11, atol=1e-11
        )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"radius": 1.5, "kind": "absolute"},
        {"radius": 100.0, "kind": "absolute"},  # a ball that holds everyone
        {"radius": 0.3, "pattern": ["a", "b", "a", "a", "b", "a", "c", "a", "b", "a"]},
    ],
)
def test_count_weights(seed: int, how: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    log_lik, f, largest = _data(seed, n=10)
    y = rng.integers(0, 9, 10).astype(float)
    pattern = how.get("pattern")

    def count(kept: IntArray, **more: float) -> FloatArray:
        options = {**how, "pattern": None if pattern is None else [pattern[k] for k in kept]}
        return ph.count_weights(ph.radius_risk(y[kept], **options), **more)

    more = {"scale": 1.4, "shift": -0.2}
    base, scaled = ph.count_without(y, **how), ph.count_without(y, **how, **more)
    cases: list[tuple[Any, Weigh]] = [
        (base, count),
        (base.general(), count),
        (scaled, lambda kept: count(kept, **more)),
        (
            ph.truncate_without(base, f, cap=3.0),
            lambda kept: ph.truncate_weights(count(kept), f[kept], cap=3.0),
        ),
        (
            ph.reweight_without(base.general(), largest),
            lambda kept: ph.reweight(count(kept), count(kept) * largest[kept]),
        ),
    ]
    for without, weigh in cases:
        np.testing.assert_allclose(
            ph.recomputed_terms(log_lik, without), _brute(log_lik, weigh), rtol=1e-10, atol=1e-10
        )


def test_weights_held_fixed_miss_what_enumeration_finds() -> None:
    """On a grid that is its own reference the range of T holds; that of g_i, the control, fails."""
    support, exceeded = (0, 1, 4, 9, 15), 0
    for database in np.array(np.meshgrid(*[support] * 3)).reshape(3, -1).T:
        terms = LOG_LIK[:, database]
        f = np.abs(terms).max(axis=0)
        without = ph.lipschitz_without(f)
        held = ph.loss_ranges(terms, without.alpha).by_record
        changes = ph.loss_ranges(ph.recomputed_terms(terms, without)).by_record
        whole = log_posterior(without.alpha * terms)
        for i in range(3):
            kept = np.delete(np.arange(3), i)
            rest = log_posterior(ph.weights_from_lipschitz(f[kept]) * terms[:, kept])
            loss = np.abs(whole - rest).max()
            assert loss <= changes[i] * (1 + 1e-9) + 1e-9
            exceeded += loss > held[i] + 0.5
    assert exceeded > 20


def test_a_record_without_bound_that_moves_nothing_stays_harmless() -> None:
    log_lik = -np.random.default_rng(1).gamma(2, 2, (DRAWS, 4))
    log_lik[2, 3] = -np.inf
    f = ph.lipschitz_bounds(log_lik).by_record
    changes = ph.recomputed_terms(log_lik, ph.lipschitz_without(f))
    assert np.isfinite(ph.loss_ranges(changes).by_record).all()


def test_streamed_movers_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(2)
    rows, row_of = -rng.gamma(2, 2, (DRAWS, 6)), np.array([0, 1, 2, 3, 4, 5, 2, 3, 0])
    without = ph.lipschitz_without(np.abs(rows).max(axis=0)[row_of], scale=0.9)
    lazy = LogLik(make=lambda: np.array_split(rows, [2, 5], axis=1), row_of=row_of)
    found = moved_terms(lazy, without)
    whole = ph.recomputed_terms(rows[:, row_of], without)
    np.testing.assert_allclose(found, whole[:, without.movers], rtol=1e-12)
    unmoved = np.setdiff1d(np.arange(9), without.movers)
    np.testing.assert_allclose(whole[:, unmoved], (without.alpha * rows[:, row_of])[:, unmoved])


def test_unlike_sizes_are_refused() -> None:
    with pytest.raises(ph.InvalidInput, match="log_lik must have 2 records, as the weights"):
        ph.recomputed_terms(np.zeros((4, 3)), ph.lipschitz_without([1.0, 2.0]))
