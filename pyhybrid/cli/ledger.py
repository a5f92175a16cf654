"""`pyhybrid ledger create` and `pyhybrid ledger show`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import epsilon_text

if TYPE_CHECKING:
    from pyhybrid.releases.ledger import Ledger, LedgerEntry

__all__ = ["commands"]

commands = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="The privacy budget of a data set, and the releases that drew on it.",
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.")]


@commands.command()
def create(
    path: File,
    budget: Annotated[float, typer.Option(help="Largest sum of epsilons.")],
    kind: Annotated[str, typer.Option(help="'strict' or 'asymptotic local'.")],
    relation: Annotated[str, typer.Option(help="Neighbors: remove or replace a record.")],
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta of a local ledger \\[default: 1e-6], or of a strict one whose charges are "
            "to add by rho where that is less."
        ),
    ] = None,
) -> None:
    """Start a ledger in a new file."""
    from pyhybrid.cli.console import show
    from pyhybrid.releases.ledger import Ledger

    if path.exists():
        raise InvalidInput(f"ledger {path} must be a new file: it exists")
    ledger = Ledger(path, budget=budget, kind=kind, relation=relation, delta=delta)
    show(
        f"{path}: a budget of {epsilon_text(ledger.budget)} for {kind} charges, {relation} one "
        "record"
    )


@commands.command("show")
def show_ledger(
    path: File,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with the charges in full.")
    ] = False,
) -> None:
    """The entries of a ledger, what is spent and what is left; its chain is checked."""
    from pyhybrid.cli.console import show
    from pyhybrid.releases.ledger import Ledger

    ledger = Ledger(path)
    summary = {
        "budget": ledger.budget,
        "kind": ledger.kind,
        "relation": ledger.relation,
        "delta": ledger.delta,
        "spent": ledger.spent,
        "left": ledger.left,
        "label": ledger.label,
        "head": ledger.head,
    }
    if as_json:
        entries = [asdict(entry) for entry in ledger.entries]
        print(json.dumps({**summary, "entries": entries}, indent=2))
        return
    show(
        _table(ledger),
        f"spent {epsilon_text(ledger.spent)} of {epsilon_text(ledger.budget)}, "
        f"left {epsilon_text(ledger.left)} ({ledger.label})",
        f"last line: sha256 {ledger.head}",
    )


def _table(ledger: Ledger) -> Table:
    table = Table(title=f"Ledger {ledger.path}", title_justify="left")
    for name in ("", "entered, UTC", "mechanism", "epsilon", "kind", "relation", "sets", "note"):
        table.add_column(name, justify="right" if name in ("", "epsilon", "sets") else "left")
    for entry in ledger.entries:
        table.add_row(
            str(entry.number),
            entry.time.removesuffix("+00:00").replace("T", " "),
            entry.made_by,
            epsilon_text(entry.epsilon),
            entry.kind,
            entry.relation,
            str(entry.charge["n_synthetic"] or "–"),
            _note(entry),
        )
    return table


def _note(entry: LedgerEntry) -> str:
    """What makes a charge weaker than its kind says."""
    notes = []
    if not entry.charge["converged"]:
        notes.append("not converged")
    if entry.charge["draw_quantile"] < 1:
        notes.append(f"draw quantile {entry.charge['draw_quantile']:g}")
    return ", ".join(notes)
