"""Chains of an association model: run, judged by the rule of every other fit, draws kept."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import NotConverged
from pyhybrid.core.randomness import Streams
from pyhybrid.engines.convergence import ConvergenceRule, Diagnostics, diagnose_quantities
from pyhybrid.masking.masks import Evidence
from pyhybrid.running.tasks import Progress

_TICK = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """One posterior draw: `parameters` laid out by the model, completed `values` (n,) by name,
    `latent` (n, q) normals of a copula. Confidential."""

    parameters: tuple[FloatArray, ...]
    values: Mapping[str, npt.NDArray[Any]]
    latent: FloatArray | None = None


class AssociationModel(Protocol):
    """p(X | Z, theta) with its Gibbs sampler, which is read-only: chains share it. A chain starts
    dispersed, sweeps update parameters given the true keys and, with `impute`, what is missing, in
    place; its quantities must converge. `synthesize` draws the keys from p(X | Z, theta) p(W | X),
    by name, from a draw of the chain; no true key is looked at."""

    def start(self, rng: np.random.Generator) -> Any: ...
    def sweep(self, state: Any, rng: np.random.Generator, *, adapt: bool, impute: bool) -> None: ...
    def quantities(self, state: Any) -> dict[str, FloatArray]: ...
    def snapshot(self, state: Any) -> Snapshot: ...
    def resume(self, snapshot: Snapshot) -> Any: ...
    def synthesize(
        self,
        snapshot: Snapshot,
        evidence: Mapping[str, Evidence],
        rng: np.random.Generator,
        *,
        sweeps: int,
    ) -> dict[str, npt.NDArray[Any]]: ...


@dataclass(frozen=True, kw_only=True)
class GibbsSettings:
    """How long to sample: chains, sweeps of each to forget and to keep, from 2, 20 and 50; updates
    of all keys for one synthetic set (`sweeps`), which start from keys drawn given W; sweeps
    between two syntheses of one imputation; the rule that chains are judged by."""

    chains: int = 4
    warmup: int = 100
    draws: int = 500
    sweeps: int = 30
    between: int = 10
    rule: ConvergenceRule = ConvergenceRule()  # noqa: RUF009

    def __post_init__(self) -> None:
        least = {"chains": 2, "warmup": 20, "draws": 50, "sweeps": 1, "between": 1}
        for name, at_least in least.items():
            check_count(getattr(self, name), name, at_least=at_least)


@dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """Draws of an association model: `quantities` (chains, draws, d) by column, or of the
    "correlation" of a copula, and `snapshots` picked at random without replacement. Confidential.
    """

    quantities: dict[str, FloatArray]
    snapshots: tuple[Snapshot, ...]
    diagnostics: Diagnostics


def run_chains(
    model: AssociationModel,
    *,
    n_snapshots: int,
    settings: GibbsSettings,
    streams: Streams,
    on_not_converged: str,
    progress: Progress | None = None,
) -> Chains:
    """Run until converged, once more and three times as long if need be, by `on_not_converged`."""
    longer = replace(settings, warmup=3 * settings.warmup, draws=3 * settings.draws)
    for attempt, lengths in enumerate((settings, longer), start=1):
        chains = _attempt(model, n_snapshots, lengths, streams, attempt, progress)
        if chains.diagnostics.converged:
            return chains
    message = (
        f"the association model has not converged: {'; '.join(chains.diagnostics.problems)}; "
        "give more draws, fewer predictors, or another association"
    )
    if on_not_converged == "raise":
        raise NotConverged(message)
    warnings.warn(message, stacklevel=2)
    return chains


def _attempt(
    model: AssociationModel, n_snapshots: int, settings: GibbsSettings, streams: Streams,
    attempt: int, progress: Progress | None,
) -> Chains:  # fmt: skip
    n_draws = settings.chains * settings.draws
    picker = streams.generator(f"masking: picked draws, attempt {attempt}")
    picked = picker.choice(n_draws, min(n_snapshots, n_draws), replace=False)
    picks = [divmod(int(position), settings.draws) for position in picked]
    snapshots: dict[tuple[int, int], Snapshot] = {}
    done = [0] * settings.chains

    def run(chain: int) -> dict[str, list[FloatArray]]:
        """One chain: its quantities; what was picked of it goes into `snapshots`."""
        rng = streams.generator(f"masking: chain {chain}, attempt {attempt}")
        state = model.start(rng)
        kept: dict[str, list[FloatArray]] = {}
        for sweep in range(settings.warmup + settings.draws):
            model.sweep(state, rng, adapt=sweep < settings.warmup, impute=True)
            done[chain] = sweep + 1
            if progress is not None and sweep % _TICK == _TICK - 1:
                total = settings.chains * (settings.warmup + settings.draws)
                progress("association model", sum(done), total)
            draw = sweep - settings.warmup
            if draw < 0:
                continue
            for name, values in model.quantities(state).items():
                kept.setdefault(name, []).append(values)
            if (chain, draw) in picks:
                snapshots[chain, draw] = model.snapshot(state)
        return kept

    with ThreadPoolExecutor(min(settings.chains, os.cpu_count() or 1)) as pool:
        kept = list(pool.map(run, range(settings.chains)))
    quantities = {name: np.array([chain[name] for chain in kept]) for name in kept[0]}
    judged = diagnose_quantities(
        quantities, settings.rule, n_chains=settings.chains, n_draws=n_draws
    )
    return Chains(
        quantities=quantities,
        snapshots=tuple(snapshots[pick] for pick in picks),
        diagnostics=replace(judged, attempts=attempt),
    )
