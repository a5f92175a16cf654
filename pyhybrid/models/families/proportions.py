"""What the models for outcomes in an interval share: scaling, edges, rounding.

An outcome within given bounds is scaled to (0, 1). Bounds are part of the model, given by the user:
read from the data they would be a function of the data that no guarantee covers. Exact 0 and 1
have no finite beta density; values nearer to an end than `edge` (on the unit scale) are moved to
`edge` from it. Both steps look at one record alone, so that a strict guarantee stays strict.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.decimals import check_decimals, grid_ends, on_grid
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.models.formula.design import Design, row_label

__all__ = ["ProportionModel"]


@dataclass(frozen=True)
class ProportionModel(RegressionModel):
    """A model of an outcome in [lower, upper].

    Parameters
    ----------
    formula : str
        Wilkinson formula.
    lower, upper : float, default 0 and 1
        Bounds of the outcome, finite, given and never read from the data. Log densities are those
        of the scaled outcome: Lipschitz bounds and epsilon belong to this scale.
    edge : float, default 1e-10
        Distance from 0 and 1 to which values beyond it are moved, on the unit scale, in (0, 0.1).
    decimals : int, optional
        Number of decimals of released values, 0 to 15. A strict charge needs it: if omitted it is
        read from the data, and the charge says so and is not strict.
    """

    _: KW_ONLY
    lower: float = 0.0
    upper: float = 1.0
    edge: float = 1e-10
    decimals: int | None = None
    density_above_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper", "edge"):
            check_finite(getattr(self, name), name)
        if not self.lower < self.upper:
            raise InvalidInput(
                f"lower must be below upper: found {self.lower:g} and {self.upper:g}; give the "
                "bounds, they are part of the model"
            )
        if math.isinf(self.upper - self.lower):
            raise InvalidInput(
                f"upper - lower must be finite: found {self.lower:g} and {self.upper:g}"
            )
        if not 0 < self.edge < 0.1:
            raise InvalidInput(f"edge must lie in (0, 0.1): found {self.edge:g}")
        check_decimals(self.decimals)
        if self.decimals is not None:
            grid_ends(self.decimals, self.lower, self.upper)

    def describe(self) -> dict[str, Any]:
        """Public settings, with the scale that densities belong to."""
        scale = {"lower": self.lower, "upper": self.upper, "edge": self.edge}
        return {**super().describe(), **scale, "decimals": self.decimals}

    @property
    def given_decimals(self) -> int | None:
        """Number of decimals of released values, if the user gave it."""
        return self.decimals

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, for outcomes outside the bounds."""
        outside = np.flatnonzero((design.y < self.lower) | (design.y > self.upper))
        if outside.size:
            raise InvalidInput(
                f"outcome {design.outcome!r} must lie in [{self.lower:g}, {self.upper:g}]: "
                f"{row_label(index, int(outside[0]))} does not; give lower and upper"
            )

    def to_support(self, y: FloatArray) -> FloatArray:
        """Scaled to the unit interval, at least `edge` from its ends."""
        unit = (y - self.lower) / (self.upper - self.lower)
        return np.clip(unit, self.edge, 1 - self.edge)

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        """Back to [lower, upper], rounded to `decimals`."""
        return on_grid(
            self.lower + (self.upper - self.lower) * values, decimals, self.lower, self.upper
        )
