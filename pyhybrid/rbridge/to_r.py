"""Python values as R objects.

======================== ==========================================================
Python                   R
======================== ==========================================================
None                     NULL
bool, int, float, str    vector of length 1 (an int beyond 32 bits: integer64)
ndarray                  array of the same shape, 1-d ones included; column-major
list, tuple              list
dict                     named list
Series                   vector or factor
DataFrame                data.frame
======================== ==========================================================

Missing values (None, NA, NaT, a missing category) become NA; NaN stays NaN. A column remembers its
dtype, so that it comes back as it went.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.errors import InvalidInput

__all__ = ["DTYPE", "INDEX", "NA_INT", "NA_INT64", "NA_REAL_BITS", "to_r"]

NA_INT = -(2**31)
NA_INT64 = -(2**63)
NA_REAL_BITS = 0x7FF00000000007A2
DTYPE, INDEX = "pyhybrid_dtype", "pyhybrid_index"
_ANSWER = "drop or convert it before it goes to R"


def to_r(value: Any) -> Any:
    """Return `value` as an R object of rpy2's low-level interface; R must have been started.

    Raises
    ------
    InvalidInput
        For a value that R has no type for; of a table, names the column.
    """
    import rpy2.rinterface as ri

    if value is None:
        return ri.NULL
    if isinstance(value, pd.DataFrame):
        return _frame(value)
    if isinstance(value, pd.Series):
        return _column(value, f"series {value.name!r}")
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return _array(value)
    if isinstance(value, dict):
        return _named(list(value), [to_r(item) for item in value.values()])
    if isinstance(value, (list, tuple)):
        return ri.ListSexpVector([to_r(item) for item in value])
    if isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
        return _vector(np.asarray(value).reshape(1), "value")
    if value is pd.NA:
        return _vector(np.array([NA_INT], dtype=np.int32), "value", logical=True)
    raise InvalidInput(f"value must be of a type that R has: found {type(value).__name__}")


def _named(names: list[Any], items: list[Any]) -> Any:
    import rpy2.rinterface as ri

    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"names must be strings: found {names!r}")
    result = ri.ListSexpVector(items)
    result.do_slot_assign("names", ri.StrSexpVector(names))
    return result


def _array(values: npt.NDArray[Any]) -> Any:
    import rpy2.rinterface as ri

    result = _vector(values.ravel(order="F"), "array")
    result.do_slot_assign("dim", ri.IntSexpVector(list(values.shape)))
    return result


def _vector(values: npt.NDArray[Any], what: str, *, logical: bool = False) -> Any:
    """An R vector of a 1-d array without missing values other than NaN and None."""
    import rpy2.rinterface as ri

    kind = values.dtype.kind
    if logical or kind == "b":
        return ri.BoolSexpVector.from_memoryview(values.astype(np.int32).data)
    if kind in "iu":
        return _integers(values, np.zeros(values.size, dtype=bool), what)
    if kind == "f" and values.dtype.itemsize <= 8:
        return _doubles(np.asarray(values, dtype=np.float64))
    if kind in "UO" and all(isinstance(item, str) or item is None for item in values.tolist()):
        return _strings(values.tolist())
    raise InvalidInput(f"{what} must be of a type that R has: found {values.dtype}; {_ANSWER}")


def _doubles(values: npt.NDArray[np.float64]) -> Any:
    import rpy2.rinterface as ri

    return ri.FloatSexpVector.from_memoryview(np.ascontiguousarray(values).data)


def _classed(value: Any, *classes: str) -> Any:
    """Through R itself: a class that is only an attribute does not dispatch."""
    import rpy2.rinterface as ri

    return ri.baseenv["oldClass<-"](value, ri.StrSexpVector(classes))


def _strings(values: list[Any]) -> Any:
    import rpy2.rinterface as ri

    return ri.StrSexpVector([v if isinstance(v, str) else ri.NA_Character for v in values])


def _integers(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], what: str) -> Any:
    """R integers where 32 bits hold them, else integer64 (bit64): the bits of a double vector."""
    import rpy2.rinterface as ri

    known = values[~missing]
    low, high = (int(known.min()), int(known.max())) if known.size else (0, 0)
    if low > -(2**31) and high < 2**31:
        narrow = np.where(missing, NA_INT, values).astype(np.int32)
        return ri.IntSexpVector.from_memoryview(narrow.data)
    if low <= NA_INT64 or high >= 2**63:
        raise InvalidInput(f"{what} must fit a signed 64-bit integer, as R has no wider; {_ANSWER}")
    wide = np.where(missing, np.int64(NA_INT64), values.astype(np.int64))
    return _classed(_doubles(wide.view(np.float64)), "integer64")


def _frame(table: pd.DataFrame) -> Any:
    import rpy2.rinterface as ri

    names = table.columns.tolist()
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong or len(set(names)) < len(names):
        raise InvalidInput(f"column names must be strings, each once: found {names!r}")
    columns = [_column(table[name], f"column {name!r}") for name in names]
    result = _named(names, columns)
    # The compact form of automatic row names.
    result.do_slot_assign("row.names", ri.IntSexpVector([ri.NA_Integer, -len(table)]))
    index = table.index
    if isinstance(index, pd.MultiIndex):
        raise InvalidInput(f"the index must have one level: found {index.nlevels}; reset_index()")
    if not (isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(table)))):
        labels = _column(index.to_series(), "the index")
        result.do_slot_assign(INDEX, _named(["labels", "name"], [labels, to_r(index.name)]))
    return _classed(result, "data.frame")


def _column(column: Any, what: str) -> Any:
    result = _column_values(column, what)
    result.do_slot_assign(DTYPE, _strings([str(column.dtype)]))
    return result


def _column_values(column: Any, what: str) -> Any:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _factor(column, what)
    if isinstance(dtype, pd.DatetimeTZDtype) or (isinstance(dtype, np.dtype) and dtype.kind == "M"):
        return _instants(column, what)
    missing = column.isna().to_numpy()
    if pd.api.types.is_bool_dtype(dtype):
        codes = np.where(missing, NA_INT, column.fillna(False).to_numpy(dtype=np.int32))
        return _vector(codes, what, logical=True)
    if pd.api.types.is_integer_dtype(dtype):
        plain = column.to_numpy() if isinstance(dtype, np.dtype) else column.array.fillna(0)
        return _integers(np.asarray(plain, dtype=_plain_dtype(dtype)), missing, what)
    if pd.api.types.is_float_dtype(dtype):
        return _vector(_floats(column), what)
    if isinstance(dtype, pd.StringDtype):
        return _strings([None if gone else v for v, gone in zip(column, missing, strict=True)])
    if dtype == np.dtype(object):
        return _objects(column, missing, what)
    raise InvalidInput(f"{what} must be of a type that R has: found {dtype}; {_ANSWER}")


def _plain_dtype(dtype: Any) -> Any:
    return np.uint64 if str(dtype).lower() == "uint64" else np.int64


def _floats(column: Any) -> npt.NDArray[np.float64]:
    """Doubles; NA of a nullable column is R's NA, a NaN stays NaN."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    values: Any = column.array
    bits = np.array(values._data, dtype=np.float64).view(np.uint64)
    bits[np.asarray(values._mask)] = NA_REAL_BITS
    return bits.view(np.float64)


def _objects(column: Any, missing: npt.NDArray[np.bool_], what: str) -> Any:
    known = [value for value, gone in zip(column, missing, strict=True) if not gone]
    items = [None if gone else value for value, gone in zip(column, missing, strict=True)]
    if all(isinstance(value, str) for value in known):
        return _strings(items)
    if all(type(value) is bool for value in known):
        codes = np.array([NA_INT if v is None else int(v) for v in items], dtype=np.int32)
        return _vector(codes, what, logical=True)
    if all(type(value) is datetime.date for value in known):
        return _dates(items)
    found = ", ".join(sorted({type(value).__name__ for value in known}))
    raise InvalidInput(f"{what} must hold one type that R has: found {found}; {_ANSWER}")


def _dates(items: list[datetime.date | None]) -> Any:
    epoch = datetime.date(1970, 1, 1).toordinal()
    days = np.array([0 if d is None else d.toordinal() - epoch for d in items], dtype=np.float64)
    bits = days.view(np.uint64)
    bits[[d is None for d in items]] = NA_REAL_BITS
    return _classed(_doubles(bits.view(np.float64)), "Date")


def _instants(column: Any, what: str) -> Any:
    """POSIXct: seconds since 1970 in a double, exact to the microsecond for two centuries."""
    import rpy2.rinterface as ri

    zone = getattr(column.dtype, "tz", None)
    utc = column.dt.tz_convert("UTC").dt.tz_localize(None) if zone is not None else column
    nanoseconds = utc.astype("datetime64[ns]").to_numpy().view(np.int64)
    missing = column.isna().to_numpy()
    if (nanoseconds[~missing] % 1000).any():
        raise InvalidInput(f"{what} must hold whole microseconds, as R keeps no finer; {_ANSWER}")
    bits = (nanoseconds // 1000 / 1e6).view(np.uint64)
    bits[missing] = NA_REAL_BITS
    result = _doubles(bits.view(np.float64))
    result.do_slot_assign("tzone", ri.StrSexpVector([str(zone) if zone is not None else "UTC"]))
    return _classed(result, "POSIXct", "POSIXt")


def _factor(column: Any, what: str) -> Any:
    import rpy2.rinterface as ri

    categories = column.cat.categories
    levels = [str(level) for level in categories]
    if len(set(levels)) < len(levels):
        raise InvalidInput(f"{what} must have categories that differ as text; {_ANSWER}")
    codes = column.cat.codes.to_numpy().astype(np.int32)
    result = ri.IntSexpVector.from_memoryview(
        np.where(codes < 0, NA_INT, codes + 1).astype(np.int32).data
    )
    result.do_slot_assign("levels", ri.StrSexpVector(levels))
    if not all(isinstance(level, str) for level in categories):
        typed = _column(categories.to_series().reset_index(drop=True), f"the categories of {what}")
        result.do_slot_assign("pyhybrid_categories", typed)
    return _classed(result, *(["ordered"] if column.cat.ordered else []), "factor")
