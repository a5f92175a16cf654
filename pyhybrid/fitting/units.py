"""Units of privacy from a column of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pyhybrid.errors import InvalidInput
from pyhybrid.models.design import row_label
from pyhybrid.privacy.units import Units

__all__ = ["read_units"]


def read_units(table: pd.DataFrame, column: str, synthesized: Sequence[str]) -> Units:
    """The units that `column` names.

    Raises
    ------
    InvalidInput
        If the column is not in the table, is synthesized, or has missing values.
    """
    if not isinstance(column, str) or column not in table.columns:
        shown = ", ".join(str(name) for name in table.columns[:20])
        raise InvalidInput(f"unit must be a column of the data: {column!r} is not among {shown}")
    if column in synthesized:
        raise InvalidInput(
            f"unit must be a column that is not synthesized: {column!r} is; give the column that "
            "says which rows belong together"
        )
    codes = pd.factorize(table[column])[0]
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        raise InvalidInput(
            f"unit {column!r} must not be missing: {row_label(table.index, int(missing[0]))} is; "
            "whose row it is must be known"
        )
    return Units(column=column, of=codes.astype(np.intp))
