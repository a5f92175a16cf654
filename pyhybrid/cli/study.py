"""`pyhybrid study list | run | summary | table`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pyhybrid.core.checks import check_choice, check_count
from pyhybrid.core.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

    from pyhybrid.studies import StudyResult

__all__ = ["commands"]

commands = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="The papers' studies, beside the published numbers.",
)
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Results of `study run`.")]


@commands.command("list")
def list_studies() -> None:
    """The studies, what they are of, and their sizes."""
    from pyhybrid.cli.console import show
    from pyhybrid.studies import STUDIES

    table = Table(title="Studies", title_justify="left")
    for column in ("name", "title", "source", "settings", "databases: quick", "paper"):
        table.add_column(column)
    for study in STUDIES.values():
        sizes = (str(study.quick.replicates), str(study.paper.replicates))
        table.add_row(
            study.name, study.title, escape(study.source), ", ".join(study.settings), *sizes
        )
    show(table, "\nDatabases are counted per setting.")


@commands.command()
def run(
    name: Annotated[str, typer.Argument(help="A to I; see `study list`.")],
    out: Annotated[Path, typer.Option(help="Folder of the results; a run goes on where it was.")],
    size: Annotated[str, typer.Option(help="quick (about a minute) or paper.")] = "quick",
    replicates: Annotated[
        int | None, typer.Option(help="Databases per setting. \\[default: as the size]")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes; the results do not depend on it.")] = 1,
    seed: Annotated[int, typer.Option(help="Root of all random numbers.")] = 1,
    engine: Annotated[str, typer.Option(help="auto, cmdstan, embedded or rstan.")] = "auto",
    data: Annotated[
        Path | None, typer.Option(help="Real records for a study that takes them (E).")
    ] = None,
) -> int:
    """Run a study, or what is missing of it; exit code 1 if a database failed."""
    from pyhybrid.cli.console import progress_bars, show
    from pyhybrid.studies import STUDIES, run_study

    study = STUDIES[check_choice(name.upper(), "the study", STUDIES)]
    if replicates is not None:
        check_count(replicates, "--replicates")
    check_count(workers, "--workers")
    with progress_bars() as progress:
        result = run_study(
            study,
            out=out,
            size=size,
            replicates=replicates,
            seed=seed,
            engine=engine,
            data=data,
            workers=workers,
            progress=progress,
        )
    _show(result)
    if result.failed:
        lines = [escape(f"  {label}: {message}") for label, message in result.failed.items()]
        show(f"\n{len(lines)} database(s) failed; run again to try them anew:", *lines)
        return 1
    return 0


@commands.command()
def summary(
    folder: Folder,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the summary here, too.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --csv.")] = False,
) -> None:
    """Means with Monte Carlo errors of what is finished, beside the published numbers."""
    from pyhybrid.studies import load_study

    _check_new(csv, overwrite=overwrite)
    result = load_study(folder)
    _show(result)
    if csv is not None:
        _write(csv, result.summary.to_csv(index=False))


@commands.command()
def table(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Of `study run`.")],
    out: Annotated[Path, typer.Option(help="Markdown file to write.")],
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write all summaries here: what the page is of.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace --out and --csv.")
    ] = False,
) -> None:
    """The reproduction table of several studies as a page."""
    from pyhybrid.cli.console import show
    from pyhybrid.studies import STUDIES, load_study
    from pyhybrid.studies.runner import made_with, reproduction_page, stacked

    _check_new(out, csv, overwrite=overwrite)
    results = sorted((load_study(folder) for folder in folders), key=lambda r: r.study)
    names = [result.study for result in results]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInput(f"each study must be given once: {twice[0]} is there twice")
    summaries = {result.study: result.summary for result in results}
    _write(out, reproduction_page(STUDIES, summaries, made_with(results)))
    if csv is not None:
        _write(csv, stacked(summaries).to_csv(index=False))
    show(f"{out}: studies {', '.join(names)}")


def _show(result: StudyResult) -> None:
    from pyhybrid.cli.console import show
    from pyhybrid.studies import STUDIES
    from pyhybrid.studies.runner import reproduce

    study, found = STUDIES[result.study], result.summary
    title = escape(f"Study {study.name}: {study.title} ({study.source})")
    show(_summary_table(title, found))
    lines = reproduce(study, found)
    if lines:
        beside = Table(title="Beside the published numbers", title_justify="left")
        for column in ("quantity", "published", "ours", "", "note"):
            beside.add_column(column)
        for line in lines:
            verdict = "agrees" if line.agrees else "differs"
            beside.add_row(line.quantity, line.published, line.ours, verdict, line.why)
        show(beside)


def _summary_table(title: str, found: pd.DataFrame) -> Table:
    from pyhybrid.reports.numbers import number_text

    table = Table(title=title, title_justify="left")
    for column in found.columns:
        table.add_column(str(column).replace("_", " "))
    for row in found.itertuples(index=False):
        table.add_row(*map(number_text, row))
    return table


def _check_new(*paths: Path | None, overwrite: bool) -> None:
    for path in paths:
        if path is not None and path.exists() and not overwrite:
            raise InvalidInput(f"{path} must be a new file: give --overwrite or another")


def _write(path: Path, text: str) -> None:
    from pyhybrid.core.errors import SaveFailed

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SaveFailed(f"{path} cannot be written: {error}") from None
