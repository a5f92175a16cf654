"""Tables from files: CSV with its text preserved, Parquet with its dtypes.

A column of a CSV file holds numbers if every cell is one that writes back as its text. "00123",
"6.1" beside "6.10", and whole numbers that no float holds are codes: texts. What stands for a
missing number in the files of other programs (``.``, ``NULL``) is one among numbers, with a remark;
numbers with signs and separators ("$1,234", "171,2", "2.7%") stay texts, with a remark.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import check_names
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import FEW
from pyhybrid.models.formula.values import with_columns

_MISSING_TEXT = ("", "NA")
_MARKS = (".", "-", "--", "?", "N/A", "n/a", "#N/A", "null", "NULL", "None")
_MISSING_NUMBER = (*_MISSING_TEXT, "NaN", "nan", *_MARKS)
_CODE = r"[+-]?0\d|\+"  # a number that would lose its first character
_ZERO, _WHOLE, _NUMBER = r"\.\d*0$", r"[+-]?\d+", re.compile(r"[+-]?\d+(\.\d+)?")
_LARGEST = 2**53
_LOOKED_AT, _MOSTLY, _HALF = 1_000, 0.9, 0.5  # a column is of numbers if so many cells are
_FEW_TEXTS = 5  # that may be half of its cells
_SIGNS = re.compile(r"[$€£%\s]|(?<=\d),(?=\d{3}(?!\d))")
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")
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

    def read_as(self, declared: Mapping[str, Form]) -> SourceTable:
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


def kind_of_file(path: str | Path) -> str:
    """Whether a data file is "csv" or "parquet"; one that is neither or not there is refused."""
    if not Path(path).is_file():
        raise InvalidInput(f"data file {path} must exist and be a file: it does not")
    kind = _SUFFIXES.get(Path(path).suffix.lower())
    if kind is None:
        raise InvalidInput(f"data file {path} must end in .csv or .parquet")
    return kind


def read_file(path: str | Path) -> SourceTable:
    """Read a CSV (UTF-8, header line, commas) or Parquet file. In number columns empty cells, NA
    and NaN are missing; in text columns empty cells and NA. An empty line is the empty cell of a
    record where there is one column. Row labels with a name that pandas left in a Parquet file are
    columns, as other programs see them."""
    source, kind = Path(path), kind_of_file(path)
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
    remarks = {}
    for name in typed:
        why = text_among_numbers(typed[name]) or marks_among_numbers(frame[name], typed[name])
        if why is not None:
            remarks[str(name)] = why
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
    _check_header(path, header)
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


def _check_header(path: Path, header: list[str]) -> None:
    """Refuse a first line that looks like a record: half of its cells or more are numbers, and they
    are not all years."""
    numbers = [name for name in header if _NUMBER.fullmatch(name.strip())]
    years = all(re.fullmatch(r"(1[5-9]|20|21)\d\d", name.strip()) for name in numbers)
    if 2 * len(numbers) >= len(header) and not years:
        raise InvalidInput(
            f"data file {path} must have the names of its columns in its first line: "
            f"{len(numbers)} of its {len(header)} cells are numbers, as in a record; write a line "
            "with names above it"
        )


def _typed(text: pd.Series) -> pd.Series:
    """Numbers if every cell that is not missing writes back as its text, else text."""
    cells: pd.Series = text.where(~text.isin(_MISSING_NUMBER))
    codes, texts = pd.factorize(cells)
    numbers = _as_written(pd.Series(texts))
    typed: pd.Series
    if numbers is None:
        typed = text.where(~text.isin(_MISSING_TEXT))
    else:
        if (codes < 0).any():
            numbers = np.append(numbers.astype(np.float64), np.nan)
        typed = pd.Series(numbers[codes], index=text.index, name=text.name)
    return typed


def _as_written(texts: pd.Series) -> npt.NDArray[Any] | None:
    """Numbers of distinct texts, one text for each, as a program writes them: with one number of
    decimals, or without zeros at their end but for that of 5.0 among floats; else None."""
    try:
        numbers = pd.to_numeric(texts).to_numpy()
    except (ValueError, TypeError, OverflowError):
        return None
    if numbers.dtype.kind not in "iuf":
        return None if len(texts) else np.zeros(0)
    other = numbers[numbers != 0]  # 0.0 and -0.0 are one
    if np.unique(other).size < other.size or texts.str.match(_CODE).any():
        return None
    whole = texts.str.fullmatch(_WHOLE).to_numpy(dtype=bool)
    point = texts.str.find(".").to_numpy()
    decimals = np.where(point < 0, -1, texts.str.len().to_numpy() - point - 1)
    zeros = texts.str.contains(_ZERO).to_numpy(dtype=bool)
    if zeros.any() and ((decimals[zeros] > 1).any() or whole.any()):
        return numbers if np.unique(decimals).size == 1 else None
    large = np.abs(numbers[whole].astype(np.float64)) >= _LARGEST
    return None if large.any() else numbers


def _cells(text: pd.Series, form: Form) -> pd.Series:
    """Texts if a level is one, else numbers; texts, to be refused, if a cell is no number."""
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
    """Why a column of text seems to be one of numbers: signs and separators, or the first rows with
    text; no values."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return None
    known = column.dropna()
    try:
        if _are_numbers(known.head(_LOOKED_AT)) < _HALF:
            return _with_signs(known)
        numbers = pd.to_numeric(known, errors="coerce")
    except (OverflowError, TypeError):  # hundreds of digits, lists: no numbers of this table
        return None
    odd = np.flatnonzero(numbers.isna())
    written = pd.Series(known[numbers.notna()].astype(str).unique())
    few = known.iloc[odd].nunique() <= _FEW_TEXTS < odd.size and len(written) > FEW
    if _as_written(written) is None:  # codes
        return None
    if not 0 < odd.size < (_HALF if few else 1 - _MOSTLY) * known.size:
        return None
    rows = ", ".join(f"{known.index[place]:,}" for place in odd[:3])
    more = f" and {odd.size - 3:,} more" if odd.size > 3 else ""
    return (
        f"it holds numbers, but text in row {rows}{more} (counted from 0 below the header), and is "
        "read as text: mend these cells, or leave them empty"
    )


def _are_numbers(texts: pd.Series) -> float:
    """Share of numbers."""
    return float(pd.to_numeric(texts, errors="coerce").notna().mean()) if len(texts) else 0.0


def _with_signs(known: pd.Series) -> str | None:
    """Why texts seem to be numbers, if they are but for signs, separators and decimal commas."""
    texts = known.head(_LOOKED_AT).astype(str)
    if _are_numbers(texts.str.replace(_SIGNS, "", regex=True)) >= _MOSTLY:
        how = "signs or separators of thousands ($ % ,)"
    elif texts.str.fullmatch(_DECIMAL_COMMA).mean() >= _MOSTLY:
        how = "decimal commas"
    else:
        return None
    return f"it holds numbers with {how}, and is read as text: write them as plain numbers, 1234.5"


def marks_among_numbers(text: pd.Series, typed: pd.Series) -> str | None:
    """What is said of marks such as ``.`` that were taken for missing numbers."""
    if not pd.api.types.is_numeric_dtype(typed.dtype):
        return None
    marks = [mark for mark in _MARKS if (text == mark).any()]
    return f"{', '.join(map(repr, marks))} is taken for a missing number" if marks else None
