"""Stan text as tokens: what a program says, whatever its comments and its layout.

A check on raw text can be stepped around by a comment that is left open, a brace in a string or a
file that is included. Here a text is read into tokens, what cannot be read as one is refused, and
a text that goes into another program is written from its tokens: without comments, of balanced
brackets, and of nothing that a compiler could read in another way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from pyhybrid.core.errors import InvalidInput

WHOLE_PROGRAM = (
    "functions", "data", "transformed data", "parameters", "transformed parameters", "model",
    "generated quantities",
)  # fmt: skip
"""Blocks of a Stan program."""

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<number>(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<mark>%/%|\+=|-=|\.\*=|\./=|\*=|/=|<=|>=|==|!=|&&|\|\||\.\*|\./|\.\^"
    r"|/(?![/*])|[][(){},;:|?!=~<>+\-*%^'])",
    re.DOTALL | re.ASCII,
)
_SKIPPED = re.compile(r'"[^"\n]*"|#[^\n]*|.', re.DOTALL)
_OPEN = {"(": ")", "[": "]", "{": "}"}
TYPES = {
    "int": "int", "real": "real", "vector": "vector", "simplex": "vector",
    "unit_vector": "vector", "ordered": "vector", "positive_ordered": "vector",
    "sum_to_zero_vector": "vector", "row_vector": "row_vector", "matrix": "matrix",
    "corr_matrix": "matrix", "cov_matrix": "matrix", "cholesky_factor_corr": "matrix",
    "cholesky_factor_cov": "matrix",
}  # fmt: skip
"""Types of declarations, and as what a function gets them."""
_NONE: tuple[Token, ...] = ()
_ENDS_EXPRESSION = frozenset({";", ",", "{", "}", "=", "+=", "-=", "*=", "/=", ".*=", "./=", "~"})


@dataclass(frozen=True)
class Token:
    """A number, name or mark, the line it stands in, and what was between it and the one before."""

    text: str
    line: int
    space: str = ""

    @property
    def is_name(self) -> bool:
        """True of names and of Stan's own words."""
        return self.text[0].isalpha()


@dataclass(frozen=True)
class Declared:
    """A declared variable: its type with bounds and sizes, the sizes of its array, and its name."""

    name: str
    of: str
    bounds: tuple[Token, ...]
    sizes: tuple[Token, ...]
    array: tuple[Token, ...]

    @property
    def dims(self) -> int:
        """Number of its dimensions."""
        of_type = {"vector": 1, "row_vector": 1, "matrix": 2}.get(TYPES[self.of], 0)
        return of_type + len(arguments(self.array))

    @property
    def is_int(self) -> bool:
        """True of whole numbers, in arrays or not."""
        return self.of == "int"

    def text(self, first: str = "", name: str = "") -> str:
        """The declaration, in an array of `first` size before its own sizes, under `name`."""
        array = ", ".join(filter(None, (first, written(self.array))))
        size = f"[{written(self.sizes)}]" if self.sizes else ""
        bounds = f"<{written(self.bounds)}>" if self.bounds else ""
        before = f"array[{array}] " if array else ""
        return f"{before}{self.of}{bounds}{size} {name or self.name};"

    @property
    def argument(self) -> str:
        """Its type as an argument of a function."""
        commas = "," * (len(arguments(self.array)) - 1)
        return f"array[{commas}] {TYPES[self.of]}" if self.array else TYPES[self.of]


def tokens_of(text: str, name: str, *, lenient: bool = False) -> tuple[Token, ...]:
    """The tokens of a program's text, without comments; if `lenient`, without what is no token:
    strings, ``#include`` and other ``#``, a comment that is not closed, characters beyond ASCII."""
    tokens, place, line, space = [], 0, 1, ""
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None and lenient:
            match = _SKIPPED.match(text, place)
        if match is None:
            raise InvalidInput(
                f"program {name!r} must be Stan without strings, #include, open comments and "
                f"characters beyond ASCII: line {line} has one of them"
            )
        if match.lastgroup in ("space", None):
            space += "\n" if "\n" in match[0] else " "
        else:
            tokens.append(Token(match[0], line, space))
            space = ""
        line, place = line + match[0].count("\n"), match.end()
    return tuple(tokens)


def written(tokens: Sequence[Token]) -> str:
    """The tokens as text."""
    return "".join(
        ("\n" if "\n" in token.space else " " if token.space else "") + token.text
        for token in tokens
    ).strip()


def closing(tokens: Sequence[Token], place: int) -> int:
    """Place of the bracket that closes the one at `place`; -1 if brackets do not match."""
    open_ = [_OPEN[tokens[place].text]]
    for at in range(place + 1, len(tokens)):
        text = tokens[at].text
        if text in _OPEN:
            open_.append(_OPEN[text])
        elif text in _OPEN.values():
            if open_.pop() != text:
                return -1
            if not open_:
                return at
    return -1


def blocks_of(
    tokens: Sequence[Token], name: str, known: Collection[str]
) -> dict[str, tuple[Token, ...]]:
    """The tokens between the braces of each block, by its name. A block that is not `known` or
    comes twice, text outside of blocks, and brackets that do not match raise InvalidInput."""
    blocks: dict[str, tuple[Token, ...]] = {}
    place = 0
    while place < len(tokens):
        start = place
        while place < len(tokens) and tokens[place].is_name:
            place += 1
        block = " ".join(token.text for token in tokens[start:place])
        line = tokens[min(start, len(tokens) - 1)].line
        is_block = place < len(tokens) and tokens[place].text == "{"
        if block not in known or not is_block or block in blocks:
            twice = " once" if block in blocks else ""
            raise InvalidInput(
                f"program {name!r} must hold the blocks {', '.join(known)}{twice}, and nothing "
                f"outside of them: line {line} has other text, or a block is closed too early"
            )
        end = closing(tokens, place)
        if end < 0:
            raise InvalidInput(
                f"program {name!r} must have brackets that match: those of block {block!r}, line "
                f"{line}, do not"
            )
        blocks[block] = tuple(tokens[place + 1 : end])
        place = end + 1
    return blocks


def names_in(tokens: Sequence[Token]) -> set[str]:
    """Names that occur."""
    return {token.text for token in tokens if token.is_name}


def declarations(tokens: Sequence[Token], *, only: bool, where: str) -> tuple[Declared, ...]:
    """Variables declared in a block, not those within its inner braces; with `only`, anything else
    than declarations of one name each raises InvalidInput."""
    variables = []
    for statement in statements(tokens):
        variable = _declared(statement, alone=only)
        if variable is not None:
            variables.append(variable)
        elif only:
            raise InvalidInput(
                f"block {where!r} must hold declarations of one variable each, as 'real<lower=0> "
                f"rate;': line {statement[0].line} has something else"
            )
    return tuple(variables)


def statements(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Statements up to a semicolon outside of inner braces; what is in these is left out."""
    statement: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.text == ";":
            if statement:
                yield tuple(statement)
            statement = []
        elif token.text == "{" and (not statement or statement[-1].text in (")", "else")):
            place, statement = closing(tokens, place), []
        else:
            statement.append(token)
        place += 1
    if statement:
        yield tuple(statement)


def _declared(statement: Sequence[Token], *, alone: bool) -> Declared | None:
    """The variable that a statement declares; with `alone`, if nothing comes after its name."""
    array, place = _NONE, 0
    if [token.text for token in statement[:2]] == ["array", "["]:
        array, place = _within(statement, 1, "[", closing)
    if place >= len(statement) or statement[place].text not in TYPES:
        return None
    of = statement[place].text
    bounds, place = _within(statement, place + 1, "<", _end_of_bounds)
    sizes, place = _within(statement, place, "[", closing)
    if place >= len(statement) or not statement[place].is_name:
        return None
    if alone and place + 1 != len(statement):
        return None
    return Declared(statement[place].text, of, bounds, sizes, array)


def _within(
    tokens: Sequence[Token], place: int, mark: str, end: Callable[[Sequence[Token], int], int]
) -> tuple[tuple[Token, ...], int]:
    """Tokens between brackets, if they open at `place`, and the place after them."""
    if place >= len(tokens) or tokens[place].text != mark:
        return _NONE, place
    stop = end(tokens, place)
    return tuple(tokens[place + 1 : stop]), stop + 1


def _end_of_bounds(tokens: Sequence[Token], place: int) -> int:
    """Place of the ``>`` that closes bounds opened at `place`."""
    depth = 0
    for at in range(place, len(tokens)):
        text = tokens[at].text
        depth += (text in _OPEN) - (text in _OPEN.values())
        if text == ">" and depth == 0:
            return at
    return len(tokens) - 1


def arguments(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """Tokens between commas, or a bar, outside of inner brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in _OPEN) - (token.text in _OPEN.values())
        if depth == 0 and token.text in (",", "|"):
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts if part]


def segments(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Tokens between semicolons and braces."""
    start = 0
    for place, token in enumerate(tokens):
        if token.text in (";", "{", "}"):
            yield tuple(tokens[start:place])
            start = place + 1
    yield tuple(tokens[start:])


def without_index(tokens: Sequence[Token], names: Collection[str], index: str) -> tuple[Token, ...]:
    """The tokens with ``y[i]`` as ``y``, for the names and the index given."""
    kept, place = list[Token](), 0
    while place < len(tokens):
        kept.append(tokens[place])
        ahead = [token.text for token in tokens[place + 1 : place + 4]]
        place += 4 if tokens[place].text in names and ahead == ["[", index, "]"] else 1
    return tuple(kept)


def conditions(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Places, from and to, of what ``if``, ``while`` and ``?`` decide by."""
    for place, token in enumerate(tokens):
        if token.text in ("if", "while") and place + 1 < len(tokens):
            yield place + 2, closing(tokens, place + 1)
        elif token.text == "?":
            yield _start_of_expression(tokens, place), place


def _start_of_expression(tokens: Sequence[Token], place: int) -> int:
    """Where the expression begins that ends before `place`."""
    depth = 0
    for at in range(place - 1, -1, -1):
        text = tokens[at].text
        depth += (text in _OPEN.values()) - (text in _OPEN)
        if depth < 0 or (depth == 0 and (text in _ENDS_EXPRESSION or text in ("?", ":", "return"))):
            return at + 1
    return 0


@dataclass(frozen=True)
class Function:
    """A function of the user's: its name, its arguments and what stands in its braces."""

    name: str
    arguments: tuple[tuple[Token, ...], ...]
    body: tuple[Token, ...]
    place: int = 0


def functions_of(tokens: Sequence[Token]) -> tuple[Function, ...]:
    """The functions that a functions block defines."""
    functions, place = [], 0
    while place < len(tokens):
        if tokens[place].text == "(" and place and tokens[place - 1].is_name:
            end = closing(tokens, place)
            given = tuple(arguments(tokens[place + 1 : end]))
            body: tuple[Token, ...] = ()
            name, opened = tokens[place - 1].text, end + 1
            if opened < len(tokens) and tokens[opened].text == "{":
                end = closing(tokens, opened)
                body = tuple(tokens[opened + 1 : end])
            functions.append(Function(name, given, body, opened + 1))
            place = end
        place += 1
    return tuple(functions)
