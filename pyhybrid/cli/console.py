"""What a command shows: tables on standard output, progress and messages on standard error."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyhybrid.core.html import step_name
from pyhybrid.running.tasks import Progress

if TYPE_CHECKING:
    import pandas as pd


def frame_table(title: str, frame: pd.DataFrame, caption: str | None = None) -> Table:
    """A data frame as people read it: words from the left, numbers to the right."""
    from pyhybrid.reports.page import number_text  # imports jinja2

    style: dict[str, Any] = {"title_justify": "left", "caption_justify": "left", "pad_edge": False}
    table = Table(title=escape(title), caption=caption, box=SIMPLE_HEAD, show_edge=False, **style)
    rows = [[number_text(cell) for cell in row] for row in frame.itertuples(index=False)]
    for place, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        head = str(name).replace("_", " ")
        words = " ".join([head, *(row[place] for row in rows)]).split()
        left = kind.kind == "O" or not table.columns
        longest = max(map(cell_len, words), default=1)
        table.add_column(head, justify="left" if left else "right", min_width=longest)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def show(*tables: Table | str) -> None:
    """Print tables, as wide as their longest words need, and lines to standard output; a file or a
    pipe has 80 columns. Lines wrap between words in a terminal, and are whole elsewhere."""
    console = Console(highlight=False)
    for table in tables:
        if isinstance(table, Table):
            needed = Console(width=10_000).measure(table).minimum
            wide = Console(highlight=False, width=max(console.width, needed))
            wide.print(table, crop=False, overflow="ignore")
        else:
            console.print(table, overflow="ignore", soft_wrap=not console.is_terminal)


def note(line: str) -> None:
    """One line to standard error."""
    print(f"pyhybrid: {' '.join(line.split())}", file=sys.stderr)


@contextlib.contextmanager
def progress_bars() -> Iterator[Progress]:
    """Yield a progress callback: bars, or lines where standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with progress_lines() as report_line:
            yield report_line
        return
    from rich import progress as rich_progress

    left = rich_progress.TextColumn("left:"), rich_progress.TimeRemainingColumn()
    since = rich_progress.TimeElapsedColumn()
    label, bar = rich_progress.TextColumn("{task.description}"), rich_progress.BarColumn(20)
    with rich_progress.Progress(label, bar, since, *left, console=console) as bars:
        tasks = dict[str, rich_progress.TaskID]()
        unmeasured = set[str]()  # labels without a length, which go when they are over

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                for step in unmeasured & {*tasks}:
                    bars.remove_task(tasks.pop(step))
                tasks[label] = bars.add_task(label, total=total or None)
            (unmeasured.discard if total else unmeasured.add)(label)
            bars.update(tasks[label], completed=done, total=total or None)

        yield report


EVERY = 15.0
"""Seconds between two lines at most."""


@contextlib.contextmanager
def progress_lines(
    write: Callable[[str], object] | None = None, *, every: float = EVERY
) -> Iterator[Progress]:
    """Yield a progress callback; a thread writes where things stand, a line every `every` seconds,
    to standard error if `write` is omitted."""
    step, started, ended = [("starting", 0, 0)], time.monotonic(), threading.Event()
    put = write or (lambda line: print(line, file=sys.stderr, flush=True))

    def report(label: str, done: int, total: int) -> None:
        step[0] = (label, int(done), int(total))

    def run() -> None:
        while not ended.wait(every):
            with contextlib.suppress(OSError, ValueError):  # a closed log must not stop a release
                put(progress_line(time.monotonic() - started, *step[0]))

    thread = threading.Thread(target=run, name="pyhybrid progress", daemon=True)
    thread.start()
    try:
        yield report
    finally:
        ended.set()
        thread.join()


def progress_line(seconds: float, label: str, done: int, total: int) -> str:
    """E.g. ``pyhybrid: 1:30 elapsed; Unweighted fit: 200 of 8000 (2%)``."""
    minutes, rest = divmod(round(seconds), 60)
    count = f": {done} of {total} ({done / total:.0%})" if total > 0 else ""
    return f"pyhybrid: {minutes}:{rest:02d} elapsed; {step_name(label)}{count}"
