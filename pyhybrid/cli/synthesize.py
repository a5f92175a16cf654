"""`pyhybrid synthesize`: a release from a file into a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from pyhybrid.cli.console import note, progress_bars
from pyhybrid.cli.options import (
    chosen_mechanism,
    default_models,
    options,
    reweighting_of,
    sampler_settings,
    support_of,
    survey_design,
    with_target,
)
from pyhybrid.cli.released import (
    Afterwards,
    check_afterwards,
    predictors_of,
    read_afterwards,
    save_with_these,
)
from pyhybrid.cli.tables import read_table
from pyhybrid.core.checks import check_choice, check_count, check_output_folder
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.mechanisms.epsilon_search import WITH_EPSILON, meet_epsilon, with_epsilon
from pyhybrid.mechanisms.mechanism import Mechanism
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.privacy.conversions import RELATIONS, STRICT, epsilon_text
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.folder import FORMATS
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.tables.plan import Plan
from pyhybrid.tables.synthesis import MECHANISMS, delta_of, synthesize_table

_WITH_PLAN = (
    "--epsilon, --reference and --select go with --plan; with --formula give --target-epsilon 1 (a "
    "local charge), or --calibration FOLDER, as pyhybrid calibrate makes it (a strict one)"
)
_TAKEN = (
    "data", "out", "plan", "epsilon", "reference", "mechanism", "relation", "n_synthetic",
    "one_draw", "engine", "seed", "chains", "warmup", "draws", "adapt_delta", "on_not_converged",
    "file_format", "ledger", "allow_unlike", "overwrite", "households", "total", "rows", "public",
    "delta", "select", "holds_no_released_record",
)  # fmt: skip
_OF_MECHANISM = (
    "scale", "shift", "transform", "threshold", "draw_quantile", "relation", "safety_factor",
    "accounting", "delta", "unit",
)  # fmt: skip


@options
def synthesize(
    context: typer.Context,
    data: Path,
    out: Path,
    formula: list[str] | None = None,
    model: list[str] | None = None,
    plan: Path | None = None,
    epsilon: float | None = None,
    reference: Path | None = None,
    holds_no_released_record: bool = False,
    select: str | None = None,
    mechanism: list[str] | None = None,
    calibration: Path | None = None,
    scale: float | None = None,
    shift: float | None = None,
    transform: str | None = None,
    threshold: float | None = None,
    draw_quantile: float | None = None,
    relation: str | None = None,
    safety_factor: float | None = None,
    accounting: str | None = None,
    delta: float | None = None,
    target_epsilon: float | None = None,
    support: list[str] | None = None,
    unit: str | None = None,
    survey: str | None = None,
    reweight: bool = False,
    k: float | None = None,
    single_step: bool = False,
    n_synthetic: int = 1,
    one_draw: bool = False,
    leave_one_out: int | None = None,
    engine: str = "auto",
    seed: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    adapt_delta: float | None = None,
    on_not_converged: str = "raise",
    file_format: str | None = None,
    drop: list[str] | None = None,
    keep: list[str] | None = None,
    identifier: list[str] | None = None,
    households: str | None = None,
    total: list[str] | None = None,
    rows: int | None = None,
    public: list[str] | None = None,
    ledger: Path | None = None,
    allow_unlike: bool = False,
    overwrite: bool = False,
) -> None:
    """Release synthetic data: one column replaced, or several in sequence, the others kept.

    Options:
    out: Folder for the release, new or empty.
    formula: As in R, e.g. 'visits ~ age + region'; several are synthesized in sequence, each given
        those before it.
    plan: File of `pyhybrid plan`: the whole table, at --epsilon.
    epsilon: With --plan: of all columns and sets together.
    reference: With --plan: public or historical records, for centers of clipping or beside the
        tables of --mechanism marginals.
    select: With --plan and --mechanism marginals: measure all tables of the plan, or a private
        choice of tables. [default: all]
    mechanism: unweighted, lipschitz, count, scalar, truncated, censored, perturbed_histogram or
        noisy_marginals; with options as NAME:key=value,..., e.g. count:pattern=sex+region,
        scalar:target_epsilon=5; perturbed_histogram takes lower, upper, n_bins and epsilon,
        noisy_marginals epsilon and domain=FILE.json; once, or once per formula
    calibration: Folder of `pyhybrid calibrate`: a strict censored release.
    scale: c: lowers all weights when below 1. [default: 1]
    shift: g: lowers all weights when negative. [default: 0]
    transform: linear, reciprocal, threshold, logistic, softmax. [default: linear]
    threshold: f* in nats, for --transform threshold.
    draw_quantile: Drop draws whose bound is above this quantile. [default: 1]
    relation: Neighbors: remove or replace a record. [default: remove]
    safety_factor: s in epsilon = 2 s bound. [default: 1]
    target_epsilon: Of the whole release: finds the scale (lipschitz, count), weight (scalar) or cap
        (truncated), or sets the epsilon of a draw (censored, perturbed_histogram).
    support: Records that could have been, COLUMN=LOWEST..HIGHEST or COLUMN=a+b, repeatable:
        epsilon is then the largest over them, too. The outcome must be declared.
    unit: Column whose equal values are one person's rows: epsilon by person.
    survey: Survey design: weights=COLUMN and, of strata, clusters, unit, population, largest,
        calibrated, what there is; e.g. weights=w,unit=household.
    reweight: Raise weights that leave slack below the bound.
    k: Re-weighting factor, with --reweight. [default: 0.95]
    single_step: With --reweight: one step at this k, as published.
    n_synthetic: m, the number of synthetic data sets.
    leave_one_out: Also fit without each of the K records that most is told about, as evidence in
        the confidential report; charges the larger number. [default: 2 where weights are computed
        on fewer than 2,000 records, else 0]
    drop: Column to leave out of what is published; repeatable.
    keep: Column to publish as it is although it was named as risky; repeatable.
    identifier (--id): Column whose values are replaced by numbers; repeatable.
    households: Make rows of a household agree, afterwards: unit=COLUMN and, of one=COLUMN:VALUE,
        at_most_one=COLUMN:VALUE, same=COLUMN, sums=COLUMN:SUMMED (several with + between) and
        eligible=RULE, what is asked; e.g. 'unit=home,one=relation:head'.
    total: Scale a synthesized column to PUBLIC totals, afterwards: COLUMN:total=NUMBER or
        COLUMN:by=COLUMN,LEVEL=NUMBER (more levels after commas), either with weights=COLUMN;
        repeatable.
    rows: Draw so many rows, afterwards; whole households with --households.
    public: With --rows: column that is public and stays as it is; repeatable.
    ledger: Ledger to charge; refuses past its budget.
    allow_unlike: Accept charges of unlike kinds in a ledger or a sequence.
    """
    if plan is None and any(given is not None for given in (epsilon, reference, select)):
        raise InvalidInput(_WITH_PLAN)
    if holds_no_released_record and plan is None and calibration is None:
        raise InvalidInput("--holds-no-released-record goes with --calibration, or with --plan")
    design = survey_design(survey)
    asked = read_afterwards(
        households, total, rows, public, unit=unit or (None if design is None else design.unit)
    )
    said = {"allow_unlike": allow_unlike, "holds_no_released_record": holds_no_released_record}
    formulas, texts = formula or [], mechanism or ["censored"]
    if plan is not None:
        _check_taken_by_plan(context, texts, relation or "remove")
    else:
        given: dict[str, Any] = {
            **{name: context.params[name] for name in _OF_MECHANISM},
            "support": support_of(support), "design": design,
            "reweighting": reweighting_of(reweight, k, single_step),
        }  # fmt: skip
        texts = with_target(mechanism or [], target_epsilon)
        _check_target(target_epsilon, formulas, calibration, scale)
        chosen = chosen_mechanism(texts, model or [], formulas, calibration, given, **said)
    settings = sampler_settings(chains, warmup, draws, adapt_delta)
    check_output_folder(out, overwrite=overwrite)
    m = check_count(n_synthetic, "--n-synthetic")
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if allow_unlike and ledger is None and len(formulas) < 2:
        raise InvalidInput("--allow-unlike goes with --ledger, or with several formulas")
    if plan is not None:
        at = epsilon if texts[0] in ("censored", "marginals") else None
        charged = (texts[0], relation or "remove", delta_of(texts[0], delta), at)
    else:
        charged = (chosen.name, chosen.relation, chosen.delta_of_charge, None)
    book = None if ledger is None else _open_ledger(ledger, *charged, allow_unlike=allow_unlike)
    source = read_table(data)
    fitting: dict[str, Any] = {
        "n_synthetic": m, "n_draws_released": 1 if one_draw else None, "seed": seed,
        "engine": engine, "settings": settings, "on_not_converged": on_not_converged,
    }  # fmt: skip
    if plan is not None:
        planned = Plan.load(plan, source.frame)
        decisions = planned.decisions
        names = [column.name for column in planned.columns]
        check_afterwards(asked, source.frame, names, decisions, planned.kept)
        release = _release_by_plan(planned, texts[0], context.params, fitting)
    else:
        decisions = Decisions.of(drop, keep, identifier)
        named = default_models(texts, model or [], formulas, source.frame)
        if named:
            chosen = chosen_mechanism(texts, named, formulas, calibration, given, **said)
        _check_columns(source.frame, chosen, decisions, asked)
        with progress_bars() as progress:
            release = _release_within(
                chosen, source.frame, target_epsilon, leave_one_out=leave_one_out,
                progress=progress, **fitting,
            )  # fmt: skip
    save_with_these(
        release, asked, source, decisions, out, seed=seed, overwrite=overwrite,
        file_format=file_format, ledger=book,
    )  # fmt: skip


def _release_by_plan(
    plan: Plan, mechanism: str, given: Mapping[str, Any], fitting: Mapping[str, Any]
) -> Release:
    """A whole table; text of other columns comes back before the decisions on them."""
    reference = given["reference"]
    with progress_bars() as progress:
        return synthesize_table(
            plan,
            mechanism=mechanism,
            reference=None if reference is None else read_table(reference).frame,
            relation=given["relation"] or "remove",
            decided=False,
            progress=progress,
            **{name: given[name] for name in ("epsilon", "delta", "select")},
            holds_no_released_record=given["holds_no_released_record"],
            **fitting,
        )


def _check_taken_by_plan(context: typer.Context, mechanism: Sequence[str], relation: str) -> None:
    """Refuse, by their names, all options given that a plan does not take: whatever is not listed
    in `_TAKEN`, so that a new option is not ignored in silence."""
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in _TAKEN and parameter.name in context.params
        if (source := context.get_parameter_source(parameter.name)) is not None
        and source.name != "DEFAULT"
    ]
    if given:
        raise InvalidInput(
            f"--plan says what is synthesized and how: leave out {', '.join(given)}, or --plan"
        )
    if len(mechanism) > 1:
        raise InvalidInput("--plan takes one --mechanism, for all columns")
    check_choice(mechanism[0], "mechanism", MECHANISMS)
    check_choice(relation, "relation", RELATIONS)


def _check_target(
    target: float | None, formulas: Sequence[str], calibration: Path | None, scale: float | None
) -> None:
    """Refuse what --target-epsilon cannot be combined with, before anything is read."""
    refused = {
        "is for one formula: how several columns share it is not known; give each its own "
        "settings": len(formulas) > 1,
        "cannot be met by a calibration, which holds the cap: give --epsilon to pyhybrid "
        "calibrate": calibration is not None,
        "finds the scale: give no --scale": scale is not None,
    }
    for reason, holds in refused.items():
        if target is not None and holds:
            raise InvalidInput(f"--target-epsilon {reason}")


def _release_within(
    mechanism: Mechanism,
    df: pd.DataFrame,
    target: float | None,
    *,
    n_synthetic: int,
    n_draws_released: int | None,
    leave_one_out: int | None,
    **fitting: Any,
) -> Release:
    """A release, of at most `target` if there is one, from the fit that was found; refits without
    single records may have raised what it costs."""
    releasing: dict[str, Any] = {"n_synthetic": n_synthetic, "leave_one_out": leave_one_out}
    draws = n_draws_released or n_synthetic
    if target is not None and isinstance(mechanism, WITH_EPSILON):
        # A histogram is drawn once, whatever m is, if it is not told otherwise.
        at = 1 if isinstance(mechanism, PerturbedHistogram) else draws
        mechanism = with_epsilon(mechanism, target_epsilon=target, n_draws_released=at)
        target = None
    if target is None:
        return mechanism.release(df, n_draws_released=n_draws_released, **releasing, **fitting)
    found = meet_epsilon(
        mechanism,  # type: ignore[arg-type]
        df,
        target_epsilon=target,
        n_draws_released=draws,
        **fitting,
    )
    note(f"--target-epsilon: {len(found.steps)} settings were tried")
    release = found.mechanism.release_from(found.session, n_draws_released=draws, **releasing)
    if release.charge.epsilon > target:
        raise BudgetExceeded(
            f"a release must cost at most --target-epsilon {target:g}: refits without single "
            f"records raised it to {release.charge.epsilon:g}; give a lower target"
        )
    return release


def _check_columns(
    table: pd.DataFrame, mechanism: Mechanism, decisions: Decisions, asked: Afterwards
) -> None:
    """Columns that need a decision are named, and refused without one, before any fit; those that
    will hold sums of synthetic values need none. So is what cannot be done afterwards."""
    replaced, sums = mechanism.synthesizes, asked.sums
    if not set(replaced) <= set(table.columns):
        return  # what is wrong is said when the model is bound
    exposed = {**exposed_columns(table, replaced), **mechanism.undecided}
    exposed = {n: reason for n, reason in exposed.items() if n in table.columns and n not in sums}
    columns = [str(name) for name in table.columns]
    check_decided(exposed, decisions, columns, [*replaced, *sums])
    for name, reason in exposed.items():
        if name in decisions.keep:
            note(f"--keep {name}: it is published as it is, although {reason}")
    read = predictors_of(mechanism, table) if asked.rows is not None else []
    check_afterwards(asked, table, replaced, decisions, read)


def _open_ledger(
    path: Path,
    name: str,
    relation: str,
    delta: float | None,
    epsilon: float | None,
    *,
    allow_unlike: bool,
) -> Ledger:
    """The ledger at `path`, checked before any work for a release that it would refuse: by a
    mechanism of this `name` and relation, counted at `delta`, of `epsilon` if it is known."""
    ledger = Ledger(path, allow_unlike=allow_unlike)
    if ledger.left == 0:
        raise BudgetExceeded(
            f"ledger {path} must have budget left: all of {epsilon_text(ledger.budget)} is spent"
        )
    if relation != ledger.relation and not allow_unlike:
        raise InvalidInput(
            f"charges in ledger {path} must be for {ledger.relation} one record: {name} "
            f"would be for {relation}; give --relation {ledger.relation}, or --allow-unlike"
        )
    if delta is not None and ledger.kind != STRICT and delta != ledger.delta:
        raise InvalidInput(
            f"charges in ledger {path} must be counted at its delta, {ledger.delta or 'none'}: "
            f"found {delta:g}; give --delta, or --accounting range"
        )
    added = ledger.kind == STRICT and ledger.delta is None  # at a delta it may cost less
    if epsilon is not None and epsilon > ledger.left and added:
        raise BudgetExceeded(
            f"ledger {path} must have budget for this release: it would cost "
            f"{epsilon_text(epsilon)}, and {epsilon_text(ledger.left)} is left"
        )
    return ledger
