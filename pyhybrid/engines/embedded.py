"""The embedded engine: `stanli`, Stan's language, math library and NUTS in one wheel.

Needs no compiler and no build step, keeps everything in memory and writes no files. It also tells a
program's log density at given points, and draws its generated quantities anew there.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import EngineUnavailable, InvalidInput, SamplingError
from pyhybrid.engines.base import (
    Draws,
    EngineStatus,
    OurEngine,
    Progress,
    ProgressLines,
    Run,
    SamplerSettings,
    StanProgram,
    WarmStart,
    without_values,
)
from pyhybrid.engines.programs import parameter_names

_STILL = 1e-300  # a step of this size does not move


class EmbeddedEngine(OurEngine):
    """Samples in this process through `stanli`."""

    name = "embedded"

    def status(self) -> EngineStatus:
        """Available wherever the stanli wheel can be imported."""
        try:
            return EngineStatus(name=self.name, version=_stanli().__version__)
        except EngineUnavailable as error:
            return EngineStatus(name=self.name, cause=str(error), remedy="pip install stanli")

    def run(self, run: Run, **changes: Any) -> Draws:
        """Draws of stanli, with `changes` of its options."""
        stanli, settings = _stanli(), run.settings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = stanli.Model(mir=compiled(run.program.text), data=as_json(run.data))
                with _no_interrupt_lost(), _reporting(run.progress, settings) as refresh:
                    options: dict[str, Any] = {
                        "chains": settings.chains,
                        "warmup": settings.warmup,
                        "samples": settings.draws,
                        "delta": settings.acceptance,
                        "metric": "unit_e" if settings.metric == "unit" else "diag_e",
                        "max_depth": settings.max_treedepth,
                        "parallel_chains": settings.parallel_chains,
                        **_start(model, run.warm_start, settings),
                        **changes,
                    }
                    fit = model.sample(refresh=refresh, seed=run.seed, **options)
            except SamplingError:  # the compiler's words, which hold no data
                raise
            except (RuntimeError, ValueError) as error:
                name, reason = run.program.name, without_values(str(error))
                raise SamplingError(f"the embedded engine failed on {name}: {reason}") from None
        columns, unit = np.moveaxis(fit.sampler_stats, 2, 0), settings.metric == "unit"
        sampler = dict(zip(stanli.SAMPLER_COLUMNS, columns, strict=True))
        return Draws(
            variables={name: np.asarray(fit.draws(name)) for name in fit.variables},
            divergent=sampler["divergent__"] > 0,
            treedepth=sampler["treedepth__"].astype(np.int64),
            energy=sampler["energy__"],
            step_size=np.asarray(fit.step_size),
            inv_metric=None if unit else tuple(np.asarray(metric) for metric in fit.inv_metric),
            parameters=parameter_names(run.program),
            provenance=run.provenance(str(warning.message) for warning in caught),
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
        """Go on as `ContinuingEngine` says; chains share the mean of step sizes and metrics."""
        settings = replace(draws.provenance.settings, draws=n_draws, max_draws=None)
        run = Run(self.status(), program, data, seed, settings, draws.warm_start(), progress)
        return self.run(run, warmup=0, adapt_engaged=False)


def _stanli() -> Any:
    try:
        import stanli
    except (ImportError, OSError) as error:
        said = f"stanli cannot be imported ({error}): pip install stanli"
        raise EngineUnavailable(said) from None
    return stanli


@lru_cache(maxsize=32)
def compiled(text: str) -> str:
    """Stan source to stanli's intermediate form; holds no data, so that it may be kept."""
    try:
        return str(_stanli().stan_to_mir(text))
    except (RuntimeError, ValueError) as error:
        raise SamplingError(f"the Stan program does not compile:\n{error}") from None


def as_json(data: Mapping[str, Any]) -> str:
    return json.dumps({name: np.asarray(value).tolist() for name, value in data.items()})


def _start(model: Any, warm_start: WarmStart | None, settings: SamplerSettings) -> dict[str, Any]:
    if warm_start is None:
        return {}
    inits = [
        model.unconstrain({name: _listed(value) for name, value in values.items()})
        for values in warm_start.inits_of(settings.chains)
    ]
    return {"inits": np.array(inits), **warm_start.tuning(settings)}


def _listed(value: Any) -> Any:
    """A parameter's value as stanli takes it: first index fastest."""
    return np.asarray(value).T.ravel().tolist() if np.ndim(value) else float(value)


@contextlib.contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C came while the sampler was returning: stanli takes SIGINT
    over and asks between iterations. The wake-up descriptor is written to as a signal comes."""
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
    with contextlib.redirect_stdout(cast(Any, ProgressLines(progress, settings))):
        yield max(1, (settings.warmup + settings.draws) // 20)


class ProgramAtPoints:
    """A program with its data: its log density and generated quantities at given points. Nothing is
    sampled: chains of one transition that does not move."""

    def __init__(self, program: StanProgram, data: Mapping[str, Any]) -> None:
        stanli = _stanli()
        self._program = program
        try:
            with warnings.catch_warnings():
                # That a part of the program runs slowly is said when it is sampled.
                warnings.filterwarnings("ignore", "stanli", RuntimeWarning)
                self._model = stanli.Model(mir=compiled(program.text), data=as_json(data))
        except SamplingError as error:  # the compiler's own message, line and caret included
            raise InvalidInput(f"program {program.name!r} must be valid Stan: {error}") from None
        except (RuntimeError, ValueError) as error:
            raise InvalidInput(
                f"program {program.name!r} does not take the data: {without_values(str(error))}"
            ) from None

    @property
    def n_unconstrained(self) -> int:
        """Number of unconstrained parameters."""
        return int(self._model.n_unconstrained)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log density at unconstrained points (S, p), Jacobian included, shape (S,); -inf or NaN
        where the program rejects, or has no gradient that a sampler could follow."""
        values = np.full(len(points), np.nan)
        for place, point in enumerate(points):
            with contextlib.suppress(RuntimeError, ValueError):
                value, gradient = self._model.log_prob_grad(point)
                if np.isfinite(gradient).all():
                    values[place] = value
        return values

    def unconstrained(self, draws: Draws, draw: int | None = None) -> FloatArray:
        """Parameters of the draws, or of one of them, as unconstrained points, shape (S, p)."""
        names = parameter_names(self._program)
        flat = {name: draws.flat(name) for name in names if name in draws.variables}
        points = [
            self._model.unconstrain(
                {name: _listed(flat[name][s]) if name in flat else [] for name in names}
            )  # parameters of size 0 have no draws
            for s in (range(draws.n_draws) if draw is None else (draw,))
        ]
        return np.array(points)

    def quantities(self, points: FloatArray, *, seed: int = 1) -> dict[str, FloatArray]:
        """All variables at unconstrained points (S, p), shape (S, *dims) each."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one transition per chain: nothing to diagnose
            try:
                fit = self._model.sample(
                    chains=points.shape[0], warmup=0, samples=1, inits=points, step_size=_STILL,
                    adapt_engaged=False, max_depth=1, metric="unit_e", refresh=0, seed=seed,
                )  # fmt: skip
            except (RuntimeError, ValueError) as error:
                reason = without_values(str(error))
                raise SamplingError(f"program {self._program.name!r} failed: {reason}") from None
            return {name: np.asarray(fit.draws(name))[:, 0] for name in fit.variables}
