"""R objects as Python values; the way back of `to_r`.

A vector of length 1 without a dimension is a number, a string or a truth value, as R has no
scalars of its own; a named list is a dict. Of a vector, NA is NA in a pandas array for logicals
and integers, None for strings, and for doubles a NaN that R reads as NA again. A data.frame is a
DataFrame.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.rbridge.errors import RError
from pyhybrid.rbridge.to_r import DTYPE, INDEX, NA_INT, NA_INT64

__all__ = ["from_r"]


def from_r(value: Any) -> Any:
    """Return an R object as a Python value.

    Raises
    ------
    RError
        For an object that is no data: a function, an environment, an S4 object.
    """
    import rpy2.rinterface as ri

    if value is ri.NULL or isinstance(value, type(ri.NULL)):
        return None
    if not isinstance(value, ri.SexpVector) or isinstance(value, ri.LangSexpVector):
        raise RError(f"R must return data: found an object of class {', '.join(value.rclass)}")
    if isinstance(value, ri.ListSexpVector):
        return _list(value)
    if "factor" in _strings(_slot(value, "class")):
        return _factor(value)
    if _slot(value, DTYPE) is not None:
        return _series(value)
    return _vector(value)


def _slot(value: Any, name: str) -> Any:
    try:
        return value.do_slot(name)
    except LookupError:
        return None


def _strings(value: Any) -> list[Any]:
    import rpy2.rinterface as ri

    if value is None:
        return []
    return [None if item is ri.NA_Character else str(item) for item in value]


def _list(value: Any) -> Any:
    names = _strings(_slot(value, "names"))
    if "data.frame" in _strings(_slot(value, "class")):
        return _frame(value, names)
    items = [from_r(item) for item in value]
    if not names:
        return items
    return {
        name or str(place): item
        for place, (name, item) in enumerate(zip(names, items, strict=True), 1)
    }


def _vector(value: Any) -> Any:
    flat = _flat(value)
    dim = _slot(value, "dim")
    if dim is not None:
        shape = tuple(int(size) for size in dim)
        return np.asarray(flat).reshape(shape, order="F")
    if len(flat) != 1:
        return flat
    return flat[0].item() if isinstance(flat[0], np.generic) else flat[0]


def _flat(value: Any) -> Any:
    """The elements of an R vector as a 1-d array."""
    import rpy2.rinterface as ri

    if isinstance(value, ri.StrSexpVector):
        return np.array(_strings(value), dtype=object)
    if isinstance(value, ri.BoolSexpVector):
        codes = np.array(value.memoryview(), dtype=np.int64)
        gone = codes == NA_INT
        truth = codes.astype(bool)
        return pd.arrays.BooleanArray(truth, gone) if gone.any() else truth
    if isinstance(value, ri.IntSexpVector):
        codes = np.array(value.memoryview(), dtype=np.int64)
        return _masked(codes, codes == NA_INT)
    if isinstance(value, ri.FloatSexpVector):
        numbers = np.array(value.memoryview(), dtype=np.float64)
        if "integer64" in _strings(_slot(value, "class")):
            return _masked(numbers.view(np.int64), numbers.view(np.int64) == NA_INT64)
        return numbers
    raise RError(f"R must return numbers, strings or lists: found {', '.join(value.rclass)}")


def _masked(values: npt.NDArray[np.int64], gone: npt.NDArray[np.bool_]) -> Any:
    return pd.arrays.IntegerArray(values, gone) if gone.any() else values


def _is_na_real(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """R's NA is the NaN with 1954 in its lower word."""
    return np.asarray(np.isnan(values) & (values.view(np.uint64) & 0xFFFFFFFF == 1954))


def _frame(value: Any, names: list[str]) -> pd.DataFrame:
    columns = {name: _series(item) for name, item in zip(names, value, strict=True)}
    rows = len(next(iter(columns.values()))) if columns else 0
    table: pd.DataFrame = pd.DataFrame(columns, index=pd.RangeIndex(rows), columns=names)
    labels = _slot(value, INDEX)
    if labels is not None and len(labels[0]) == rows:
        table.index = pd.Index(_series(labels[0]), name=from_r(labels[1]))
    elif (row_names := _slot(value, "row.names")) is not None and row_names.rclass[
        0
    ] == "character":
        table.index = pd.Index(_strings(row_names))
    return table


def _series(column: Any) -> Any:
    """A column with the dtype it left with, or the one that fits what R has."""
    classes = _strings(_slot(column, "class"))
    dtype = next(iter(_strings(_slot(column, DTYPE))), None)
    if "factor" in classes:
        return pd.Series(_factor(column))
    if "POSIXct" in classes:
        return _instants(column, dtype)
    if "Date" in classes:
        return _dates(column)
    flat = _flat(column)
    if isinstance(flat, np.ndarray) and flat.dtype == np.float64:
        return _float_series(flat, dtype)
    strings = flat.dtype == object
    series: Any = pd.Series(flat, dtype=object if strings else None)
    return series.astype(dtype or "str") if strings or dtype else series


def _float_series(values: npt.NDArray[np.float64], dtype: str | None) -> Any:
    gone = _is_na_real(values)
    nullable = dtype in ("Float64", "Float32") or (dtype is None and gone.any())
    if nullable:
        series: Any = pd.Series(pd.arrays.FloatingArray(np.where(gone, 0.0, values), gone))
    else:
        series = pd.Series(values)
    return series if dtype is None else series.astype(dtype)


def _instants(column: Any, dtype: str | None) -> Any:
    seconds = _flat(column)
    gone = np.isnan(seconds)
    micro = np.where(gone, np.iinfo(np.int64).min, np.round(np.where(gone, 0, seconds) * 1e6))
    series: Any = pd.Series(micro.astype(np.int64).view("datetime64[us]"))
    if dtype is not None and "," not in dtype:
        return series.astype(dtype)  # went to R without a time zone
    zone = next(iter(_strings(_slot(column, "tzone"))), "") or "UTC"
    series = series.dt.tz_localize("UTC").dt.tz_convert(zone)
    return series if dtype is None else series.astype(dtype)


def _dates(column: Any) -> Any:
    days = np.asarray(_flat(column), dtype=np.float64)
    known: Any = pd.Series(np.where(np.isnan(days), 0, days).astype("datetime64[D]").astype(object))
    return known.astype(object).where(~np.isnan(days), None)


def _factor(value: Any) -> pd.Categorical:
    codes = np.array(value.memoryview(), dtype=np.int64)
    typed = _slot(value, "pyhybrid_categories")
    levels = _strings(_slot(value, "levels"))
    categories = pd.Index(levels) if typed is None else pd.Index(_series(typed))
    ordered = "ordered" in _strings(_slot(value, "class"))
    return pd.Categorical.from_codes(
        np.where(codes == NA_INT, -1, codes - 1).tolist(), categories=categories, ordered=ordered
    )
