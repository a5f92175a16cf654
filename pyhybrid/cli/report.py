"""`pyhybrid report`: a notebook of the papers' studies as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.core.errors import InvalidInput, SaveFailed
from pyhybrid.reports.notebooks import find_notebook, notebook_names, render_notebook

__all__ = ["report"]


def report(
    name: Annotated[
        str | None, typer.Argument(help="Name or number; without it, the notebooks are listed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="HTML file. \\[default: NAME.html]")] = None,
    size: Annotated[str, typer.Option(help="quick or paper.")] = "quick",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out.")] = False,
) -> None:
    """A notebook of the papers' studies, executed here, as one HTML page."""
    if name is None:
        show("Notebooks:", *(f"  {each}" for each in notebook_names()))
        return
    source = find_notebook(name)
    target = out or Path(f"{source.stem}.html")
    if target.exists() and not overwrite:
        raise InvalidInput(f"{target} must be a new file: give --overwrite or another --out")
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInput(f"{target} must be a file in a folder that exists: it is not")
    with progress_bars() as progress:
        page = render_notebook(source, size=size, progress=progress)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise SaveFailed(f"{target} cannot be written: {error}") from None
    show(f"{target}: {source.name} at {size} size")
