"""The steps of a whole table by its plan: the mechanism of each column, its calibration, and which
models are unfit.

A strict charge takes no second try and no other mechanism after a fit that did not converge, as
that is itself read from the records. So it is found out beforehand, on the reference or on noisy
tables that are charged: of a column that clips many of these records, the censored posterior of
these records is sampled by short chains. Without a reference, two draws of the noisy tables must
agree on the center, within its region.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.core.randomness import streams
from pyhybrid.engines import Engine, SamplerSettings
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms import Censored, LipschitzWeighted, ScalarWeighted, Unweighted
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate
from pyhybrid.mechanisms.sequential import Step
from pyhybrid.models.base import Model
from pyhybrid.models.columns.kinds import Kind, Number
from pyhybrid.models.registry import within
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.running.tasks import Done, first_failure, run_tasks
from pyhybrid.tables.plan import Plan, PlannedColumn
from pyhybrid.tables.table_spec import working_table

LOCAL: Mapping[str, Any] = {
    "scalar": ScalarWeighted, "lipschitz": LipschitzWeighted, "unweighted": Unweighted
}  # fmt: skip


# Shares of a reference's records at the cap: beyond the first some columns of strangers did not
# converge, beyond the second no record tells more than another.
_CLIPPED, _ALL_CLIPPED = 0.3, 0.95
_REHEARSALS = tuple(
    SamplerSettings(chains=2, warmup=n, draws=n, max_draws=n, max_treedepth=6) for n in (150, 300)
)  # the second where the first fails: R-hat of few draws is above the limit by chance, too
_MOST_RHAT, _DEEPEST, _MOST_DIVERGENT = 1.1, 5.5, 10
_STEP = 1e-6  # shares of epsilon are rounded down to it


def step_of(
    column: PlannedColumn,
    kinds: Mapping[str, Kind],
    mechanism: str,
    relation: str,
    epsilon: float | None,
    calibration: Calibration | None,
    *,
    bought: bool,
    check_modes: bool,
) -> Step:
    """The mechanism of one column."""
    model = column.model_of(kinds)
    if model is None:
        assert epsilon is not None
        return column.histogram(epsilon, relation)
    center = calibration.center if bought and calibration is not None else None
    if center is not None:
        inner = Unweighted(model, relation=relation)
        return Censored(
            model,
            epsilon=epsilon,
            inner=inner,
            center=replace(center, public=True),  # of noisy tables, which are charged
            relation=relation,
            check_modes=check_modes,
        )
    if mechanism == "censored":
        if calibration is None:
            raise InvalidInput(f"calibration must have the column {column.name!r}: it has not")
        if calibration.epsilon is None or not math.isclose(calibration.epsilon, epsilon or 0):
            raise InvalidInput(
                f"calibration of {column.name!r} must be for its share of epsilon: calibrate the "
                "table for this epsilon and number of draws"
            )
        own = kinds[column.name]
        if isinstance(own, Number):
            ends = (own.lower, own.upper)
            if within(calibration.model, *ends) != calibration.model:
                raise InvalidInput(
                    f"calibration of {column.name!r} must be of a model that keeps to the declared "
                    "range: it was made by an earlier version, or for another plan; calibrate the "
                    "table again"
                )
        return Censored(calibration=calibration, relation=relation, check_modes=check_modes)
    options = {"target_epsilon": epsilon} if mechanism == "scalar" else {}
    made: Step = LOCAL[mechanism](model, relation=relation, **options)
    return made


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalsOfPlan:
    """Two synthetic tables of the plan's columns from noisy marginals, under `record.charge`."""

    table: pd.DataFrame
    other: pd.DataFrame
    record: ReleaseRecord


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """The calibration of one column, with what all columns share in `options`."""

    name: str
    model: Model
    epsilon: float
    seed: int | None
    reference: pd.DataFrame
    options: Mapping[str, Any]


def _calibrated(task: _Task) -> Calibration:
    """Runs in any process."""
    return calibrate(
        task.model, task.reference, epsilon=task.epsilon, seed=task.seed, **task.options
    )


def calibrate_table(
    plan: Plan,
    reference: Any,
    *,
    epsilon: float,
    n_draws_released: int = 1,
    relation: str = "remove",
    public: bool = False,
    holds_no_released_record: bool = False,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
    on_not_converged: str = "raise",
    workers: int = 1,
    executor: Executor | None = None,
) -> dict[str, Calibration]:
    """Freeze center and cap of each column's model on reference records, at its share of `epsilon`.

    Parameters
    ----------
    plan : Plan
    reference : DataFrame
        Historical or public records with the plan's columns; those where one is missing that must
        not be are left out. They are not protected by releases of the plan's table.
    epsilon : float
        Of the whole release.
    n_draws_released : int, default 1
        Draws that the release will simulate from.
    relation, public, holds_no_released_record
        See `pyhybrid.calibrate`.
    seed, engine, settings, on_not_converged
        See `pyhybrid.fitting.session.open_session`.
    workers, executor
        Where columns are fitted; see `pyhybrid.SequentialSynthesis.release`.

    Returns
    -------
    dict of str to Calibration
        By column; none for histograms.

    Raises
    ------
    InvalidInput
        If the reference lacks a column, or has values that its type cannot hold.
    """
    ended = _calibrations(
        plan, reference, epsilon=epsilon,
        n_draws_released=n_draws_released, seed=seed, workers=workers, executor=executor,
        relation=relation, public=public,
        holds_no_released_record=holds_no_released_record, engine=engine, settings=settings,
        on_not_converged=on_not_converged,
    )  # fmt: skip
    if failures := [each for each in ended if each.result is None]:
        raise first_failure(failures, "columns")
    return {each.task.name: each.result for each in ended if each.result is not None}


def _calibrations(
    plan: Plan,
    reference: pd.DataFrame,
    *,
    epsilon: float,
    n_draws_released: int,
    seed: int | None,
    workers: int,
    executor: Executor | None,
    known: Sequence[Done[_Task, Calibration]] = (),
    **options: Any,
) -> list[Done[_Task, Calibration]]:
    """Calibrations of all columns with a model, or their failures, in the plan's order; those that
    are `known`, of the same model, are not made anew."""
    whole, random, tasks = _complete(plan, reference), streams(seed), []
    models = {column.name: column.model_of(plan.kinds) for column in plan.columns}
    held = [done for done in known if done.task.model == models[done.task.name]]
    left = {name for name, model in models.items() if model} - {done.task.name for done in held}
    for column in plan.columns:
        if column.name in left:
            child = random.child(f"calibration of {column.name}")
            tasks.append(
                _Task(
                    name=column.name,
                    model=models[column.name],
                    epsilon=epsilon_of(column, epsilon, n_draws_released),
                    seed=child.entropy if random.seeded else None,
                    reference=whole,
                    options=options,
                )
            )
    ended = [*held, *run_tasks(_calibrated, tasks, workers=workers, executor=executor)]
    return sorted(ended, key=lambda done: [*models].index(done.task.name))


def _complete(plan: Plan, reference: pd.DataFrame) -> pd.DataFrame:
    """Records of a reference that miss nothing that must not be missing."""
    kinds = plan.kinds
    missing = [name for name in kinds if name not in reference.columns]
    if missing:
        raise InvalidInput(f"reference must have the plan's columns: {missing[0]!r} is not in it")
    present = [name for name, kind in kinds.items() if not kind.missing]
    table = working_table(reference, kinds, list(kinds)).dropna(subset=present)
    whole: pd.DataFrame = table.reset_index(drop=True)
    if len(whole) < 2:
        raise InvalidInput("reference must have two rows or more without missing values")
    return whole


def fitting_plan(
    plan: Plan, reference: pd.DataFrame | None, bought: MarginalsOfPlan | None, **options: Any
) -> tuple[Plan, dict[str, Calibration], str]:
    """The plan with calibrations on the reference or on noisy tables, and what the charge says of
    it: columns whose models are unfit come from noisy marginals at their shares of epsilon. These
    records alone decide on that, before one to be released is read: to find by a fit to those that
    it has not converged, and then to release, would cost epsilon that nothing counts."""
    like = reference if bought is None else bought.table
    assert like is not None
    pairs = {frozenset((own.name, name)) for own in plan.columns for name in own.tables}
    found: dict[str, str] = {}
    tried: list[Done[_Task, Calibration]] = []
    while True:
        if bought is not None:  # of other pairs the noisy tables tell nothing
            plan = plan.reading_pairs(pairs)
        ended = _calibrations(plan, like, known=tried, **options)
        if ended and all(isinstance(each.error, InvalidInput) for each in ended):
            raise first_failure(ended, "columns")  # it is of no column's values
        unfit = {each.task.name: _unfit(each, plan, bought) for each in ended if each not in tried}
        tried = ended
        if not (why := {name: told for name, told in unfit.items() if told}):
            break
        found |= why
        plan = plan.counted(why)
    made = {each.task.name: each.result for each in ended if each.result is not None}
    if not found:
        return plan, made, ""
    warnings.warn(
        "columns that come from noisy marginals in place of their models: "
        + "; ".join(f"{name} ({told})" for name, told in found.items()),
        stacklevel=4,
    )
    decided = "the reference" if bought is None else "noisy tables, whose epsilon is included,"
    return plan, made, (
        f"Noisy marginals took the place of the models of {', '.join(found)}: {decided} decided on "
        "that, and no record to be released."
    )  # fmt: skip


def _unfit(
    done: Done[_Task, Calibration], plan: Plan, bought: MarginalsOfPlan | None
) -> str | None:
    """Why chains would not end in a column's censored posterior, or only far from the truth."""
    made = done.result
    if made is None:
        assert done.error is not None
        of_noise = bought is not None and isinstance(done.error, InvalidInput)
        if not of_noise and not isinstance(done.error, SamplingError):
            raise done.error
        return "its model cannot be calibrated"
    if made.censored > _ALL_CLIPPED or (
        made.censored > _CLIPPED and not _rehearsed(done, plan, bought=bought is not None)
    ):
        return "its share of epsilon clips too many records for its chains to converge"
    if bought is None:
        return None
    try:
        away = made.drift(made.model.bind(_complete(plan, bought.other))).outside
    except InvalidInput:
        away = True
    return "noisy tables leave its center unknown" if away else None


def _rehearsed(done: Done[_Task, Calibration], plan: Plan, *, bought: bool) -> bool:
    """True if short chains end, and soon, in the censored posterior of the reference itself."""
    own, made, options = done.task, done.result, done.task.options
    step = step_of(plan[own.name], plan.kinds, "censored", options["relation"], own.epsilon, made,
                 bought=bought, check_modes=False)  # fmt: skip
    assert isinstance(step, Censored)
    return any(_ends(step, own, settings) for settings in _REHEARSALS)


def _ends(step: Censored, own: _Task, settings: SamplerSettings) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = open_session(
            step.bind(own.reference), engine=own.options["engine"], seed=own.seed,
            settings=settings, on_not_converged="warn",
        )  # fmt: skip
        try:
            fit = step.fit(session).fit
        except SamplingError:
            return False
    seen = fit.diagnostics
    return seen is None or (
        seen.max_rhat <= _MOST_RHAT
        and seen.n_divergent <= _MOST_DIVERGENT
        and float(fit.draws.treedepth.mean()) <= _DEEPEST
    )


def epsilon_of(column: PlannedColumn, epsilon: float, n_draws: int) -> float:
    """A column's part of epsilon for one draw, rounded down."""
    return _rounded_down(epsilon * column.share / n_draws)


def _rounded_down(share: float) -> float:
    return math.floor(share / _STEP) * _STEP if share > 100 * _STEP else share


def as_asked(charge: PrivacyCharge, epsilon: float | None, n_parts: int) -> float:
    """Epsilon that a charge of so many parts states: of a strict one the epsilon asked for where
    nothing but the rounding of its shares is between them; never below what it costs."""
    asked, most = epsilon or 0.0, n_parts * charge.n_draws_released * _STEP
    return asked if charge.kind == STRICT and 0 < asked - charge.epsilon <= most else charge.epsilon


def of_draws(epsilon: float, n_draws: int) -> float:
    """Epsilon of what is measured once, so that its part for a draw is stated without rounding."""
    return epsilon if n_draws == 1 else n_draws * _rounded_down(epsilon / n_draws)
