"""Kinds of columns: declared, read, as JSON."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.models.columns.form import Kind
from pyhybrid.models.columns.kinds import kind_from_dict, kind_of
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
    ([f"{y}{w:02d}" for y in (2019, 2020) for w in range(1, 54)], True),
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
