"""Posteriors on the embedded engine meet quadrature: plain weights, and censored terms.

That targets are the documented posteriors is held at points, in test_coefficients.py, test_beta.py
and test_levels.py: here are the chains.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from tests.models.targets import draws_of
from tests.monte_carlo import assert_near

pytestmark = pytest.mark.samples

# Parameters are (beta,) or (beta, second); the prior scale of beta is integrated out.


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A model of one or two parameters, with densities of scipy's. `log_lik(y, a, b)` broadcasts y
    against grids; `log_prior(a, b)` is on the scale of the grid; `box` holds nearly all of the
    posterior; `read` gets the parameters from the draws."""

    model: Any
    y: FloatArray
    log_lik: Callable[..., FloatArray]
    log_prior: Callable[..., FloatArray]
    box: tuple[tuple[float, float], ...]
    read: Callable[[Any], tuple[FloatArray, ...]]


def _log_prior_of_coefficient(beta: FloatArray) -> FloatArray:
    """log of the integral over s of N(beta | 0, s^2) half-t_3(s), by the trapezoidal rule."""
    log_s = np.linspace(-14, 14, 1500)
    s = np.exp(log_s)[:, None]
    flat = beta.ravel()
    terms = stats.norm.logpdf(flat, 0, s) + stats.t.logpdf(s, 3) + np.log(2) + log_s[:, None]
    return np.asarray(special.logsumexp(terms, axis=0).reshape(beta.shape))


def _sized(name: str) -> Callable[[Any], tuple[FloatArray, ...]]:
    return lambda d: (d.variables["beta"][..., 0], np.log(d.variables[name]))


def _pareto(log_size: FloatArray) -> FloatArray:
    size = np.exp(log_size)
    with np.errstate(divide="ignore"):
        inside = np.where(size > 0.1, -2.5 * np.log(size) + log_size, -np.inf)
    return np.asarray(inside)


def _log_beta(y: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    size = np.exp(b)
    return np.asarray(stats.beta.logpdf(y, size * special.expit(a), size * special.expit(-a)))


def _references() -> dict[str, Reference]:
    rng = np.random.default_rng(4)
    counts, unit = rng.negative_binomial(2, 0.3, 25).astype(float), rng.beta(0.8, 2, 25)
    wide = (-4.0, 4.0)
    return {
        "poisson": Reference(
            model=ph.Poisson("y ~ 1"), y=counts, read=lambda d: (d.variables["beta"][..., 0],),
            log_lik=lambda y, a: stats.poisson.logpmf(y, np.exp(a)),
            log_prior=_log_prior_of_coefficient,
            box=((-80.0, 10.0),),  # clipped, far out only the prior falls
        ),
        "negative_binomial": Reference(
            model=ph.NegativeBinomial("y ~ 1"), y=counts, read=_sized("phi"),
            log_lik=lambda y, a, b: stats.nbinom.logpmf(y, np.exp(b), special.expit(b - a)),
            # 1/phi half-Cauchy(0, 5); the grid is of log phi.
            log_prior=lambda a, b: (
                _log_prior_of_coefficient(a[:, :1]) + stats.cauchy.logpdf(np.exp(-b), 0, 5) - b
            ),
            box=((-4.0, 6.0), (-5.0, 12.0)),
        ),
        "beta": Reference(
            model=ph.Beta("y ~ 1"), y=unit, log_lik=_log_beta, box=(wide, (np.log(0.1), 4.0)),
            log_prior=lambda a, b: -np.logaddexp(0, a) - np.logaddexp(0, -a) + _pareto(b),
            read=lambda d: (special.logit(d.variables["phi"]), np.log(d.variables["lambda"])),
        ),
    }  # fmt: skip


REFERENCES = _references()


def by_quadrature(case: Reference, alpha: FloatArray, cap: float | None) -> list[tuple[float, ...]]:
    """Mean and sd of each parameter: a coarse grid, then a fine one where the mass is."""
    box = case.box
    for points in (80, 240) if len(box) > 1 else (1200, 1200):
        axes = [np.linspace(low, high, points) for low, high in box]
        grids = np.meshgrid(*axes, indexing="ij")
        if len(grids) == 1:
            grids = [grids[0][:, None]]
        log_density = case.log_prior(*grids)
        for value, weight in zip(case.y, alpha, strict=True):
            if weight > 0:
                term = weight * case.log_lik(value, *grids)
                log_density = log_density + (term if cap is None else np.clip(term, -cap, cap))
        share = np.exp(log_density - log_density.max())
        margins = [
            share.sum(axis=1 - k) if len(axes) == 2 else share[:, 0] for k in range(len(axes))
        ]
        box = tuple(_where_the_mass_is(x, p) for x, p in zip(axes, margins, strict=True))
    moments = []
    for x, p in zip(axes, margins, strict=True):
        mean = float((x * p).sum() / p.sum())
        moments.append((mean, float(np.sqrt(((x - mean) ** 2 * p).sum() / p.sum()))))
    return moments


def _where_the_mass_is(x: FloatArray, p: FloatArray) -> tuple[float, float]:
    inside = np.flatnonzero(p > 1e-9 * p.max())
    return float(x[max(0, inside[0] - 1)]), float(x[min(x.size - 1, inside[-1] + 1)])


def fitted(case: Reference, alpha: FloatArray, cap: float | None = None) -> tuple[FloatArray, ...]:
    """Draws (chains, draws) of the parameters."""
    bound = case.model.bind(pd.DataFrame({"y": case.y}))
    return case.read(draws_of(bound, chains=4, warmup=500, draws=1000, alpha=alpha, cap=cap))


@pytest.mark.parametrize("kind", ["weighted", "censored"])
@pytest.mark.parametrize("name", REFERENCES)
def test_posterior_moments_meet_quadrature(name: str, kind: str) -> None:
    case = REFERENCES[name]
    alpha = np.random.default_rng(9).random(case.y.size).round(2)
    alpha[:2] = 0.0
    cap = 1.2 if kind == "censored" else None
    draws = fitted(case, alpha, cap)
    for own, (mean, sd) in zip(draws, by_quadrature(case, alpha, cap), strict=True):
        assert_near(own, mean)
        assert_near(own, sd, method="sd")


def test_weights_that_are_ignored_are_seen_by_quadrature() -> None:
    case = REFERENCES["poisson"]
    (own,), [(_, sd)] = (
        fitted(case, np.ones(case.y.size)),
        by_quadrature(case, np.full(case.y.size, 0.3), None),
    )
    with pytest.raises(AssertionError):
        assert_near(own, sd, method="sd")
