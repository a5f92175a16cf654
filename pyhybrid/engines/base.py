"""The protocol of Stan engines: what each takes and gives, so that one program runs on all."""

from __future__ import annotations

import hashlib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_finite
from pyhybrid.core.errors import EngineUnavailable, InvalidInput

Progress = Callable[[int, int], None]
"""Called with (iterations done, iterations in all), summed over chains."""
METRICS = ("adapted", "unit")
"""See `SamplerSettings`."""
_ACCEPTANCE = 0.9
_AGAIN = 0.99
_COMMAND = re.compile(r"\n?Command and output files:.*", re.DOTALL)
_PLACE = r"(?P<place>\b(?:line|column|chains?|attempts?|of|in)\s+\d+\b|\[[\d, ]*\]|^\s*\d+:)"
_NUMBER = r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])"
_PLACE_OR_NUMBER = re.compile(f"{_PLACE}|{_NUMBER}", re.MULTILINE)
CLIPPED = 0.6
"""Acceptance rate for terms that are clipped about a center."""
_CLIPPED_AGAIN = 0.8  # at 0.99 a second try would stop before every kink


@dataclass(frozen=True, kw_only=True)
class StanProgram:
    """The text of a Stan program and the name it goes by."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Hash of the text: what was run, independent of where it was found."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class SamplerSettings:
    """Settings of the No-U-Turn sampler, the same for all engines.

    Attributes
    ----------
    chains : int, default 4
        At least 2, so that R-hat can be computed.
    warmup, draws : int, default 1000
        Iterations per chain: adaptation, and kept draws. S = chains x draws. A first try that
        starts near the posterior adapts for a quarter of `warmup`, at least 150.
    adapt_delta : float, optional
        Target acceptance rate in (0, 1). If omitted 0.9, for fits of models that standardize
        what is sampled 0.7 or 0.8, for terms clipped about a center 0.6 (`unless_asked`).
    max_treedepth : int, default 10
    parallel_chains : int, optional
        Chains run at once; as many as there are cores if omitted.
    metric : {"adapted", "unit"}, default "adapted"
        The sampler's metric: variances found in the warm-up, or 1 for all parameters. The rstan
        engine adapts it always.
    max_draws : int, optional
        Most draws per chain, 4 x `draws` if omitted, up to which chains that only need more draws
        go on. Public; when drawing stops depends on the data. Equal to `draws`: a number fixed
        beforehand, and no second try either, which the charge of a strict release says.
    """

    chains: int = 4
    warmup: int = 1000
    draws: int = 1000
    adapt_delta: float | None = None
    max_treedepth: int = 10
    parallel_chains: int | None = None
    max_draws: int | None = None
    metric: str = "adapted"

    def __post_init__(self) -> None:
        check_count(self.chains, "chains", at_least=2)
        check_count(self.warmup, "warmup")
        check_count(self.draws, "draws", at_least=4)
        check_count(self.max_treedepth, "max_treedepth")
        if not 0 < check_finite(self.acceptance, "adapt_delta") < 1:
            raise InvalidInput(f"adapt_delta must lie in (0, 1): found {self.adapt_delta:g}")
        check_choice(self.metric, "metric", METRICS)
        if self.parallel_chains is not None:
            check_count(self.parallel_chains, "parallel_chains")
        if self.max_draws is not None:
            check_count(self.max_draws, "max_draws", at_least=self.draws)

    @classmethod
    def of(cls, settings: Any) -> SamplerSettings:
        """`settings`, or the default ones for None; anything else is refused."""
        if settings is not None and not isinstance(settings, cls):
            raise InvalidInput(
                "settings must be SamplerSettings, e.g. ph.engines.SamplerSettings(draws=2000): "
                f"found {type(settings).__name__}"
            )
        return settings or cls()

    @property
    def acceptance(self) -> float:
        """The target acceptance rate of an engine: `adapt_delta`, or its default."""
        return _ACCEPTANCE if self.adapt_delta is None else self.adapt_delta

    def unless_asked(self, adapt_delta: float, metric: str = METRICS[0]) -> SamplerSettings:
        """With this acceptance rate and metric where `adapt_delta` is not given: nearly normal
        parameters take half the gradients by long steps, clipped terms have kinks."""
        if self.adapt_delta is not None:
            return self
        metric = self.metric if self.metric == "unit" else metric
        return replace(self, adapt_delta=adapt_delta, metric=metric)

    def longer(self, *, clipped: bool = False) -> SamplerSettings:
        """Settings for a second try: twice the iterations, a higher adapt_delta (less high for
        `clipped` terms), deeper trees."""
        return replace(
            self,
            warmup=2 * self.warmup,
            draws=2 * self.draws,
            max_draws=None if self.max_draws is None else max(self.max_draws, 2 * self.draws),
            adapt_delta=max(self.acceptance, _CLIPPED_AGAIN if clipped else _AGAIN),
            max_treedepth=self.max_treedepth + 2,
        )


def of_block(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What of `Draws.of_blocks` is of one block, by its own names of variables."""
    end = f"_{name}"
    return {key.removesuffix(end): v for key, v in values.items() if key.endswith(end)}


@dataclass(frozen=True, kw_only=True, eq=False)
class WarmStart:
    """State of a finished fit that the next one of the same program starts from: by chain the
    constrained parameters by name, the diagonal inverse metric (p,) on the unconstrained scale, and
    the step size."""

    inits: tuple[Mapping[str, Any], ...]
    inv_metric: tuple[FloatArray, ...] | None
    step_size: FloatArray

    def of_block(self, name: str) -> WarmStart:
        """The start of one of the blocks of `Draws.of_blocks`, by its own names of variables."""
        inits = tuple(of_block(values, name) for values in self.inits)
        return replace(self, inits=inits, inv_metric=None)

    def inits_of(self, chains: int) -> list[Mapping[str, Any]]:
        """Initial values of so many chains, those of this start repeated where they are fewer."""
        return [self.inits[chain % len(self.inits)] for chain in range(chains)]

    def tuning(self, settings: SamplerSettings) -> dict[str, Any]:
        """Mean step size and, unless the metric is to be 1, mean inverse metric (p,)."""
        start: dict[str, Any] = {"step_size": float(np.mean(self.step_size))}
        if self.inv_metric is not None and settings.metric != "unit":
            start["inv_metric"] = np.mean(self.inv_metric, axis=0)
        return start


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of draws. `seed` is confidential: with it anyone can recompute the fit."""

    engine: str
    engine_version: str
    program: str
    program_sha256: str
    seed: int = field(repr=False)
    settings: SamplerSettings = field(repr=False)
    seconds: float
    notes: tuple[str, ...] = ()
    counts: ClassVar[str] = ""  # noise was added to none; see NoiseProvenance


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Posterior draws after warm-up, and the sampler's own record.

    Attributes
    ----------
    variables : mapping of str to ndarray, shape (chains, draws, *dims)
        Parameters, transformed parameters and generated quantities, in the program's order.
    divergent : ndarray of bool, shape (chains, draws)
    treedepth : ndarray of int, shape (chains, draws)
    energy : ndarray, shape (chains, draws)
    step_size : ndarray, shape (chains,)
    inv_metric : tuple of ndarray, shape (p,) each, or None
        Adapted diagonal inverse metric per chain, where the engine tells it.
    parameters : tuple of str
        Names of the program's parameters, the variables a warm start needs.
    provenance : Provenance
    """

    variables: Mapping[str, FloatArray]
    divergent: npt.NDArray[np.bool_]
    treedepth: npt.NDArray[np.int64]
    energy: FloatArray
    step_size: FloatArray
    inv_metric: tuple[FloatArray, ...] | None
    parameters: tuple[str, ...]
    provenance: Provenance

    @property
    def n_chains(self) -> int:
        return int(self.divergent.shape[0])

    @property
    def n_draws(self) -> int:
        """S, draws of all chains together."""
        return int(self.divergent.size)

    def flat(self, name: str) -> FloatArray:
        """Draws of one variable with the chains one after the other, shape (S, *dims)."""
        if name not in self.variables:
            raise InvalidInput(f"variable must be one of {', '.join(self.variables)}: found {name}")
        values = self.variables[name]
        return values.reshape(-1, *values.shape[2:])

    def followed_by(self, more: Draws) -> Draws:
        """These draws and then `more` of the same chains, of which the sampler is the same."""
        ran, then = self.provenance, more.provenance
        n_draws = ran.settings.draws + then.settings.draws
        stats: Any = {
            name: np.hstack([getattr(self, name), getattr(more, name)])
            for name in ("divergent", "treedepth", "energy")
        }
        return replace(
            self,
            **stats,
            variables={
                name: np.concatenate([values, more.variables[name]], axis=1)
                for name, values in self.variables.items()
            },
            provenance=replace(
                ran,
                settings=replace(ran.settings, draws=n_draws, max_draws=None),
                seconds=ran.seconds + then.seconds,
                notes=tuple(dict.fromkeys((*ran.notes, *then.notes))),
            ),
        )

    @classmethod
    def of_blocks(cls, blocks: Mapping[str, Draws]) -> Draws:
        """Draws of independent blocks side by side: variables with the name of their block after
        theirs, and the last draws of each chain where a block has more than another."""
        length = min(draws.energy.shape[1] for draws in blocks.values())
        runs = [draws.provenance for draws in blocks.values()]
        programs = StanProgram(name="", text="".join(run.program_sha256 for run in runs))

        def together(name: str, join: Callable[[Any], Any]) -> Any:
            return join([getattr(draws, name)[:, -length:] for draws in blocks.values()])

        return cls(
            variables={
                f"{name}_{block}": values[:, -length:]
                for block, draws in blocks.items()
                for name, values in draws.variables.items()
            },
            divergent=together("divergent", partial(np.any, axis=0)),
            treedepth=together("treedepth", partial(np.max, axis=0)),
            energy=together("energy", partial(np.sum, axis=0)),
            step_size=np.min([draws.step_size for draws in blocks.values()], axis=0),
            inv_metric=None,
            parameters=tuple(
                f"{name}_{block}" for block, draws in blocks.items() for name in draws.parameters
            ),
            provenance=replace(
                runs[0],
                program="_and_".join(run.program for run in runs),
                program_sha256=programs.sha256,
                seconds=sum(run.seconds for run in runs),
                notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
            ),
        )

    def warm_start(self) -> WarmStart:
        """Last draw of each chain, with its step size and metric, to start a refit from."""
        empty = np.empty((*self.divergent.shape, 0))  # engines leave out variables of size 0
        last = [
            {name: self.variables.get(name, empty)[chain, -1] for name in self.parameters}
            for chain in range(self.n_chains)
        ]
        return WarmStart(
            inits=tuple(last), inv_metric=self.inv_metric, step_size=self.step_size.copy()
        )

    def to_inference_data(self) -> Any:
        """The draws as an `arviz.InferenceData`."""
        import arviz

        stats = {"diverging": self.divergent, "tree_depth": self.treedepth, "energy": self.energy}
        return arviz.from_dict(posterior=dict(self.variables), sample_stats=stats)


@dataclass(frozen=True, kw_only=True)
class EngineStatus:
    """Version of an engine that can run here; or why it cannot, and the command that mends it."""

    name: str
    version: str = ""
    cause: str = ""
    remedy: str = ""

    @property
    def available(self) -> bool:
        """True where nothing stands in the way."""
        return not self.cause

    def required(self) -> EngineStatus:
        """This status; raises EngineUnavailable with cause and remedy if the engine cannot run."""
        if not self.available:
            raise EngineUnavailable(f"{self.cause}; {self.remedy}")
        return self


class Engine(Protocol):
    """A way to sample from a Stan program."""

    @property
    def name(self) -> str:
        """Name by which `engine=` chooses it."""

    def status(self) -> EngineStatus:
        """Look for the engine without running it."""

    def sample(
        self,
        program: StanProgram,
        data: Mapping[str, Any],
        *,
        seed: int,
        settings: SamplerSettings,
        warm_start: WarmStart | None = None,
        progress: Progress | None = None,
    ) -> Draws:
        """Sample; raises EngineUnavailable if it cannot run, SamplingError if it fails."""


@runtime_checkable
class ContinuingEngine(Engine, Protocol):
    """An engine that can go on with chains whose sampler has been tuned."""

    def more(
        self,
        program: StanProgram,
        data: Mapping[str, Any],
        draws: Draws,
        *,
        seed: int,
        n_draws: int,
        progress: Progress | None = None,
    ) -> Draws:
        """`n_draws` more per chain, without adaptation, from the last of `draws`; only the new
        ones. `seed` must not be that of `draws`: the chains would repeat their random numbers."""


@dataclass(frozen=True, eq=False)
class Run:
    """What an engine is asked to sample, and when that began (`time.perf_counter`)."""

    status: EngineStatus
    program: StanProgram
    data: Mapping[str, Any]
    seed: int
    settings: SamplerSettings
    warm_start: WarmStart | None
    progress: Progress | None
    started: float = field(default_factory=time.perf_counter)

    def provenance(self, notes: Iterable[str] = ()) -> Provenance:
        """Of the run, which ends now."""
        return Provenance(
            engine=self.status.name,
            engine_version=self.status.version,
            program=self.program.name,
            program_sha256=self.program.sha256,
            seed=self.seed,
            settings=self.settings,
            seconds=time.perf_counter() - self.started,
            notes=tuple(notes),
        )


class OurEngine(Engine, ABC):
    """The part of an `Engine` that those of pyhybrid share."""

    name: str

    @abstractmethod
    def run(self, run: Run) -> Draws:
        """What `sample` returns."""

    def sample(
        self,
        program: StanProgram,
        data: Mapping[str, Any],
        *,
        seed: int,
        settings: SamplerSettings,
        warm_start: WarmStart | None = None,
        progress: Progress | None = None,
    ) -> Draws:
        """Sample as `Engine` says."""
        status = self.status().required()
        return self.run(Run(status, program, data, seed, settings, warm_start, progress))


class ProgressLines:
    """Listens to what Stan prints: passes iterations on, summed over chains, and keeps the end of
    what else is `said`, such as a compiler's words."""

    _LINE = re.compile(r"Chain \[?(\d+)\]?:? Iteration:\s*(\d+) / \d+")
    _KEPT = 4000

    def __init__(self, progress: Progress | None, settings: SamplerSettings) -> None:
        self._progress, self._done, self._rest, self.said = progress, dict[str, int](), "", ""
        self._total = settings.chains * (settings.warmup + settings.draws)

    def write(self, text: str) -> None:
        """Take the next piece."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if match := self._LINE.search(line):
                self._done[match[1]] = int(match[2])
                if self._progress is not None:
                    self._progress(sum(self._done.values()), self._total)
            elif line.strip() and not line.startswith("Chain "):
                self.said = f"{self.said}\n{line}"[-self._KEPT :]

    def flush(self) -> None:
        """Nothing waits."""


def without_values(text: str) -> str:
    """An engine's words on a failure with numbers as "#", but for places: Stan names the value that
    a statement rejects, which may be an outcome, CmdStan its command with the seed."""
    kept = _COMMAND.sub("", text)
    return _PLACE_OR_NUMBER.sub(lambda match: match["place"] or "#", kept).strip()
