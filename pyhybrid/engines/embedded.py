"""The embedded engine: `stanli`, Stan's language, math library and NUTS in one wheel.

Needs no compiler and no build step, keeps everything in memory and writes no files.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from pyhybrid.core.errors import EngineUnavailable, SamplingError
from pyhybrid.engines.base import (
    Draws,
    EngineStatus,
    Progress,
    Provenance,
    SamplerSettings,
    StanProgram,
    WarmStart,
)
from pyhybrid.engines.messages import without_values
from pyhybrid.engines.programs import parameter_names

__all__ = ["EmbeddedEngine", "as_json", "compiled", "stanli_module"]

_COLUMNS = {"divergent__": "divergent", "treedepth__": "treedepth", "energy__": "energy"}


class EmbeddedEngine:
    """Samples in this process through `stanli`."""

    name = "embedded"

    def status(self) -> EngineStatus:
        """Available wherever the stanli wheel can be imported."""
        try:
            stanli = stanli_module()
        except EngineUnavailable as error:
            return EngineStatus(
                name=self.name, available=False, cause=str(error), remedy="pip install stanli"
            )
        return EngineStatus(name=self.name, available=True, version=stanli.__version__)

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
        """Sample; see `pyhybrid.engines.base.Engine`."""
        settings.check_no_threads(self.name)
        return self._run(
            program,
            data,
            seed,
            settings,
            progress,
            lambda model: _start(model, warm_start, settings),
        )

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
        """Go on; see `pyhybrid.engines.base.ContinuingEngine`.

        All chains go on with the mean of their step sizes and metrics.
        """
        settings = replace(draws.provenance.settings, draws=n_draws, max_draws=None)

        def start(model: Any) -> dict[str, Any]:
            own = _start(model, draws.warm_start(), settings)
            return {**own, "warmup": 0, "adapt_engaged": False}

        return self._run(program, data, seed, settings, progress, start)

    def _run(
        self,
        program: StanProgram,
        data: Mapping[str, Any],
        seed: int,
        settings: SamplerSettings,
        progress: Progress | None,
        start: Callable[[Any], dict[str, Any]],
    ) -> Draws:
        stanli = stanli_module()
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = stanli.Model(mir=compiled(program.text), data=as_json(data))
                with _no_interrupt_lost(), _reporting(progress, settings) as refresh:
                    fit = model.sample(
                        refresh=refresh,
                        seed=seed,
                        **{**_options(settings), **start(model)},
                    )
            except SamplingError:  # the compiler's words, which hold no data
                raise
            except (RuntimeError, ValueError) as error:
                raise SamplingError(
                    f"the embedded engine failed on {program.name}: {without_values(str(error))}"
                ) from None
        provenance = Provenance(
            engine=self.name,
            engine_version=stanli.__version__,
            program=program.name,
            program_sha256=program.sha256,
            seed=seed,
            settings=settings,
            seconds=time.perf_counter() - started,
            notes=tuple(str(warning.message) for warning in caught),
        )
        return _draws(fit, parameter_names(program), provenance)


def stanli_module() -> Any:
    try:
        import stanli
    except (ImportError, OSError) as error:
        raise EngineUnavailable(
            f"stanli cannot be imported ({error}): pip install stanli"
        ) from None
    return stanli


@lru_cache(maxsize=32)
def compiled(text: str) -> str:
    """Stan source to stanli's intermediate form; holds no data, so that it may be kept."""
    try:
        return str(stanli_module().stan_to_mir(text))
    except (RuntimeError, ValueError) as error:
        raise SamplingError(f"the Stan program does not compile:\n{error}") from None


def as_json(data: Mapping[str, Any]) -> str:
    return json.dumps({name: np.asarray(value).tolist() for name, value in data.items()})


def _options(settings: SamplerSettings) -> dict[str, Any]:
    return {
        "chains": settings.chains,
        "warmup": settings.warmup,
        "samples": settings.draws,
        "delta": settings.acceptance,
        "metric": "unit_e" if settings.metric == "unit" else "diag_e",
        "max_depth": settings.max_treedepth,
        "parallel_chains": settings.parallel_chains,
    }


def _start(model: Any, warm_start: WarmStart | None, settings: SamplerSettings) -> dict[str, Any]:
    if warm_start is None:
        return {}
    chains = [warm_start.inits[c % len(warm_start.inits)] for c in range(settings.chains)]
    inits = [
        model.unconstrain(
            {
                name: np.asarray(v).T.ravel().tolist() if np.ndim(v) else float(v)
                for name, v in values.items()
            }
        )
        for values in chains
    ]
    start: dict[str, Any] = {
        "inits": np.array(inits),
        "step_size": float(np.mean(warm_start.step_size)),
    }
    if warm_start.inv_metric is not None and settings.metric != "unit":
        start["inv_metric"] = np.mean(warm_start.inv_metric, axis=0)
    return start


@contextlib.contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C came while the sampler was returning.

    stanli takes SIGINT over and asks between iterations; one that comes after the last question
    would be forgotten. The interpreter writes every signal to the wake-up descriptor as it comes.
    """
    deaf = (signal.SIG_IGN, signal.SIG_DFL, None)
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGINT) in deaf
    ):
        yield
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
        with contextlib.suppress(BlockingIOError):
            if signal.SIGINT in reader.recv(4096):
                raise KeyboardInterrupt


@contextlib.contextmanager
def _reporting(progress: Progress | None, settings: SamplerSettings) -> Iterator[int]:
    """Pass stanli's printed progress on to `progress`; yields its refresh interval."""
    if progress is None:
        yield 0
        return
    with contextlib.redirect_stdout(_ProgressLines(progress, settings)):
        yield max(1, (settings.warmup + settings.draws) // 20)


class _ProgressLines(io.TextIOBase):
    """Reads 'Chain [c] Iteration: i / N' lines as they are printed."""

    _LINE = re.compile(r"Chain \[(\d+)\] Iteration:\s*(\d+) / (\d+)")

    def __init__(self, progress: Progress, settings: SamplerSettings) -> None:
        self._progress = progress
        self._done: dict[int, int] = {}
        self._total = settings.chains * (settings.warmup + settings.draws)

    def write(self, text: str) -> int:
        for chain, iteration, _ in self._LINE.findall(text):
            self._done[int(chain)] = int(iteration)
            self._progress(sum(self._done.values()), self._total)
        return len(text)


def _draws(fit: Any, parameters: tuple[str, ...], provenance: Provenance) -> Draws:
    stanli = stanli_module()
    stats = {
        field: fit.sampler_stats[:, :, stanli.SAMPLER_COLUMNS.index(column)]
        for column, field in _COLUMNS.items()
    }
    return Draws(
        variables={name: np.asarray(fit.draws(name)) for name in fit.variables},
        divergent=stats["divergent"] > 0,
        treedepth=stats["treedepth"].astype(np.int64),
        energy=stats["energy"],
        step_size=np.asarray(fit.step_size),
        inv_metric=(
            None
            if provenance.settings.metric == "unit"
            else tuple(np.asarray(metric) for metric in fit.inv_metric)
        ),
        parameters=parameters,
        provenance=provenance,
    )
