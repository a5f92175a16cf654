"""What the entries of a ledger cost together.

Gaussian charges by squares of mu, others added; strict ones, in a ledger with a delta, by rho of
zero-concentrated privacy where that is less.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import epsilon_together, spent
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.ledger_entry import LedgerEntry

__all__ = ["delta_of_new", "is_delta", "left_of", "spent_on", "spent_with"]

_DELTA = 1e-6


def is_delta(delta: Any) -> bool:
    """True for what the first line of a ledger may hold as its delta."""
    return delta is None or (isinstance(delta, float) and 0 < delta < 1)


def delta_of_new(kind: str, delta: float | None) -> dict[str, float]:
    """Delta of a new ledger, by name; none of a strict one whose epsilons are to be added."""
    if kind == STRICT:
        return {} if delta is None else {"delta": float(delta)}
    return {"delta": _DELTA if delta is None else float(delta)}


def spent_on(entries: Sequence[LedgerEntry], delta: float | None) -> float:
    """Epsilon of all entries at `delta`."""
    if delta is not None and _all_strict(entries):
        return epsilon_together([entry.charge for entry in entries], delta)
    return spent(_gaussian(entries), [e.epsilon for e in entries if e.mu is None], delta)


def spent_with(charge: PrivacyCharge, entries: Sequence[LedgerEntry], delta: float | None) -> float:
    """Epsilon of all entries and one more charge."""
    if delta is not None and _all_strict(entries) and charge.kind == STRICT:
        return epsilon_together([*(entry.charge for entry in entries), charge.public()], delta)
    plain = [entry.epsilon for entry in entries if entry.mu is None]
    if charge.accounting == "gaussian":
        own = (charge.mu_of_release, charge.epsilon_failing)
        return spent([*_gaussian(entries), own], plain, delta)
    return spent(_gaussian(entries), [*plain, charge.epsilon], delta)


def _gaussian(entries: Sequence[LedgerEntry]) -> list[tuple[float, float]]:
    return [(entry.mu, entry.epsilon_failing) for entry in entries if entry.mu is not None]


def _all_strict(entries: Sequence[LedgerEntry]) -> bool:
    return all(entry.kind == STRICT for entry in entries)


def left_of(budget: float, spent: float) -> float:
    """Budget less what is spent, >= 0, exactly as decimals."""
    return max(0.0, float(Decimal(repr(budget)) - Decimal(repr(spent))))
