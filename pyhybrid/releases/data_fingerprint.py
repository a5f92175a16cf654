"""Which confidential data a release is of: digests of columns, for the owner's files only.

A column's digest does not depend on the order of the records, and a table's mark not on the order
of its columns. Values are digested as text files give them back: numbers as single-precision
floats, whatever their dtype, anything else as text.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import check_count

_LENGTH = 32  # hexadecimal digits of a digest
_AT_ONCE = 2**20  # records
_TRUTH = {"True": 1.0, "False": 0.0}


@dataclass(frozen=True, kw_only=True)
class DataMark:
    """A table as a ledger knows it: digests of each column's values by its name, but of those that
    tell tables apart no better than their length does (one value only, or running numbers).
    Confidential: guesses of the data can be checked against it."""

    n_records: int
    columns: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<DataMark of {self.n_records} records, {len(self.columns)} columns>"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"n_records": self.n_records, "columns": dict(self.columns)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> DataMark:
        """Inverse of `as_dict`; raises KeyError, TypeError or InvalidInput for anything else."""
        columns = dict(fields["columns"])
        if not all(isinstance(text, str) for pair in columns.items() for text in pair):
            raise TypeError("columns")
        return cls(n_records=check_count(fields["n_records"], "n_records"), columns=columns)

    def keyed(self, key: str) -> DataMark:
        """The mark under a ledger's key (HMAC-SHA-256): it fits marks under the same key only."""
        return DataMark(
            n_records=self.n_records,
            columns={name: keyed(key, digest) for name, digest in self.columns.items()},
        )

    def is_of_the_data_of(self, other: DataMark, decisive: tuple[str, ...]) -> bool:
        """True if both are of one data set: as many records, the same values in `decisive` columns
        wherever both have them, and in more than half of the columns of both, in any order."""
        shared = self.columns.keys() & other.columns.keys()
        alike = {name for name in shared if self.columns[name] == other.columns[name]}
        return (
            self.n_records == other.n_records
            and shared & set(decisive) <= alike
            and (2 * len(alike) > len(shared) or not self.columns or not other.columns)
        )


def keyed(key: str, text: str) -> str:
    """HMAC-SHA-256 of a text, 32 hexadecimal digits."""
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:_LENGTH]


def data_mark(table: pd.DataFrame, times: npt.NDArray[np.int64] | None = None) -> DataMark:
    """The mark of a confidential table, whose rows each stand for so many `times` records (n,)."""
    each, columns = np.ones(len(table), dtype=np.int64) if times is None else times, {}
    for place, name in enumerate(table.columns):
        values = normalized(table.iloc[:, place])
        order = np.argsort(values, kind="stable")
        values, last = values[order], np.cumsum(each[order])
        if _tells_nothing(values, alone=bool((each == 1).all())):
            continue
        own = hashlib.sha256(str(values.dtype.kind).encode())
        for start in range(0, int(last[-1]), _AT_ONCE):
            records = np.arange(start, min(start + _AT_ONCE, int(last[-1])))
            here = values[np.searchsorted(last, records, side="right")]
            text = (
                b"" if here.dtype.kind == "f" else ("\0" * (start > 0) + "\0".join(here)).encode()
            )
            own.update(here.tobytes() if here.dtype.kind == "f" else text)
        columns[str(name)] = own.hexdigest()[:_LENGTH]
    return DataMark(n_records=int(each.sum()), columns=columns)


def normalized(values: pd.Series) -> npt.NDArray[Any]:
    """Values in a form that files and dtypes do not change: single-precision floats or text, (n,).
    Text is taken for numbers if every value that is not missing is one."""
    if isinstance(values.dtype, pd.SparseDtype):
        values = pd.Series(values.to_numpy(), index=values.index)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.dtype.categories.dtype if not values.isna().any() else object)
    dtype = values.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return _single(values.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    missing = values.isna().to_numpy(dtype=bool)
    # Objects, as a fixed width would make every cell as long as the longest.
    plain = values if values.dtype == object else values.astype(str)
    text = np.empty(len(values), dtype=object)
    text[:] = [
        "" if gone else str(each) for each, gone in zip(plain.tolist(), missing, strict=True)
    ]
    missing = missing | (text == "")
    told = {each: _number(each) for each in set(text[~missing].tolist())}
    if None in told.values():
        return text
    return _single(np.array([told.get(each, np.nan) for each in text.tolist()], dtype=np.float64))


def _number(text: str) -> float | None:
    try:
        return _TRUTH[text] if text in _TRUTH else float(text)
    except ValueError:
        return None


def _single(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32) + np.float32(0)  # no negative zero
    single[np.isnan(single)] = np.nan  # one of the many
    return np.asarray(single, dtype=np.float32)


def _tells_nothing(ordered: npt.NDArray[Any], *, alone: bool) -> bool:
    """True of one value only, or of running numbers, which no two records share (`alone`)."""
    if ordered.size == 0 or bool((ordered[0] == ordered).all()):
        return True
    if ordered.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.isnan(ordered).all() or (alone and (np.diff(ordered) == 1).all()))
