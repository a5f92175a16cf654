"""The commands and their options; each calls one function of its own module."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import pyhybrid
from pyhybrid.cli import check_commands, measure_commands
from pyhybrid.cli.console import naming_file
from pyhybrid.cli.ledger import commands as ledger_commands
from pyhybrid.cli.mask_command import mask
from pyhybrid.cli.options import build_model, chosen_mechanism, reweighting_of, sampler_settings
from pyhybrid.cli.study import commands as study_commands

__all__ = ["run"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Synthetic microdata from Bayesian models with a formal privacy guarantee.",
)
app.add_typer(ledger_commands, name="ledger")
app.add_typer(study_commands, name="study")
app.command()(measure_commands.utility)
app.command()(measure_commands.risk)
app.command()(mask)
app.command()(check_commands.audit)
app.command()(check_commands.validate)

Engine = Annotated[str, typer.Option(help="auto, cmdstan, embedded or rstan.")]
Seed = Annotated[
    int | None,
    typer.Option(help="For tests and papers; a release seed must stay secret."),
]
Workers = Annotated[int, typer.Option(help="Processes; the results do not depend on it.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out holds.")]


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Usage errors are one line and exit code 2."""
    command = typer.main.get_command(app)
    try:
        result = command.main(args=list(arguments), prog_name="pyhybrid", standalone_mode=False)
    except OSError as error:
        raise naming_file(error) from None
    except Exception as error:
        # typer's usage errors; their class has moved between its versions, this method has not.
        explain = getattr(error, "format_message", None)
        if explain is None:
            raise
        print(f"pyhybrid: {' '.join(explain().split())}", file=sys.stderr)
        return 2
    if result == 130:  # typer's way to say that it caught Ctrl-C
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(f"pyhybrid {pyhybrid.__version__}")
        raise typer.Exit


_MODEL_HELP = (
    "negative_binomial, poisson, beta, beta_regression, normal, mixture, bernoulli or stan; with "
    "options as NAME:key=value,..., e.g. beta:lower=0,upper=100, bernoulli:levels=no+yes or "
    "stan:program=own.stan,predict=y_rep"
)
_CHOSEN = "[default: negative_binomial for a column of counts; others must name one]"
Model = Annotated[str, typer.Option(help=_MODEL_HELP)]


OptionalModels = Annotated[
    list[str] | None,
    typer.Option(help=f"{_MODEL_HELP}; once, or once per formula {_CHOSEN}"),
]
OptionalModel = Annotated[str | None, typer.Option(help=f"{_MODEL_HELP} {_CHOSEN}")]


@app.command()
def synthesize(
    data: Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")],
    out: Annotated[Path, typer.Option(help="Folder for the release, new or empty.")],
    formula: Annotated[
        list[str] | None,
        typer.Option(
            help="As in R, e.g. 'visits ~ age + region'; several are synthesised in sequence, "
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
        str | None, typer.Option(help="Neighbours: remove or replace a record. [default: remove]")
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


@app.command()
def compare(
    data: Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")],
    formula: Annotated[str, typer.Option(help="As in R, e.g. 'visits ~ age + region'.")],
    out: Annotated[Path, typer.Option(help="Folder for the comparison, new or empty; private.")],
    model: OptionalModel = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME or NAME:key=value,..., e.g. lipschitz:scale=0.7,reweighting=true; as often "
            "as there are candidates. [default: unweighted, lipschitz and count, and the last "
            "two re-weighted]"
        ),
    ] = None,
    n_synthetic: Annotated[int, typer.Option(help="m, of each mechanism.")] = 20,
    one_draw: Annotated[
        bool, typer.Option("--one-draw", help="All sets from one draw, at the price of one.")
    ] = False,
    workers: Workers = 1,
    engine: Engine = "auto",
    seed: Seed = None,
    chains: Annotated[int | None, typer.Option(help="[default: 4]")] = None,
    warmup: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    draws: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    adapt_delta: Annotated[float | None, typer.Option(help="[default: 0.9]")] = None,
    on_not_converged: Annotated[str, typer.Option(help="raise or warn.")] = "raise",
    overwrite: Overwrite = False,
) -> None:
    """Several mechanisms on one data set: bounds, epsilons, weights, estimates. Confidential."""
    from pyhybrid.cli.compare import compare as command

    command(
        data,
        build_model(model, formula),
        mechanism or (),
        out=out,
        n_synthetic=n_synthetic,
        one_draw=one_draw,
        workers=workers,
        seed=seed,
        engine=engine,
        settings=sampler_settings(chains, warmup, draws, adapt_delta),
        on_not_converged=on_not_converged,
        overwrite=overwrite,
    )


@app.command()
def curve(
    data: Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")],
    formula: Annotated[str, typer.Option(help="As in R, e.g. 'visits ~ age + region'.")],
    out: Annotated[Path, typer.Option(help="Folder for the curve, new or empty; private.")],
    scales: Annotated[str, typer.Option(help="c, with commas between.")] = "1,0.8,0.6,0.4",
    shifts: Annotated[
        str, typer.Option(help="g, with commas between; all pairs are fitted.")
    ] = "0",
    model: OptionalModel = None,
    n_synthetic: Annotated[int, typer.Option(help="m, sets at each point.")] = 20,
    workers: Workers = 1,
    engine: Engine = "auto",
    seed: Seed = None,
    chains: Annotated[int | None, typer.Option(help="[default: 4]")] = None,
    warmup: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    draws: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    adapt_delta: Annotated[float | None, typer.Option(help="[default: 0.9]")] = None,
    on_not_converged: Annotated[str, typer.Option(help="raise or warn.")] = "raise",
    overwrite: Overwrite = False,
) -> None:
    """Risk-utility curve over (scale, shift), against scalar weights. Resumable. Confidential."""
    from pyhybrid.cli.curve import curve as command

    command(
        data,
        build_model(model, formula),
        scales=scales,
        shifts=shifts,
        out=out,
        n_synthetic=n_synthetic,
        workers=workers,
        seed=seed,
        engine=engine,
        settings=sampler_settings(chains, warmup, draws, adapt_delta),
        on_not_converged=on_not_converged,
        overwrite=overwrite,
    )


@app.command()
def calibrate(
    data: Annotated[Path, typer.Argument(help="Reference records, .csv or .parquet.")],
    formula: Annotated[str, typer.Option(help="As in R, e.g. 'salary ~ gender'.")],
    epsilon: Annotated[float, typer.Option(help="Of one released draw; sets the cap.")],
    out: Annotated[Path, typer.Option(help="Folder for the calibration, new or empty; private.")],
    model: Model = "beta",
    relation: Annotated[str, typer.Option(help="remove or replace.")] = "remove",
    scale: Annotated[float | None, typer.Option(help="c of the weights.")] = None,
    shift: Annotated[float | None, typer.Option(help="g of the weights.")] = None,
    n_draws: Annotated[int, typer.Option(help="Reference draws to keep.")] = 1000,
    center: Annotated[
        bool | None,
        typer.Option(help="Clip how far a term moves from the reference, or its size."),
    ] = None,
    region: Annotated[
        float, typer.Option(help="Of exact sampling, in the reference's standard deviations.")
    ] = 10.0,
    public: Annotated[
        bool, typer.Option("--public", help="The reference is public: the statement shows it.")
    ] = False,
    engine: Engine = "auto",
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Freeze weights and cap on reference records, for strict releases of new ones."""
    from pyhybrid.cli.calibrate import calibrate_from_file as command

    command(
        data,
        build_model(model, formula),
        epsilon=epsilon,
        relation=relation,
        scale=scale,
        shift=shift,
        n_draws=n_draws,
        center=center,
        region=region,
        public=public,
        seed=seed,
        engine=engine,
        out=out,
        overwrite=overwrite,
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the release.")] = Path("pyhybrid-demo"),
    engine: Engine = "auto",
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """A release of real data: outpatient visits of the RAND Health Insurance Experiment."""
    from pyhybrid.cli.synthesize import demo as command

    command(out=out, engine=engine, seed=seed, overwrite=overwrite)


@app.command()
def report(
    name: Annotated[
        str | None, typer.Argument(help="Name or number; without it, the notebooks are listed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="HTML file. [default: NAME.html]")] = None,
    size: Annotated[str, typer.Option(help="quick or paper.")] = "quick",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out.")] = False,
) -> None:
    """A notebook of the papers' studies, executed here, as one HTML page."""
    from pyhybrid.cli.report import report as command

    command(name, out=out, size=size, overwrite=overwrite)


@app.command()
def doctor(
    every_engine: Annotated[
        bool, typer.Option("--all", help="Try rstan, too, which compiles for a minute.")
    ] = False,
) -> None:
    """Which engines can run here, what is missing, and the command that mends it."""
    from pyhybrid.cli.doctor import doctor as command

    raise typer.Exit(command(every_engine=every_engine))
