"""What a user's Stan program must do: take weights, yield log_lik, and let the weights act on it.

The numeric check needs no sampling: at random points theta the log densities under two weight
vectors must differ by sum_i (a_i - b_i) f_i(theta), f the program's own log_lik, up to a constant
that theta does not enter (a program may drop normalizing constants). A program that forgets a
weight, weights a prior, or whose log_lik is not the term in its model fails it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, PyhybridError
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import block_text, declared_names
from pyhybrid.models.columns.surrogate_values import OtherValues

__all__ = [
    "check_acts_at",
    "check_declares",
    "check_weights_act",
    "check_yielded",
    "monitored_of",
    "unchecked_facts",
    "usable_points",
]

_ROUNDING = 1e-9  # of the log of a probability of 1
_TRIES, _POINTS = 60, 4
_TOLERANCE = 1e-7
_LARGEST = 1e12  # beyond, rounding hides what is looked for
DataOf = Callable[[FloatArray, "float | None"], Mapping[str, Any]]
"""Data block under weights (n,) and a cap."""
DataOfOther = Callable[[FloatArray, "float | None", "OtherValues | None"], Mapping[str, Any]]
"""The same, with other values in the place of what is confidential."""


def check_declares(program: StanProgram) -> None:
    """Raise InvalidInput unless the text has `weights` in data and `log_lik` at the end."""
    if "weights" not in declared_names(program, "data"):
        raise InvalidInput(
            f"program {program.name!r} must declare weights in its data block, e.g. "
            "'vector<lower=0, upper=1>[n] weights;', and multiply each record's log-likelihood by "
            "its weight"
        )
    if not re.search(r"\blog_lik\b", block_text(program, r"generated\s+quantities")):
        raise InvalidInput(
            f"program {program.name!r} must yield log_lik in its generated quantities: a vector "
            "with the log-likelihood of each record, not weighted"
        )


def check_weights_act(
    program: StanProgram, data_of: DataOf, n: int, *, weighted: bool, capped: bool
) -> None:
    """Hold the program's log density against its log_lik at random points.

    Parameters
    ----------
    program : StanProgram
    data_of : callable
    n : int
        Number of records.
    weighted : bool
        True if the program's log_lik is weighted.
    capped : bool
        True if it takes a cap: clipping is checked as well.

    Raises
    ------
    InvalidInput
        Says which of the demands is not met.
    """
    rng = np.random.default_rng(20220101)
    one, two = rng.uniform(0.2, 1, n), rng.uniform(0, 1, n)
    two[:: max(2, n // 5)] = 0
    plain = ProgramAtPoints(program, data_of(np.ones(n), None))
    points, at_one = usable_points(plain, rng, program)
    log_lik = plain.quantities(points)["log_lik"]
    check_yielded(program, log_lik, (len(points), n), density_above_one=True)
    usable = np.isfinite(log_lik).all(axis=1)
    points, log_lik, at_one = points[usable], log_lik[usable], at_one[usable]
    if not usable.any():
        raise InvalidInput(
            f"log_lik of program {program.name!r} must be finite: it is not, at any point tried"
        )
    other = ProgramAtPoints(program, data_of(one, None))
    own = other.quantities(points)["log_lik"]
    _check_said(program, own, log_lik, one, weighted)
    density_one = other.log_density(points)
    density_two = ProgramAtPoints(program, data_of(two, None)).log_density(points)
    expected = log_lik @ (one - two)
    _compare(program, density_one - density_two, expected, np.abs(at_one), "weights")
    if capped:
        cap = float(np.median(np.abs(one * log_lik)))
        clipped = _clipped(one, log_lik, cap) - log_lik @ one
        density = ProgramAtPoints(program, data_of(one, cap)).log_density(points)
        _compare(program, density - density_one, clipped, np.abs(at_one), "cap")


def check_acts_at(
    program: StanProgram,
    data_of: DataOfOther,
    others: Iterable[OtherValues],
    alpha: FloatArray,
    cap: float | None,
    *,
    weighted: bool,
) -> None:
    """Hold the log density at the very weights `alpha` (n,) and cap of a fit against log_lik, with
    the data's outcome and with another, and what is left with weights of 0.

    Raises
    ------
    InvalidInput
        If the program does another thing there than at the weights tried when it was bound.
    """
    one, none = np.ones(alpha.size), np.zeros(alpha.size)
    plain = ProgramAtPoints(program, data_of(one, None, None))
    points, size = usable_points(plain, np.random.default_rng(20220102), program)
    log_lik = plain.quantities(points)["log_lik"]
    at = ProgramAtPoints(program, data_of(alpha, cap, None))
    _check_said(program, at.quantities(points)["log_lik"], log_lik, alpha, weighted)
    prior = ProgramAtPoints(program, data_of(none, cap, None)).log_density(points)
    what, expected = "weights" if cap is None else "cap", _clipped(alpha, log_lik, cap)
    _compare(program, at.log_density(points) - prior, expected, np.abs(size), what)
    for other in others:
        try:
            there, bare, whole = (
                ProgramAtPoints(program, data_of(*given, other))
                for given in ((alpha, cap), (none, cap), (one, None))
            )
            log_lik = whole.quantities(points)["log_lik"]
            left, found = bare.log_density(points), there.log_density(points)
        except PyhybridError:
            continue
        usable = np.isfinite(left) & np.isfinite(found)
        if usable.sum() < min(2, len(points)):
            continue
        left, found, before = left[usable], found[usable], prior[usable]
        expected = _clipped(alpha, log_lik[usable], cap)
        _compare(program, found - left, expected, np.abs(size[usable]), what)
        if not np.allclose(left - before, (left - before)[0], rtol=0, atol=_TOLERANCE * (
            1 + np.abs(left).max() + np.abs(before).max())):  # fmt: skip
            raise InvalidInput(
                f"the prior of program {program.name!r} must not read the confidential outcome: at "
                "the weights and the cap of this fit the log density changes with it, all weights "
                "taken away"
            )
        return


def _clipped(alpha: FloatArray, log_lik: FloatArray, cap: float | None) -> FloatArray:
    """Sum of the weighted terms (S, n), each clipped; those of weight 0 count nothing."""
    terms = np.where(alpha > 0, alpha * log_lik, 0.0)
    total: FloatArray = (terms if cap is None else np.clip(terms, -cap, cap)).sum(axis=1)
    return total


def unchecked_facts(
    *,
    density_above_one: bool,
    checked: bool,
    public: tuple[str, ...] = (),
    in_python: bool = False,
) -> tuple[str, ...]:
    """Sentences for a charge: what is only known from the user; see `pyhybrid.StanModel`."""
    said = [
        "The user's own program: replicates are made from a released draw and columns that are "
        "released, not from the confidential outcome.",
        "A whole program: what it does was tried at the weights and the cap of its fits, not known "
        "for all of them, so that no charge of it is strict; a composed program can be "
        "(ph.ComposedModel).",
    ]
    if in_python:
        said.append(
            "The user's own functions in Python read no records but those that they are given: "
            "they were tried on other values, not looked into."
        )
    if public:
        said.append(f"The user states that these are public: {', '.join(public)}.")
    if not density_above_one:
        said.append("The user states that no density of the program exceeds 1.")
    if not checked:
        said.append(
            "WHAT THE PROGRAM READS, AND ITS USE OF THE WEIGHTS, WERE NOT CHECKED: its epsilon may "
            "not hold, and its replicates may hold confidential values."
        )
    return tuple(said)


def check_yielded(
    program: StanProgram, log_lik: FloatArray, shape: tuple[int, int], *, density_above_one: bool
) -> None:
    """Raise InvalidInput for another shape than (S, n), or for what the user's flag denies."""
    if log_lik.shape != shape:
        raise InvalidInput(
            f"log_lik of program {program.name!r} must have one value per record, {shape[1]}: "
            f"found {log_lik.shape[1:]}"
        )
    if not density_above_one and (log_lik > _ROUNDING).any():
        raise InvalidInput(
            f"log_lik of program {program.name!r} must be at most 0 where "
            "density_above_one=False: it is not; leave the flag out"
        )


def monitored_of(
    draws: Draws, names: tuple[str, ...] | None, parameters: tuple[str, ...]
) -> dict[str, FloatArray]:
    """What must have converged: the variables that the user named, or the parameters, and the sum
    of log_lik."""
    if names is None:
        names = tuple(name for name in parameters if name in draws.variables)
    unknown = [name for name in names if name not in draws.variables]
    if unknown:
        raise InvalidInput(f"monitored must be variables of the program: {unknown[0]!r} is not")
    total = draws.variables["log_lik"].sum(axis=2)
    return {**{name: draws.variables[name] for name in names}, "sum of log_lik": total}


def usable_points(
    program_at: ProgramAtPoints, rng: np.random.Generator, program: StanProgram
) -> tuple[FloatArray, FloatArray]:
    """A few points where the log density is finite, and that density."""
    points = rng.uniform(-1, 1, (_TRIES, program_at.n_unconstrained))
    values = program_at.log_density(points)
    found = np.flatnonzero(np.abs(values) < _LARGEST)[:_POINTS]  # not of NaN
    if not found.size:
        raise InvalidInput(
            f"the log density of program {program.name!r} must be finite somewhere, and below "
            f"{_LARGEST:g} in size: it is not at {_TRIES} random points; see its constraints and "
            "its data"
        )
    return points[found], values[found]


def _check_said(
    program: StanProgram, own: FloatArray, plain: FloatArray, alpha: FloatArray, weighted: bool
) -> None:
    """log_lik under weights must be what the flag says: the same as without, or weighted."""
    if weighted and not np.allclose(own, alpha * plain, rtol=1e-6, atol=1e-9):
        raise InvalidInput(
            f"log_lik of program {program.name!r} must be weights times the log-likelihood, as "
            "log_lik_weighted=True says: it is not; leave the flag out if it is not weighted"
        )
    if not weighted and not np.allclose(own, plain, rtol=1e-6, atol=1e-9):
        raise InvalidInput(
            f"log_lik of program {program.name!r} must not depend on weights: it does; take the "
            "weights out of generated quantities, or give log_lik_weighted=True"
        )


def _compare(
    program: StanProgram, found: FloatArray, expected: FloatArray, size: FloatArray, what: str
) -> None:
    """Differences of log densities against those of log_lik, over points."""
    error = found - expected
    error = np.abs(error - error.mean() if error.size > 1 else error)
    if (error <= _TOLERANCE * (1 + size + np.abs(expected))).all():
        return
    if what == "cap":
        raise InvalidInput(
            f"the cap of program {program.name!r} must clip each record's weights[i] * log_lik[i] "
            "to [-cap, cap] where use_cap is 1: the log density does not move as it should"
        )
    none = bool((np.abs(found - found.mean()) <= _TOLERANCE * (1 + size)).all())
    why = "weights do not act at all" if none else "they act otherwise"
    raise InvalidInput(
        f"weights of program {program.name!r} must multiply each record's log_lik in the model "
        f"block: {why}. Between two weight vectors the log density must differ by the difference "
        "of the weighted log_lik; write 'target += weights[i] * ..._lpdf(y[i] | ...);' with the "
        "same term as in log_lik"
    )
