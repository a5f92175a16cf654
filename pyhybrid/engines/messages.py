"""What an engine says of a failure, without the numbers that it quotes.

Stan names the value that a statement rejects, which may be an outcome; CmdStan's complaint holds
the whole command with its seed. Messages end in logs and in mails: they keep the words, the lines
and columns of the program, and the positions in brackets.
"""

from __future__ import annotations

import re

__all__ = ["without_values"]

_COMMAND = re.compile(r"\n?Command and output files:.*", re.DOTALL)
_PLACE = r"(?P<place>\b(?:line|column|chains?|attempts?|of|in)\s+\d+\b|\[[\d, ]*\]|^\s*\d+:)"
_NUMBER = r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])"
_EITHER = re.compile(f"{_PLACE}|{_NUMBER}", re.MULTILINE)


def without_values(text: str) -> str:
    """`text` with its numbers as "#", but for places in the program and in vectors."""
    kept = _COMMAND.sub("", text)
    return _EITHER.sub(lambda found: found["place"] or "#", kept).strip()
