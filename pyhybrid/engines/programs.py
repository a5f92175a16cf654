"""Where the Stan programs are: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram

__all__ = [
    "block_text",
    "declared_names",
    "function_texts",
    "load_function",
    "load_program",
    "parameter_names",
    "program_names",
    "with_large_weights",
]

_WEIGHTS = re.compile(
    r"<\s*lower\s*=\s*0\s*,\s*upper\s*=\s*1\s*>(\s*\[[^\]]*\]\s*(?:pyhybrid_)?weights\w*)"
)
_PACKAGE = Path(__file__).resolve().parent.parent


def _folder() -> Path:
    packaged = _PACKAGE / "stan"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "stan"


def program_names() -> list[str]:
    """Names of the programs that come with pyhybrid."""
    return sorted(path.stem for path in _folder().glob("*.stan"))


@cache
def load_program(name: str) -> StanProgram:
    """Return the program stan/`name`.stan."""
    path = _folder() / f"{name}.stan"
    if not path.is_file():
        known = ", ".join(program_names())
        raise InvalidInput(f"program must be one of {known}: found {name!r}")
    return StanProgram(name=name, text=_whole(path))


def _whole(path: Path) -> str:
    """Text of a program with what its lines ``#include file`` name in their place.

    Every engine gets the whole text, so that hashes and caches are of what runs.
    """
    text = path.read_text(encoding="utf-8")
    return re.sub(
        r"^#include (\S+)\n",
        lambda found: (_folder() / found[1]).read_text("utf-8"),
        text,
        flags=re.M,
    )


def function_texts(name: str) -> tuple[tuple[str | None, str], ...]:
    """What the functions block of the program stan/`name`.stan is made of: the files that it
    includes with their texts, and the program's own functions, with None, between them."""
    load_program(name)
    raw = StanProgram(name=name, text=(_folder() / f"{name}.stan").read_text(encoding="utf-8"))
    pieces = re.split(r"^#include (\S+)\n", block_text(raw, "functions"), flags=re.M)
    return tuple(
        (piece, load_function(piece)) if k % 2 else (None, piece)
        for k, piece in enumerate(pieces)
        if piece.strip()
    )


def load_function(file: str) -> str:
    """Text of a file of functions, such as ``"functions/counts.stan"``."""
    return (_folder() / file).read_text(encoding="utf-8")


def parameter_names(program: StanProgram) -> tuple[str, ...]:
    """Names declared in the program's parameters block, in order."""
    return declared_names(program, "parameters")


def declared_names(program: StanProgram, block: str) -> tuple[str, ...]:
    """Names declared in the block "data" or "parameters", in order."""
    statements = block_text(program, block).split(";")
    names = (re.search(r"(\w+)\s*(\[[^\[\]]*\])?\s*$", s.strip()) for s in statements if s.strip())
    return tuple(match.group(1) for match in names if match)


def block_text(program: StanProgram, block: str) -> str:
    """What stands between the braces of a block, comments left out; "" if there is none."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", program.text, flags=re.DOTALL)
    start = re.search(rf"(?<!transformed )\b{block}\s*\{{", text)
    if start is None:
        return ""
    depth, end = 1, start.end()
    while depth and end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start.end() : end - 1]


def with_large_weights(program: StanProgram) -> StanProgram:
    """The program with weights that may be above 1, as those of surveys are."""
    return StanProgram(name=program.name, text=_WEIGHTS.sub(r"<lower=0>\1", program.text))
