"""What the models for continuous outcomes share: the transform, its scale, rounding."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_finite, check_positive
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.columns.decimals import check_decimals
from pyhybrid.models.columns.transforms import LARGEST, TRANSFORMS
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.models.formula.design import Design, row_label

__all__ = ["TransformedModel"]


@dataclass(frozen=True)
class TransformedModel(RegressionModel):
    """A model of t(y / unit), y continuous.

    Parameters
    ----------
    formula : str
        Wilkinson formula.
    transform : {"identity", "log", "signed_log", "asinh"}
        t, see `pyhybrid.models.columns.transforms`. The density, and with it the log-likelihood,
        Lipschitz bounds and epsilon, is that of t(y / unit); the Jacobian of t is left out.
    unit : float, default 1
        Above 0, in the outcome's unit; given, never read from the data.
    min_sd : float, default 0
        Lower end of the prior of the deviation sigma, on the transformed scale. Many equal outcomes
        let the likelihood of a mixture grow without end as a component narrows onto them: a floor,
        such as 0.01 for log income, keeps densities below 1 / (min_sd sqrt(2 pi)).
    decimals : int, optional
        Number of decimals of released values, 0 to 15. A strict charge needs it: if omitted it is
        read from the data, and the charge says so and is not strict.

    Notes
    -----
    Released values are transformed back and rounded to `decimals`. Values beyond 2^53 in
    size are moved to it; under ``"log"`` values that would round to 0 become the smallest positive
    one. Densities can exceed 1, so that relation "replace" costs twice as much.
    """

    _: KW_ONLY
    transform: str = "identity"
    unit: float = 1.0
    min_sd: float = 0.0
    decimals: int | None = None
    density_above_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.transform, "transform", TRANSFORMS)
        check_positive(self.unit, "unit")
        if check_finite(self.min_sd, "min_sd") < 0:
            raise InvalidInput(f"min_sd must be >= 0: found {self.min_sd:g}")
        check_decimals(self.decimals)

    def describe(self) -> dict[str, Any]:
        """Public settings, with the scale that densities belong to."""
        own = {"transform": self.transform, "unit": self.unit, "min_sd": self.min_sd}
        scale = f"of {self.transform}(y / {self.unit:g}), Jacobian left out"
        return {**super().describe(), **own, "decimals": self.decimals, "density": scale}

    @property
    def given_decimals(self) -> int | None:
        """Number of decimals of released values, if the user gave it."""
        return self.decimals

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, for outcomes that t cannot take."""
        rules = [(f"at most {LARGEST:.0f} in size: {{}} is larger", np.abs(design.y) > LARGEST)]
        if TRANSFORMS[self.transform].positive:
            rules.append((
                f"above 0 for transform={self.transform!r}: {{}} is not; take signed_log or asinh, "
                "or leave such rows out",
                design.y <= 0,
            ))  # fmt: skip
        for rule, broken in rules:
            if broken.any():
                label = row_label(index, int(np.flatnonzero(broken)[0]))
                raise InvalidInput(f"outcome {design.outcome!r} must be {rule.format(label)}")

    def to_support(self, y: FloatArray) -> FloatArray:
        """t(y / unit)."""
        return TRANSFORMS[self.transform].forward(y / self.unit)

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        """Transformed back, rounded to `decimals`."""
        kind = TRANSFORMS[self.transform]
        with np.errstate(over="ignore"):
            own = np.clip(self.unit * kind.inverse(values), -LARGEST, LARGEST)
        if np.isnan(own).any():
            raise SamplingError("a replicate is not a number: the posterior draw is not finite")
        rounded = own if decimals is None else np.round(own, decimals)
        if kind.positive:
            step = np.finfo(np.float64).tiny if decimals is None else 10.0**-decimals
            rounded = np.maximum(rounded, step)
        return np.asarray(rounded)
