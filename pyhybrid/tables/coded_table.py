"""The columns of a table in the form that models take, and synthetic ones in the data's again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pyhybrid.models.columns.kinds import Kind, Leveled
from pyhybrid.models.columns.support import in_dtype_of

__all__ = ["in_form_of_data", "working_table"]


def working_table(
    df: pd.DataFrame, kinds: Mapping[str, Kind], columns: Sequence[str]
) -> pd.DataFrame:
    """`columns` of `df`: those of levels as categories, declared, so that coding is public."""
    made: pd.DataFrame = pd.DataFrame(
        {name: _as_levels(df[name], kinds[name]) if name in kinds else df[name] for name in columns}
    )
    return made


def _as_levels(column: pd.Series, kind: Kind) -> pd.Series:
    if not isinstance(kind, Leveled):
        return column
    levels = pd.Index(list(kind.levels), dtype=object)
    places = levels.get_indexer(column.astype(object))
    own = pd.Categorical.from_codes(np.asarray(places).tolist(), categories=levels)
    made: pd.Series = pd.Series(own, index=column.index, name=column.name)
    return made


def in_form_of_data(made: pd.Series, like: pd.Series) -> pd.Series:
    """A synthetic working column with the dtype, index and name of the data's.

    Categories that lack a declared level are those that some record has: the levels declared take
    their place, or a drawn value would be missing just where no record has it.
    """
    if made.dtype == like.dtype:
        return made
    if isinstance(like.dtype, pd.CategoricalDtype):
        dtype: pd.CategoricalDtype = like.dtype
        if isinstance(made.dtype, pd.CategoricalDtype):
            levels = made.dtype.categories
            if not levels.isin(dtype.categories).all():
                dtype = pd.CategoricalDtype(levels, ordered=dtype.ordered)
        own = pd.Categorical(made.astype(object), dtype=dtype)
        column: pd.Series = pd.Series(own, index=like.index, name=like.name)
        return column
    plain = made.astype(object)
    if pd.api.types.is_integer_dtype(like.dtype):
        return in_dtype_of(plain.to_numpy(dtype=np.float64), like)
    return plain.astype(like.dtype)
