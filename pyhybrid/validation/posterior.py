"""A model in both languages: its table, its log-likelihood at given draws, its posterior means.

Where the user gives no table, one is generated; it is simulated and not confidential.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, gammaln

import pyhybrid
from pyhybrid.core.checks import FloatArray, check_choice
from pyhybrid.engines import Draws, SamplerSettings
from pyhybrid.fitting.session import PosteriorFit
from pyhybrid.models import MODELS, BoundModel, Model
from pyhybrid.rbridge import call_r
from pyhybrid.validation.comparison import ARITHMETIC, Row, compare, in_errors

TABLE, SAME_DRAWS, MEANS = "table", "same draws", "posterior means"
_NUMBERS = 4_000_000  # log-likelihoods that Stan is asked to write, over all draws
_LOOP_DRAWS, _LOOP_RECORDS = 10, 300  # of R's leave-one-out loop, which takes S n^2 steps
_RECORDS = 300
Outcome = Callable[[np.random.Generator, FloatArray], Any]


def _two_components(rng: np.random.Generator, eta: FloatArray) -> FloatArray:
    """Two components, well apart."""
    low = rng.random(eta.size) < 0.3
    return np.where(low, rng.normal(-2 - eta, 0.4), rng.normal(2 + eta, 0.6))


def _texts(rng: np.random.Generator, eta: FloatArray) -> Any:
    """Three levels that no order belongs to."""
    utility = np.column_stack([np.zeros(eta.size), eta, -eta]) + rng.gumbel(size=(eta.size, 3))
    return np.array(["car", "bus", "walk"])[utility.argmax(axis=1)]


# The outcome given a linear predictor about 0, shape (n,).
_OUTCOMES: Mapping[str, Outcome] = {
    "negative_binomial": lambda rng, eta: rng.negative_binomial(3, 3 / (3 + np.exp(3 + eta))),
    "poisson": lambda rng, eta: rng.poisson(np.exp(3 + eta)),
    "beta": lambda rng, eta: rng.beta(2, 5, eta.size),
    "beta_regression": lambda rng, eta: rng.beta(6 * expit(eta), 6 * expit(-eta)),
    "normal": lambda rng, eta: rng.normal(eta, 0.7),
    "lognormal": lambda rng, eta: np.exp(rng.normal(eta, 0.7)),
    "gamma": lambda rng, eta: np.minimum(rng.gamma(2, np.exp(eta) / 2), 8.0) + 1e-3,
    "mixture": _two_components,
    "bernoulli": lambda rng, eta: (rng.random(eta.size) < expit(eta)).astype(np.int64),
    "categorical": _texts,
    "ordinal": (
        lambda rng, eta: np.searchsorted([-1.5, 0.0, 1.0], eta + rng.logistic(size=eta.size))
    ),
}
_FORMULAS = {"beta": "y ~ 1"}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {"mixture": {"n_components": 2}}
GENERATED = tuple(_OUTCOMES)
"""Models that can be compared without a table of the user's."""


def generated_table(model: str, rng: np.random.Generator) -> tuple[pd.DataFrame, Model]:
    """300 records that the model named `model` fits, and that model; else InvalidInput."""
    make: Any = MODELS[check_choice(model, "model", _OUTCOMES)]
    age = rng.uniform(-1, 1, _RECORDS).round(2)
    region = rng.choice(["north", "east", "west"], _RECORDS)
    y = _OUTCOMES[model](rng, 0.5 * age + 0.3 * (region == "west"))
    table: pd.DataFrame = pd.DataFrame({"y": y, "age": age, "region": region})
    formula = _FORMULAS.get(model, "y ~ age + region")
    return table, make(formula, **_OPTIONS.get(model, {}))


def table_rows(bound: Any) -> Iterator[Row]:
    """Outcome and design matrix of a regression as R reads formula and table; InvalidInput, in R's
    words, where it cannot."""
    design = bound.design
    used = bound.table[[design.outcome, *design.predictors]].reset_index(drop=True)
    outcome = bound.numbers_of(used[design.outcome])
    used[design.outcome] = bound.model.to_support(outcome)  # as the program reads it
    in_r = call_r("read_design", formula=bound.model.formula, data=used)
    yield compare(TABLE, "outcome", design.y, np.atleast_1d(in_r["y"]), tolerance=0.0)
    mine, other = design.X, np.atleast_2d(in_r["X"])
    if mine.shape == other.shape:  # the order of columns is no part of a model
        mine, other = (X[:, np.lexsort(np.round(X, 9) + 0.0)] for X in (mine, other))
    yield compare(TABLE, f"design matrix: {bound.model.formula}", mine, other)
    if design.has_offset:
        yield compare(TABLE, "offset", design.offset, np.atleast_1d(in_r["offset"]))


def short_settings(rows: int) -> SamplerSettings:
    """Settings of a run whose draws are only read, with fewer draws the more rows there are."""
    draws = int(np.clip(_NUMBERS // (2 * rows), 4, 50))
    return SamplerSettings(chains=2, warmup=150, draws=draws)


def same_draws_rows(bound: BoundModel, draws: Draws, rng: np.random.Generator) -> Iterator[Row]:
    """At the same parameters: Python, from these alone, and R, from the log_lik that Stan wrote."""
    part = f"{SAME_DRAWS}: {draws.provenance.engine}"
    ours = np.concatenate([*bound.log_lik_blocks(draws)], axis=1)
    stan = draws.flat("log_lik")
    slack = log_lik_tolerance(draws, bound)

    def row(quantity: str, python: Any, r: Any, **how: Any) -> Row:
        return compare(part, quantity, python, r, tolerance=slack, **how)

    yield row("log_lik: numpy and Stan", ours, stan)
    if ours.shape != stan.shape:
        return
    python, r = ours[:, bound.row_of], stan[:, bound.row_of]
    alpha = pyhybrid.lipschitz_weights(python)
    yield row("lipschitz_weights", alpha, call_r("lipschitz_weights", log_lik=r))
    for q in (1.0, 0.9):
        mine = pyhybrid.lipschitz_bounds(python, alpha, draw_quantile=q)
        other = call_r("lipschitz_bounds", log_lik=r, alpha=alpha, draw_quantile=q)
        pair = (np.hstack([bounds[name] for name in vars(mine)]) for bounds in (vars(mine), other))
        yield row(f"lipschitz_bounds, draw_quantile {q:g}", *pair)
    step = pyhybrid.reweight(alpha, pyhybrid.lipschitz_bounds(python, alpha).by_record)
    before = call_r("lipschitz_bounds", log_lik=r, alpha=alpha)["by_record"]
    other = call_r("reweight", alpha=alpha, by_record=np.atleast_1d(before))
    yield row("reweight", step, other)
    s = rng.permutation(python.shape[0])[:_LOOP_DRAWS]
    i = rng.permutation(python.shape[1])[:_LOOP_RECORDS]
    mine = pyhybrid.lipschitz_bounds(python[np.ix_(s, i)], alpha[i])
    other = call_r("lipschitz_bounds_loo", log_lik=r[np.ix_(s, i)], alpha=alpha[i])
    name = f"leave-one-out loop ({s.size} draws, {i.size} records)"
    yield row(name, mine.by_record, other["by_record"], to_largest=True)


def log_lik_tolerance(draws: Draws, bound: BoundModel) -> float:
    """Stan takes differences of lgamma(y + phi): a large phi or lambda leaves their rounding."""
    sizes = [
        values.max()
        for name, values in draws.variables.items()
        if name.partition("_")[0] in ("phi", "lambda")  # of a part: phi_count
    ]
    if not sizes:
        return ARITHMETIC
    largest = float(max(sizes) + np.nanmax(np.abs(bound.outcome)))
    rounding = 4 * np.finfo(float).eps * float(gammaln(max(largest, 2.0)))
    return max(ARITHMETIC, rounding)


def mean_rows(
    bound: BoundModel, posterior: str, python: PosteriorFit, other: PosteriorFit
) -> Iterator[Row]:
    """Posterior means of two fits."""
    engines = python.draws.provenance.engine, other.draws.provenance.engine
    sides = ("Python", "R") if engines[1] == "rstan" else engines
    part = f"{MEANS}: {posterior}, {' and '.join(engines)}"
    return scalar_rows(part, ingredients(bound, python), ingredients(bound, other), sides=sides)


def scalar_rows(
    part: str,
    one: Mapping[str, FloatArray],
    two: Mapping[str, FloatArray],
    *,
    sides: tuple[str, str],
    of: str = "",
) -> Iterator[Row]:
    """Means over draws of scalars by name, shape (chains, draws) each, in Monte Carlo standard
    errors of their difference."""
    for name, values in one.items():
        error = np.hypot(_error_of_mean(values), _error_of_mean(two[name]))
        means = values.mean(), two[name].mean()
        apart = abs(means[0] - means[1])
        difference = apart / error if error > 0 else np.inf if apart else 0.0
        yield in_errors(part, f"{name}{of}", *means, difference, sides)


def ingredients(bound: BoundModel, fit: PosteriorFit) -> dict[str, FloatArray]:
    """Scalars of each draw, shape (chains, draws): parameters, and what the bound is made of."""
    scalars: dict[str, FloatArray] = {}
    for name, values in bound.monitored(fit.draws).items():
        flat = values.reshape(*values.shape[:2], -1)
        labels = _labels(bound, name, flat.shape[2])
        if name.partition("_")[0] == "phi":  # the mean of phi itself need not exist
            flat, labels = np.log(flat), [f"log {name}"]
        scalars.update((label, flat[:, :, k]) for k, label in enumerate(labels))
    log_lik, shape = bound.log_lik(fit.draws), fit.draws.divergent.shape
    scalars["largest |alpha f|"] = log_lik.largest_by_draw(fit.alpha).reshape(shape)
    scalars["sum of alpha f"] = log_lik.total(fit.alpha).reshape(shape)
    return scalars


def _labels(bound: Any, name: str, size: int) -> list[str]:
    columns = bound.design_columns
    if name == "beta" and len(columns) == size:
        return [f"beta[{column}]" for column in columns]
    return [name] if size == 1 else [f"{name}[{k}]" for k in range(1, size + 1)]


def _error_of_mean(values: FloatArray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its next major version on import
        import arviz
    return float(arviz.mcse(values, method="mean"))
