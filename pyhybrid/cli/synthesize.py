"""`pyhybrid synthesize`: a release from a file into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from pyhybrid.cli.afterwards import (
    Afterwards,
    check_afterwards,
    predictors_of,
    read_afterwards,
    save_with_these,
)
from pyhybrid.cli.console import note, progress_bars
from pyhybrid.cli.open_ledger import open_ledger
from pyhybrid.cli.options import (
    chosen_mechanism,
    default_models,
    reweighting_of,
    sampler_settings,
    support_of,
    survey_design,
    with_target,
)
from pyhybrid.cli.parameters import (
    Accounting,
    AdaptDelta,
    Chains,
    Data,
    Delta,
    Draws,
    Engine,
    FileFormat,
    HoldsNoReleasedRecord,
    OneDraw,
    OnNotConverged,
    OptionalModels,
    Overwrite,
    Seed,
    Warmup,
)
from pyhybrid.cli.plan import check_taken_by_plan, synthesize_by_plan
from pyhybrid.cli.tables import read_table
from pyhybrid.cli.target import check_target, release_within
from pyhybrid.core.checks import check_choice, check_count, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.mechanisms.mechanism import Mechanism
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.folder import FORMATS

__all__ = ["synthesize"]

_WITH_PLAN = (
    "--epsilon, --reference and --select go with --plan; with --formula give --target-epsilon 1 (a "
    "local charge), or --calibration FOLDER, as pyhybrid calibrate makes it (a strict one)"
)


def synthesize(
    context: typer.Context,
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the release, new or empty.")],
    formula: Annotated[
        list[str] | None,
        typer.Option(
            help="As in R, e.g. 'visits ~ age + region'; several are synthesized in sequence, "
            "each given those before it."
        ),
    ] = None,
    model: OptionalModels = None,
    plan: Annotated[
        Path | None, typer.Option(help="File of `pyhybrid plan`: the whole table, at --epsilon.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="With --plan: of all columns and sets together.")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="With --plan: public or historical records, for centers of clipping or "
            "beside the tables of --mechanism marginals."
        ),
    ] = None,
    holds_no_released_record: HoldsNoReleasedRecord = False,
    select: Annotated[
        str | None,
        typer.Option(
            help="With --plan and --mechanism marginals: measure all tables of the plan, "
            "or a private choice of tables. \\[default: all]"
        ),
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            help="unweighted, lipschitz, count, scalar, truncated, censored, "
            "perturbed_histogram or noisy_marginals; with options as NAME:key=value,..., e.g. "
            "count:pattern=sex+region, scalar:target_epsilon=5; perturbed_histogram takes lower, "
            "upper, n_bins and epsilon, noisy_marginals epsilon and domain=FILE.json; once, or "
            "once per formula"
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(help="Folder of `pyhybrid calibrate`: a strict censored release."),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="c: lowers all weights when below 1. \\[default: 1]")
    ] = None,
    shift: Annotated[
        float | None, typer.Option(help="g: lowers all weights when negative. \\[default: 0]")
    ] = None,
    transform: Annotated[
        str | None,
        typer.Option(help="linear, reciprocal, threshold, logistic, softmax. \\[default: linear]"),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="f* in nats, for --transform threshold.")
    ] = None,
    draw_quantile: Annotated[
        float | None,
        typer.Option(help="Drop draws whose bound is above this quantile. \\[default: 1]"),
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="Neighbors: remove or replace a record. \\[default: remove]")
    ] = None,
    safety_factor: Annotated[
        float | None, typer.Option(help="s in epsilon = 2 s bound. \\[default: 1]")
    ] = None,
    accounting: Accounting = None,
    delta: Delta = None,
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Of the whole release: finds the scale (lipschitz, count), weight (scalar) or cap "
            "(truncated), or sets the epsilon of a draw (censored, perturbed_histogram)."
        ),
    ] = None,
    support: Annotated[
        list[str] | None,
        typer.Option(
            help="Records that could have been, COLUMN=LOWEST..HIGHEST or COLUMN=a+b, repeatable: "
            "epsilon is then the largest over them, too. The outcome must be declared."
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Column whose equal values are one person's rows: epsilon by person."),
    ] = None,
    survey: Annotated[
        str | None,
        typer.Option(
            help="Survey design: weights=COLUMN and, of strata, clusters, unit, population, "
            "largest, calibrated, what there is; e.g. weights=w,unit=household."
        ),
    ] = None,
    reweight: Annotated[
        bool, typer.Option("--reweight", help="Raise weights that leave slack below the bound.")
    ] = False,
    k: Annotated[
        float | None,
        typer.Option("--k", help="Re-weighting factor, with --reweight. \\[default: 0.95]"),
    ] = None,
    single_step: Annotated[
        bool,
        typer.Option("--single-step", help="With --reweight: one step at this k, as published."),
    ] = False,
    n_synthetic: Annotated[int, typer.Option(help="m, the number of synthetic data sets.")] = 1,
    one_draw: OneDraw = False,
    leave_one_out: Annotated[
        int | None,
        typer.Option(
            help="Also fit without each of the K records that most is told about, as evidence in "
            "the confidential report; charges the larger number. \\[default: 2 where weights are "
            "computed on fewer than 2,000 records, else 0]",
        ),
    ] = None,
    engine: Engine = "auto",
    seed: Seed = None,
    chains: Chains = None,
    warmup: Warmup = None,
    draws: Draws = None,
    adapt_delta: AdaptDelta = None,
    on_not_converged: OnNotConverged = "raise",
    file_format: FileFormat = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out of what is published; repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to publish as it is although it was named as risky; repeatable."),
    ] = None,
    identifier: Annotated[
        list[str] | None,
        typer.Option("--id", help="Column whose values are replaced by numbers; repeatable."),
    ] = None,
    households: Annotated[
        str | None,
        typer.Option(
            help="Make rows of a household agree, afterwards: unit=COLUMN and, of "
            "one=COLUMN:VALUE, at_most_one=COLUMN:VALUE, same=COLUMN, sums=COLUMN:SUMMED (several "
            "with + between) and eligible=RULE, what is asked; e.g. "
            "'unit=home,one=relation:head'."
        ),
    ] = None,
    total: Annotated[
        list[str] | None,
        typer.Option(
            help="Scale a synthesized column to PUBLIC totals, afterwards: COLUMN:total=NUMBER or "
            "COLUMN:by=COLUMN,LEVEL=NUMBER (more levels after commas), either with "
            "weights=COLUMN; repeatable."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Draw so many rows, afterwards; whole households with --households."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(help="With --rows: column that is public and stays as it is; repeatable."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to charge; refuses past its budget.")
    ] = None,
    allow_unlike: Annotated[
        bool,
        typer.Option(
            "--allow-unlike", help="Accept charges of unlike kinds in a ledger or a sequence."
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Release synthetic data: one column replaced, or several in sequence, the others kept."""
    _check_with(plan, calibration, (epsilon, reference, select), holds_no_released_record)
    design = survey_design(survey)
    asked = read_afterwards(
        households, total, rows, public, unit=unit or (None if design is None else design.unit)
    )
    if plan is not None:
        check_taken_by_plan(context)
        synthesize_by_plan(
            data, plan, out, mechanism=mechanism or ["censored"], epsilon=epsilon, delta=delta,
            select=select, holds_no_released_record=holds_no_released_record,
            reference=reference, relation=relation or "remove", n_synthetic=n_synthetic,
            one_draw=one_draw, seed=seed, engine=engine,
            settings=sampler_settings(chains, warmup, draws, adapt_delta),
            on_not_converged=on_not_converged, file_format=file_format, ledger=ledger,
            allow_unlike=allow_unlike, overwrite=overwrite, asked=asked,
        )  # fmt: skip
        return
    options: dict[str, Any] = {
        "scale": scale, "shift": shift, "transform": transform, "threshold": threshold,
        "draw_quantile": draw_quantile, "relation": relation, "safety_factor": safety_factor,
        "accounting": accounting, "delta": delta, "unit": unit, "support": support_of(support),
        "design": design, "reweighting": reweighting_of(reweight, k, single_step),
    }  # fmt: skip
    formulas, decisions = formula or [], Decisions.of(drop, keep, identifier)
    texts = with_target(mechanism or [], target_epsilon)
    check_target(target_epsilon, formulas, calibration, scale)
    said = {"allow_unlike": allow_unlike, "holds_no_released_record": holds_no_released_record}
    chosen = chosen_mechanism(texts, model or [], formulas, calibration, options, **said)
    settings = sampler_settings(chains, warmup, draws, adapt_delta)
    check_output_folder(out, overwrite=overwrite)
    m = check_count(n_synthetic, "--n-synthetic")
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if allow_unlike and ledger is None and len(formulas) < 2:
        raise InvalidInput("--allow-unlike goes with --ledger, or with several formulas")
    book = None if ledger is None else open_ledger(
        ledger, name=chosen.name, relation=chosen.relation, delta=chosen.delta_of_charge,
        allow_unlike=allow_unlike,
    )  # fmt: skip
    source = read_table(data)
    named = default_models(texts, model or [], formulas, source.frame)
    if named:
        chosen = chosen_mechanism(texts, named, formulas, calibration, options, **said)
    _check_columns(source.frame, chosen, decisions, asked)
    with progress_bars() as progress:
        release = release_within(
            chosen, source.frame, target_epsilon, n_synthetic=m,
            n_draws_released=1 if one_draw else None,
            leave_one_out=leave_one_out,
            seed=seed, engine=engine, settings=settings, on_not_converged=on_not_converged,
            progress=progress,
        )  # fmt: skip
    save_with_these(
        release, asked, source, decisions, out, seed=seed, overwrite=overwrite,
        file_format=file_format, ledger=book,
    )  # fmt: skip


def _check_with(
    plan: Path | None, calibration: Path | None, of_plan: Sequence[object], word: bool
) -> None:
    """Refuse options that only a plan, or a plan and a calibration, take."""
    if plan is None and any(own is not None for own in of_plan):
        raise InvalidInput(_WITH_PLAN)
    if word and plan is None and calibration is None:
        raise InvalidInput("--holds-no-released-record goes with --calibration, or with --plan")


def _check_columns(
    table: pd.DataFrame, mechanism: Mechanism, decisions: Decisions, asked: Afterwards
) -> None:
    """Columns that need a decision are named, and refused without one, before any fit; those that
    will hold sums of synthetic values need none. So is what cannot be done afterwards."""
    own, sums = mechanism.synthesizes, asked.sums
    if not set(own) <= set(table.columns):
        return  # what is wrong is said when the model is bound
    exposed = {**exposed_columns(table, own), **mechanism.undecided}
    exposed = {n: reason for n, reason in exposed.items() if n in table.columns and n not in sums}
    check_decided(exposed, decisions, [str(name) for name in table.columns], [*own, *sums])
    for name, reason in exposed.items():
        if name in decisions.keep:
            note(f"--keep {name}: it is published as it is, although {reason}")
    read = predictors_of(mechanism, table) if asked.rows is not None else []
    check_afterwards(asked, table, own, decisions, read)
