"""Tables from files: texts as they stand there, Parquet with its dtypes.

A column of texts holds numbers if every cell is one that writes back as its text. "00123",
"6.1" beside "6.10", and whole numbers that no float holds are codes: texts. What stands for a
missing number in the files of other programs (``.``, ``NULL``) is one among numbers, with a remark;
numbers with signs and separators ("$1,234", "171,2", "2.7%") stay texts, with a remark, until their
owner says how they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import check_names
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.kinds import Dates, plain_numbers
from pyhybrid.models.columns.support import FEW
from pyhybrid.models.formula.values import with_columns
from pyhybrid.tables.formats import format_of, read_texts, reason_of

_MISSING_TEXT = ("", "NA")
_MARKS = (".", "-", "--", "?", "N/A", "n/a", "#N/A", "null", "NULL", "None")
_MISSING_NUMBER = (*_MISSING_TEXT, "NaN", "nan", *_MARKS)
# a number that would lose its first character, and 1E10: programs write 1e+10
_CODE = r"[+-]?0\d|\+|\d+[eE]\d+$"
_ZERO, _WHOLE = r"\.\d*0$", r"[+-]?\d+"
_LARGEST = 2**53
_LOOKED_AT, _MOSTLY, _HALF = 1_000, 0.9, 0.5  # a column is of numbers if so many cells are
_FEW_TEXTS = 5  # that may be half of its cells
_SIGNS = r"[$€£¥%]|EUR|USD|CHF|GBP"  # beside a number
_WAYS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", "'"))
"""Marks of decimals and thousands that texts are tried with."""
_NEGATIVE = r"\([\d.,]*\d\)|\d[\d.,]*-"  # as (5) or 5-
_THOUSANDS = r"[1-9]\d{0,2}\.\d{3}"  # every number with a point


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceTable:
    """A table read from a file: numbers as numbers and text as text; but of a Parquet file, every
    cell, too, as a text with plain numbers, and what reads one cell alone (`by_cell`), a remark by
    column of numbers that has text among them, and the codes that the file declares.
    `file_format` is that of a release, "csv" or "parquet"."""

    frame: pd.DataFrame
    text: pd.DataFrame | None
    file_format: str
    name: str = ""
    remarks: Mapping[str, str] = field(default_factory=dict)
    of_file: tuple[str, ...] = ()
    codes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    by_cell: Callable[[str, Form], pd.Series] | None = None
    excel_safe: bool = False

    def read_as(self, declared: Mapping[str, Form]) -> SourceTable:
        """The table with columns of a declared form read cell by cell, so that no cell's type is
        another's doing: a cell that is no level is missing if it is empty, NA or NaN."""
        if self.by_cell is None:
            return self
        cells = {name: self.by_cell(name, own) for name, own in declared.items()
                 if name in self.frame}  # fmt: skip
        return replace(self, frame=with_columns(self.frame, cells))

    def restore(self, release: Any, ids: Collection[str] = ()) -> Any:
        """The release with unsynthesized columns letter by letter as they stand in the file, but
        for `ids`, whose values were replaced."""
        if self.text is None:
            return release
        table = release.synthetic[0]
        texts = {name: self.text[name] for name in table.columns
                 if str(name) not in ids and name in self.text}  # fmt: skip
        return release.with_unsynthesized(with_columns(table, texts))


def read_file(
    path: str | Path,
    *,
    decimal: str = ".",
    thousands: str = "",
    signs: str = "",
    missing: Sequence[str] = (),
    separator: str | None = None,
    encoding: str = "utf-8",
    sheet: str | None = None,
) -> SourceTable:
    """Read a table with a header line. In number columns empty cells, NA and NaN are missing; in
    text columns empty cells and NA. An empty line is the empty cell of a record where there is one
    column. Row labels with a name that pandas left in a Parquet file are columns.

    Parameters
    ----------
    path : path
        CSV (also ``.tsv``, ``.txt`` and packed as ``.gz``), Parquet, Excel, SPSS or Stata.
    decimal, thousands : str
        Marks in numbers: ``decimal=","`` for 171,2; ``thousands=","`` for 10,200.
    signs : str
        Characters beside numbers that are left out, such as ``"$%"``.
    missing : sequence of str
        Cells that are missing values, such as ``[".", "N"]``.
    separator : str, optional
        Between cells of a CSV file; if omitted a comma, or what the lines agree on.
    encoding : str
        Of a CSV file.
    sheet : str, optional
        Of an Excel file; the first one if omitted.

    Raises
    ------
    InvalidInput
        For a file that cannot be read, with the reason, which quotes no cell.
    """
    source, kind = Path(path), format_of(path)
    written = _Written(decimal=decimal, thousands=thousands, signs=signs, missing=tuple(missing))
    try:
        if kind == "parquet":
            return _of_frame(source, pd.read_parquet(source))
        texts = read_texts(source, kind, separator=separator, encoding=encoding, sheet=sheet)
    except InvalidInput:
        raise
    except Exception as error:  # a damaged file makes its reader raise whatever it trips over
        reason = reason_of(error, source)
        raise InvalidInput(f"data file {path} cannot be read: {reason}") from None
    _check_size(source, texts.cells)
    text = texts.cells.apply(written.plain) if written.says else texts.cells
    columns, remarks = {}, {}
    for name in text:
        why = written.unread(texts.cells[name], text[name])
        column = text[name].where(~text[name].isin(_MISSING_TEXT)) if why else _typed(text[name])
        why = why or text_among_numbers(column) or marks_among_numbers(text[name], column)
        columns[name] = column
        if why is not None:
            remarks[str(name)] = why
    return SourceTable(
        frame=pd.DataFrame(columns),
        text=text,
        file_format="csv",
        name=source.name,
        remarks=remarks,
        of_file=texts.remarks,
        codes=texts.codes,
        by_cell=lambda name, form: _cells(texts.cells[name], form, written),
    )


def _of_frame(path: Path, frame: pd.DataFrame) -> SourceTable:
    _check_size(path, frame)
    check_names(frame.columns, frame.index.names)
    frame = frame.reset_index(drop=all(name is None for name in frame.index.names))
    frame = with_columns(frame, {name: plain_numbers(column) for name, column in frame.items()})
    return SourceTable(frame=frame, text=None, file_format="parquet", name=path.name)


def _check_size(path: Path, frame: pd.DataFrame) -> None:
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise InvalidInput(f"data file {path} must have rows and columns: found {frame.shape}")


@dataclass(frozen=True, kw_only=True)
class _Written:
    """How a file writes numbers and missing values, as its owner says."""

    decimal: str
    thousands: str
    signs: str
    missing: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.decimal) != 1 or self.decimal in f"{self.thousands}{self.signs}":
            raise InvalidInput(
                f"decimal must be one character that stands for nothing else: {self.decimal!r}"
            )

    @property
    def says(self) -> bool:
        """Whether it is another way than that of a program."""
        return self != _Written(decimal=".", thousands="", signs="", missing=())

    def plain(self, text: pd.Series) -> pd.Series:
        """Cells with plain numbers, if all that are not missing are numbers in this way; else with
        empty cells for missing ones alone."""
        cells: pd.Series = text.where(~text.isin(self.missing), "")
        texts = pd.Series(cells[~cells.isin(_MISSING_NUMBER)].unique(), dtype=object)
        numbers = self.numbers(texts)
        if numbers.isna().any():
            return cells
        if (numbers != texts).any() and _as_written(numbers) is None:  # 2.50 beside 3.125
            numbers = numbers.map(lambda number: f"{float(number):.15g}")
        plain: pd.Series = cells.map(dict(zip(texts, numbers, strict=True))).fillna(cells)
        return plain

    def numbers(self, texts: pd.Series) -> pd.Series:
        """Of each text the plain number, none if it is no number in this way."""
        bare = texts.str.replace(f"[{re.escape(self.signs)}\\s]", "", regex=True)
        whole, mark = r"\d+", re.escape(self.decimal)
        if self.thousands:
            whole = rf"(?:\d+|\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})+)"
        fits = bare.str.fullmatch(rf"[+-]?{whole}(?:{mark}\d+)?").astype(bool)
        if self.thousands:
            bare = bare.str.replace(self.thousands, "", regex=False)
        numbers: pd.Series = bare.str.replace(self.decimal, ".", regex=False).where(fits)
        return numbers

    def unread(self, text: pd.Series, plain: pd.Series) -> str | None:
        """Why a column with points stays text where these are not decimal."""
        if self.decimal == "." or not text.equals(plain):
            return None
        held = text[~text.isin(_MISSING_NUMBER)]
        if not held.str.contains(".", regex=False).any() or _are_numbers(held) < _MOSTLY:
            return None
        return "it holds numbers with points, which are not decimal here, and is read as text"


def _typed(text: pd.Series) -> pd.Series:
    """Numbers if every cell that is not missing writes back as its text, else text."""
    codes, distinct = pd.factorize(text)
    texts = pd.Series(distinct)
    absent = texts.isin(_MISSING_NUMBER).to_numpy(dtype=bool)
    numbers = _as_written(texts[~absent].reset_index(drop=True))
    typed: pd.Series
    if numbers is None:
        empty = texts.isin(_MISSING_TEXT).any()
        typed = text.where(~text.isin(_MISSING_TEXT)) if empty else text
    else:
        known = np.full(texts.size, np.nan) if absent.any() else numbers
        if absent.any():
            known[~absent] = numbers
        typed = pd.Series(known[codes], index=text.index, name=text.name)
    return typed


def typed_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of texts as `read_file` takes them, of files that were read without it."""
    texts = {
        name: _typed(column.fillna("").astype(object))
        for name, column in frame.items()
        if all(isinstance(cell, str) for cell in column.dropna())
    }
    return with_columns(frame, texts)


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


def _cells(text: pd.Series, form: Form, written: _Written) -> pd.Series:
    """Texts of dates and of levels that are texts, else numbers; texts, to be refused, if a cell is
    no number."""
    dates = isinstance(form, Dates)
    levels = form.codes if isinstance(form, Dates) else form.levels or ()
    texts_of_levels = [level for level in levels if isinstance(level, str)]
    absent = text.isin(_MISSING_NUMBER) & ~text.isin(texts_of_levels) | text.isin(written.missing)
    cells: pd.Series = text.where(~absent)
    if texts_of_levels or dates:
        return cells
    texts = pd.Series(cells.dropna().unique(), dtype=object)
    plain = written.numbers(texts).fillna(texts) if written.says else texts
    try:
        numbers = cells.map(dict(zip(texts, plain.astype(float), strict=True))).astype(np.float64)
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
        "read as text: mend these cells, or leave them empty; if they stand for missing numbers, "
        "missing= reads them so"
    )


def _are_numbers(texts: pd.Series) -> float:
    """Share of numbers."""
    return float(pd.to_numeric(texts, errors="coerce").notna().mean()) if len(texts) else 0.0


def _with_signs(known: pd.Series) -> str | None:
    """Why texts seem to be numbers, if they are but for signs, separators and decimal commas, and
    what reads them."""
    texts = known.head(_LOOKED_AT).astype(str)
    signs = "".join(sorted({sign for found in texts.str.findall(_SIGNS) for sign in found}))
    for decimal, thousands in _WAYS:
        way = _Written(decimal=decimal, thousands=thousands, signs=signs, missing=())
        if way.numbers(texts).notna().mean() >= _MOSTLY:
            said = {"decimal": decimal.strip("."), "thousands": thousands, "signs": signs}
            given = [f"{name}={mark}" for name, mark in said.items() if mark] or ["thousands=' '"]
            reads = "reads" if len(given) == 1 else "read"
            return (
                "it holds numbers with signs or separators, and is read as text: "
                f"{' and '.join(given)} {reads} them"
            )
    bare = texts.str.replace(rf"{_SIGNS}|\s", "", regex=True)
    negative = bare.str.fullmatch(_NEGATIVE)
    if negative.any() and (negative | bare.str.fullmatch(r"[\d.,]*\d")).mean() >= _MOSTLY:
        return "it holds numbers below 0 as (5) or 5-, and is read as text: write them as -5"
    return None


def marks_among_numbers(text: pd.Series, typed: pd.Series) -> str | None:
    """What is said of marks such as ``.`` that were taken for missing numbers."""
    if not pd.api.types.is_numeric_dtype(typed.dtype):
        return None
    marked = text[text.isin(_MARKS)]
    marks = [mark for mark in _MARKS if (marked == mark).any()] if len(marked) else []
    pattern, held = rf"{_THOUSANDS}|[1-9]\d{{0,2}}", text.head(_LOOKED_AT)
    alike = held[~held.isin(_MISSING_NUMBER)].str.fullmatch(pattern).all()
    held = pd.Series(text[~text.isin(_MISSING_NUMBER)].unique() if alike else [], dtype=object)
    points = held.str.contains(".", regex=False)
    if points.sum() > FEW and held.str.fullmatch(pattern).all():
        return (
            "its points are taken as decimal, with three decimals in each number: if they stand "
            "between thousands, thousands=. and decimal=, read them so"
        )
    return f"{', '.join(map(repr, marks))} is taken for a missing number" if marks else None
