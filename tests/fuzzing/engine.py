"""A stand-in engine: draws at random in the shapes of the built-in programs, in microseconds.

It knows nothing of the posterior: what it is for is to bring tables and options through everything
that comes before and after the sampler. `spread` is how far its draws go; the widest ones give
means that overflow, which a release must refuse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.errors import SamplingError
from pyhybrid.engines import (
    ConvergenceRule,
    Draws,
    EngineStatus,
    Progress,
    SamplerSettings,
    StanProgram,
    WarmStart,
)
from tests.normal_draws import sound_draws


@dataclass(frozen=True)
class RandomDraws:
    """Meets the protocol `pyhybrid.engines.Engine`; `fails` makes it raise."""

    spread: float = 0.3
    fails: bool = False
    name = "embedded"

    def status(self) -> EngineStatus:
        return EngineStatus(name=self.name, available=True, version="0")

    def sample(
        self, program: StanProgram, data: Mapping[str, Any], *, seed: int,
        settings: SamplerSettings, warm_start: WarmStart | None = None,
        progress: Progress | None = None,
    ) -> Draws:  # fmt: skip
        if self.fails:
            raise SamplingError(f"the stand-in engine failed on {program.name}")
        rng = np.random.default_rng(seed)
        shape = (settings.chains, settings.draws)
        with np.errstate(over="ignore"):
            variables = _variables(program.name, data, shape, self.spread, rng)
        return sound_draws(
            variables, program, seed, settings, rng, engine="stand-in", engine_version="0",
            inv_metric=None, parameters=tuple(variables),
        )  # fmt: skip


def _variables(
    program: str, data: Mapping[str, Any], shape: tuple[int, int], spread: float,
    rng: np.random.Generator,
) -> dict[str, Any]:  # fmt: skip
    def positive(*dims: int) -> Any:
        return np.exp(np.clip(spread * rng.normal(size=(*shape, *dims)), -700, 700))

    parts = [name.removeprefix("row_") for name in data if name.startswith("row_")]
    if parts:  # a joint program
        made = {}
        for part, own in zip(parts, program.split("_and_"), strict=True):
            end = f"_{part}"
            of_part = {k.removesuffix(end): v for k, v in data.items() if k.endswith(end)}
            drawn = _variables(own, of_part, shape, spread, rng)
            made |= {f"{name}{end}": values for name, values in drawn.items()}
        return made
    if program == "beta":
        phi = rng.beta(2, 2, size=shape)
        size = 0.1 + positive()
        return {"phi": phi, "lambda": size, "beta1": size * phi, "beta2": size * (1 - phi)}
    k = int(data["K"])
    if program == "normal_mixture":
        c = int(data["n_components"])
        log_odds = spread * rng.normal(size=(*shape, c))
        return {
            "beta": spread * rng.normal(size=(*shape, k, c)),
            "sigma": float(data["min_sd"]) + positive(c),
            "log_proportion": log_odds - np.logaddexp.reduce(log_odds, axis=-1, keepdims=True),
        }
    if program == "categorical":
        return {"beta": spread * rng.normal(size=(*shape, k, int(data["n_levels"]) - 1))}
    if program == "ordinal":
        threshold = spread * rng.normal(size=(*shape, int(data["n_levels"]) - 1))
        threshold.sort(axis=-1)
        beta = spread * rng.normal(size=(*shape, k))
        beta[..., 0] = -threshold[..., 0]
        return {"beta": beta, "threshold": threshold}
    own = {"beta": spread * rng.normal(size=(*shape, k)), "sigma_beta": positive(k)}
    if program == "gamma_regression":
        return {**own, "shape": positive()}
    if program == "negative_binomial":
        return {**own, "phi": positive()}
    if program == "normal_regression":
        return {**own, "sigma": float(data["min_sd"]) + positive()}
    if program == "beta_regression":
        return {**own, "lambda": 0.1 + positive()}
    return own


RANDOM_DRAWS: dict[str, Any] = {
    "engine": RandomDraws(),
    "settings": SamplerSettings(chains=2, warmup=1, draws=8),
    "rule": ConvergenceRule(rhat=10.0, ess_per_chain=0.1, divergent_share=1.0),
}
"""Options of a release by the stand-in, which no rule refuses."""
