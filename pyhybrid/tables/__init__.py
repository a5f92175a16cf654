"""Whole tables: which model for which column, in which order, at which share of epsilon."""

from __future__ import annotations

from pyhybrid.models.columns.types_files import read_types
from pyhybrid.tables.plan import Plan
from pyhybrid.tables.steps import calibrate_table

__all__ = [
    "Plan",
    "calibrate_table",
    "read_types",
]
