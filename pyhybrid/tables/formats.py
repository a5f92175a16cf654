"""Files of other forms as texts: dialects of CSV, Excel, SPSS and Stata.

Whatever a file is, its cells are texts afterwards, as a CSV file has them, so that `read` decides
for all forms alike what is a number and what a code. Labels of SPSS and Stata take the place of
values where all values of a column have one; values that the file calls missing are codes.
"""

from __future__ import annotations

import csv
import importlib
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_names
from pyhybrid.core.dates import text_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import shortest
from pyhybrid.models.formula.values import column_like, with_columns
from pyhybrid.sources.dialects import check_header, dialect_of, opened
from pyhybrid.sources.source import in_pandas

FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".xlsx": "excel", ".xls": "excel", ".sav": "spss", ".zsav": "spss", ".dta": "stata",
}  # fmt: skip
"""What a file is, by how its name ends; ``.gz`` may follow for texts."""
_NUMBERS = (int, float, np.integer, np.floating)
_NEEDS = {"excel": "openpyxl", "spss": "pyreadstat", "stata": "pyreadstat"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Texts:
    """Cells as texts, empty where there is none, shape (n, columns); remarks on the whole file; by
    column the codes of answers that are no amounts, as the file declares them."""

    cells: pd.DataFrame
    remarks: tuple[str, ...] = ()
    codes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def format_of(path: str | Path) -> str:
    """ "csv", "parquet", "excel", "spss" or "stata"; refused if it is none, or not there."""
    if not Path(path).is_file():
        raise InvalidInput(f"data file {path} must exist and be a file: it does not")
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = FORMATS.get("".join(suffixes[-2:-1] if packed else suffixes[-1:]))
    if "".join(suffixes[-1:]) in (".duckdb", ".db", ".sqlite"):
        raise InvalidInput(f"a table of a database must be named, as in duckdb://{path}::TABLE")
    if kind is None or (packed and kind != "csv"):
        raise InvalidInput(
            f"data file {path} must end in {', '.join(FORMATS)}, or .csv.gz; save it as CSV"
        )
    library = _NEEDS.get(kind)
    if library is not None:
        try:
            importlib.import_module(library)
        except ImportError:
            raise InvalidInput(
                f"data file {path} needs {library}: pip install 'pyhybrid[files]', or save it as "
                "CSV"
            ) from None
    return kind


def read_texts(
    path: Path, kind: str, *, separator: str | None, encoding: str, sheet: str | None,
    declared: Mapping[str, Form],
) -> Texts:  # fmt: skip
    """The cells of a file that is no Parquet file. With `declared` forms of its columns, how they
    are read is told by these and by the header, not by what records hold."""
    if kind == "excel":
        return _read_excel(path, sheet, declared)
    if kind in ("spss", "stata"):
        return _read_labelled(path, kind, declared)
    return _read_csv(path, separator, encoding, declared)


def _read_csv(path: Path, separator: str | None, encoding: str, names: Mapping[str, Form]) -> Texts:
    encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    dialect = dialect_of(path, encoding, separator, names)
    with opened(path, encoding) as file:
        lines = dialect.lines(file)  # pandas fills and cuts lines in silence
        header: list[str] = next((cells for cells in lines if cells), [])
        for cells in lines:
            if cells and len(cells) != len(header):
                raise pd.errors.ParserError(
                    f"line {lines.line_num + dialect.first_line} has {len(cells)}, the first one "
                    f"{len(header)}"
                )
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "encoding": encoding,
                               "index_col": False, **dialect.options}  # fmt: skip
    options["skip_blank_lines"] = len(header) > 1  # of one column it is a record's empty cell
    table: pd.DataFrame = pd.read_csv(path, **options)
    check_header(path, header, table, names)
    return Texts(cells=table, remarks=() if separator else dialect.remarks)


def read_parquet(path: Path) -> pd.DataFrame:
    """The columns of a Parquet file, whole numbers as such where some are missing."""
    from pyarrow import parquet

    check_names(parquet.read_schema(path).names, [])
    frame = in_pandas(parquet.ParquetFile(path).read())
    check_names(frame.columns, frame.index.names)
    # 0.1, not 0.09997559
    short = {name: column_like(c.to_numpy().astype(str).astype(np.float64), c)
             for name, c in frame.items() if c.dtype == np.float16}  # fmt: skip
    frame = with_columns(frame, short)
    labels: bool = all(name is None for name in frame.index.names)
    table: pd.DataFrame = frame.reset_index(drop=labels)
    return table


def reason_of(error: Exception, path: Path) -> str:
    """Why a file cannot be read, without what its reader may quote of it."""
    if isinstance(error, UnicodeError):
        with path.open("rb") as file:
            start = file.read(4)
        if start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in start:
            return "it is UTF-16, not UTF-8: encoding='utf-16' reads it"
        at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        return f"it is not UTF-8{at}: encoding='cp1252' reads files of older Windows, or 'cp1250'"
    if isinstance(error, LookupError) and "encoding" in str(error):
        return "encoding must be one that Python knows, such as 'cp1252' or 'utf-16'"
    if isinstance(error, pd.errors.EmptyDataError):
        return "it is empty"
    line = re.search(r"line (\d+)( has \d+, the first one (\d+))?", str(error))
    if isinstance(error, pd.errors.ParserError):
        rule = "every line must have as many cells as the first one, which has the names of columns"
        title = "; a title, or comments, above the names must go" if line and line[3] == "1" else ""
        return f"{rule}: {line[0] if line[2] else line[0] + ' has not'}{title}" if line else rule
    if isinstance(error, csv.Error):
        most = f"{csv.field_size_limit():,}"
        return f"a cell has more than {most} characters: is a quotation mark not closed?"
    return "it is damaged, or no table of its type"


def _read_excel(path: Path, sheet: str | None, names: Mapping[str, Form]) -> Texts:
    with pd.ExcelFile(path) as book:
        sheets = [str(name) for name in book.sheet_names]
        if sheet is not None and sheet not in sheets:
            raise InvalidInput(f"sheet must be one of {', '.join(sheets)}: found {sheet!r}")
        sheet_read = sheet or sheets[0]
        table = pd.read_excel(book, sheet_read, header=None, dtype=object, na_filter=False)
        zeros = _zeros_shown(book.book[sheet_read]) if book.engine == "openpyxl" else {}
    header = [] if table.empty else table.iloc[0].map(_text_of).tolist()
    cells = table.iloc[1:].map(_text_of)
    for (row, place), width in zeros.items():
        if row:  # below the header
            cells.at[row, place] = cells.at[row, place].zfill(width)
    named = [name or f"Unnamed: {place}" for place, name in enumerate(header)]  # as of a CSV file
    cells = cells.set_axis(named, axis=1).reset_index(drop=True)
    check_header(path, header, cells, names)
    several = sheet is None and len(sheets) > 1
    remarks = [f"its first sheet of {len(sheets)} is read, {sheets[0]!r}"] if several else []
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            parts = [packed.read(part) for part in packed.namelist() if "worksheets/" in part]
        if any(re.search(rb"</f>(<v ?/>|<v></v>)?</c>", part) for part in parts):
            remarks.append("formulas without stored values are empty: save it in a spreadsheet")
    return Texts(cells=cells, remarks=tuple(remarks))


def _zeros_shown(sheet: Any) -> dict[tuple[int, int], int]:
    """Digits of each whole number whose own format is 00000 or alike, by its row and place."""
    return {
        (row, place): len(cell.number_format)
        for row, cells in enumerate(sheet.iter_rows())
        for place, cell in enumerate(cells)
        if type(cell.value) is int and re.fullmatch("00+", cell.number_format)
    }


def _read_labelled(path: Path, kind: str, declared: Mapping[str, Form]) -> Texts:
    """SPSS and Stata: labels that are declared levels, each cell by itself; of a column without a
    form all, if all its values have one, else codes where labels, or declarations of missing
    values, are beside numbers. Stata's ``.a`` to ``.z`` are missing."""
    import pyreadstat

    read = pyreadstat.read_sav if kind == "spss" else pyreadstat.read_dta
    table, about = read(path, user_missing=True)
    cells, codes = {}, {}
    for name, column in table.items():
        if about.readstat_variable_types.get(name) == "float":  # by the file, not by its values
            short = pd.to_numeric(column, errors="coerce").astype(np.float32)
            column = column.where(short.isna(), shortest(short))
        labels = about.variable_value_labels.get(name, {})
        known = column.dropna()
        unique = len({*labels.values()}) == len(labels)  # else two values would be one level
        every = unique and known.isin([*labels]).all()
        levels = declared[name].levels or () if name in declared else ()
        shown = {v: label for v, label in labels.items() if label in levels or (
            every and name not in declared)}  # fmt: skip
        numeric = about.readstat_variable_types.get(name) != "string"
        values = [*known.unique()]
        absent = [v for v in values if numeric and isinstance(v, str) and v not in shown]
        kept = column.where(~column.isin(absent)).map(lambda v, shown=shown: shown.get(v, v))
        cells[name] = kept.map(_text_of)
        if numeric and not shown:
            numbers = {v for v in values if isinstance(v, _NUMBERS)}
            amounts = numbers - {*labels}  # a label next to one is of an amount: 95 or more
            apart = {v for v in numbers - amounts if amounts and not {v - 1, v + 1} & amounts}
            ranges = about.missing_ranges.get(name, ())
            apart |= {v for v in numbers if any(r["lo"] <= v <= r["hi"] for r in ranges)}
            if inside := sorted(int(v) for v in apart if v % 1 == 0):
                codes[name] = tuple(inside)
    return Texts(cells=pd.DataFrame(cells), codes=codes)


def _text_of(value: Any) -> str:
    """A cell as a CSV file has it: whole numbers without a point, days without a time."""
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, _NUMBERS):  # texts, days, times
        return str(text_of(value))
    return str(int(value)) if value % 1 == 0 and abs(value) < 2**53 else repr(float(value))
