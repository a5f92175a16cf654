"""Steps of a sequence: each fitted to the data alone, in any process, and then made in order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import pandas as pd

from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitProgress, FitSession, open_session
from pyhybrid.mechanisms import PerturbedHistogram, PseudoPosteriorMechanism
from pyhybrid.mechanisms.perturbed_histogram import BoundHistogram
from pyhybrid.mechanisms.synthesis_step import Made
from pyhybrid.models.base import BoundModel
from pyhybrid.models.formula.row_rules import RowRule
from pyhybrid.releases.record import Origin
from pyhybrid.running.tasks import first_failure, run_tasks

__all__ = ["Joined", "OpenStep", "Opened", "Step", "fit_apart", "is_strict"]

Step = PseudoPosteriorMechanism | PerturbedHistogram
Joined = BoundModel | BoundHistogram
"""A step joined to the table."""


def is_strict(mechanism: Step, bound: Joined) -> bool:
    """True if a release of `bound` would be strict, as far as can be told before a fit."""
    if isinstance(mechanism, PerturbedHistogram):
        return True
    assert not isinstance(bound, BoundHistogram)
    return mechanism.is_strict(bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenStep:
    """A step with its random numbers and, unless it is a histogram, the session of its fits."""

    mechanism: Step
    bound: Joined
    random: Streams
    session: FitSession | None
    fitted: Reweighted | None = None

    def origin(self, df: pd.DataFrame) -> Origin:
        """What the owner's page of the step is made of; `df` are the confidential records."""
        if self.session is None or isinstance(self.mechanism, PerturbedHistogram):
            return Origin(data=df)
        return Origin(data=df, model=self.mechanism.model, session=self.session.for_report())

    def make(
        self,
        *,
        n_synthetic: int,
        n_draws_released: int,
        given: Sequence[pd.DataFrame],
        rules: Sequence[RowRule] = (),
    ) -> Made:
        """What the step makes of tables in which the columns before it were synthesized."""
        if isinstance(self.mechanism, PerturbedHistogram):
            assert isinstance(self.bound, BoundHistogram)
            return self.mechanism.make_from(
                self.bound,
                self.random,
                n_synthetic=n_synthetic,
                n_draws_released=n_draws_released,
                given=given,
                rules=rules,
            )
        assert self.session is not None
        return self.mechanism.make_from(
            self.session,
            n_synthetic=n_synthetic,
            n_draws_released=n_draws_released,
            given=given,
            fitted=self.fitted,
            rules=rules,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened:
    """What the steps of a sequence share; see `pyhybrid.fitting.session.open_session`."""

    random: Streams
    engine: str | Engine
    settings: SamplerSettings | None
    rule: ConvergenceRule | None
    on_not_converged: str
    progress: FitProgress | None

    def steps(self, mechanisms: Sequence[Step], bounds: Sequence[Joined]) -> list[OpenStep]:
        """Each step with random numbers of its own: composition needs that."""
        shared: FitSession | None = None
        found = []
        for place, (mechanism, bound) in enumerate(zip(mechanisms, bounds, strict=True), start=1):
            own, session = self.random.child(f"step {place}"), None
            if not isinstance(bound, BoundHistogram):
                shared = self._session(bound) if shared is None else shared
                progress = self._named(bound)
                session = replace(
                    shared,
                    bound=bound,
                    streams=own,
                    progress=progress,
                    _kept={},
                    _bounds={},
                    _exact={},
                    _released={},
                )
            found.append(OpenStep(mechanism=mechanism, bound=bound, random=own, session=session))
        return found

    def _session(self, bound: BoundModel) -> FitSession:
        return replace(
            open_session(
                bound,
                engine=self.engine,
                settings=self.settings,
                rule=self.rule,
                on_not_converged=self.on_not_converged,
            ),
            streams=self.random,
        )

    def _named(self, bound: BoundModel) -> FitProgress | None:
        report = self.progress
        if report is None:
            return None
        return lambda label, done, total: report(
            f"{', '.join(bound.synthesized)}: {label}", done, total
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    place: int
    mechanism: PseudoPosteriorMechanism
    session: FitSession


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fitted:
    session: FitSession
    path: Reweighted


def _fitted(task: _Task) -> _Fitted:
    """Runs in any process."""
    return _Fitted(path=task.mechanism.fit(task.session), session=task.session)


def fit_apart(
    steps: Sequence[OpenStep],
    *,
    workers: int,
    executor: Executor | None,
    progress: FitProgress | None,
) -> list[OpenStep]:
    """The steps with their fits, made in other processes.

    Raises
    ------
    PyhybridError
        What the first step that failed raised, after all others have ended.
    """
    chains = max(1, (os.cpu_count() or 1) // workers) if executor is None else None
    tasks = []
    for place, step in enumerate(steps):
        if isinstance(step.mechanism, PseudoPosteriorMechanism) and step.session is not None:
            settings = replace(step.session.settings, parallel_chains=chains)
            sent = replace(step.session, progress=None, settings=settings)
            tasks.append(_Task(place=place, mechanism=step.mechanism, session=sent))
    made, failures = list(steps), []
    for done, ended in enumerate(
        run_tasks(_fitted, tasks, workers=workers, executor=executor), start=1
    ):
        step = steps[ended.task.place]
        if ended.result is None or step.session is None:
            failures.append(ended)
        else:
            step.session.take_fits(ended.result.session)
            made[ended.task.place] = replace(step, fitted=ended.result.path)
        if progress is not None:
            progress("columns", done, len(tasks))
    if failures:
        failures.sort(key=lambda each: each.task.place)
        raise first_failure(failures, "columns")
    return made
