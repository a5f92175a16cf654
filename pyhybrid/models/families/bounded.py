"""Amounts within bounds: the model given that it lies within, and released values on a grid."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_finite, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.decimals import decimals_of
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.models.formula.design import Design, row_label

__all__ = ["BoundedModel"]

TRUNCATED = ("likelihood", "draws")


@dataclass(frozen=True)
class BoundedModel(RegressionModel):
    """A model of a continuous outcome that may have bounds.

    Parameters
    ----------
    formula : str
        Wilkinson formula.
    lower, upper : float, optional
        Smallest and largest value that the column can hold: public, given, never read from the
        data. The likelihood is that of the model given that the outcome lies within (truncated, not
        clipped), and replicates are drawn from it by the inverse of its distribution function. Data
        outside are refused.
    step : float, optional
        Released values are multiples of it, e.g. 0.5 or 100: the nearest one within the bounds.
        That is done to the replicates alone, after they were drawn, and costs nothing; the
        likelihood knows of no steps. It stands for `decimals`.
    truncated : {"likelihood", "draws"}
        What the bounds act on. "draws": replicates alone are drawn from the model given that they
        lie within; it is fitted as if there were none. Data outside are refused in either case.
    """

    _: KW_ONLY
    lower: float | None = None
    upper: float | None = None
    step: float | None = None
    truncated: str = "likelihood"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper"):
            if getattr(self, name) is not None:
                check_finite(getattr(self, name), name)
        check_choice(self.truncated, "truncated", TRUNCATED)
        low, high = self.ends
        if not low < high:
            raise InvalidInput(f"lower must be below upper: found {low:g} and {high:g}")
        if self.step is None:
            return
        check_positive(self.step, "step")
        if getattr(self, "decimals", None) is not None:
            raise InvalidInput("give step or decimals, not both")
        if decimals_of(np.array([self.step])) is None:
            raise InvalidInput(f"step must have at most 8 decimals: found {self.step!r}")
        first, last = self._grid_ends
        if first > last:
            raise InvalidInput("step must leave a multiple of it between lower and upper")

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end, infinite where there is none."""
        low = -math.inf if self.lower is None else self.lower
        return low, math.inf if self.upper is None else self.upper

    @property
    def bounded(self) -> bool:
        """True if the likelihood is truncated."""
        return self.truncated == "likelihood" and self.draws_bounded

    @property
    def draws_bounded(self) -> bool:
        """True if replicates are drawn from the model given that they lie within ends."""
        return any(math.isfinite(end) for end in self.model_ends)

    @property
    def declared_support(self) -> tuple[float, float] | None:
        """The ends, if there is one."""
        return self.ends if self.draws_bounded else None

    @property
    def model_ends(self) -> tuple[float, float]:
        """The ends on the scale of the likelihood."""
        return self.ends

    def describe(self) -> dict[str, Any]:
        """Public settings; bounds and step where they are given."""
        draws = None if self.truncated == "likelihood" else self.truncated
        own = {"lower": self.lower, "upper": self.upper, "step": self.step, "truncated": draws}
        return {**super().describe(), **{k: v for k, v in own.items() if v is not None}}

    @property
    def given_decimals(self) -> int | None:
        """Those of the step, if there is one."""
        if self.step is None:
            return super().given_decimals
        return decimals_of(np.array([self.step]))

    def support(self, dtype: Any) -> tuple[float, float]:
        """Smallest and largest value that may be released."""
        low, high = super().support(dtype)
        return max(low, self.ends[0]), min(high, self.ends[1])

    def check_ends(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, for outcomes outside the bounds."""
        low, high = self.ends
        outside = np.flatnonzero((design.y < low) | (design.y > high))
        if outside.size:
            raise InvalidInput(
                f"outcome {design.outcome!r} must lie in [{low:g}, {high:g}]: "
                f"{row_label(index, int(outside[0]))} does not; give lower and upper"
            )

    def within_ends(self, values: FloatArray, decimals: int | None) -> FloatArray:
        """Values of the table's scale on the grid of the step, and not beyond the ends by what
        rounding adds."""
        low, high = self.ends
        if self.step is not None:
            first, last = self._grid_ends
            values = self.step * np.clip(np.round(values / self.step), first, last)
            return np.asarray(np.round(values, decimals or 0))
        if decimals is None:
            return np.clip(values, low, high)
        unit = 10.0**-decimals
        first, last = np.ceil(low / unit - 1e-9) * unit, np.floor(high / unit + 1e-9) * unit
        return np.asarray(np.round(np.clip(values, first, last), decimals), dtype=np.float64)

    def interval(self) -> dict[str, Any]:
        """The ends as the programs take them."""
        low, high = self.model_ends if self.bounded else (-math.inf, math.inf)
        return {
            "has_lower": int(math.isfinite(low)),
            "lower_end": low if math.isfinite(low) else 0.0,
            "has_upper": int(math.isfinite(high)),
            "upper_end": high if math.isfinite(high) else 0.0,
        }

    @property
    def _grid_ends(self) -> tuple[float, float]:
        """Smallest and largest multiple of the step, in steps."""
        assert self.step is not None
        low, high = self.ends
        return (
            math.ceil(low / self.step - 1e-9) if math.isfinite(low) else low,
            math.floor(high / self.step + 1e-9) if math.isfinite(high) else high,
        )
