"""Data and synthetic sets brought to one form: columns, dtypes, category levels, missing values.

What can be read in one way only is read so: columns in another order, 3.0 for 3, "3" for 3, True
for "True", a category without its unused levels. What cannot is refused, by the names of column
and set. Values of the data are never part of a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, did_you_mean, not_a_frame
from pyhybrid.core.dates import DATE, MOST_DATES, TIME, date_format, plausible, read_dates
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.estimates import average_one, check_weights
from pyhybrid.measures.survey import survey_weights

_DATA = "the data"
_MOSTLY = 0.9  # of a column's entries are dates
_MISSING_TEXT = ("", "NA", "NaN", "nan")


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """Data (confidential) and m synthetic sets with the same columns and levels: numbers and days
    since 1970-01-01 as float64, all else categorical. `survey_weights` are 1 + m vectors (n,), None
    where all are 1, or empty."""

    real: pd.DataFrame
    synthetic: tuple[pd.DataFrame, ...]
    names: tuple[str, ...]
    survey_weights: tuple[FloatArray | None, ...] = ()

    def weights(self, *, averaged: bool = False) -> list[FloatArray | None]:
        """Design weights of the data and of each set, 1 + m, None where all are 1; with `averaged`
        over their mean, so that a set without weights counts as much as one with."""
        weights = self.survey_weights or [None] * (1 + len(self.synthetic))
        return [average_one(w) if averaged and w is not None else w for w in weights]

    def is_number(self, column: str) -> bool:
        """Whether the column holds numbers or dates."""
        return not isinstance(self.real[column].dtype, pd.CategoricalDtype)

    def numeric_keys(self, columns: Sequence[str], table: pd.DataFrame) -> FloatArray:
        """Values or level codes of columns for matching, then, of columns with missing values in
        some table, whether the value is missing: it equals every other missing value of its column.
        """
        values, missing = [], []
        for column in columns:
            numbers = table[column] if self.is_number(column) else table[column].cat.codes
            gone = table[column].isna().to_numpy()
            values.append(np.where(gone, 0.0, numbers.to_numpy(dtype=np.float64)))
            if any(other[column].isna().any() for other in (self.real, *self.synthetic)):
                missing.append(gone.astype(np.float64))
        return np.column_stack([*values, *missing])


def synthetic_sets(synthetic: Any) -> list[pd.DataFrame]:
    """The sets of one table or a sequence of at least one; anything else is refused."""
    if isinstance(synthetic, pd.DataFrame):
        return [synthetic]
    if not isinstance(synthetic, Sequence) or isinstance(synthetic, str) or not len(synthetic):
        raise InvalidInput(
            "synthetic must be a DataFrame or a sequence of at least one, such as "
            f"release.synthetic: found {type(synthetic).__name__}"
        )
    return list(synthetic)


def column_names(names: Any, what: str) -> list[str]:
    """Column names: at least one, each once."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InvalidInput(f"{what} must be a sequence of column names: found {names!r}")
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise InvalidInput(f"{what} must name each column once: {twice[0]!r} is there twice")
    return list(names)


def reconcile_tables(
    real: pd.DataFrame | Tables,
    synthetic: Any = None,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    weights: str | None = None,
    what: str = "column",
) -> Tables:
    """Data and sets brought to the same columns, kinds and levels, or refused by name. A set with
    the column of design weights is weighted by its own; in one without each record counts once."""
    if isinstance(real, Tables):
        return real
    sets = synthetic_sets(synthetic)
    names = tuple(f"synthetic set {number}" for number in range(1, len(sets) + 1))
    tables = dict(zip((_DATA, *names), (real, *sets), strict=True))
    for name, table in tables.items():
        _check_table(table, name)
    read_weights = _read_weights(real, sets, names, weights)
    wanted = _wanted(real, columns, weights)
    _check_columns(tables, wanted, what, whole=columns is None)
    unknown = sorted({*categorical} - {str(c) for c in real.columns})
    if unknown:
        raise InvalidInput(f"categorical must name columns of the data: {unknown[0]!r} is not one")
    read: dict[str, list[pd.Series]] = {}
    for column in wanted:
        values = {name: table[column].reset_index(drop=True) for name, table in tables.items()}
        read[column] = _read_column(column, values, as_codes=column in categorical)
    data, *others = (
        pd.DataFrame({column: parts[number] for column, parts in read.items()})
        for number in range(len(tables))
    )
    return Tables(real=data, synthetic=tuple(others), names=names, survey_weights=read_weights)


def keeps_rows(real: pd.DataFrame, synthetic: pd.DataFrame) -> bool:
    """True if row i of a set looks like a version of row i of the data: as many rows, and some
    column that varies is the same in every row, as partial synthesis leaves those that it keeps."""
    if len(real) != len(synthetic):
        return False
    for column in real.columns.intersection(synthetic.columns):
        true, other = (table[column].astype(str).to_numpy() for table in (real, synthetic))
        if (true == other).all() and (true != true[0]).any():
            return True
    return False


def _wanted(real: pd.DataFrame, columns: Sequence[str] | None, weights: str | None) -> list[str]:
    if columns is not None:
        return list(dict.fromkeys(columns))
    return [str(column) for column in real.columns if column != weights]


def _read_weights(
    real: pd.DataFrame, sets: Sequence[pd.DataFrame], names: Sequence[str], weights: str | None
) -> tuple[FloatArray | None, ...]:
    """Survey weights of the data and of each set, 1 + m; empty without `weights`."""
    if weights is None:
        return ()
    if not isinstance(weights, str):
        raise InvalidInput(
            f"weights must name a column: found {type(weights).__name__}; put weights that are no "
            "column into one"
        )
    if weights not in real.columns:
        raise InvalidInput(f"weights must name a column of the data: {weights!r} is not one")
    read: list[FloatArray | None] = []
    for table, name in zip([real, *sets], [_DATA, *names], strict=True):
        try:
            vector = survey_weights(table[weights], weights) if weights in table.columns else None
            read.append(check_weights(vector, len(table)))
        except InvalidInput as error:
            raise InvalidInput(f"{error} (in {name})") from None
    return tuple(read)


def _check_table(table: Any, name: str) -> None:
    if not isinstance(table, pd.DataFrame):
        raise not_a_frame(table, name)
    if len(table) < 2 or table.shape[1] == 0:
        raise InvalidInput(
            f"{name} must have columns and at least 2 rows: found {len(table)} rows and "
            f"{table.shape[1]} columns"
        )
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise InvalidInput(f"column names must be unique: {twice[0]!r} is twice in {name}")


def _check_columns(
    tables: Mapping[str, pd.DataFrame], wanted: Sequence[str], what: str, *, whole: bool
) -> None:
    """Refuse a column that a table has not or, of `whole` tables, that the data have not."""
    known = tables[_DATA].columns
    for name, table in tables.items():
        surplus = [column for column in table.columns if column not in known]
        if whole and surplus:
            raise InvalidInput(
                f"{name} must have the columns of the data: {surplus[0]!r} is not among them; "
                "drop it or name the columns to use"
            )
    if not wanted:
        raise InvalidInput(f"at least one {what} must be named: found none")
    for column in wanted:
        for name, table in tables.items():
            if column not in table.columns:
                shown = ", ".join(map(str, table.columns[:20]))
                raise InvalidInput(
                    f"{what} {column!r} must be in {name}, which has {shown}"
                    f"{did_you_mean(column, table.columns)}"
                )


def _read_column(
    column: str, tables: Mapping[str, pd.Series], *, as_codes: bool
) -> list[pd.Series]:
    """The column of the data and of each set, numbers or categories alike in all."""
    for name, values in tables.items():
        if _blank(values).isna().all():
            raise InvalidInput(f"column {column!r} must have values: all are missing in {name}")
    data = tables[_DATA]
    if as_codes or not is_numeric(data):
        return _read_categories(column, tables)
    form = _format_of_days(data)
    if form is not None:
        return [_days(column, values, name, form) for name, values in tables.items()]
    return [_numbers(column, values, name) for name, values in tables.items()]


def _format_of_days(values: pd.Series) -> str | None:
    """Format of dates, and of texts and numbers that are many different ones; None of others."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return TIME
    try:
        many = values.nunique() > MOST_DATES
    except TypeError:  # lists and the like
        return None
    return date_format(_blank(values)) if many else None


def is_numeric(values: pd.Series) -> bool:
    """Whether a column holds numbers or dates, rather than categories."""
    if _format_of_days(values) is not None:
        return True
    if isinstance(values.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(values):
        return False
    if pd.api.types.is_numeric_dtype(values):
        return not pd.api.types.is_complex_dtype(values)
    present = values.dropna()  # objects: Decimal, Python numbers
    return not any(isinstance(v, (str, bool)) for v in present) and _parsed(present) is not None


def _days(column: str, values: pd.Series, name: str, form: str) -> pd.Series:
    """Dates as days since 1970-01-01, those in ISO 8601 beside typed ones, too; what stands for
    something else, such as 9999-12-31, is missing."""
    cells, other = _blank(values), InvalidInput(
        f"column {column!r} must hold dates in {name}, as it does in the data"
    )  # fmt: skip
    if form in (DATE, TIME) and not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        try:
            if pd.api.types.is_numeric_dtype(values):
                raise TypeError
            cells = pd.to_datetime(cells, utc=True, format="ISO8601").dt.tz_localize(None)
        except (ValueError, TypeError):
            raise other from None
    times = read_dates(cells, None if form in (DATE, TIME) else form)
    if times.notna().sum() < _MOSTLY * cells.notna().sum():
        raise other
    times = times.where(plausible(times) | ("%Y" not in form and "%" in form))
    days = (times - pd.Timestamp(0)) / pd.Timedelta(days=1)
    from_days: pd.Series = pd.Series(days.to_numpy(dtype=np.float64))
    return from_days


def _numbers(column: str, values: pd.Series, name: str) -> pd.Series:
    parsed = _parsed(values)
    if parsed is None or pd.api.types.is_datetime64_any_dtype(values):
        raise InvalidInput(
            f"column {column!r} must be numeric in {name}, as it is in the data: found other; "
            "convert it, or declare the column categorical"
        )
    infinite = np.flatnonzero(np.isinf(parsed.to_numpy()))
    if infinite.size:
        raise InvalidInput(f"column {column!r} must be finite: row {infinite[0]} of {name} is not")
    return parsed


def _parsed(values: pd.Series) -> pd.Series | None:
    """Values as float64, or None if one of them is no number."""
    try:
        numbers = pd.to_numeric(_blank(values)).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, OverflowError):  # Python integers beyond any float, too
        return None
    parsed: pd.Series = pd.Series(numbers)
    return parsed


def _blank(values: pd.Series) -> pd.Series:
    """The values, with text that stands for a missing one as missing."""
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values):
        return values
    plain: pd.Series = values.astype(object)
    blank: pd.Series = plain.where(~plain.isin(_MISSING_TEXT))
    return blank


def _read_categories(column: str, tables: Mapping[str, pd.Series]) -> list[pd.Series]:
    try:
        levels = _levels(tables[_DATA])
    except TypeError:  # lists and the like
        raise InvalidInput(
            f"column {column!r} must hold numbers, text, dates or categories: found other objects"
        ) from None
    kind = pd.CategoricalDtype(levels)
    read = []
    for name, values in tables.items():
        text = _blank(values).map(_label, na_action="ignore")
        unseen = sorted(set(text.dropna()) - set(levels))
        if unseen:
            row = int(np.flatnonzero(text.isin(unseen))[0])
            raise InvalidInput(
                f"column {column!r} must have the categories of the data: row {row} of {name}, "
                "counted from 0, has another"
            )
        read.append(text.astype(kind))
    return read


def _levels(values: pd.Series) -> list[str]:
    """Levels that occur in the data, in their order: as declared, by size of numbers, by text."""
    present = _blank(values).dropna()
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = set(present)
        return [_label(level) for level in values.dtype.categories if level in used]
    distinct = list(dict.fromkeys(present))
    try:
        distinct = sorted(distinct)
    except TypeError:
        distinct = sorted(distinct, key=str)
    return list(dict.fromkeys(map(_label, distinct)))


def _label(value: Any) -> str:
    """Text of a level: 3 for 3.0, True for numpy's True."""
    number = isinstance(value, (float, np.floating))
    return str(int(value)) if number and float(value).is_integer() else str(value)
