"""What a command shows: tables on standard output, progress and messages on standard error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from pyhybrid.cli.layout import fitted
from pyhybrid.cli.progress_lines import progress_lines
from pyhybrid.running.tasks import Progress

__all__ = ["note", "progress_bars", "show"]


@contextlib.contextmanager
def progress_bars(*, quiet: bool = False) -> Iterator[Progress | None]:
    """Yield a progress callback that draws bars, or writes lines where standard error is no
    terminal; None if `quiet`."""
    console = Console(stderr=True)
    if quiet:
        yield None
        return
    if not console.is_terminal:
        with progress_lines() as report_line:
            yield report_line
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    since = (TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), *since)
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, int] = {}

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = int(bars.add_task(label, total=total))
            bars.update(tasks[label], completed=done)  # type: ignore[arg-type]

        yield report


def show(*tables: Table | str) -> None:
    """Print tables and lines to standard output, of which a file or a pipe has 80 columns.

    Tables fit the width. Lines wrap between words in a terminal, and are whole elsewhere.
    """
    console = Console(highlight=False)
    for each in tables:
        if isinstance(each, Table):
            console.print(fitted(each, console), crop=False, overflow="ignore")
        else:
            wrapped = {"crop": False, "overflow": "ignore"}
            console.print(each, **(wrapped if console.is_terminal else {"soft_wrap": True}))


def note(line: str) -> None:
    """One line to standard error."""
    print(f"pyhybrid: {' '.join(line.split())}", file=sys.stderr)
