"""A ledger, checked before any work is done for a release that it would refuse."""

from __future__ import annotations

from pathlib import Path

from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.ledger import Ledger

__all__ = ["open_ledger"]


def open_ledger(
    path: Path,
    *,
    name: str,
    relation: str,
    delta: float | None,
    epsilon: float | None = None,
    allow_unlike: bool,
) -> Ledger:
    """The ledger at `path`, for a release to come.

    Parameters
    ----------
    path : path
    name, relation : str
        Of its mechanism.
    delta : float, optional
        At which its charge will be counted; None for one without.
    epsilon : float, optional
        What it will cost, nats, if that is known beforehand.
    allow_unlike : bool
        See `pyhybrid.Ledger`.

    Raises
    ------
    BudgetExceeded
        If all is spent, or less than `epsilon` is left.
    InvalidInput
        For another relation or delta than the ledger's.
    """
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
