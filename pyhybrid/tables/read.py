"""Tables from files: texts as they stand there, other columns of Parquet with their dtypes.

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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form, number_in
from pyhybrid.models.columns.kinds import Dates, plain_numbers
from pyhybrid.models.columns.support import FEW
from pyhybrid.models.formula.values import column_like, with_columns
from pyhybrid.sources.dialects import MARKS, MISSING_LEVELS, MISSING_NUMBERS
from pyhybrid.tables.formats import Texts, format_of, read_parquet, read_texts, reason_of

# a number that would lose its first character, and 1E10: programs write 1e+10
_CODE = r"[+-]?0\d|\+|\d+[eE]\d+$"
_ZERO, _WHOLE = r"\.\d*0$", r"[+-]?\d+"
_LARGEST = 2**53
_LOOKED_AT, _MOSTLY = 1_000, 0.9  # a column is of numbers if so many cells are
_TRIED, _SOME = 100, 0.005
_FEW_TEXTS = 5  # that may be most of its cells, or be beside its numbers
_WAYS = (
    (".", ""), (".", ","), (",", ""), (",", "."), (".", "'"), (".", "’"), (".", " "), (",", " "),
    ("·", ""),
)  # fmt: skip
"""Marks of decimals and thousands that texts are tried with."""
_WORD = r"[^\W\d_]"
_SYMBOLS = "$€£¥₹"
_MONEY = rf"[{_SYMBOLS}]|(?:EUR|USD|CHF|GBP|JPY|CAD|AUD|SEK|NOK|DKK|PLN|CZK|INR|CNY)(?!{_WORD})"
_GROUPS = r"(?=[.,]\d)|(?:[1-9]\d*|0)|[1-9]\d{0,2}(?:[.,'’\s]\d{3})+|\d{1,3}(?:,\d\d)+,\d{3}"
_AMOUNT = (
    rf"\A\s*(\()?([+−–-]?)\s*({_MONEY}|)\s*[+−–(-]?((?:{_GROUPS})(?:[.,·](?:\d+|--?))?(?:[eE][+-]?\d+)?)\s*"
    rf"((?:{_WORD}|[{_SYMBOLS}%‰°²³/.*†]){{0,8}})\s*([)−–-]?)\s*\Z"
)
"""A number with signs, separators and a unit: what stands before, in and after it."""
_MARK = r"[~≈±<>≤≥=]+|(?:ca|c|circa|about|approx)(?:\.\s*|\s+)"
_ABOUT = rf"\A\s*(?:{_MARK})?\s*(\[)?(.*\d)\s*(?(1)\])\s*\+?\s*\Z"
"""What may stand about numbers: ~48, >7, [48], ca. 48, 17+."""
_NO_UNIT = r"[\d\s.,'’+()−–-]"
_THOUSANDS = r"[1-9]\d{0,2}\.\d{3}"  # every number with a point


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceTable:
    """A table read from a file: numbers as numbers and text as text; its columns as they are to be
    published: texts with plain numbers, of a Parquet file those that `frame` has otherwise; what
    reads one cell alone (`by_cell`), a remark by column of numbers that has text among them, the
    codes that the file declares, and decimals by column of few numbers with `zeros` at their end:
    250.00. `file_format` is that of a release, "csv" or "parquet"."""

    frame: pd.DataFrame
    text: pd.DataFrame
    file_format: str
    name: str = ""
    remarks: Mapping[str, str] = field(default_factory=dict)
    of_file: tuple[str, ...] = ()
    codes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    zeros: Mapping[str, int] = field(default_factory=dict)
    by_cell: Callable[[str, Form], pd.Series]
    excel_safe: bool = False

    def read_as(self, declared: Mapping[str, Form]) -> SourceTable:
        """The table with columns of a declared form read cell by cell, so that no cell's type is
        another's doing: a cell that is no level is missing if it is empty, NA or NaN."""
        cells = {name: self.by_cell(name, own) for name, own in declared.items()
                 if name in self.frame}  # fmt: skip
        return replace(self, frame=with_columns(self.frame, cells))

    def restore(self, release: Any, ids: Collection[str] = ()) -> Any:
        """The release with unsynthesized columns letter by letter as they stand in the file, but
        for `ids`, whose values were replaced."""
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
    numbers: Sequence[str] = (),
    separator: str | None = None,
    encoding: str = "utf-8",
    sheet: str | None = None,
    declared: Mapping[str, Form] | None = None,
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
        Characters and words beside numbers that are left out, such as ``"$%"`` and ``"CHF+kg"``.
    missing : sequence of str
        Cells that are missing values in columns of numbers, such as ``[".", "N"]``; those that are
        numbers by column, such as ``["hours:99"]``.
    numbers : sequence of str
        Columns of numbers that are not written in one way: with ``+``, exponents, blanks, other
        digits, ``12.5`` beside ``12.50``.
    separator : str, optional
        Between cells of a CSV file; if omitted a comma, or what the lines agree on.
    encoding : str
        Of a CSV file.
    sheet : str, optional
        Of an Excel file; the first one if omitted.
    declared : mapping of str to Form, optional
        Of columns with declared types: what is between cells, whether the first line has names, and
        labels of SPSS and Stata are then read by these alone.

    Raises
    ------
    InvalidInput
        For a file that cannot be read, with the reason, which quotes no cell.
    """
    source, kind = Path(path), format_of(path)
    general = _Written(decimal=decimal, thousands=thousands, signs=signs, missing=())
    try:
        if kind == "parquet":
            whole = read_parquet(source)
            frame = with_columns(whole, {name: plain_numbers(c) for name, c in whole.items()})
            texts = Texts(cells=texts_of(frame))
        else:
            texts = read_texts(source, kind, separator=separator, encoding=encoding, sheet=sheet,
                               declared=declared or {})  # fmt: skip
            frame = texts.cells
    except InvalidInput:
        raise
    except Exception as error:  # a damaged file makes its reader raise whatever it trips over
        reason = reason_of(error, source)
        raise InvalidInput(f"data file {path} cannot be read: {reason}") from None
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise InvalidInput(f"data file {path} must have rows and columns: found {frame.shape}")
    if unknown := {*numbers} - {*texts.cells}:
        raise InvalidInput(f"numbers must name columns of texts: {min(unknown)!r} is none")
    marks = _marks_by_column(missing, texts.cells)
    ways = {name: replace(general, missing=marks[name], loose=name in numbers) for name in marks}
    text = with_columns(texts.cells, {name: way.plain(texts.cells[name])
                                      for name, way in ways.items() if way.says})  # fmt: skip
    columns, remarks, zeros = {}, {}, {}
    for name in text:
        why = ways[name].unread(texts.cells[name], text[name])
        column = text[name].where(~text[name].isin(MISSING_LEVELS)) if why else _typed(text[name])
        columns[name], zeros[str(name)] = column, _zeros_of_codes(text[name], column)
        if why := why or text_among_numbers(column) or marks_among_numbers(text[name], column):
            remarks[str(name)] = why
    frame = with_columns(frame, columns)
    if kind == "parquet":
        text = whole[[name for name in whole if whole[name].dtype != frame[name].dtype]]
    return SourceTable(
        frame=frame,
        text=text,
        file_format="parquet" if kind == "parquet" else "csv",
        name=source.name,
        remarks=remarks,
        of_file=texts.remarks,
        codes=texts.codes,
        zeros=zeros,
        by_cell=lambda name, form: (
            _cells(texts.cells[name], form, ways[name]) if name in texts.cells else frame[name]
        ),
    )


def texts_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of texts, empty where there is none, and of times of day; coded numbers."""
    cells = {}
    for name, column in frame.items():
        coded = isinstance(column.dtype, pd.CategoricalDtype)
        levels = pd.Series(column.cat.categories) if coded else column
        held = pd.api.types.infer_dtype(levels, skipna=True)
        plain = not coded or pd.api.types.is_numeric_dtype(_typed(levels).dtype)
        if held == "time" or (held == "string" and plain):
            cells[name] = column.astype(object).map(str, na_action="ignore").fillna("")
    texts: pd.DataFrame = pd.DataFrame(cells, index=frame.index)
    return texts


@dataclass(frozen=True, kw_only=True)
class _Written:
    """How a file writes numbers and missing values, as its owner says."""

    decimal: str
    thousands: str
    signs: str
    missing: tuple[str, ...]
    loose: bool = False

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
        """Cells with plain numbers, if all that are not missing are numbers in this way; else as
        they are: `N` is missing among numbers, and a level beside `Y`."""
        cells: pd.Series = text.where(~text.isin(self.missing), "")
        texts = pd.Series(cells[~cells.isin(MISSING_NUMBERS)].unique(), dtype=object)
        if not len(texts) or self.numbers(texts.head(_TRIED)).isna().any():
            return text
        numbers, units = self.numbers(texts), texts.str.replace(_NO_UNIT, "", regex=True)
        if self.signs and len({*units.str.casefold()} - {""}) > 1:  # $ beside €, cm beside m
            return text
        if numbers.isna().any() or ((numbers == texts).all() and _as_written(texts) is None):
            return text
        if (numbers != texts).any() and _as_written(numbers) is None:  # 2.50 beside 3.125
            numbers = numbers.astype(np.float64).map(_plain_text)
        plain: pd.Series = cells.map(dict(zip(texts, numbers, strict=True))).fillna(cells)
        return plain

    def numbers(self, texts: pd.Series) -> pd.Series:
        """Of each text the plain number, none if it is no number in this way, or a code: with a 0
        before its digits, with blanks that are not between thousands, or larger than floats."""
        if self.loose:
            shown: pd.Series = _loose(texts).map(_plain_text, na_action="ignore")
            return shown
        signs = re.findall(rf"{_WORD}+|[^\w\s+-]", self.signs)
        beside = "|".join([r"\s", *(re.escape(sign) + r"\.?" * sign.isalpha() for sign in signs)])
        beside, whole = rf"(?:{beside})*", r"(?:[1-9]\d*|0)"
        sign = r"-?" if self.thousands.isspace() else r"[+-]?"  # +41 791 is no number
        point = re.escape(self.decimal)
        if self.thousands:
            between = r"\s" if self.thousands.isspace() else re.escape(self.thousands)
            whole = rf"(?:{whole}|[1-9]\d{{0,2}}(?:{between}\d{{3}})+)"
        pattern = rf"\A{beside}({sign}){beside}({whole}|(?={point}\d))(?:{point}(\d+))?{beside}\Z"
        parts = texts.str.extract(pattern)
        digits = parts[1].str.replace(r"\D", "", regex=True)
        codes = parts[2].isna() & (pd.to_numeric(digits, errors="coerce") >= _LARGEST)
        numbers: pd.Series = (parts[0] + digits + ("." + parts[2]).fillna("")).where(~codes)
        return numbers

    def unread(self, text: pd.Series, plain: pd.Series) -> str | None:
        """Why a column with points stays text where these are not decimal."""
        if self.decimal == "." or not text.equals(plain):
            return None
        held = text[~text.isin(MISSING_NUMBERS)]
        points = held.str.contains(".", regex=False).any()
        if not points or pd.to_numeric(held, errors="coerce").notna().mean() < _MOSTLY:
            return None
        return "it holds numbers with points, which are not decimal here, and is read as text"


def _marks_by_column(missing: Sequence[str], columns: pd.DataFrame) -> dict[Any, tuple[str, ...]]:
    """Marks of missing values; 99 must be one column's, as it is a number in others."""
    marks: dict[Any, tuple[str, ...]] = dict.fromkeys(columns, ())
    for mark in missing:
        name, _, of_one = mark.partition(":")
        named = bool(of_one) and name in marks
        if not named and np.isfinite(number_in(mark)):
            raise InvalidInput(
                f"missing={mark} must name its column, as missing=COLUMN:{mark}: in others it may "
                "be a number"
            )
        for column in [name] if named else marks:
            marks[column] += (of_one if named else mark,)
    return marks


_plain_text = partial(np.format_float_positional, trim="-")


def _loose(texts: pd.Series) -> pd.Series:
    """The number of each text, NaN for none: any sign, blanks, exponents, digits of any script."""
    plain = texts.str.replace(r"^\s*[−–]", "-", regex=True)
    numbers: pd.Series = plain.str.replace(r"^\s*([+-])\s+", r"\1", regex=True).map(number_in)
    return numbers.astype(np.float64)


def _typed(text: pd.Series) -> pd.Series:
    """Numbers if every cell that is not missing writes back as its text, else text."""
    codes, distinct = pd.factorize(text)
    texts = pd.Series(distinct)
    absent = texts.isin(MISSING_NUMBERS).to_numpy(dtype=bool)
    numbers = _as_written(texts[~absent].reset_index(drop=True))
    if numbers is None:
        empty = texts.isin(MISSING_LEVELS).any()
        return text.where(~text.isin(MISSING_LEVELS)) if empty else text
    known = np.full(texts.size, np.nan) if absent.any() else numbers
    if absent.any():
        known[~absent] = numbers
    return column_like(known[codes], text)


def typed_texts(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Columns as `read_file` takes them, of tables that were read without it, and its remarks."""
    frame = with_columns(frame, {name: plain_numbers(column) for name, column in frame.items()})
    texts = texts_of(frame)
    columns = {name: _typed(cells) for name, cells in texts.items()}
    remarks = {str(name): why for name, column in columns.items()
               if (why := text_among_numbers(column) or marks_among_numbers(texts[name], column))
               }  # fmt: skip
    return with_columns(frame, columns), remarks


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


def _zeros_of_codes(text: pd.Series, typed: pd.Series) -> int:
    """Decimals of floats, two or more, of which some end in a zero, as of codes: 401.90."""
    few = typed.dtype.kind == "f" and typed.nunique() <= _TRIED
    if not few or not (ends := text[text.str.fullmatch(r".*\.\d+0")]).size:
        return 0
    return len(ends.iloc[0].rpartition(".")[2])


def _cells(text: pd.Series, form: Form, written: _Written) -> pd.Series:
    """Texts of dates and levels that are texts, else numbers; texts if a cell is no number."""
    dates = isinstance(form, Dates)
    levels = form.codes if isinstance(form, Dates) else form.levels or ()
    texts_of_levels = [level for level in levels if isinstance(level, str)]
    absent = text.isin((*MISSING_NUMBERS, *written.missing)) & ~text.isin(texts_of_levels)
    cells: pd.Series = text.where(~absent)
    if texts_of_levels or dates:
        return cells
    texts = pd.Series(cells.dropna().unique(), dtype=object)
    plain = written.numbers(texts).fillna(texts) if written.says else texts
    try:
        numbers = cells.map(dict(zip(texts, plain.astype(float), strict=True))).astype(np.float64)
    except ValueError:
        return cells.map(dict(zip(texts, plain, strict=True)))
    whole = bool(((numbers % 1 == 0) & (numbers.abs() < 2**53)).all())
    return numbers.astype(np.int64) if whole else numbers


def text_among_numbers(column: pd.Series) -> str | None:
    """Why a column of text seems to be one of numbers: signs, separators and units, or the first
    rows with text beside many numbers, whatever their share; no values."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return None
    if column.dtype.kind == "m":
        return "it holds durations: make numbers of them, such as days"
    known = column.dropna()
    known = known[~known.isin(MISSING_NUMBERS)]
    try:
        codes, distinct = pd.factorize(known)
        texts = pd.Series(distinct, dtype=object).astype(str)
        some = pd.concat([x[:: 1 + len(x) // _LOOKED_AT] for x in (texts, known.astype(str))])
        if some.empty or (_amounts(some)[0] | _loose(some).notna()).mean() < _SOME:
            return None
        amounts, plain, parts = _amounts(texts)
    except (OverflowError, TypeError):  # hundreds of digits, lists: no numbers of this table
        return None
    loose = _loose(texts)
    odd = np.flatnonzero(~amounts[codes])
    most = max(_FEW_TEXTS, amounts.sum() / 10)
    words = ~texts[~amounts].str.contains(r"\d")
    few = (~amounts).sum() <= most < odd.size
    few |= 2 * odd.size < known.size and 2 * words.sum() > words.size
    if odd.size >= (1 - _MOSTLY) * known.size and not (few and amounts.sum() > FEW):
        return _not_in_one_way(column.name, texts, loose, codes)
    rows = ", ".join(f"{known.index[place]:,}" for place in odd[:3])
    more = f" and {odd.size - 3:,} more" if odd.size > 3 else ""
    beside = f"text in row {rows}{more} (counted from 0 below the header)"
    signed = texts.str.match(r"\+\d+[.,]\d")  # +41 is a code, +3.5 is none
    signs = not plain[amounts].all() or signed.sum() > FEW
    if signs and loose.isna().any():
        why = _with_signs(texts[amounts], parts[amounts])
        return f"{why}; it has {beside}, too" if why and odd.size else why
    if signs or not odd.size or _as_written(texts[plain].reset_index(drop=True)) is None:
        return _not_in_one_way(column.name, texts, loose, codes)
    top = "" if words.all() else "; answers such as 90+ can be numbers that types declare as codes"
    return (
        f"it holds numbers, but {beside}, and is read as text: mend these cells, or leave them "
        f"empty; if they stand for missing numbers, missing= reads them so{top}"
    )


def _not_in_one_way(
    name: Any, texts: pd.Series, loose: pd.Series, codes: npt.NDArray[np.intp]
) -> str | None:
    """Why texts are numbers that no program writes, and what reads them; None of codes: of one
    width, all with +, with a 0 before their digits, or larger than floats."""
    held, numbers = texts[loose.notna()], loose.dropna()
    few = held.size <= FEW or loose.notna().to_numpy()[codes].mean() < _MOSTLY
    if few or held.str.len().nunique() == 1 or (numbers.abs() >= _LARGEST).sum() > _FEW_TEXTS:
        return None
    if held.str.startswith("+").all() or held.str.match(r"\s*[+-]?0\d").any():
        return None
    return (
        f"it holds numbers that are not written in one way, and is read as text: numbers={name} "
        "reads them"
    )


def _amounts(texts: pd.Series) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], pd.DataFrame]:
    """Which texts are numbers but for signs, separators and units, which are so without these, and
    the groups of `_AMOUNT`."""
    bare = texts.str.replace(_ABOUT, r"\2", regex=True)
    many = texts.size > FEW and (bare != texts).sum() > _FEW_TEXTS  # few are answers: 90+
    parts = (bare if many else texts).str.extract(_AMOUNT)
    plain = pd.to_numeric(texts, errors="coerce").notna().to_numpy(dtype=bool)
    return plain | parts[3].notna().to_numpy(dtype=bool), plain, parts.fillna("")


def _with_signs(texts: pd.Series, parts: pd.DataFrame) -> str | None:
    """Why different texts seem to be numbers with signs, separators or units, and what reads them,
    or how they are to be written."""
    held = "it holds numbers with signs, separators or units, and is read as text:"
    after = parts[4].str.strip(".")
    money, units = {*parts[2]} - {""}, {*after} - {"", *_SYMBOLS}
    money |= {*after} & {*_SYMBOLS}
    mixed = len(money) > 1 or len(units) > 1 or bool(units and not after.isin(units).all())
    mixed = mixed or bool(parts[1].eq("+").any())
    if any(re.match(_WORD, unit) for unit in units):  # 180 cm; or codes such as 12a
        letters = len(units) > 1 and all(len(unit) == 1 for unit in units)
        letters = letters and bool(parts[3].str.isdigit().all())
        letters = letters and parts[3].nunique() < _MOSTLY * len(parts)  # no flags of numbers
        if letters or len(units) > _FEW_TEXTS or len(texts) <= FEW * len(units):
            return None
    signs = "+".join(sorted(money | units))
    for decimal, thousands in () if mixed else _WAYS:
        way = _Written(decimal=decimal, thousands=thousands, signs=signs, missing=())
        if way.numbers(texts.head(_TRIED)).notna().all() and way.numbers(texts).notna().all():
            said = {"decimal": decimal.strip("."), "thousands": thousands, "signs": signs}
            given = [f"{name}={mark!r}" if mark == " " else f"{name}={mark}"
                     for name, mark in said.items() if mark]  # fmt: skip
            if not given:  # blanks beside them
                return None
            other = replace(way, decimal=",", thousands="").numbers(texts)
            both = thousands == "," and other.notna().all()
            more = "; decimal=, if commas are decimal" if both else ""
            return f"{held} {' and '.join(given)} read{'s' * (len(given) == 1)} them{more}"
    if parts[0].ne("").any() or parts[5].ne("").any() or parts[1].isin(["−", "–"]).any():
        return f"{held} it has numbers below 0 as (5), 5- or with another sign: write them as -5"
    return f"{held} write them in one way and one unit, with a point alone"


def marks_among_numbers(text: pd.Series, typed: pd.Series) -> str | None:
    """What is said of marks such as ``.`` taken for missing numbers, and of ``NA`` among texts."""
    if not pd.api.types.is_numeric_dtype(typed.dtype):
        said = "'NA' is taken for a missing value: a level only if types declare it"
        return said if (text == "NA").any() else None
    marked = text[text.isin(MARKS)]
    marks = [mark for mark in MARKS if (marked == mark).any()] if len(marked) else []
    pattern, held = rf"{_THOUSANDS}|[1-9]\d{{0,2}}", text.head(_LOOKED_AT)
    alike = held[~held.isin(MISSING_NUMBERS)].str.fullmatch(pattern).all()
    held = pd.Series(text[~text.isin(MISSING_NUMBERS)].unique() if alike else [], dtype=object)
    points = held.str.contains(".", regex=False)
    if points.sum() > FEW and held.str.fullmatch(pattern).all():
        return (
            "its points are taken as decimal, with three decimals in each number: if they stand "
            "between thousands, thousands=. and decimal=, read them so"
        )
    return f"{', '.join(map(repr, marks))} is taken for a missing number" if marks else None
