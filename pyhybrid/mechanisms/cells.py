"""Public cells of a column: equal bins of a range, or declared levels. Part of the guarantee."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form, level_places, outcome_levels
from pyhybrid.models.columns.support import of_steps, snapped
from pyhybrid.models.formula.design import row_label
from pyhybrid.privacy.histogram import in_steps

__all__ = ["Cells", "bins_of", "check_grid", "levels_of"]

_LARGEST_WHOLE = 2**53  # floats beyond it skip whole numbers
IntArray = npt.NDArray[np.int64]


class Cells(Protocol):
    """Cells that every possible record lies in one of."""

    n_cells: int
    place: IntArray
    """Cell of each record, shape (n,)."""

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.Series:
        """A column in its declared form, each value from a cell drawn with probabilities
        `shares` (B,)."""


def bins_of(
    outcome: pd.Series, low: float, high: float, n_bins: int, decimals: int | None
) -> Cells:
    """Equal bins of [low, high]: of the numbers of so many decimals, or of reals if that is None.

    Raises
    ------
    InvalidInput
        For a column that is no number, and values that are missing or outside (the row is named).
    """
    y = _outcome(outcome, low, high, decimals)
    like = pd.Series(index=outcome.index, name=outcome.name, dtype=np.float64)
    return (
        _RealBins(y, low, high, n_bins, like=like)
        if decimals is None
        else _GridBins(y, low, high, n_bins, like=like, decimals=decimals)
    )


def check_grid(low: float, high: float, n_bins: int, decimals: int) -> None:
    """Raise InvalidInput unless each of the bins of [low, high] holds a number of `decimals`."""
    ends = in_steps(np.array([low, high]), 10.0**-decimals)
    if (ends != np.rint(ends)).any():
        raise InvalidInput(
            f"lower and upper must be whole numbers for decimals=0, and numbers of {decimals} "
            f"decimals for decimals={decimals}: found {low:g} and {high:g}"
        )
    if np.abs(ends).max() > _LARGEST_WHOLE:
        raise InvalidInput(
            f"lower and upper must be at most {_LARGEST_WHOLE} in size, in steps of {decimals} "
            f"decimals: found {low:g} and {high:g}"
        )
    if n_bins > ends[1] - ends[0] + 1:
        raise InvalidInput(
            f"n_bins must be at most the number of values of {decimals} decimals from {low:g} to "
            f"{high:g}: found {n_bins}"
        )


def levels_of(outcome: pd.Series, given: tuple[Any, ...]) -> Cells:
    """The declared levels of a column of any kind.

    Raises
    ------
    InvalidInput
        For values that are missing or none of them (the row is named).
    """
    name = str(outcome.name)
    missing = np.flatnonzero(outcome.isna())
    if missing.size:
        raise InvalidInput(_missing(name, outcome, int(missing[0])))
    return _Levels(outcome, name, given)


class _RealBins:
    """Equal bins of a range of real numbers; `place` (n,) is each record's bin."""

    def __init__(
        self, y: FloatArray, low: float, high: float, n_bins: int, *, like: pd.Series
    ) -> None:
        self.n_cells, self.low, self.width, self.like = n_bins, low, high - low, like
        place = np.floor(in_steps(y - low, self.width / n_bins)).astype(np.int64)
        self.place = np.minimum(place, n_bins - 1)

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.Series:
        """Values that are each uniform within their bin."""
        n = self.place.size
        chosen = rng.choice(self.n_cells, size=n, p=shares)
        values = self.low + (chosen + rng.random(n)) / self.n_cells * self.width
        own = np.clip(values, self.low, self.low + self.width)
        return pd.Series(own, index=self.like.index, name=self.like.name)


class _GridBins:
    """Equal bins of the numbers of so many decimals, counted in whole steps from 0."""

    def __init__(
        self,
        y: FloatArray,
        low: float,
        high: float,
        n_bins: int,
        *,
        like: pd.Series,
        decimals: int,
    ) -> None:
        self.n_cells, self.like, self.form = n_bins, like, Form(decimals=decimals)
        self.step = 10.0**-decimals
        start, end = (int(own) for own in in_steps(np.array([low, high]), self.step))
        # bin b holds the steps from first[b] to first[b + 1] - 1
        edges = [start - (-b * (end - start + 1) // n_bins) for b in range(n_bins + 1)]
        self.first = np.array(edges, dtype=np.int64)
        steps = np.rint(in_steps(y, self.step))  # what is between two is rounded
        place = np.searchsorted(self.first, steps, side="right") - 1
        self.place = np.minimum(place, n_bins - 1)

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.Series:
        """Values that are each uniform among those of their bin."""
        chosen = rng.choice(self.n_cells, size=self.place.size, p=shares)
        steps = rng.integers(self.first[chosen], self.first[chosen + 1])
        values = of_steps(steps.astype(np.float64), self.step)
        return self.form.cast(pd.Series(values, index=self.like.index, name=self.like.name))


class _Levels:
    """Levels, each a cell."""

    def __init__(self, outcome: pd.Series, name: str, given: tuple[Any, ...]) -> None:
        self.like, self.form = outcome.index, Form(levels=given)
        self.name, self.n_cells = outcome.name, len(given)
        levels = outcome_levels(outcome, name, given)
        self.place = level_places(outcome, name, levels).astype(np.int64)
        self.values = np.empty(len(given), dtype=object)
        self.values[:] = given

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.Series:
        """Levels as they were declared."""
        chosen = rng.choice(self.n_cells, size=self.place.size, p=shares)
        return self.form.cast(pd.Series(self.values[chosen], index=self.like, name=self.name))


def _outcome(values: pd.Series, low: float, high: float, decimals: int | None) -> FloatArray:
    """Outcome as finite floats within [low, high], but for rounding, shape (n,)."""
    name = values.name
    dtype = values.dtype
    numeric = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if not numeric or pd.api.types.is_complex_dtype(dtype):
        raise InvalidInput(f"outcome {name!r} must be numeric: found {dtype}")
    missing = np.flatnonzero(values.isna())
    if missing.size:
        raise InvalidInput(_missing(str(name), values, int(missing[0])))
    y: FloatArray = values.to_numpy(dtype=np.float64)
    if decimals is not None:
        y = snapped(y, 10.0**-decimals)
    outside = np.flatnonzero(~((y >= low) & (y <= high)))
    if outside.size:
        raise InvalidInput(
            f"outcome {name!r} must lie in [{low:g}, {high:g}]: "
            f"{row_label(values.index, int(outside[0]))} does not; the range is part of the "
            "guarantee, so change such values by a rule that does not look at the others"
        )
    return y


def _missing(name: str, values: pd.Series, place: int) -> str:
    return (
        f"outcome {name!r} must not be missing: {row_label(values.index, place)} is; "
        "drop or impute such rows before synthesis"
    )
