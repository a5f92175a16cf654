"""Whole tables: what their columns can hold, and their synthesis at one charge."""

from __future__ import annotations

from pyhybrid.models.columns.types_files import read_types
from pyhybrid.tables.read import read_file

__all__ = ["read_file", "read_types"]
