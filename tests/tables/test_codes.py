"""Answers that are no amounts among numbers: drafted as codes, kept by noisy marginals."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.models.columns.kinds import kind_from_dict
from pyhybrid.models.columns.support import codes_among
from pyhybrid.tables.describe import seen_kind, to_decide

RNG = np.random.default_rng(3)
N = 2000
INCOME = RNG.lognormal(10, 0.7, N).round(-2)
CODES = RNG.choice([-9.0, -8.0, -7.0], N)
ASKED = RNG.random(N) > 0.15


@pytest.mark.parametrize(("values", "codes"), [
    (np.where(ASKED, INCOME, CODES), (-9, -8, -7)),
    (np.where(ASKED, RNG.poisson(9, N), CODES + 106), (97, 98, 99)),
    (np.where(ASKED, RNG.poisson(9, N), 99), (99,)), (np.where(ASKED, INCOME, -9999), (-9999,)),
    (np.where(ASKED, RNG.integers(18, 91, N).clip(0, 80), 99), (99,)),
    (np.where(ASKED, INCOME, -9), (-9,)),
    (np.where(ASKED, RNG.integers(0, 60, N), 999), (999,)), (np.minimum(INCOME, 9999), ()),
    (np.where(ASKED, RNG.normal(10, 9, N).round(), -999), (-999,)),
    (np.where(ASKED, RNG.integers(0, 3000, N), 8888), (8888,)),
    (np.where(ASKED, RNG.poisson(9, N), RNG.choice([88, 99], N)), (88, 99)),
    (np.where(np.arange(N) < 2, 999, RNG.poisson(9, N)), ()),  # of too few records
    (np.where(ASKED, RNG.integers(0, 61, N), CODES + 106), (97, 98, 99)),
    (np.where(ASKED, RNG.integers(0, 53, N), RNG.choice([98, 99], N)), (98, 99)),
    (np.where(ASKED, RNG.normal(37, 0.6, N).round(1), 99.9), (99.9,)),
    (RNG.integers(0, 100, N), ()), (RNG.normal(99, 0.3, N).round(1).clip(0, 99.9), ()),
    (INCOME, ()), (RNG.normal(0, 9, N).round(), ()), (RNG.integers(18, 100, N), ()),
    (np.where(np.arange(N) < 2, -9, INCOME), ()),  # of too few records
    (np.where(ASKED, INCOME, -1000 - np.arange(N) % 3), ()),  # losses
    (np.array(["a", "b"] * 9), ()), (np.where(ASKED, INCOME, 99_999_998), (99_999_998,)),
    (np.where(ASKED, RNG.normal(70, 9, N).round(1), RNG.choice([888.8, 888.9], N)), (888.8, 888.9)),
    (np.where(ASKED, RNG.integers(0, 25, N), CODES * 11 + 165), (66, 77, 88)),
    (np.where(ASKED, INCOME, CODES * 100 + 600), (-300, -200, -100)),
    (np.where(ASKED, INCOME, CODES * 111), (-999, -888, -777)), (np.append(INCOME, 1e20), (1e20,)),
    (np.where(ASKED, RNG.integers(1940, 2000, N), 0), (0,)), (np.append(INCOME, -2**31), (-2**31,)),
    (np.where(ASKED, RNG.normal(3, 0.3, N).round(2), -9.99), (-9.99,)),
    (np.where(ASKED, RNG.integers(0, 1700, N), CODES + 10_004), (9995, 9996, 9997)),
    (RNG.lognormal(3, 1.2, N).round(), ()), (RNG.lognormal(30, 6, N), ()),
    (RNG.choice([0.49, 0.99, 1.49, 1.99, 2.49, 2.99, 3.99, 4.99, 5.99, 7.99, 9.99, 12.99], N), ()),
])  # fmt: skip
def test_codes_are_told_from_amounts(values: Any, codes: tuple[int, ...]) -> None:
    assert codes_among(pd.Series(values)) == codes


def test_codes_come_back_in_their_shares_and_no_other_number_below() -> None:
    """Seen: 1,173 answers of -7, -8, -9 became 176 numbers down to -10,710, none of them a code."""
    table = pd.DataFrame({"income": np.where(ASKED, INCOME, CODES), "sex": ["f", "m"] * (N // 2)})
    kinds = {str(name): seen_kind(column) for name, column in table.items()}
    assert kinds["income"].codes == (-9, -8, -7)
    assert kinds["income"].lower == 0
    assert kind_from_dict(kinds["income"].as_dict()) == kinds["income"]
    release = ph.synthesize_table(table, epsilon=20, types=kinds)
    drawn, held = release.synthetic[0]["income"], table["income"]
    assert set(drawn[drawn < 0]) == {-9, -8, -7}
    for code in (-9, -8, -7):
        assert abs((drawn == code).mean() - (held == code).mean()) < 0.02
    plain = {**kinds, "income": ph.Real(lower=-10, upper=1e6, decimals=0)}
    other = ph.synthesize_table(table, epsilon=20, types=plain).synthetic[0]["income"]
    assert set(other[other < 0]) != {-9, -8, -7}, "control"


def test_codes_of_few_numbers_are_levels() -> None:
    kind = seen_kind(pd.Series([*[0, 1, 2, 3, 4, 5, 6, 7] * 30, *[97, 98, 99] * 9]))
    assert kind == ph.Nominal(levels=(0, 1, 2, 3, 4, 5, 6, 7, 97, 98, 99))


@pytest.mark.parametrize(("first", "last"), [
    (1, 12), (0, 23), (1, 31), (0, 59), (1, 11), (-16, 16)])  # fmt: skip
def test_ends_that_all_numbers_between_occur_to_are_kept(first: int, last: int) -> None:
    """Seen: months 0, hours 24, minutes 60, a scale of 11 points to 12."""
    kind: Any = seen_kind(pd.Series(np.random.default_rng(1).integers(first, last + 1, 1800)))
    assert (kind.lower, kind.upper) == (first, last)
    few: Any = seen_kind(pd.Series([*range(first - 3, last)] * 40 + [last + 9]))
    assert few.upper >= last + 9


@pytest.mark.parametrize(("column", "codes"), [
    ([20210131, 20240229, 19991231, np.nan] * 5, ()), ([20210131, 20230229] * 9, ("20230229",)),
    ([20210131, 20211301] * 9, ("20211301",)), ([20210131.5] * 9, None),
    ([20210000 + k for k in range(32, 99)], None),
])  # fmt: skip
def test_days_written_as_numbers_are_no_amounts(
    column: list[float], codes: tuple[str, ...] | None
) -> None:
    """Seen: 77 % of released values were no day."""
    many = pd.Series([*column, *(20200100 + d for d in range(1, 32)),
                      *(20200300 + d for d in range(1, 32))])  # fmt: skip
    kind: Any = seen_kind(many)
    assert (kind.codes if isinstance(kind, ph.Dates) else None) == codes
    few = pd.Series([*column[:4], *(20200100 + d for d in range(1, 29))] * 9)
    assert isinstance(seen_kind(few), ph.Ordered | ph.Real)


def test_tiny_numbers_have_more_decimals() -> None:
    """Seen: numbers to 1e-12 had 8 decimals, and one cell, which the release refused."""
    kind: Any = seen_kind(pd.Series(np.random.default_rng(1).random(300) * 1e-12))
    assert (kind.lower, kind.upper, kind.decimals) == (0, 1e-12, 14)


def test_infinite_numbers_are_named() -> None:
    """Seen: a warning of numpy, then "of no kind that is read"."""
    own = pd.DataFrame({"x": [*map(float, range(60)), np.inf], "y": [*range(60), 0]})
    assert to_decide(own)["x"] == "it holds an infinite number: leave such cells empty"
    days = pd.DataFrame({"x": [*range(15_001, 15_366), *range(16_001, 16_366)] * 3})
    assert "730 of 730 levels have fewer than 10" in to_decide(days)["x"]
