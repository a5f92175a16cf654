"""Public cells of a column: equal bins of a range, or declared levels. Part of the guarantee."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.errors import InvalidInput
from pyhybrid.models.decimals import in_dtype_of
from pyhybrid.models.design import row_label
from pyhybrid.models.levels import column_of, level_places, outcome_levels

__all__ = ["Cells", "bins_of", "levels_of"]

_LARGEST_WHOLE = 2**53  # floats beyond it skip whole numbers
IntArray = npt.NDArray[np.int64]


class Cells(Protocol):
    """Cells that every possible record lies in one of."""

    n_cells: int
    place: IntArray
    """Cell of each record, shape (n,)."""

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.Series:
        """A column in the dtype of the data's, each value from a cell drawn with probabilities
        `shares` (B,)."""


def bins_of(outcome: pd.Series, low: float, high: float, n_bins: int) -> Cells:
    """Equal bins of [low, high], of whole numbers for an integer dtype.

    Raises
    ------
    InvalidInput
        For a column that is no number, values that are missing or outside (the row is named), and
        limits or a number of bins that an integer column cannot have.
    """
    y = _outcome(outcome, low, high)
    whole = pd.api.types.is_integer_dtype(outcome.dtype)
    if whole and (low % 1 or high % 1):
        raise InvalidInput(
            f"lower and upper must be whole numbers for {outcome.name!r} of dtype "
            f"{outcome.dtype}: found {low:g} and {high:g}"
        )
    if whole and max(abs(low), abs(high)) > _LARGEST_WHOLE:
        raise InvalidInput(
            f"lower and upper must be at most {_LARGEST_WHOLE} in size for {outcome.name!r} of "
            f"dtype {outcome.dtype}: found {low:g} and {high:g}"
        )
    if whole and n_bins > high - low + 1:
        raise InvalidInput(
            f"n_bins must be at most the number of whole numbers from {low:g} to {high:g}: "
            f"found {n_bins}"
        )
    return _Bins(y, low, high, n_bins, like=outcome, whole=whole)


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


class _Bins:
    """Equal bins of a range, of real or of whole numbers; `place` (n,) is each record's bin."""

    def __init__(
        self,
        y: FloatArray,
        low: float,
        high: float,
        n_bins: int,
        *,
        like: pd.Series,
        whole: bool,
    ) -> None:
        self.whole, self.n_cells, self.low, self.like = whole, n_bins, low, like
        self.width = high - low + 1 if whole else high - low
        if whole:  # bin b holds the integers from first[b] to first[b + 1] - 1
            edges = [int(low) - (-b * int(self.width) // n_bins) for b in range(n_bins + 1)]
            self.first = np.array(edges, dtype=np.int64)
            self.place = np.searchsorted(self.first, y, side="right") - 1
        else:
            self.place = np.floor((y - low) / self.width * n_bins).astype(np.int64)
        self.place = np.minimum(self.place, n_bins - 1)

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.Series:
        """Values that are each uniform within their bin."""
        return in_dtype_of(self._numbers(shares, rng), self.like)

    def _numbers(self, shares: FloatArray, rng: np.random.Generator) -> FloatArray:
        n = self.place.size
        chosen = rng.choice(self.n_cells, size=n, p=shares)
        if self.whole:
            return rng.integers(self.first[chosen], self.first[chosen + 1]).astype(np.float64)
        values = self.low + (chosen + rng.random(n)) / self.n_cells * self.width
        return np.clip(values, self.low, self.low + self.width)


class _Levels:
    """Levels, each a cell."""

    def __init__(self, outcome: pd.Series, name: str, given: tuple[Any, ...]) -> None:
        self.like, self.levels = outcome, outcome_levels(outcome, name, given)
        self.n_cells = len(self.levels.values)
        self.place = level_places(outcome, name, self.levels).astype(np.int64)

    def draw(self, shares: FloatArray, rng: np.random.Generator) -> pd.Series:
        """Levels in the dtype of the data."""
        chosen = rng.choice(self.n_cells, size=self.place.size, p=shares)
        return column_of(chosen.astype(np.float64), self.levels, self.like)


def _outcome(values: pd.Series, low: float, high: float) -> FloatArray:
    """Outcome as finite floats within [low, high], shape (n,)."""
    name = values.name
    dtype = values.dtype
    numeric = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if not numeric or pd.api.types.is_complex_dtype(dtype):
        raise InvalidInput(f"outcome {name!r} must be numeric: found {dtype}")
    missing = np.flatnonzero(values.isna())
    if missing.size:
        raise InvalidInput(_missing(str(name), values, int(missing[0])))
    y: FloatArray = values.to_numpy(dtype=np.float64)
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
