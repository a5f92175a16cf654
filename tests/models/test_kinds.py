"""Kinds of columns: declared, read, as JSON; dates are written back as they came."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.dates import date_format, seems_dates
from pyhybrid.models.columns.form import Kind
from pyhybrid.models.columns.kinds import kind_from_dict, kind_of
from pyhybrid.tables.describe import seen_kind, to_decide
from tests.refusals import refuses

CASES: dict[str, tuple[Any, Kind]] = {
    "texts": (["b", "a", None], ph.Nominal(levels=("a", "b"), missing=True)),
    "logicals": ([True, False], ph.Nominal(levels=(False, True))),
    "codes": ([3, 1, 2, 1], ph.Nominal(levels=(1, 2, 3))),
    "ordered": (
        pd.Categorical(["lo"], categories=["lo", "hi"], ordered=True),
        ph.Ordered(levels=("lo", "hi")),
    ),
    "few counts": (list(range(5)), ph.Nominal(levels=(0, 1, 2, 3, 4))),
    "codes, the most frequent first": (
        [*[1] * 28, *[2] * 15, *[3] * 12, 5, 5, 6], ph.Nominal(levels=(1, 2, 3, 5, 6))
    ),
    "counts": (list(range(101)), ph.Counts(lower=0, typical=45, spread=30)),
    "amounts": ([k + 0.5 for k in range(50)], ph.Amounts(typical=25, spread=20, decimals=1)),
    "zeros": ([0] * 10 + list(range(900, 2900, 20)), ph.SemiContinuous(
        lower=0, typical=2000, spread=700, decimals=0)),
    "reals": ([k / 4 - 10 for k in range(80)], ph.Real(typical=0, spread=6, decimals=2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_kind_is_read_from_what_a_column_holds(name: str) -> None:
    values, expected = CASES[name]
    found = kind_of(pd.Series(values, name="c"))
    assert type(found) is type(expected)
    shown, wanted = found.as_dict(), expected.as_dict()
    assert {k: v for k, v in shown.items() if k != "typical"} == {
        k: v for k, v in wanted.items() if k != "typical"
    }
    assert kind_from_dict(shown) == found


@pytest.mark.parametrize(("values", "levels"), [
    ([f"{y}{q}" for y in range(1990, 2020) for q in range(1, 5)], True),
    ([f"{y}{(y + 1) % 100:02d}" for y in range(1980, 2020)], True),
    ([f"{y}.{m:02d}" for y in (2019, 2020) for m in range(1, 13)], True),
    ([y + q / 4 for y in range(1990, 2020) for q in range(4)], True),
    ([f"{y}{d:03d}" for y in (19, 20) for d in range(1, 366)], True),
    ([*range(10_001, 10_301)], False), ([*range(1950, 2020)], False),
    ([*range(180_001, 219_000, 97)], False), ([k / 4 for k in range(8000, 8200)], True),
    ([4, 8, 12, 20, 24, 28, 31, 32, 36, 40, 50, 51] * 20, True), ([*range(12)] * 20, False),
    ([1111, 2211, 3344, 5120, 5223, 7231, 8322, 9112, 9333, 2634, 2635, 4110] * 2, False),
])  # fmt: skip
def test_periods_and_codes_are_levels(values: list[Any], levels: bool) -> None:
    """Seen: 202183 and 2019474 came out, and countries that are none."""
    kind = kind_of(pd.Series([*map(float, values)]).astype(float))
    assert isinstance(kind, ph.Ordered) == levels


@pytest.mark.parametrize(("values", "message"), [
    ([1, 1], "is constant"), ([None, None], "all are missing"), ([[1], [2]], "must hold texts"),
    ([*range(30), np.inf], "must hold finite numbers"),
    ([-np.inf, 0.5, 1.5], "must hold finite numbers"), ([1.5, np.inf] * 9, "must hold finite"),
])  # fmt: skip
def test_columns_of_no_kind_are_refused(values: Any, message: str) -> None:
    """Seen: one cell "Inf" ended `pyhybrid synthesize` and `describe` in an OverflowError."""
    refuses(message, kind_of, pd.Series(values, name="c"))


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: ph.Nominal(levels=("a",)), "two values or more"),
    (lambda: ph.Nominal(levels=("a", "a")), "different"),
    (lambda: ph.Real(spread=0), "spread must be above 0"),
    (lambda: ph.Real(lower=3, upper=1), "upper must be above lower"),
    (lambda: ph.Counts(lower=-1), "lower must be a whole number"),
    (lambda: kind_from_dict({"kind": "Text"}), "kind must be one of"),
    (lambda: kind_from_dict({"kind": "Real", "size": 3}), "its own settings"),
    (lambda: ph.Counts(codes=("refused",)), "each of codes must be"),
])  # fmt: skip
def test_what_cannot_be_is_refused(wrong: Any, message: str) -> None:
    refuses(message, wrong)


def test_decimals_are_numbers_as_floats_are() -> None:
    """Seen: amounts of a database were of no kind in a file, and amounts in a folder of it."""
    values = [k + 0.25 for k in range(50)]
    column = pd.Series([*map(Decimal, map(str, values)), None], name="price", dtype=object)
    expected = kind_of(pd.Series([*values, np.nan], name="price"))
    assert kind_of(column) == expected
    assert expected.decimals == 2
    df = pd.DataFrame({"price": column})
    made = ph.synthesize_table(df, epsilon=1e4, types={"price": ph.Real(
        lower=0, upper=60, decimals=2, missing=True)}).synthetic[0]["price"]  # fmt: skip
    assert abs(made.mean() - np.mean(values)) < 3


TIMES = pd.Series(pd.date_range("2019-01-17 13:05:09", periods=200, freq="37h41min"))
MONTHS = pd.Series(pd.date_range("2001-01-01", periods=99, freq="MS"))
WRITTEN = {
    **{name: TIMES.dt.strftime(name) for name in (
        "%Y-%m-%d", "%d.%m.%Y", "%d-%b-%Y", "%b %d, %Y", "%d %B %Y", "%m/%d/%y", "%d.%m.%y",
        "%d%m%Y", "%Y-%j", "%I:%M %p", "%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%dT%H:%M:%S+02:00", "%Y-%m-%d %H:%M:%S UTC", "%d.%m.%Y %H:%M Uhr", "%a, %d %b %Y",
    )},
    **{name: TIMES.dt.strftime(name.replace("^", "")).str.upper() for name in (
        "%d%^b%Y", "%d-%^b-%y", "%d %^B %Y")},
    "%d%~b%Y": TIMES.dt.strftime("%d%b%Y").str.lower(),
    "%Y-%m-%dT%H:%M:%S.%3fZ": TIMES.dt.strftime("%Y-%m-%dT%H:%M:%S.298Z"),
    **{name: TIMES.dt.strftime(name).astype(int) for name in ("%Y%m%d", "%Y%j")},
    "%-H%M": TIMES.dt.strftime("%H%M").astype(int),
    "%-H:%M": TIMES.map(lambda t: f"{t.hour}:{t.minute:02d}"),
    **{name: MONTHS.dt.strftime(name).astype(int) for name in ("%Y%m", "%G%V")},
    **{name: MONTHS.dt.strftime(name) for name in (
        "%b %Y", "%Y-%m", "%G-W%V", "%m.%Y", "%m-%Y", "%b-%y")},
    "%-m/%-d/%Y": TIMES.map(lambda t: f"{t.month}/{t.day}/{t.year}"),
    "%-I:%M:%S %p": TIMES.dt.strftime("%I:%M:%S %p").str.removeprefix("0"),
    "date": TIMES.dt.date,
    "datetime": TIMES.dt.tz_localize("Europe/Berlin"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_dates_come_back_as_they_were_written(name: str) -> None:
    column = WRITTEN[name].rename("t")
    kind = kind_of(column)
    assert isinstance(kind, ph.Dates)
    assert kind.format == name == date_format(column)
    assert kind_from_dict(kind.as_dict()) == kind
    numbers = kind.numbers(column)
    assert numbers.min() >= 0
    assert numbers.max() <= kind.last
    assert kind.values(numbers, column).tolist() == column.tolist()


def test_months_as_whole_numbers_and_years_of_two_digits_have_public_ends() -> None:
    """Seen: a strict release of months held 201797."""
    months = kind_of(WRITTEN["%Y%m"])
    assert (months.lower, months.upper) == ("200101", "200912")
    drawn = months.values(np.arange(months.last + 1.0), pd.Series(range(months.last + 1)))
    assert drawn.between(200101, 200912).all()
    assert set(drawn % 100) == {*range(1, 13)}
    few = seen_kind(pd.Series([201701 + k % 12 for k in range(300)]))
    assert few == ph.Ordered(levels=tuple(range(201701, 201713)))
    short = kind_of(WRITTEN["%m/%d/%y"])
    assert (short.lower, short.upper) == ("01/01/19", "11/30/19")
    amounts = np.random.default_rng(1).integers(180_001, 219_912, 900)
    assert date_format(pd.Series(amounts)) is None


STEPS = {
    "day": ("2015-01-01", "2D", "%Y-%m-%d %H:%M:%S"), "minute": ("2015-01-01", "37min", "datetime"),
    "15 minutes": ("2015-01-01", "15min", "%H:%M"), "month": ("1947-11-01", "MS", "%Y-%m-%d"),
    "quarter": ("1947-12-31", "QE", "%d.%m.%Y"), "week": ("2015-01-07", "21D", "date"),
    "12 hours": ("2015-01-01 06:30", "12h", "%Y-%m-%dT%H:%MZ"),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_dates_keep_to_their_step(step: str) -> None:
    """Seen: midnights came out as 17:35:17, firsts of months as other days."""
    start, apart, form = STEPS[step]
    column = pd.Series(pd.date_range(start, periods=130, freq=apart), name="t")
    written = column.dt.date if form == "date" else column.dt.strftime(form)
    column = column if form == "datetime" else written
    kind: Any = kind_of(column)
    assert (kind.format, kind.step, kind_from_dict(kind.as_dict())) == (form, step, kind)
    assert kind.values(kind.numbers(column), column).tolist() == column.tolist()
    drawn = kind.values(np.arange(kind.last + 1.0), pd.Series(range(kind.last + 1)))
    assert column.isin(drawn).all()
    assert drawn.is_unique
    assert kind_of(drawn).step == step


def test_what_is_off_the_step_counts_as_the_date_before() -> None:
    kind = ph.Dates(lower="2001-01-31", upper="2009-12-31", step="month")
    off = pd.Series(["2001-02-27", "2001-02-28", "2001-04-15", "1999-01-01", "2031-01-01"])
    assert kind.numbers(off).tolist() == [0, 1, 2, 0, 107]
    assert kind.values(np.arange(3.0), off[:3]).tolist() == ["2001-01-31", "2001-02-28",
                                                             "2001-03-31"]  # fmt: skip


def test_years_of_two_digits_are_no_later_than_the_next() -> None:
    """Seen: births of 1933 were read as of 2033."""
    born = pd.Series(pd.date_range("1933-01-01", "2019-12-01", freq="37D")).dt.strftime("%d.%m.%y")
    kind: Any = kind_of(born)
    assert (kind.lower, kind.upper) == ("01.01.33", "31.12.19")


def test_weeks_of_years_without_a_53rd_are_codes() -> None:
    weeks: Any = kind_of(pd.Series([y * 100 + w for y in range(2010, 2018) for w in range(1, 54)]))
    assert (weeks.lower, weeks.upper, weeks.step) == ("201001", "201752", "week")
    assert weeks.codes == tuple(f"{y}53" for y in range(2010, 2018) if y != 2015)


@pytest.mark.parametrize(("name", "texts"), [
    ("t", [f"{k}:{k % 60:02d}:07" for k in range(90)]), ("t", [f"PT{k}H7M" for k in range(90)]),
    ("t", [f"{k % 28 + 1}. März {1990 + k}" for k in range(90)]),
    ("time", [1_663_018_041 + 977 * k for k in range(90)]),
])  # fmt: skip
def test_what_seems_to_be_dates_is_said(name: str, texts: list[Any]) -> None:
    """Seen: "may be an identifier", and dropped."""
    assert "make ISO dates or numbers" in to_decide(pd.DataFrame({name: texts}))[name]
    assert not seems_dates(pd.Series([f"Ward {k}" for k in range(90)]))


def test_days_beside_years_alone_are_to_decide() -> None:
    days = pd.Series(pd.date_range("2001-01-03", periods=200, freq="37D")).astype(str)
    for part in (days.str[:4], days.str[:7], days.str[:8] + "00"):
        mixed = days.where(np.arange(200) % 3 > 0, part).rename("t")
        assert "dates whose format they do not tell" in to_decide(mixed.to_frame())["t"]


def test_ends_are_those_of_years_or_months_and_clip_what_lies_beyond() -> None:
    kind = kind_of(WRITTEN["%d.%m.%Y"])
    assert (kind.lower, kind.upper) == ("01.01.2019", "30.11.2019")  # type: ignore[attr-defined]
    far = pd.Series(["31.12.1899", "02.01.2019", "01.01.2031", "32.01.2019", None])
    np.testing.assert_array_equal(kind.numbers(far), [0, 1, 333, np.nan, np.nan])  # type: ignore[attr-defined]


def test_an_entry_has_no_say_in_another() -> None:
    """Whatever stands in the other cells, a broken control would be a format read from them."""
    kind = ph.Dates(lower="2000-01-01", upper="2020-12-31", codes=("open",))
    for other in ("2001-05-06", 20010506, 3.5, None, date(2001, 5, 6), "open", [1]):
        column = pd.Series(["2000-01-11", other], dtype=object)
        assert kind.numbers(column)[0] == 10
    assert kind.numbers(pd.Series(["open"]))[0] == -1
    assert kind.values(np.array([-1.0, 10.0]), pd.Series([0, 0])).tolist() == ["open", "2000-01-11"]


def test_what_stands_for_something_else_is_a_code() -> None:
    column = pd.concat([WRITTEN["%Y-%m-%d"], pd.Series(["9999-12-31", "unknown"])])
    assert kind_of(column).codes == ("9999-12-31", "unknown")  # type: ignore[attr-defined]
    for none in ("1900-01-01", "1970-01-01"):
        column = pd.concat([WRITTEN["%Y-%m-%d"], pd.Series([none] * 9)])
        assert kind_of(column).codes == (none,)  # type: ignore[attr-defined]
    whole = pd.concat([WRITTEN["%Y%m%d"], pd.Series([0, 99991231])])
    assert kind_of(whole).codes == ("0", "99991231")  # type: ignore[attr-defined]


@pytest.mark.parametrize("texts", [
    [f"0{k % 9 + 1}/0{k // 9 + 1}/19{year}" for k in range(81) for year in (50, 51)],
    [f"{a}.{b}" for a in range(10, 20) for b in range(10, 20)],
    [f"{k:04d}" for k in range(1000, 1200)], [f"{k:05d}" for k in range(99)],
    [f"2021-02-3{k % 10} {k}" for k in range(100)],
])  # fmt: skip
def test_texts_whose_format_is_not_told_are_no_dates(texts: list[str]) -> None:
    assert date_format(pd.Series(texts)) is None


@pytest.mark.parametrize(("settings", "message"), [
    ({"lower": "1.1.2000", "upper": "2001-01-01"}, "lower must be a date written as %Y-%m-%d"),
    ({"lower": "2000-01-01", "upper": "1999-01-01"}, "upper must be after lower"),
    ({"lower": "2000-01-01", "upper": "2001-01-01", "format": "ISO"}, "format must be of strftime"),
    ({"lower": 20000101, "upper": "2001-01-01"}, "must be texts"),
    ({"lower": "00", "upper": "52", "format": "%U"}, "%U is none of these"),
    ({"lower": "2000-01-01", "upper": "2001-01-01", "step": "fortnight"}, "step must be one of"),
    ({"lower": "2000-01-01", "upper": "2000-12-01", "step": "year"}, "a year or more after"),
])  # fmt: skip
def test_what_is_no_range_of_dates_is_refused(settings: dict[str, Any], message: str) -> None:
    refuses(message, ph.Dates, **settings)
