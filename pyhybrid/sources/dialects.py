"""How a CSV file is written: what is between its cells and around them, and what its first line is.

One file and a folder of files are read alike. A file whose lines fit two ways, or none, is refused:
a column of whole records would be released.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput

MISSING_LEVELS = ("", "NA")
"""Cells that are taken for missing among texts, unless they are declared levels."""
MARKS = (".", "-", "--", "?", "N/A", "n/a", "#N/A", "null", "NULL", "None")
MISSING_NUMBERS = (*MISSING_LEVELS, "NaN", "nan", *MARKS)
"""Cells that are taken for missing among numbers and dates, and where levels are declared."""
_SEPARATORS, _NO_MARKS = ",;\t|^~", "\"'._-()[]{}%$€?,"
_SNIFFED, _AGREE = 65_536, 0.9  # characters that are looked at; share of lines
_ROWS_OF_HEADER = 1000
_DATE = re.compile(
    r"\d{4}([-./])\d\d?\1\d\d?\D?.*|\d\d?([-./])\d\d?\2\d{2,4}(\D.*)?|\d\d?:\d\d(:\d\d)?|"
    r"\d\d?[-. ]+[^\W\d]{3,9}[-., ]+\d{2,4}|[^\W\d]{3,9}\.? \d\d?, \d{4}"
)
_YEAR = re.compile(r"(1[5-9]|20|21)\d\d")
_NUMBER = re.compile(r"[$€£]?\s*[+-]?\s*[$€£]?\d[\d.,'’\s]*[%€]?")
_EXACT = re.compile(r"\D*\d+[.,]\d+\D*|\D*\d{1,3}([.,'’]\d{3})+([.,]\d+)?\D*")
_LONG = re.compile(r"\+?(\d[\s./-]?){7,}|[0-9a-fA-F-]{16,}")
_MAIL = re.compile(r"\S+@\S+\.\w+")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """What separates cells, is around them, and whether a line ``sep=;`` stands above the header,
    and blanks after separators."""

    separator: str
    quote: str = '"'
    first_line: bool = False
    blanks: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Of pandas."""
        return {"sep": self.separator, "quotechar": self.quote, "skiprows": int(self.first_line),
                "skipinitialspace": self.blanks}  # fmt: skip

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was taken for granted, none of a file with commas."""
        named = {"\t": "tabs"}.get(self.separator, repr(self.separator))
        said = {
            f"its cells are taken as separated by {named}": self.separator != ",",
            "its cells are taken as quoted by '": self.quote == "'",
            "blanks after separators are left out": self.blanks,
        }
        return tuple(text for text, holds in said.items() if holds)

    def lines(self, file: IO[str]) -> Any:
        """Cells of each line, from the header on."""
        if self.first_line:
            next(file)
        return csv.reader(file, delimiter=self.separator, quotechar=self.quote,
                          skipinitialspace=self.blanks)  # fmt: skip


def opened(path: Path, encoding: str) -> IO[str]:
    """A file of text, packed or not."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open(encoding=encoding, newline="")


def dialect_of(
    path: Path, encoding: str, separator: str | None = None, names: Collection[str] = ()
) -> Dialect:
    """The dialect that the lines of a file agree on, with a `separator` that its owner gives; with
    declared `names` the mark between these in the header, in which no record has a say."""
    with opened(path, encoding) as file:
        start = file.read(_SNIFFED)
    if "\0" in start:
        way = "utf-16-be" if start[0] == "\0" else "utf-16-le"
        wide = start.count("\0") > 0.2 * len(start)
        how = f"it is UTF-16: encoding={way!r} reads it" if wide else "mend it"
        raise InvalidInput(f"data file {path} must be text without bytes of 0: {how}")
    if re.search(r'(^|[,;\t|])"[^"\n]*\\"[^\s,;|"]', start, re.MULTILINE):
        raise InvalidInput(
            f'data file {path} must have quotation marks within cells doubled, "": it has \\"; '
            "write it anew without escapes"
        )
    told = re.match(r"\"?sep=(.)\"?\r?\n", start)
    if told:
        start, separator = start[told.end() :], separator or told[1]
    lines = [line for line in io.StringIO(start, newline="") if line.strip()]
    lines = lines[:-1] if len(start) >= _SNIFFED - 10 and len(lines) > 2 else lines
    header = lines[0].strip() if lines else ""
    quote = "'" if re.fullmatch(r"'[^']*'(.?'[^']*')*", header) else '"'
    headers = {mark: next(csv.reader(lines, delimiter=mark, quotechar=quote), [])
               for mark in _SEPARATORS}  # fmt: skip
    held = {mark: len({*map(str.strip, cells)} & {*names}) for mark, cells in headers.items()}
    told_by_names = max(held, key=lambda mark: held[mark]) if any(held.values()) else None
    taken = separator or told_by_names or _separator(path, lines, quote)
    cells = next(csv.reader(lines, delimiter=taken, quotechar=quote), [])
    blanks = len(cells) > 1 and all(cell.startswith(" ") for cell in cells[1:])
    return Dialect(separator=taken, quote=quote, first_line=bool(told), blanks=blanks)


def _separator(path: Path, lines: list[str], quote: str) -> str:
    """Of the marks as frequent in 9 of 10 lines as in the header, that which makes most cells."""
    cells = {mark: _cells(lines, mark, quote) for mark in _SEPARATORS}
    taken = max(cells, key=lambda mark: cells[mark])
    rivals = [mark for mark in _SEPARATORS[1:] if cells[mark] > 1]
    if cells[taken] == 1:
        bare = [line.replace(quote, "").strip() for line in lines]
        held = {mark for mark in "".join(bare[:1]) if not mark.isalnum()} - {*_NO_MARKS}
        for mark in sorted(held):
            parts = [len(line.split(None if mark == " " else mark)) for line in bare]
            if len(bare) > 2 and parts.count(parts[0]) >= _AGREE * len(parts):
                rivals.append(mark)
    if taken == "," and rivals:
        marks = ", ".join(map(repr, [",", *rivals]))
        raise InvalidInput(
            f"data file {path} must say what is between its cells: all lines fit several marks, "
            f"{marks}; separator= says which"
        )
    return taken


def _cells(lines: list[str], mark: str, quote: str) -> int:
    """Cells of the header, 1 if other lines have another number of them."""
    counts = [len(cells) for cells in csv.reader(lines, delimiter=mark, quotechar=quote)]
    alike = sum(count == counts[0] for count in counts) if counts else 0
    return counts[0] if alike >= max(2, _AGREE * len(counts)) else 1


def header_of(
    path: Path, dialect: Dialect, encoding: str, names: Collection[str] = ()
) -> list[str]:
    """Names of columns, which must not look like a record if none of the `names` is there."""
    with opened(path, encoding) as file:
        header: list[str] = next((cells for cells in dialect.lines(file) if cells), [])
    options = {**dialect.options, "dtype": str, "keep_default_na": False, "encoding": encoding}
    rows = pd.read_csv(path, index_col=False, nrows=_ROWS_OF_HEADER, **options)
    check_header(path, header, rows, names)
    return header


def check_header(
    path: Path, header: list[str], rows: pd.DataFrame, names: Collection[str] = ()
) -> None:
    """Refuse a first line that looks like a record: one of its cells is a date, an amount, an
    e-mail address or a long number as all cells below it, or half of its cells are numbers, but for
    years, or one of several values of their columns; not where declared `names` are in it, so that
    no record has a say. Then names must be unique; no cell is said."""
    alike, sure = 0, False
    for place, name in enumerate(text.strip() for text in header):
        held = {str(text).strip() for text in rows.iloc[:_ROWS_OF_HEADER, place]} - {""}
        number = _NUMBER.fullmatch(name) and not _YEAR.fullmatch(name)
        for form in (_DATE, _LONG, _MAIL):
            sure |= bool(held and form.fullmatch(name) and all(map(form.fullmatch, held)))
        if number and _EXACT.fullmatch(name):  # no question 1.1 with answers 1 to 5
            exact = sum(_EXACT.fullmatch(text) is not None for text in held)
            sure |= bool(2 * exact > len(held) and all(map(_NUMBER.fullmatch, held)))
        alike += bool(number or (name in held and len(held) > 1))
    if not {*header} & {*names} and (sure or (alike and 2 * alike >= len(header))):
        raise InvalidInput(
            f"data file {path} must have the names of its columns in its first line: it looks like "
            "a record, with numbers, dates or values of their columns; write a line with names "
            "above it; if these are the names, change some, or declare types for them"
        )
    first: dict[str, int] = {}
    for place, name in enumerate(header, start=1):
        if first.setdefault(name, place) != place:
            empty = "" if name else ": both are empty; a title above the names must go"
            raise InvalidInput(
                f"column names must be unique: those of columns {first[name]} and {place} of data "
                f"file {path} are the same{empty}"
            )
