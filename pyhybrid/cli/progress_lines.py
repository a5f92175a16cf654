"""Progress where standard error is no terminal: a line at least every 30 seconds.

A log is read by others than the data owner: a line holds what is being done, how much of it is
done, and times. Numbers in a step's name, such as a scalar weight, can be functions of the data and
are left out.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pyhybrid.running.tasks import Progress

__all__ = ["EVERY", "progress_lines"]

EVERY = 30.0
"""Seconds between two lines at most."""

_NUMBER = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?|\d+e[-+]?\d+")


@contextlib.contextmanager
def progress_lines(
    write: Callable[[str], object] | None = None, *, every: float = EVERY
) -> Iterator[Progress]:
    """Yield a progress callback; a thread writes where things stand every `every` seconds.

    Parameters
    ----------
    write : callable, optional
        Takes a line; standard error if omitted.
    every : float, default 30
        Seconds.
    """
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
    """Where things stand: the step, and since when."""

    started: float = field(default_factory=time.monotonic)
    label: str = "starting"
    step_started: float = field(default_factory=time.monotonic)
    done: int = 0
    total: int = 0

    def report(self, label: str, done: int, total: int) -> None:
        if label != self.label:
            self.label, self.step_started = label, time.monotonic()
        self.done, self.total = int(done), int(total)

    def line(self, now: float) -> str:
        """E.g. ``pyhybrid: 1:30 elapsed; Unweighted fit: 200 of 8000 (2%), about 58:30 left``."""
        step = _NUMBER.sub("...", " ".join(self.label.split()))
        said = f"pyhybrid: {_clock(now - self.started)} elapsed; {step}"
        if self.total <= 0:
            return said
        said += f": {self.done} of {self.total} ({self.done / self.total:.0%})"
        if self.done <= 0:
            return said + ", time left not known yet"
        left = (now - self.step_started) * (self.total - self.done) / self.done
        return f"{said}, about {_clock(left)} left of this step"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
