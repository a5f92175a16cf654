"""A column of dates or times: steps since its first possible one inside, written back as it came.

Its ends are declared, and so public; a date beyond them counts at the nearer one, so that no single
record can stretch the range. Its format is declared, too: what no format reads is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.dates import (
    DATE,
    TIME,
    date_format,
    plausible,
    read_dates,
    step_of,
    text_of,
    write_dates,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Kind
from pyhybrid.models.formula.values import column_like

_TYPED = (DATE, TIME)
_FEW_CODES, _DAY, _TWO_YEARS = 5, 86_400.0, 730
_WHOLE = "%Y%m%d"


@dataclass(frozen=True, kw_only=True)
class Dates(Kind):
    """Dates, or times, from `lower` to `upper`; what lies beyond counts at the nearer end.

    Parameters
    ----------
    lower, upper : str
        First and last date that can occur, as the column writes them. Public.
    format : str, default "%Y-%m-%d"
        As of ``strftime``: ``%d.%m.%Y``, ``%-m/%-d/%Y`` without leading zeros, ``%Y%m%d`` (whole
        numbers), ``%Y-%m-%dT%H:%M:%SZ``. ``%z`` reads any offset, and is released as +00:00.
        "date" and "datetime" are those of data frames and databases, with ends in ISO 8601.
    zone : str, optional
        Of "datetime": the time zone of the released column, such as ``Europe/Berlin``.
    codes : tuple of str, default ()
        Entries that stand for something else, such as ``9999-12-31``: cells of their own.
    """

    lower: str = ""
    upper: str = ""
    format: str = "%Y-%m-%d"
    zone: str | None = None
    codes: tuple[str, ...] = ()
    levels: None = field(default=None, init=False)
    decimals: None = field(default=None, init=False)
    ordered: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        texts = (self.lower, self.upper, self.format, *self.codes)
        if not all(isinstance(text, str) for text in texts):
            raise InvalidInput("lower, upper, format and codes of dates must be texts")
        if self.format not in _TYPED and "%" not in self.format:
            raise InvalidInput(f"format must be of strftime, 'date' or 'datetime': {self.format!r}")
        for name in ("lower", "upper"):
            if pd.isna(self._end(name)):
                raise InvalidInput(
                    f"{name} must be a date written as {self.format}: found {getattr(self, name)!r}"
                )
        if not self._end("lower") < self._end("upper"):
            raise InvalidInput(f"upper must be after lower: {self.upper!r}, {self.lower!r}")

    def _end(self, name: str) -> Any:
        text = getattr(self, name)
        if self.format in _TYPED:
            return pd.to_datetime(text, errors="coerce")
        return read_dates(pd.Series([text], dtype=object), self.format)[0]

    @property
    def step(self) -> float:
        """Seconds of a step: a day, or what the format, or an end, has."""
        if self.format == TIME:
            return 1.0 if ":" in self.lower + self.upper else _DAY
        return step_of(self.format)

    @property
    def last(self) -> int:
        """Steps from the first date to the last one."""
        range_ = self._end("upper") - self._end("lower")
        return int(range_ // pd.Timedelta(microseconds=round(self.step * 1e6)))

    @property
    def dtype(self) -> Any:
        """Of released values: objects, but for "datetime" and whole numbers."""
        if self.format == TIME:
            return np.dtype("M8[us]") if not self.zone else pd.DatetimeTZDtype("us", self.zone)
        if self.format == _WHOLE and all(code.isdigit() for code in self.codes):
            return pd.Int64Dtype() if self.missing else np.dtype(np.int64)
        return np.dtype(object)

    @property
    def points(self) -> tuple[float, ...]:
        """Of each code the number that stands for it: -1, -2, ..."""
        return tuple(-1.0 - place for place in range(len(self.codes)))

    def numbers(self, column: pd.Series) -> FloatArray:
        """Steps since `lower` within the ends, shape (n,), codes as their `points`, else NaN."""
        times = read_dates(column, None if self.format in _TYPED else self.format)
        since = (times - self._end("lower")).to_numpy("m8[us]")
        whole = since.astype(np.int64) // round(self.step * 1e6)
        steps = np.where(np.isnat(since), np.nan, np.clip(whole, 0, self.last))
        texts = column.astype(object).map(text_of, na_action="ignore") if self.codes else column
        for code, point in zip(self.codes, self.points, strict=True):
            typed = self.format in _TYPED
            steps[times == pd.Timestamp(code) if typed else texts == code] = point
        return np.asarray(steps)

    def values(self, numbers: FloatArray, like: pd.Series) -> pd.Series:
        """Inverse of `numbers`, for the index and name of `like`; NaN is missing."""
        known = numbers >= 0
        micro = np.rint(np.where(known, numbers, 0) * self.step * 1e6).astype("m8[us]")
        times = column_like(np.datetime64(self._end("lower"), "us") + micro, like)
        values: pd.Series
        if self.format in _TYPED:
            times = times.where(known)
            for code, point in zip(self.codes, self.points, strict=True):
                times[numbers == point] = pd.Timestamp(code)
            zone: Any = self.zone
            if self.format == DATE:
                values = times.dt.date.astype(object).where(times.notna(), None)
            else:
                values = times.dt.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
            return values
        values = column_like(write_dates(times, self.format).to_numpy(copy=True), like)
        for code, point in zip(self.codes, self.points, strict=True):
            values[numbers == point] = code
        values[np.isnan(numbers)] = None
        return values if self.dtype == object else values.astype(self.dtype)

    def read(self, column: pd.Series) -> pd.Series:
        """As it is, as of `cast`: `numbers` and `values` read and write entries."""
        return column

    cast = read


def dates_in(column: pd.Series) -> dict[str, Any] | None:
    """Settings of `Dates` that a column seems to have, its ends those of whole months or years;
    None if it holds none, or if its format is not told."""
    form, held = date_format(column), column.dropna()
    if form is None or held.empty:
        return None
    typed = form in _TYPED
    times = pd.Series(read_dates(held, None).unique()) if typed else pd.Series(dtype="M8[us]")
    texts = times.astype(str)
    if not typed:
        texts = pd.Series(held.map(text_of).unique(), dtype=object)
        times = read_dates(texts, form)
    known = times.notna() & (plausible(times) | (not typed and "%Y" not in form))
    codes = tuple(sorted(texts[~known]))
    if len(codes) > _FEW_CODES or known.sum() < 2:
        return None
    days = form == DATE or bool((times == times.dt.normalize()).all())
    written = form if not typed else "%Y-%m-%d" if days else "%Y-%m-%d %H:%M:%S"
    lower, upper = write_dates(pd.Series([*outward(times[known], form)]), written)
    settings = {"lower": lower, "upper": upper, "format": form, "codes": codes}
    zone = str(column.dtype.tz) if isinstance(column.dtype, pd.DatetimeTZDtype) else None
    return {**settings, "zone": zone, "missing": bool(column.isna().any())}


def outward(times: pd.Series, form: str) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Ends of the years, of less than two years the months, that hold all times; of times of a day
    the whole day."""
    low, high = times.min(), times.max()
    if form not in _TYPED and "%Y" not in form:
        period = "D"
    else:
        period = "Y" if (high - low).days > _TWO_YEARS else "M"
    last = high.to_period(period).end_time.floor("s" if "%f" not in form else "us")
    return low.to_period(period).start_time, last
