"""Rules that a program's text must keep, read in its tokens.

**Likelihoods that a cap bounds** have a value for every record and every parameter. Stan's
functions raise an error for arguments they do not take, and an error ends an evaluation as a
density of 0 does: a hard constraint on the parameters that no cap bounds, and that a record may
set. Four rules leave no error that parameters and a record bring about together:

- what is decided (``if``, ``while``, ``?``) is decided by data and whole numbers alone, and nothing
  else compares: then no whole number, no size and no index is a function of parameters, and each
  record goes the same way for all of them. An index out of range, sizes that do not match or a
  whole number divided by 0 then fail at every parameter or at none: nothing can be drawn;
- a function that is called takes every real number, by `_TOTAL`, or is the user's own and keeps the
  rules;
- densities, which do not, are called through a function that returns -inf in place of an error;
- what is raised to a power by ``^``, and what is divided by, is a number: no matrix.

Which names are data and which are numbers the compiler says: a probe is the program with what a
rule speaks of as an argument of a function that takes nothing else, and does not compile elsewhere.

A likelihood that breaks one may still be right: its charge is local.

**Whole programs that decide by weights** and do one thing at one weight or cap and another thing
elsewhere can pass every trial and do harm in the release. The weights and the cap of a fit are
tried; here what could tell them from others is refused: weights and cap may multiply and clip
terms, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram
from pyhybrid.models.stan_program.stan_text import (
    WHOLE_PROGRAM,
    Function,
    Token,
    arguments,
    blocks_of,
    closing,
    conditions,
    functions_of,
    names_in,
    segments,
    tokens_of,
    written,
)

_NAMES = (
    "abs fabs append_array append_col append_row asinh atan atan2 block cbrt ceil col cols "
    "columns_dot_product columns_dot_self cos cosh cumulative_sum diag_matrix diag_post_multiply "
    "diag_pre_multiply diagonal dot_product dot_self e elt_divide elt_multiply erf erfc exp exp2 "
    "expm1 fdim floor fma fmax fmin head hypot inv inv_cloglog inv_logit inv_sqrt inv_square "
    "lgamma lmultiply log log10 log1m_exp log1m_inv_logit log1p_exp log2 log_diff_exp "
    "log_inv_logit log_softmax log_sum_exp logit max mean min multiply_log negative_infinity "
    "num_elements pi positive_infinity pow reverse rep_array rep_matrix rep_row_vector rep_vector "
    "round row rows rows_dot_product rows_dot_self segment sin sinh size softmax sqrt sqrt2 square "
    "sub_col sub_row sum tail tan tanh to_array_1d to_matrix to_row_vector to_vector trunc"
)
_TOTAL = frozenset(_NAMES.split())
"""Functions that raise no error for any real number; sizes and whole numbers are data's."""
_KEYWORDS = frozenset({"if", "for", "while", "return", "else", "in"})
_COMPARES = frozenset({"<", ">", "<=", ">=", "==", "!=", "!", "&&", "||"})

_REFUSED_BY = {
    "f": ("real", "is_nan({x}) || is_inf({x})"),  # finite
    "r": ("real", "is_nan({x})"),
    "+": ("real", "!({x} > 0) || is_inf({x})"),
    "0": ("real", "!({x} >= 0) || is_inf({x})"),
    "p": ("real", "!({x} >= 0 && {x} <= 1)"),
    "u": ("real", "!({x} > 0 && {x} < 1)"),
    "n": ("int", "{x} < 0"),
    "b": ("int", "{x} < 0 || {x} > 1"),
    "N": ("int", "{x} < pyhybrid_a1"),  # trials, of which a1 succeed
    "v": ("vector", "is_nan(sum({x})) || is_inf(sum({x}))"),
    "c": ("int", "{x} < 1 || {x} > num_elements(pyhybrid_a2)"),  # a category of the logits a2
}
"""Kinds of arguments: their type, and when a density is 0 in place of an error."""
_GUARDED = {
    "normal_lpdf": "ff+", "lognormal_lpdf": "+f+", "student_t_lpdf": "f+f+",
    "cauchy_lpdf": "ff+", "double_exponential_lpdf": "ff+", "logistic_lpdf": "ff+",
    "gumbel_lpdf": "ff+", "skew_normal_lpdf": "ff+f", "exp_mod_normal_lpdf": "ff++",
    "exponential_lpdf": "0+", "gamma_lpdf": "+++", "inv_gamma_lpdf": "+++", "weibull_lpdf": "0++",
    "chi_square_lpdf": "0+", "beta_lpdf": "p++", "beta_proportion_lpdf": "uu+",
    "normal_lcdf": "ff+", "normal_lccdf": "ff+", "lognormal_lcdf": "+f+", "lognormal_lccdf": "+f+",
    "poisson_lpmf": "n0", "poisson_log_lpmf": "nr", "neg_binomial_lpmf": "n++",
    "neg_binomial_2_lpmf": "n++", "neg_binomial_2_log_lpmf": "nf+", "bernoulli_lpmf": "bp",
    "bernoulli_logit_lpmf": "br", "binomial_lpmf": "nNp", "binomial_logit_lpmf": "nNf",
    "beta_binomial_lpmf": "nN++", "categorical_logit_lpmf": "cv",
}  # fmt: skip
"""Densities of single numbers, by the kinds of their arguments."""
_GUARDED_NUMBERS = {
    "log1p": "pyhybrid_x >= -1",
    "log1m": "pyhybrid_x <= 1",
    "Phi": "!is_nan(pyhybrid_x)",
}
"""Functions of one number that raise an error elsewhere: NaN there."""
RELIED_ON = (
    _TOTAL | _GUARDED.keys() | _GUARDED_NUMBERS.keys() | {"is_nan", "is_inf", "not_a_number"}
)
"""Functions of Stan's whose names the user's must not have: another meaning of them would tell."""
_NAMES_OF_LINEAR = (
    "dot_product sum elt_multiply size num_elements rows cols to_vector to_row_vector reduce_sum "
    "reduce_sum_static map_rect head tail segment rep_vector if for while return print"
)
_LINEAR = frozenset(_NAMES_OF_LINEAR.split())
_CLIPS = frozenset({"fmax", "fmin"})
_NONE: tuple[Token, ...] = ()
_MANY = 50  # arguments of a function


def _called(tokens: Sequence[Token]) -> set[str]:
    return {
        token.text
        for token, after in pairwise(tokens)
        if token.is_name and after.text == "(" and token.text not in _KEYWORDS
    }


def reached(body: Sequence[Token], functions: Sequence[Function]) -> set[str]:
    """Names of the user's functions that a body calls, or those that it calls."""
    called, last = _called(body), set[str]()
    while called != last:
        last = called
        called = called.union(*(_called(f.body) for f in functions if f.name in called))
    return called & {function.name for function in functions}


def why_not_total(body: Sequence[Token], functions: Sequence[Function]) -> tuple[str, ...]:
    """How a likelihood breaks the rules that need no compiler, in words; empty if it keeps them.
    `functions` are the user's."""
    used, users = reached(body, functions), {function.name for function in functions}
    parts = [("log_lik", body), *((f.name, f.body) for f in functions if f.name in used)]
    broken = []
    for name, own in parts:
        if _compares_outside_conditions(own):
            broken.append(f"{name} compares outside of an if")
        others = _called(own) - _TOTAL - users - _GUARDED.keys() - _GUARDED_NUMBERS.keys()
        broken += [f"{name} calls {other}, which can fail" for other in sorted(others)]
    return tuple(dict.fromkeys(broken))


def _powers(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    places = (place for place, token in enumerate(tokens) if token.text == "^")
    return ((_first_of_operand(tokens, place - 1), place) for place in places)


def _first_of_operand(tokens: Sequence[Token], last: int) -> int:
    """Place where an operand begins: before its brackets, what is called or indexed."""
    if tokens[last].text == "'":
        return _first_of_operand(tokens, last - 1)
    first = next((p for p in range(last) if _last_of_brackets(tokens, p) == last), last)
    before = tokens[first - 1]
    goes_on = before.text in ")]}" or (before.is_name and before.text not in _KEYWORDS)
    return _first_of_operand(tokens, first - 1) if first < last and goes_on else first


def _divisors(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    for place in (place for place, token in enumerate(tokens, start=1) if token.text == "/"):
        end = place
        while tokens[end].text in "+-":
            end += 1
        end = _last_of_brackets(tokens, end) + 1
        while tokens[end].text in "(['":
            end = _last_of_brackets(tokens, end) + 1
        yield place, end


def _last_of_brackets(tokens: Sequence[Token], place: int) -> int:
    return closing(tokens, place) if tokens[place].text in "([{" else place


_DATA = "  int pyhybrid_probe(data real pyhybrid_x) { return pyhybrid_x != 0; }\n"
_NUMBER = "  real pyhybrid_probe(real pyhybrid_x) { return pyhybrid_x; }\n"
PROBES: dict[str, tuple[str, Callable[[Sequence[Token]], Iterator[tuple[int, int]]]]] = {
    "decides by what is not data": (_DATA, conditions),
    "takes a power of what is no number: pow() or .^ do so by element": (_NUMBER, _powers),
    "divides by what is no number": (_NUMBER, _divisors),
}
"""By what breaks a rule: a function that takes only what keeps it, and places, from and to, of what
is given to it."""


def probed(tokens: Sequence[Token], probe: str | None) -> tuple[Token, ...]:
    """The tokens with what a probe, if any, is of given to its function."""
    marked = list(tokens)
    for start, end in PROBES[probe][1](tokens) if probe else ():
        marked[start] = replace(marked[start], text=f"pyhybrid_probe({marked[start].text}")
        marked[end - 1] = replace(marked[end - 1], text=f"{marked[end - 1].text})")
    return tuple(marked)


def _compares_outside_conditions(tokens: Sequence[Token]) -> bool:
    deciding = {place for start, end in conditions(tokens) for place in range(start, end)}
    return any(t.text in _COMPARES for place, t in enumerate(tokens) if place not in deciding)


def guarded(tokens: Sequence[Token], own: Collection[str]) -> tuple[Token, ...]:
    """The tokens with calls of densities through the functions of `guards`, but for functions that
    are the user's `own`."""
    names = (_GUARDED.keys() | _GUARDED_NUMBERS.keys()) - set(own)
    called = [after.text == "(" and token.text in names for token, after in pairwise(tokens)]
    return tuple(
        replace(token, text=f"pyhybrid_total_{token.text}") if is_called else token
        for token, is_called in zip(tokens, [*called, False], strict=False)
    )


def guards(tokens: Sequence[Token], own: Collection[str]) -> str:
    """The functions that guarded calls in `tokens` need."""
    called = _called(tokens) - set(own)
    densities = [_density(name, _GUARDED[name]) for name in sorted(called & _GUARDED.keys())]
    numbers = [
        f"  real pyhybrid_total_{name}(real pyhybrid_x) {{\n"
        f"    if ({_GUARDED_NUMBERS[name]}) {{\n      return {name}(pyhybrid_x);\n    }}\n"
        "    return not_a_number();\n  }\n"
        for name in sorted(called & _GUARDED_NUMBERS.keys())
    ]
    return "".join([*densities, *numbers])


def _density(name: str, kinds: str) -> str:
    names = [f"pyhybrid_a{place}" for place in range(1, len(kinds) + 1)]
    rules = [(*_REFUSED_BY[kind], x) for kind, x in zip(kinds, names, strict=True)]
    given = ", ".join(f"{type_} {x}" for type_, _, x in rules)
    refused = " || ".join(rule.format(x=x) for _, rule, x in rules)
    return (
        f"  real pyhybrid_total_{name}({given}) {{\n    if ({refused}) {{\n"
        f"      return negative_infinity();\n    }}\n    "
        f"return {name}({names[0]} | {', '.join(names[1:])});\n  }}\n"
    )


def check_decides_nothing(program: StanProgram) -> None:
    """Raise InvalidInput if a program decides by weights or cap, or what is made of them, or steps
    at a value of them. ``use_cap`` alone may decide."""
    tokens = tokens_of(program.text, program.name, lenient=True)
    by = _deciding(blocks_of(tokens, program.name, WHOLE_PROGRAM))
    if by is not None:
        raise InvalidInput(
            f"program {program.name!r} must do the same at all weights and caps: line {by.line} "
            f"decides, compares or steps by {by.text!r}; weights may multiply a record's term, "
            "and a cap may clip it, fmax(-cap, fmin(cap, ...)), where use_cap alone says so"
        )


def _deciding(blocks: Mapping[str, tuple[Token, ...]]) -> Token | None:
    """The first name made of weights or cap by which something is decided, if there is one."""
    functions = functions_of(blocks.get("functions", ()))
    acting = [block for name, block in blocks.items() if name != "data"]
    told = _told([t for block in acting for t in block], functions, {"weights", "cap"})
    for block in acting:
        for start, end in conditions(block):
            names = names_in(block[start:end])
            if names & told or ("use_cap" in names and names != {"use_cap"}):
                return next(t for t in block[start:end] if t.text in told | {"use_cap"})
        for segment in segments(block):
            named = next((token for token in segment if token.text in told), None)
            if named is not None and _steps(segment, told, {f.name for f in functions}):
                return named
    return None


def _told(tokens: Sequence[Token], functions: Sequence[Function], told: set[str]) -> frozenset[str]:
    """Names of what is made of weights or cap: by assignment, or as an argument."""
    while True:
        more = set(told)
        for segment in segments(tokens):
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
                pairs = zip(function.arguments, given, strict=False)
                more |= {argument[-1].text for argument, value in pairs if names_in(value) & told}
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


def _steps(segment: Sequence[Token], told: frozenset[str], users: set[str]) -> bool:
    """True if a statement compares `told` names, or calls with them what is not linear."""
    if _compares_outside_conditions(segment):
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
        if token.text in _LINEAR | users or not any(names_in(each) & told for each in given):
            continue
        ends = {written([t for t in each if t.text != "-"]) for each in given if len(each) < 3}
        if token.text not in _CLIPS or not ends & told:
            return True
    return False
