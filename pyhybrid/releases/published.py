"""What of a table is written beside its values: nothing that only other records would explain.

Category levels that no row has, notes (`attrs`), fill values of sparse columns and names of the
column axis are no values of the rows: they would tell of records that are not in the table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from pyhybrid.models.formula.values import with_columns

__all__ = ["published"]


def published(table: pd.DataFrame, declared: Collection[str] = ()) -> pd.DataFrame:
    """`table` as it may be written.

    Parameters
    ----------
    table : DataFrame
    declared : collection of str
        Synthesized columns: all their levels are kept, as they were declared and are not those of
        certain records.
    """
    changed: dict[Any, Any] = {}
    for name in table.columns:
        column = table[name]
        if str(name) not in declared and _says_more(column.dtype):
            changed[name] = _in_use(column)
    whole = with_columns(table, changed)
    whole.attrs = {}
    whole.columns.names = [None] * whole.columns.nlevels
    index = whole.index
    if isinstance(index, pd.MultiIndex):
        whole.index = index.remove_unused_levels()
        for place, level in enumerate(whole.index.levels):
            if _says_more(level.dtype):
                whole.index = whole.index.set_levels(_in_use(level), level=place)
    elif _says_more(index.dtype):
        whole.index = _in_use(index)
    return whole


def _says_more(dtype: Any) -> bool:
    """True for dtypes that hold more than the values: levels, dictionaries, a fill value."""
    dictionary = isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("dictionary")
    return dictionary or isinstance(dtype, (pd.CategoricalDtype, pd.SparseDtype))


def _in_use(values: Any) -> Any:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        if isinstance(values, pd.Series):
            return values.cat.remove_unused_categories()
        return values.remove_unused_categories()
    if isinstance(dtype, pd.SparseDtype):
        return values.sparse.to_dense()
    kind = dtype.pyarrow_dtype.value_type
    return values.astype(pd.ArrowDtype(kind))
