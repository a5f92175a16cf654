"""Dates and times as files write them: which format, reading, writing.

A format is that of ``strftime``, with ``%-d``, ``%-m`` and ``%-I`` for days, months and hours
without a leading zero. ``%z`` reads any offset from UTC; what is written is then UTC.
"""

from __future__ import annotations

import contextlib
import re
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pandas as pd

_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%-d.%-m.%Y", "%-d/%-m/%Y", "%-m/%-d/%Y", "%d-%b-%Y", "%d %b %Y", "%d%b%Y",
    "%d %B %Y", "%-d %B %Y", "%-d %b %Y", "%b %d, %Y", "%b %-d, %Y", "%B %d, %Y", "%B %-d, %Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%-d.%-m.%y", "%-d/%-m/%y", "%-m/%-d/%y", "%d-%b-%y",
)  # fmt: skip
_TIMES = (
    "%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M:%S %p", "%I:%M %p", "%-I:%M:%S %p", "%-I:%M %p",
)  # fmt: skip
NUMBERS = ("%Y%m%d", "%Y%j", "%Y%m")
"""Formats of dates that are whole numbers."""
_ALONE = (
    *NUMBERS, "%d%m%Y", "%m%d%Y", "%Y%m%d%H%M%S", "%Y%m%dT%H%M%S", "%Y-%m", "%Y/%m", "%m/%Y",
    "%b %Y", "%B %Y", "%b-%Y", "%Y-%b", "%G-W%V", "%GW%V", "%Y-%j", *_TIMES,
)  # fmt: skip
FIELDS = {*re.findall(r"%-?\w", "".join([*_DAYS, *_ALONE])), "%z"}
"""What a format can have."""
_OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_FIELD = re.compile(r"(%-?[A-Za-z])")
_LOOKED_AT, _MOST_LOOKED_AT, _READ = 100, 50_000, 0.9
_FIRST, _LAST = 1800, 2199  # years that are dates and no codes
MOST_DATES = 60
"""Different dates up to which they are levels: no other can come out."""
DATE, TIME = "date", "datetime"
"""Of values that are dates: days, as of a database, and times."""


def date_format(column: pd.Series) -> str | None:
    """Format of a column of dates, with at most a tenth of other entries: that of texts or whole
    numbers, `DATE` or `TIME`; None if it holds none, or if day and month cannot be told apart."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return TIME
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column.dtype):
        return None
    held = column.dropna()
    if held.empty:
        return None
    if pd.api.types.is_numeric_dtype(column.dtype):
        if pd.api.types.is_complex_dtype(column.dtype):
            return None
        shares = [held.between(_FIRST * size, (_LAST + 1) * size).mean()
                  for size in (100, 1_000, 10_000)]  # fmt: skip
        if max(shares) < _READ or (held % 1 != 0).any():
            return None
        held = held.map(text_of)
    kinds = held.map(type).unique()
    if all(issubclass(kind, date) for kind in kinds):
        return TIME if any(issubclass(kind, datetime) for kind in kinds) else DATE
    formats = formats_of(pd.Series(held.unique(), dtype=object)) if [*kinds] == [str] else []
    return formats[0] if len(formats) == 1 else None


def formats_of(texts: pd.Series) -> list[str]:
    """Formats that read and write back nine tenths or more of different texts, the most of any;
    several, if day and month cannot be told apart."""
    texts = texts[texts.str.len().between(4, 40) & texts.str.contains(r"\d", regex=True)]
    if not len(texts):
        return []
    texts = texts.head(_MOST_LOOKED_AT)
    first = str(texts.iloc[0])
    offset = _OFFSET.search(first) if ":" in first else None
    zones = [offset[0], "%z"] if offset else [""]
    known = [*_ALONE, *_DAYS]
    if ":" in first or "T" in first:
        known = [*_TIMES, *(f"{day}{between}{time}{zone}" for day in _DAYS for between in "T "
                            for time in _TIMES for zone in zones)]  # fmt: skip
    some = texts.head(_LOOKED_AT)
    few = some.head(len(some) // 10 + 1).tolist()  # of which each of these formats reads one
    known = [name for name in known if _reads_one(few, name) and _share(some, name) >= _READ]
    shares = {name: _share(texts, name) for name in known}
    best = max(shares.values(), default=0.0)
    found = [name for name, share in shares.items() if share == best >= _READ]
    return [name for name in found if "%z" not in name] or found[:1]


def _reads_one(texts: list[str], name: str) -> bool:
    """Whether a format may read one of texts, in microseconds."""
    for text in texts:
        with contextlib.suppress(ValueError):
            return "%f" in name or bool(datetime.strptime(text + _day(name, "1"), _parsed(name)))
    return False


def _share(texts: pd.Series, name: str) -> float:
    """Share of texts that a format reads and, but for offsets, writes back."""
    times = read_dates(texts, name)
    if times.notna().mean() < _READ or not times.dropna().dt.year.between(1, 9999).all():
        return 0.0
    if plausible(times.dropna()).mean() < _READ:  # 20010512 is not the 20th of January 512
        return 0.0
    if "%z" in name:
        return float(times.notna().mean())
    known = times.notna().to_numpy()
    same = write_dates(times[known], name).to_numpy() == texts[known].to_numpy()
    return float(same.sum() / len(texts))


def read_dates(column: pd.Series, name: str | None) -> pd.Series:
    """Dates and times without a zone of texts in a format, of numbers as these are written, and of
    dates; NaT for what is none. No entry has a say in another."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_localize(None)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column.astype("datetime64[us]")
    read: pd.Series = pd.Series(
        pd.NaT, index=column.index, name=column.name, dtype="datetime64[us]"
    )
    entries = column.astype(object)
    typed = entries.map(lambda entry: isinstance(entry, date)).to_numpy(dtype=bool)
    typed = typed & entries.notna().to_numpy()
    if (at := np.flatnonzero(typed)).size:
        plain = [pd.Timestamp(entry).tz_localize(None) for entry in entries.iloc[at]]
        read.iloc[at] = np.array(plain, dtype="M8[us]")
    if name is not None:
        at = np.flatnonzero(~typed)
        texts: pd.Series = entries.iloc[at].map(text_of, na_action="ignore")
        zoned = "%z" in name
        times: Any = pd.to_datetime(
            texts + _day(name, "1"), format=_parsed(name), errors="coerce", utc=zoned
        )
        times = times.dt.tz_localize(None) if zoned else times
        read.iloc[at] = times.to_numpy(dtype="M8[us]")
    return read


def _day(name: str, day: str) -> str:
    """What makes a text of weeks one of their Mondays."""
    return f"-{day}" if "%V" in name else ""


def _parsed(name: str) -> str:
    return name.replace("%-", "%") + _day(name, "%u")


def text_of(entry: object) -> str | None:
    """An entry as a text: a whole number without a point, a day without a time, no zone."""
    if isinstance(entry, (float, np.floating)):
        return str(int(entry)) if np.isfinite(entry) else None
    if isinstance(entry, datetime):
        entry = entry.replace(tzinfo=None)
        return str(entry.date() if entry.time() == time.min else entry)
    return str(entry)


def write_dates(times: pd.Series, name: str) -> pd.Series:
    """Texts of dates, none of which is missing."""
    text: pd.Series = pd.Series("", index=times.index, name=times.name, dtype=object)
    for part in _FIELD.split(name):
        if part.startswith("%-"):
            text = text + times.dt.strftime(part.replace("-", "")).str.lstrip("0")
        elif part == "%z":
            text = text + "+00:00"
        else:
            text = text + (times.dt.strftime(part) if part.startswith("%") else part)
    return text


def step_of(name: str) -> float:
    """Seconds between neighboring dates of a format."""
    steps = {"%f": 1e-6, "%S": 1.0, "%M": 60.0, "%H": 3600.0}
    return next((step for field, step in steps.items() if field in name), 86_400.0)


def plausible(times: pd.Series) -> pd.Series:
    """Which dates are of the years 1800 to 2199: others stand for something else."""
    years: pd.Series = times.dt.year.between(_FIRST, _LAST)
    return years
