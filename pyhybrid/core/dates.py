"""Dates and times as files write them: which format, reading, writing.

A format is that of ``strftime``, with ``%-d``, ``%-m``, ``%-H`` and ``%-I`` for days, months and
hours without a leading zero, ``%^b`` and ``%~b`` for months in upper and lower case, and ``%3f``
for milliseconds. ``%z`` reads any offset from UTC; what is written is then UTC. Years of ``%y``
beyond the next one are those of the last century.
"""

from __future__ import annotations

import contextlib
import re
import string
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray

_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%-d.%-m.%Y", "%-d/%-m/%Y", "%-m/%-d/%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%-d.%-m.%y",
    "%-d/%-m/%y", "%-m/%-d/%y", "%Y. %m. %d.",
)  # fmt: skip
_WORDS = (
    "%d-%b-%Y", "%d %b %Y", "%d%b%Y", "%d %B %Y", "%-d %B %Y", "%-d %b %Y", "%b %d, %Y",
    "%b %-d, %Y", "%B %d, %Y", "%B %-d, %Y", "%d-%b-%y", "%d%b%y", "%a, %d %b %Y", "%b %Y", "%B %Y",
    "%b-%Y", "%Y-%b", "%b-%y",
)  # fmt: skip
_TIMES = (
    "%H:%M:%S", "%H:%M", "%-H:%M:%S", "%-H:%M", "%H:%M:%S.%f", "%H:%M:%S.%3f",
    "%I:%M:%S %p", "%I:%M %p", "%-I:%M:%S %p", "%-I:%M %p",
)  # fmt: skip
_CLOCK = "%-H%M"
NUMBERS = ("%Y%m%d", "%Y%j", "%Y%m", "%G%V", _CLOCK)
"""Formats of dates that are whole numbers."""
_ALONE = (
    *NUMBERS[:4], "%d%m%Y", "%m%d%Y", "%Y%m%d%H%M%S", "%Y%m%dT%H%M%S", "%Y-%m", "%Y/%m", "%m/%Y",
    "%m.%Y", "%m-%Y", "%YM%m", "%G-W%V", "%GW%V", "%Y-%j", *_TIMES,
)  # fmt: skip
_FLAGS: dict[str, Any] = {"": str, "-": lambda text: text.lstrip("0") or "0", "^": str.upper,
                          "~": str.lower, "3": lambda text: text[:3]}  # fmt: skip
_FIELD = re.compile(r"(%[-^~3]?[A-Za-z])")
_KNOWN = [*_DAYS, *(re.sub("%([aBb])", rf"%{case}\1", name) for name in _WORDS
                    for case in ("", "^", "~"))]  # fmt: skip
FIELDS = {*_FIELD.findall("".join([*_KNOWN, *_ALONE])), "%z"}
"""What a format can have."""
_OFFSET = re.compile(r"( ?(?![AP]M$)[A-Z]\w{0,3}|[+-]\d\d:?\d\d)$")
_FINEST: dict[str, Any] = {"%3f": "ms", "%f": "us", "%S": "s", "%M": "m", "%H": "h", "": "D"}
_SIZES: Any = (
    ("year", 12, "M"), ("quarter", 3, "M"), ("month", 1, "M"), ("week", 7, "D"), ("day", 1, "D"),
    *((f"{n} hours" if n > 1 else "hour", n, "h") for n in (12, 6, 1)),
    *((f"{n} minutes" if n > 1 else "minute", n, "m") for n in (30, 15, 10, 5, 1)),
    ("30 seconds", 30, "s"), ("10 seconds", 10, "s"), ("second", 1, "s"), ("millisecond", 1, "ms"),
)  # fmt: skip
STEPS = {name: np.timedelta64(number, unit) for name, number, unit in _SIZES}
"""Steps that dates can keep to, the coarsest first."""
_NO_MARKS = dict.fromkeys(map(ord, string.ascii_letters + string.digits))
_SEEMS = re.compile(
    r"\d+:\d\d(:\d\d([.,]\d+)?)?|P(?=.*\d)(\d+[YMWD])*(T(\d+[HMS])*)?|"
    r"\d{1,2}[./ -]+[^\W\d_]{3,10}[./ -]+\d{4}\b.*"
)
_EPOCH = re.compile(r"time|date|stamp|epoch|unix", re.IGNORECASE)
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
        clock = held.between(0, 2359) & (held % 100 < 60) & (held % 1 == 0)
        if clock.all() and held.nunique() > MOST_DATES:
            return _CLOCK
        if max(shares) < _READ or (held % 1 != 0).any():
            return None
        held = held.map(text_of)
    kinds = held.map(type).unique()
    if all(issubclass(kind, date) for kind in kinds):
        return TIME if any(issubclass(kind, datetime) for kind in kinds) else DATE
    formats = formats_of(pd.Series(held.unique(), dtype=object)) if [*kinds] == [str] else []
    return formats[0] if len(formats) == 1 else None


def seems_dates(column: pd.Series) -> bool:
    """Whether a column may hold dates or durations that no format reads: 48:26:52, PT48H26M, 9 août
    2019; by its name, seconds or milliseconds since 1970."""
    held = column.dropna()
    if getattr(held.dtype, "kind", "O") in "iuf":
        since = any(held.between(1e8 * size, 4.2e9 * size).all() for size in (1, 1000))
        return since and held.nunique() > MOST_DATES and bool(_EPOCH.search(str(column.name)))
    texts = pd.Series(held.astype(str).unique(), dtype=object)
    return len(texts) > MOST_DATES and texts.str.fullmatch(_SEEMS).mean() >= _READ


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
    known = [*_ALONE, *_KNOWN]
    if ":" in first:
        between = "T" if re.search(r"\dT\d", first) else " "
        known = [*_TIMES, *(f"{day}{between}{time}{zone}" for day in _KNOWN for time in _TIMES
                            for zone in zones)]  # fmt: skip
    some = texts.head(_LOOKED_AT)
    few = some.head(len(some) // 10 + 1).tolist()  # of which each of these formats reads one
    known = [name for name in known if _reads_one(few, name) and _share(some, name) >= _READ]
    shares = {name: _share(texts, name) for name in known}
    best = max(shares.values(), default=0.0)
    found = [name for name, share in shares.items() if share == best >= _READ]
    found = [n for n in found if "%-" not in n or n.replace("%-", "%") not in found]
    return [name for name in found if "%z" not in name and "%V" not in name] or found[:1]


def _reads_one(texts: list[str], name: str) -> bool:
    """Whether a format may read one of texts, in microseconds."""
    marks = _FIELD.sub("", name).translate(_NO_MARKS)
    for text in texts:
        if "%z" not in name and text.translate(_NO_MARKS) != marks:
            continue
        with contextlib.suppress(ValueError):
            return "f" in name or bool(datetime.strptime(text + _day(name, "1"), _parsed(name)))
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
        size = 4 if name == _CLOCK else 0
        texts: pd.Series = entries.iloc[at].map(
            lambda entry: str(text_of(entry)).zfill(size), na_action="ignore"
        )
        zoned = "%z" in name
        times: Any = pd.to_datetime(
            texts + _day(name, "1"), format=_parsed(name), errors="coerce", utc=zoned
        )
        times = times.dt.tz_localize(None) if zoned else times
        if "%y" in name:
            later = times.dt.year > date.today().year + 1
            times = times.where(~later, times - pd.DateOffset(years=100))
        read.iloc[at] = times.to_numpy(dtype="M8[us]")
    return read


def _day(name: str, day: str) -> str:
    """What makes a text of weeks one of their Mondays."""
    return f"-{day}" if "%V" in name else ""


def _parsed(name: str) -> str:
    return _FIELD.sub(lambda field: "%" + field[0][-1], name) + _day(name, "%u")


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
        if part.startswith("%") and part != "%z":
            text = text + times.dt.strftime("%" + part[-1]).map(_FLAGS[part[1:-1]])
        else:
            text = text + ("+00:00" if part == "%z" else part)
    return text.astype(int).astype(str) if name == _CLOCK else text


def step_of(name: str) -> Any:
    """Step between neighboring dates of a format, "m8"."""
    fields = name.replace("%-", "%")
    return np.timedelta64(1, next(unit for field, unit in _FINEST.items() if field in fields))


def steps_since(start: Any, times: Any, step: Any) -> FloatArray:
    """Whole steps from `start` to times, rounded down, shape (n,); NaN of NaT."""
    start, times = np.datetime64(start, "us"), np.asarray(times, dtype="M8[us]")
    since = times - start
    if step.dtype == "m8[M]":
        month = times.astype("M8[M]")
        since = month - (times < _in_month(month, start)) - start.astype("M8[M]")
    whole = since.astype(np.int64) // step.astype(since.dtype).astype(np.int64)
    return np.where(np.isnat(times), np.nan, whole)


def after_steps(start: Any, steps: FloatArray, step: Any) -> Any:
    """Inverse of `steps_since`, "M8[us]" of shape (n,)."""
    start, since = np.datetime64(start, "us"), np.rint(steps).astype(np.int64) * step
    months = step.dtype == "m8[M]"
    return _in_month(start.astype("M8[M]") + since, start) if months else start + since


def _in_month(month: Any, like: Any) -> Any:
    """The day and time of `like` in months, or their last day."""
    day, last = like.astype("M8[D]"), (month + 1).astype("M8[D]") - 1
    ahead = day - like.astype("M8[M]").astype("M8[D]")
    return np.minimum(month.astype("M8[D]") + ahead, last) + (like - day)


def grid_of(times: pd.Series, lower: pd.Timestamp, name: str) -> tuple[Any, str | None]:
    """First time from `lower` on, and name of the coarsest of `STEPS` from it, that all times are
    on; `lower` and None if that is the step of the format."""
    low = np.datetime64(lower, "us")
    late = np.datetime64(times.iloc[times.dt.day.argmax()], "us")  # of ends of months a long one
    for told, step in STEPS.items():
        if step.dtype == "m8[M]":
            first = low.astype("M8[M]")
            start = _in_month(first + (late.astype("M8[M]") - first) % step, late)
        elif step > step_of(name):
            start = low + (late - low) % step
        else:
            break
        if (after_steps(start, steps_since(start, times, step), step) == times).all():
            return pd.Timestamp(start), told
    return lower, None


def plausible(times: pd.Series) -> pd.Series:
    """Which dates are of the years 1800 to 2199: others stand for something else."""
    years: pd.Series = times.dt.year.between(_FIRST, _LAST)
    return years
