"""Units of privacy from a column of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.design import row_label
from pyhybrid.privacy.log_lik import Units

__all__ = ["check_rows_per_unit", "read_units"]


def read_units(table: pd.DataFrame, column: str, synthesized: Sequence[str]) -> Units:
    """The units that `column` names.

    Raises
    ------
    InvalidInput
        If the column is not in the table, is synthesized, or has missing values.
    """
    if not isinstance(column, str) or column not in table.columns:
        shown = ", ".join(str(name) for name in table.columns[:20])
        raise InvalidInput(
            f"unit must be a column of the data: {column!r} is not among {shown}"
            f"{did_you_mean(column, table.columns)}"
        )
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


def check_rows_per_unit(
    table: pd.DataFrame, column: str | None, rows: int | None, synthesized: Sequence[str]
) -> None:
    """Raise InvalidInput if a unit has more rows than the noise is made for; `rows` is public."""
    if column is None or rows is None:
        return
    units = read_units(table, column, synthesized)
    beyond = pd.Series(units.of).groupby(units.of).cumcount() >= rows
    if beyond.any():
        label = row_label(table.index, int(np.flatnonzero(beyond)[0]))
        raise InvalidInput(
            f"units must have at most rows_per_unit={rows} rows: {label} is one more of its "
            f"{column!r}; keep as many by a rule that looks at one unit alone"
        )
