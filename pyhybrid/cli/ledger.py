"""`pyhybrid ledger create`, `pyhybrid ledger show` and --ledger of `synthesize`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pyhybrid.cli.console import frame_table, show
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import epsilon_text
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
