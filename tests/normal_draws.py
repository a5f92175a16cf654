"""Draws as the embedded engine gives them, without a sampler: independent ones of a normal density
about the mode, the parameters' unconstrained values taken as normal.

Tests of what comes after a fit (marker `normal_draws`) need draws, not those of a posterior. These
converge under every rule, cost no chain, and move with the processor by no more than rounding.
Tests only: no registry names this engine.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyhybrid.engines import ConvergenceRule
from pyhybrid.engines.base import Draws, EngineStatus, Provenance, SamplerSettings, StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import parameter_names

_STEP = 1e-4
_WIDEST = 1.0
"""Most standard deviation of a parameter on the unconstrained scale: flat densities have no end."""


def normal_draws(
    program: StanProgram, data: Mapping[str, Any], seed: int, settings: SamplerSettings
) -> Draws:
    """`settings.chains` x `settings.draws` draws; `seed` chooses them."""
    at = ProgramAtPoints(program, data)
    shape = settings.chains, settings.draws
    rng = np.random.default_rng(seed)
    points = np.zeros((shape[0] * shape[1], at.n_unconstrained))
    if at.n_unconstrained:
        mode, spread = _mode_and_spread(at._model)
        points = mode + rng.normal(size=points.shape) @ spread.T
    values = at.quantities(points, seed=seed % (2**31 - 1) or 1)
    metric = (np.ones(at.n_unconstrained),) * settings.chains
    return sound_draws(
        {name: value.reshape(*shape, *value.shape[1:]) for name, value in values.items()},
        program, seed, settings, rng, engine="embedded", engine_version="normal draws",
        inv_metric=None if settings.metric == "unit" else metric,
        parameters=parameter_names(program),
    )  # fmt: skip


def sound_draws(
    variables: Mapping[str, Any], program: StanProgram, seed: int, settings: SamplerSettings,
    rng: np.random.Generator, *, engine: str, engine_version: str, **more: Any,
) -> Draws:  # fmt: skip
    """Draws to which no diagnostic of the sampler objects."""
    shape = settings.chains, settings.draws
    provenance = Provenance(
        engine=engine, engine_version=engine_version, program=program.name,
        program_sha256=program.sha256, seed=seed, settings=settings, seconds=0.01,
    )  # fmt: skip
    return Draws(
        variables=variables, divergent=np.zeros(shape, bool), treedepth=np.full(shape, 2),
        energy=rng.normal(size=shape), step_size=np.ones(settings.chains), provenance=provenance,
        **more,
    )  # fmt: skip


def _mode_and_spread(model: Any) -> tuple[Any, Any]:
    """The mode, and a square root of the covariance there."""

    def gradient(point: Any) -> Any:
        return np.asarray(model.log_prob_grad(point)[1])

    try:
        mode = np.asarray(model.optimize(seed=1).unconstrained, dtype=float)
    except RuntimeError:  # no way ends at a kink of clipped terms: draws about the origin then
        mode = np.zeros(model.n_unconstrained)
    for _ in range(3):  # steps of Newton, as far as they help
        steps = _STEP * np.eye(mode.size)
        hessian = np.array([gradient(mode + h) - gradient(mode - h) for h in steps]) / (2 * _STEP)
        values, vectors = np.linalg.eigh(-(hessian + hessian.T) / 2)
        values = np.maximum(values, _WIDEST**-2)
        nearer = mode + vectors @ ((vectors.T @ gradient(mode)) / values)
        if not np.abs(gradient(nearer)).max() < np.abs(gradient(mode)).max():
            break
        mode = nearer
    return mode, vectors / np.sqrt(values)


class NormalDraws:
    """Meets the protocol `pyhybrid.engines.Engine`, for tests that are not marked."""

    name = "embedded"

    def status(self) -> EngineStatus:
        return EngineStatus(name=self.name, version="0")

    def sample(
        self, program: StanProgram, data: Mapping[str, Any], *, seed: int,
        settings: SamplerSettings, **_: Any,
    ) -> Draws:  # fmt: skip
        return normal_draws(program, data, seed, settings)


FEW_DRAWS: dict[str, Any] = {
    "engine": NormalDraws(), "settings": SamplerSettings(chains=2, warmup=1, draws=8),
    "rule": ConvergenceRule(rhat=10.0, ess_per_chain=0.1, divergent_share=1.0),
}  # fmt: skip
"""Options of a release by them, which no rule refuses."""
