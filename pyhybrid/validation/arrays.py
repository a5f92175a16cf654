"""Every array function on generated input, in Python and in live R."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import pyhybrid
from pyhybrid.privacy.charge import PrivacyCharge, Range
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, KINDS, round_up
from pyhybrid.privacy.scores import scoring_design
from pyhybrid.privacy.weights import TRANSFORMS
from pyhybrid.rbridge import call_r
from pyhybrid.validation.comparison import ARITHMETIC, EXACT, Row, compare

PART = "array functions"


def _row(
    function: str,
    variant: str = "",
    *,
    r_function: str = "",
    in_r: Mapping[str, Any] | None = None,
    tolerance: float = EXACT,
    to_largest: bool = False,
    **arguments: Any,
) -> Row:
    """The result in both languages; `in_r` holds what differs in R, the rest is as of `compare`."""
    return compare(
        PART,
        ", ".join(filter(None, (function, variant))),
        in_python(function)(**arguments),
        call_r(r_function or function, **{**arguments, **(in_r or {})}),
        tolerance=tolerance,
        to_largest=to_largest,
    )


def in_python(function: str) -> Callable[..., Any]:
    """The function of arrays that R has under the same name."""
    if function == "round_up":
        return round_up
    rooms = (pyhybrid, pyhybrid.arrays, pyhybrid.measures, pyhybrid.masking)
    room = next(room for room in rooms if function in room.__all__ or hasattr(room, function))
    found: Callable[..., Any] = getattr(room, function)
    return found


def array_rows(rng: np.random.Generator) -> Iterator[Row]:
    """One row per function and variant, with arguments from `rng`."""
    parts = (_bounds, _weights, _risks, _accounting, _rules, _masking, _changes, _gaussian, _scores)
    for part in parts:
        yield from part(rng)


def _log_lik(rng: np.random.Generator, draws: int, n: int) -> Any:
    return -rng.gamma(2.0, 2.0, (draws, n))


def _alpha(rng: np.random.Generator, n: int) -> Any:
    alpha = rng.random(n)
    alpha[:2] = 0.0, 1.0
    return alpha


def _bounds(rng: np.random.Generator) -> Iterator[Row]:
    log_lik, alpha = _log_lik(rng, 200, 60), _alpha(rng, 60)
    for q in (1.0, 0.9):
        how: dict[str, Any] = {"log_lik": log_lik, "alpha": alpha, "draw_quantile": q}
        yield _row("lipschitz_bounds", f"draw_quantile {q:g}", **how)
        yield _row(
            "lipschitz_bounds",
            f"draw_quantile {q:g}, against R's leave-one-out loop",
            r_function="lipschitz_bounds_loo",
            tolerance=ARITHMETIC,
            to_largest=True,
            **how,
        )
    broken = log_lik.copy()
    broken[3, :3] = -np.inf, np.nan, np.inf
    infinite = "infinite and missing log-likelihoods"
    yield _row("lipschitz_bounds", infinite, log_lik=broken, alpha=alpha)


def _weights(rng: np.random.Generator) -> Iterator[Row]:
    log_lik, alpha = _log_lik(rng, 100, 80), _alpha(rng, 80)
    log_lik[5, 7] = -np.inf
    variants: dict[str, dict[str, Any]] = {
        transform: {"transform": transform, "scale": 0.9, "shift": 0.05} for transform in TRANSFORMS
    }
    variants["threshold"]["threshold"] = 12.0
    variants["draw_quantile 0.9"] = {"draw_quantile": 0.9}
    variants |= {f"risk {risk}": {"risk": risk} for risk in ("range", "deviation")}
    for variant, how in variants.items():
        yield _row("lipschitz_weights", variant, log_lik=log_lik, **how)
    f = np.abs(log_lik).max(axis=0)
    finite = alpha * np.where(np.isfinite(f), f, 0.0)
    yield _row("weights_from_lipschitz", lipschitz=f)
    yield _row("truncate_weights", alpha=alpha, lipschitz=f, cap=3.5)
    yield _row("reweight", alpha=alpha, by_record=finite, k=0.95)
    yield _row("scalar_weights", n=5, target_bound=2.5, unweighted_bound=14.3)
    yield _row("censor", log_lik=log_lik, alpha=alpha, cap=2.5)


def _risks(rng: np.random.Generator) -> Iterator[Row]:
    y = rng.choice([0.0, 1.0, 2.5, 10.0, 11.0, 12.5, 40.0, 300.0], 60) + rng.poisson(3, 60)
    pattern = rng.choice(["a", "b", "c"], 60).astype(object)
    for function in ("radius_risk", "pairwise_risk"):
        yield _row(function, "relative radius 0.2", y=y, radius=0.2)
        yield _row(function, "absolute radius 1.5", y=y, radius=1.5, kind="absolute")
        yield _row(function, "known pattern", y=y, radius=0.3, pattern=pattern)
    yield _row("count_weights", risk=rng.random(60), scale=0.8, shift=0.1)


def _accounting(rng: np.random.Generator) -> Iterator[Row]:
    bound = float(np.round(rng.exponential(5), 9))
    for kind in KINDS:
        how: Any = {"n_draws_released": 3, "safety_factor": 1.05, "kind": kind}
        yield _row("epsilon_of_bound", kind, bound=bound, **how)
    dense: Any = {"relation": "replace", "density_above_one": True}
    yield _row("epsilon_of_bound", "replace, density above 1", bound=bound, **dense)
    yield _row("round_up", epsilon=bound)
    charges = [_charge(float(epsilon)) for epsilon in rng.integers(1, 1000, 4) / 100]
    in_r = {"charges": [charge.public() for charge in charges]}
    yield _row("compose", charges=charges, in_r=in_r)
    yield _row("histogram_counts", y=rng.random(200), lower=0.0, upper=1.0, n_bins=9)
    counts = rng.integers(0, 40, 9).astype(float)
    yield _row("perturbed_probabilities", counts=counts, noise=rng.laplace(0, 3, 9))


def _charge(epsilon: float) -> PrivacyCharge:
    return PrivacyCharge(
        mechanism="Unweighted",
        kind=ASYMPTOTIC_LOCAL,
        relation="remove",
        n_synthetic=1,
        n_draws_released=1,
        accounts={"range": Range(loss_range=epsilon)},
        accounting="range",
        n_draws=1000,
    )


def _rules(rng: np.random.Generator) -> Iterator[Row]:
    q, v = rng.normal(2, 1, (6, 3)), rng.uniform(0.01, 0.03, (6, 3))
    for rule in ("partially_synthetic", "fully_synthetic", "multiple_imputation"):
        yield _row(f"combine_{rule}", estimates=q, variances=v)
    nests = rng.normal(0, 2, (4, 1, 3)) + rng.normal(0, 0.2, (4, 3, 3))
    yield _row("combine_nested", estimates=nests, variances=rng.uniform(0.1, 0.2, (4, 3, 3)))
    close: Any = {"estimates": 1 + 0.01 * q, "variances": 10 * v, "size_ratio": 0.5}
    yield _row("combine_fully_synthetic", "negative variance replaced", **close)
    far = np.stack([np.arange(3.0) * sign for sign in (1, -1.1, 1.05)])
    means = far - far.mean(axis=1)[:, None]
    wide = {"estimates": means, "variances": 0.001 + 0 * far}
    yield _row("combine_nested", "negative variance replaced", **wide)


def _masking(rng: np.random.Generator) -> Iterator[Row]:
    n, levels = 12, 4
    x, w = rng.normal(size=n), rng.normal(size=(n, 3))
    codes, seen = (rng.integers(0, levels, n).astype(float) for _ in range(2))
    prior = rng.dirichlet(np.ones(levels), n)
    yield _row("gaussian_mask_log_density", w=w, x=x, variance=0.7)
    yield _row("mixture_mask_log_density", w=x, x=codes, separation=2.5)
    nominal = rng.normal(size=(n, levels))
    yield _row("mixture_mask_log_density", "nominal", w=nominal, x=codes, separation=2.5)
    matrix = rng.dirichlet(np.ones(levels), levels)
    yield _row("misclassification_log_density", w=seen, x=codes, matrix=matrix)
    variance = rng.gamma(2, size=n)
    yield _row("masked_normal", mean=x, variance=variance, w=w, mask_variance=0.7)
    log_density = rng.normal(0, 3, (n, levels))
    yield _row("masked_level_probabilities", prior=prior, log_density=log_density)


def _changes(rng: np.random.Generator) -> Iterator[Row]:
    log_lik, alpha = _log_lik(rng, 200, 20), _alpha(rng, 20)
    for function in ("loss_ranges", "gaussian_mu"):
        yield _row(function, log_lik=0.2 * log_lik, alpha=alpha, tolerance=ARITHMETIC)
    for function in ("center_and_censor", "frozen_excess"):
        yield _row(function, log_lik=log_lik, center=log_lik[0], alpha=alpha, cap=0.5)


def _scores(rng: np.random.Generator) -> Iterator[Row]:
    scores, precision = rng.standard_t(3, (4, 200, 3)), np.diag([0.01, 0.16, 0.16])
    whitening = np.diag(rng.gamma(3, 0.1, 3))
    yield _row("clip_scores", scores=scores[0], whitening=whitening, clip=0.4)
    how: dict[str, Any] = {"tolerance": ARITHMETIC}  # sums whose terms cancel
    yield _row("scoring_design", scores=scores, precision=precision, mu=0.2, **how)
    design = scoring_design(scores, precision, mu=0.2)
    how |= {name: rng.normal(size=3) for name in ("theta", "noisy_sum", "prior_gradient")}
    how |= {"precision": precision, "noise_sd": 5 * design.clip}
    how["in_r"] = {"design": vars(design)}
    yield _row("scoring_step", design=design, **how)
    predictors = np.column_stack([np.ones(20), rng.normal(size=20), np.zeros(20)])
    yield _row("scoring_step", design=design, predictors=predictors, **how)


def _gaussian(rng: np.random.Generator) -> Iterator[Row]:
    mu, delta = float(np.round(rng.gamma(2, 0.3), 6)), 1e-6
    draws = {"n_draws_released": 3, "relation": "replace"}
    for function, how in (
        ("delta_of_mu", {"mu": mu, "epsilon": 2 * mu}),
        ("epsilon_of_mu", {"mu": mu, "delta": delta}),
        ("mu_of_epsilon", {"epsilon": mu, "delta": delta}),
        ("compose_mu", {"mus": rng.gamma(2, 0.3, 5)}),
        ("mu_of_release", {"mu": mu, **draws}),
        ("epsilon_of_range", {"loss_range": mu, **draws}),
        ("rho_of_range", {"loss_range": mu, **draws}),
        ("epsilon_of_rho", {"rho": mu, "delta": delta}),
        ("epsilon_of_censoring", {"cap": mu, **draws}),
    ):
        yield _row(function, tolerance=ARITHMETIC, **how)
