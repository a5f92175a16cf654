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
from pyhybrid.cli.options import build_model, sampler_settings
from pyhybrid.cli.shared_options import Engine, Model, OptionalModel, Overwrite, Seed, Workers
from pyhybrid.cli.study import commands as study_commands
from pyhybrid.cli.synthesize_command import synthesize

__all__ = ["run"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Synthetic microdata from Bayesian models with a formal privacy guarantee.",
)
app.add_typer(ledger_commands, name="ledger")
app.add_typer(study_commands, name="study")
app.command()(synthesize)
app.command()(measure_commands.utility)
app.command()(measure_commands.risk)
app.command()(mask)
app.command()(check_commands.audit)
app.command()(check_commands.validate)


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
