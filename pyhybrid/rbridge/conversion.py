"""Python values as R objects, and back.

======================== ==========================================================
Python                   R
======================== ==========================================================
None                     NULL
bool, int, float, str    vector of length 1
ndarray                  array of the same shape, 1-d ones included; column-major
list, tuple              list
dict                     named list
DataFrame                data.frame of numbers, logicals, texts and factors, one way
======================== ==========================================================

None, a missing category and a missing truth value become NA. Numbers of a table are doubles, and
NaN where they miss; whole numbers of arrays beyond 32 bits become doubles, up to 2^53. On the way
back a vector of length 1 without a dimension is a number, a string or a truth value, as R has no
scalars of its own; NA is None among strings and NaN among numbers and logicals, which are then
floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.errors import InvalidInput, PyhybridError

_NA_INT = -(2**31)
_LARGEST_WHOLE = 2**53  # doubles beyond it skip whole numbers


class RError(PyhybridError, RuntimeError):
    """An error inside R, with R's own message."""


def _ri() -> Any:
    """rpy2's low-level interface."""
    import rpy2.rinterface

    return rpy2.rinterface


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
    raise InvalidInput(f"value must be of a type that R has: found {type(value).__name__}")


def _named(names: list[Any], items: list[Any]) -> Any:
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"names must be strings: found {names!r}")
    result = _ri().ListSexpVector(items)
    result.do_slot_assign("names", _ri().StrSexpVector(names))
    return result


def _vector(values: npt.NDArray[Any], what: str) -> Any:
    """An R vector of a 1-d array without missing values other than NaN and None."""
    kind = values.dtype.kind
    if kind == "b":
        return _ri().BoolSexpVector.from_memoryview(values.astype(np.int32).data)
    if kind in "iu":
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        if low > _NA_INT and high < 2**31:
            return _ri().IntSexpVector.from_memoryview(values.astype(np.int32).data)
        if max(-low, high) > _LARGEST_WHOLE:
            raise InvalidInput(f"{what} must hold whole numbers of at most 2^53 in size for R")
    if kind in "iu" or (kind == "f" and values.dtype.itemsize <= 8):
        return _ri().FloatSexpVector.from_memoryview(np.array(values, dtype=np.float64).data)
    if kind in "UO" and all(isinstance(item, str) or item is None for item in values.tolist()):
        texts = [_ri().NA_Character if item is None else item for item in values.tolist()]
        return _ri().StrSexpVector(texts)
    raise InvalidInput(f"{what} must hold numbers, logicals or texts for R: found {values.dtype}")


def _classed(value: Any, *classes: str) -> Any:
    """Through R itself: a class that is only an attribute does not dispatch."""
    return _ri().baseenv["oldClass<-"](value, _ri().StrSexpVector(classes))


def _frame(table: pd.DataFrame) -> Any:
    names = table.columns.tolist()
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidInput(f"column names must be strings, each once: found {names!r}")
    result = _named(names, [_column(table[name], f"column {name!r}") for name in names])
    # The compact form of automatic row names.
    result.do_slot_assign("row.names", _ri().IntSexpVector([_ri().NA_Integer, -len(table)]))
    return _classed(result, "data.frame")


def _column(column: pd.Series, what: str) -> Any:
    dtype, missing = column.dtype, column.isna().to_numpy()
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [str(level) for level in column.cat.categories]
        if len(set(levels)) < len(levels):
            raise InvalidInput(f"{what} must have categories that differ as text for R")
        result = _coded(column.cat.codes.to_numpy(dtype=int) + 1, missing, _ri().IntSexpVector)
        result.do_slot_assign("levels", _ri().StrSexpVector(levels))
        return _classed(result, *(["ordered"] if column.cat.ordered else []), "factor")
    if pd.api.types.is_bool_dtype(dtype):
        return _coded(column.fillna(False).to_numpy(dtype=int), missing, _ri().BoolSexpVector)
    if pd.api.types.is_integer_dtype(dtype) or pd.api.types.is_float_dtype(dtype):
        return _vector(column.to_numpy(dtype=np.float64, na_value=np.nan), what)
    texts = column.astype(object).where(~missing, None)
    return _vector(texts.to_numpy(dtype=object), what)


def _coded(codes: npt.NDArray[Any], missing: npt.NDArray[np.bool_], kind: Any) -> Any:
    return kind.from_memoryview(np.where(missing, _NA_INT, codes).astype(np.int32).data)


def from_r(value: Any) -> Any:
    """Return an R object as a Python value.

    Raises
    ------
    RError
        For an object that is no vector or list: a function, an environment, an S4 object.
    """
    if value is _ri().NULL or isinstance(value, type(_ri().NULL)):
        return None
    if not isinstance(value, _ri().SexpVector) or isinstance(value, _ri().LangSexpVector):
        raise RError(f"R must return data: found an object of class {', '.join(value.rclass)}")
    if isinstance(value, _ri().ListSexpVector):
        items, names = [from_r(item) for item in value], _slot(value, "names")
        if names is None:
            return items
        return {
            str(name) or str(place): item
            for place, (name, item) in enumerate(zip(names, items, strict=True), 1)
        }
    flat, dim = _flat(value), _slot(value, "dim")
    if dim is not None:
        return flat.reshape(tuple(int(size) for size in dim), order="F")
    if flat.size != 1:
        return flat
    return flat[0].item() if isinstance(flat[0], np.generic) else flat[0]


def _slot(value: Any, name: str) -> Any:
    try:
        return value.do_slot(name)
    except LookupError:
        return None


def _flat(value: Any) -> npt.NDArray[Any]:
    """The elements of an R vector as a 1-d array."""
    if isinstance(value, _ri().StrSexpVector):
        texts = [None if item is _ri().NA_Character else str(item) for item in value]
        return np.array(texts, dtype=object)
    if isinstance(value, _ri().FloatSexpVector):
        return np.array(value.memoryview(), dtype=np.float64)
    if not isinstance(value, (_ri().BoolSexpVector, _ri().IntSexpVector)):
        raise RError(f"R must return numbers, strings or lists: found {', '.join(value.rclass)}")
    codes = np.array(value.memoryview(), dtype=np.int64)
    missing = codes == _NA_INT
    if missing.any():
        return np.where(missing, np.nan, codes)
    return codes.astype(bool) if isinstance(value, _ri().BoolSexpVector) else codes
