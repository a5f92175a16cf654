"""Several sensitive columns, one after the other: each given those before it and the predictors.

The joint density of the sensitive columns is p(y_1 | x) p(y_2 | y_1, x) ...: each factor has a
model and a mechanism of its own, fitted to the confidential data; a perturbed histogram is one
without predictors. A synthetic set draws y_1 first and reads the synthetic y_1 where the model of
y_2 has it as a predictor. Fits use random numbers of their own, and their charges are composed.

Strict steps that read columns synthesized before them are clipped scores, all of them: their
predictors are coded by the synthetic values. Other models are fitted to the true values of their
predictors, whose levels, ranks and types no strict charge covers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import pandas as pd

from pyhybrid.core.checks import check_flag
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitOptions, FitSession
from pyhybrid.mechanisms.clipped_scores import ClippedScores, release_in_sequence
from pyhybrid.mechanisms.marginals.noisy_marginals import PUBLIC, BoundTables, NoisyMarginals
from pyhybrid.mechanisms.mechanism import Made, Mechanism, without_weights
from pyhybrid.mechanisms.perturbed_histogram import BoundHistogram, PerturbedHistogram
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.models.columns.form import Form, as_levels
from pyhybrid.models.formula.values import with_columns
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.record import Origin, ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.running.tasks import named_progress

Step = PseudoPosteriorMechanism | PerturbedHistogram | NoisyMarginals | ClippedScores
Counted = BoundHistogram | BoundTables
Joined = BoundModel | Counted
"""A step joined to the table."""


@dataclass(frozen=True)
class SequentialSynthesis(Mechanism):
    """Synthesize several columns in sequence.

    Parameters
    ----------
    mechanisms : sequence of PseudoPosteriorMechanism, PerturbedHistogram or NoisyMarginals
        One per column, in the order of synthesis, all of one relation; noisy marginals may make
        several columns, beside predictors that are published as they are. A model may read columns
        synthesized before its own; it must not read one that is synthesized later, whose true
        values would shape what is released. A strict model must not read either of them. Or
        `ClippedScores` alone, which may.
    allow_unlike : bool, default False
        Compose strict charges with local ones; the whole is then stated as asymptotic local.

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
    _: KW_ONLY
    allow_unlike: bool = False

    def __post_init__(self) -> None:
        check_flag(self.allow_unlike, "allow_unlike")
        if not isinstance(self.mechanisms, (list, tuple)) or not self.mechanisms:
            raise InvalidInput("mechanisms must be a list of at least one mechanism")
        for place, mechanism in enumerate(self.mechanisms, start=1):
            if not isinstance(mechanism, Step):
                raise InvalidInput(
                    f"step {place} must be a mechanism over a model, a perturbed histogram or "
                    f"noisy marginals: found {type(mechanism).__name__}"
                )
        relations = sorted({mechanism.relation for mechanism in self.mechanisms})
        if len(relations) > 1:
            raise InvalidInput(f"all steps must have one relation: found {' and '.join(relations)}")
        units = list(dict.fromkeys(mechanism.unit for mechanism in self.mechanisms))
        if len(units) > 1:
            raise InvalidInput(
                f"all steps must have one unit of privacy: found {' and '.join(map(repr, units))}"
            )
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))

    @property
    def relation(self) -> str:
        """Neighboring databases of the charge: the same in all steps."""
        return self.mechanisms[0].relation

    @property
    def delta_of_charge(self) -> float | None:
        """Delta that the first local step is counted at; None if none is counted at one."""
        found = (step.delta_of_charge for step in self.mechanisms)
        return next((delta for delta in found if delta is not None), None)

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces, in the order of synthesis."""
        return tuple(column for each in self.mechanisms for column in each.synthesizes)

    @property
    def undecided(self) -> dict[str, str]:
        """Reason by column why what a model reads needs the owner's decision to be published."""
        return {
            name: reason
            for each in self.mechanisms
            for name, reason in each.undecided.items()
            if name not in self.synthesizes
        }

    def describe(self) -> dict[str, Any]:
        """Public settings of all steps."""
        steps = [step.describe() for step in self.mechanisms]
        return {"mechanism": self.name, "steps": steps}

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Forms of all steps."""
        return {name: own for each in self.mechanisms for name, own in each.forms(df).items()}

    def _release(
        self, df: pd.DataFrame, m: int, n_draws_released: int, options: FitOptions, refits: int
    ) -> Release:
        if any(isinstance(step, ClippedScores) for step in self.mechanisms):
            return self._by_clipped_scores(df, m, options)
        read = _with_levels_read(df, self.forms(df))
        bounds = [_bound(each, read, place) for place, each in enumerate(self.mechanisms, start=1)]
        if not self.allow_unlike:
            _check_kinds(self.mechanisms, bounds)
        _check_order(self.mechanisms, bounds)
        random = streams(options.seed)
        steps = _opened(self.mechanisms, bounds, options, random)
        for step in steps:  # before any noise, or draw
            step.check(refits)
        parts: list[ReleaseRecord] = []
        tables = [df] * m
        for place, step in enumerate(steps, start=1):
            later = [column for each in bounds[place:] for column in each.synthesized]
            known = [_known(table, df, step.bound.synthesized, later) for table in tables]
            made = step.make(m, n_draws_released, known, refits)
            parts.append(made.record)
            tables = made.tables
        origin = Origin(data=df, steps=[step.origin(df) for step in steps])
        synthesized = [column for bound in bounds for column in bound.synthesized]
        whole = [joined(df, table[synthesized]) for table in tables]
        warned = options.on_not_converged == "warn"
        return self._joined(parts, whole, origin, random, warned=warned)

    def _by_clipped_scores(self, df: pd.DataFrame, m: int, options: FitOptions) -> Release:
        """All steps by clipped scores, which have one strict charge."""
        steps = [step for step in self.mechanisms if isinstance(step, ClippedScores)]
        if len(steps) < len(self.mechanisms):
            raise InvalidInput("steps by clipped scores go with steps by clipped scores alone")
        if options != FitOptions(progress=options.progress):
            raise InvalidInput(
                "clipped scores fit no model by chains, and their noise cannot be seeded: give no "
                "seed, engine, settings, rule or on_not_converged"
            )
        twice = [name for name in self.synthesizes if self.synthesizes.count(name) > 1]
        if twice:
            raise InvalidInput(f"each column must be synthesized once: {twice[0]!r} is not")
        made = release_in_sequence(steps, df, m, options.progress)
        whole = [joined(df, table[list(self.synthesizes)]) for table in made[-1].tables]
        parts = [step.record for step in made]
        origin = Origin(data=df, steps=[step.origin(df) for step in steps])
        return self._joined(parts, whole, origin, streams(), warned=False)

    def _joined(
        self,
        parts: Sequence[ReleaseRecord],
        tables: list[pd.DataFrame],
        origin: Origin,
        random: Streams,
        *,
        warned: bool,
    ) -> Release:
        """The release of all columns; its parts say what each step did, and have no tables."""
        last = next((part for part in parts if part.requested is not None), parts[-1])
        synthesized = tuple(column for part in parts for column in part.synthesized)
        read = dict.fromkeys(column for part in parts for column in part.predictors)
        if warned and not self.allow_unlike:
            _say_what_is_not_strict(parts)
        charge = compose_charges(
            [part.charge for part in parts],
            mechanism=self.name,
            allow_unlike=warned or self.allow_unlike,
        )
        record = ReleaseRecord(
            charge=charge,
            diagnostics=None,
            settings=self.describe(),
            synthesized=synthesized,
            predictors=tuple(column for column in read if column not in synthesized),
            provenance=last.provenance,
            requested=last.requested,
            seeded=random.seeded,
            confidential=without_weights(origin.data, charge, random),
            exposed={
                name: reason
                for part in parts
                for name, reason in part.exposed.items()
                if name not in synthesized
            },
        )
        return Release.of(record, tables, parts=parts, origin=origin)


def _with_levels_read(df: Any, forms: Mapping[str, Form]) -> Any:
    """`df` with the entries of columns as the levels or numbers that they are, each by itself; what
    is no table, or lacks a column, is for a step to refuse."""
    if not isinstance(df, pd.DataFrame) or not df.columns.is_unique:
        return df
    return with_columns(df, {name: _as_read(df[name], form) for name, form in forms.items()})


def _as_read(column: pd.Series, form: Form) -> pd.Series:
    """Entries without any value have no type: levels of such a column are those declared, too."""
    typed = isinstance(column.dtype, pd.CategoricalDtype) or bool(column.notna().any())
    return as_levels(column, form.levels) if form.levels and typed else form.read(column)


def _bound(mechanism: Step, df: pd.DataFrame, place: int) -> Joined:
    assert not isinstance(mechanism, ClippedScores)
    try:
        return mechanism.bind(df)
    except InvalidInput as error:
        raise InvalidInput(f"step {place}: {error}") from None


def _known(
    table: pd.DataFrame, df: pd.DataFrame, own: Sequence[str], later: Sequence[str]
) -> pd.DataFrame:
    """`table` for a step: its own column, for its model to replace, and none that is synthesized
    later, whose true values no program of a user's must see."""
    known: pd.DataFrame = table.drop(columns=list(later), errors="ignore")
    for column in own:
        known[column] = df[column]
    return known


def _check_order(mechanisms: Sequence[Step], bounds: Sequence[Joined]) -> None:
    """What a step reads keeps its true values in the release, or was synthesized before it and is
    read by a local model."""
    step_of: dict[str, int] = {}
    for place, bound in enumerate(bounds, start=1):
        for column in bound.synthesized:
            if column in step_of:
                raise InvalidInput(
                    f"each column must be synthesized once: {column!r} is in steps "
                    f"{step_of[column]} and {place}"
                )
            step_of[column] = place
    for place, (mechanism, bound) in enumerate(zip(mechanisms, bounds, strict=True), start=1):
        strict = _is_strict(mechanism, bound) and not isinstance(bound, Counted)
        for column in bound.predictors:
            if step_of.get(column, 0) > place:
                raise InvalidInput(
                    f"step {place} must not read {column!r}, which is synthesized later (step "
                    f"{step_of[column]}): its true values would shape what is released; change the "
                    "order of the steps"
                )
            if strict and column in step_of and column not in bound.synthesized:
                raise InvalidInput(
                    f"step {place} must not read {column!r}, which is synthesized in step "
                    f"{step_of[column]}: it is strict and would be coded by true values; take "
                    "ClippedScores for all steps, which are coded by synthetic ones"
                )
        for what, columns in mechanism.reads().items():
            for column in columns:
                owner = step_of.get(column)
                if owner is not None and (owner >= place or what in ("unit", PUBLIC)):
                    raise InvalidInput(
                        f"step {place} must not take {column!r} as {what}, which is synthesized in "
                        f"step {owner}: its true values would shape what is released"
                    )


def _say_what_is_not_strict(parts: Sequence[ReleaseRecord]) -> None:
    """Kinds were alike before the fits: others are then of chains that were taken as they ended."""
    lost = [", ".join(part.synthesized) for part in parts if part.charge.kind != STRICT]
    if 0 < len(lost) < len(parts):
        warnings.warn(
            f"the whole is charged as asymptotic local, not strict: chains of {'; '.join(lost)} "
            "did not converge, or others ended in another mode; give these columns more draws or a "
            "larger share of epsilon",
            stacklevel=4,
        )


def _check_kinds(mechanisms: Sequence[Step], bounds: Sequence[Joined]) -> None:
    """Before anything is fitted: strict charges would not be composed with local ones."""
    steps = zip(mechanisms, bounds, strict=True)
    strict = [_is_strict(mechanism, bound) for mechanism, bound in steps]
    if any(strict) and not all(strict):
        raise InvalidInput(
            f"charges must be of one kind: step {strict.index(True) + 1} is strict, step "
            f"{strict.index(False) + 1} is not; allow_unlike=True states the whole as asymptotic "
            "local, the weaker of the two"
        )


def _is_strict(mechanism: Step, bound: Joined) -> bool:
    """True if a release of `bound` would be strict, as far as can be told before a fit."""
    return isinstance(bound, Counted) or (
        isinstance(mechanism, PseudoPosteriorMechanism) and mechanism.is_strict(bound)
    )


# --- Steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _OpenStep:
    """A step with its random numbers and, unless it counts, the session of its fits."""

    mechanism: Step
    bound: Joined
    random: Streams
    session: FitSession | None

    def origin(self, df: pd.DataFrame) -> Origin:
        """What the owner's page of the step is made of; `df` are the confidential records."""
        if self.session is None or not isinstance(self.mechanism, PseudoPosteriorMechanism):
            return Origin(data=df)
        return Origin(data=df, model=self.mechanism.model, session=self.session.for_report())

    def check(self, refits: int) -> None:
        """Refuse predictors whose loss no refit tells."""
        if self.session is not None and isinstance(self.mechanism, PseudoPosteriorMechanism):
            self.mechanism.check_predictors(self.session.by_unit(self.mechanism.unit), refits)

    def make(
        self, m: int, n_draws_released: int, given: Sequence[pd.DataFrame], refits: int
    ) -> Made:
        """What the step makes of m tables in which the columns before it were synthesized."""
        released: Any = {
            "n_synthetic": m, "n_draws_released": n_draws_released, "given": given
        }  # fmt: skip
        if isinstance(self.mechanism, PseudoPosteriorMechanism):
            assert self.session is not None
            return self.mechanism.make_from(self.session, refits=refits, **released)
        assert isinstance(self.mechanism, PerturbedHistogram | NoisyMarginals)
        return self.mechanism.make_from(self.bound, self.random, **released)  # type: ignore[arg-type]


def _opened(
    mechanisms: Sequence[Step], bounds: Sequence[Joined], options: FitOptions, random: Streams
) -> list[_OpenStep]:
    """Each step with random numbers of its own: composition needs that."""
    steps = []
    for place, (mechanism, bound) in enumerate(zip(mechanisms, bounds, strict=True), start=1):
        numbers, session = random.child(f"step {place}"), None
        if not isinstance(bound, Counted):
            progress = named_progress(options.progress, ", ".join(bound.synthesized))
            session = replace(options, progress=progress).session(bound, numbers)
        steps.append(_OpenStep(mechanism=mechanism, bound=bound, random=numbers, session=session))
    return steps
