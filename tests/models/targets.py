"""What tests of several programs share: draws, points, and that only weights move a target."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.engines import Draws, SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints
from pyhybrid.privacy.censoring import Cap

_HINTS = (
    "information", "score", "center", "spread", "near", "factor", "middle", "column_basis",
    "level_basis", "apart",
)  # fmt: skip
"""Data that say where a sampler starts; they depend on the weights."""


def draws_of(bound: Any, *, chains: int = 2, warmup: int = 100, draws: int = 40, seed: int = 3,
             alpha: Any = None, **data: Any) -> Any:  # fmt: skip
    """Draws of the embedded engine, unweighted unless told."""
    settings = SamplerSettings(chains=chains, warmup=warmup, draws=draws, parallel_chains=1)
    if bound.blocks:
        weights = np.ones(bound.n) if alpha is None else alpha
        own = {"chains": chains, "warmup": warmup, "draws": draws, "seed": seed, **data}
        return Draws.of_blocks({
            b.name: draws_of(b.bound, alpha=weights[b.at], **own) for b in bound.blocks
        })  # fmt: skip
    stan_data = bound.stan_data(np.ones(bound.n) if alpha is None else alpha, **data)
    return EmbeddedEngine().sample(bound.program, stan_data, seed=seed, settings=settings)


def log_lik_of(bound: Any, draws: Any) -> Any:
    """Log-likelihood of each record at draws, or at what has values as draws have, (S, n)."""
    return np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)[:, bound.row_of]


@dataclass(frozen=True)
class AtPoints:
    """Values (S, ...) of a model's parameters, as draws of them are read."""

    variables: dict[str, Any]

    @property
    def n_draws(self) -> int:
        return len(next(iter(self.variables.values())))

    def flat(self, name: str) -> Any:
        return self.variables[name]


def beyond_density(
    at: ProgramAtPoints, log_density: Callable[[Any], Any], coordinates: Callable[[Any], Any]
) -> Any:
    """Log target at six random points less a log density of `coordinates` (S, d) and their
    Jacobian: one constant if they are the same. Both read the quantities."""
    points = np.random.default_rng(3).normal(size=(6, at.n_unconstrained))
    apart = at.log_density(points) - log_density(at.quantities(points))
    steps = 1e-5 * np.eye(at.n_unconstrained)
    for place, point in enumerate(points):
        ends = coordinates(at.quantities(np.vstack([point + steps, point - steps])))
        apart[place] -= np.linalg.slogdet(np.subtract(*np.split(ends, 2)) / 2e-5)[1]
    return apart


def assert_weights_alone_move_the_target(
    bound: Any, cap: Any, *, log_lik: Callable[[Any], Any] | None = None, weights: Any = None,
    spread: float = 1.0, rtol: float = 1e-9,
) -> None:  # fmt: skip
    """Between two weight vectors the target differs by the (clipped) weighted log-likelihood, at
    random points; weights that are less by a fifth are seen. `log_lik` makes (S, n) of what has the
    values as draws have; numpy's if omitted."""
    own = None if cap is None else Cap.of(cap)
    one, two = np.random.default_rng(2).uniform(size=(2, bound.n)) if weights is None else weights
    if weights is None:
        one[:5] = 0
    hints = bound.stan_data(one, cap=cap)
    at = ProgramAtPoints(bound.program, hints)
    points = np.random.default_rng(3).normal(size=(6, at.n_unconstrained)) * spread
    values = AtPoints(at.quantities(points))
    f = log_lik_of(bound, values) if log_lik is None else log_lik(values)

    def target(alpha: Any) -> Any:
        data = bound.stan_data(alpha, cap=cap)
        data |= {name: hints[name] for name in data if name.startswith(_HINTS)}
        return ProgramAtPoints(bound.program, data).log_density(points)

    def term(alpha: Any) -> Any:
        if own is None:
            return (alpha * f).sum(axis=1)
        moved = alpha * (f - (0.0 if own.reference is None else own.reference))
        if own.unit is not None:
            moved = np.stack([np.bincount(own.unit, row) for row in moved])
        clipped = np.clip(moved, -own.below, own.above)
        assert (clipped != moved).any()
        return clipped.sum(axis=1)

    difference = target(one) - target(two)
    np.testing.assert_allclose(difference, term(one) - term(two), rtol=rtol, atol=rtol)
    assert np.abs(difference - (term(one) - term(two * 0.8))).max() > 0.05, "control"
