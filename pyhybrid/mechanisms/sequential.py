"""Several sensitive columns, one after the other: each given those before it and the predictors.

The joint density of the sensitive columns is p(y_1 | x) p(y_2 | y_1, x) ...: each factor has a
model and a mechanism of its own, fitted to the confidential data, in any process; a perturbed
histogram is one without predictors. A synthetic set draws y_1 first and reads the synthetic y_1
where the model of y_2 has it as a predictor. Fits use random numbers of their own, and their
charges are composed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import pandas as pd

from pyhybrid.core.checks import check_count, check_draws_released, check_flag
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitOptions, FitProgress, FitSession, FitStore
from pyhybrid.mechanisms.clipped_scores import ClippedScores, release_in_sequence
from pyhybrid.mechanisms.marginals.noisy_marginals import PUBLIC, BoundTables, NoisyMarginals
from pyhybrid.mechanisms.mechanism import REFITS, Made, Mechanism, without_weights
from pyhybrid.mechanisms.perturbed_histogram import BoundHistogram, PerturbedHistogram
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.models.columns.form import Form, as_levels, levels_declared
from pyhybrid.models.families.regression import designs_of, single_models
from pyhybrid.models.formula.coding import levels_taken
from pyhybrid.models.formula.terms import Factor
from pyhybrid.models.formula.values import kind_of, with_columns
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.record import Origin, ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.running.tasks import finished_tasks, named_progress

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
        values would shape what is released. A strict step takes the levels of a text column
        synthesized before it as declared by the step of that column; a term that codes levels of
        anything else is refused, whatever it computes from such a column. Where it reads one, it
        needs a normal prior.
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

    @bar_in_notebooks
    def release(
        self,
        df: Any,
        *,
        n_synthetic: int = 1,
        n_draws_released: int | None = None,
        seed: int | None = None,
        engine: str | Engine = "auto",
        settings: SamplerSettings | None = None,
        rule: ConvergenceRule | None = None,
        on_not_converged: str = "raise",
        progress: FitProgress | None = None,
        refits: int = REFITS,
        workers: int = 1,
        executor: Executor | None = None,
    ) -> Release:
        """Fit, bound, charge and synthesize every column.

        Parameters are those of `Mechanism.release`, and

        workers : int, default 1
            Processes that columns are fitted in; what is released does not depend on it.
        executor : Executor, optional
            In place of `workers`, any of `concurrent.futures`. The confidential table
            travels to it.

        Returns
        -------
        Release
            With all columns replaced, the composed charge, and the record of each step in `parts`:
            its own charge and weights, without tables.

        Raises
        ------
        InvalidInput
            For what a step refuses (the step is named), a column synthesized twice, a model that
            reads a column synthesized later, or strict steps beside local ones.
        EngineUnavailable, SamplingError, NotConverged
            As a release of any step would.
        BudgetExceeded
            As a release of any step would, and where budgets cost more together than they add to.
        """
        m = check_count(n_synthetic, "n_synthetic")
        drawn = check_draws_released(n_draws_released, m)
        options = FitOptions(
            seed=seed,
            engine=engine,
            settings=settings,
            rule=rule,
            on_not_converged=on_not_converged,
            progress=progress,
        )
        return self._release(df, m, drawn, options, refits, workers, executor)

    def _release(
        self,
        df: pd.DataFrame,
        m: int,
        n_draws_released: int,
        options: FitOptions,
        refits: int,
        workers: int = 1,
        executor: Executor | None = None,
    ) -> Release:
        if any(isinstance(step, ClippedScores) for step in self.mechanisms):
            return self._by_clipped_scores(df, m, options)
        workers = check_count(workers, "workers")
        read = _with_levels_read(df, self.forms)
        bounds = [_bound(each, read, place) for place, each in enumerate(self.mechanisms, start=1)]
        _check_order(bounds)
        declared: dict[str, tuple[Any, ...]] = {}
        for place, mechanism in enumerate(self.mechanisms, start=1):
            _check_reads(mechanism, bounds[place - 1], bounds)
            bounds[place - 1] = _with_levels_declared(mechanism, bounds, place, declared, read)
            declared |= _declared_levels(mechanism, read)
        if not self.allow_unlike:
            _check_kinds(self.mechanisms, bounds)
        random = streams(options.seed)
        steps = _opened(self.mechanisms, bounds, options, random)
        if workers > 1 or executor is not None:
            steps = fit_apart(steps, workers=workers, executor=executor, progress=options.progress)
        parts: list[ReleaseRecord] = []
        tables = [df] * m
        for place, step in enumerate(steps, start=1):
            later = [column for each in bounds[place:] for column in each.synthesized]
            known = [_known(table, df, step.bound.synthesized, later) for table in tables]
            made = step.make(
                n_synthetic=m,
                n_draws_released=n_draws_released,
                given=known,
                refits=refits,
            )
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


def _with_levels_read(df: Any, forms: Callable[[pd.DataFrame], Mapping[str, Form]]) -> Any:
    """`df` with the entries of columns as the levels or numbers that they are, each by itself; what
    is no table, or lacks a column, is for a step to refuse."""
    if not isinstance(df, pd.DataFrame) or not df.columns.is_unique:
        return df
    own = {name: each for name, each in forms(df).items() if name in df}
    return with_columns(df, {name: _as_read(df[name], each) for name, each in own.items()})


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


def _check_order(bounds: Sequence[Joined]) -> None:
    step_of: dict[str, int] = {}
    for place, bound in enumerate(bounds, start=1):
        for column in bound.synthesized:
            if column in step_of:
                raise InvalidInput(
                    f"each column must be synthesized once: {column!r} is in steps "
                    f"{step_of[column]} and {place}"
                )
            step_of[column] = place
    for place, bound in enumerate(bounds, start=1):
        for column in bound.predictors:
            if step_of.get(column, 0) > place:
                raise InvalidInput(
                    f"step {place} must not read {column!r}, which is synthesized later (step "
                    f"{step_of[column]}): its true values would shape what is released; change the "
                    "order of the steps"
                )


def _check_reads(mechanism: Step, bound: Joined, bounds: Sequence[Joined]) -> None:
    """Columns that the mechanism itself reads must keep their true values in the release."""
    place = next(k for k, each in enumerate(bounds, start=1) if each is bound)
    for what, columns in mechanism.reads().items():
        for column in columns:
            owner = next((k for k, b in enumerate(bounds, 1) if column in b.synthesized), None)
            if owner is not None and (owner >= place or what in ("unit", PUBLIC)):
                raise InvalidInput(
                    f"step {place} must not take {column!r} as {what}, which is synthesized in "
                    f"step {owner}: its true values would shape what is released"
                )


def _with_levels_declared(
    mechanism: Step, bounds: Sequence[Joined], place: int, declared: Mapping[str, Any], df: Any
) -> Joined:
    """The step at `place`, from 1, with predictors' levels as their own steps declare them: read
    from the true values, no step's epsilon would cover them."""
    bound = bounds[place - 1]
    if isinstance(bound, Counted) or not _is_strict(mechanism, bound):
        return bound
    before = {column for each in bounds[: place - 1] for column in each.synthesized}
    read = [name for name in bound.predictors if name in before]
    own = {name: declared[name] for name in read if name in declared}
    coded = [each.coding for each in designs_of(bound)]
    factors = [factor for each in coded if each is not None for factor in each.formula.factors]
    taken = {name: factor.text for factor in factors for name in _taken(factor, df, own)}
    if not factors:  # a program of the user's reads columns as they are
        taken = {name: name for name in read if name not in own and _is_text(df[name])}
    calibration = getattr(mechanism, "calibration", None)
    held = {} if calibration is None else calibration.levels
    for name, levels in own.items():
        own[name] = held.get(name, levels)  # in their order
        if {*own[name]} != {*levels}:
            raise InvalidInput(
                f"levels of {name!r} must be those of the calibration of step {place}, whichever "
                "of them the records have: its own step declares others"
            )
    for name in read if calibration is None else ():
        if name in taken:
            raise InvalidInput(
                f"levels of {name!r} must be declared: step {place} is strict and reads them for "
                f"the term {taken[name]}, and {name} is synthesized before, by true values of all "
                "records; give that step levels= of texts, or write "
                f"factor({name}, levels=c(...)) or I({name} > 3)"
            )
    if not own:
        return bound
    table = df.copy(deep=False)
    for name, levels in own.items():
        table[name] = pd.Categorical(df[name].astype(object), categories=list(levels))
    return _bound(mechanism, table, place)


def _taken(factor: Factor, df: pd.DataFrame, declared: Collection[str]) -> set[str]:
    """Columns of the table that a factor takes levels from; added columns are logicals."""
    known = set(factor.columns.values()) <= set(df.columns)
    return levels_taken(factor, df, declared) if known else set()


def _is_text(column: pd.Series) -> bool:
    return kind_of(column, as_levels=True) == "levels"


def _declared_levels(mechanism: Step, df: pd.DataFrame) -> dict[str, tuple[Any, ...]]:
    """Levels that a step declares for its columns of texts or categories."""
    own: dict[str, Any]
    if isinstance(mechanism, NoisyMarginals):
        domain = mechanism.domain
        own = {n: domain[n].levels for n in mechanism.synthesizes if not domain[n].bins}
    elif isinstance(mechanism, PerturbedHistogram):
        own = {mechanism.column: mechanism.levels}
    else:
        own = dict.fromkeys(mechanism.synthesizes, levels_declared(mechanism.model))
    return {
        name: given
        for name, given in own.items()
        if given
        and (
            any(isinstance(level, str) for level in given)
            or isinstance(df[name].dtype, pd.CategoricalDtype)
        )
    }


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
            f"{strict.index(False) + 1} is not; allow_unlike=True states the "
            "whole as asymptotic local, the weaker of the two"
        )
    if all(strict):
        _check_priors(bounds)


def _check_priors(bounds: Sequence[Joined]) -> None:
    """A model that refuses columns that are combinations of others tells of true values before."""
    made: set[str] = set()
    for place, bound in enumerate(bounds, start=1):
        read = [name for name in bound.predictors if name in made]
        fitted = [] if isinstance(bound, Counted) else single_models(bound)
        models = [getattr(one, "model", None) for one in fitted]
        if read and not all(getattr(model, "any_rank", True) for model in models):
            raise InvalidInput(
                f"step {place} must have a normal prior: it is strict and reads {read[0]!r}, "
                "synthesized before, and under the published prior all records decide whether its "
                "columns are refused as combinations of each other; take a model with "
                "prior='normal'"
            )
        made.update(bound.synthesized)


def _is_strict(mechanism: Step, bound: Joined) -> bool:
    """True if a release of `bound` would be strict, as far as can be told before a fit."""
    return isinstance(bound, Counted) or (
        isinstance(mechanism, PseudoPosteriorMechanism) and mechanism.is_strict(bound)
    )


# --- Steps: each fitted to the data alone, in any process, and then made in order -----------------


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenStep:
    """A step with its random numbers and, unless it counts, the session of its fits."""

    place: int
    mechanism: Step
    bound: Joined
    random: Streams
    session: FitSession | None
    fitted: Reweighted | None = None

    def origin(self, df: pd.DataFrame) -> Origin:
        """What the owner's page of the step is made of; `df` are the confidential records."""
        if self.session is None or not isinstance(self.mechanism, PseudoPosteriorMechanism):
            return Origin(data=df)
        return Origin(data=df, model=self.mechanism.model, session=self.session.for_report())

    def make(self, **options: Any) -> Made:
        """What the step makes of tables in which the columns before it were synthesized; options
        of `PseudoPosteriorMechanism.make_from`, whose refits noise does not need."""
        refits = options.pop("refits")
        if isinstance(self.bound, BoundHistogram):
            assert isinstance(self.mechanism, PerturbedHistogram)
            return self.mechanism.make_from(self.bound, self.random, **options)
        if isinstance(self.bound, BoundTables):
            assert isinstance(self.mechanism, NoisyMarginals)
            return self.mechanism.make_from(self.bound, self.random, **options)
        assert isinstance(self.mechanism, PseudoPosteriorMechanism)
        assert self.session is not None
        return self.mechanism.make_from(self.session, fitted=self.fitted, refits=refits, **options)


def _opened(
    mechanisms: Sequence[Step], bounds: Sequence[Joined], options: FitOptions, random: Streams
) -> list[OpenStep]:
    """Each step with random numbers of its own: composition needs that."""
    shared: FitSession | None = None
    steps = []
    for place, (mechanism, bound) in enumerate(zip(mechanisms, bounds, strict=True)):
        numbers, session = random.child(f"step {place + 1}"), None
        if not isinstance(bound, Counted):
            shared = shared or options.session(bound, random)
            session = replace(
                shared,
                bound=bound,
                streams=numbers,
                progress=named_progress(options.progress, ", ".join(bound.synthesized)),
                store=FitStore(),
            )
        steps.append(
            OpenStep(place=place, mechanism=mechanism, bound=bound, random=numbers, session=session)
        )
    return steps


def _fitted(step: OpenStep) -> OpenStep:
    """The step with its fit; runs in any process."""
    assert isinstance(step.mechanism, PseudoPosteriorMechanism)
    assert step.session is not None
    return replace(step, fitted=step.mechanism.fit(step.session))


def fit_apart(
    steps: Sequence[OpenStep],
    *,
    workers: int,
    executor: Executor | None,
    progress: FitProgress | None,
) -> list[OpenStep]:
    """The steps with fits of other processes; the first failure is raised after all have ended."""
    chains = max(1, (os.cpu_count() or 1) // workers) if executor is None else None
    tasks = []
    for step in steps:
        if step.session is not None:
            settings = replace(step.session.settings, parallel_chains=chains)
            sent = replace(step.session, progress=None, settings=settings)
            tasks.append(replace(step, session=sent))
    fitted = list(steps)
    work: Any = {"workers": workers, "executor": executor, "progress": progress}
    for task, made in finished_tasks(_fitted, tasks, "columns", **work):
        step = steps[task.place]
        assert step.session is not None
        assert made.session is not None
        step.session.take_fits(made.session)
        fitted[step.place] = replace(step, fitted=made.fitted)
    return fitted
