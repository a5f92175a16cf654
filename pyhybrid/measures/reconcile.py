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

from pyhybrid.core.checks import FloatArray, check_each, did_you_mean, not_a_frame
from pyhybrid.core.dates import DATE, MOST_DATES, TIME, date_format, plausible, read_dates
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.estimates import average_one

_DATA = "the data"
_MOSTLY = 0.9  # of a column's entries are dates
_MISSING_TEXT = ("", "NA", "NaN", "nan")
_LARGEST = 1e15  # of a weight: beyond it sums and shares leave what floats can hold


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """Data (confidential) and m synthetic sets with the same columns and levels: numbers and days
    since 1970-01-01 as float64, all else categorical; and their 1 + m design weights (n,)."""

    real: pd.DataFrame
    synthetic: tuple[pd.DataFrame, ...]
    names: tuple[str, ...]
    weights: tuple[FloatArray, ...]

    @property
    def all(self) -> tuple[pd.DataFrame, ...]:
        """The data and each set."""
        return (self.real, *self.synthetic)

    @property
    def mean_weights(self) -> list[FloatArray]:
        """The weights over their mean: a set without weights counts as much as one with."""
        return [average_one(weights) for weights in self.weights]

    def is_number(self, column: str) -> bool:
        """Whether the column holds numbers or dates."""
        return not isinstance(self.real[column].dtype, pd.CategoricalDtype)

    def numeric_keys(self, columns: Sequence[str], table: pd.DataFrame) -> FloatArray:
        """Values or level codes of columns for matching, then, of columns with missing values in
        some table, whether the value is missing."""
        values, missing = [], []
        for column in columns:
            numbers = table[column] if self.is_number(column) else table[column].cat.codes
            gone = table[column].isna().to_numpy()
            values.append(np.where(gone, 0.0, numbers.to_numpy(dtype=np.float64)))
            if any(other[column].isna().any() for other in self.all):
                missing.append(gone.astype(np.float64))
        return np.column_stack([*values, *missing])


def synthetic_sets(synthetic: Any) -> list[pd.DataFrame]:
    """The sets of one table or a sequence of at least one; anything else is refused."""
    if isinstance(synthetic, pd.DataFrame):
        return [synthetic]
    if not isinstance(synthetic, Sequence) or isinstance(synthetic, str) or not len(synthetic):
        found = type(synthetic).__name__
        raise InvalidInput(
            "synthetic must be a DataFrame or a sequence of at least one, such as "
            f"release.synthetic: found {found}"
        )
    return list(synthetic)


def column_names(names: Any, what: str) -> list[str]:
    """Column names: at least one, each once."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InvalidInput(f"{what} must be a sequence of column names: found {names!r}")
    if len({*names}) < len(names):
        raise InvalidInput(f"{what} must name each column once: found {[*names]}")
    return list(names)


def reconcile_tables(
    real: pd.DataFrame | Tables,
    synthetic: Any = None,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    weights: str | None = None,
    *,
    what: str = "column",
    holdout: Any = None,
) -> Tables:
    """Data and sets brought to the same columns, kinds and levels, or refused by name. A set with
    the column of design weights is weighted by its own; in one without each record counts once. A
    table beside them (`holdout`) comes last among the sets."""
    if isinstance(real, Tables):
        return real
    if weights is not None and not isinstance(weights, str):
        raise InvalidInput(f"weights must name a column: found {type(weights).__name__}")
    sets = synthetic_sets(synthetic)
    tables = {_DATA: real} | {f"synthetic set {k}": table for k, table in enumerate(sets, start=1)}
    if holdout is not None:
        tables["holdout"] = holdout
    for name, table in tables.items():
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
    for option, named in (("weights", [weights] if weights else []), ("categorical", categorical)):
        unknown = sorted({*named} - {*map(str, real.columns)})
        if unknown:
            raise InvalidInput(f"{option} must name columns of the data: {unknown[0]!r} is not one")
    wanted = [c for c in real.columns if c != weights] if columns is None else [*columns]
    if not wanted:
        raise InvalidInput(f"at least one {what} must be named: found none")
    for name, table in tables.items():
        surplus = table.columns.difference(real.columns, sort=False)
        if len(surplus) and columns is None:
            raise InvalidInput(
                f"{name} must have the columns of the data: {surplus[0]!r} is not among them; "
                "drop it or name the columns to use"
            )
        absent = next((column for column in wanted if column not in table), None)
        if absent is not None:
            raise InvalidInput(
                f"{what} {absent!r} must be in {name}, which has "
                f"{', '.join(map(str, table.columns[:20]))}{did_you_mean(absent, table.columns)}"
            )
    read: dict[str, list[pd.Series]] = {}
    for column in wanted:
        values = {name: table[column].reset_index(drop=True) for name, table in tables.items()}
        read[str(column)] = _read_column(column, values, as_codes=column in categorical)
    data, *others = (pd.DataFrame({c: read[c][k] for c in read}) for k in range(len(tables)))
    survey = tuple(_weights_of(table, weights, name) for name, table in tables.items())
    return Tables(real=data, synthetic=(*others,), names=(*tables,)[1:], weights=survey)


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


def survey_weights(column: pd.Series, name: str, *, zero: bool = False) -> FloatArray:
    """Members of the population that each record stands for (n,), each from 1e-15 to 1e15, or 0 if
    that may be; others are refused."""
    try:
        weight = np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise InvalidInput(f"survey weights {name!r} must be numbers") from None
    allowed = (weight >= 0) & weight.any() if zero else weight > 0
    wrong = np.count_nonzero(~(np.isfinite(weight) & allowed))
    if wrong:
        raise InvalidInput(
            f"survey weights {name!r} must be {'0 or more, not all 0,' if zero else 'above 0'} and "
            f"not missing: {wrong} of {weight.size} are not; leave these records out"
        )
    if weight.size and (weight.max() > _LARGEST or weight[weight > 0].min() < 1 / _LARGEST):
        raise InvalidInput(f"survey weights {name!r} must be from {1 / _LARGEST:g} to {_LARGEST:g}")
    return weight


def _weights_of(table: pd.DataFrame, weights: str | None, name: str) -> FloatArray:
    if weights is None or weights not in table.columns:
        return np.ones(len(table))
    try:
        return survey_weights(table[weights], weights)
    except InvalidInput as error:
        raise InvalidInput(f"{error} (in {name})") from None


def _read_column(
    column: str, tables: Mapping[str, pd.Series], *, as_codes: bool
) -> list[pd.Series]:
    """The column of the data and of each set, numbers or categories alike in all."""
    empty = next((name for name, values in tables.items() if _blank(values).isna().all()), None)
    if empty is not None:
        raise InvalidInput(f"column {column!r} must have values: all are missing in {empty}")
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
    cells = _blank(values)
    typed = form in (DATE, TIME)
    if typed and not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        texts = cells.mask(cells.map(pd.api.types.is_number))
        cells = pd.to_datetime(texts, utc=True, format="ISO8601", errors="coerce")
    times = read_dates(cells, None if typed else form)
    if times.notna().sum() < _MOSTLY * _blank(values).notna().sum():
        raise InvalidInput(f"column {column!r} must hold dates in {name}, as it does in the data")
    times = times.where(plausible(times) | ("%Y" not in form and "%" in form))
    days = (times - pd.Timestamp(0)) / pd.Timedelta(days=1)
    read: pd.Series = pd.Series(days.to_numpy(dtype=np.float64))
    return read


def _numbers(column: str, values: pd.Series, name: str) -> pd.Series:
    parsed = _parsed(values)
    if parsed is None or pd.api.types.is_datetime64_any_dtype(values):
        raise InvalidInput(
            f"column {column!r} must be numeric in {name}, as it is in the data: found other; "
            "convert it, or declare the column categorical"
        )
    finite = ~np.isinf(parsed.to_numpy())
    check_each(finite, f"column {column!r} must be finite: row {{}} of {name} is not")
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
    read = []
    for name, values in tables.items():
        text = _blank(values).map(_label, na_action="ignore")
        unseen = np.flatnonzero(text.notna() & ~text.isin(levels))
        if unseen.size:
            raise InvalidInput(
                f"column {column!r} must have the categories of the data: row {unseen[0]} of "
                f"{name}, counted from 0, has another"
            )
        read.append(text.astype(pd.CategoricalDtype(levels)))
    return read


def _levels(values: pd.Series) -> list[str]:
    """Levels that occur in the data, in their order: as declared, by size of numbers, by text."""
    levels = [*dict.fromkeys(_blank(values).dropna())]
    if isinstance(values.dtype, pd.CategoricalDtype):
        declared = {level: k for k, level in enumerate(values.dtype.categories)}
        levels.sort(key=declared.__getitem__)
    else:
        try:
            levels.sort()
        except TypeError:
            levels.sort(key=str)
    return list(dict.fromkeys(map(_label, levels)))


def _label(value: Any) -> str:
    """Text of a level: 3 for 3.0, True for numpy's True."""
    number = isinstance(value, (float, np.floating))
    return str(int(value)) if number and float(value).is_integer() else str(value)
