"""`pyhybrid curve`: the risk-utility curve, for the data owner's eyes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.options import build_model, sampler_settings
from pyhybrid.cli.parameters import (
    Accounting,
    AdaptDelta,
    Chains,
    Data,
    Delta,
    Draws,
    Engine,
    Formula,
    OnNotConverged,
    OptionalModel,
    Overwrite,
    Seed,
    Warmup,
    Workers,
)
from pyhybrid.cli.tables import read_table
from pyhybrid.core.checks import check_count, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models import default_name
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.running.files import write_folder
from pyhybrid.studies.comparing.curve import NOT_COVERED, RiskUtilityCurve, risk_utility_curve

__all__ = ["curve", "numbers"]

_ERRORS = "The last two: absolute errors of mean and 90th percentile."


def curve(
    data: Data,
    formula: Formula,
    out: Annotated[Path, typer.Option(help="Folder for the curve, new or empty; private.")],
    scales: Annotated[
        str, typer.Option(help="Values of c, separated by commas.")
    ] = "1,0.8,0.6,0.4",
    shifts: Annotated[
        str, typer.Option(help="Values of g, separated by commas; all pairs are fitted.")
    ] = "0",
    model: OptionalModel = None,
    accounting: Accounting = None,
    delta: Delta = None,
    n_synthetic: Annotated[int, typer.Option(help="m, the number of sets at each point.")] = 20,
    workers: Workers = 1,
    engine: Engine = "auto",
    seed: Seed = None,
    chains: Chains = None,
    warmup: Warmup = None,
    draws: Draws = None,
    adapt_delta: AdaptDelta = None,
    on_not_converged: OnNotConverged = "raise",
    overwrite: Overwrite = False,
) -> None:
    """Risk-utility curve over (scale, shift), against scalar weights. Resumable. Confidential."""
    chosen = build_model(model, formula)
    grid = numbers(scales, "--scales"), numbers(shifts, "--shifts")
    check_output_folder(out, overwrite=overwrite)
    m = check_count(n_synthetic, "--n-synthetic")
    check_count(workers, "--workers")
    source = read_table(data)
    if model is None:
        chosen = build_model(default_name(formula, source.frame), formula)
    chosen.bind(source.frame)  # bad data leave no file behind
    # Finished points outlive an interruption: they wait here, private as well.
    points = Path(f"{os.path.normpath(out)}.points.jsonl")
    try:
        with progress_bars() as progress:
            found = risk_utility_curve(
                chosen,
                source.frame,
                scales=grid[0],
                shifts=grid[1],
                n_synthetic=m,
                accounting="gaussian" if accounting is None else accounting,
                delta=1e-6 if delta is None else delta,
                seed=seed,
                engine=engine,
                settings=sampler_settings(chains, warmup, draws, adapt_delta),
                on_not_converged=on_not_converged,
                workers=workers,
                results=points,
                progress=progress,
            )
    except BaseException:
        _tell_of(points)
        raise
    _save(found, out, points, overwrite)
    _show(found, out)


def numbers(text: str, option: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"{option} must be numbers with commas between: found {text!r}"
        ) from None


def _tell_of(points: Path) -> None:
    """Say where finished points are; remove a file that holds none."""
    if not points.exists():
        return
    lines = points.read_bytes().count(b"\n")
    if lines < 2:
        points.unlink()
        return
    message = f"{lines - 1} finished points are kept in {points} (confidential); the same command "
    print(f"pyhybrid: {message}goes on from there", file=sys.stderr)


def _save(found: RiskUtilityCurve, out: Path, points: Path, overwrite: bool) -> None:
    from pyhybrid.reports.curve import curve_report
    from pyhybrid.reports.figures.curve import plot_curve
    from pyhybrid.reports.figures.mechanisms import figure_png

    contents: dict[str, str | bytes] = {
        "table.csv": found.table.to_csv(index=False),
        "curve.png": figure_png(plot_curve(found.table)),
        "report.html": curve_report(found),
        "points.jsonl": points.read_bytes(),
    }
    write_folder(out, contents, overwrite=overwrite)
    points.unlink()


def _show(found: RiskUtilityCurve, out: Path) -> None:
    from pyhybrid.reports.curve import epsilon_words
    from pyhybrid.reports.figures.curve import MEASURES
    from pyhybrid.reports.numbers import number_text

    title = f"{escape(found.outcome)}: risk and utility (confidential)"
    caption = f"{epsilon_words(found.table)} {_ERRORS}"
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for name in (
        "",
        "scale, shift",
        "epsilon",
        "counted by",
        "max-ECDF",
        "avg-ECDF",
        "mean",
        "90th",
    ):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for _, row in found.table.iterrows():
        place = "" if row["mechanism"] == "Unweighted" else f"{row['scale']:g}, {row['shift']:g}"
        shown = (number_text(row[name]) for name in MEASURES)
        cost = epsilon_text(float(row["epsilon"])), str(row["accounting"])
        table.add_row(str(row["mechanism"]), place, *cost, *shown)
    resumed = f"; {found.points_resumed} were there already" if found.points_resumed else ""
    show(table)
    show(
        f"\n{(len(found.table) - 1) // 2} points, {found.n_synthetic} sets each{resumed}",
        f"{out}/  CONFIDENTIAL, to keep: table.csv, curve.png, report.html, points.jsonl",
        f"\n{NOT_COVERED}",
    )
