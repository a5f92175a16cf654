"""What a command shows: tables on standard output, progress and messages on standard error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from pyhybrid.checks import FloatArray
from pyhybrid.cli.progress_lines import progress_lines
from pyhybrid.engines import Diagnostics, Provenance
from pyhybrid.errors import InvalidInput, PyhybridError
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitProgress
from pyhybrid.privacy.epsilon import epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.levels import level_shares
from pyhybrid.reports.numbers import number_text

__all__ = [
    "level_table",
    "naming_file",
    "note",
    "progress_bars",
    "release_table",
    "show",
    "steps_table",
    "summary_table",
]

STATISTICS: Mapping[str, Callable[[FloatArray], Any]] = {
    "mean": np.mean,
    "15th percentile": lambda y: np.quantile(y, 0.15),
    "median": np.median,
    "90th percentile": lambda y: np.quantile(y, 0.9),
}


def naming_file(error: OSError) -> Exception:
    """The error itself, or for a path that the system refuses InvalidInput with path and reason."""
    if isinstance(error, PyhybridError) or error.filename is None:
        return error
    return InvalidInput(f"{error.filename}: {error.strerror}")


@contextlib.contextmanager
def progress_bars(*, quiet: bool = False) -> Iterator[FitProgress | None]:
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


def release_table(releases: Mapping[str, Release]) -> Table:
    """Charge and diagnostics of releases, one column each. Shows bounds: for the data owner."""
    table = Table(title="Privacy and convergence", title_justify="left")
    table.add_column("")
    for name in releases:
        table.add_column(name, justify="right")
    rows: Mapping[str, Callable[[Release], str]] = {
        "epsilon, all sets": lambda r: epsilon_text(r.charge.epsilon),
        **_accounting_rows(releases),
        "kind": lambda r: r.charge.kind,
        "neighbor relation": lambda r: f"{r.charge.relation} {r.charge.protected}",
        "synthetic sets m": lambda r: str(r.charge.n_synthetic),
        "posterior draws released": lambda r: str(r.charge.n_draws_released),
        "Lipschitz bound of a draw (confidential)": lambda r: number_text(r.charge.bound),
    }
    if any(release.diagnostics is not None for release in releases.values()):
        rows = {**rows, **_FIT_ROWS}
    if any(release.confidential.censored is not None for release in releases.values()):
        rows = {**rows, "censored records (confidential)": _censored}
    rows = {**rows, "made by": _made_by}
    for label, cell in rows.items():
        table.add_row(label, *(cell(release) for release in releases.values()))
    return table


def _accounting_rows(releases: Mapping[str, Release]) -> dict[str, Callable[[Release], str]]:
    """How local epsilons were counted, and what the other accountings say."""
    if all(release.charge.mu is None for release in releases.values()):
        return {}

    def other(value: float | None) -> str:
        return "-" if value is None else epsilon_text(value)

    return {
        "at delta": lambda r: f"{r.charge.delta:g}",
        "counted by": lambda r: r.charge.accounting,
        "epsilon by range": lambda r: other(r.charge.epsilon_range),
        "epsilon by Lipschitz bound (papers)": lambda r: other(r.charge.epsilon_lipschitz),
    }


def _censored(release: Release) -> str:
    met = release.confidential.censored
    return "-" if met is None else f"{int(met.sum())} of {met.size}"


def steps_table(path: Reweighted) -> Table:
    """Steps of a re-weighting, those whose refit an estimate saved among them. Confidential."""
    title = f"Re-weighting (confidential): {path.refits_saved} refit(s) saved by estimates"
    table = Table(title=title, title_justify="left")
    for column in ("round", "k", "estimated bound", "bound", "efficiency", ""):
        table.add_column(column, justify="right")
    start = path.start.bounds
    table.add_row("start", "", "", f"{start.overall:.4f}", f"{start.efficiency:.3f}", "")
    for step in path.steps:
        verdict = (
            ("within the bound" if step.accepted else "above it") if step.refitted else "saved"
        )
        shown = (step.estimated_bound, step.bound, step.efficiency)
        cells = ("-" if np.isnan(value) else f"{value:.4f}" for value in shown)
        table.add_row(str(step.round), f"{step.k:.4f}", *cells, verdict)
    return table


def _diagnostic(shown: Callable[[Diagnostics], str]) -> Callable[[Release], str]:
    """A cell about the fit; a dash for a mechanism without one."""
    return lambda r: "–" if r.diagnostics is None else shown(r.diagnostics)


_FIT_ROWS: Mapping[str, Callable[[Release], str]] = {
    "mean weight (confidential)": lambda r: (
        f"{r.confidential.alpha.mean():.3f}" if r.confidential.alpha.size else "–"
    ),
    "R-hat, worst": _diagnostic(lambda d: f"{d.max_rhat:.3f}"),
    "effective sample size, worst": _diagnostic(lambda d: f"{d.min_ess_bulk:.0f}"),
    "divergent transitions": _diagnostic(lambda d: str(d.n_divergent)),
    "seconds in the released fit": lambda r: (
        f"{r.provenance.seconds:.2f}" if isinstance(r.provenance, Provenance) else "–"
    ),
}


def _made_by(release: Release) -> str:
    made = release.provenance
    if isinstance(made, Provenance):
        return f"{made.engine} {made.engine_version}"
    return f"{made.library} {made.version}"


def summary_table(
    outcome: str, data: FloatArray, synthetic: Mapping[str, Sequence[FloatArray]]
) -> Table:
    """Mean and percentiles of the data and, averaged over sets, of synthetic outcomes."""
    table = Table(title=f"{outcome}: data against synthetic data", title_justify="left")
    for name in ("", "data (confidential)", *synthetic):
        table.add_column(name, justify="right" if name else "left")
    for label, statistic in STATISTICS.items():
        own = [float(np.mean([statistic(y) for y in sets])) for sets in synthetic.values()]
        table.add_row(label, *map(number_text, (float(statistic(data)), *own)))
    return table


def level_table(
    outcome: str, data: pd.Series, synthetic: Mapping[str, Sequence[pd.Series]]
) -> Table:
    """Shares of levels in the data and, averaged over sets, in synthetic outcomes."""
    table = Table(title=f"{outcome}: data against synthetic data", title_justify="left")
    for name in ("share of", "data (confidential)", *synthetic):
        table.add_column(name, justify="left" if name == "share of" else "right")
    for level, shares in level_shares(data, synthetic).items():
        table.add_row(level, *map(number_text, shares))
    return table
