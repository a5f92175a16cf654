"""A release as a command finishes it, charged to its ledger, saved and shown; `report` and `open`,
its owner's pages; `ledger create` and `ledger show`."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.markup import escape

from pyhybrid.cli.console import frame_table, note, progress_bars, show
from pyhybrid.cli.options import read_table
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.folder import formulas_in
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.running.files import check_new_file, write_files
from pyhybrid.tables.read import SourceTable

if TYPE_CHECKING:
    from pyhybrid.reports.page import Section

_MOST_COLUMNS = 3  # the worst ones; the report has all


def save_and_show(
    request: Any, release: Release, source: SourceTable, decisions: Decisions, ledger: Ledger | None
) -> None:
    """Save the release as the options of `synthesize` say and show it: other columns and missing
    values are as in the file, decided columns are gone."""
    out = request.out
    if release.origin is not None:
        release = replace(release, origin=replace(release.origin, table=source.name))
    release = source.restore(release, release.decisions.ids).with_decisions(decisions)
    looked_at = source.file_format == "csv" and not source.excel_safe
    columns = release.synthetic[0].items() if looked_at else ()
    formulas = [str(n) for n, column in columns if formulas_in(pd.Series([n, *column])).any()]
    if formulas:
        note(
            f"{', '.join(formulas)}: names or cells begin with = + - or @, which a spreadsheet "
            "takes for formulas: --read formulas=escaped writes them as text"
        )
    with progress_bars() as progress:
        progress("files and the report", 0, 0)
        release.save(
            out, file_format=source.file_format, overwrite=request.overwrite, ledger=ledger,
            excel_safe=source.excel_safe,
        )  # fmt: skip
    try:
        data = source.frame if release.origin is None else release.origin.data
        show_release(data, release, out)
    except Exception as error:  # it is saved, and may have been charged
        note(f"the release is saved in {out}; showing it failed ({type(error).__name__})")


def show_release(data: pd.DataFrame, release: Release, out: Path) -> None:
    """What the report opens with, columns that leave unchanged, and the release's folder."""
    from pyhybrid.reports.columns import damaged_pairs, pair_ratios
    from pyhybrid.reports.release import beside_data, with_days
    from pyhybrid.reports.verdicts import judged_columns, limit_texts, listed, verdict_section

    release, data = with_days(release, data)
    known = release.origin is not None
    lost = damaged_pairs(pair_ratios(beside_data(release, data), data)) if known else []
    judged = judged_columns(release, data)
    show_opening(verdict_section(release, judged, lost))
    for column, measures in list(judged.items())[:_MOST_COLUMNS]:
        worst = min(measures, key=lambda measure: measure.rank)
        good, poor = limit_texts(worst.measure)
        limits = f"good to {good}, POOR beyond {poor}"
        show(f"{escape(column)}: {worst.label} {worst.text} ({limits}): {worst.word}")
    changed = {*release.synthesized, *release.decisions.drop, *release.decisions.ids}
    names = [str(name) for name in release.synthetic[0].columns if str(name) not in changed]
    if names:
        which = "1 other column is" if len(names) == 1 else f"{len(names)} other columns are"
        show(f"\n{which} published unchanged: {escape(listed(names, 6))}")
    show(
        f"\n{out}/public/        to give away: synthetic data and privacy_statement.md",
        f"{out}/confidential/  to keep: seed, report.html, and weights and bounds if any",
    )


def show_opening(opening: Section) -> None:
    """The section that a report opens with: in short."""
    show(
        *(f"[bold]{word}[/]{escape(text)}" for _, word, text in opening.paragraphs),
        *(f"- {escape(bullet)}" for bullet in opening.bullets),
    )


def report(
    release: Path,
    *,
    data: Path,
    out: Path | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the report of a release anew."""
    from pyhybrid.reports.release import release_report

    page = _page_of(release)
    target = page if out is None else out
    check_new_file(target, overwrite=overwrite, what="report")
    loaded, frame = Release.load(release), read_table(data, read=read).frame
    write_files({target: release_report(loaded, frame, table=data.name)}, private=True)
    show(f"{target}: the report, confidential")


def open(release: Path) -> None:
    """Open the page in a browser."""
    page = _page_of(release)
    if not page.is_file():
        how = f"pyhybrid report {release} --data TABLE makes one"
        raise InvalidInput(f"{release} must have a report: it has none; {how}")
    if not webbrowser.open(page.resolve().as_uri()):
        note("no browser was found: open the file yourself")
    show(str(page))


def _page_of(release: Path) -> Path:
    if not (release / "public").is_dir():
        missing = "is no release" if release.exists() else "does not exist"
        raise InvalidInput(f"{release} must be the folder of a release (--out): it {missing}")
    return release / "confidential" / "report.html"


def ledger_create(
    path: Path, *, budget: float, kind: str, relation: str, delta: float | None = None
) -> None:
    """Start a ledger in a new file."""
    if path.exists():
        raise InvalidInput(f"ledger {path} must be a new file: it exists")
    ledger = Ledger(path, budget=budget, kind=kind, relation=relation, delta=delta)
    show(
        f"{path}: a budget of {epsilon_text(ledger.budget)} for {kind} charges, {relation} one "
        "record"
    )


def ledger_show(path: Path) -> None:
    """Show the entries of a ledger, what is spent and what is left."""
    ledger, shown = Ledger(path), ("kind", "relation", "n_synthetic")
    rows = [
        (entry.number, entry.time.removesuffix("+00:00").replace("T", " "), entry.made_by,
         epsilon_text(entry.epsilon), *(entry.charge[name] for name in shown),
         "" if entry.charge["converged"] else "not converged")
        for entry in ledger.entries
    ]  # fmt: skip
    titles = ["", "entered, UTC", "mechanism", "epsilon", "kind", "relation", "sets", "note"]
    show(
        frame_table(f"Ledger {ledger.path}", pd.DataFrame(rows, columns=titles)),
        f"spent {epsilon_text(ledger.spent)} of {epsilon_text(ledger.budget)}, "
        f"left {epsilon_text(ledger.left)} ({ledger.label})",
    )


def open_ledger(
    path: Path | None, relation: str, delta: float | None, epsilon: float | None = None
) -> Ledger | None:
    """The ledger of --ledger, refused before any work for a release that it would not take."""
    ledger = None if path is None else Ledger(path)
    if ledger is not None:
        ledger.check(relation=relation, delta=delta, epsilon=epsilon)
    return ledger
