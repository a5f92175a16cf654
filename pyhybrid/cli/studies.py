"""`pyhybrid study` and `pyhybrid notebook`: the papers' studies, and their notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.markup import escape

from pyhybrid.cli.console import frame_table, progress_bars, show
from pyhybrid.cli.options import check_once
from pyhybrid.core.checks import check_choice, check_count, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.reports.notebooks import find_notebook, notebook_names, render_notebook
from pyhybrid.running.files import check_new_file, write_files

if TYPE_CHECKING:
    from pyhybrid.studies import StudyResult


def study_list() -> None:
    """List the studies, their subjects and their sizes."""
    from pyhybrid.studies import STUDIES

    rows = [
        (study.name, study.title, study.source, ", ".join(study.settings),
         study.quick.replicates, study.paper.replicates)
        for study in STUDIES.values()
    ]  # fmt: skip
    names = ["name", "title", "source", "settings", "databases: quick", "paper"]
    show(frame_table("Studies", pd.DataFrame(rows, columns=names)))
    show("\nDatabases are counted per setting.")


def study_run(
    name: str,
    *,
    out: Path,
    size: str = "quick",
    replicates: int | None = None,
    workers: int = 1,
    seed: int = 1,
    engine: str = "auto",
    data: Path | None = None,
) -> int:
    """Run a study, or what is missing of it; exit code 1 if a database failed."""
    from pyhybrid.studies import STUDIES, run_study

    study = STUDIES[check_choice(name.upper(), "the study", STUDIES)]
    if replicates is not None:
        check_count(replicates, "--replicates")
    check_count(workers, "--workers")
    with progress_bars() as progress:
        result = run_study(
            study, out=out, size=size, replicates=replicates, seed=seed, engine=engine, data=data,
            workers=workers, progress=progress,
        )  # fmt: skip
    _show(result)
    if result.failed:
        lines = [escape(f"  {label}: {message}") for label, message in result.failed.items()]
        show(f"\n{number_of(len(lines), 'database')} failed; run again to try them anew:", *lines)
        return 1
    return 0


def study_summary(folder: Path) -> None:
    """Show means with Monte Carlo errors of finished databases beside the published numbers."""
    from pyhybrid.studies import load_study

    _show(load_study(folder))


def study_table(
    folders: list[Path], *, out: Path, csv: Path | None = None, overwrite: bool = False
) -> None:
    """Write the reproduction table of several studies."""
    from pyhybrid.studies import STUDIES, load_study
    from pyhybrid.studies.runner import made_with, reproduction_page

    results = sorted((load_study(folder) for folder in folders), key=lambda r: r.study)
    names = [result.study for result in results]
    check_once(names, "study")
    summaries = {result.study: result.summary for result in results}
    files: dict[Path, str | bytes] = {
        out: reproduction_page(STUDIES, summaries, made_with(results))
    }
    if csv is not None:
        files[csv] = pd.concat(summaries, names=["study"]).droplevel(1).to_csv()
    write_files(files, private=False, overwrite=overwrite)
    show(f"{out}: studies {', '.join(names)}")


def _show(result: StudyResult) -> None:
    from pyhybrid.studies import STUDIES
    from pyhybrid.studies.runner import reproduce

    study = STUDIES[result.study]
    show(frame_table(f"Study {study.name}: {study.title} ({study.source})", result.summary))
    lines = reproduce(study, result.summary).drop(columns="study")
    if len(lines):
        header = {"verdict": "", "why": "note"}
        show(frame_table("Beside the published numbers", lines.rename(columns=header)))


def notebook(
    name: str | None = None,
    *,
    out: Path | None = None,
    size: str = "quick",
    overwrite: bool = False,
) -> None:
    """List the notebooks, or execute one."""
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
    write_files({target: page}, private=False, overwrite=overwrite)
    show(f"{target}: {source.name} at {size} size")
