"""Programs as papers print them: the array form of their time, weighted log_lik, no replicates.

`pyhybrid.StanModel` takes such a program as it is: its old declarations are rewritten for every
engine, whether its log_lik is weighted is found by trying, and its replicates are made by the model
of ours that the user declares it to be, after both have been seen to have one log-likelihood.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import block_text
from pyhybrid.models.stan_program.checks import DataBlock, usable_points

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', re.DOTALL)
_PLAIN = "int|real|vector|row_vector|matrix"
_TYPE = (
    rf"(?:{_PLAIN}|simplex|unit_vector|ordered|positive_ordered|corr_matrix|cov_matrix|"
    r"cholesky_factor_corr|cholesky_factor_cov)"
)
_NESTED = r"\[(?:[^\[\];]|\[[^\[\];]*\])*\]"
_DECLARATION = re.compile(
    rf"(?P<type>\b{_TYPE}\b(?:\s*<[^<>;]*>)?(?:\s*{_NESTED})?)(?P<names>\s+[A-Za-z][^;{{}}]*);"
)
_NAME = re.compile(rf"\s*(?P<name>[A-Za-z]\w*)\s*(?P<dims>{_NESTED})?\s*(?P<value>=(?!=).*)?", re.S)
_ARGUMENT = re.compile(rf"\b(?P<type>{_PLAIN})\s*\[(?P<dims>[\s,]*)\]")
_APART, _SEED = 1e-7, 20220103


def modern_arrays(text: str) -> str:
    """Stan text with arrays declared as current Stan demands: ``int y[n];`` becomes ``array[n] int
    y;``, and an argument ``int[] y`` becomes ``array[] int y``. All else stays, comments too."""
    code = _COMMENT.sub(lambda hit: re.sub(r"[^\n]", " ", hit[0]), text)
    changes = [
        (hit.start(), hit.end(), f"array[{hit['dims']}] {hit['type']}")
        for hit in _ARGUMENT.finditer(code)
    ]
    for hit in _DECLARATION.finditer(code):
        items = [_NAME.fullmatch(item) for item in _between_commas(hit["names"])]
        if all(items) and any(item["dims"] for item in items if item):
            declared = [_declared(hit["type"], item) for item in items if item]
            changes.append((hit.start(), hit.end(), " ".join(declared)))
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _declared(kind: str, item: re.Match[str]) -> str:
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


def is_weighted(program: StanProgram, data: DataBlock) -> bool:
    """Whether log_lik is weighted, by weights of 1 and 1/2 at random points; InvalidInput if it is
    neither the same nor half as large, False where it cannot be read."""
    at = ProgramAtPoints(program, data(1.0))
    points, _ = usable_points(at, np.random.default_rng(_SEED), program)
    both = [one.quantities(points) for one in (at, ProgramAtPoints(program, data(0.5)))]
    if not all("log_lik" in found for found in both):
        return False
    return halved(program, *(found["log_lik"] for found in both))


def halved(program: StanProgram, ones: FloatArray, halves: FloatArray) -> bool:
    """Whether log_lik (S, n) with all weights 1/2 is half of that with 1; InvalidInput if it is
    neither that nor the same."""
    finite = np.isfinite(ones) & np.isfinite(halves)
    for weighted, expected in ((False, ones), (True, ones / 2)):
        if finite.any() and np.allclose(halves[finite], expected[finite], rtol=1e-9, atol=1e-9):
            return weighted
    raise InvalidInput(
        f"log_lik of program {program.name!r} must be the log-likelihood of each record, or the "
        "weights times it, so that they can be divided out: with all weights 1/2 it is neither "
        "the same as with all weights 1, nor half of it; yield it without weights"
    )


def model_as_predictor(model: Any) -> Any:
    """The model of ours that a program is declared to be, or None; InvalidInput for one whose
    replicates need more than parameters and a design matrix."""
    if not (hasattr(model, "formula") and hasattr(model, "bind")):
        return None
    if not all(hasattr(model, name) for name in ("draw_outcome", "log_lik", "parameters")):
        raise InvalidInput(
            f"predict must name a generated quantity, be a function, or a regression of ours, such "
            f"as ph.NegativeBinomial('y ~ x'): {type(model).__name__} needs more than parameters"
        )
    return model


def formula_of(model: Any, formula: str | None) -> str:
    """The formula of the declared model; InvalidInput if another one is given beside it."""
    if formula is not None and formula != model.formula:
        raise InvalidInput(
            f"formula must be that of the model that predict= declares, {model.formula!r}, or left "
            f"out: found {formula!r}"
        )
    return str(model.formula)


def replicate_by(
    model: Any,
    parameters: dict[str, FloatArray],
    X: FloatArray,
    rng: np.random.Generator,
    decimals: int | None,
) -> FloatArray:
    """Outcomes (n,) of the declared model at the printed program's parameters of one draw."""
    own = {name: np.asarray(parameters[name]) for name in model.parameters}
    return np.asarray(model.from_support(model.draw_outcome(own, X, rng, 0.0), decimals))


def check_names_no_weights(program: StanProgram) -> None:
    """Raise InvalidInput for a program that nothing can be tried of, if its log_lik may be weighted
    by its text and the user does not say."""
    if re.search(r"\bweights\b", block_text(program, r"generated\s+quantities")):
        raise InvalidInput(
            f"log_lik_weighted must be given for program {program.name!r}: its generated "
            "quantities name weights, and nothing could be tried; a weighted log_lik that is "
            "taken for an unweighted one makes epsilon too small"
        )


def check_is_model(
    program: StanProgram,
    model: Any,
    quantities: dict[str, FloatArray],
    outcome: FloatArray,
    X: FloatArray,
) -> None:
    """Raise InvalidInput unless log_lik of a program, in its `quantities` at some points with all
    weights 1, is that of the model that it is declared to be."""
    lacking = [name for name in model.parameters if name not in quantities]
    if lacking:
        raise InvalidInput(
            f"program {program.name!r} must yield what {type(model).__name__} reads: "
            f"{lacking[0]!r} is no variable of it; give predict= as a function"
        )
    own = {name: quantities[name] for name in model.parameters}
    with np.errstate(all="ignore"):
        ours = model.log_lik(own, model.to_support(outcome), X)
    theirs = quantities["log_lik"]
    usable = np.isfinite(ours) & np.isfinite(theirs)
    if not usable.any() or not np.allclose(ours[usable], theirs[usable], rtol=_APART, atol=_APART):
        raise InvalidInput(
            f"program {program.name!r} must be the {type(model).__name__} that predict= declares "
            "it to be: at the same parameters their log-likelihoods differ; give another model, or "
            "predict= as a function"
        )
