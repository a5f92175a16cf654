"""Grids of parameters: coordinates and their inverses, priors with Jacobians, what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.models.grid import Axis, ParameterGrid, scale_mixture_log_density
from tests.models.targets import AtPoints, beyond_density, log_lik_of
from tests.refusals import refuses

MODELS = (
    ph.Poisson("y ~ 1"), ph.Bernoulli("y ~ 1", prior="published"), ph.NegativeBinomial("y ~ 1"),
    ph.Beta("y ~ 1"), ph.NormalRegression("y ~ 1", min_sd=0.1),
)  # fmt: skip


def grid_of(model: Any) -> ParameterGrid:
    grid: ParameterGrid = model.grid(("Intercept",))
    return grid


GRIDS = {model.name: grid_of(model) for model in MODELS}
SMALL = {axis.name: (-1.0, 2.0, 7) for grid in GRIDS.values() for axis in grid.axes}


@pytest.mark.parametrize("name", GRIDS)
def test_coordinates_are_the_inverse_of_parameters(name: str) -> None:
    grid = GRIDS[name].with_axes({axis.name: SMALL[axis.name] for axis in GRIDS[name].axes})
    at = grid.at(np.arange(grid.size))
    back = grid.coordinates(grid.parameters(at))
    for name, values in at.items():
        np.testing.assert_allclose(back[name], values, atol=1e-12)
    assert len({tuple(point) for point in zip(*at.values(), strict=True)}) == grid.size


_RNG = np.random.default_rng(4)
COUNTS, SHARES = _RNG.negative_binomial(2, 0.3, 25), _RNG.beta(0.8, 2, 25)


@pytest.mark.parametrize(("model", "y"), [
    (ph.Poisson("y ~ 1", prior="normal"), COUNTS),
    (ph.NegativeBinomial("y ~ 1", prior="normal"), COUNTS),
    (ph.Bernoulli("y ~ 1", prior_scale_intercept=1.5), COUNTS > 3), (ph.Beta("y ~ 1"), SHARES),
    (ph.LogNormal("y ~ 1", prior_scale_intercept=1.5), SHARES),
    (ph.NormalRegression("y ~ 1", prior="normal", min_sd=0.1), SHARES),
], ids=lambda own: getattr(own, "name", ""))  # fmt: skip
def test_a_grid_has_the_density_of_the_program(model: Any, y: Any) -> None:
    """Weighted log-likelihood and the grid's prior; the control: a prior of another size."""
    bound, alpha = model.bind(pd.DataFrame({"y": y})), np.linspace(0, 1, 25)
    program, grid = ProgramAtPoints(bound.program, bound.stan_data(alpha)), grid_of(model)

    def log_density(at: Any, size: float = 1.0) -> Any:
        prior = size * grid.log_prior(grid.coordinates(at))
        return log_lik_of(bound, AtPoints(at)) @ alpha + prior

    def coordinates(at: Any) -> Any:
        return np.column_stack([*grid.coordinates(at).values()])

    apart = beyond_density(program, log_density, coordinates)
    np.testing.assert_allclose(apart, apart[0], atol=1e-5)
    assert np.ptp(beyond_density(program, lambda at: log_density(at, 0.5), coordinates)) > 1e-3


def test_scale_mixture_is_the_integral_over_the_scale() -> None:
    for beta in (1e-3, 0.2, 1.0, 4.0, 12.0):
        exact, _ = integrate.quad(
            lambda log_s, beta=beta: (
                2 * stats.t.pdf(np.exp(log_s), 3) * stats.norm.pdf(beta, scale=np.exp(log_s))
                * np.exp(log_s)
            ),
            -18, 12, limit=500, epsabs=0, epsrel=1e-10,
        )  # fmt: skip
        found = scale_mixture_log_density(np.array([beta]))[0]
        assert found == pytest.approx(np.log(exact), abs=1e-6)


U, V = np.array([-2.0, 0.0, 1.5]), np.array([-1.0, 0.5, 3.0])
SHARE = stats.logistic.cdf(U) * stats.logistic.sf(U)


@pytest.mark.parametrize(("name", "at", "expected"), [
    ("NegativeBinomial", {"log_mean": 0 * U, "log_reciprocal_phi": V},
     stats.cauchy.logpdf(np.exp(V), scale=5) + V),
    ("Beta", {"logit_phi": U, "log_lambda": V},
     np.log(SHARE) + stats.pareto.logpdf(0.1 + np.exp(V), 1.5, scale=0.1) + V),
    ("NormalRegression", {"mean": 0 * U, "log_sd": V}, stats.t.logpdf(0.1 + np.exp(V), 3) + V),
])  # fmt: skip
def test_priors_are_the_documented_ones(name: str, at: Any, expected: Any) -> None:
    """Of the parameters, in the coordinates: with their Jacobian."""
    np.testing.assert_allclose(np.diff(GRIDS[name].log_prior(at)), np.diff(expected), atol=1e-12)


def test_what_is_no_grid_is_refused_with_what_would_be_one() -> None:
    with_axes = GRIDS["NegativeBinomial"].with_axes
    refuses("coordinates of the model, log_mean, log_reciprocal", with_axes, {"phi": (0, 1, 10)})
    refuses("must have lower below upper", with_axes, {"log_mean": (1, 0, 10)})
    refuses("lower, upper, size", with_axes, {"log_mean": (0, 1)})
    refuses("at most 5000000 points", with_axes, {"log_mean": (0, 1, 10_000)})
    refuses("size of grid axis 'a'", Axis, name="a", lower=0, upper=1, size=1)
