"""Which likelihoods have a value for every record and every parameter, so that a cap bounds them.

Stan's functions raise an error for arguments they do not take, and an error ends an evaluation as a
density of 0 does: a hard constraint on the parameters that no cap bounds, and that a record may
set. Three rules leave no error that parameters and a record bring about together:

- what is decided (``if``, ``while``, ``?``) is decided by data and whole numbers alone, and nothing
  else compares: then no whole number, no size and no index is a function of parameters, and each
  record goes the same way for all of them;
- a function that is called takes every real number, by `_TOTAL`, or is the user's own and keeps the
  rules;
- densities, which do not, are called through a function that returns -inf in place of an error.

A likelihood that breaks one may still be right: its charge is local.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pyhybrid.models.stan_program.stan_text import (
    TYPES,
    Token,
    arguments,
    closing,
    conditions,
    names_in,
)

__all__ = ["RELIED_ON", "Function", "functions_of", "guarded", "guards", "reached", "why_not_total"]

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


@dataclass(frozen=True)
class Function:
    """A function of the user's: its name, its arguments and what stands in its braces."""

    name: str
    arguments: tuple[tuple[Token, ...], ...]
    body: tuple[Token, ...]
    place: int = 0


def functions_of(tokens: Sequence[Token]) -> tuple[Function, ...]:
    """The functions that a functions block defines."""
    found, place = [], 0
    while place < len(tokens):
        if tokens[place].text == "(" and place and tokens[place - 1].is_name:
            end = closing(tokens, place)
            given = tuple(arguments(tokens[place + 1 : end]))
            body: tuple[Token, ...] = ()
            name, opened = tokens[place - 1].text, end + 1
            if opened < len(tokens) and tokens[opened].text == "{":
                end = closing(tokens, opened)
                body = tuple(tokens[opened + 1 : end])
            found.append(Function(name, given, body, opened + 1))
            place = end
        place += 1
    return tuple(found)


def _called(tokens: Sequence[Token]) -> set[str]:
    return {
        token.text
        for token, after in pairwise(tokens)
        if token.is_name and after.text == "(" and token.text not in _KEYWORDS
    }


def reached(body: Sequence[Token], functions: Sequence[Function]) -> set[str]:
    """Names of the user's functions that a body calls, or those that it calls."""
    by_name: dict[str, set[str]] = {}
    for own in functions:
        by_name[own.name] = by_name.get(own.name, set()) | _called(own.body)
    found, queue = set[str](), list(_called(body) & by_name.keys())
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += by_name[name] & by_name.keys()
    return found


def why_not_total(
    body: Sequence[Token], data: Collection[str], functions: Sequence[Function]
) -> tuple[str, ...]:
    """How a likelihood breaks the rules, in words; empty if it keeps them.

    Parameters
    ----------
    body : sequence of Token
    data : collection of str
        Names that it reads and that are data.
    functions : sequence of Function
        The user's.
    """
    used = reached(body, functions)
    own = {each.name for each in functions}
    found = [_of_body(body, set(data), own, "log_lik")]
    for function in functions:
        if function.name in used:
            given = {
                argument[-1].text
                for argument in function.arguments
                if {"data", "int"} & names_in(argument[:-1])
            }
            found.append(_of_body(function.body, given, own, function.name))
    return tuple(dict.fromkeys(text for each in found for text in each))


def _of_body(body: Sequence[Token], data: set[str], own: set[str], name: str) -> list[str]:
    known = (data | _whole_numbers(body)) - _declared_anew(body)
    deciding: set[int] = set()
    found = []
    for start, end in conditions(body):
        deciding |= set(range(start, end))
        read = names_in(body[start:end]) - known - _TOTAL - own
        if read:
            found.append(f"{name} decides by {sorted(read)[0]!r}, which is not data")
    compares = [t.text for place, t in enumerate(body) if place not in deciding]
    if _COMPARES & set(compares):
        found.append(f"{name} compares outside of an if")
    others = _called(body) - _TOTAL - own - _GUARDED.keys() - _GUARDED_NUMBERS.keys()
    found += [f"{name} calls {other}, which can fail" for other in sorted(others)]
    return found


def _whole_numbers(body: Sequence[Token]) -> set[str]:
    """Local variables of type int, and those that count in a loop."""
    found = set()
    for place, token in enumerate(body):
        after = [each.text for each in body[place : place + 3]]
        if token.text == "int" and len(after) > 1 and body[place + 1].is_name:
            found.add(after[1])
        elif after[:2] == ["for", "("] and place + 2 < len(body):
            counts = {each.text for each in body[place + 3 : closing(body, place + 1)]}
            found |= {after[2]} if ":" in counts else set()
    return found


def _declared_anew(body: Sequence[Token]) -> set[str]:
    """Local variables that are no whole numbers, and those that run over the values of an array."""
    found = set()
    for place in range(1, len(body)):
        name, before = body[place], body[place - 1].text
        if not name.is_name or name.text in _KEYWORDS:
            continue
        runs = before == "(" and [each.text for each in body[place + 1 : place + 2]] == ["in"]
        counts = runs and ":" in {e.text for e in body[place : closing(body, place - 1)]}
        if before == "]" or (before in TYPES and before != "int") or (runs and not counts):
            found.add(name.text)
    return found


def guarded(tokens: Sequence[Token], own: Collection[str]) -> tuple[Token, ...]:
    """The tokens with calls of densities through the functions of `guards`, but for functions that
    are the user's `own`."""
    made = []
    for place, token in enumerate(tokens):
        guards_it = token.text in _GUARDED or token.text in _GUARDED_NUMBERS
        call = place + 1 < len(tokens) and tokens[place + 1].text == "("
        if guards_it and call and token.text not in own:
            token = replace(token, text=_guard(token.text))
        made.append(token)
    return tuple(made)


def _guard(name: str) -> str:
    return f"pyhybrid_total_{name}"


def guards(tokens: Sequence[Token], own: Collection[str]) -> str:
    """The functions that guarded calls in `tokens` need."""
    called = _called(tokens) - set(own)
    made = [_density(name, _GUARDED[name]) for name in sorted(called & _GUARDED.keys())]
    for name in sorted(called & _GUARDED_NUMBERS.keys()):
        made.append(
            f"  real {_guard(name)}(real pyhybrid_x) {{\n"
            f"    if ({_GUARDED_NUMBERS[name]}) {{\n      return {name}(pyhybrid_x);\n    }}\n"
            "    return not_a_number();\n  }\n"
        )
    return "".join(made)


def _density(name: str, kinds: str) -> str:
    names = [f"pyhybrid_a{place}" for place in range(1, len(kinds) + 1)]
    rules = [(*_REFUSED_BY[kind], x) for kind, x in zip(kinds, names, strict=True)]
    given = ", ".join(f"{type_} {x}" for type_, _, x in rules)
    refused = " || ".join(rule.format(x=x) for _, rule, x in rules)
    return (
        f"  real {_guard(name)}({given}) {{\n    if ({refused}) {{\n"
        f"      return negative_infinity();\n    }}\n    "
        f"return {name}({names[0]} | {', '.join(names[1:])});\n  }}\n"
    )
