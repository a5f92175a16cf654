"""Records that share outcome, predictors and weight count as one row with a frequency.

The target density is unchanged, and for counts 10^6 records become a few hundred rows. A censored
term is clipped per record, so a row contributes its frequency times the clipped term.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.rows import Rows, distinct_rows

__all__ = ["Rows", "distinct_rows", "weighted_rows"]


def weighted_rows(rows: Rows, alpha: FloatArray, unit: npt.NDArray[np.intp] | None = None) -> Rows:
    """Rows split further by record weight, and by unit if terms are summed by unit.

    The rows themselves if weights and units agree within each.
    """
    for own in (alpha, unit):
        if own is not None and not np.array_equal(own[rows.first][rows.row_of], own):
            rows = distinct_rows(np.column_stack([rows.row_of, own]))
    return rows
