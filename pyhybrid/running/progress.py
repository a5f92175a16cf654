"""How long work says where it stands."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""
