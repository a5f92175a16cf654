"""What the count models share: the support of counts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pyhybrid.errors import InvalidInput, SamplingError
from pyhybrid.models.design import Design, row_label

__all__ = ["check_counts", "draw_counts_error"]

_LARGEST_COUNT = 2**31 - 1  # Stan's integers have 32 bits


def check_counts(design: Design, index: pd.Index) -> None:
    """Raise InvalidInput, naming the first row, unless outcomes are whole numbers >= 0."""
    rules = (
        ("a count >= 0: {} is negative", design.y < 0),
        ("a whole number: {} is not", design.y != np.floor(design.y)),
        (f"at most {_LARGEST_COUNT}: {{}} is larger", design.y > _LARGEST_COUNT),
    )
    for rule, broken in rules:
        if broken.any():
            label = row_label(index, int(np.flatnonzero(broken)[0]))
            raise InvalidInput(f"outcome {design.outcome!r} must be {rule.format(label)}")


def draw_counts_error(error: Exception) -> SamplingError:
    """The error of a posterior draw from which no count can be simulated."""
    return SamplingError(f"no replicate can be drawn, the mean is out of range: {error}")
