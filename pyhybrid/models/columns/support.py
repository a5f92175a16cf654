"""What an outcome's column can hold: which model is chosen for it, and what is never released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.formula.values import row_label

__all__ = [
    "check_many_counts",
    "draw_within",
    "limits_of_dtype",
    "plain_dtype",
    "support_said",
]

FEW = 10
"""Whole numbers with at most so many different values may be codes: no model is chosen for them."""
_TRIES = 1000


def check_many_counts(y: FloatArray, outcome: str, index: pd.Index) -> None:
    """Refuse outcomes y (n,) that a model for counts must not be chosen for unless asked for.

    Raises
    ------
    InvalidInput
        For negative numbers, fractions, and whole numbers with at most 10 different values, which
        may be codes; says what to give. No message holds a value.
    """
    normal = "give --model normal or mixture, with a unit"
    rules = (
        ("a count >= 0: {} is negative", normal, y < 0),
        (
            "a whole number: {} is not",
            f"{normal} (and transform=log where all are above 0), or beta:lower=...,upper=... "
            "within bounds",
            y != np.floor(y),
        ),
    )
    for rule, instead, broken in rules:
        if broken.any():
            label = row_label(index, int(np.flatnonzero(broken)[0]))
            raise InvalidInput(
                f"outcome {outcome!r} must be {rule.format(label)}; negative_binomial, the default "
                f"model, is for counts: {instead}"
            )
    if np.unique(y).size <= FEW:
        raise InvalidInput(
            f"outcome {outcome!r} must have more than {FEW} different values for the default model "
            "to be chosen: with fewer, as codes, ratings and 0/1 columns have, give --model "
            "bernoulli if it has two, ordinal:levels=1+2+3 for ratings, negative_binomial if these "
            "are counts without an upper end, and beta_binomial:lower=...,upper=... or "
            "poisson:lower=...,upper=... with one, so that nothing outside is released"
        )


def plain_dtype(dtype: Any) -> Any:
    """numpy's dtype of the same numbers."""
    return next((getattr(dtype, n) for n in ("numpy_dtype", "subtype") if hasattr(dtype, n)), dtype)


def limits_of_dtype(dtype: Any) -> tuple[float, float]:
    """Smallest and largest float that a column of this dtype can hold; infinite for floats."""
    if not pd.api.types.is_integer_dtype(dtype):
        return -np.inf, np.inf
    limits = np.iinfo(plain_dtype(dtype))
    highest = float(limits.max)
    if highest > limits.max:  # rounded up: 2^63
        highest = float(np.nextafter(highest, 0))
    return float(limits.min), highest


def support_said(outcome: str, ends: tuple[float, float] | None) -> tuple[str, ...]:
    """What a charge states of a declared support (inclusive ends, infinite for none)."""
    low, high = (-np.inf, np.inf) if ends is None else ends
    if np.isinf(low) and np.isinf(high):
        return ()
    least = "" if np.isinf(low) else f" at least {low:.15g}"
    most = "" if np.isinf(high) else f" at most {high:.15g}"
    return (
        f"Released values of {' '.join(outcome.split())} are{least}{' and' * bool(least and most)}"
        f"{most}, as declared: replicates are drawn from the model given that they are "
        "(truncated), which reads no record and costs nothing.",
    )


def draw_within(
    draw: Callable[[Any], FloatArray], n: int, limits: tuple[float, float]
) -> FloatArray:
    """Draw n outcomes, those outside of the limits again until all lie within.

    What is released is then drawn from the model given that it lies within: a function of the draw
    of the parameters, of the predictors and of public limits, which costs nothing more.

    Parameters
    ----------
    draw : callable
        Given rows (a slice or places), returns one outcome for each, drawn anew.
    n : int
    limits : tuple of float
        Smallest and largest value that may be released.

    Raises
    ------
    SamplingError
        If the model has next to no probability within the limits.
    """
    low, high = limits
    values = draw(slice(None))
    left: npt.NDArray[np.intp] = np.flatnonzero((values < low) | (values > high))
    for _ in range(_TRIES):
        if not left.size:
            return values
        values[left] = draw(left)
        left = left[(values[left] < low) | (values[left] > high)]
    raise SamplingError(
        f"released values must lie in the support of their column: the model has next to no "
        f"probability there for {left.size} of {n} records; give another model, or other limits"
    )
