"""A release as a command finishes it: saved, and shown to its owner."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import note, progress_bars, show, table_of
from pyhybrid.cli.tables import SourceTable
from pyhybrid.engines import Diagnostics, Provenance
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.release import Release
from pyhybrid.reports.levels import level_shares
from pyhybrid.reports.page import number_text


def show_release(
    data: pd.DataFrame, release: Release, out: Path, *, beside: Release | None = None
) -> None:
    """Charge, convergence, data against synthetic data, and the folder that `release` is in. Each
    step of a sequence has a row; another release of the same data, `beside`, has a column."""
    shown = {each.charge.mechanism: each for each in (beside, release) if each is not None}
    if release.parts:
        show(_whole_steps_table(release))
    show(_release_table({"all columns": release} if release.parts else shown))
    few = len(release.synthesized) <= _MOST_SHOWN
    for column in release.synthesized if few else ():
        show(_outcome_table(column, data[column], shown))
    _show_judged(data, shown)
    _show_poor(data, release)
    show(
        f"\n{out}/public/        to give away: synthetic data and privacy_statement.md",
        f"{out}/confidential/  to keep: seed, report.html, and weights and bounds if any",
        *_as_they_are(release),
        f"\n{first_paragraph(release)}",
    )
    if release.reweighted is not None:
        show(_steps_table(release.reweighted))
    if release.origin is not None:
        for title, shares in release.origin.remarks().items():
            rows = ([what, f"{share:.2%}"] for what, share in shares.items())
            show(table_of(f"{title} (confidential)", ("", "share"), rows))


_MOST_SHOWN = 3  # columns with a table of their own, and all their measures; the report has all


def _show_poor(data: pd.DataFrame, release: Release) -> None:
    """One line for each column that is POOR and each relation that is lost."""
    from pyhybrid.reports.columns import lost_relations
    from pyhybrid.reports.opening import judged_columns
    from pyhybrid.reports.release import beside_data
    from pyhybrid.reports.verdicts import POOR

    lines = [
        f"{escape(column)}: {poor[0]}"
        for column, measures in judged_columns(release, data).items()
        if (poor := [f"{each.label} {each.text}" for each in measures if each.word == POOR])
    ]
    if release.origin is not None:
        lost = lost_relations(beside_data(release, data), data)
        lines += [escape(text.replace(f" ({POOR})", "")) for text in lost.values()]
    if lines:
        show(*(f"[bold red]POOR[/] {line}" for line in lines))
        show("Another model, other predictors or cells, or a larger epsilon may keep more.")


def _as_they_are(release: Release) -> list[str]:
    """A line that names the columns that leave unchanged; none if there are none."""
    changed = {*release.synthesized, *release.decisions.drop, *release.decisions.ids}
    names = [str(name) for name in release.synthetic[0].columns if str(name) not in changed]
    if not names:
        return []
    from pyhybrid.reports.verdicts import listed

    which = "1 other column is" if len(names) == 1 else f"{len(names)} other columns are"
    return [f"\n{which} published unchanged: {escape(listed(names, 6))}"]


def first_paragraph(release: Release) -> str:
    """The sentence that a statement opens with, as plain text."""
    return release.statement.split("\n\n")[1].replace("**", "")


def _release_table(releases: Mapping[str, Release]) -> Table:
    """Charge and diagnostics of releases, one column each; of fits with bounds, for the owner."""
    rows: Mapping[str, Callable[[Release], str]] = {
        "epsilon, all sets": lambda r: epsilon_text(r.charge.epsilon),
        **_accounting_rows(releases),
        "kind": lambda r: r.charge.kind,
        "neighbor relation": lambda r: f"{r.charge.relation} {r.charge.protected}",
        "synthetic sets m": lambda r: str(r.charge.n_synthetic),
    }
    made = [each.provenance for release in releases.values() for each in release.parts or [release]]
    if fitted := any(isinstance(each, Provenance) for each in made):
        rows = {
            **rows,
            "posterior draws released": lambda r: str(r.charge.n_draws_released),
            "Lipschitz bound of a draw *": lambda r: number_text(r.charge.bound),
        }
    if any(release.diagnostics is not None for release in releases.values()):
        rows = {**rows, **_FIT_ROWS}
    if any(release.confidential.censored is not None for release in releases.values()):
        rows = {**rows, "censored records *": _censored}
    rows = {**rows, "engine": _engine}
    cells = ([label, *map(cell, releases.values())] for label, cell in rows.items())
    title = "Privacy and convergence (* confidential)" if fitted else "Privacy"
    return table_of(title, ["", *releases], cells)


def _whole_steps_table(release: Release) -> Table:
    """A sequence: one row for each step, then the worst of them, and the sum of their seconds."""
    header = ("column", "epsilon", "R-hat", "effective sample", "divergent", "seconds")
    rows = {**release.steps, "all columns": release}
    table = table_of("Steps, in their order", header, ())
    for columns, step in rows.items():
        if step is release:
            table.add_section()
        cells = (cell(step) for cell in _STEP_ROWS)
        table.add_row(escape(columns), epsilon_text(step.charge.epsilon), *cells)
    return table


def _show_judged(data: pd.DataFrame, releases: Mapping[str, Release]) -> None:
    """How good the synthetic columns are, in numbers and words. Confidential."""
    from pyhybrid.reports.verdicts import judge_outcome, limits_text

    columns = next(iter(releases.values())).synthesized
    many = len(columns) > _MOST_SHOWN
    of_many = "; the worst measure of each, the report has all" if many else ""
    title = f"How good the synthetic data are (confidential{of_many})"
    table = table_of(title, ["", *releases], ())
    measures: list[str] = []
    for column in columns:
        found = [
            judge_outcome(data[column], [each[column] for each in release.synthetic])
            for release in releases.values()
        ]
        rows = [*zip(*found, strict=False)]
        if many:
            rows = sorted(rows, key=lambda one: -max([*_COLORS].index(e.word) for e in one))[:1]
        for one in rows:
            cells = (f"{each.text}  [{_COLORS[each.word]}]{each.word}[/]" for each in one)
            table.add_row(f"{escape(column)}: {one[0].label}", *cells)
            measures.append(one[0].measure)
    if measures:
        table.caption = textwrap.fill(limits_text(measures), 78)
        show(table)


_COLORS = {"good": "green", "fair": "yellow", "POOR": "bold red"}


def _accounting_rows(releases: Mapping[str, Release]) -> dict[str, Callable[[Release], str]]:
    """How local epsilons were counted, and what the other accountings say."""
    charges = [release.charge for release in releases.values()]
    rows: dict[str, Callable[[Release], str]] = {}
    if any(charge.delta for charge in charges):
        rows["at delta"] = lambda r: f"{r.charge.delta:g}"
    if all(charge.kind == STRICT for charge in charges):
        return rows

    def other(value: float | None) -> str:
        return "-" if value is None else epsilon_text(value)

    return {
        **rows,
        "accounting": lambda r: r.charge.accounting,
        "epsilon as published, 2 Δ": lambda r: other(r.charge.epsilon_published),
        "epsilon by the range": lambda r: other(r.charge.epsilon_range),
    }


def _censored(release: Release) -> str:
    met = release.confidential.censored
    return "-" if met is None else f"{int(met.sum())} of {met.size}"


def _steps_table(path: Reweighted) -> Table:
    """Steps of a re-weighting. Confidential."""
    start = path.start.bounds
    first = ["start", "", f"{start.overall:.4f}", f"{start.efficiency:.3f}", ""]
    header = ("round", "k", "bound", "efficiency", "")
    table = table_of("Re-weighting (confidential)", header, [first])
    for step in path.steps:
        verdict = "within the bound" if step.accepted else "above it"
        shown = (step.bound, step.efficiency)
        cells = ("-" if np.isnan(value) else f"{value:.4f}" for value in shown)
        table.add_row(str(step.round), f"{step.k:.4f}", *cells, verdict)
    return table


def _diagnostic(shown: Callable[[Sequence[Diagnostics]], str]) -> Callable[[Release], str]:
    """A cell about the fit, or the fits of a sequence; a dash for a mechanism without one."""

    def cell(release: Release) -> str:
        fits = [each.diagnostics for each in release.parts or (release,)]
        known = [fit for fit in fits if fit is not None]
        return shown(known) if known else "–"

    return cell


def _seconds_of(release: Release) -> str:
    """Of a sequence the sum over its steps."""
    made = [each.provenance for each in release.parts or (release,)]
    known = [each.seconds for each in made if isinstance(each, Provenance) and each.seconds > 0]
    return f"{sum(known):.2f}" if known else "–"


_FIT_ROWS: Mapping[str, Callable[[Release], str]] = {
    "mean weight *": lambda r: (
        f"{r.confidential.alpha.mean():.3f}" if r.confidential.alpha.size else "–"
    ),
    "R-hat, largest": _diagnostic(lambda fits: f"{max(fit.max_rhat for fit in fits):.3f}"),
    "bulk effective sample size, smallest": _diagnostic(
        lambda fits: f"{min(fit.min_ess_bulk for fit in fits):.0f}"
    ),
    "divergent transitions": _diagnostic(lambda fits: str(sum(fit.n_divergent for fit in fits))),
    "seconds of fitting": _seconds_of,
}

_STEP_ROWS = list(_FIT_ROWS.values())[1:]


def _engine(release: Release) -> str:
    made = release.provenance
    if isinstance(made, Provenance):
        return f"{made.engine} {made.engine_version}"
    return f"{made.library} {made.version}"


def _outcome_table(column: str, data: pd.Series, releases: Mapping[str, Release]) -> Table:
    """One column in the data and, averaged over sets, in synthetic data: percentiles of the values
    that are there, with a row of the share that is missing; or shares."""
    sets = {name: [table[column] for table in each.synthetic] for name, each in releases.items()}
    kind, columns = data.dtype, ([data], *sets.values())
    numeric = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
    header = ("" if numeric else "share of", "data (confidential)", *releases)
    table = table_of(f"{column}: data against synthetic data", header, ())
    if not numeric:
        for level, shares in level_shares(data, sets).items():
            table.add_row(level, *map(number_text, shares))
        return table
    from pyhybrid.reports.columns import STATISTICS

    for label in ("mean", "15th percentile", "median", "90th percentile"):
        of = STATISTICS[label]
        there = [[y.dropna().to_numpy(dtype=np.float64) for y in each] for each in columns]
        shown = (np.mean([of(y) if y.size else np.nan for y in each]) for each in there)
        table.add_row(label, *(number_text(float(value)) for value in shown))
    gone = [np.mean([y.isna().mean() for y in each]) for each in columns]
    if any(gone):
        table.add_row("share missing", *(number_text(float(share)) for share in gone))
    return table


def save_with_these(
    release: Release,
    source: SourceTable,
    decisions: Decisions,
    out: Path,
    *,
    file_format: str | None,
    **saving: Any,
) -> None:
    """Save the release and show it: other columns and missing values are as in the file, decided
    columns are gone."""
    made = release
    if made.origin is not None:
        made = replace(made, origin=replace(made.origin, table=source.name))
    made = source.restore(made).with_decisions(decisions)
    with progress_bars() as progress:
        progress("files and the report", 0, 0)
        made.save(out, file_format=file_format or source.file_format, **saving)
    try:
        show_release(source.frame if made.origin is None else made.origin.data, made, out)
    except Exception as error:  # it is saved, and may have been charged
        note(f"the release is saved in {out}; showing it failed ({type(error).__name__})")
