"""Texts of the Stan programs, read from the package or the checkout."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram

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

    # what `#include` names stands in its place: hashes and caches are of what runs
    parts = re.split(r"^#include (\S+)\n", path.read_text("utf-8"), flags=re.M)
    parts[1::2] = [(_folder() / part).read_text("utf-8") for part in parts[1::2]]
    return StanProgram(name=name, text="".join(parts))


def parameter_names(program: StanProgram) -> tuple[str, ...]:
    """Names declared in the program's parameters block, in order."""
    return declared_names(program, "parameters")


@cache
def declared_names(program: StanProgram, block: str) -> tuple[str, ...]:
    """Names declared in the block "data" or "parameters", in order."""
    statements = block_text(program, block).split(";")
    names = (re.search(r"(\w+)\s*(\[[^\[\]]*\])?\s*$", s.strip()) for s in statements if s.strip())
    return tuple(match.group(1) for match in names if match)


def block_text(program: StanProgram, block: str) -> str:
    """Text between the braces of a block, comments left out; "" if there is none."""
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


def user_program(name: str, text: str) -> StanProgram:
    """A user's text with arrays of today, and weights of 1 in generated quantities: a log_lik times
    weights, as the papers print it, is then the log-likelihood."""
    text = modern_arrays(text)
    found = re.fullmatch(r"(.*\bgenerated\s+quantities\s*\{)(.*\bweights\b.*)", text, re.DOTALL)
    if found is None:
        return StanProgram(name=name, text=text)
    unit = "vector[size(weights)] pyhybrid_unit = rep_vector(1, size(weights));"
    head, there = re.subn(r"(\btransformed\s+data\s*\{)", rf"\1 {unit}", found[1], count=1)
    block = "" if there else f"transformed data {{ {unit} }}\n"
    head = re.sub(r"(?=\bparameters\s*\{)", block, head, count=1)
    return StanProgram(name=name, text=head + re.sub(r"\bweights\b", "pyhybrid_unit", found[2]))


_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', re.DOTALL)
_PLAIN = "int|real|vector|row_vector|matrix"
_STAN_TYPE = (
    rf"(?:{_PLAIN}|simplex|unit_vector|ordered|positive_ordered|corr_matrix|cov_matrix|"
    r"cholesky_factor_corr|cholesky_factor_cov)"
)
_NESTED = r"\[(?:[^\[\];]|\[[^\[\];]*\])*\]"
_OLD_DECLARATION = re.compile(
    rf"(?P<type>\b{_STAN_TYPE}\b(?:\s*<[^<>;]*>)?(?:\s*{_NESTED})?)(?P<names>\s+[A-Za-z][^;{{}}]*);"
)
_DECLARED_NAME = re.compile(
    rf"\s*(?P<name>[A-Za-z]\w*)\s*(?P<dims>{_NESTED})?\s*(?P<value>=(?!=).*)?", re.S
)
_OLD_ARGUMENT = re.compile(rf"\b(?P<type>{_PLAIN})\s*\[(?P<dims>[\s,]*)\]")


def modern_arrays(text: str) -> str:
    """Stan text with arrays declared as current Stan demands: ``int y[n];`` becomes ``array[n] int
    y;``, and an argument ``int[] y`` becomes ``array[] int y``. All else stays, comments too, but
    for the letter Psi, which programs that are copied from a paper's file have for tabs."""
    text = text.replace("\N{GREEK CAPITAL LETTER PSI}", "\t")
    code = _COMMENT.sub(lambda hit: re.sub(r"[^\n]", " ", hit[0]), text)
    changes = [
        (hit.start(), hit.end(), f"array[{hit['dims']}] {hit['type']}")
        for hit in _OLD_ARGUMENT.finditer(code)
    ]
    for hit in _OLD_DECLARATION.finditer(code):
        items = [_DECLARED_NAME.fullmatch(item) for item in _between_commas(hit["names"])]
        if all(items) and any(item["dims"] for item in items if item):
            declared = [_modern_declaration(hit["type"], item) for item in items if item]
            changes.append((hit.start(), hit.end(), " ".join(declared)))
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _modern_declaration(kind: str, item: re.Match[str]) -> str:
    array = f"array{item['dims']} " if item["dims"] else ""
    value = f" {item['value'].strip()}" if item["value"] else ""
    return f"{array}{kind} {item['name']}{value};"


def _between_commas(text: str) -> list[str]:
    """Parts of a text between commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
