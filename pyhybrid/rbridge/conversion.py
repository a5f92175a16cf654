"""Python values as R objects, and back.

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

On the way back a vector of length 1 without a dimension is a number, a string or a truth value, as
R has no scalars of its own. Of a vector, NA is NA in a pandas array for logicals and integers, None
for strings, and for doubles a NaN that R reads as NA again.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.errors import InvalidInput, PyhybridError

_NA_INT = -(2**31)
_NA_INT64 = -(2**63)
_NA_REAL_BITS = 0x7FF00000000007A2
_DTYPE, _INDEX, _CATEGORIES = "pyhybrid_dtype", "pyhybrid_index", "pyhybrid_categories"
_ANSWER = "drop or convert it before it goes to R"


class RError(PyhybridError, RuntimeError):
    """An error inside R, with R's own message."""


def _ri() -> Any:
    """rpy2's low-level interface."""
    import rpy2.rinterface

    return rpy2.rinterface


# --- Python to R ---------------------------------------------------------------------------------


def to_r(value: Any) -> Any:
    """Return `value` as an R object of rpy2's low-level interface; R must have been started.

    Raises
    ------
    InvalidInput
        For a value that R has no type for; of a table, names the column.
    """
    if value is None:
        return _ri().NULL
    if isinstance(value, pd.DataFrame):
        return _frame(value)
    if isinstance(value, pd.Series):
        return _column(value, f"series {value.name!r}")
    if isinstance(value, np.ndarray) and value.ndim > 0:
        result = _vector(value.ravel(order="F"), "array")
        result.do_slot_assign("dim", _ri().IntSexpVector(list(value.shape)))
        return result
    if isinstance(value, dict):
        return _named(list(value), [to_r(item) for item in value.values()])
    if isinstance(value, (list, tuple)):
        return _ri().ListSexpVector([to_r(item) for item in value])
    if isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
        return _vector(np.asarray(value).reshape(1), "value")
    if value is pd.NA:
        return _vector(np.array([_NA_INT], dtype=np.int32), "value", logical=True)
    raise InvalidInput(f"value must be of a type that R has: found {type(value).__name__}")


def _named(names: list[Any], items: list[Any]) -> Any:
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"names must be strings: found {names!r}")
    result = _ri().ListSexpVector(items)
    result.do_slot_assign("names", _ri().StrSexpVector(names))
    return result


def _vector(values: npt.NDArray[Any], what: str, *, logical: bool = False) -> Any:
    """An R vector of a 1-d array without missing values other than NaN and None."""
    kind = values.dtype.kind
    if logical or kind == "b":
        return _ri().BoolSexpVector.from_memoryview(values.astype(np.int32).data)
    if kind in "iu":
        return _integers(values, np.zeros(values.size, dtype=bool), what)
    if kind == "f" and values.dtype.itemsize <= 8:
        return _doubles(np.asarray(values, dtype=np.float64))
    if kind in "UO" and all(isinstance(item, str) or item is None for item in values.tolist()):
        return _strings(values.tolist())
    raise InvalidInput(f"{what} must be of a type that R has: found {values.dtype}; {_ANSWER}")


def _doubles(values: npt.NDArray[np.float64]) -> Any:
    return _ri().FloatSexpVector.from_memoryview(np.ascontiguousarray(values).data)


def _classed(value: Any, *classes: str) -> Any:
    """Through R itself: a class that is only an attribute does not dispatch."""
    return _ri().baseenv["oldClass<-"](value, _ri().StrSexpVector(classes))


def _strings(values: list[Any]) -> Any:
    return _ri().StrSexpVector([v if isinstance(v, str) else _ri().NA_Character for v in values])


def _integers(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], what: str) -> Any:
    """R integers where 32 bits hold them, else integer64 (bit64): the bits of a double vector."""
    known = values[~missing]
    low, high = (int(known.min()), int(known.max())) if known.size else (0, 0)
    if low > -(2**31) and high < 2**31:
        narrow = np.where(missing, _NA_INT, values).astype(np.int32)
        return _ri().IntSexpVector.from_memoryview(narrow.data)
    if low <= _NA_INT64 or high >= 2**63:
        raise InvalidInput(f"{what} must fit a signed 64-bit integer, as R has no wider; {_ANSWER}")
    wide = np.where(missing, np.int64(_NA_INT64), values.astype(np.int64))
    return _classed(_doubles(wide.view(np.float64)), "integer64")


def _frame(table: pd.DataFrame) -> Any:
    names = table.columns.tolist()
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong or len(set(names)) < len(names):
        raise InvalidInput(f"column names must be strings, each once: found {names!r}")
    columns = [_column(table[name], f"column {name!r}") for name in names]
    result = _named(names, columns)
    # The compact form of automatic row names.
    result.do_slot_assign("row.names", _ri().IntSexpVector([_ri().NA_Integer, -len(table)]))
    index = table.index
    if isinstance(index, pd.MultiIndex):
        raise InvalidInput(f"the index must have one level: found {index.nlevels}; reset_index()")
    if not (isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(table)))):
        labels = _column(index.to_series(), "the index")
        result.do_slot_assign(_INDEX, _named(["labels", "name"], [labels, to_r(index.name)]))
    return _classed(result, "data.frame")


def _column(column: Any, what: str) -> Any:
    result = _column_values(column, what)
    result.do_slot_assign(_DTYPE, _strings([str(column.dtype)]))
    return result


def _column_values(column: Any, what: str) -> Any:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _factor(column, what)
    if isinstance(dtype, pd.DatetimeTZDtype) or (isinstance(dtype, np.dtype) and dtype.kind == "M"):
        return _instants(column, what)
    missing = column.isna().to_numpy()
    if pd.api.types.is_bool_dtype(dtype):
        codes = np.where(missing, _NA_INT, column.fillna(False).to_numpy(dtype=np.int32))
        return _vector(codes, what, logical=True)
    if pd.api.types.is_integer_dtype(dtype):
        whole = np.uint64 if str(dtype).lower() == "uint64" else np.int64
        plain = column.to_numpy() if isinstance(dtype, np.dtype) else column.array.fillna(0)
        return _integers(np.asarray(plain, dtype=whole), missing, what)
    if pd.api.types.is_float_dtype(dtype):
        return _vector(_floats(column), what)
    if isinstance(dtype, pd.StringDtype):
        return _strings([None if gone else v for v, gone in zip(column, missing, strict=True)])
    if dtype == np.dtype(object):
        return _objects(column, missing, what)
    raise InvalidInput(f"{what} must be of a type that R has: found {dtype}; {_ANSWER}")


def _floats(column: Any) -> npt.NDArray[np.float64]:
    """Doubles; NA of a nullable column is R's NA, a NaN stays NaN."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    values: Any = column.array
    bits = np.array(values._data, dtype=np.float64).view(np.uint64)
    bits[np.asarray(values._mask)] = _NA_REAL_BITS
    return bits.view(np.float64)


def _objects(column: Any, missing: npt.NDArray[np.bool_], what: str) -> Any:
    known = [value for value, gone in zip(column, missing, strict=True) if not gone]
    items = [None if gone else value for value, gone in zip(column, missing, strict=True)]
    if all(isinstance(value, str) for value in known):
        return _strings(items)
    if all(type(value) is bool for value in known):
        codes = np.array([_NA_INT if v is None else int(v) for v in items], dtype=np.int32)
        return _vector(codes, what, logical=True)
    if all(type(value) is datetime.date for value in known):
        epoch = datetime.date(1970, 1, 1).toordinal()
        days = np.array(
            [0 if d is None else d.toordinal() - epoch for d in items], dtype=np.float64
        )
        bits = days.view(np.uint64)
        bits[[d is None for d in items]] = _NA_REAL_BITS
        return _classed(_doubles(bits.view(np.float64)), "Date")
    types = ", ".join(sorted({type(value).__name__ for value in known}))
    raise InvalidInput(f"{what} must hold one type that R has: found {types}; {_ANSWER}")


def _instants(column: Any, what: str) -> Any:
    """POSIXct: seconds since 1970 in a double, exact to the microsecond for two centuries."""
    zone = getattr(column.dtype, "tz", None)
    utc = column.dt.tz_convert("UTC").dt.tz_localize(None) if zone is not None else column
    nanoseconds = utc.astype("datetime64[ns]").to_numpy().view(np.int64)
    missing = column.isna().to_numpy()
    if (nanoseconds[~missing] % 1000).any():
        raise InvalidInput(f"{what} must hold whole microseconds, as R keeps no finer; {_ANSWER}")
    bits = (nanoseconds // 1000 / 1e6).view(np.uint64)
    bits[missing] = _NA_REAL_BITS
    result = _doubles(bits.view(np.float64))
    result.do_slot_assign("tzone", _ri().StrSexpVector([str(zone) if zone is not None else "UTC"]))
    return _classed(result, "POSIXct", "POSIXt")


def _factor(column: Any, what: str) -> Any:
    categories = column.cat.categories
    levels = [str(level) for level in categories]
    if len(set(levels)) < len(levels):
        raise InvalidInput(f"{what} must have categories that differ as text; {_ANSWER}")
    codes = column.cat.codes.to_numpy().astype(np.int32)
    result = _ri().IntSexpVector.from_memoryview(
        np.where(codes < 0, _NA_INT, codes + 1).astype(np.int32).data
    )
    result.do_slot_assign("levels", _ri().StrSexpVector(levels))
    if not all(isinstance(level, str) for level in categories):
        typed = _column(categories.to_series().reset_index(drop=True), f"the categories of {what}")
        result.do_slot_assign(_CATEGORIES, typed)
    return _classed(result, *(["ordered"] if column.cat.ordered else []), "factor")


# --- R to Python ---------------------------------------------------------------------------------


def from_r(value: Any) -> Any:
    """Return an R object as a Python value.

    Raises
    ------
    RError
        For an object that is no data: a function, an environment, an S4 object.
    """
    if value is _ri().NULL or isinstance(value, type(_ri().NULL)):
        return None
    if not isinstance(value, _ri().SexpVector) or isinstance(value, _ri().LangSexpVector):
        raise RError(f"R must return data: found an object of class {', '.join(value.rclass)}")
    if isinstance(value, _ri().ListSexpVector):
        names = _texts(_slot(value, "names"))
        if "data.frame" in _texts(_slot(value, "class")):
            return _table(value, names)
        items = [from_r(item) for item in value]
        if not names:
            return items
        return {
            name or str(place): item
            for place, (name, item) in enumerate(zip(names, items, strict=True), 1)
        }
    if "factor" in _texts(_slot(value, "class")):
        return _categorical(value)
    if _slot(value, _DTYPE) is not None:
        return _series(value)
    flat = _flat(value)
    dim = _slot(value, "dim")
    if dim is not None:
        shape = tuple(int(size) for size in dim)
        return np.asarray(flat).reshape(shape, order="F")
    if len(flat) != 1:
        return flat
    return flat[0].item() if isinstance(flat[0], np.generic) else flat[0]


def _slot(value: Any, name: str) -> Any:
    try:
        return value.do_slot(name)
    except LookupError:
        return None


def _texts(value: Any) -> list[Any]:
    if value is None:
        return []
    return [None if item is _ri().NA_Character else str(item) for item in value]


def _flat(value: Any) -> Any:
    """The elements of an R vector as a 1-d array."""
    if isinstance(value, _ri().StrSexpVector):
        return np.array(_texts(value), dtype=object)
    if isinstance(value, _ri().BoolSexpVector):
        codes = np.array(value.memoryview(), dtype=np.int64)
        gone = codes == _NA_INT
        truth = codes.astype(bool)
        return pd.arrays.BooleanArray(truth, gone) if gone.any() else truth
    if isinstance(value, _ri().IntSexpVector):
        codes = np.array(value.memoryview(), dtype=np.int64)
        return _masked(codes, codes == _NA_INT)
    if isinstance(value, _ri().FloatSexpVector):
        numbers = np.array(value.memoryview(), dtype=np.float64)
        if "integer64" in _texts(_slot(value, "class")):
            return _masked(numbers.view(np.int64), numbers.view(np.int64) == _NA_INT64)
        return numbers
    raise RError(f"R must return numbers, strings or lists: found {', '.join(value.rclass)}")


def _masked(values: npt.NDArray[np.int64], gone: npt.NDArray[np.bool_]) -> Any:
    return pd.arrays.IntegerArray(values, gone) if gone.any() else values


def _table(value: Any, names: list[str]) -> pd.DataFrame:
    columns = {name: _series(item) for name, item in zip(names, value, strict=True)}
    rows = len(next(iter(columns.values()))) if columns else 0
    table: pd.DataFrame = pd.DataFrame(columns, index=pd.RangeIndex(rows), columns=names)
    labels = _slot(value, _INDEX)
    if labels is not None and len(labels[0]) == rows:
        table.index = pd.Index(_series(labels[0]), name=from_r(labels[1]))
    elif (row_names := _slot(value, "row.names")) is not None and row_names.rclass[
        0
    ] == "character":
        table.index = pd.Index(_texts(row_names))
    return table


def _series(column: Any) -> Any:
    """A column with the dtype it left with, or the one that fits what R has."""
    classes = _texts(_slot(column, "class"))
    dtype = next(iter(_texts(_slot(column, _DTYPE))), None)
    if "factor" in classes:
        return pd.Series(_categorical(column))
    if "POSIXct" in classes:
        return _times(column, dtype)
    if "Date" in classes:
        days = np.asarray(_flat(column), dtype=np.float64)
        known: Any = pd.Series(
            np.where(np.isnan(days), 0, days).astype("datetime64[D]").astype(object)
        )
        return known.astype(object).where(~np.isnan(days), None)
    flat = _flat(column)
    if isinstance(flat, np.ndarray) and flat.dtype == np.float64:
        return _float_series(flat, dtype)
    strings = flat.dtype == object
    series: Any = pd.Series(flat, dtype=object if strings else None)
    return series.astype(dtype or "str") if strings or dtype else series


def _float_series(values: npt.NDArray[np.float64], dtype: str | None) -> Any:
    # R's NA is the NaN with 1954 in its lower word.
    gone = np.asarray(np.isnan(values) & (values.view(np.uint64) & 0xFFFFFFFF == 1954))
    nullable = dtype in ("Float64", "Float32") or (dtype is None and gone.any())
    if nullable:
        series: Any = pd.Series(pd.arrays.FloatingArray(np.where(gone, 0.0, values), gone))
    else:
        series = pd.Series(values)
    return series if dtype is None else series.astype(dtype)


def _times(column: Any, dtype: str | None) -> Any:
    seconds = _flat(column)
    gone = np.isnan(seconds)
    micro = np.where(gone, np.iinfo(np.int64).min, np.round(np.where(gone, 0, seconds) * 1e6))
    series: Any = pd.Series(micro.astype(np.int64).view("datetime64[us]"))
    if dtype is not None and "," not in dtype:
        return series.astype(dtype)  # went to R without a time zone
    zone = next(iter(_texts(_slot(column, "tzone"))), "") or "UTC"
    series = series.dt.tz_localize("UTC").dt.tz_convert(zone)
    return series if dtype is None else series.astype(dtype)


def _categorical(value: Any) -> pd.Categorical:
    codes = np.array(value.memoryview(), dtype=np.int64)
    typed = _slot(value, _CATEGORIES)
    levels = _texts(_slot(value, "levels"))
    categories = pd.Index(levels) if typed is None else pd.Index(_series(typed))
    ordered = "ordered" in _texts(_slot(value, "class"))
    return pd.Categorical.from_codes(
        np.where(codes == _NA_INT, -1, codes - 1).tolist(), categories=categories, ordered=ordered
    )
