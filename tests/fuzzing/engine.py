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
from pyhybrid.engines import ConvergenceRule, Draws, EngineStatus, SamplerSettings, StanProgram
from tests.normal_draws import sound_draws


@dataclass(frozen=True)
class RandomDraws:
    """Meets the protocol `pyhybrid.engines.Engine`; `fails` makes it raise."""

    spread: float = 0.3
    fails: bool = False
    name = "embedded"

    def status(self) -> EngineStatus:
        return EngineStatus(name=self.name, version="0")

    def sample(
        self, program: StanProgram, data: Mapping[str, Any], *, seed: int,
        settings: SamplerSettings, **_: Any,
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


_SCALES = {"gamma_regression": "shape", "negative_binomial": "phi", "normal_regression": "sigma",
           "beta_regression": "lambda"}  # fmt: skip


def _variables(
    program: str, data: Mapping[str, Any], shape: tuple[int, int], spread: float,
    rng: np.random.Generator,
) -> dict[str, Any]:  # fmt: skip
    def normal(*dims: int) -> Any:
        return spread * rng.normal(size=(*shape, *dims))

    def positive(*dims: int) -> Any:
        return np.exp(np.clip(normal(*dims), -700, 700))

    parts = [name.removeprefix("row_") for name in data if name.startswith("row_")]
    if parts:  # a joint program
        joint = {}
        for part, name in zip(parts, program.split("_and_"), strict=True):
            of_part = {k.removesuffix(f"_{part}"): v for k, v in data.items() if k.endswith(part)}
            drawn = _variables(name, of_part, shape, spread, rng)
            joint |= {f"{variable}_{part}": values for variable, values in drawn.items()}
        return joint
    if program == "beta":
        phi, size = rng.beta(2, 2, size=shape), 0.1 + positive()
        return {"phi": phi, "lambda": size, "beta1": size * phi, "beta2": size * (1 - phi)}
    k, levels = int(data["K"]), int(data.get("n_levels", 1))
    if program == "normal_mixture":
        c = int(data["n_components"])
        log_odds, beta = normal(c), normal(k, c)
        return {
            "beta": beta, "sigma": float(data["min_sd"]) + positive(c),
            "log_proportion": log_odds - np.logaddexp.reduce(log_odds, axis=-1, keepdims=True),
        }  # fmt: skip
    if program == "categorical":
        return {"beta": normal(k, levels - 1)}
    if program == "ordinal":
        threshold, beta = np.sort(normal(levels - 1), axis=-1), normal(k)
        beta[..., 0] = -threshold[..., 0]
        return {"beta": beta, "threshold": threshold}
    variables = {"beta": normal(k), "sigma_beta": positive(k)}
    if program in _SCALES:
        least = {"normal_regression": data.get("min_sd"), "beta_regression": 0.1}
        variables[_SCALES[program]] = least.get(program, 0.0) + positive()
    return variables


RANDOM_DRAWS: dict[str, Any] = {
    "engine": RandomDraws(),
    "settings": SamplerSettings(chains=2, warmup=1, draws=8),
    "rule": ConvergenceRule(rhat=10.0, ess_per_chain=0.1, divergent_share=1.0),
}
"""Options of a release by the stand-in, which no rule refuses."""
