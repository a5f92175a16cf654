"""Centers and caps of a table's models, frozen on reference records: one task for each column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.engines import Engine, SamplerSettings
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate
from pyhybrid.models.base import Model
from pyhybrid.running.tasks import first_failure, run_tasks
from pyhybrid.tables.coded_table import working_table
from pyhybrid.tables.plan import Plan, PlannedColumn

__all__ = ["calibrate_table", "epsilon_of"]

_STEP = 1e-6  # shares of epsilon are rounded down to it


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shared:
    """What the calibrations of all columns share."""

    reference: pd.DataFrame
    relation: str
    public: bool
    holds_no_released_record: bool
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
        holds_no_released_record=own.holds_no_released_record,
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
        See `pyhybrid.fitting.session.FitOptions`.
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
    options = {"engine": engine, "settings": settings, "on_not_converged": on_not_converged}
    shared = _Shared(
        reference=whole,
        relation=relation,
        public=public,
        holds_no_released_record=holds_no_released_record,
        options=options,
    )
    random = streams(seed)
    tasks = []
    for column in plan.columns:
        model = column.model_of(kinds)
        if model is not None:
            own = random.child(f"calibration of {column.name}").entropy if random.seeded else None
            share = epsilon_of(column, epsilon, n_draws_released)
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


def epsilon_of(column: PlannedColumn, epsilon: float, n_draws: int) -> float:
    """A column's part of epsilon for one draw, rounded down."""
    share = epsilon * column.share / n_draws
    return math.floor(share / _STEP) * _STEP if share > 100 * _STEP else share
