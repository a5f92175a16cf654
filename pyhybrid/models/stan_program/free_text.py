"""What is read in the text of a whole program: what decides by weights, and what it is composed of.

A program that does one thing at one weight or cap and another thing elsewhere can pass every trial
and do harm in the release. The weights and the cap of a fit are tried; here what could tell them
from others is refused: weights and cap may multiply and clip terms, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram
from pyhybrid.models.stan_program.stan_text import (
    Declared,
    Token,
    arguments,
    blocks_of,
    closing,
    conditions,
    declarations,
    names_in,
    tokens_of,
    written,
)
from pyhybrid.models.stan_program.total_likelihoods import Function, functions_of

__all__ = ["check_decides_nothing", "composed_template"]

_BLOCKS = (
    "functions", "data", "transformed data", "parameters", "transformed parameters", "model",
    "generated quantities",
)  # fmt: skip
_OURS = frozenset({"weights", "cap", "use_cap", "n", "N"})
_NAMES = (
    "dot_product sum elt_multiply size num_elements rows cols to_vector to_row_vector reduce_sum "
    "reduce_sum_static map_rect head tail segment rep_vector if for while return print"
)
_LINEAR = frozenset(_NAMES.split())
_CLIPS = frozenset({"fmax", "fmin"})
_NONE: tuple[Token, ...] = ()
_MANY = 50  # arguments of a function
_COMPARES = frozenset({"<", ">", "<=", ">=", "==", "!=", "!", "&&", "||"})


def check_decides_nothing(program: StanProgram) -> None:
    """Raise InvalidInput if a program decides by weights or cap, or steps at a value of them.

    Names that are made of them count as they do. ``use_cap`` alone may decide.
    """
    tokens = tokens_of(program.text, program.name, lenient=True)
    found = _deciding(blocks_of(tokens, program.name, _BLOCKS))
    if found is not None:
        raise InvalidInput(
            f"program {program.name!r} must do the same at all weights and caps: line {found.line} "
            f"decides, compares or steps by {found.text!r}; weights may multiply a record's term, "
            "and a cap may clip it, fmax(-cap, fmin(cap, ...)), where use_cap alone says so"
        )


def _deciding(blocks: Mapping[str, tuple[Token, ...]]) -> Token | None:
    """The first name made of weights or cap by which something is decided, if there is one."""
    functions = functions_of(blocks.get("functions", ()))
    own_blocks = [block for name, block in blocks.items() if name != "data"]
    told = _told([t for block in own_blocks for t in block], functions, {"weights", "cap"})
    for block in own_blocks:
        for start, end in conditions(block):
            own = names_in(block[start:end])
            if own & told or ("use_cap" in own and own != {"use_cap"}):
                return next(t for t in block[start:end] if t.text in told | {"use_cap"})
        for segment in _segments(block):
            named = next((token for token in segment if token.text in told), None)
            if named is not None and _steps(segment, told, {each.name for each in functions}):
                return named
    return None


def _told(tokens: Sequence[Token], functions: Sequence[Function], told: set[str]) -> frozenset[str]:
    """Names of what is made of weights or cap: by assignment, or as an argument."""
    while True:
        more = set(told)
        for segment in _segments(tokens):
            at = next((k for k, t in enumerate(segment) if t.text in ("=", "+=")), None)
            if at and names_in(segment[at:]) & told:
                left = [token.text for token in segment[:at] if token.text not in "[]"]
                place = next((k for k, t in enumerate(segment[:at]) if t.text == "["), None)
                assigned = segment[at - 1].text if segment[at - 1].is_name else None
                if assigned is None and place:
                    assigned = segment[place - 1].text
                more |= {assigned or left[0]} - {"target", "log_lik"}
        for function in functions:
            for given in _calls(tokens, function.name):
                more |= _arguments_told(function, given, told)
        if more == told:
            return frozenset(told)
        told = more


def _calls(tokens: Sequence[Token], name: str) -> Iterator[list[tuple[Token, ...]]]:
    """Arguments of calls of a function, and of those it is handed to, which tell it all."""
    for place, token in enumerate(tokens[:-1]):
        if token.text == name and tokens[place + 1].text == "(":
            yield arguments(tokens[place + 2 : closing(tokens, place + 1)])
        elif token.text == name and tokens[place - 1].text == "(":
            given = arguments(tokens[place : closing(tokens, place - 1)])
            if tokens[place - 2].text.startswith("reduce_sum"):  # (slice, first, last, the others)
                yield [given[1], _NONE, _NONE, *given[3:]]
            else:
                yield [tuple(token for each in given[1:] for token in each)] * _MANY


def _arguments_told(
    function: Function, given: Sequence[tuple[Token, ...]], told: set[str]
) -> set[str]:
    pairs = zip(function.arguments, given, strict=False)
    return {argument[-1].text for argument, value in pairs if names_in(value) & told}


def _segments(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """What stands between semicolons and braces."""
    own: list[Token] = []
    for token in tokens:
        if token.text in (";", "{", "}"):
            yield tuple(own)
            own = []
        else:
            own.append(token)
    yield tuple(own)


def _steps(segment: Sequence[Token], told: frozenset[str], own: set[str]) -> bool:
    """True if a statement compares `told` names, or calls with them what is not linear."""
    decided = {place for start, end in conditions(segment) for place in range(start, end)}
    if _COMPARES & {t.text for place, t in enumerate(segment) if place not in decided}:
        return True
    if any(
        t.text in ("^", ".^") and names_in(segment[max(0, place - 4) : place + 2]) & told
        for place, t in enumerate(segment)
    ):
        return True
    for place, token in enumerate(segment[:-1]):
        if not token.is_name or segment[place + 1].text != "(":
            continue
        given = arguments(segment[place + 2 : closing(segment, place + 1)])
        if token.text in _LINEAR | own or not any(names_in(each) & told for each in given):
            continue
        ends = {written([t for t in each if t.text != "-"]) for each in given if len(each) < 3}
        if token.text not in _CLIPS or not ends & told:
            return True
    return False


def composed_template(program: StanProgram) -> str:
    """A composed program made of what can be read in a whole one; the rest is for the user."""
    tokens = tokens_of(program.text, program.name, lenient=True)
    blocks = blocks_of(tokens, program.name, _BLOCKS)
    data = declarations(blocks.get("data", ()), only=False, where="data")
    own = [each for each in data if each.name not in _OURS]
    record = [each for each in own if _by_record(each) is not None]
    constants = [each.text() for each in own if each not in record]
    entries = [_by_record(each) or "" for each in record]
    names = {each.name for each in record}
    parts = {
        "functions": written(blocks.get("functions", ())),
        "data": "\n".join(constants),
        "record": "\n".join(entries) or "real y;",
        "parameters": written(blocks.get("parameters", ())),
        "transformed parameters": written(blocks.get("transformed parameters", ())),
        "prior": _prior(blocks.get("model", ()), names),
        "log_lik": _returned(blocks, names, "log_lik"),
        "replicate": _returned(blocks, names, None),
    }
    needed = ("record", "parameters", "prior", "log_lik", "replicate")
    return "\n".join(
        f"{name} {{\n  " + text.replace("\n", "\n  ") + "\n}"
        for name, text in parts.items()
        if text or name in needed
    )


def _by_record(own: Declared) -> str | None:
    """The declaration of one record's entry; None for what has not one value per record."""
    array, sizes = arguments(own.array), arguments(own.sizes)
    bounds = f"<{written(own.bounds)}>" if own.bounds else ""
    if array and written(array[0]) in ("n", "N"):
        rest = ", ".join(written(each) for each in array[1:])
        of = f"{own.of}{bounds}" + (f"[{written(own.sizes)}]" if own.sizes else "")
        return f"array[{rest}] {of} {own.name};" if rest else f"{of} {own.name};"
    if sizes and not array and written(sizes[0]) in ("n", "N"):
        if own.of == "matrix":
            return f"row_vector{bounds}[{written(sizes[1])}] {own.name};"
        return f"real{bounds} {own.name};"
    return None


def _prior(model: Sequence[Token], names: set[str]) -> str:
    """Statements of the model block that read neither records nor weights."""
    found, place = [], 0
    own: list[Token] = []
    while place < len(model):
        if model[place].text == "{":
            place, own = closing(model, place), []
        elif model[place].text == ";":
            if own and not names_in(own) & (names | _OURS) and own[0].text not in ("if", "for"):
                found.append(f"{written(own)};")
            own = []
        else:
            own.append(model[place])
        place += 1
    return "\n".join(found) or "// the prior of the parameters"


def _returned(blocks: Mapping[str, tuple[Token, ...]], names: set[str], name: str | None) -> str:
    """The expression of one record's `name`, or that which is drawn, with its local variables."""
    segments = list(_segments(blocks.get("generated quantities", ())))
    for place, own in enumerate(segments):
        at = next((k for k, token in enumerate(own) if token.text == "="), None)
        if at is None or len(own) < 4 or own[at - 1].text != "]":
            continue
        value = own[at + 1 :]
        drawn = any(token.text.endswith("_rng") for token in value)
        if (own[at - 4].text == name) if name else drawn:
            index, local = own[at - 2].text, list[str]()
            for before in reversed(segments[:place]):
                if not before or before[0].text not in ("real", "int", "vector", "row_vector"):
                    if not any(t.text == "=" for t in before):
                        break
                    continue
                local.insert(0, f"{_of_one(before, names, index)};")
            return "\n".join([*local, f"return {_of_one(value, names, index)};"])
    what = "log-likelihood of one record" if name else "outcome of one record, drawn anew"
    return f"return 0;  // the {what}"


def _of_one(tokens: Sequence[Token], names: set[str], index: str) -> str:
    """The text with ``y[i]`` as ``y``."""
    made, place = list[Token](), 0
    while place < len(tokens):
        made.append(tokens[place])
        ahead = [token.text for token in tokens[place + 1 : place + 4]]
        place += 4 if tokens[place].text in names and ahead == ["[", index, "]"] else 1
    return written(made)
