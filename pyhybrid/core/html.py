"""Results in notebooks, a short table of what may be seen by anyone, and a bar of progress."""

from __future__ import annotations

import functools
import html
import importlib
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_PATIENCE, _EVERY = 0.5, 0.2  # seconds before the bar is drawn, and between two changes of it
_NUMBER = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?|\d+e[-+]?\d+")
_watching = threading.Lock()  # held by what draws, also for threads that it starts


def step_name(label: str) -> str:
    """The name of a step for what is stored: numbers in it may be functions of the data."""
    return _NUMBER.sub("...", " ".join(label.split()))


class NotebookBar:
    """A callback that draws progress below a cell: one bar, changed in place, gone when closed."""

    def __init__(self) -> None:
        self._display: Any = importlib.import_module("IPython.display").display
        self._step = ("", 0, 0)
        self._due = time.monotonic() + _PATIENCE
        self._drawn: Any = None
        self._lock = threading.Lock()  # chains report from threads of their own
        self._first = threading.Timer(_PATIENCE, self._begin)  # the first step may be a long one
        self._first.daemon = True
        self._first.start()

    def __call__(self, label: str, done: int, total: int) -> None:
        with self._lock:
            step, before = (label, done, total), self._step
            ended = step != before and done >= total > 0
            another = self._drawn is not None and (label != before[0] or ended)
            self._step = step
            if another or time.monotonic() >= self._due:
                self._draw()

    def close(self) -> None:
        """Leave nothing: a notebook is stored with what its cells show."""
        self._first.cancel()
        with self._lock:
            self._step = ("", 0, 0)
            if self._drawn is not None:
                self._put({"text/html": "", "text/plain": ""})

    def _begin(self) -> None:
        with self._lock:
            if self._drawn is None and self._step[0]:
                self._draw()

    def _draw(self) -> None:
        label, done, total = self._step
        self._due = time.monotonic() + _EVERY
        name = step_name(label)
        text = f"{name}: {done:,} of {total:,}" if total > 0 else name
        place = f' max="{total}" value="{min(done, total)}"' if total > 0 else ""
        bar = f'<progress{place} aria-label="{_cell(name)}"></progress> {_cell(text)}'
        self._put({"text/html": bar, "text/plain": text})

    def _put(self, shown: dict[str, str]) -> None:
        if self._drawn is None:
            self._drawn = self._display(shown, raw=True, display_id=True)
        else:
            self._drawn.update(shown, raw=True)


def bar_in_notebooks(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """`function`, which draws a bar unless it is given its keyword `progress`, if it is imported in
    a notebook; elsewhere as it is. What it calls draws no other."""
    shell_of = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if shell_of is None or getattr(shell_of(), "kernel", None) is None:  # as of a terminal
        return function

    @functools.wraps(function)
    def watched(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        if not _watching.acquire(blocking=False):
            return function(*args, **options)
        bar = NotebookBar()
        try:
            if options.get("progress") is None:
                options["progress"] = bar
            return function(*args, **options)
        finally:
            _watching.release()
            bar.close()

    return watched


def html_rows(title: str, rows: Mapping[str, object]) -> str:
    """A table of names and values with a caption; everything is escaped."""
    left = 'style="text-align:left"'
    body = "".join(
        f'<tr><th scope="row" {left}>{_cell(name)}</th><td {left}>{_cell(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption {left}>{_cell(title)}</caption><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return html.escape(str(value))
