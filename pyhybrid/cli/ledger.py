"""`pyhybrid ledger create`, `pyhybrid ledger show` and --ledger of `synthesize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from pyhybrid.cli.console import check_outputs, show, shown_as_json, table_of
from pyhybrid.cli.options import options
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.privacy.conversions import STRICT, epsilon_text
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
def show_ledger(path: Path, json_out: str | None = None) -> None:
    """Show the entries of a ledger, what is spent and what is left.

    Options:
    path (FILE): The ledger.
    json_out (--json): Write it as JSON, with the charges in full, to this file; - for standard
        output.
    """
    check_outputs(json_out)
    ledger = Ledger(path)
    if json_out is not None:
        names = ("budget", "kind", "relation", "delta", "spent", "left", "label")
        summary = {name: getattr(ledger, name) for name in names}
        entries = [asdict(entry) for entry in ledger.entries]
        if shown_as_json({**summary, "entries": entries}, json_out):
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
    )


def _note(entry: LedgerEntry) -> str:
    """What makes a charge weaker than its kind says."""
    notes = []
    if not entry.charge["converged"]:
        notes.append("not converged")
    if entry.charge["draw_quantile"] < 1:
        notes.append(f"draw quantile {entry.charge['draw_quantile']:g}")
    return ", ".join(notes)


def open_ledger(
    given: Mapping[str, Any], name: str, relation: str, delta: float | None, epsilon: float | None
) -> Ledger | None:
    """The ledger of --ledger, checked before any work for a release that it would refuse: by a
    mechanism of this `name` and relation, counted at `delta`, of `epsilon` if it is known."""
    path, allow_unlike = given["ledger"], given["allow_unlike"]
    if path is None:
        return None
    ledger = Ledger(path, allow_unlike=allow_unlike)
    if ledger.left == 0:
        raise BudgetExceeded(
            f"ledger {path} must have budget left: all of {epsilon_text(ledger.budget)} is spent"
        )
    if relation != ledger.relation and not allow_unlike:
        raise InvalidInput(
            f"charges in ledger {path} must be for {ledger.relation} one record: {name} "
            f"would be for {relation}; give --relation {ledger.relation}, or --allow-unlike"
        )
    if delta is not None and ledger.kind != STRICT and delta != ledger.delta:
        raise InvalidInput(
            f"charges in ledger {path} must be counted at its delta, {ledger.delta or 'none'}: "
            f"found {delta:g}; give --delta, or --accounting range"
        )
    added = ledger.kind == STRICT and ledger.delta is None  # at a delta it may cost less
    if epsilon is not None and epsilon > ledger.left and added:
        raise BudgetExceeded(
            f"ledger {path} must have budget for this release: it would cost "
            f"{epsilon_text(epsilon)}, and {epsilon_text(ledger.left)} is left"
        )
    return ledger
