"""Options of `pyhybrid audit` and `pyhybrid validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.cli.options import sampler_settings

__all__ = ["audit", "validate"]


def audit(
    runs: Annotated[int, typer.Option(help="Of each noisy mechanism, on each database.")] = 3000,
    engine: Annotated[str, typer.Option(help="auto, cmdstan, embedded or rstan.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Check each strict mechanism against its stated epsilon; exit code 1 if one fails."""
    from pyhybrid.cli.audit import audit as command

    raise typer.Exit(command(runs=runs, engine=engine, as_json=as_json))


def validate(
    data: Annotated[
        Path | None, typer.Argument(help="Own records, .csv or .parquet. [default: generated]")
    ] = None,
    formula: Annotated[str | None, typer.Option(help="For DATA, e.g. 'visits ~ age'.")] = None,
    model: Annotated[
        str, typer.Option(help="As in `pyhybrid synthesize`: NAME or NAME:key=value,...")
    ] = "negative_binomial",
    engine: Annotated[
        str, typer.Option(help="Python's side: all that are found, auto, cmdstan or embedded.")
    ] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out rstan, which compiles for a minute.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Report, an HTML file.")] = None,
    seed: Annotated[int, typer.Option(help="All random numbers come from it.")] = 1,
    chains: Annotated[int | None, typer.Option(help="[default: 4]")] = None,
    warmup: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    draws: Annotated[int | None, typer.Option(help="Per chain. [default: 1000]")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what --out holds.")
    ] = False,
) -> None:
    """Hold Python against R on this machine; exit code 1 on any disagreement."""
    from pyhybrid.cli.validate import validate_command as command

    code = command(
        data,
        formula=formula,
        model=model,
        engine=engine,
        quick=quick,
        out=out,
        seed=seed,
        settings=sampler_settings(chains, warmup, draws, None),
        overwrite=overwrite,
    )
    raise typer.Exit(code)
