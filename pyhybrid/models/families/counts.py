"""What the count models share: the support of counts."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_count
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.formula.design import Design, row_label

__all__ = ["CountModel", "draw_counts_error"]

_LARGEST_COUNT = 2**31 - 1  # Stan's integers have 32 bits


@dataclass(frozen=True)
class CountModel(LinearModel):
    """A model of whole numbers from `lower` to `upper`.

    Parameters
    ----------
    formula : str
        Wilkinson formula.
    lower, upper : int, default 0 and None
        Smallest and largest value that the column can hold: public, given, never read from the
        data. Values outside never leave: replicates are drawn from the model given that they lie
        within, which is a function of the posterior draw and costs nothing more. The likelihood is
        not truncated. Data outside are refused.
    """

    _: KW_ONLY
    lower: int = 0
    upper: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.lower, "lower", at_least=0)
        if self.upper is not None and check_count(self.upper, "upper") <= self.lower:
            raise InvalidInput(
                f"upper must be above lower: found {self.upper:g} and {self.lower:g}"
            )

    def describe(self) -> dict[str, Any]:
        """Public settings; the support where it is not that of all counts."""
        given = {"lower": self.lower, "upper": self.upper}
        return {**super().describe(), **(given if given != {"lower": 0, "upper": None} else {})}

    @property
    def declared_support(self) -> tuple[float, float] | None:
        """Lower and upper end, if they are not those of all counts."""
        if self.upper is None and self.lower == 0:
            return None
        return self.lower, math.inf if self.upper is None else self.upper

    def support(self, dtype: Any) -> tuple[float, float]:
        """Smallest and largest value that may be released."""
        low, high = super().support(dtype)
        return max(low, self.lower), high if self.upper is None else min(high, self.upper)

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, unless outcomes are whole numbers in the
        support, at most 2^31 - 1."""
        largest = _LARGEST_COUNT if self.upper is None else min(self.upper, _LARGEST_COUNT)
        rules = (
            ("a count >= 0: {} is negative", design.y < 0),
            ("a whole number: {} is not", design.y != np.floor(design.y)),
            (f"at least {self.lower:g}: {{}} is smaller; give lower", design.y < self.lower),
            (f"at most {largest:.0f}: {{}} is larger", design.y > largest),
        )
        for rule, broken in rules:
            if broken.any():
                label = row_label(index, int(np.flatnonzero(broken)[0]))
                raise InvalidInput(f"outcome {design.outcome!r} must be {rule.format(label)}")


def draw_counts_error(error: Exception) -> SamplingError:
    """The error of a posterior draw from which no count can be simulated."""
    return SamplingError(f"no replicate can be drawn, the mean is out of range: {error}")
