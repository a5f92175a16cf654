"""What the entries of a ledger cost together: Gaussian charges by squares of mu, others added."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyhybrid.errors import InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import spent
from pyhybrid.privacy.epsilon import STRICT
from pyhybrid.releases.ledger_entry import LedgerEntry

__all__ = ["delta_of_new", "is_delta", "left_of", "spent_on", "spent_with"]

_DELTA = 1e-6


def is_delta(delta: Any) -> bool:
    """True for what the first line of a ledger may hold as its delta."""
    return delta is None or (isinstance(delta, float) and 0 < delta < 1)


def delta_of_new(kind: str, delta: float | None) -> dict[str, float]:
    """Delta of a new ledger, by name; none of a strict one."""
    if kind == STRICT:
        if delta is not None:
            raise InvalidInput("a strict ledger must have no delta: its charges have none")
        return {}
    return {"delta": _DELTA if delta is None else float(delta)}


def spent_on(entries: Sequence[LedgerEntry], delta: float | None) -> float:
    """Epsilon of all entries at `delta`."""
    mus = [entry.mu for entry in entries if entry.mu is not None]
    return spent(mus, [entry.epsilon for entry in entries if entry.mu is None], delta)


def spent_with(charge: PrivacyCharge, entries: Sequence[LedgerEntry], delta: float | None) -> float:
    """Epsilon of all entries and one more charge."""
    mus = [entry.mu for entry in entries if entry.mu is not None]
    plain = [entry.epsilon for entry in entries if entry.mu is None]
    if charge.accounting == "gaussian":
        return spent([*mus, charge.mu_of_release], plain, delta)
    return spent(mus, [*plain, charge.epsilon], delta)


def left_of(budget: float, spent: float) -> float:
    """Budget less what is spent, >= 0, exactly as decimals."""
    return max(0.0, float(Decimal(repr(budget)) - Decimal(repr(spent))))
