"""What a command shows of a release, for the data owner's eyes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import show
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines import Diagnostics, Provenance
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.judged import FAIR, GOOD, POOR, Judged, judge_outcome
from pyhybrid.reports.levels import level_shares
from pyhybrid.reports.numbers import number_text

__all__ = ["first_paragraph", "show_release"]

STATISTICS: Mapping[str, Callable[[FloatArray], Any]] = {
    "mean": np.mean,
    "15th percentile": lambda y: np.quantile(y, 0.15),
    "median": np.median,
    "90th percentile": lambda y: np.quantile(y, 0.9),
}


def show_release(
    data: pd.DataFrame, release: Release, out: Path, *, beside: Release | None = None
) -> None:
    """Charge, convergence, data against synthetic data, and the folder that `release` is in.

    Each step of a sequence has a row; another release of the same data, `beside`, has a column.
    """
    shown = {each.charge.mechanism: each for each in (beside, release) if each is not None}
    if release.parts:
        show(_whole_steps_table(release))
    show(_release_table({"all columns": release} if release.parts else shown))
    for column in release.synthesized:
        show(_outcome_table(column, data[column], shown))
    _show_judged(data, shown)
    show(
        f"\n{out}/public/        to give away: synthetic data and privacy_statement.md",
        f"{out}/confidential/  to keep: weights, bounds, seed and report.html",
        f"\n{first_paragraph(release)}",
    )
    if release.reweighted is not None:
        show(_steps_table(release.reweighted))
    if release.origin is not None:
        for title, shares in release.origin.remarks().items():
            show(_shares_table(title, shares))


def first_paragraph(release: Release) -> str:
    """The sentence that a statement opens with, as plain text."""
    return release.statement.split("\n\n")[1].replace("**", "")


def _release_table(releases: Mapping[str, Release]) -> Table:
    """Charge and diagnostics of releases, one column each. Shows bounds: for the data owner."""
    table = Table(
        title="Privacy and convergence (* confidential)", title_justify="left", pad_edge=False
    )
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
        "Lipschitz bound of a draw *": lambda r: number_text(r.charge.bound),
    }
    if any(release.diagnostics is not None for release in releases.values()):
        rows = {**rows, **_FIT_ROWS}
    if any(release.confidential.censored is not None for release in releases.values()):
        rows = {**rows, "censored records *": _censored}
    rows = {**rows, "engine": _engine}
    for label, cell in rows.items():
        table.add_row(label, *(cell(release) for release in releases.values()))
    return table


def _whole_steps_table(release: Release) -> Table:
    """A sequence: one row for each step, then the worst of them, and the sum of their seconds."""
    table = Table(title="Steps, in their order", title_justify="left", pad_edge=False)
    table.add_column("column", overflow="fold")
    for name in ("epsilon", "R-hat", "effective sample", "divergent", "seconds"):
        table.add_column(name, justify="right")
    for columns, step in release.steps.items():
        cells = (_FIT_ROWS[name](step) for name in _STEP_ROWS)
        table.add_row(escape(columns), epsilon_text(step.charge.epsilon), *cells)
    table.add_section()
    table.add_row("all columns", epsilon_text(release.charge.epsilon), *_worst(release))
    return table


def _worst(release: Release) -> list[str]:
    """Over the steps: the largest R-hat, the smallest sample, the sums of the others."""
    fits = [step.diagnostics for step in release.steps.values() if step.diagnostics is not None]
    if not fits:
        return ["–", "–", "–", _seconds_of(release)]
    return [
        f"{max(fit.max_rhat for fit in fits):.3f}",
        f"{min(fit.min_ess_bulk for fit in fits):.0f}",
        str(sum(fit.n_divergent for fit in fits)),
        _seconds_of(release),
    ]


def _show_judged(data: pd.DataFrame, releases: Mapping[str, Release]) -> None:
    """How good the synthetic columns are, in numbers and words. Confidential."""
    table = Table(
        title="How good the synthetic data are (confidential)",
        title_justify="left",
        pad_edge=False,
        caption="good: like a second sample; POOR: more than chance explains",
        caption_justify="left",
    )
    table.add_column("", overflow="fold")
    for name in releases:
        table.add_column(name, justify="right")
    for column in next(iter(releases.values())).synthesized:
        found = [
            judge_outcome(data[column], [each[column] for each in release.synthetic])
            for release in releases.values()
        ]
        for one in zip(*found, strict=False):
            table.add_row(f"{escape(column)}: {one[0].label}", *map(_judged_cell, one))
    if table.row_count:
        show(table)


def _judged_cell(judged: Judged) -> str:
    return f"{judged.text}  [{_COLORS[judged.word]}]{judged.word}[/]"


_COLORS = {GOOD: "green", FAIR: "yellow", POOR: "bold red"}


def _accounting_rows(releases: Mapping[str, Release]) -> dict[str, Callable[[Release], str]]:
    """How local epsilons were counted, and what the other accountings say."""
    if all(release.charge.mu is None for release in releases.values()):
        return {}

    def other(value: float | None) -> str:
        return "-" if value is None else epsilon_text(value)

    return {
        "at delta": lambda r: f"{r.charge.delta:g}",
        "accounting": lambda r: r.charge.accounting,
        "epsilon by the range": lambda r: other(r.charge.epsilon_range),
        "epsilon by the Lipschitz bound, 2 Δ": lambda r: other(r.charge.epsilon_lipschitz),
    }


def _censored(release: Release) -> str:
    met = release.confidential.censored
    return "-" if met is None else f"{int(met.sum())} of {met.size}"


def _steps_table(path: Reweighted) -> Table:
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


def _seconds_of(release: Release) -> str:
    """Of a sequence the sum over its steps."""
    made = [each.provenance for each in release.parts or (release,)]
    known = [each.seconds for each in made if isinstance(each, Provenance) and each.seconds > 0]
    return f"{sum(known):.2f}" if known else "–"


_FIT_ROWS: Mapping[str, Callable[[Release], str]] = {
    "mean weight *": lambda r: (
        f"{r.confidential.alpha.mean():.3f}" if r.confidential.alpha.size else "–"
    ),
    "R-hat, largest": _diagnostic(lambda d: f"{d.max_rhat:.3f}"),
    "bulk effective sample size, smallest": _diagnostic(lambda d: f"{d.min_ess_bulk:.0f}"),
    "divergent transitions": _diagnostic(lambda d: str(d.n_divergent)),
    "seconds of fitting": _seconds_of,
}

_STEP_ROWS = (
    "R-hat, largest",
    "bulk effective sample size, smallest",
    "divergent transitions",
    "seconds of fitting",
)


def _engine(release: Release) -> str:
    made = release.provenance
    if isinstance(made, Provenance):
        return f"{made.engine} {made.engine_version}"
    return f"{made.library} {made.version}"


def _outcome_table(column: str, data: pd.Series, releases: Mapping[str, Release]) -> Table:
    """One column in the data and, averaged over sets, in synthetic data: percentiles or shares.

    Percentiles are of the values that are there; a row has the share that is missing.
    """
    sets = {name: [table[column] for table in each.synthetic] for name, each in releases.items()}
    kind = data.dtype
    numeric = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
    table = Table(title=f"{column}: data against synthetic data", title_justify="left")
    for name in ("" if numeric else "share of", "data (confidential)", *releases):
        table.add_column(name, justify="right" if table.columns else "left")
    if not numeric:
        for level, shares in level_shares(data, sets).items():
            table.add_row(level, *map(number_text, shares))
        return table
    for label, statistic in STATISTICS.items():
        shown = (
            np.mean([statistic(_floats(y)) if y.notna().any() else np.nan for y in each])
            for each in ([data], *sets.values())
        )
        table.add_row(label, *(number_text(float(value)) for value in shown))
    gone = [np.mean([y.isna().mean() for y in each]) for each in ([data], *sets.values())]
    if any(gone):
        table.add_row("share missing", *(number_text(float(share)) for share in gone))
    return table


def _shares_table(title: str, shares: Mapping[str, float]) -> Table:
    """What a mechanism remarks on the data."""
    table = Table(title=f"{title} (confidential)", title_justify="left")
    table.add_column("")
    table.add_column("share", justify="right")
    for what, share in shares.items():
        table.add_row(what, f"{share:.2%}")
    return table


def _floats(column: pd.Series) -> FloatArray:
    """Values that are there."""
    return np.asarray(column.dropna().to_numpy(dtype=np.float64))
