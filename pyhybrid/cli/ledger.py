"""`pyhybrid ledger create` and `pyhybrid ledger show`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer

from pyhybrid.cli.console import show, table_of
from pyhybrid.cli.options import options
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.releases.ledger import Ledger, LedgerEntry

commands = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Keep the privacy budget of a data set, and list the releases that used it.",
)


@commands.command()
@options
def create(path: Path, budget: float, kind: str, relation: str, delta: float | None = None) -> None:
    """Start a ledger in a new file.

    Options:
    path (FILE): The ledger.
    budget: Largest sum of epsilons.
    kind: 'strict' or 'asymptotic local'.
    delta: Delta of a local ledger [default: 1e-6], or of a strict one whose charges are to add by
        rho where that is less.
    """
    if path.exists():
        raise InvalidInput(f"ledger {path} must be a new file: it exists")
    ledger = Ledger(path, budget=budget, kind=kind, relation=relation, delta=delta)
    show(
        f"{path}: a budget of {epsilon_text(ledger.budget)} for {kind} charges, {relation} one "
        "record"
    )


@commands.command("show")
@options
def show_ledger(path: Path, as_json: bool = False) -> None:
    """Show the entries of a ledger, what is spent and what is left; check its chain.

    Options:
    path (FILE): The ledger.
    as_json (--json): Print JSON, with the charges in full.
    """
    ledger = Ledger(path)
    if as_json:
        names = ("budget", "kind", "relation", "delta", "spent", "left", "label", "head")
        summary = {name: getattr(ledger, name) for name in names}
        entries = [asdict(entry) for entry in ledger.entries]
        print(json.dumps({**summary, "entries": entries}, indent=2))
        return
    words = ("entered, UTC", "mechanism", "kind", "relation", "note")
    header = ("", *words[:2], "epsilon", *words[2:4], "sets", "note")
    rows = (
        [
            str(entry.number),
            entry.time.removesuffix("+00:00").replace("T", " "),
            entry.made_by,
            epsilon_text(entry.epsilon),
            entry.kind,
            entry.relation,
            str(entry.charge["n_synthetic"] or "–"),
            _note(entry),
        ]
        for entry in ledger.entries
    )
    show(
        table_of(f"Ledger {ledger.path}", header, rows, left=words),
        f"spent {epsilon_text(ledger.spent)} of {epsilon_text(ledger.budget)}, "
        f"left {epsilon_text(ledger.left)} ({ledger.label})",
        f"last line: sha256 {ledger.head}",
    )


def _note(entry: LedgerEntry) -> str:
    """What makes a charge weaker than its kind says."""
    notes = []
    if not entry.charge["converged"]:
        notes.append("not converged")
    if entry.charge["draw_quantile"] < 1:
        notes.append(f"draw quantile {entry.charge['draw_quantile']:g}")
    return ", ".join(notes)
