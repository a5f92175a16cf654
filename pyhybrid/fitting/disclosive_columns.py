"""Columns that would be published unchanged and need a decision first.

Columns that are not synthesized are published. This module looks for those that look like names,
identifiers or free text, and for those that are a function of a synthesized column, or it of them,
also of several: a total of its parts, a share of two amounts. The synthesized values could be
inferred. What is found is named with a reason, never with a value.
It is a heuristic: it can be wrong both ways, and the data owner decides.

Relations are first looked for in a sample of rows, so that ten thousand columns take seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln, pdtr

from pyhybrid.core.checks import BoolArray, FloatArray, IntArray
from pyhybrid.core.dates import date_format, read_dates
from pyhybrid.models.formula.values import is_number

_LOG_CHANCE = math.log(1e-6)  # a relation that chance would show less often than this
_SAMPLE, _CELLS = 2000, 4_000_000
_FIRST_DATE = 100_000  # of months and days that are written as whole numbers, below it
_FEWEST = 10  # rows that anything can be said of
_WORDS = 4.0  # in a text that is free
_DISTINCT, _BY_CHANCE = 0.95, 0.05  # of values, in an identifier that two rows may share
_SHARED, _MOST = 3, 0.5  # rows that share an identifier at most, in so many of all
_AMOUNT = r"[^\w.,]*(?!0\d)(?:\d+|\d{1,3}(?:[.,'’_\s]\d{3})+)(?:[.,]\d+)?[^\w.,]*"
_PERSONS = "it may identify persons with several rows each, which only a unit protects"
_MOST_CODES = 50
_NAMED = re.compile(
    r"(^|[_\W])(sur|first|last|given|family|full|middle|maiden|user)?_?names?($|[_\W])|e_?mail|"
    r"phone|address|street|passport|iban|(^|[_\W])(ssn|tel|fax)($|[_\W])",
    re.IGNORECASE,
)
_EVEN = 5  # times the mean: rows of a person at most
_AREAS = 30  # units up to which these are no persons, if they are not named so
_NUMBER, _START = r"_?(id|n[or]|num(ber|mer)?|code|key)", r"(^|[_\W])"
_OF = r"(p|pa?t|hh|case|user|u?subj?|pers)?_?"
_WHO = (
    rf"{_START}(person|patient|subject|respondent|participant|customer|client|household|employee|"
    r"pupil|student|identifier|member|versichert|kunde)(s|e?n)?"
)
_IDENTIFIED = re.compile(
    rf"{_START}{_OF}(id|serial)({_NUMBER})?$|{_WHO}{_NUMBER}$|(?-i:[a-z\d]I[dD]$)|"
    rf"(\w[denstwy]|claim|order|emp|resp|rec)id$|{_START}({_OF}(ids?|u?uid|guid)|identifier|mrn|"
    r"(case|chart)_?no|bsn|cpr|lop_?nr|nir|nss|pnr|ppn)($|[_\W])",  # no amount_paid, lipid, grid
    re.IGNORECASE,
)
_REPEATED = re.compile(rf"{_IDENTIFIED.pattern}|{_WHO}$", re.IGNORECASE)
_TIME = re.compile(
    r"year|month|quarter|week|day|date|time|wave|round|period|visit|trial|^(t|yr|mon|qtr)$", re.I
)
_LOOKED_AT = 40  # columns, each with so many others


def exposed_columns(table: pd.DataFrame, synthesized: Collection[str]) -> dict[str, str]:
    """Reason by column, for the columns of the confidential table that need a decision.

    In the order of the columns; row labels, if they are texts or have a name, under the name of the
    index, or "index"."""
    n = len(table)
    if n < _FEWEST:
        return {}
    others = [place for place, name in enumerate(table.columns) if str(name) not in synthesized]
    # a sample, the same for the same table: about 2000 rows, fewer of a wide table
    size = min(n, max(200, min(_SAMPLE, _CELLS // max(1, len(others)))))
    rows = np.sort(np.random.default_rng(0).choice(n, size=size, replace=False))
    asked = synthesized if others or not isinstance(table.index, pd.RangeIndex) else ()
    truths = {name: _truth(table[name]) for name in asked if name in table.columns}
    reasons = {}
    for place in others:
        name = str(table.columns[place])
        if (reason := _reason(name, table.iloc[:, place], rows, truths)) is not None:
            reasons[name] = reason
    for name in repeated_identifiers(table.iloc[:, others]):
        reasons[name] = _PERSONS
    free = [place for place in others if str(table.columns[place]) not in reasons]
    measured = {str(table.columns[at]): _measured(table.iloc[rows, at]) for at in free if truths}
    held = {name: x for name, x in measured.items() if x is not None}
    for name, truth in truths.items():
        for last, reason in _of_several(name, truth[rows], held).items():
            reasons.setdefault(last, reason)
    for level in range(table.index.nlevels):
        labels = table.index.get_level_values(level)
        said = _is_text(labels.dtype) or labels.name is not None
        if isinstance(labels, pd.RangeIndex) or not said or _only_count(labels):
            continue
        name = str(labels.name or "index")
        if (reason := _reason(name, labels.to_series(), rows, truths)) is not None:
            reasons[name] = reason
    return reasons


def _reason(
    name: str, column: pd.Series, rows: IntArray, truths: Mapping[str, FloatArray]
) -> str | None:
    column = _hashable(column)
    sample = column.iloc[rows]
    if (reason := _looks_like(name, column, sample)) is not None:
        return reason
    text, values = not pd.api.types.is_numeric_dtype(column.dtype), _numbers(sample)
    for truth_name, truth in truths.items():
        if _tells(truth[rows], values, text=text, sample=True) and _tells(
            truth, _numbers(column), text=text
        ):
            whose = f"{truth_name!r}, which is synthesized"
            return f"it is a function of {whose}, or the other way round"
    return None


def repeated_identifiers(table: pd.DataFrame) -> list[str]:
    """Columns that identify persons or households, with several rows of each, of a table whose
    guarantee may be for a row: by their names, or as no two rows share both a value of them and one
    of another column, the times of a panel, where chance would have several do so."""
    found: list[str] = []
    persons: list[IntArray] = []
    codes: dict[str, tuple[IntArray, IntArray]] = {}
    times: dict[str, tuple[IntArray, IntArray]] = {}
    for place, name in enumerate(map(str, table.columns)):
        code, known = pd.factorize(_hashable(table.iloc[:, place]))
        rows = np.bincount(code[code >= 0])
        n, most = int(rows.sum()), rows.max(initial=0)
        if not 1 < rows.size < n:
            continue
        times[name] = code, rows
        if rows.size < _FEWEST or most * rows.size > _EVEN * n:
            continue
        amounts = pd.api.types.is_float_dtype(known) and bool((known != np.floor(known)).any())
        if names_persons(name) and not amounts:
            found.append(name)
            persons.append(code)
        elif rows.size > _AREAS and not (
            _TIME.search(name) or pd.api.types.is_datetime64_any_dtype(known)
        ):
            codes[name] = code, rows
    for name, (code, rows) in [*codes.items()][:_LOOKED_AT]:
        if any(_constant_within(person, code) for person in persons):  # such as age at the start
            continue
        others = [item for item in times.items() if item[0] != name][:_LOOKED_AT]
        if any(
            _never_share(code, rows, *time)
            for other, time in others
            if time[1].size < rows.size or _TIME.search(other)
        ):
            found.append(name)
    return [str(name) for name in table.columns if str(name) in found]


def names_persons(column: str) -> bool:
    """True of the name of a column that identifies persons or households, as names go."""
    return _REPEATED.search(column) is not None


def _never_share(one: IntArray, of_one: IntArray, other: IntArray, of_other: IntArray) -> bool:
    """True if no two rows share a code of both, none missing, unless by chance."""
    n = one.size
    pairs = [float((rows * (rows - 1.0)).sum() / 2) for rows in (of_one, of_other)]
    if pairs[0] * pairs[1] < -_LOG_CHANCE * n * (n - 1) / 2 or min(one.min(), other.min()) < 0:
        return False
    both = one * of_other.size + other
    return all(np.unique(part).size == part.size for part in (both[:_SAMPLE], both))


def _is_text(dtype: Any) -> bool:
    text = pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype)
    return bool(text and not isinstance(dtype, pd.CategoricalDtype))


def _only_count(labels: pd.Index) -> bool:
    """True for one text and running numbers, "row 1", "row 2", ...: they tell the order of rows."""
    parts = labels.astype(str).str.extract(r"^(.*?)(\d+)$", expand=True)
    if parts.isna().to_numpy().any() or parts[0].nunique() > 1:
        return False
    return bool((np.diff(parts[1].astype(np.float64)) == 1).all())


@np.errstate(over="ignore", invalid="ignore")  # of numbers near the ends of floats, and beyond
def _looks_like(name: str, column: pd.Series, sample: pd.Series) -> str | None:
    dtype = column.dtype
    times = dtype.kind in "mM" or isinstance(dtype, pd.DatetimeTZDtype)  # texts in a CSV file
    if times or isinstance(dtype, pd.CategoricalDtype) or _is_text(dtype):
        return _text_looks_like(name, column, sample)
    if not (pd.api.types.is_integer_dtype(dtype) or pd.api.types.is_float_dtype(dtype)):
        return None
    numbers = sample.dropna().to_numpy(dtype=np.float64)
    if numbers.size < min(_FEWEST, len(sample)) or (numbers % 1 != 0).any():
        return None
    if _IDENTIFIED.search(name) and np.unique(numbers).size > 0.1 * numbers.size:
        return "its name suggests an identifier"
    return _numbered(name, column.dropna()) if _shared_by_few(numbers) else None


def _numbered(name: str, column: pd.Series) -> str | None:
    """Why whole numbers may be an identifier: long ones that are not rounded, or fewer that two
    rows share than by chance, which is about n^2 / 2R pairs of n numbers within a range R."""
    numbers = column.to_numpy(dtype=np.float64)
    if numbers.size < _FEWEST or (numbers % 1 != 0).any() or not _shared_by_few(numbers):
        return None
    digits = np.floor(np.log10(np.maximum(np.abs(numbers), 1)))
    long_numbers = digits.min() == digits.max() >= 5 and (numbers % 10 == 0).mean() < _MOST
    rows = np.unique(numbers, return_counts=True)[1]
    pairs = pdtr((rows * (rows - 1) / 2).sum(), numbers.size**2 / 2 / (np.ptp(numbers) + 1))
    if rows.size >= _DISTINCT * numbers.size:
        if long_numbers or pairs < _BY_CHANCE:
            return "it looks like an identifier: hardly two rows share a number"
        return None
    likely = (long_numbers or pairs < math.exp(_LOG_CHANCE)) and not _TIME.search(name)
    if likely and date_format(column) is None:
        return "it may be an identifier: few rows share most of its numbers"
    return None


def _shared_by_few(values: Any) -> bool:
    """Whether half of the rows or more have a value of at most 3 rows."""
    codes = pd.factorize(values)[0]
    return bool((np.bincount(codes)[codes] <= _SHARED).mean() >= _MOST)


def _texts(column: pd.Series) -> pd.Series:
    """Entries that are there, as they are written; of bytes, which need not be text, too."""
    held = column.dropna()
    texts = pd.Series([*map(str, held)], index=held.index, dtype=object)
    return texts[texts != ""]


def _text_looks_like(name: str, column: pd.Series, sample: pd.Series) -> str | None:
    texts = _texts(sample)
    n_distinct = texts.nunique()
    if len(texts) < _FEWEST or n_distinct <= max(_FEWEST, 0.1 * len(texts)):
        return None
    if _NAMED.search(name):
        return "its name suggests a person's name or address"
    if _IDENTIFIED.search(name):
        return "its name suggests an identifier"
    if texts.str.contains("@", regex=False).mean() > 0.5:
        return "it looks like e-mail addresses"
    every = _texts(column) if _shared_by_few(texts) else texts[:0]
    if len(every) and every.nunique() >= _DISTINCT * len(every):
        return "it looks like an identifier or a name: hardly two rows share a text"
    if (texts.str.count(r"\s+") + 1).mean() >= _WORDS:
        return "it looks like free text"
    if texts.str.fullmatch(r"[^\W\d_]+([ .,'’-]+[^\W\d_]+)*").mean() > 0.8:
        seldom = texts.map(texts.value_counts()) <= 3
        if seldom.mean() > 0.3:
            return "it looks like names: many texts that few rows share"
    if not len(every) or date_format(every) is not None:
        return None
    amounts = every[every.str.fullmatch(_AMOUNT)]
    if len(amounts) >= _MOST * len(every) and not every.str.match(r"0\d").any():
        return _numbered(name, pd.Series(_measured(amounts)))
    if texts.str.contains(r"\d").mean() >= _MOST and _shared_by_few(every):
        return "it may be an identifier: few rows share most of its texts"
    return None


def _truth(column: pd.Series) -> FloatArray:
    """The true values of a synthesized column, or codes of them."""
    numbers = _measured(column)
    return _numbers(_hashable(column)) if numbers is None else numbers


def _measured(column: pd.Series) -> FloatArray | None:
    """Numbers, also of objects and of texts with separators; days of dates; None of all else."""
    dtype = column.dtype
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
        return None
    numbers = column.to_numpy(np.float64, na_value=np.nan) if is_number(column) else None
    if numbers is not None and not (numbers > _FIRST_DATE).any():
        return numbers
    if (form := date_format(column)) is not None:
        times = read_dates(column, form if "%" in form else None).to_numpy(dtype="M8[us]")
        return np.where(np.isnat(times), np.nan, times.astype(np.float64) / 86_400e6)
    if numbers is not None:
        return numbers
    cells = column.astype(object)
    texts = cells.dropna()
    if all(isinstance(cell, str) for cell in texts):
        if not texts.str.fullmatch(_AMOUNT).all():
            return None
        last = texts.str.extract(r"([.,])(?!\d{3}\D*$)\d+\D*$")[0].dropna()
        point = "" if last.empty else last.iloc[0]  # else separators of thousands
        plain = texts.str.replace(rf"[^\d{point}-]", "", regex=True)
        cells = plain.str.replace(",", ".").reindex(column.index)
    try:
        read: FloatArray = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64)
    except (OverflowError, TypeError):  # whole numbers beyond any float are texts
        return None
    return read if np.isfinite(read).sum() == column.notna().sum() else None


def _of_several(name: str, truth: FloatArray, columns: Mapping[str, FloatArray]) -> dict[str, str]:
    """A reason for the last of the fewest numbers or dates whose sum or product, each with a
    coefficient or a power, gives the outcome to 1 % of its range in nine of ten rows; then for that
    of those that do so without it, until none do."""
    held, reasons = dict(columns), dict[str, str]()
    while parts := _giving(truth, held):
        with_ = f"together with {', '.join(map(repr, parts[:-1]))} " if parts[1:] else ""
        reasons[parts[-1]] = f"{with_}it gives the values of {name!r}, which is synthesized"
        del held[parts[-1]]
    return reasons


@np.errstate(divide="ignore", invalid="ignore")
def _giving(truth: FloatArray, held: Mapping[str, FloatArray]) -> list[str]:
    """The fewest columns that give the truth together, none if they do not."""
    for of in (np.positive, np.log):
        y, logs = of(truth), {other: of(x) for other, x in held.items()}
        rows = np.isfinite(y)
        near = {n: x for n, x in logs.items() if np.isfinite(x[rows]).sum() > 0.9 * rows.sum()}
        near = dict([*near.items()][:_LOOKED_AT])
        rows &= np.all([np.isfinite(x) for x in near.values()], axis=0)
        if rows.sum() < _FEWEST * (len(near) + 2) or not _give(near, y, rows):
            continue
        for one in [*near]:
            rest = {other: x for other, x in near.items() if other != one}
            near = rest if _give(rest, y, rows) else near
        return [*near]
    return []


def _give(columns: Mapping[str, FloatArray], y: FloatArray, rows: BoolArray) -> bool:
    """True if least squares give nine of ten values to 1 % of the range of the central 80 %."""
    x, y = np.array([np.ones_like(y), *columns.values()])[:, rows].T, y[rows]
    x = x / np.maximum(np.abs(x).max(axis=0), np.finfo(float).tiny)
    off = np.abs(y - x @ np.linalg.lstsq(x, y, rcond=None)[0])
    low, high = np.quantile(y, [0.1, 0.9])
    return bool(high > low and np.quantile(off, 0.9) < 0.01 * (high - low))


def _hashable(column: pd.Series) -> pd.Series:
    """The column, or the text of its cells where some are lists or the like."""
    if column.dtype != object or all(isinstance(cell, Hashable) for cell in column):
        return column
    return column.map(repr, na_action="ignore")


def _numbers(column: pd.Series) -> FloatArray:
    """Numbers as they are, dates as numbers, texts and levels as codes; missing values as NaN."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    codes = pd.factorize(column, sort=pd.api.types.is_datetime64_any_dtype(dtype))[0]
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _tells(y: FloatArray, c: FloatArray, *, text: bool, sample: bool = False) -> bool:
    """True if one is a function of the other, or rises with it, more often than by chance; of a
    `sample` if that may be."""
    both = np.isfinite(y) & np.isfinite(c)
    y, c = y[both], c[both]
    if y.size < (2 if sample else _FEWEST) or c.min() == c.max() or y.min() == y.max():
        return False
    for one, other in ((y, c), (c, y)):
        if _constant_within(one, other) and (
            (np.unique(one).size < one.size) if sample else _chance_of_map(one, other) < _LOG_CHANCE
        ):
            return True
    if not text and _one_way(y, c):
        return sample or _chance_of_order(y, c) < _LOG_CHANCE
    if not text and np.unique(c).size > _MOST_CODES:  # no codes that may be without an order
        return False
    # codes in the order of their mean outcome
    inverse = np.unique(c, return_inverse=True)[1]
    means = np.bincount(inverse, weights=y) / np.bincount(inverse)
    ordered = np.argsort(np.argsort(means))[inverse].astype(np.float64)
    if not _one_way(y, ordered):
        return False
    orders = float(gammaln(np.unique(c).size + 1))  # as many were there to choose from
    return sample or _chance_of_order(y, ordered) + orders < _LOG_CHANCE


def _one_way(y: FloatArray, c: FloatArray) -> bool:
    """No two rows are ordered one way by y and the other by c, or all are."""
    return any(bool((np.diff(s[np.lexsort((s, y))]) >= 0).all()) for s in (c, -c))


def _constant_within(group: FloatArray | IntArray, values: FloatArray | IntArray) -> bool:
    """True if `values` is a function of `group`."""
    order = np.lexsort((values, group))
    same = np.diff(group[order]) == 0
    return bool((np.diff(values[order])[same] == 0).all())


def _chance_of_map(group: FloatArray, values: FloatArray) -> float:
    """Log of the chance that unrelated values agree within all groups, roughly."""
    share = np.unique(values, return_counts=True)[1] / values.size
    repeats = group.size - np.unique(group).size
    return float(repeats * math.log(float(share @ share)))


def _chance_of_order(y: FloatArray, c: FloatArray) -> float:
    """Log of the chance that a random order of c would agree with y as well: exact, for the number
    of rows of each value of y, of c, and of both."""
    of_y, of_c, pairs = (
        np.unique(values, axis=0, return_counts=True)[1]
        for values in (y, c, np.column_stack([y, c]))
    )
    agreeing = gammaln(of_y + 1).sum() - gammaln(pairs + 1).sum()
    orders = gammaln(y.size + 1) - gammaln(of_c + 1).sum()
    return float(math.log(2) + agreeing - orders)
