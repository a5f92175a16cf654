"""Exact sampling: the posterior against scipy, the draws against it, the loss by enumeration."""

from itertools import combinations_with_replacement
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.programs import load_program
from pyhybrid.fitting.exact import ExactPosterior, exact_posterior
from pyhybrid.models.base import BoundModel
from pyhybrid.models.grid import scale_mixture_log_density
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.log_lik import LogLik
from tests.audits.enumeration import Database, largest_of, normalized

NB_GRID = {"log_mean": (-1.0, 4.0, 24), "log_reciprocal_phi": (-3.0, 2.0, 15)}


class Counts:
    """Any counts, also those that all agree, which a bound model refuses."""

    def __init__(self, y: Any) -> None:
        self.y = np.asarray(y, dtype=float)
        self.program = load_program("negative_binomial")

    def log_lik(self, draws: Any) -> LogLik:
        values = {name: draws.flat(name) for name in ("beta", "phi")}
        return LogLik.of(ph.NegativeBinomial("y ~ 1").log_lik(values, self.y, np.ones((1, 1)), 0))


def posterior_of(y: Any, cap: Cap, given: Any = None) -> ExactPosterior:
    bound = cast(BoundModel, Counts(y))
    grid: Any = ph.NegativeBinomial("y ~ 1").grid(("Intercept",))
    return exact_posterior(bound, grid.with_axes(given or NB_GRID), np.ones(len(y)), cap)


def test_the_posterior_is_that_of_scipy() -> None:
    y, reference = np.array([0, 3, 3, 40]), np.array([-1.0, -2.0, -2.0, -6.0])
    cap = Cap(below=0.4, above=0.7, reference=reference)
    found = posterior_of(y, cap)
    at = found.grid.at(np.arange(found.grid.size))
    mu, r = np.exp(at["log_mean"]), np.exp(at["log_reciprocal_phi"])
    phi = 1 / r
    f = stats.nbinom.logpmf(y, phi[:, None], (phi / (phi + mu))[:, None])
    terms = np.clip(f - reference, -0.4, 0.7).sum(axis=1)
    prior = scale_mixture_log_density(at["log_mean"]) + stats.cauchy.logpdf(r, scale=5) + np.log(r)
    expected = terms + prior
    np.testing.assert_allclose(found.log_density, expected - expected.max(), atol=1e-9)


def test_without_clipping_a_center_changes_nothing() -> None:
    y = np.array([2, 3, 5])
    wide = posterior_of(y, Cap.of(1e6))
    centered = posterior_of(y, Cap(below=1e6, above=1e6, reference=np.array([-1.0, -2.0, -3.0])))
    np.testing.assert_allclose(wide.log_density, centered.log_density, atol=1e-8)


@pytest.mark.usefixtures("opendp")
def test_released_draws_follow_the_posterior() -> None:
    """Chi-squared on six cells, 2,000 draws: a false alarm in a million runs."""
    cap = Cap(below=0.5, above=0.5, reference=np.full(4, -2.0))
    found = posterior_of([1, 2, 4, 9], cap, {"log_mean": (0.0, 2.5, 3),
                                             "log_reciprocal_phi": (-2.0, 1.0, 2)})  # fmt: skip
    weight = np.exp(found.log_density)
    draws = found.released_draws(2000, relation="remove")
    key = np.round(draws.flat("beta")[:, 0], 6) + 1j * np.round(draws.flat("phi"), 6)
    at = found.grid.parameters(found.grid.at(np.arange(found.grid.size)))
    cells = np.round(at["beta"][:, 0], 6) + 1j * np.round(at["phi"], 6)
    counts = np.array([(key == cell).sum() for cell in cells])
    assert stats.chisquare(counts, 2000 * weight / weight.sum()).pvalue > 1e-6
    flat = np.full(counts.size, 2000 / counts.size)
    assert stats.chisquare(counts, flat).pvalue < 1e-6  # what is not the posterior is told apart


GIVEN = {"log_mean": (-2.0, 5.0, 40), "log_reciprocal_phi": (-3.0, 2.0, 5)}


def centered(y: np.ndarray, below: float, above: float) -> Cap:
    """A frozen center: mean 2, 1/phi = 0.5."""
    reference = stats.nbinom.logpmf(y, 2, 0.5)
    return Cap(below=below, above=above, reference=reference)


@pytest.mark.parametrize(("below", "above"), [(0.25, 0.25), (1.0, 1.0), (0.1, 0.8)])
@pytest.mark.parametrize(("relation", "times"), [("remove", 1), ("replace", 2)])
def test_the_loss_is_within_the_span_and_near_it(
    below: float, above: float, relation: str, times: int
) -> None:
    values = (0.0, 1.0, 5.0, 30.0)

    def posterior(database: Database) -> Any:
        cap = centered(np.array(database), below, above)
        return normalized(posterior_of(database, cap, GIVEN).log_density)

    pairs = combinations_with_replacement(values, 2)
    span = times * (below + above)
    assert 0.6 * span < largest_of(posterior, pairs, values, relation) <= span


def test_what_the_owner_sees_of_a_grid() -> None:
    wide = posterior_of(np.full(50, 4), Cap.of(50.0), {"log_mean": (-20, 20, 8)})
    fine = posterior_of(np.full(50, 4), Cap.of(50.0), {"log_mean": (1.0, 1.8, 60)})
    assert wide.resolution["log_mean"] < 0.5 < 3 < fine.resolution["log_mean"]
    again = fine.confidential_draws(400, np.random.default_rng(3))
    assert abs(again.flat("beta").mean() - np.log(4)) < 0.1


def test_units_need_chains() -> None:
    with pytest.raises(InvalidInput, match="exact sampling must be record by record"):
        posterior_of([1, 2], Cap(below=1.0, above=1.0, unit=np.array([0, 0])))
