"""Texts of the Stan programs: read from the package or the checkout, and joined.

The posterior of two models of one outcome (whether it is 0, and how large it is otherwise) factors
as long as nothing is clipped. A cap clips what a record says in all, so that both must be sampled
together. The joint program is made of the texts of the single ones: every name that a part declares
gets the part's suffix, functions of its own included, and the place where it would add its clipped
terms hands its log densities over instead. Without a cap each part adds its likelihood in its own,
fastest way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram

_WEIGHTS = re.compile(
    r"<\s*lower\s*=\s*0\s*,\s*upper\s*=\s*1\s*>(\s*\[[^\]]*\]\s*(?:pyhybrid_)?weights\w*)"
)
_PACKAGE = Path(__file__).resolve().parent.parent

SHARED = ("use_cap", "cap_below", "cap_above", "emit_log_lik")
"""Data that the parts have in common; they keep their names."""
DROPPED = ("reference", "unit", "n_units", "n_frozen", "farthest", "steep")
"""Data of a part that the joint program has for records instead."""
_TYPE = (
    r"(?:int|real|complex|vector|row_vector|matrix|simplex|unit_vector|ordered|positive_ordered|"
    r"corr_matrix|cov_matrix|cholesky_factor_corr|cholesky_factor_cov)"
)
_DECLARED = re.compile(
    rf"\s*(?:array\s*\[[^\]]*\]\s*)?{_TYPE}\b\s*(?:<[^>]*>)?\s*(?:\[[^\]]*\])?\s*([A-Za-z]\w*)"
)
_ADDED = re.compile(r"target\s*\+=\s*pseudo_log_lik\(\s*(\w+)\s*,[^;]*\)\s*;")
_BLOCKS = (
    "data",
    "transformed data",
    "parameters",
    "transformed parameters",
    "generated quantities",
)
_DATA = """
  int<lower=0, upper=1> use_cap;
  real<lower=0> cap_below;
  real<lower=0> cap_above;
  int<lower=0, upper=1> emit_log_lik;
  int<lower=0, upper=1> by_term;               // 1: log densities are joined, term by term
  int<lower=0> n_terms;                        // distinct records; 0 if by_term = 0
  vector<lower=0>[n_terms] frequency;
  vector<lower=0, upper=1>[n_terms] weights;
  vector[n_terms] reference;                   // a record's term at a frozen theta
  int<lower=0> n_units;
  int<lower=0> n_frozen;                       // 0: joint programs take no frozen rows
  real<lower=0> farthest;
  real<lower=0> steep;
  array[n_terms] int<lower=0> unit;
"""
_OF_RECORDS = """
  if (by_term == 1) {{
    vector[n_terms] joint = {joined};
    target += pseudo_log_lik(joint, frequency, weights, reference, unit, n_units, n_frozen,
                             farthest, steep, use_cap, cap_below, cap_above);
  }}
"""
_WRITTEN = """
  if (emit_log_lik == 1) {{
{own}
    log_lik = {joined};
  }}
"""


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
    """Text with what ``#include file`` names in its place: hashes and caches are of what runs."""
    text = path.read_text(encoding="utf-8")
    return re.sub(
        r"^#include (\S+)\n",
        lambda found: (_folder() / found[1]).read_text("utf-8"),
        text,
        flags=re.M,
    )


def _function_texts(name: str) -> tuple[tuple[str | None, str], ...]:
    """Pieces of the functions block of the program stan/`name`.stan: the files that it
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


def joint_program(
    parts: Mapping[str, str], joined: str, *, functions: tuple[str, ...] = (), data: str = ""
) -> StanProgram:
    """The program of `parts`, names of programs by suffix; `joined` is the Stan expression of a
    record's log density, of vectors (n_terms,) named ``of_SUFFIX``."""
    return _joint(tuple(parts.items()), joined, functions, data)


@cache
def _joint(
    parts: tuple[tuple[str, str], ...], joined: str, functions: tuple[str, ...], data: str
) -> StanProgram:
    texts = {suffix: _blocks(name, suffix) for suffix, name in parts}
    files = ("functions/joint_terms.stan", *functions)
    texts_of = (text for suffix, name in parts for text in _functions(name, suffix))
    used = dict.fromkeys((*texts_of, *map(load_function, files)))
    # rstan before 2.26 wants declarations before statements.
    body = {
        block: "".join(texts[s][block][kind] for kind in (0, 1) for s, _ in parts)
        for block in _BLOCKS
    }
    rows = "".join(f"  array[n_terms] int<lower=1> row_{s};\n" for s, _ in parts)
    handed = "".join(f"  vector[n_terms] of_{s};\n" for s, _ in parts)
    models = "".join(f"  {{{texts[s]['model'][1]}  }}\n" for s, _ in parts)
    terms = "\n".join(
        f"    vector[n_terms] of_{s} = in_terms(log_lik_{s}, row_{s});" for s, _ in parts
    )
    programs = " and ".join(name for _, name in parts)
    title = f"// {programs}, joined by record: {joined}.\n"
    text = "\n".join(
        (
            f"{title}functions {{\n{''.join(used)}}}",
            f"data {{{_DATA}{rows}{data}{body['data']}\n}}",
            f"transformed data {{{body['transformed data']}\n}}",
            f"parameters {{{body['parameters']}\n}}",
            f"transformed parameters {{{body['transformed parameters']}\n}}",
            f"model {{\n{handed}{models}{_OF_RECORDS.format(joined=joined)}}}",
            "generated quantities {\n  vector[emit_log_lik == 1 ? n_terms : 0] log_lik;"
            f"{body['generated quantities']}{_WRITTEN.format(own=terms, joined=joined)}}}",
        )
    )
    lines = (line.rstrip() for line in text.splitlines())
    return StanProgram(
        name="_and_".join(name for _, name in parts),
        text="\n".join(line for line in lines if line) + "\n",
    )


def _blocks(name: str, suffix: str) -> dict[str, tuple[str, str]]:
    """Declarations and statements of each block of a program, with the names of its part."""
    program = load_program(name)
    blocks = {block: block_text(program, block) for block in (*_BLOCKS, "model")}
    pieces = {block: _pieces(text) for block, text in blocks.items()}
    left_out = (*SHARED, *DROPPED)
    pieces["data"] = [piece for piece in pieces["data"] if _declares(piece) not in left_out]
    names = {_declares(piece) for block in _BLOCKS for piece in pieces[block]} - {None}
    named = _any_of({str(piece) for piece in names} | _own_functions(name))
    handed = (
        f"if (by_term == 1) {{\\n      of_{suffix} = in_terms(\\1, row_{suffix});\\n"
        "    } else {\\n"
        f"      target += dot_product(frequency_{suffix} .* weights_{suffix}, \\1);\\n    }}"
    )

    def of_part(text: str) -> str:
        return named.sub(rf"\1_{suffix}", text)

    joined = {}
    for block in _BLOCKS:
        kinds = [[_declares(piece) is not None, of_part(piece)] for piece in pieces[block]]
        joined[block] = (
            "".join(str(text) for declared, text in kinds if declared),
            "".join(str(text) for declared, text in kinds if not declared),
        )
    body = re.sub(r"\buse_cap\b", "by_term", _ADDED.sub("@\\1@", blocks["model"]))
    joined["model"] = ("", re.sub(r"@(\w+)@", handed, of_part(body)))
    return joined


def _functions(name: str, suffix: str) -> list[str]:
    """Texts of shared functions and of the program's own with its suffix: rstan 2.21 lets no local
    variable have the name of a function, in whichever part."""
    own_names = _own_functions(name)
    return [
        text if file or not own_names else _any_of(own_names).sub(rf"\1_{suffix}", text)
        for file, text in _function_texts(name)
    ]


def _own_functions(name: str) -> set[str]:
    """Names of the functions that a program defines in its own text."""
    texts = (text for file, text in _function_texts(name) if file is None)
    declared = (_DECLARED.match(match) for text in texts for match in _pieces(text))
    return {match[1] for match in declared if match is not None}


def _any_of(names: set[str]) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(sorted(names))})\b")


def _pieces(block: str) -> list[str]:
    """Statements of a block, each with what is in its braces."""
    pieces, start, depth = [], 0, 0
    for position, character in enumerate(block):
        depth += (character in "{[(") - (character in "}])")
        if depth == 0 and character in ";}":
            pieces.append(block[start : position + 1])
            start = position + 1
    return pieces


def _declares(piece: str) -> str | None:
    """The name that a statement declares, if it declares one."""
    match = _DECLARED.match(piece)
    return None if match is None else match[1]


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
    y;``, and an argument ``int[] y`` becomes ``array[] int y``. All else stays, comments too."""
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
