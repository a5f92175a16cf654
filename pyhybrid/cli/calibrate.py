"""`pyhybrid calibrate`: freeze a reference for strict censored releases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.checks import check_output_folder
from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.options import build_model
from pyhybrid.cli.parameters import Engine, Model, Overwrite, Seed
from pyhybrid.cli.tables import read_table
from pyhybrid.mechanisms.calibration import calibrate as frozen
from pyhybrid.models import default_name

__all__ = ["calibrate"]


def calibrate(
    data: Annotated[Path, typer.Argument(help="Reference records, .csv or .parquet.")],
    formula: Annotated[str, typer.Option(help="As in R, e.g. 'salary ~ gender'.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon of one released draw; sets the cap.")],
    out: Annotated[Path, typer.Option(help="Folder for the calibration, new or empty; private.")],
    model: Model = "beta",
    relation: Annotated[
        str, typer.Option(help="Neighbors: remove or replace a record.")
    ] = "remove",
    scale: Annotated[float | None, typer.Option(help="c: scale of the weights.")] = None,
    shift: Annotated[float | None, typer.Option(help="g: shift of the weights.")] = None,
    n_draws: Annotated[int, typer.Option(help="Number of reference draws to keep.")] = 1000,
    center: Annotated[
        bool | None,
        typer.Option(
            help="Clip how far a term moves from the reference; --no-center clips its size."
        ),
    ] = None,
    region: Annotated[
        float,
        typer.Option(
            help="Half-width of the grid of exact sampling, in the reference's standard deviations."
        ),
    ] = 10.0,
    public: Annotated[
        bool, typer.Option("--public", help="The reference is public: the statement shows it.")
    ] = False,
    engine: Engine = "auto",
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Freeze weights and cap on reference records, for strict releases of new ones."""
    check_output_folder(out, overwrite=overwrite)
    source = read_table(data)
    with progress_bars() as progress:
        made = frozen(
            build_model(model or default_name(formula, source.frame), formula),
            source.frame,
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
            progress=progress,
        )
    made.save(out, overwrite=overwrite)
    how = "without a center"
    if made.center is not None:
        how = f"centered, releases sampled {'exactly' if made.center.sd else 'by chains'}"
    show(
        f"calibration of {len(source.frame)} reference records: cap {made.cap:g} nats, {how}, "
        f"{made.draws.n_draws} draws, {made.censored:.1%} of the reference meet the cap",
        f"{out}/ is confidential: it holds draws and extremes of the reference",
    )
