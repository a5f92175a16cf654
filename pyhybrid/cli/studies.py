"""`pyhybrid study` and `pyhybrid notebook`: the papers' studies, and their notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from pyhybrid.cli.console import progress_bars, show, table_of
from pyhybrid.cli.options import check_once, options
from pyhybrid.core.checks import check_choice, check_count, number_of
from pyhybrid.core.errors import InvalidInput, SaveFailed
from pyhybrid.reports.notebooks import find_notebook, notebook_names, render_notebook
from pyhybrid.running.files import check_new_file

if TYPE_CHECKING:
    from pyhybrid.studies import StudyResult

commands = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Run the papers' studies, and compare them with the published numbers.",
)


@commands.command("list")
def list_studies() -> None:
    """List the studies, their subjects and their sizes."""
    from pyhybrid.studies import STUDIES

    header = ("name", "title", "source", "settings", "databases: quick", "paper")
    rows = (
        [study.name, study.title, escape(study.source), ", ".join(study.settings),
         str(study.quick.replicates), str(study.paper.replicates)]
        for study in STUDIES.values()
    )  # fmt: skip
    table = table_of("Studies", header, rows, left=header)
    show(table, "\nDatabases are counted per setting.")


@commands.command()
@options
def run(
    name: str,
    out: Path,
    size: str = "quick",
    replicates: int | None = None,
    workers: int = 1,
    seed: int = 1,
    engine: str = "auto",
    data: Path | None = None,
    program: str = "default",
) -> int:
    """Run a study, or what is missing of it; exit code 1 if a database failed.

    Options:
    name (argument): A to J; see `study list`.
    out: Folder of the results; a stopped run resumes there.
    size: quick (about a minute) or paper.
    replicates: Databases per setting. [default: as the size]
    seed: Root of all random numbers.
    data: Records for a study that takes them (E) or cannot do without (J: csrg.csv).
    program: default, or published for that which the paper prints (A to E).
    """
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
            program=program,
            workers=workers,
            progress=progress,
        )
    _show(result)
    if result.failed:
        lines = [escape(f"  {label}: {message}") for label, message in result.failed.items()]
        show(f"\n{number_of(len(lines), 'database')} failed; run again to try them anew:", *lines)
        return 1
    return 0


@commands.command()
@options
def summary(folder: Path, csv: Path | None = None, overwrite: bool = False) -> None:
    """Show means with Monte Carlo errors of finished databases beside the published numbers.

    Options:
    folder (FOLDER): Results of `study run`.
    csv: Write the summary here, too.
    overwrite: Replace --csv.
    """
    from pyhybrid.studies import load_study

    if csv is not None:
        check_new_file(csv, overwrite=overwrite)
    result = load_study(folder)
    _show(result)
    if csv is not None:
        _write(csv, result.summary.to_csv(index=False))


@commands.command()
@options
def table(folders: list[Path], out: Path, csv: Path | None = None, overwrite: bool = False) -> None:
    """Write the reproduction table of several studies.

    Options:
    folders (FOLDER...): Folders that `study run` wrote.
    out: Markdown file to write.
    csv: CSV file to write all summaries of the page to.
    overwrite: Replace --out and --csv.
    """
    from pyhybrid.studies import STUDIES, load_study
    from pyhybrid.studies.runner import made_with, reproduction_page, stacked

    for path in (out, csv):
        if path is not None:
            check_new_file(path, overwrite=overwrite)
    results = sorted((load_study(folder) for folder in folders), key=lambda r: r.label)
    names = [result.label for result in results]
    check_once(names, "study")
    summaries = {result.label: result.summary for result in results}
    _write(out, reproduction_page(STUDIES, summaries, made_with(results)))
    if csv is not None:
        _write(csv, stacked(summaries).to_csv(index=False))
    show(f"{out}: studies {', '.join(names)}")


def _show(result: StudyResult) -> None:
    from pyhybrid.reports.page import number_text
    from pyhybrid.studies import STUDIES
    from pyhybrid.studies.runner import reproduce

    study, found = STUDIES[result.study], result.summary
    title = escape(f"Study {study.name}: {study.title} ({study.source})")
    columns = [str(column).replace("_", " ") for column in found.columns]
    rows = ([number_text(value) for value in row] for row in found.itertuples(index=False))
    show(table_of(title, columns, rows, left=columns))
    lines = reproduce(study, found)
    if lines:
        header = ("quantity", "published", "ours", "", "note")
        beside = (
            [line.quantity, line.published, line.ours, "agrees" if line.agrees else "differs",
             line.why]
            for line in lines
        )  # fmt: skip
        show(table_of("Beside the published numbers", header, beside, left=header))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SaveFailed(f"{path} cannot be written: {error}") from None


@options
def notebook(
    name: str | None = None, out: Path | None = None, size: str = "quick", overwrite: bool = False
) -> None:
    """Execute a notebook of the papers' studies, and write it as one HTML page.

    Options:
    name (argument): Name or number; without it, the notebooks are listed.
    out: HTML file. [default: NAME.html]
    size: quick or paper.
    overwrite: Replace --out.
    """
    if name is None:
        show("Notebooks:", *(f"  {each}" for each in notebook_names()))
        return
    source = find_notebook(name)
    target = out or Path(f"{source.stem}.html")
    check_new_file(target, overwrite=overwrite)
    if not target.parent.is_dir():
        raise InvalidInput(f"{target} must be a file in a folder that exists: it is not")
    with progress_bars() as progress:
        page = render_notebook(source, size=size, progress=progress)
    _write(target, page)
    show(f"{target}: {source.name} at {size} size")
