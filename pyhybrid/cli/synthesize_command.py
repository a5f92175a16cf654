"""The options of `pyhybrid synthesize`; the work is in `pyhybrid.cli.synthesize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.cli.options import chosen_mechanism, reweighting_of, sampler_settings
from pyhybrid.cli.shared_options import Engine, OptionalModels, Overwrite, Seed

__all__ = ["synthesize"]


def synthesize(
    data: Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")],
    out: Annotated[Path, typer.Option(help="Folder for the release, new or empty.")],
    formula: Annotated[
        list[str] | None,
        typer.Option(
            help="As in R, e.g. 'visits ~ age + region'; several are synthesized in sequence, "
            "each given those before it."
        ),
    ] = None,
    model: OptionalModels = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            help="unweighted, lipschitz, count, scalar, truncated, censored or "
            "perturbed_histogram; with options as NAME:key=value,..., e.g. "
            "count:radius=0.2,pattern=sex+region, scalar:target_epsilon=5, "
            "perturbed_histogram:lower=0,upper=100,n_bins=50,epsilon=1; once, or once per formula"
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(help="Folder of `pyhybrid calibrate`: a strict censored release."),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="c: lowers all weights when below 1. [default: 1]")
    ] = None,
    shift: Annotated[
        float | None, typer.Option(help="g: lowers all weights when negative. [default: 0]")
    ] = None,
    transform: Annotated[
        str | None,
        typer.Option(help="linear, reciprocal, threshold, logistic, softmax. [default: linear]"),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="f* in nats, for --transform threshold.")
    ] = None,
    draw_quantile: Annotated[
        float | None, typer.Option(help="Drop draws above this quantile. [default: 1]")
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="Neighbors: remove or replace a record. [default: remove]")
    ] = None,
    safety_factor: Annotated[
        float | None, typer.Option(help="s in epsilon = 2 s bound. [default: 1]")
    ] = None,
    accounting: Annotated[
        str | None,
        typer.Option(
            help="How epsilon is counted: gaussian, range, lipschitz. [default: gaussian]"
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Of gaussian accounting, below 1 / n. [default: 1e-6]")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Column whose equal values are one person's rows: epsilon by person."),
    ] = None,
    reweight: Annotated[
        bool, typer.Option("--reweight", help="Raise weights that leave slack below the bound.")
    ] = False,
    k: Annotated[float | None, typer.Option("--k", help="With --reweight. [default: 0.95]")] = None,
    single_step: Annotated[
        bool,
        typer.Option("--single-step", help="With --reweight: one step at this k, as published."),
    ] = False,
    n_synthetic: Annotated[int, typer.Option(help="m, the number of synthetic data sets.")] = 1,
    one_draw: Annotated[
        bool, typer.Option("--one-draw", help="All sets from one draw, at the price of one.")
    ] = False,
    leave_one_out: Annotated[
        int,
        typer.Option(
            help="Also fit without each of the K records that most is told about, as evidence in "
            "the confidential report; charges the larger number."
        ),
    ] = 0,
    engine: Engine = "auto",
    seed: Seed = None,
    chains: Annotated[int | None, typer.Option(help="[default: 4]")] = None,
    warmup: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    draws: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    adapt_delta: Annotated[float | None, typer.Option(help="[default: 0.9]")] = None,
    on_not_converged: Annotated[str, typer.Option(help="raise or warn.")] = "raise",
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv or parquet. [default: as DATA]")
    ] = None,
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
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to charge; refuses past its budget.")
    ] = None,
    allow_unlike: Annotated[
        bool,
        typer.Option("--allow-unlike", help="In a ledger or a sequence: unlike charges, too."),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Release synthetic data: one column replaced, or several in sequence, the others kept."""
    from pyhybrid.cli.synthesize import synthesize as command
    from pyhybrid.releases.decisions import Decisions

    options = {
        "scale": scale,
        "shift": shift,
        "transform": transform,
        "threshold": threshold,
        "draw_quantile": draw_quantile,
        "relation": relation,
        "safety_factor": safety_factor,
        "accounting": accounting,
        "delta": delta,
        "unit": unit,
        "reweighting": reweighting_of(reweight, k, single_step),
    }
    command(
        data,
        chosen_mechanism(mechanism or [], model or [], formula or [], calibration, options),
        out=out,
        n_synthetic=n_synthetic,
        one_draw=one_draw,
        leave_one_out=leave_one_out,
        seed=seed,
        engine=engine,
        settings=sampler_settings(chains, warmup, draws, adapt_delta),
        on_not_converged=on_not_converged,
        overwrite=overwrite,
        file_format=file_format,
        decisions=Decisions.of(drop, keep, identifier),
        ledger=ledger,
        allow_unlike=allow_unlike,
    )
