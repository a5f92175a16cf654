"""Releases: data with their charge and statement, the folder they live in, the ledger."""

from __future__ import annotations

from pyhybrid.releases.ledger import LedgerEntry
from pyhybrid.releases.postprocess import with_households, with_rows, with_totals

__all__ = ["LedgerEntry", "with_households", "with_rows", "with_totals"]
