"""What a command shows: tables on standard output, progress and messages on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import step_name
from pyhybrid.running.tasks import Progress


@contextlib.contextmanager
def progress_bars() -> Iterator[Progress]:
    """Yield a progress callback that draws bars, or writes lines where standard error is no
    terminal."""
    console = Console(stderr=True)
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
                tasks[label] = int(bars.add_task(label, total=total or None))
            bars.update(tasks[label], completed=done, total=total or None)  # type: ignore[arg-type]

        yield report


def table_of(
    title: str,
    header: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    left: Collection[str] = (),
    caption: str | None = None,
    simple: bool = False,
) -> Table:
    """A table of cells in rich's markup: the first column and those of `left` from the left, the
    others to the right; `simple` has a line below the header in place of a frame."""
    table = Table(
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=SIMPLE_HEAD if simple else HEAVY_HEAD,
        pad_edge=not simple,
        show_edge=not simple,
    )
    for name in header:
        words = not table.columns or name in left
        table.add_column(name, justify="left" if words else "right")
    for row in rows:
        table.add_row(*row)
    return table


def show(*tables: Table | str) -> None:
    """Print tables, which fit the width, and lines to standard output, of which a file or a pipe
    has 80 columns. Lines wrap between words in a terminal, and are whole elsewhere."""
    console = Console(highlight=False)
    for each in tables:
        if isinstance(each, Table):
            console.print(fitted(each, console), crop=False, overflow="ignore")
        else:
            wrapped = {"crop": False, "overflow": "ignore"}
            console.print(each, **(wrapped if console.is_terminal else {"soft_wrap": True}))


def check_outputs(
    json_out: str | None, html: Path | None = None, *, overwrite: bool = False
) -> None:
    """Refuse files of --json and --html that are there or are one, before any work."""
    from pyhybrid.running.files import check_new_file  # imports numpy, which help texts do not need

    files = [Path(path) for path in (html, json_out) if path is not None and str(path) != "-"]
    if len({os.path.abspath(path) for path in files}) < len(files):
        raise InvalidInput("--json and --html must name two files: found one")
    for path in files:
        check_new_file(path, overwrite=overwrite)


def shown_as_json(plain: Any, json_out: str | None, *, overwrite: bool = False) -> bool:
    """Write where --json says; True for standard output, which then shows nothing else."""
    from pyhybrid.running.files import write_files

    text = json.dumps(plain, indent=2) + "\n"
    if json_out == "-":
        print(text, end="")
    elif json_out is not None:
        write_files({Path(json_out): text}, private=True, overwrite=overwrite)
    return json_out == "-"


def note(line: str) -> None:
    """One line to standard error."""
    print(f"pyhybrid: {' '.join(line.split())}", file=sys.stderr)


_NARROWEST = 4  # a column is no narrower than this, whatever its words are


def fitted(table: Table, console: Console) -> RenderableType:
    """The table with widths for its columns, its rows as columns, or a block of lines for each row:
    the first of them that fits the console without a break inside a word."""
    if _set_widths(table, console.width):
        return table
    turned = _turned(table)
    if _set_widths(turned, console.width):
        return turned
    return _blocks(table, console.width)


class _Options(Table):
    """The table of options in a help text: all names of an option in one column, none of them cut.
    A row has the mark of what is required, if any option is, four cells of names, type and text."""

    def add_row(self, *cells: RenderableType | None, **settings: Any) -> None:
        if len(cells) >= 6:
            *first, long, short, off, short_off, kind, text = cells
            names = [each for each in (long, short, off, short_off) if isinstance(each, Text)]
            cells = *first, Text("\n").join(name for name in names if name.plain), kind, text
        super().add_row(*cells, **settings)
        *names_and_kind, said = self.columns
        for column in names_and_kind:
            column.no_wrap = True
        said.overflow = "fold"


def names_in_full() -> None:
    """From now on help texts give names of options the room they need, also at 80 columns."""
    from typer import rich_utils

    rich_utils.Table = _Options  # type: ignore[attr-defined]


def _set_widths(table: Table, width: int) -> bool:
    """Give each column room for its longest word, and what is left to those that wrap; False, and
    the table as it was, if the words do not fit."""
    between = sum(_around(table))
    columns = [_texts(table, place) for place in range(len(table.columns))]
    least = [
        max([_NARROWEST, *(_longest(text, whole=column.no_wrap) for text in texts)])
        for column, texts in zip(table.columns, columns, strict=True)
    ]
    wanted = [max(_longest(text, whole=True) for text in texts) for texts in columns]
    left = width - between - sum(least)
    if left < 0:
        return False
    for place, column in enumerate(table.columns):
        column.width = least[place]
    while left > 0 and any(c.width < w for c, w in zip(table.columns, wanted, strict=True)):  # type: ignore[operator]
        for column, want in zip(table.columns, wanted, strict=True):
            if left > 0 and column.width is not None and column.width < want:
                column.width, left = column.width + 1, left - 1
    return True


def _around(table: Table) -> list[int]:
    """Cells of padding and lines, of the columns and of the table's edges."""
    _, right, _, left = table.padding
    n = len(table.columns)
    padding = n * (left + right) - (0 if table.pad_edge else left + right)
    edges = 2 if table.box is not None and table.show_edge else 0
    return [padding, edges, n - 1 if table.box is not None else 0]


def _texts(table: Table, place: int) -> list[str]:
    """Header and cells of a column, without markup."""
    column = table.columns[place]
    header = [column.header] if table.show_header else []
    return [_plain(cell) for cell in [*header, *column.cells]]


def _plain(cell: Any) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)


def _longest(text: str, *, whole: bool) -> int:
    """Cells of the longest line, or of the longest word."""
    parts: Sequence[str] = text.splitlines() if whole else text.split()
    return max((Text(part).cell_len for part in parts), default=0)


def _turned(table: Table) -> Table:
    """Rows as columns; the first column is the header."""
    turned = Table(
        title=table.title,
        caption=table.caption,
        title_justify=table.title_justify,
        caption_justify=table.caption_justify,
        box=table.box,
        pad_edge=table.pad_edge,
        show_edge=table.show_edge,
    )
    first, *rest = table.columns
    for header in (first.header, *first.cells):
        turned.add_column(header, justify="right" if turned.columns else "left")
    for column in rest:
        turned.add_row(column.header, *column.cells)
    return turned


def _blocks(table: Table, width: int) -> RenderableType:
    """For each row its first cell, and a line for each other cell that says something."""
    shown: list[RenderableType] = [] if table.title is None else [table.title]
    labels = [_plain(column.header).replace("\n", " ") for column in table.columns]
    word = max(_longest(label, whole=False) for label in labels)
    indent = 2 + max(word, min(max(map(len, labels)), width // 3))
    for row in zip(*(column.cells for column in table.columns), strict=True):
        shown.append(row[0])
        lines = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
        lines.add_column("", width=indent, justify="left")
        lines.add_column("", overflow="fold", width=max(_NARROWEST, width - indent - 2))
        for label, cell in zip(labels[1:], row[1:], strict=True):
            if _plain(cell):
                lines.add_row(Padding(label, (0, 0, 0, 2)), cell)
        shown.append(lines)
    return Group(*shown, *([] if table.caption is None else [table.caption]))


EVERY = 15.0
"""Seconds between two lines at most."""


@contextlib.contextmanager
def progress_lines(
    write: Callable[[str], object] | None = None, *, every: float = EVERY
) -> Iterator[Progress]:
    """Yield a progress callback; a thread writes where things stand, a line every `every` seconds,
    to standard error if `write` is omitted."""
    state, ended = _State(), threading.Event()
    put = write or (lambda line: print(line, file=sys.stderr, flush=True))

    def run() -> None:
        while not ended.wait(every):
            with contextlib.suppress(OSError, ValueError):  # a closed log must not stop a release
                put(state.line(time.monotonic()))

    thread = threading.Thread(target=run, name="pyhybrid progress", daemon=True)
    thread.start()
    try:
        yield state.report
    finally:
        ended.set()
        thread.join()


@dataclass
class _State:
    """Where things stand: the step, since when, and from what count, which a resumed run has."""

    started: float = field(default_factory=time.monotonic)
    label: str = "starting"
    step_started: float = field(default_factory=time.monotonic)
    begun: int = 0
    done: int = 0
    total: int = 0
    counted: float | None = None  # when `done` changed

    def report(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        if label != self.label:
            self.label, self.step_started, self.counted = label, now, None
            self.begun = int(done)
        elif int(done) != self.done:
            self.counted = now
        self.done, self.total = int(done), int(total)

    def line(self, now: float) -> str:
        """E.g. ``pyhybrid: 1:30 elapsed; Unweighted fit: 200 of 8000 (2%), about 58:30 left``."""
        said = f"pyhybrid: {_clock(now - self.started)} elapsed; {step_name(self.label)}"
        if self.total <= 0:
            return said
        said += f": {self.done} of {self.total} ({self.done / self.total:.0%})"
        if self.done >= self.total:  # weights, bounds and estimates have no steps to count
            return f"{said}, computing from it"
        if self.done <= self.begun:
            return said + ", time left not known yet"
        # Between two counts the rest falls, down to a tenth of the time of one.
        at = now if self.counted is None else min(now, self.counted)
        each = (at - self.step_started) / (self.done - self.begun)
        left = max(each * (self.total - self.done) - (now - at), each / 10)
        return f"{said}, about {_clock(left)} left of this step"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
