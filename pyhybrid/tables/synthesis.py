"""A whole table at one charge: a sequence of columns, each at its share of epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd

from pyhybrid.checks import (
    check_choice,
    check_count,
    check_draws_released,
    check_fraction,
    check_positive,
)
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.errors import InvalidInput
from pyhybrid.fitting.exposed import exposed_columns
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress
from pyhybrid.mechanisms import Censored, LipschitzWeighted, ScalarWeighted, Unweighted
from pyhybrid.mechanisms.calibration import Calibration, calibrate
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.mechanisms.steps import Step
from pyhybrid.models.base import Model
from pyhybrid.models.kinds import Kind
from pyhybrid.randomness import streams
from pyhybrid.releases.data_mark import data_mark
from pyhybrid.releases.decisions import check_decided
from pyhybrid.releases.origin import Origin
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.running.tasks import first_failure, run_tasks
from pyhybrid.tables.marginals import MarginalsOfPlan, measured, release_of
from pyhybrid.tables.plan import Plan, PlannedColumn
from pyhybrid.tables.working import in_form_of_data, working_table

__all__ = ["MECHANISMS", "calibrate_table", "synthesize_table"]

MECHANISMS = ("censored", "marginals", "scalar", "lipschitz", "unweighted")
_STEP = 1e-6  # shares of epsilon are rounded down to it
_AT_EPSILON = ("censored", "scalar", "marginals")  # whose epsilon is given


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shared:
    """What the calibrations of all columns share."""

    reference: pd.DataFrame
    relation: str
    public: bool
    options: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    name: str
    model: Model
    epsilon: float
    shared: _Shared
    seed: int | None


def _calibrated(task: _Task) -> Calibration:
    """Runs in any process."""
    own = task.shared
    return calibrate(
        task.model,
        own.reference,
        epsilon=task.epsilon,
        relation=own.relation,
        public=own.public,
        seed=task.seed,
        **own.options,
    )


def calibrate_table(
    plan: Plan,
    reference: pd.DataFrame,
    *,
    epsilon: float,
    n_draws_released: int = 1,
    relation: str = "remove",
    public: bool = False,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
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
    relation, public
        See `pyhybrid.calibrate`.
    seed, engine, settings
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
    kinds = plan.kinds
    missing = [name for name in kinds if name not in reference.columns]
    if missing:
        raise InvalidInput(f"reference must have the plan's columns: {missing[0]!r} is not in it")
    present = [name for name, kind in kinds.items() if not kind.missing]
    whole = working_table(reference, kinds, list(kinds)).dropna(subset=present)
    whole = whole.reset_index(drop=True)
    if len(whole) < 2:
        raise InvalidInput("reference must have two rows or more without missing values")
    options = {"engine": engine, "settings": settings}
    shared = _Shared(reference=whole, relation=relation, public=public, options=options)
    random = streams(seed)
    tasks = []
    for column in plan.columns:
        model = column.model_of(kinds)
        if model is not None:
            own = random.child(f"calibration of {column.name}").entropy if random.seeded else None
            share = _epsilon_of(column, epsilon, n_draws_released)
            tasks.append(
                _Task(name=column.name, model=model, epsilon=share, shared=shared, seed=own)
            )
    found, failures = {}, []
    for ended in run_tasks(_calibrated, tasks, workers=workers, executor=executor):
        if ended.result is None:
            failures.append(ended)
        else:
            found[ended.task.name] = ended.result
    if failures:
        raise first_failure(failures, "columns")
    return {task.name: found[task.name] for task in tasks}


def synthesize_table(
    plan: Plan,
    *,
    epsilon: float | None = None,
    mechanism: str = "censored",
    calibration: Mapping[str, Calibration] | None = None,
    reference: pd.DataFrame | None = None,
    public: bool = False,
    center_share: float = 0.25,
    relation: str = "remove",
    n_synthetic: int = 1,
    n_draws_released: int | None = None,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
    rule: ConvergenceRule | None = None,
    on_not_converged: str = "raise",
    check_modes: bool = False,
    decided: bool = True,
    workers: int = 1,
    executor: Executor | None = None,
    progress: FitProgress | None = None,
) -> Release:
    """Synthesize a table by its plan.

    Parameters
    ----------
    plan : Plan
    epsilon : float, optional
        Of the whole release, all sets together, nats; each column has its share. Needed by
        "censored" and "marginals" (strict), "scalar" (a target, by the Lipschitz bound) and
        histograms; what the other mechanisms cost is found by fitting.
    mechanism : {"censored", "marginals", "scalar", "lipschitz", "unweighted"}
        Of all columns but histograms. "marginals" takes no models: `pyhybrid.NoisyMarginals` in the
        plan's order, for any number of sets at one price.
    calibration : mapping of str to Calibration, optional
        Of `calibrate_table`, for this plan and epsilon.
    reference : DataFrame, optional
        In its place: historical or public records that it is made from here. The center of clipping
        comes from them, and their own records are not protected.
    public : bool, default False
        True if the reference is public.
    center_share : float, default 0.25
        Of epsilon, in (0, 1): without calibration and reference the centers of "censored" are
        bought with it, from a table of noisy marginals.
    relation : {"remove", "replace"}
    n_synthetic, n_draws_released, seed, engine, settings, rule, on_not_converged, progress
        See `pyhybrid.mechanisms.base.PseudoPosteriorMechanism.release`. With m draws released each
        has 1 / m of epsilon; ``n_draws_released=1`` gives all sets one draw, at all of it.
    check_modes : bool, default False
        Look for other modes of each censored posterior; see `pyhybrid.Censored`.
    decided : bool, default True
        Columns to drop are left out, and the id is numbers; False leaves that to `Release.save`,
        where `plan.decisions` says it.
    workers, executor
        Where columns are fitted; see `pyhybrid.SequentialSynthesis.release`.

    Returns
    -------
    Release
        With one charge; `parts` say what each column cost, for the record only.

    Raises
    ------
    InvalidInput
        For a strict release of columns whose type was read from the confidential data (they are
        named), an epsilon or a calibration that is missing, columns that need a decision before
        they are published, and whatever a step refuses.
    EngineUnavailable, SamplingError, NotConverged
        As a release of any column would; SamplingError names a rule that cannot be met.
    """
    check_choice(mechanism, "mechanism", MECHANISMS)
    m = check_count(n_synthetic, "n_synthetic")
    drawn = check_draws_released(n_draws_released, m)
    _check_epsilon(plan, mechanism, epsilon)
    if mechanism == "censored":
        _check_declared(plan)
    if mechanism == "marginals":
        _check_declared(plan)
    table, own = plan.table, [column.name for column in plan.columns]
    decisions = plan.decisions
    exposed = exposed_columns(table.df, own)
    bought: MarginalsOfPlan | None = None
    centers: Mapping[str, Calibration] = {}
    check_decided(exposed, decisions, [str(name) for name in table.df.columns], own)
    if mechanism == "marginals":
        assert epsilon is not None
        release = release_of(plan, epsilon, relation, m)
        return release.with_decisions(decisions) if decided else release
    read = dict.fromkeys([*plan.kept, *(n for rule in table.read_rules for n in rule.columns)])
    working = working_table(table.df, plan.kinds, [*(n for n in read if n not in own), *own])
    fits: dict[str, Any] = {
        "seed": seed,
        "engine": engine,
        "settings": settings,
        "workers": workers,
        "executor": executor,
    }
    if mechanism == "censored" and calibration is None:
        assert epsilon is not None
        at, like = epsilon, reference
        if like is None:
            check_fraction(center_share, "center_share")
            bought = measured(
                plan, center_share * epsilon, relation, n_synthetic=m, n_draws_released=drawn
            )
            at, like = (1 - center_share) * epsilon, bought.table
            epsilon = at
        made = calibrate_table(
            plan, like, epsilon=at, n_draws_released=drawn, relation=relation, public=public, **fits
        )
        calibration, centers = (made, {}) if bought is None else ({}, made)
    steps = [
        _step(column, plan.kinds, mechanism, relation,
              None if epsilon is None else _epsilon_of(column, epsilon, drawn),
              (calibration or {}).get(column.name), centers.get(column.name),
              check_modes=check_modes)
        for column in plan.columns
    ]  # fmt: skip
    sequence = SequentialSynthesis(steps, rules=table.rules, allow_unlike=_mixed(steps))
    release = sequence.release(
        working,
        n_synthetic=m,
        n_draws_released=drawn,
        rule=rule,
        on_not_converged=on_not_converged,
        progress=progress,
        **fits,
    )
    whole = _of_table(release, plan, exposed, bought)
    return whole.with_decisions(decisions) if decided else whole


def _epsilon_of(column: PlannedColumn, epsilon: float, n_draws: int) -> float:
    """A column's part of epsilon for one draw, rounded down."""
    share = epsilon * column.share / n_draws
    return math.floor(share / _STEP) * _STEP if share > 100 * _STEP else share


def _step(
    column: PlannedColumn,
    kinds: Mapping[str, Kind],
    mechanism: str,
    relation: str,
    epsilon: float | None,
    calibration: Calibration | None,
    center: Calibration | None,
    *,
    check_modes: bool,
) -> Step:
    """The mechanism of one column."""
    model = column.model_of(kinds)
    if model is None:
        assert epsilon is not None
        return column.histogram(epsilon, relation)
    if mechanism == "censored" and center is not None and center.center is not None:
        at = {name: own.tolist() for name, own in center.center.parameters.items()}
        inner = Unweighted(model, relation=relation)
        return Censored(
            model,
            epsilon=epsilon,
            inner=inner,
            center=at,
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
        return Censored(calibration=calibration, relation=relation, check_modes=check_modes)
    if mechanism == "scalar":
        return ScalarWeighted(model, target_epsilon=epsilon, relation=relation)
    if mechanism == "lipschitz":
        return LipschitzWeighted(model, relation=relation)
    return Unweighted(model, relation=relation)


def _mixed(steps: Sequence[Step]) -> bool:
    """True for histograms beside local mechanisms: the whole is then stated as local."""
    kinds = {type(step).__name__ for step in steps}
    return len(kinds) > 1 and "Censored" not in kinds


def _check_epsilon(plan: Plan, mechanism: str, epsilon: float | None) -> None:
    if epsilon is not None:
        check_positive(epsilon, "epsilon")
        return
    if mechanism in _AT_EPSILON:
        raise InvalidInput(f"epsilon must be given to mechanism {mechanism!r}")
    histograms = [column.name for column in plan.columns if column.model_of(plan.kinds) is None]
    if histograms:
        raise InvalidInput(
            f"epsilon must be given: {', '.join(histograms)} come from noisy counts, which cost "
            "their share of it; or give them another model in the plan"
        )


def _check_declared(plan: Plan) -> None:
    """A strict charge reads nothing of the confidential columns but through its mechanism."""
    if plan.not_declared:
        raise InvalidInput(
            "a strict charge needs types of sensitive columns that are declared, or read from a "
            f"reference: {', '.join(plan.not_declared)} were read from the confidential data; "
            "give ph.Table(..., types={...}) or reference="
        )


def _of_table(
    release: Release, plan: Plan, exposed: Mapping[str, str], bought: MarginalsOfPlan | None
) -> Release:
    """The release of the working table with the columns, order and dtypes of the data's."""
    df = plan.table.df
    tables = []
    for made in release.synthetic:
        own = {name: in_form_of_data(made[name], df[name]) for name in release.synthesized}
        tables.append(joined(df, pd.DataFrame(own, index=df.index)))
    kept = {f.name: getattr(release, f.name) for f in fields(ReleaseRecord)}
    record = replace(
        ReleaseRecord(**kept),
        exposed=exposed,
        charge=release.charge if bought is None else bought.added_to(release.charge),
        confidential=replace(release.confidential, data=data_mark(df)),
    )
    return Release.of(
        record,
        tables,
        parts=release.parts if bought is None else (bought.record, *release.parts),
        identifier=release.identifier,
        origin=Origin(data=df),
    )
