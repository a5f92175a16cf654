"""Kinds of columns: what a column can hold, declared by its owner or read from a reference.

A kind is public. Read from the confidential column it would be a function of its records that no
epsilon covers.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_finite, check_positive
from pyhybrid.core.dates import (
    DATE,
    FIELDS,
    MOST_DATES,
    NUMBERS,
    STEPS,
    TIME,
    after_steps,
    date_format,
    grid_of,
    plausible,
    read_dates,
    step_of,
    steps_since,
    text_of,
    write_dates,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Kind, check_levels_given
from pyhybrid.models.columns.support import FEW, LARGEST, decimals_of, each_occurs, shortest
from pyhybrid.models.formula.values import column_like

_SMALL = 1000  # whole numbers up to it are taken for counts
_POINT = 0.02  # share of zeros from which they are a point mass

_TYPED = (DATE, TIME)
_FEW_CODES, _TWO_YEARS, _MOST_PERIODS = 5, 730, 1000
_NO_DATES = tuple(map(pd.Timestamp, ("1900-01-01", "1970-01-01", "2099-12-31")))
_FAR = pd.Timedelta(days=3653)
_PERIODS = ((100, 53, 1800, 2200), (10, 4, 1800, 2200), (1000, 366, 10, 100))
_MOST_DECIMALS = 14
_FEW_NUMBERS = 30  # whole, with gaps, and of ten records each: codes


@dataclass(frozen=True, kw_only=True)
class Leveled(Kind):
    """A column of levels: all texts, numbers or logicals, two or more, or one and missing ones."""

    levels: tuple[Any, ...] = ()
    decimals: int | None = field(default=None, init=False)
    ordered: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        size = len(self.levels) if isinstance(self.levels, (tuple, list)) else 0
        if not size or size + bool(self.missing) < 2:
            raise InvalidInput("levels must be a tuple of two values or more, or one and missing")
        object.__setattr__(self, "levels", check_levels_given(self.levels, size))


@dataclass(frozen=True, kw_only=True)
class Nominal(Leveled):
    """Levels in no order: texts, codes, logicals; see `Leveled`."""


@dataclass(frozen=True, kw_only=True)
class Ordered(Leveled):
    """Levels in their order: ratings, grades; see `Leveled`."""

    ordered: bool = field(default=True, init=False)


@dataclass(frozen=True, kw_only=True)
class Real(Kind):
    """Numbers of any sign.

    Parameters
    ----------
    decimals : int, optional
        Of released values, 0 to 15: 2 for cents, 0 for whole units. A strict charge needs it, here
        or from a reference; without it others read it from the data, and say so.
    lower, upper : float, optional
        Smallest and largest value that can occur.
    typical, spread : float, optional
        A typical value, and a typical difference, above 0, about which cells are narrow.
    codes : tuple of float, default ()
        Answers that are no amounts, such as -9 for refused, within the range or not: noisy
        marginals keep them in their shares, and draw no number beyond the range but these.
    """

    lower: float | None = None
    upper: float | None = None
    typical: float | None = None
    spread: float | None = None
    codes: tuple[float, ...] = ()
    levels: None = field(default=None, init=False)
    ordered: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper", "typical"):
            if getattr(self, name) is not None:
                check_finite(getattr(self, name), name)
        if self.spread is not None:
            check_positive(self.spread, "spread")
        for code in self.codes:
            check_finite(code, "each of codes")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise InvalidInput(f"upper must be above lower: found {self.upper:g}, {self.lower:g}")


@dataclass(frozen=True, kw_only=True)
class Counts(Real):
    """Whole numbers from `lower`, 0 if omitted, to `upper`; see `Real`."""

    lower: float | None = 0
    decimals: int | None = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.lower, "lower", at_least=0)
        if self.upper is not None:
            check_count(self.upper, "upper")


@dataclass(frozen=True, kw_only=True)
class Amounts(Real):
    """Numbers above 0: prices, weights, times; see `Real`."""

    lower: float | None = 0


@dataclass(frozen=True, kw_only=True)
class SemiContinuous(Real):
    """Numbers of which many are exactly 0: incomes, expenditures; see `Real`."""


@dataclass(frozen=True, kw_only=True)
class Dates(Kind):
    """Dates, or times, from `lower` to `upper`: steps since the first one inside, written back as
    they came. What lies beyond counts at the nearer end, so that no record can stretch the range.

    Parameters
    ----------
    lower, upper : str
        First and last date that can occur, as the column writes them. Public.
    format : str, default "%Y-%m-%d"
        As of ``strftime``: ``%d.%m.%Y``, ``%-m/%-d/%Y`` without leading zeros, ``%Y%m%d``, ``%Y%m``
        (whole numbers), ``%Y-%m-%dT%H:%M:%SZ``. ``%z`` reads any offset, and is released as +00:00.
        "date" and "datetime" are those of data frames and databases, with ends in ISO 8601.
    step : str, optional
        Which dates can occur, counted from `lower`: "month", "week", "day", "hour", "15 minutes",
        "second"; of months and years the day of `lower`, or the last one of a shorter month. Others
        count as the nearest before. Without it, all that the format, or an end, can tell apart.
    zone : str, optional
        Of "datetime": the time zone of the released column, such as ``Europe/Berlin``.
    codes : tuple of str, default ()
        Entries that stand for something else, such as ``9999-12-31``: cells of their own.
    """

    lower: str = ""
    upper: str = ""
    format: str = "%Y-%m-%d"
    step: str | None = None
    zone: str | None = None
    codes: tuple[str, ...] = ()
    levels: None = field(default=None, init=False)
    decimals: None = field(default=None, init=False)
    ordered: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        texts = (self.lower, self.upper, self.format, self.step or "", *self.codes)
        if not all(isinstance(text, str) for text in texts):
            raise InvalidInput("lower, upper, format, step and codes of dates must be texts")
        if self.format not in _TYPED and "%" not in self.format:
            raise InvalidInput(f"format must be of strftime, 'date' or 'datetime': {self.format!r}")
        unknown = {*re.findall(r"%[-^~3]?.?", self.format)} - FIELDS
        if unknown:
            known = ", ".join(sorted(FIELDS))
            raise InvalidInput(f"format must be of {known}: {min(unknown)} is none of these")
        if self.step is not None:
            check_choice(self.step, "step", [*STEPS])
        for name in ("lower", "upper"):
            if pd.isna(self._end(name)):
                raise InvalidInput(
                    f"{name} must be a date written as {self.format}: found {getattr(self, name)!r}"
                )
        if self.last < 1:
            least = f"a {self.step} or more " * bool(self.step)
            raise InvalidInput(f"upper must be {least}after lower: {self.upper!r}, {self.lower!r}")

    def _end(self, name: str) -> Any:
        text = getattr(self, name)
        if self.format in _TYPED:
            return pd.to_datetime(text, errors="coerce")
        return read_dates(pd.Series([text], dtype=object), self.format)[0]

    @property
    def _step(self) -> Any:
        timed = self.format == TIME and ":" in self.lower + self.upper
        return STEPS[self.step] if self.step else step_of("%S" if timed else self.format)

    @property
    def last(self) -> int:
        """Steps from the first date to the last one."""
        return int(steps_since(self._end("lower"), [self._end("upper")], self._step)[0])

    @property
    def dtype(self) -> Any:
        """Of released values: objects, but for "datetime" and whole numbers."""
        if self.format == TIME:
            return np.dtype("M8[us]") if not self.zone else pd.DatetimeTZDtype("us", self.zone)
        if self.format in NUMBERS and all(code.isdigit() for code in self.codes):
            return pd.Int64Dtype() if self.missing else np.dtype(np.int64)
        return np.dtype(object)

    @property
    def points(self) -> tuple[float, ...]:
        """Of each code the number that stands for it: -1, -2, ..."""
        return tuple(-1.0 - place for place in range(len(self.codes)))

    def numbers(self, column: pd.Series) -> FloatArray:
        """Steps since `lower` within the ends, shape (n,), codes as their `points`, else NaN."""
        times = read_dates(column, None if self.format in _TYPED else self.format)
        steps = np.clip(steps_since(self._end("lower"), times, self._step), 0, self.last)
        texts = column.astype(object).map(text_of, na_action="ignore") if self.codes else column
        for code, point in zip(self.codes, self.points, strict=True):
            typed = self.format in _TYPED
            steps[times == pd.Timestamp(code) if typed else texts == code] = point
        return np.asarray(steps)

    def values(self, numbers: FloatArray, like: pd.Series) -> pd.Series:
        """Inverse of `numbers`, for the index and name of `like`; NaN is missing."""
        known = numbers >= 0
        steps = np.where(known, numbers, 0.0)
        times = column_like(after_steps(self._end("lower"), steps, self._step), like)
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


KINDS: Mapping[str, type[Kind]] = {
    own.__name__: own for own in (Nominal, Ordered, Counts, Amounts, SemiContinuous, Real, Dates)
}
"""Kinds by name."""
FOR_PEOPLE = ("note", "confirmed", "records", "fewer_than_10")
"""What stands in a file of types beside the settings of a kind."""


def kind_from_dict(given: Mapping[str, Any]) -> Kind:
    """Inverse of `Kind.as_dict`, without what is `FOR_PEOPLE`."""
    settings = {key: value for key, value in given.items() if key not in FOR_PEOPLE}
    name = settings.pop("kind", None)
    if name not in KINDS:
        raise InvalidInput(f"kind must be one of {', '.join(KINDS)}: found {name!r}")
    for listed in {"levels", "codes"} & settings.keys():
        settings[listed] = tuple(settings[listed])
    known = KINDS[name].settings()
    if not settings.keys() <= {*known}:
        raise InvalidInput(f"{name} must have its own settings, {', '.join(known)}: found others")
    return KINDS[name](**settings)


def kind_of(column: pd.Series) -> Kind:
    """The kind of a column that may be looked at: of a reference, or one that is published.

    Numbers with at most 10 different values, and dates with at most 60, are levels, so that no
    other can come out; larger whole numbers up to 1000 are counts. InvalidInput if all values are
    missing or the same, or the type is none of a table's.
    """
    column = plain_numbers(column)
    name, held = str(column.name), column.dropna()
    missing = bool(column.isna().any())
    if held.empty:
        raise InvalidInput(f"column {name!r} must have values: all are missing; drop it")
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        leveled = Ordered if dtype.ordered else Nominal
        return leveled(levels=tuple(dtype.categories), missing=missing)
    if pd.api.types.is_bool_dtype(dtype):
        return Nominal(levels=(False, True), missing=missing)
    if not all(isinstance(value, Hashable) for value in held):
        raise _no_kind(column)
    if held.nunique() + missing < 2:
        raise InvalidInput(f"column {name!r} must vary: it is constant; drop it, or keep it")
    if (dates := dates_kind(column)) is not None:
        return dates
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return _kind_of_numbers(held, missing)
    try:
        levels = tuple(sorted(held.unique()))
        if all(isinstance(level, date) for level in levels):
            return Ordered(levels=tuple(dict.fromkeys(map(text_of, levels))), missing=missing)
        return Nominal(levels=levels, missing=missing)
    except (TypeError, InvalidInput):
        raise _no_kind(column) from None


def plain_numbers(column: pd.Series) -> pd.Series:
    """Decimals, as databases write amounts, and floats of four bytes as floats that are written
    alike, but whole numbers that no float holds as texts, as a CSV file's; any other column as it
    is."""
    decimal = column.dtype == object and pd.api.types.infer_dtype(column) == "decimal"
    if not decimal and not pd.api.types.is_integer_dtype(column.dtype):
        return shortest(column)
    held = column.dropna()
    large = len(held) and (held.min() <= -LARGEST or held.max() >= LARGEST)
    if large and (held % 1 == 0).all():
        return column.astype(object).map(lambda x: str(int(x)), na_action="ignore")
    return column.astype(np.float64) if decimal else column


def dates_kind(column: pd.Series) -> Dates | None:
    """The kind of a column of many dates, None of any other."""
    with contextlib.suppress(TypeError):  # lists, which have no hash
        if column.nunique() > MOST_DATES and (settings := dates_in(column)) is not None:
            return Dates(**settings)
    return None


def _no_kind(column: pd.Series) -> InvalidInput:
    return InvalidInput(
        f"column {str(column.name)!r} must hold texts, logicals, categories or numbers: found "
        f"{column.dtype}; drop it, or make it one of them"
    )


def _kind_of_numbers(held: pd.Series, missing: bool) -> Kind:
    values = held.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"column {str(held.name)!r} must hold finite numbers: it has an infinite one; leave it "
            "empty, or drop the column"
        )
    whole = bool((values == np.floor(values)).all())
    levels = np.unique(values)
    exact = np.abs(levels).max() < 2**53  # larger whole numbers are not what floats make of them
    coded = whole and 1 < levels.size <= min(_FEW_NUMBERS, values.size / 10)
    coded = coded and np.median(np.diff(levels)) > 1
    if exact and (levels.size <= FEW or coded or _are_periods(levels)):
        leveled = Nominal if levels.size <= FEW else Ordered
        whole_or_not = tuple(int(v) if v == int(v) else float(v) for v in levels)
        return leveled(levels=whole_or_not, missing=missing)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(np.subtract(*np.quantile(values, [0.9, 0.1]))) / 2.5
        spread = spread if spread > 0 else float(values.std())
    if not 10.0**-_MOST_DECIMALS <= spread < np.inf:
        raise InvalidInput(
            f"column {str(held.name)!r} must hold numbers that differ as floats and have a spread "
            f"that a float holds: found {spread:g}; give it another unit, or drop it"
        )
    # to one significant digit
    digits = -math.floor(math.log10(spread))
    unit = round(spread, digits)
    center = unit * (round(2 * float(np.median(values / unit))) / 2)
    given: dict[str, Any] = {"typical": center, "spread": unit, "missing": missing}
    if whole and values.min() >= 0 and values.max() <= _SMALL:
        return Counts(lower=int(levels[0]) if each_occurs(held) else 0, **given)
    decimals = decimals_of(values)
    largest = math.ceil(math.log10(np.abs(values).max()))  # of which a float holds 15 digits
    most = min(max(8, 4 - largest), 15 - largest, _MOST_DECIMALS)
    given["decimals"] = max(0, most) if decimals is None else decimals
    if (values == 0).mean() >= _POINT:
        return SemiContinuous(lower=0 if values.min() >= 0 else None, **given)
    return Amounts(**given) if values.min() > 0 else Real(**given)


def _are_periods(values: FloatArray) -> bool:
    """Whether numbers are of several years, with weeks or months (201953, 2019.11), quarters
    (20194, 2019.25) or the year after (201920), or of two digits with days (19365): amounts would
    have other last digits, too."""
    whole = values if (values % 1 == 0).all() else np.round(100 * values)
    for size, most, first, end in _PERIODS:
        years, last = np.divmod(whole, size)
        if first <= years[0] < years[-1] < end:
            after = size == 100 and (last == (years + 1) % 100).all()
            parts = whole is not values and (last % 25 == 0).all()
            if after or parts or ((last >= 1) & (last <= most)).all():
                return bool(values.size <= _MOST_PERIODS and (whole % 1 == 0).all())
    return False


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
    for day in _NO_DATES:  # 1900-01-01 years before all others is none
        others = times[known & (times != day)]
        if len(others) and (others - day).abs().min() > _FAR:
            known &= times != day
    codes = tuple(sorted(texts[~known]))
    weeks = "%V" in form  # their year is that of their Thursday; many years have no week 53
    if len(codes) > (MOST_DATES if weeks else _FEW_CODES) or known.sum() < 2:
        return None
    days = form == DATE or bool((times == times.dt.normalize()).all())
    written = form if not typed else "%Y-%m-%d" if days else "%Y-%m-%d %H:%M:%S"
    at = times[known] + (ahead := pd.Timedelta(days=3 if weeks else 0))
    first, last = outward(at, form)
    first, step = grid_of(at, first, written)
    lower, upper = write_dates(pd.Series([first - ahead, last - ahead]), written)
    settings = {"lower": lower, "upper": upper, "format": form, "step": step, "codes": codes}
    zone = str(column.dtype.tz) if isinstance(column.dtype, pd.DatetimeTZDtype) else None
    return {**settings, "zone": zone, "missing": bool(column.isna().any())}


def outward(times: pd.Series, form: str) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Ends of the years, of less than two years the months, that hold all times; of times of a day
    the whole day."""
    low, high = times.min(), times.max()
    if form not in _TYPED and not re.search("%[yg]", form, re.IGNORECASE):
        period = "D"
    else:
        period = "Y" if (high - low).days > _TWO_YEARS else "M"
    last = high.to_period(period).end_time.floor("us" if "f" in form else "s")
    return low.to_period(period).start_time, last
