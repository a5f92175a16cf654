"""Whole tables: what their columns can hold, and their synthesis at one charge."""

from __future__ import annotations

from pyhybrid.models.columns.types_files import read_types

__all__ = ["read_types"]
