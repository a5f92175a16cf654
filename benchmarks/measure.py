"""Time and peak memory of a call, and the lines that a benchmark prints."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable

__all__ = ["at_least", "best_of", "in_own_process", "line", "two_digits"]


def at_least(ratio: float) -> str:
    """A lower bound of a ratio, rounded down to one digit."""
    digit = 10.0 ** math.floor(math.log10(ratio))
    return f"> {math.floor(ratio / digit) * digit:,.0f}"


def two_digits(value: float) -> str:
    """Two digits, or all whole ones of a number that has more."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def best_of(call: Callable[[], object], repeats: int = 3) -> float:
    """Shortest of `repeats` run times, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def in_own_process(code: str) -> tuple[float, float]:
    """Run Python code in a fresh process; its wall time in seconds and peak memory in MB."""
    probe = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code + probe], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - started, float(done.stdout.split()[-1])


def line(label: str, seconds: float, note: str = "") -> None:
    """Print one measurement."""
    print(f"  {label:<58}{seconds:>10.3f} s   {note}", flush=True)
