"""What is quoted in a formula, of which nothing is syntax."""

from __future__ import annotations

import re

__all__ = ["QUOTED", "bare"]

QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")


def bare(text: str) -> str:
    """The text with what is quoted blanked out, so that places stay the same."""
    return QUOTED.sub(lambda found: " " * len(found.group()), text)
