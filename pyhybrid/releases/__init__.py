"""Releases: data with their charge and statement, the folder they live in, the ledger."""

from __future__ import annotations

from pyhybrid.releases.ledger import LedgerEntry

__all__ = ["LedgerEntry"]
