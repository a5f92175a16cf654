"""Exact sampling of censored posteriors on a public grid of parameters.

On a grid the censored posterior is an exponential mechanism over finitely many candidates whose
score, the log posterior, moves by at most the span of the cap when one record (or unit) is removed:
OpenDP's Gumbel noise draws from it without a chain, a retry, or a seed of 31 bits.

References
----------
[MT07]; [DR19] for scores of bounded range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws, Provenance, SamplerSettings, StanProgram
from pyhybrid.models.base import BoundModel
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.primitives.selection import exponential_mechanism
from pyhybrid.privacy.censoring import Cap

_CHUNK = 20_000  # candidates at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPosterior:
    """A censored posterior on a grid, the same as that of `program`: `log_density` (C,), nats;
    `span`, the largest change of a score between neighbors less its smallest. Confidential."""

    grid: ParameterGrid
    log_density: FloatArray
    span: float
    program: StanProgram

    def __repr__(self) -> str:
        return f"<ExactPosterior on {self.grid.size} candidates>"

    def released_draws(self, n_draws: int, *, relation: str) -> Draws:
        """Draws of OpenDP's exponential mechanism, each at epsilon = span (twice for replace)."""
        # A constant added to all scores changes nothing: scores that move within [-a, b] are as
        # good as scores that move by (a + b) / 2 either way.
        sensitivity = self.span / 2 if relation == "remove" else self.span
        options: dict[str, Any] = {"sensitivity": sensitivity, "epsilon": 2 * sensitivity}
        answers = [
            exponential_mechanism(self.log_density, relation=relation, **options)
            for _ in range(n_draws)
        ]
        places = np.array([int(answer.value) for answer in answers])
        return self._draws(places, f"OpenDP {version('opendp')}")

    @property
    def mass(self) -> FloatArray:
        """Posterior probability of the candidates, in the shape of the grid's axes."""
        weight = np.exp(self.log_density - self.log_density.max())
        mass = (weight / weight.sum()).reshape([axis.size for axis in self.grid.axes])
        return np.asarray(mass)

    def confidential_draws(self, n_draws: int, rng: np.random.Generator) -> Draws:
        """Draws for the owner's report, from `rng`; they are not released."""
        places = rng.choice(self.grid.size, size=n_draws, p=self.mass.ravel())
        return self._draws(places, "numpy")

    @property
    def resolution(self) -> dict[str, float]:
        """Posterior standard deviation over the spacing, by coordinate; below 1 is coarse."""
        mass, resolutions = self.mass, {}
        for place, axis in enumerate(self.grid.axes):
            marginal = mass.sum(axis=tuple(i for i in range(mass.ndim) if i != place))
            mean = marginal @ axis.points
            variance = marginal @ (axis.points - mean) ** 2
            resolutions[axis.name] = float(np.sqrt(variance) / axis.spacing)
        return resolutions

    def _draws(self, places: npt.NDArray[np.intp], source: str) -> Draws:
        values = self.grid.parameters(self.grid.at(places))
        provenance = Provenance(
            engine="exact",
            engine_version=source,
            program=self.program.name,
            program_sha256=self.program.sha256,
            seed=0,
            seconds=0.0,
            settings=SamplerSettings(chains=2, warmup=1, draws=max(places.size, 4)),
        )
        return frozen_draws(values, provenance)


def frozen_draws(values: Mapping[str, FloatArray], provenance: Any = None) -> Draws:
    """Draws (S, *dims) by name as a `Draws` of one chain without sampler statistics; of points that
    no engine made, without provenance."""
    n_draws = len(next(iter(values.values())))
    return Draws(
        variables={name: draws[None] for name, draws in values.items()},
        divergent=np.zeros((1, n_draws), dtype=bool),
        treedepth=np.zeros((1, n_draws), dtype=np.int64),
        energy=np.zeros((1, n_draws)),
        step_size=np.ones(1),
        inv_metric=None,
        parameters=tuple(values),
        provenance=provenance,
    )


def exact_posterior(
    bound: BoundModel,
    grid: ParameterGrid,
    alpha: FloatArray,
    cap: Cap,
    excess: FloatArray | None = None,
) -> ExactPosterior:
    """Log posterior of every candidate under weights `alpha` (n,) and `cap`; a frozen `excess` (C,)
    is added to each term before it is clipped (`mechanisms.censored.center`)."""
    if cap.unit is not None:
        raise InvalidInput("exact sampling must be record by record: with a unit take chains")
    posterior = ExactPosterior(
        grid=grid, log_density=np.zeros(grid.size), span=cap.span, program=bound.program
    )
    parts = []
    for start in range(0, grid.size, _CHUNK):
        places = np.arange(start, min(start + _CHUNK, grid.size))
        log_lik = bound.log_lik(posterior._draws(places, ""))
        excess_here = None if excess is None else excess[places]
        total = log_lik.clipped_total(alpha, cap.below, cap.above, cap.reference, excess_here)
        parts.append(total + grid.log_prior(grid.at(places)))
    scores = np.concatenate(parts)
    if not np.isfinite(scores).all():
        raise InvalidInput("every candidate of the grid must have a finite posterior density")
    posterior.log_density[:] = scores - scores.max()
    return posterior
