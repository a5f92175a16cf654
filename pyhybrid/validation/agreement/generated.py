"""Tables to compare the languages on where the user gives none; simulated, not confidential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from pyhybrid.core.checks import FloatArray, check_choice
from pyhybrid.models import Model
from pyhybrid.models.registry import BUILT

__all__ = ["GENERATED", "generated_table"]

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


def _amounts(rng: np.random.Generator, eta: FloatArray) -> FloatArray:
    """A quarter zeros, a tenth of the others below 0."""
    size = np.exp(rng.normal(eta, 0.7)) * np.where(rng.random(eta.size) < 0.1, -1, 1)
    return np.where(rng.random(eta.size) < 0.25, 0.0, size)


def _counts_with_more_zeros(rng: np.random.Generator, eta: FloatArray) -> Any:
    counts = rng.negative_binomial(3, 3 / (3 + np.exp(1.5 + eta)))
    return np.where(rng.random(eta.size) < 0.3, 0, counts)


# Formula, and the outcome given a linear predictor about 0, shape (n,).
_KINDS: Mapping[str, tuple[str, Outcome]] = {
    "negative_binomial": (
        "y ~ age + region",
        lambda rng, eta: rng.negative_binomial(3, 3 / (3 + np.exp(3 + eta))),
    ),
    "poisson": ("y ~ age + region", lambda rng, eta: rng.poisson(np.exp(3 + eta))),
    "beta": ("y ~ 1", lambda rng, eta: rng.beta(2, 5, eta.size)),
    "beta_regression": (
        "y ~ age + region",
        lambda rng, eta: rng.beta(6 * expit(eta), 6 * expit(-eta)),
    ),
    "normal": ("y ~ age + region", lambda rng, eta: rng.normal(eta, 0.7)),
    "lognormal": ("y ~ age + region", lambda rng, eta: np.exp(rng.normal(eta, 0.7))),
    "gamma": (
        "y ~ age + region",
        lambda rng, eta: np.minimum(rng.gamma(2, np.exp(eta) / 2), 8.0) + 1e-3,
    ),
    "mixture": ("y ~ age + region", _two_components),
    "bernoulli": (
        "y ~ age + region",
        lambda rng, eta: (rng.random(eta.size) < expit(eta)).astype(np.int64),
    ),
    "beta_binomial": (
        "y ~ age + region",
        lambda rng, eta: 1 + rng.binomial(6, rng.beta(3 * expit(eta), 3 * expit(-eta))),
    ),
    "categorical": ("y ~ age + region", _texts),
    "ordinal": (
        "y ~ age + region",
        lambda rng, eta: np.searchsorted([-1.5, 0.0, 1.0], eta + rng.logistic(size=eta.size)),
    ),
    "two_part": ("y ~ age + region", _amounts),
    "zero_inflated": ("y ~ age", _counts_with_more_zeros),
}

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "mixture": {"n_components": 2},
    "beta_binomial": {"lower": 1, "upper": 7},
}

GENERATED = tuple(_KINDS)
"""Models that can be compared without a table of the user's."""


def generated_table(model: str, rng: np.random.Generator) -> tuple[pd.DataFrame, Model]:
    """A table of 300 records that the model `model` fits, and that model.

    Raises
    ------
    InvalidInput
        For an unknown model.
    """
    make: Any = BUILT[check_choice(model, "model", _KINDS)]
    formula, outcome = _KINDS[model]
    age = rng.uniform(-1, 1, _RECORDS).round(2)
    region = rng.choice(["north", "east", "west"], _RECORDS)
    y = outcome(rng, 0.5 * age + 0.3 * (region == "west"))
    table: pd.DataFrame = pd.DataFrame({"y": y, "age": age, "region": region})
    return table, make(formula, **_OPTIONS.get(model, {}))
