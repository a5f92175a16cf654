"""`pyhybrid validate`: Python against R on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.options import build_model, sampler_settings
from pyhybrid.cli.parameters import Chains, Draws, ModelInShort, Overwrite, Warmup
from pyhybrid.cli.tables import read_table
from pyhybrid.core.errors import InvalidInput
from pyhybrid.running.files import check_new_file
from pyhybrid.validation.agreement import Row, Validation
from pyhybrid.validation.agreement import validate as compared
from pyhybrid.validation.agreement.validation import UNITS

__all__ = ["validate"]

_LONGEST = 24  # characters of a word in the first column


def validate(
    data: Annotated[
        Path | None, typer.Argument(help="Own records, .csv or .parquet. \\[default: generated]")
    ] = None,
    formula: Annotated[str | None, typer.Option(help="For DATA, e.g. 'visits ~ age'.")] = None,
    model: ModelInShort = "negative_binomial",
    engine: Annotated[
        str, typer.Option(help="Python's side: all that are found, auto, cmdstan or embedded.")
    ] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out rstan, which compiles for about a minute.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Report, an HTML file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 1,
    chains: Chains = None,
    warmup: Warmup = None,
    draws: Draws = None,
    overwrite: Overwrite = False,
) -> int:
    """Compare Python with R on this machine; exit code 1 on any disagreement."""
    if (data is None) != (formula is None):
        raise InvalidInput("DATA and --formula must be given together, or neither of them")
    if out is not None:
        check_new_file(out, overwrite=overwrite, what="report")
    table = None if data is None else read_table(data).frame
    chosen = model if formula is None else build_model(model, formula)
    with progress_bars() as progress:
        found = compared(
            table,
            chosen,
            engine=engine,
            quick=quick,
            seed=seed,
            settings=sampler_settings(chains, warmup, draws, None),
            progress=progress,
        )
    if out is not None:
        found.save(out, overwrite=overwrite)
    _show(found, out)
    return 0 if found.agrees else 1


def _show(found: Validation, out: Path | None) -> None:
    for part in dict.fromkeys(row.part for row in found.rows):
        show(_table(part, [row for row in found.rows if row.part == part]))
    for cause in found.left_out:
        show(f"left out: {escape(cause)}")
    if out is not None:
        kept = "confidential: it holds bounds and weights" if found.own_data else "can be published"
        show(f"report: {escape(str(out))} ({kept})")
    show(f"\n{found.verdict}{':' if found.disagreements else '.'}")
    for row in found.disagreements:
        show(
            f"  {escape(row.part)}: {escape(row.quantity)}: {row.sides[0]} {row.python:.6g}, "
            f"{row.sides[1]} {row.r:.6g}",
            f"    {UNITS[row.unit]} {row.difference:.2g}; agreement is at most {row.tolerance:.2g}",
        )


def _broken(quantity: str) -> str:
    """Names of functions that are too long for a column go on in a second line, after a "_"."""
    words = []
    for word in quantity.split(" "):
        at = word.rfind("_", 0, _LONGEST) + 1
        words.append(f"{word[:at]}\n{word[at:]}" if len(word) > _LONGEST and at else word)
    return " ".join(words)


def _table(part: str, rows: list[Row]) -> Table:
    title = f"{part[0].upper()}{part[1:]} ({UNITS[rows[0].unit]})"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("quantity")
    for name in (*rows[0].sides, "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(
            escape(_broken(row.quantity)),
            f"{row.python:.6g}",
            f"{row.r:.6g}",
            f"{row.difference:.2g}",
            "agrees" if row.agrees else "[bold red]DISAGREES[/bold red]",
        )
    return table
