"""Tables that stay where they are: opened, counted there, released in parts."""

from __future__ import annotations

from pyhybrid.sources.by_formula import synthesize_by_formula
from pyhybrid.sources.comparing import compare_numbers, count_distances
from pyhybrid.sources.parts import ReleaseInParts
from pyhybrid.sources.release import synthesize_source
from pyhybrid.sources.rows import in_memory as in_memory
from pyhybrid.sources.rows import read_columns
from pyhybrid.sources.source import Source, open_source

__all__ = [
    "ReleaseInParts",
    "Source",
    "compare_numbers",
    "count_distances",
    "open_source",
    "read_columns",
    "synthesize_by_formula",
    "synthesize_source",
]
