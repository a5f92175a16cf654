"""Parts of what is on disk: JSON records, tables with their schema, diagnostics."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import ConvergenceRule, Diagnostics

__all__ = [
    "read_diagnostics",
    "read_json",
    "read_names",
    "read_records",
    "read_released",
    "table_schema",
    "write_json",
    "write_table",
]

_NUMBERS = re.compile(r"(?i:u?int|float)\d+(\[pyarrow\])?|double\[pyarrow\]")
_AS_TEXT = ("interval", "bytes", "Sparse")  # dtypes that CSV cannot bring back


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or "damaged"
        raise InvalidInput(f"{path} must be a file of a saved release: {reason}") from None
    except ValueError:  # its text can quote values
        raise InvalidInput(f"{path} must be a file of a saved release: it is no JSON") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{path} must be a file of a saved release: it holds no object")
    return content


def read_names(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of names in a saved record."""
    names = tuple(fields[name])
    if not all(isinstance(each, str) for each in names):
        raise TypeError(name)
    return names


def read_diagnostics(fields: dict[str, Any] | None) -> Diagnostics | None:
    if fields is None:
        return None
    problems, rule = read_names(fields, "problems"), ConvergenceRule(**fields["rule"])
    numbers = {n: v for n, v in fields.items() if n not in ("problems", "rule", "worst")}
    for name, value in (numbers | asdict(rule)).items():
        if not isinstance(value, (int, float)) and (name, value) != ("n_elsewhere", None):
            raise TypeError(name)
    return Diagnostics(problems=problems, rule=rule, worst=str(fields["worst"]), **numbers)


def read_records(path: Path) -> pd.DataFrame:
    """The per-record table as text: Python reads numbers back exactly, C parsers may not."""
    try:
        return pd.read_csv(path, dtype=str)
    except OSError as error:
        reason = error.strerror or "damaged"
        raise InvalidInput(f"{path} must be a file of a saved release: {reason}") from None
    except ValueError:  # its text can quote values
        raise InvalidInput(f"{path} must be a file of a saved release: it is no table") from None


def table_schema(table: pd.DataFrame, file_format: str) -> dict[str, Any]:
    """What CSV cannot say: dtype and levels of the columns, and of the index if it is written."""
    index = table.index.to_frame(index=False) if _index_is_written(table) else pd.DataFrame()
    return {
        "file_format": file_format,
        "index_names": list(table.index.names) if index.shape[1] else [],
        "index": [_column_schema(str(name), index[name]) for name in index.columns],
        "columns": [_column_schema(str(name), table[name]) for name in table.columns],
    }


def _index_is_written(table: pd.DataFrame) -> bool:
    return not table.index.equals(pd.RangeIndex(len(table))) or table.index.name is not None


def _column_schema(name: str, values: pd.Series) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "dtype": str(values.dtype)}
    if isinstance(values.dtype, pd.CategoricalDtype):
        entry["levels"] = values.dtype.categories.tolist()
        entry["ordered"] = bool(values.dtype.ordered)
    return entry


# pyarrow's own exceptions of these names are among them.
_NOT_AS_PARQUET = (TypeError, ValueError, OverflowError, NotImplementedError)


def write_table(table: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        table.to_csv(path, index=_index_is_written(table))
        return
    try:
        table.to_parquet(path)
    except _NOT_AS_PARQUET:
        # What pyarrow says quotes the value that it trips over.
        raise InvalidInput(
            f"the table cannot be written as Parquet: {_culprit(table)} holds values that Parquet "
            "has no type for; save as csv, or make them of one type"
        ) from None


def _culprit(table: pd.DataFrame) -> str:
    """The first column, or the index, that cannot be written as Parquet."""
    for name in table.columns:
        try:
            table[[name]].reset_index(drop=True).to_parquet(io.BytesIO())
        except _NOT_AS_PARQUET:
            return f"column {str(name)!r}"
    return "the index, or a column name,"


def read_released(path: Path, schema: Mapping[str, Any]) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        text = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or 'damaged'}") from None
    except ValueError:  # its text can quote values
        raise InvalidInput(f"{path} cannot be read: it is no table as it was saved") from None
    entries = [*schema["index"], *schema["columns"]]
    if text.shape[1] != len(entries):
        raise InvalidInput(f"{path} must have {len(entries)} columns: found {text.shape[1]}")
    typed = [_typed(text.iloc[:, place], entry) for place, entry in enumerate(entries)]
    levels = len(schema["index"])
    table = pd.concat(typed[levels:], axis=1)
    table.columns = pd.Index([entry["name"] for entry in schema["columns"]])
    if levels:
        arrays = [level.array for level in typed[:levels]]
        names = schema["index_names"]
        table.index = (
            pd.Index(arrays[0], name=names[0])
            if levels == 1
            else pd.MultiIndex.from_arrays(arrays, names=names)
        )
    return table


def _typed(values: pd.Series, column: Mapping[str, Any]) -> pd.Series:
    """A column read as text, in the dtype its schema names."""
    dtype: Any = column["dtype"]
    if "levels" in column:
        by_text = {str(level): level for level in column["levels"]}
        kind = pd.CategoricalDtype(column["levels"], ordered=column["ordered"])
        return values.map(by_text).astype(kind)
    if _NUMBERS.fullmatch(dtype):
        return pd.to_numeric(values).astype(dtype)
    if dtype in ("bool", "boolean"):
        return values.map({"True": True, "False": False}).astype(dtype)
    if dtype.startswith("datetime"):
        zone = "," in dtype
        return pd.to_datetime(values, utc=zone, format="ISO8601").astype(dtype)
    if dtype == "str":  # pandas before 3 has no such dtype, and would write missing values as text
        return values
    return values if dtype.startswith(_AS_TEXT) else values.astype(dtype)
