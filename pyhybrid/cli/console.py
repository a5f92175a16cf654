"""What a command shows: tables on standard output, progress and messages on standard error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from pyhybrid.cli.progress_lines import progress_lines

__all__ = ["note", "progress_bars", "show"]


@contextlib.contextmanager
def progress_bars(*, quiet: bool = False) -> Iterator[Callable[[str, int, int], None] | None]:
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
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, int] = {}

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = int(bars.add_task(label, total=total))
            bars.update(tasks[label], completed=done)  # type: ignore[arg-type]

        yield report


def show(*tables: Table | str) -> None:
    """Print tables and lines to standard output."""
    console = Console(highlight=False, soft_wrap=True)
    for table in tables:
        console.print(table)


def note(line: str) -> None:
    """One line to standard error."""
    print(f"pyhybrid: {' '.join(line.split())}", file=sys.stderr)
