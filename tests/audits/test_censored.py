"""Censored posteriors on a grid: exact losses within epsilon, each with a broken control.

References: [C25] sec. 3 and 4.5.
"""

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.fitting.exact import exact_posterior
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.mechanisms.censored.center import Center
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.privacy.censoring import censor
from pyhybrid.privacy.conversions import bound_of_epsilon
from pyhybrid.privacy.log_lik import LogLik, unit_terms
from pyhybrid.privacy.weights import weights_from_lipschitz
from tests.audits.enumeration import (
    EPSILON,
    RELATIONS,
    ROUNDING,
    Array,
    Database,
    Terms,
    largest_loss,
    largest_of,
    normalized,
)

SHARES = (0.001, 0.05, 0.3, 0.7, 0.99)
POISSON, BETA = ph.Poisson("y ~ 1"), ph.Beta("y ~ 1")


def beta_grid() -> dict[str, Array]:
    pairs = np.array([*itertools.product(np.linspace(0.02, 0.98, 25), [0.3, 2.0, 4.0, 20.0])])
    return {"phi": pairs[:, 0], "lambda": pairs[:, 1]}


def log_lik(model: RegressionModel, grid: dict[str, Array], values: Array) -> Array:
    """The model's own log-likelihood of `values` (n,) on a grid, (grid, n)."""
    return model.log_lik(grid, values, np.ones((values.size, 1)), 0)


def cap_of(model: RegressionModel, relation: str) -> float:
    return bound_of_epsilon(EPSILON, relation=relation, density_above_one=model.density_above_one)


@pytest.mark.parametrize("relation", RELATIONS)
def test_persons_of_two_rows(relation: str) -> None:
    """Removed or replaced with both rows: the clip is of the sum; the control's, of rows."""
    cap, pairs = cap_of(BETA, relation), [*itertools.combinations_with_replacement(SHARES, 2)]

    def of_persons(clip: Callable[[Array], Array]) -> Terms:
        """Terms (grid, persons) of persons given by their place among the pairs of rows."""
        by_pair = np.stack([clip(log_lik(BETA, beta_grid(), np.array(pair))) for pair in pairs], 1)
        return lambda persons: by_pair[:, persons.astype(int)]

    def by_unit(f: Array) -> Array:
        units = np.zeros(2, dtype=np.intp)
        return censor(unit_terms(LogLik.of(f), np.ones(2), units), cap=cap)[:, 0]

    places = [float(place) for place in range(len(pairs))]
    assert largest_loss(of_persons(by_unit), places, relation) <= EPSILON * ROUNDING
    by_row = of_persons(lambda f: censor(f, cap=cap).sum(axis=1))
    assert largest_loss(by_row, places, relation) > EPSILON * ROUNDING


@pytest.mark.samples
def test_a_frozen_calibration() -> None:
    """The control takes weights of the same records."""
    rng = np.random.default_rng(1)
    frozen = ph.calibrate(
        BETA, pd.DataFrame({"y": rng.beta(0.5, 3, 200)}), cap=1.0, n_draws=100,
        holds_no_released_record=True, engine="embedded", seed=1,
    )  # fmt: skip

    def honest(x: Array, _: Array) -> Array:
        # Two more records, as a table whose values are all alike is refused.
        return frozen.weights(BETA.bind(pd.DataFrame({"y": [*x, 0.2, 0.4]})))[: x.size]

    def in_sample(_: Array, f: Array) -> Array:
        return weights_from_lipschitz(np.abs(f).max(axis=0))

    def lost(weights: Callable[[Array, Array], Array], relation: str) -> float:
        def terms(x: Array) -> Array:
            f = log_lik(BETA, beta_grid(), x)
            return censor(f, weights(x, f), cap=cap_of(BETA, relation))

        return largest_loss(terms, SHARES, relation)

    for relation in RELATIONS:
        assert lost(honest, relation) <= EPSILON * ROUNDING < lost(in_sample, relation)


N, POINTS = 150, {1: 200, 2: 24}  # records of the reference; points of an axis by number of axes
BROKEN = {
    "own center": "a center from all records",
    "own excess": "an excess of the records released",
    "after": "ten excesses for each record added after clipping",
    "half": "charged M in the place of 2 M",
}


def centered_cases() -> dict[str, tuple[RegressionModel, Array, tuple[float, ...]]]:
    rng, few = np.random.default_rng(1), (0.0, 1.0, 4.0, 30.0)
    rates = rng.gamma(1.0, 3.0, N)
    return {
        "poisson": (POISSON, rng.poisson(3, N), few),
        "negative binomial": (ph.NegativeBinomial("y ~ 1"), rng.poisson(rates), few),
        "beta": (ph.Beta("y ~ 1", decimals=4), rng.beta(1.0, 3.0, N), (0.001, 0.2, 0.5, 0.99)),
        "normal": (ph.NormalRegression("y ~ 1", decimals=4, min_sd=0.1), rng.normal(0.5, 1.0, N),
                   (-3.0, 0.0, 0.6, 9.0)),
    }  # fmt: skip


@pytest.mark.samples
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["poisson", "negative binomial", "beta", "normal"])
def test_centered_posteriors_pass_and_their_controls_are_caught(
    name: str, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhybrid.mechanisms.censored.center._SIZES", POINTS)
    model, values, support = centered_cases()[name]
    frozen = ph.calibrate(
        model, pd.DataFrame({"y": values}), epsilon=EPSILON, relation=relation, n_draws=50,
        holds_no_released_record=True, engine="embedded", seed=1,
    )  # fmt: skip
    bound_of = functools.cache(lambda database: model.bind(pd.DataFrame({"y": database})))

    def lost(broken: str) -> float:
        posterior = centered_posterior(frozen, broken, bound_of)
        return largest_of(posterior, itertools.combinations(support, 2), support, relation)

    honest = lost("")
    assert 0.5 < honest <= EPSILON * ROUNDING, "near enough to epsilon to see what is above it"
    for broken in BROKEN:
        if (broken, relation) != ("after", "replace"):  # it goes with the number of records
            assert lost(broken) > 1.05 * EPSILON, BROKEN[broken]


def centered_posterior(
    frozen: Calibration, broken: str, bound_of: Callable[[Database], Any]
) -> Callable[[Database], Array]:
    """Normalized log posterior of a database on a coarse grid of the calibration's region."""
    center, model = frozen.center, frozen.model
    assert center is not None
    assert isinstance(model, RegressionModel)
    of_model = model.grid(("Intercept",))
    assert of_model is not None
    grid = center.grid(of_model)
    assert grid is not None
    kept: list[Array] = []  # the excess of the calibration is that of every database

    def posterior(database: Database) -> Array:
        bound = bound_of(database)
        if not broken:  # the mechanism itself
            session = open_session(bound, engine="embedded", seed=1)
            fit = ph.Censored(calibration=frozen, relation=frozen.relation).fit(session).fit
            assert fit.exact is not None
            return normalized(fit.exact.log_density)
        alpha, used = frozen.weights(bound), center
        if broken == "own center":
            used = replace(center, parameters=own_center(center, grid, database))
        if broken == "own excess":
            everyone = np.arange(bound.n)
            used = replace(center, frozen=bound.frozen(alpha, center.log_lik(bound), everyone))
        cap = used.cap(bound, 2 * frozen.cap if broken == "half" else frozen.cap)
        if not (kept and used.frozen is center.frozen):
            excess = used.excess_on(bound, grid, cap)
            assert excess is not None
            kept[:] = [excess]
        if broken == "after":
            clipped = exact_posterior(bound, grid, alpha, cap, None).log_density
            return normalized(clipped + 10 * bound.n * kept[0])
        return normalized(exact_posterior(bound, grid, alpha, cap, kept[0]).log_density)

    return posterior


def own_center(center: Center, grid: ParameterGrid, database: Database) -> dict[str, Array]:
    """The control: theta_ref that follows the mean of the records that are released."""
    at = grid.coordinates({name: value[None] for name, value in center.parameters.items()})
    first = grid.axes[0].name
    wave = np.cos(40 * np.mean(database)) * center.region * center.sd[first] / 2
    moved = grid.parameters({**at, first: at[first] + wave})
    return {name: values[0] for name, values in moved.items()}
