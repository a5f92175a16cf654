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
from pyhybrid.core.errors import InvalidInput

_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%-d.%-m.%Y", "%-d/%-m/%Y", "%-m/%-d/%Y", "%d-%b-%Y", "%d %b %Y", "%d%b%Y",
    "%d %B %Y", "%-d %B %Y", "%-d %b %Y", "%b %d, %Y", "%b %-d, %Y", "%B %d, %Y", "%B %-d, %Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%-d.%-m.%y", "%-d/%-m/%y", "%-m/%-d/%y", "%d-%b-%y",
    "%d%b%y", "%Y. %m. %d.", "%a, %d %b %Y", "%b-%Y", "%b-%y",
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
    "%m.%Y", "%m-%Y", "%b %Y", "%B %Y", "%Y-%b", "%YM%m", "%G-W%V", "%GW%V",
    "%Y-%j", *_TIMES,
)  # fmt: skip
_CASES: dict[str, Any] = {"^": str.upper, "~": str.lower}
_FIELD = re.compile(r"(%[-^~3]?[A-Za-z])")
FIELDS = {*_FIELD.findall("".join([*_DAYS, *_ALONE])), "%z",
          *(f"%{case}{name}" for case in _CASES for name in "aBb")}  # fmt: skip
"""What a format can have."""
_OFFSET = re.compile(r"( ?(?![AP]M$)[A-Z]\w{0,3}|[+-]\d\d:?\d\d)$")
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_SECONDS = {"week": 604_800.0, "day": 86_400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0,
            "millisecond": 1e-3}  # fmt: skip
_STEP = re.compile(rf"(?:([1-9]\d{{0,3}}) )?({'|'.join([*_MONTHS, *_SECONDS])})s?")
STEPS = (
    *_MONTHS, "week", "day", "12 hours", "6 hours", "hour", "30 minutes", "15 minutes",
    "10 minutes", "5 minutes", "minute", "30 seconds", "10 seconds", "second", "millisecond",
)  # fmt: skip
"""Steps that dates are drafted in, the coarsest first; ``step_of`` reads any number of them."""
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
        if (held % 1 != 0).any():
            return None
        if held.between(0, 2359).all() and (held % 100 < 60).all() and held.nunique() > MOST_DATES:
            return _CLOCK
        if max(shares) < _READ:
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
    words = re.compile("%[aBb]" if not re.search(r"[^\W\d_]{3}", first) else "$.")
    days = [re.sub("%([aBb])", rf"%{case}\1", name) for name in _DAYS
            for case in ("", *_CASES)]  # fmt: skip
    days = [name for name in dict.fromkeys(days) if not words.search(name)]
    known = [*_ALONE, *days]
    if ":" in first:
        between = "T" if re.search(r"\dT\d", first) else " "
        known = [*_TIMES, *(f"{day}{between}{time}{zone}" for day in days for time in _TIMES
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
        texts: pd.Series = entries.iloc[at].map(text_of, na_action="ignore")
        if name == _CLOCK:
            texts = texts.astype("string").str.zfill(4).astype(object)
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
        if not part.startswith("%"):
            text = text + part
            continue
        flag, field = part[1:-1], times.dt.strftime("%" + part[-1])
        if flag == "-":
            field = field.str.replace(r"^0(?=\d)", "", regex=True)
        text = text + ("+00:00" if part == "%z" else field.str[:3] if flag == "3" else
                       field.map(_CASES[flag]) if flag in _CASES else field)  # fmt: skip
    return text.astype(int).astype(str) if name == _CLOCK else text


def step_of(name: str, step: str | None = None) -> tuple[int, float]:
    """Months and seconds of a step, one of both 0: "month", "15 minutes"; without one, seconds
    between neighboring dates of a format. InvalidInput for what is no step."""
    if step is None:
        steps = {"%3f": 1e-3, "%f": 1e-6, "%S": 1.0, "%M": 60.0, "%H": 3600.0}
        name = name.replace("%-", "%")
        return 0, next((step for field, step in steps.items() if field in name), 86_400.0)
    read = _STEP.fullmatch(step)
    if read is None:
        raise InvalidInput(f"step must be one such as {', '.join(STEPS[:8])}: found {step!r}")
    number = int(read[1] or 1)
    return number * _MONTHS.get(read[2], 0), number * _SECONDS.get(read[2], 0.0)


def steps_since(start: pd.Timestamp, times: Any, step: tuple[int, float]) -> FloatArray:
    """Whole steps from `start` to times, rounded down, shape (n,); NaN of NaT."""
    times = np.asarray(times, dtype="M8[us]")
    if step[0]:
        month = times.astype("M8[M]")
        month = month - (times < _in_month(month, start))
        whole = (month - np.datetime64(start, "M")).astype(np.int64) // step[0]
    else:
        since = (times - np.datetime64(start, "us")).astype(np.int64)
        whole = since // round(step[1] * 1e6)
    return np.where(np.isnat(times), np.nan, whole)


def after_steps(start: pd.Timestamp, steps: FloatArray, step: tuple[int, float]) -> Any:
    """Inverse of `steps_since`, "M8[us]" of shape (n,)."""
    if step[0]:
        months = np.rint(steps).astype(np.int64) * step[0]
        return _in_month(np.datetime64(start, "M") + months, start)
    return np.datetime64(start, "us") + np.rint(steps * step[1] * 1e6).astype("m8[us]")


def _in_month(month: Any, start: pd.Timestamp) -> Any:
    """The day and time of `start` in months, or their last day."""
    day = np.minimum(month.astype("M8[D]") + (start.day - 1), (month + 1).astype("M8[D]") - 1)
    return day.astype("M8[us]") + np.timedelta64(start - start.normalize()).astype("m8[us]")


def grid_of(
    times: pd.Series, lower: pd.Timestamp, name: str
) -> tuple[pd.Timestamp, str | None]:
    """The coarsest of `STEPS` that all times are on, and the first such time from `lower` on; None
    and `lower` if that is the step of the format."""
    late = times.iloc[times.dt.day.argmax()]  # of ends of months one of the longest
    for step in STEPS:
        months, seconds = size = step_of(name, step)
        if months:
            ahead = (np.datetime64(late, "M") - np.datetime64(lower, "M")).astype(int) % months
            start = pd.Timestamp(_in_month(np.datetime64(lower, "M") + ahead, late))
        elif seconds <= step_of(name)[1]:
            break
        else:
            start = lower + (late - lower) % pd.Timedelta(seconds=seconds)
        if (after_steps(start, steps_since(start, times, size), size) == times).all():
            return start, step
    return lower, None


def plausible(times: pd.Series) -> pd.Series:
    """Which dates are of the years 1800 to 2199: others stand for something else."""
    years: pd.Series = times.dt.year.between(_FIRST, _LAST)
    return years
