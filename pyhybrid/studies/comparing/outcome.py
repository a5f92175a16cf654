"""What is estimated of an outcome: mean and percentiles of numbers, shares of levels.

The places that levels have in a model are codes: their mean and percentiles say nothing. Missing
values are left out of the estimates of numbers, and have a share of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.arrays.estimates import Estimates, estimates
from pyhybrid.models.base import BoundModel

__all__ = ["Outcome", "levels_of_outcome", "outcome_of", "present"]

_MOST = 6
_MISSING = "share missing"


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The outcome of a bound model, and what is estimated of it. Confidential.

    Attributes
    ----------
    bound : BoundModel
    shares : mapping of str to float
        Places of the levels whose shares are estimated, by the name of the share; empty for
        numbers.
    missing : bool
        True if the share of missing values is estimated.
    """

    bound: BoundModel
    shares: dict[str, int]
    missing: bool

    @property
    def of_mean(self) -> str:
        """What `first_of` averages, in words."""
        name = self.bound.synthesized[0]
        return f"{next(iter(self.shares))} of {name}" if self.shares else f"mean of {name}"

    def estimates(self, columns: Sequence[pd.Series], rng: np.random.Generator) -> Estimates:
        """Estimates with intervals from one column, or from those of m synthetic sets."""
        values = [self.bound.numbers_of(column) for column in columns]
        found = []
        if not self.shares:
            found.append(estimates([present(each) for each in values], rng=rng))
        for name, indicator in self._indicators():
            own = estimates([indicator(each) for each in values], statistics=("mean",), rng=rng)
            found.append(_named(own, name))
        return _joined(found)

    def averaged(self, column: pd.Series) -> FloatArray:
        """What must come near the data on average, shape (k,): the mean, or each share."""
        values = self.bound.numbers_of(column)
        means = [] if self.shares else [present(values).mean()]
        means += [indicator(values).mean() for _, indicator in self._indicators()]
        return np.array(means)

    def spread(self) -> FloatArray:
        """Standard deviations over the records of what `averaged` averages, shape (k,)."""
        values = self.bound.outcome
        spreads = [] if self.shares else [present(values).std()]
        spreads += [indicator(values).std() for _, indicator in self._indicators()]
        return np.array(spreads)

    def _indicators(self) -> list[tuple[str, Callable[[FloatArray], FloatArray]]]:
        """Names of shares, and what has a share as its mean."""

        def at(place: int) -> Callable[[FloatArray], FloatArray]:
            return lambda values: (values == place).astype(np.float64)

        found = [(name, at(place)) for name, place in self.shares.items()]
        gone = [(_MISSING, lambda values: np.isnan(values).astype(np.float64))]
        return [*found, *(gone if self.missing else [])]


def outcome_of(bound: BoundModel) -> Outcome:
    """What is estimated of the outcome of `bound`: of levels, the 6 most frequent in the data."""
    values = bound.outcome
    levels = levels_of_outcome(bound)
    shares: dict[str, int] = {}
    if levels is not None:
        places = present(values).astype(np.intp)
        counts = np.bincount(places, minlength=len(levels))
        chosen = sorted(np.argsort(-counts, kind="stable")[:_MOST].tolist())
        shares = {f"share of {levels[place]}": place for place in chosen}
    return Outcome(bound=bound, shares=shares, missing=bool(np.isnan(values).any()))


def levels_of_outcome(bound: Any) -> tuple[Any, ...] | None:
    """Values of an outcome of levels, in the order of their places; None for numbers."""
    amounts = getattr(bound, "amounts", None)
    own = amounts[0].part.bound if amounts else bound
    levels = getattr(own, "levels", None)
    return None if levels is None else tuple(levels.values)


def present(values: FloatArray) -> FloatArray:
    """Values that are not missing.

    Raises
    ------
    InvalidInput
        If all are missing.
    """
    kept = values[~np.isnan(values)]
    if not kept.size:
        raise InvalidInput("the outcome must have a value in each set: all are missing in one")
    return np.asarray(kept)


def _named(found: Estimates, name: str) -> Estimates:
    return Estimates(
        statistics=(name,),
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        resampled=found.resampled,
        level=found.level,
        n_sets=found.n_sets,
    )


def _joined(found: Sequence[Estimates]) -> Estimates:
    """The statistics of all, which are of the same sets."""
    return Estimates(
        statistics=tuple(name for each in found for name in each.statistics),
        estimate=np.concatenate([each.estimate for each in found]),
        lower=np.concatenate([each.lower for each in found]),
        upper=np.concatenate([each.upper for each in found]),
        resampled=np.concatenate([each.resampled for each in found]),
        level=found[0].level,
        n_sets=found[0].n_sets,
    )
