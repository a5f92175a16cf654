"""Every array function on generated input, in Python and in live R."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pyhybrid
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, KINDS, round_up
from pyhybrid.privacy.weight_sensitivity import lipschitz_without
from pyhybrid.privacy.weights import RISKS, TRANSFORMS
from pyhybrid.rbridge import call_r
from pyhybrid.validation.agreement.rows import ARITHMETIC, EXACT, Row, compare

__all__ = ["PART", "array_rows"]

PART = "array functions"


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A function of both languages and its arguments; `in_r` holds what differs in R."""

    quantity: str
    function: str
    arguments: Mapping[str, Any]
    in_r: Mapping[str, Any] = field(default_factory=dict)
    r_function: str = ""
    tolerance: float = EXACT
    to_largest: bool = False


def array_rows(rng: np.random.Generator) -> Iterator[Row]:
    """One row per function and variant."""
    for make in (_bounds, _weights, _risks, _accounting, _rules, _masking, _changes, _gaussian):
        for call in make(rng):
            python = _python(call.function)(**call.arguments)
            r = call_r(call.r_function or call.function, **{**call.arguments, **call.in_r})
            yield compare(
                PART,
                call.quantity,
                python,
                r,
                tolerance=call.tolerance,
                to_largest=call.to_largest,
            )


def _python(function: str) -> Any:
    return round_up if function == "round_up" else getattr(pyhybrid, function)


def _log_lik(rng: np.random.Generator, draws: int, n: int) -> Any:
    return -rng.gamma(2.0, 2.0, (draws, n))


def _alpha(rng: np.random.Generator, n: int) -> Any:
    alpha = rng.random(n)
    alpha[:2] = 0.0, 1.0
    return alpha


def _bounds(rng: np.random.Generator) -> Iterator[_Call]:
    log_lik, alpha = _log_lik(rng, 200, 60), _alpha(rng, 60)
    for q in (1.0, 0.9):
        how = {"log_lik": log_lik, "alpha": alpha, "draw_quantile": q}
        name = f"lipschitz_bounds, draw_quantile {q:g}"
        yield _Call(quantity=name, function="lipschitz_bounds", arguments=how)
        yield _Call(
            quantity=f"{name}, against R's leave-one-out loop",
            function="lipschitz_bounds",
            r_function="lipschitz_bounds_loo",
            arguments=how,
            tolerance=ARITHMETIC,
            to_largest=True,
        )
    broken = log_lik.copy()
    broken[3, :3] = -np.inf, np.nan, np.inf
    yield _Call(
        quantity="lipschitz_bounds, infinite and missing log-likelihoods",
        function="lipschitz_bounds",
        arguments={"log_lik": broken, "alpha": alpha},
    )


def _weights(rng: np.random.Generator) -> Iterator[_Call]:
    log_lik, alpha = _log_lik(rng, 100, 80), _alpha(rng, 80)
    log_lik[5, 7] = -np.inf
    for transform in TRANSFORMS:
        limit: dict[str, Any] = {"threshold": 12.0} if transform == "threshold" else {}
        how = {"log_lik": log_lik, "transform": transform, "scale": 0.9, "shift": 0.05, **limit}
        name = f"lipschitz_weights, {transform}"
        yield _Call(quantity=name, function="lipschitz_weights", arguments=how)
    yield _Call(
        quantity="lipschitz_weights, draw_quantile 0.9",
        function="lipschitz_weights",
        arguments={"log_lik": log_lik, "draw_quantile": 0.9},
    )
    for risk in ("range", "deviation"):
        yield _Call(
            quantity=f"lipschitz_weights, risk {risk}",
            function="lipschitz_weights",
            arguments={"log_lik": log_lik, "risk": risk},
        )
    f = np.abs(log_lik).max(axis=0)
    finite = alpha * np.where(np.isfinite(f), f, 0.0)
    for function, how in {
        "weights_from_lipschitz": {"lipschitz": f},
        "truncate_weights": {"alpha": alpha, "lipschitz": f, "cap": 3.5},
        "reweight": {"alpha": alpha, "by_record": finite, "k": 0.95},
        "scalar_weights": {"n": 5, "target_bound": 2.5, "unweighted_bound": 14.3},
        "censor": {"log_lik": log_lik, "alpha": alpha, "cap": 2.5},
    }.items():
        yield _Call(quantity=function, function=function, arguments=how)


def _risks(rng: np.random.Generator) -> Iterator[_Call]:
    y = rng.choice([0.0, 1.0, 2.5, 10.0, 11.0, 12.5, 40.0, 300.0], 60) + rng.poisson(3, 60)
    pattern = rng.choice(["a", "b", "c"], 60).astype(object)
    ways: dict[str, dict[str, Any]] = {
        "relative radius 0.2": {"radius": 0.2},
        "absolute radius 1.5": {"radius": 1.5, "kind": "absolute"},
        "known pattern": {"radius": 0.3, "pattern": pattern},
    }
    for function in ("radius_risk", "pairwise_risk"):
        for name, how in ways.items():
            yield _Call(
                quantity=f"{function}, {name}", function=function, arguments={"y": y, **how}
            )
    how = {"risk": rng.random(60), "scale": 0.8, "shift": 0.1}
    yield _Call(quantity="count_weights", function="count_weights", arguments=how)


def _accounting(rng: np.random.Generator) -> Iterator[_Call]:
    bound = float(np.round(rng.exponential(5), 9))
    for kind in KINDS:
        how = {"bound": bound, "n_draws_released": 3, "safety_factor": 1.05, "kind": kind}
        yield _Call(
            quantity=f"epsilon_of_bound, {kind}", function="epsilon_of_bound", arguments=how
        )
    yield _Call(
        quantity="epsilon_of_bound, replace, density above 1",
        function="epsilon_of_bound",
        arguments={"bound": bound, "relation": "replace", "density_above_one": True},
    )
    yield _Call(quantity="round_up", function="round_up", arguments={"epsilon": bound})
    epsilons = rng.integers(1, 1000, 4) / 100
    yield _Call(
        quantity="compose",
        function="compose",
        arguments={"charges": [_charge(float(epsilon)) for epsilon in epsilons]},
        in_r={"charges": [_charge(float(epsilon)).as_dict() for epsilon in epsilons]},
    )
    y = rng.random(200)
    how = {"y": y, "lower": 0.0, "upper": 1.0, "n_bins": 9}
    yield _Call(quantity="histogram_counts", function="histogram_counts", arguments=how)
    how = {"counts": rng.integers(0, 40, 9).astype(float), "noise": rng.laplace(0, 3, 9)}
    yield _Call(
        quantity="perturbed_probabilities", function="perturbed_probabilities", arguments=how
    )


def _charge(epsilon: float) -> PrivacyCharge:
    return PrivacyCharge(
        mechanism="Unweighted",
        epsilon=epsilon,
        kind=ASYMPTOTIC_LOCAL,
        relation="remove",
        n_synthetic=1,
        n_draws_released=1,
        bound=0.0,
        n_draws=1000,
    )


def _rules(rng: np.random.Generator) -> Iterator[_Call]:
    q, v = rng.normal(2, 1, (6, 3)), rng.uniform(0.01, 0.03, (6, 3))
    for rule in ("partially_synthetic", "fully_synthetic", "multiple_imputation"):
        function = f"combine_{rule}"
        yield _Call(
            quantity=function, function=function, arguments={"estimates": q, "variances": v}
        )
    nests = rng.normal(0, 2, (4, 1, 3)) + rng.normal(0, 0.2, (4, 3, 3))
    how = {"estimates": nests, "variances": rng.uniform(0.1, 0.2, (4, 3, 3))}
    yield _Call(quantity="combine_nested", function="combine_nested", arguments=how)
    close = {"estimates": 1 + 0.01 * q, "variances": 10 * v}
    yield _Call(
        quantity="combine_fully_synthetic, negative variance replaced",
        function="combine_fully_synthetic",
        arguments={**close, "size_ratio": 0.5},
    )
    far = np.stack([np.arange(3.0) * sign for sign in (1, -1.1, 1.05)])
    yield _Call(
        quantity="combine_nested, negative variance replaced",
        function="combine_nested",
        arguments={"estimates": far - far.mean(axis=1)[:, None], "variances": 0.001 + 0 * far},
    )


def _masking(rng: np.random.Generator) -> Iterator[_Call]:
    n, levels = 12, 4
    x, w = rng.normal(size=n), rng.normal(size=(n, 3))
    codes, seen = (rng.integers(0, levels, n).astype(float) for _ in range(2))
    prior = rng.dirichlet(np.ones(levels), n)
    ways: dict[str, dict[str, Any]] = {
        "gaussian_mask_log_density": {"w": w, "x": x, "variance": 0.7},
        "mixture_mask_log_density": {"w": x, "x": codes, "separation": 2.5},
        "misclassification_log_density": {
            "w": seen, "x": codes, "matrix": rng.dirichlet(np.ones(levels), levels),
        },
        "masked_normal": {
            "mean": x, "variance": rng.gamma(2, size=n), "w": w, "mask_variance": 0.7,
        },
        "masked_level_probabilities": {
            "prior": prior, "log_density": rng.normal(0, 3, (n, levels)),
        },
    }  # fmt: skip
    for function, how in ways.items():
        yield _Call(quantity=function, function=function, arguments=how)


def _changes(rng: np.random.Generator) -> Iterator[_Call]:
    log_lik, alpha = _log_lik(rng, 200, 20), _alpha(rng, 20)
    for function in ("loss_ranges", "leave_one_out_loss", "gaussian_mu"):
        how = {"log_lik": 0.2 * log_lik, "alpha": alpha}
        yield _Call(quantity=function, function=function, arguments=how, tolerance=ARITHMETIC)
    reference = 0.2 * _log_lik(rng, 100, 20)
    for risk in RISKS:
        how = {"scale": 0.9, "risk": risk}
        yield _Call(
            quantity=f"recomputed_terms, lipschitz_weights by {risk}",
            function="recomputed_terms",
            arguments={"log_lik": log_lik, "weights": lipschitz_without(reference, **how)},
            in_r={"weights": call_r("lipschitz_without", log_lik=reference, **how)},
            tolerance=ARITHMETIC,
            to_largest=True,
        )
    how = {"log_lik": log_lik, "center": log_lik[0], "alpha": alpha, "cap": 0.5}
    yield _Call(quantity="center_and_censor", function="center_and_censor", arguments=how)
    yield _Call(quantity="frozen_excess", function="frozen_excess", arguments=how)


def _gaussian(rng: np.random.Generator) -> Iterator[_Call]:
    mu, delta = float(np.round(rng.gamma(2, 0.3), 6)), 1e-6
    draws = {"n_draws_released": 3, "relation": "replace"}
    ways: dict[str, dict[str, Any]] = {
        "delta_of_mu": {"mu": mu, "epsilon": 2 * mu},
        "epsilon_of_mu": {"mu": mu, "delta": delta},
        "mu_of_epsilon": {"epsilon": mu, "delta": delta},
        "compose_mu": {"mus": rng.gamma(2, 0.3, 5)},
        "mu_of_release": {"mu": mu, **draws},
        "epsilon_of_range": {"loss_range": mu, **draws},
        "rho_of_range": {"loss_range": mu, **draws},
        "epsilon_of_rho": {"rho": mu, "delta": delta},
        "epsilon_of_censoring": {"cap": mu, **draws},
    }
    for function, how in ways.items():
        yield _Call(quantity=function, function=function, arguments=how, tolerance=ARITHMETIC)
