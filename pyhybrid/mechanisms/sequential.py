"""Several sensitive columns, one after the other: each given those before it and the predictors.

The joint density of the sensitive columns is p(y_1 | x) p(y_2 | y_1, x) ...: each factor has a
model and a mechanism of its own, fitted to the confidential data. A synthetic set draws y_1 first
and reads the synthetic y_1 where the model of y_2 has it as a predictor. Fits use random numbers of
their own, and their charges are composed.

Strict steps are clipped scores, all of them: their predictors are coded by synthetic values. Other
models are fitted to the true values of their predictors, whose levels, ranks and types no strict
charge covers, and are local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitOptions, FitSession
from pyhybrid.mechanisms.clipped_scores import ClippedScores, release_in_sequence
from pyhybrid.mechanisms.mechanism import Made, Mechanism, refuse_options_of_chains
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.columns.form import Form, read_in_forms
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.releases.record import Confidential, Origin, ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.running.tasks import named_progress

Step = PseudoPosteriorMechanism | ClippedScores
Opened = Sequence[tuple[PseudoPosteriorMechanism, FitSession]]


@dataclass(frozen=True)
class SequentialSynthesis(Mechanism):
    """Synthesize several columns in sequence.

    Parameters
    ----------
    mechanisms : sequence of PseudoPosteriorMechanism, or of ClippedScores
        One per column, in the order of synthesis, all of one relation. A model may read columns
        synthesized before its own; it must not read one that is synthesized later, whose true
        values would shape what is released.

    Examples
    --------
    >>> steps = [
    ...     ph.LipschitzWeighted(ph.Poisson("doctor ~ age")),
    ...     ph.LipschitzWeighted(ph.NegativeBinomial("visits ~ doctor + age")),
    ... ]
    >>> release = ph.SequentialSynthesis(steps).release(df, n_synthetic=3)
    >>> [part.charge.epsilon for part in release.parts], release.charge.epsilon
    """

    mechanisms: Sequence[Step]

    def __post_init__(self) -> None:
        if not isinstance(self.mechanisms, (list, tuple)) or not self.mechanisms:
            raise InvalidInput("mechanisms must be a list of at least one mechanism")
        for place, mechanism in enumerate(self.mechanisms, start=1):
            if not isinstance(mechanism, Step):
                raise InvalidInput(
                    f"step {place} must be a mechanism over a model, of several formulas: found "
                    f"{type(mechanism).__name__}"
                )
        if len({isinstance(mechanism, ClippedScores) for mechanism in self.mechanisms}) > 1:
            raise InvalidInput("steps by clipped scores go with steps by clipped scores alone")
        for what, values in (
            ("relation", {step.relation for step in self.mechanisms}),
            ("unit of privacy", {repr(step.unit) for step in self.mechanisms}),
        ):
            if len(values) > 1:
                raise InvalidInput(
                    f"all steps must have one {what}: found {' and '.join(sorted(values))}"
                )
        for name in self.synthesizes:
            if self.synthesizes.count(name) > 1:
                raise InvalidInput(f"each column must be synthesized once: {name!r} is not")
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))

    @property
    def relation(self) -> str:
        return self.mechanisms[0].relation

    @property
    def delta_of_charge(self) -> float | None:
        deltas = (step.delta_of_charge for step in self.mechanisms)
        return next((delta for delta in deltas if delta is not None), None)

    @property
    def synthesizes(self) -> tuple[str, ...]:
        return tuple(column for step in self.mechanisms for column in step.synthesizes)

    @property
    def undecided(self) -> dict[str, str]:
        reasons = {name: why for step in self.mechanisms for name, why in step.undecided.items()}
        return {name: why for name, why in reasons.items() if name not in self.synthesizes}

    def describe(self) -> dict[str, Any]:
        steps = [step.describe() for step in self.mechanisms]
        return {"mechanism": self.name, "steps": steps}

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        return {name: form for step in self.mechanisms for name, form in step.forms(df).items()}

    def _release(
        self, df: pd.DataFrame, m: int, n_draws_released: int, options: FitOptions, refits: int
    ) -> Release:
        scores = [step for step in self.mechanisms if isinstance(step, ClippedScores)]
        if scores:
            refuse_options_of_chains("clipped scores", options)
            made = release_in_sequence(scores, df, m, options.progress)
            origin = Origin(data=df, steps=[step.origin(df) for step in scores])
            return self._joined(df, made, origin, streams())
        random = streams(options.seed)
        steps = self._opened(df, options, random)
        _check_order(steps)
        for mechanism, session in steps:  # before any fit
            mechanism.refuse(mechanism.opened(session), refits)
        made, tables = [], [df] * m
        for place, (mechanism, session) in enumerate(steps, start=1):
            later = self.synthesizes[place:]
            known = [_known(table, df, session.bound.synthesized, later) for table in tables]
            made.append(mechanism.make(session, m, n_draws_released, refits, known))
            tables = made[-1].tables
        origin = Origin(data=df, steps=[Origin(data=session.bound.table) for _, session in steps])
        return self._joined(df, made, origin, random)

    def _opened(self, df: pd.DataFrame, options: FitOptions, random: Streams) -> Opened:
        """Each step with random numbers of its own: composition needs that."""
        steps = []
        if isinstance(df, pd.DataFrame) and df.columns.is_unique:
            df = read_in_forms(df, self.forms(df))  # by all steps alike
        for place, step in enumerate(self.mechanisms, start=1):
            assert isinstance(step, PseudoPosteriorMechanism)
            try:
                bound = step.bind(df)
            except InvalidInput as error:
                raise InvalidInput(f"step {place}: {error}") from None
            progress = named_progress(options.progress, ", ".join(bound.synthesized))
            numbers = random.child(f"step {place}")
            steps.append((step, replace(options, progress=progress).session(bound, numbers)))
        return steps

    def _joined(
        self, df: pd.DataFrame, made: Sequence[Made], origin: Origin, random: Streams
    ) -> Release:
        """The release of all columns; its parts say what each step did, and have no tables."""
        parts = [step.record for step in made]
        last = next((part for part in parts if part.requested is not None), parts[-1])
        read = dict.fromkeys(column for part in parts for column in part.predictors)
        exposed = {name: reason for part in parts for name, reason in part.exposed.items()}
        charge = compose_charges([part.charge for part in parts], mechanism=self.name)
        record = ReleaseRecord(
            charge=charge,
            diagnostics=None,
            settings=self.describe(),
            synthesized=self.synthesizes,
            predictors=tuple(name for name in read if name not in self.synthesizes),
            provenance=last.provenance,
            requested=last.requested,
            seeded=random.seeded,
            confidential=Confidential(labels=df.index, entropy=random.entropy),
            exposed={name: why for name, why in exposed.items() if name not in self.synthesizes},
        )
        tables = [joined(df, table[list(self.synthesizes)]) for table in made[-1].tables]
        return Release.of(record, tables, parts=parts, origin=origin)


def _known(
    table: pd.DataFrame, df: pd.DataFrame, synthesized: Sequence[str], later: Sequence[str]
) -> pd.DataFrame:
    """`table` for a step: its own column, for its model to replace, and none that is synthesized
    later, whose true values no program of a user's must see."""
    known: pd.DataFrame = table.drop(columns=list(later), errors="ignore")
    for column in synthesized:
        known[column] = df[column]
    return known


def _check_order(steps: Opened) -> None:
    """All steps are local; what one reads keeps its true values, or was synthesized before it."""
    step_of = {
        name: place
        for place, (_, session) in enumerate(steps, start=1)
        for name in session.bound.synthesized
    }
    for place, (mechanism, session) in enumerate(steps, start=1):
        if mechanism.why_local(session.bound) is None:
            raise InvalidInput(
                f"step {place} must not be strict: its model would be coded by true values of "
                "others, or its charge added to local ones; take ClippedScores for all steps"
            )
        used = [("", name) for name in session.bound.predictors]
        used += [(what, name) for what, names in mechanism.reads().items() for name in names]
        for what, name in used:
            where = step_of.get(name)
            own = where == place and not what
            if where is not None and not own and (where >= place or what == "unit"):
                verb = f"take {name!r} as {what}" if what else f"read {name!r}"
                raise InvalidInput(
                    f"step {place} must not {verb}, which is synthesized in step {where}: its true "
                    "values would shape what is released"
                )
