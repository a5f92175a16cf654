"""`pyhybrid study`, `notebook` and `demo`: the papers' studies, notebooks and mechanism."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.markup import escape

from pyhybrid.cli.console import frame_table, progress_bars, show
from pyhybrid.cli.options import check_once, fit_options
from pyhybrid.core.checks import check_choice, check_output_folder, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.reports.notebooks import find_notebook, notebook_names, render_notebook
from pyhybrid.running.files import check_new_file, write_files


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
    from pyhybrid.studies.runner import reproduce

    study = STUDIES[check_choice(name.upper(), "the study", STUDIES)]
    with progress_bars() as progress:
        result = run_study(
            study, out=out, size=size, replicates=replicates, seed=seed, engine=engine, data=data,
            workers=workers, progress=progress,
        )  # fmt: skip
    show(frame_table(f"Study {study.name}: {study.title} ({study.source})", result.summary))
    lines = reproduce(study, result.summary).drop(columns="study")
    if len(lines):
        header = {"verdict": "", "why": "note"}
        show(frame_table("Beside the published numbers", lines.rename(columns=header)))
    if result.failed:
        why = [escape(f"  {label}: {message}") for label, message in result.failed.items()]
        show(f"\n{number_of(len(why), 'database')} failed; run again to try them anew:", *why)
        return 1
    return 0


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


def demo(
    *, out: Path = Path("pyhybrid-demo"), fit: str | None = None, overwrite: bool = False
) -> None:
    """The papers' release, charged at fixed weights, and clipped scores at epsilon 1."""
    beside, how = out.with_name(f"{out.name}-local"), fit_options(fit)
    for folder in (out, beside):
        check_output_folder(folder, overwrite=overwrite)
    from statsmodels.datasets import randhie

    from pyhybrid.cli.app import help_texts
    from pyhybrid.cli.released import show_release
    from pyhybrid.fitting.session import open_session
    from pyhybrid.mechanisms import ClippedScores, LipschitzWeighted
    from pyhybrid.models import NegativeBinomial

    visits: pd.DataFrame = randhie.load_pandas().data
    model = NegativeBinomial("mdvis ~ 1")
    said = help_texts("demo")
    show(said["data"].format(n=len(visits)), said["persons"], "")
    papers = LipschitzWeighted(model, accounting="lipschitz")
    with progress_bars() as progress:
        session = open_session(model.bind(visits), progress=progress, **how)
        local = papers.release_from(session, n_synthetic=3, n_draws_released=1, refits=0)
    fits = {"all weights 1": session.unweighted(), "Lipschitz weights": papers.fit(session).fit}
    rows = [
        (name, fit.alpha.mean(), fit.bounds.overall, 2 * fit.bounds.overall)
        for name, fit in fits.items()
    ]
    header = ["posterior", "mean weight", "Delta", "epsilon = 2 Delta"]
    show(frame_table("The papers' mechanism (confidential)", pd.DataFrame(rows, columns=header)))
    local.save(beside, overwrite=overwrite)
    show_release(visits, local, beside)
    strict = ClippedScores(model, epsilon=1.0).release(visits, n_synthetic=3)
    strict.save(out, overwrite=overwrite)
    show_release(visits, strict, out)
    show("", said["both"], "", said["own"])
