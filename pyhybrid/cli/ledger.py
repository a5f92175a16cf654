"""`pyhybrid ledger create`, `pyhybrid ledger show` and --ledger of `synthesize`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pyhybrid.cli.console import frame_table, show
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.ledger import Ledger


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
    ledger = Ledger(path)
    rows = [
        (entry.number, entry.time.removesuffix("+00:00").replace("T", " "), entry.made_by,
         epsilon_text(entry.epsilon), entry.kind, entry.relation, entry.charge["n_synthetic"],
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
    path: Path | None, name: str, relation: str, delta: float | None, epsilon: float | None = None
) -> Ledger | None:
    """The ledger of --ledger, refused before any work for a release that it would not take: by a
    mechanism of this `name` and relation, counted at `delta`, of `epsilon` if it is known."""
    if path is None:
        return None
    ledger = Ledger(path)
    if relation != ledger.relation:
        raise InvalidInput(
            f"charges in ledger {path} must be for {ledger.relation} one record: {name} would be "
            f"for {relation}; give the mechanism relation={ledger.relation}"
        )
    if delta is not None and delta != ledger.delta:
        raise InvalidInput(
            f"charges in ledger {path} must be counted at its delta, {ledger.delta or 'none'}: "
            f"found {delta:g}; give --delta of the ledger, or the mechanism accounting=range, or "
            f"start a ledger: pyhybrid ledger create --delta {delta:g}"
        )
    added = ledger.kind == STRICT and ledger.delta is None  # at a delta it may cost less
    if ledger.left == 0 or (epsilon is not None and epsilon > ledger.left and added):
        raise BudgetExceeded(
            f"a release must cost at most what is left in ledger {path}, "
            f"{epsilon_text(ledger.left)} of {epsilon_text(ledger.budget)}"
        )
    return ledger
