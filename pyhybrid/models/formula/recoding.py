"""Whether terms are functions of single records: read from their text, confirmed on the table.

A term that looks at all records (a centering, a spline with knots from the data) moves for every
record when one leaves. So each term that claims to look at its own record is coded again, with
nothing kept from the data, on tables without some records and with one record changed: the other
records must keep their values. The design as a whole is coded again with what was kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.coded import Coding, code_table
from pyhybrid.models.formula.coding import Coded, Numbers, code_factor, takes_all_records
from pyhybrid.models.formula.values import kind_of, numbers_of
from pyhybrid.models.formula.whitelist import Factor

__all__ = ["all_records_terms"]

_ENOUGH = 5000  # records that are coded again
_DIGITS = 1e-10


def all_records_terms(coding: Coding, df: pd.DataFrame, X: FloatArray) -> tuple[str, ...]:
    """Terms whose coding depends on more than the record's own values, sorted.

    Parameters
    ----------
    coding : Coding
    df : DataFrame
        The table that it was made from.
    X : ndarray, shape (n, K)
        The design matrix.
    """
    own = df[list(coding.formula.predictors)]
    others = list(_other_tables(own))
    said = {f.text for f in coding.formula.factors if takes_all_records(f)}
    found = {
        f.text
        for f in coding.formula.factors
        if f.text not in said and not _keeps_values(f, own, others)
    }
    if not found and not all(_keeps_rows(coding, X, table, rows) for table, rows in others[:1]):
        found = {f.text for f in coding.formula.factors}
    return tuple(sorted(said | found))


def _other_tables(df: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, npt.NDArray[np.intp]]]:
    """Tables with some records as they were, and the places that those have in `df`.

    Without the first record; without those at either end of a column; every second one; and with
    one record changed, beyond the largest number of each column. Of large tables a part will do:
    that leaves the others out.
    """
    n = len(df)
    rows = np.arange(n)
    ends = {0}
    changed = df.iloc[[n // 2]].copy()
    for name in df.columns:
        if kind_of(df[name], as_levels=True) == "numbers":
            values = numbers_of(df[name])
            ends |= {int(values.argmin()), int(values.argmax())}
            with np.errstate(over="ignore"):
                changed[name] = [float(values.max() + np.ptp(values) + 1)]
        else:
            changed[name] = df[name].iloc[[0]].array
    for keep in (rows[1:], np.setdiff1d(rows, list(ends)), rows[::2]):
        yield df.iloc[keep[:_ENOUGH]], keep[:_ENOUGH]
    others = np.delete(rows, n // 2)[:_ENOUGH]
    yield pd.concat([df.iloc[others], changed]), others


def _keeps_values(
    factor: Factor,
    df: pd.DataFrame,
    others: list[tuple[pd.DataFrame, npt.NDArray[np.intp]]],
) -> bool:
    """Whether records keep the factor's values in other tables, coded anew."""
    values = code_factor(factor, df, {})
    try:
        return all(
            _same(values, code_factor(factor, table, {}), rows)
            for table, rows in others
            if len(rows)
        )
    except InvalidInput:  # what the factor takes depends on which records there are
        return False


def _same(values: Coded, again: Coded, rows: npt.NDArray[np.intp]) -> bool:
    """Whether the first rows of `again` have the values that `rows` of `values` have."""
    if isinstance(values, Numbers):
        assert isinstance(again, Numbers)
        return _alike(values.values[rows], again.values[: rows.size])
    assert not isinstance(again, Numbers)
    levels = np.array([*values.levels, None], dtype=object)[values.codes[rows]]
    return bool(
        (levels == np.array([*again.levels, None], dtype=object)[again.codes[: rows.size]]).all()
    )


def _alike(values: FloatArray, again: FloatArray) -> bool:
    """Equal but for the last digits."""
    size = np.max(np.abs(values), initial=0.0, where=np.isfinite(values))
    return bool(np.allclose(values, again, rtol=0, atol=_DIGITS * size, equal_nan=True))


def _keeps_rows(
    coding: Coding, X: FloatArray, table: pd.DataFrame, rows: npt.NDArray[np.intp]
) -> bool:
    """Whether records keep their rows of the design in a table coded with what was kept."""
    try:
        again = code_table(coding.formula, table, coding)[0].X
    except InvalidInput:
        return False
    return _alike(again, X[rows])
