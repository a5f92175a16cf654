"""What `pyhybrid utility` and `pyhybrid risk` share: options, the sets read, what is shown."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import show
from pyhybrid.cli.tables import read_table
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures import MEASURES, RiskSummary, UtilitySummary
from pyhybrid.running.files import check_new_file, write_files

__all__ = [
    "Html",
    "Json",
    "Overwrite",
    "Real",
    "Synthetic",
    "Versus",
    "check_outputs",
    "finish",
    "read_versions",
]

_NOTE = (
    "CONFIDENTIAL: every number here was computed from the confidential data and is covered by no "
    "epsilon; publish none of it."
)
_VERSIONS = ("synthetic", "versus")

Real = Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")]
Synthetic = Annotated[
    list[Path],
    typer.Argument(help="Synthetic sets from anywhere, or the folder of a release."),
]
Versus = Annotated[
    list[Path] | None,
    typer.Option(help="Sets of another synthetic version, to show beside; once for each set."),
]
Json = Annotated[
    str | None,
    typer.Option("--json", help="Write the numbers as JSON to this file; - for standard output."),
]
Html = Annotated[Path | None, typer.Option(help="Write a report with figures to this HTML file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]


def read_versions(
    real: Path, synthetic: Sequence[Path], versus: Sequence[Path]
) -> tuple[pd.DataFrame, dict[str, list[pd.DataFrame]]]:
    """The data, and the sets of each version; a folder stands for the sets of a release."""
    data = read_table(real).frame
    versions = {
        name: [read_table(path).frame for path in _files(paths)]
        for name, paths in zip(_VERSIONS, (synthetic, versus), strict=True)
        if paths
    }
    return data, versions


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = path / "public" if (path / "public").is_dir() else path
        sets = [*inside.glob("synthetic_*.csv"), *inside.glob("synthetic_*.parquet")]
        if not sets:
            raise InvalidInput(f"{path} must be a file or a release: it has no synthetic_*.csv")
        found += sorted(sets, key=lambda each: (len(each.name), each.name))
    return found


def finish(
    title: str,
    found: Mapping[str, UtilitySummary] | Mapping[str, RiskSummary],
    plain: dict[str, Any],
    page: str | None,
    json_out: str | None,
    html: Path | None,
    overwrite: bool,
) -> None:
    text = json.dumps(plain, indent=2, allow_nan=False) + "\n"
    contents = {html: page} if html is not None and page is not None else {}
    if json_out is not None and json_out != "-":
        contents[Path(json_out)] = text
    write_files(contents, private=True, overwrite=overwrite)
    if json_out == "-":
        print(text, end="")
        print(_NOTE, file=sys.stderr)
        return
    overall = {name: each.overall() for name, each in found.items()}
    show(_table(title, overall), _definitions(overall))
    for path in filter(None, (html, None if json_out is None else Path(json_out))):
        show(f"written: {escape(str(path))} (confidential)")
    show(_NOTE)


def _table(title: str, overall: Mapping[str, Mapping[str, float]]) -> Table:
    from pyhybrid.reports.measures import measure_label
    from pyhybrid.reports.numbers import number_text

    table = Table(
        title=f"{title} (confidential)", title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("measure", overflow="fold", min_width=16)
    for name in overall:
        table.add_column(name, justify="right", no_wrap=True)
    ends = ("as the data", "useless") if title == "Utility" else ("no risk", "data as they are")
    for end in (*ends, "range"):
        table.add_column(end, overflow="fold")
    for name in _named(overall):
        measure = MEASURES[name.split(",")[0]]
        values = [number_text(each[name]) if name in each else "–" for each in overall.values()]
        texts = (measure.at_best, measure.at_worst, measure.range)
        table.add_row(escape(measure_label(name)), *values, *map(escape, texts))
    return table


def _definitions(overall: Mapping[str, Mapping[str, float]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    for key in dict.fromkeys(name.split(",")[0] for name in _named(overall)):
        measure = MEASURES[key]
        text = f"{measure.definition} {measure.direction.capitalize()}."
        table.add_row(escape(measure.title), escape(text))
    return table


def _named(overall: Mapping[str, Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for each in overall.values() for name in each))


def check_outputs(json_out: str | None, html: Path | None, overwrite: bool) -> None:
    files = [Path(path) for path in (html, json_out) if path is not None and str(path) != "-"]
    if len({os.path.abspath(path) for path in files}) < len(files):
        raise InvalidInput("--json and --html must name two files: found one")
    for path in files:
        check_new_file(path, overwrite=overwrite)
