"""Tables from and to files: CSV with its text preserved, Parquet with its dtypes."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_names
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.kinds import Kind
from pyhybrid.models.formula.values import with_columns

_MISSING_NUMBER = ("", "NA", "NaN", "nan")
_MISSING_TEXT = ("", "NA")
_WHOLE = r"[+-]?\d+"
_LOOKED_AT, _MOSTLY = 1_000, 0.9  # a column is of numbers if so many cells are
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceTable:
    """A table read from a file: numbers as numbers and text as text; of a CSV file, every cell as
    it stands there, too, and a remark by column of numbers that has text among them."""

    frame: pd.DataFrame
    text: pd.DataFrame | None
    file_format: str
    name: str = ""
    remarks: Mapping[str, str] = field(default_factory=dict)

    def read_as(self, declared: Mapping[str, Form | Kind]) -> SourceTable:
        """The table with columns of a declared form read cell by cell, so that no cell's type is
        another's doing: a cell that is no level is missing if it is empty, NA or NaN."""
        if self.text is None:
            return self
        cells = {name: _cells(self.text[name], own) for name, own in declared.items()
                 if name in self.text}  # fmt: skip
        return replace(self, frame=with_columns(self.frame, cells))

    def restore(self, release: Any, ids: Collection[str] = ()) -> Any:
        """The release with unsynthesized columns letter by letter as they stand in the file, but
        for `ids`, whose values were replaced."""
        if self.text is None:
            return release
        table = release.synthetic[0]
        texts = {name: self.text[name] for name in table.columns if str(name) not in ids}
        return release.with_unsynthesized(with_columns(table, texts))


def read_file(path: str | Path) -> SourceTable:
    """Read a CSV (UTF-8, header line, commas) or Parquet file. In number columns empty cells, NA
    and NaN are missing; in text columns empty cells and NA. An empty line is the empty cell of a
    record where there is one column. Row labels with a name that pandas left in a Parquet file are
    columns, as other programs see them."""
    source = Path(path)
    if not source.is_file():
        raise InvalidInput(f"data file {path} must exist and be a file: it does not")
    kind = _SUFFIXES.get(source.suffix.lower())
    if kind is None:
        raise InvalidInput(f"data file {path} must end in .csv or .parquet")
    try:
        frame = pd.read_parquet(source) if kind == "parquet" else _read_text(source)
    except InvalidInput:
        raise
    except Exception as error:  # a damaged file makes its reader raise whatever it trips over
        raise InvalidInput(f"data file {path} cannot be read: {_reason(error)}") from None
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise InvalidInput(f"data file {path} must have rows and columns: found {frame.shape}")
    if kind == "parquet":
        check_names(frame.columns, frame.index.names)
        frame = frame.reset_index(drop=all(name is None for name in frame.index.names))
        return SourceTable(frame=frame, text=None, file_format=kind, name=source.name)
    typed = pd.DataFrame({name: _typed(frame[name]) for name in frame.columns})
    remarks = {str(n): why for n in typed if (why := text_among_numbers(typed[n])) is not None}
    return SourceTable(frame=typed, text=frame, file_format=kind, name=source.name, remarks=remarks)


def _reason(error: Exception) -> str:
    """Why a file cannot be read, without what its reader may quote of it."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start}; iconv -f latin1 -t utf-8 OLD > NEW makes it"
    if isinstance(error, pd.errors.EmptyDataError):
        return "it is empty"
    line = re.search(r"line (\d+)", str(error))
    rule = "every line must have as many cells as the header"
    if isinstance(error, pd.errors.ParserError):
        return rule + (f": line {line.group(1)} has not" if line else "")
    if isinstance(error, pd.errors.ParserWarning):
        return rule
    return "it is damaged, or no table of its type"


def _read_text(path: Path) -> pd.DataFrame:
    options: dict[str, Any] = {
        "dtype": str,
        "keep_default_na": False,
        "encoding": "utf-8-sig",
        "index_col": False,
    }
    header = pd.read_csv(path, header=None, nrows=1, **options).iloc[0].tolist()
    other = next(
        (mark for mark in (";", "\t", "|") if len(header) == 1 and mark in header[0]), None
    )
    if other is not None:
        raise InvalidInput(
            f"data file {path} must have commas between its cells: it has one column, with "
            f"{other!r} in its name; is {other!r} the separator? Save the file with commas"
        )
    check_names(header)
    options["skip_blank_lines"] = len(header) > 1  # of one column it is a record's empty cell
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)  # pandas fills a line that ends early, in silence
        if any(0 < len(cells) < len(header) for cells in lines):
            raise pd.errors.ParserError(f"line {lines.line_num} ends early")
    with warnings.catch_warnings():
        # Rows longer than the header lose cells with no more than a warning.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        table: pd.DataFrame = pd.read_csv(path, **options)
    return table


def _typed(text: pd.Series) -> pd.Series:
    """Numbers if every cell that is not missing is one, else text."""
    typed: pd.Series
    try:
        typed = pd.to_numeric(text.where(~text.isin(_MISSING_NUMBER)))
    except (ValueError, TypeError, OverflowError):
        typed = text.where(~text.isin(_MISSING_TEXT))
    return typed


def _cells(text: pd.Series, declared: Form | Kind) -> pd.Series:
    """Texts if a level is one, else numbers; texts, to be refused, if a cell is no number."""
    form = declared if isinstance(declared, Form) else declared.form
    levels = [own for own in form.levels or () if isinstance(own, str)]
    cells: pd.Series = text.where(~text.isin(_MISSING_NUMBER) | text.isin(levels))
    if levels:
        return cells
    try:
        numbers = cells.map({own: float(own) for own in cells.dropna().unique()}).astype(np.float64)
    except ValueError:
        return cells
    whole = bool(((numbers % 1 == 0) & (numbers.abs() < 2**53)).all())
    return numbers.astype(np.int64) if whole else numbers


def text_among_numbers(column: pd.Series) -> str | None:
    """The first rows with text in a column that is of numbers otherwise; rows, no values."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return None
    known = column.dropna()
    try:
        if pd.to_numeric(known.head(_LOOKED_AT), errors="coerce").notna().mean() < _MOSTLY:
            return None
        odd = np.flatnonzero(pd.to_numeric(known, errors="coerce").isna())
    except (OverflowError, TypeError):  # hundreds of digits, lists: no numbers of this table
        return None
    if not 0 < odd.size < (1 - _MOSTLY) * known.size:
        return None
    rows = ", ".join(f"{known.index[place]:,}" for place in odd[:3])
    more = f" and {odd.size - 3:,} more" if odd.size > 3 else ""
    return (
        f"it holds numbers, but text in row {rows}{more} (counted from 0 below the header), and is "
        "read as text: mend these cells, or leave them empty"
    )
