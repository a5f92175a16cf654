"""A release as a command finishes it: saved, and shown to its owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import note, progress_bars, show, table_of
from pyhybrid.engines import Diagnostics, Provenance
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.tables.read import SourceTable

_MOST_COLUMNS = 3  # that show all their measures; of more, each shows its worst


def save_and_show(
    release: Release,
    source: SourceTable,
    decisions: Decisions,
    out: Path,
    *,
    overwrite: bool,
    ledger: Ledger | None,
) -> None:
    """Save the release and show it: other columns and missing values are as in the file, decided
    columns are gone."""
    if release.origin is not None:
        release = replace(release, origin=replace(release.origin, table=source.name))
    release = source.restore(release, release.decisions.ids).with_decisions(decisions)
    with progress_bars() as progress:
        progress("files and the report", 0, 0)
        release.save(out, file_format=source.file_format, overwrite=overwrite, ledger=ledger)
    try:
        data = source.frame if release.origin is None else release.origin.data
        show_release(data, release, out)
    except Exception as error:  # it is saved, and may have been charged
        note(f"the release is saved in {out}; showing it failed ({type(error).__name__})")


def show_release(data: pd.DataFrame, release: Release, out: Path) -> None:
    """Charge and convergence, how good each column is, and the folder that `release` is in."""
    show(_charge_table(release))
    _show_judged(data, release)
    show(
        f"\n{out}/public/        to give away: synthetic data and privacy_statement.md",
        f"{out}/confidential/  to keep: seed, report.html, and weights and bounds if any",
        *_unchanged(release),
        f"\n{release.statement.split(_PARAGRAPH)[1].replace('**', '')}",
    )


_PARAGRAPH = "\n\n"


def _unchanged(release: Release) -> list[str]:
    """A line that names the columns that leave unchanged; none if there are none."""
    changed = {*release.synthesized, *release.decisions.drop, *release.decisions.ids}
    names = [str(name) for name in release.synthetic[0].columns if str(name) not in changed]
    if not names:
        return []
    from pyhybrid.reports.verdicts import listed

    which = "1 other column is" if len(names) == 1 else f"{len(names)} other columns are"
    return [f"\n{which} published unchanged: {escape(listed(names, 6))}"]


def _charge_table(release: Release) -> Table:
    """Charge and diagnostics; of a sequence the worst of the steps. Some are confidential."""
    charge, rows = release.charge, dict[str, str]()
    rows["epsilon, all sets"] = epsilon_text(charge.epsilon)
    if charge.delta:
        rows["at delta"] = f"{charge.delta:g}"
    if charge.kind != STRICT:
        others = {"epsilon as published, 2 Δ": charge.epsilon_published,
                  "epsilon by the range": charge.epsilon_range}  # fmt: skip
        rows["accounting"] = charge.accounting
        rows |= {name: epsilon_text(e) for name, e in others.items() if e is not None}
    rows["kind"] = charge.kind
    rows["neighbor relation"] = f"{charge.relation} {charge.protected}"
    rows["synthetic sets m"] = str(charge.n_synthetic)
    parts = release.parts or (release,)
    rows |= _fit_rows([part.diagnostics for part in parts if part.diagnostics is not None])
    engines = {
        f"{made.engine} {made.engine_version}"
        if isinstance(made := part.provenance, Provenance)
        else f"{made.library} {made.version}"
        for part in parts
    }
    rows["engine"] = ", ".join(sorted(engines))
    name = "all columns" if release.parts else charge.mechanism
    return table_of("Privacy and convergence", ["", name], rows.items())


def _fit_rows(fits: Sequence[Diagnostics]) -> dict[str, str]:
    """The worst diagnostics of fits by chains."""
    if not fits:
        return {}
    return {
        "R-hat, largest": f"{max(fit.max_rhat for fit in fits):.3f}",
        "bulk effective sample size, smallest": f"{min(fit.min_ess_bulk for fit in fits):.0f}",
        "divergent transitions": str(sum(fit.n_divergent for fit in fits)),
    }


_COLORS = {"good": "green", "fair": "yellow", "POOR": "bold red"}


def _show_judged(data: pd.DataFrame, release: Release) -> None:
    """How good the synthetic columns are, in numbers with their limits, and lost relations."""
    from pyhybrid.reports.columns import lost_relations
    from pyhybrid.reports.release import beside_data
    from pyhybrid.reports.verdicts import POOR, judged_columns, limit_texts

    judged = judged_columns(release, data)
    many = len(judged) > _MOST_COLUMNS
    shown = [
        (column, measure)
        for column, measures in judged.items()
        for measure in (measures if not many else _worst_first(measures)[:1])
    ]
    if shown:
        title = "How good the synthetic data are (confidential"
        title += "; the worst measure of each, the report has all)" if many else ")"
        rows = (
            (f"{escape(column)}: {own.label}", own.text, *limit_texts(own.measure),
             f"[{_COLORS[own.word]}]{own.word}[/]")
            for column, own in shown
        )  # fmt: skip
        show(table_of(title, ("", "value", "good to", "POOR beyond", ""), rows))
    lost = [] if release.origin is None else lost_relations(beside_data(release, data), data)
    for text in lost:
        show(f"[bold red]{POOR}[/] {escape(text)}")


def _worst_first(measures: Sequence[Any]) -> list[Any]:
    return sorted(measures, key=lambda measure: -[*_COLORS].index(measure.word))
