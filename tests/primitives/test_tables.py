"""Noisy contingency tables: counts, sensitivity by brute force, noise, refusals."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pyhybrid.primitives.tables import Price, cross_table, noisy_tables
from pyhybrid.privacy.conversions import epsilon_of_zcdp
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("opendp")


def table(codes: Any, cells: Any, n_rows: int = 2) -> np.ndarray:
    both = [np.array(one, dtype=np.int64) for one in (codes, cells)]
    return cross_table(both, (n_rows, 3))


def test_counts_are_sums_over_records() -> None:
    rng = np.random.default_rng(4)
    codes, cells = rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    expected = np.zeros((2, 3))
    np.add.at(expected, (codes, cells), 1)
    np.testing.assert_array_equal(table(codes, cells), expected)


def test_the_sensitivity_is_that_of_all_neighbors() -> None:
    """Every record and every replacement of it, outcome and predictors, in two tables."""
    records = list(itertools.product(range(2), range(3), range(3)))
    rest = ([0, 1], [0, 2])

    def counts(record: Any) -> np.ndarray:
        own = [] if record is None else [record]
        codes = [*rest[0], *(r[0] for r in own)]
        tables = [table(codes, [*rest[1], *(r[place] for r in own)]) for place in (1, 2)]
        return np.concatenate([one.ravel() for one in tables])

    for relation, pairs in {
        "remove": [(record, None) for record in records],
        "replace": list(itertools.product(records, records)),
    }.items():
        changes = [np.abs(counts(one) - counts(other)) for one, other in pairs]
        own: Any = {"relation": relation}
        made = noisy_tables([table(*rest)] * 2, price=Price.of(1.0), **own)
        gaussian = noisy_tables([table(*rest)] * 2, price=Price.of(1.0, 1e-6), **own)
        assert max(change.sum() for change in changes) == made.sensitivity
        squared = max((change**2).sum() for change in changes)
        assert squared == {"remove": 2, "replace": 4}[relation]
        assert gaussian.sensitivity == pytest.approx(np.sqrt(squared))


TABLES = [table([0] * 3000, [0] * 3000, n_rows=500) for _ in range(2)]


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("relation", ["remove", "replace"])
def test_the_noise_has_the_scale_that_is_stated(relation: str, delta: float | None) -> None:
    """Every cell of every table: 5 standard errors of the mean and of the second moment; that a
    noise scaled for one table is caught is audited in tests/audits."""
    price, changed = Price.of(2.0, delta), {"remove": 2, "replace": 4}[relation]
    made = noisy_tables(TABLES, price=price, relation=relation)
    expected = changed / 2 if price.rho is None else np.sqrt(changed / (2 * price.rho))
    assert made.scale == pytest.approx(expected)
    assert made.cost() <= made.charge.epsilon == 2.0
    assert price.rho is None or made.rho <= made.charge.rho * (1 + 1e-12)
    noise = made.value - np.concatenate([one.ravel() for one in TABLES])
    k = np.arange(-4000, 4001)
    weights = np.exp(-np.abs(k) / made.scale) if delta is None else stats.norm.pdf(k, 0, made.scale)
    second, fourth = ((weights * k**power).sum() / weights.sum() for power in (2, 4))
    assert made.variance == pytest.approx(second, rel=1e-9)
    assert abs(noise.mean()) < 5 * np.sqrt(second / noise.size)
    assert abs((noise**2).mean() - second) < 5 * np.sqrt((fourth - second**2) / noise.size)
    first, last = made.tables()
    assert first.shape == last.shape == (500, 3)
    np.testing.assert_array_equal(np.concatenate([first, last]).ravel(), made.value)
    refuses("at least what the noise costs", replace, made, scale=made.scale / np.sqrt(2))


def test_parts_of_a_price_cost_the_whole() -> None:
    for share in (0.2, 1 / 3):
        one, other = Price.of(0.7).part(share), Price.of(0.7).part(1 - share)
        assert 0.7 * (1 - 1e-14) < one.epsilon + other.epsilon <= 0.7
        one, other = (Price.of(0.7, 1e-5).part(part) for part in (share, 1 - share))
        assert one.epsilon + other.epsilon > 0.75  # what adding epsilons would state
        assert epsilon_of_zcdp(one.rho + other.rho, 1e-5) <= 0.7
    assert Price.of(3.0).of_one_in(3).epsilon == 1.0
    assert Price.of(3.0, 1e-6).of_one_in(3).rho == pytest.approx(Price.of(3.0, 1e-6).rho / 9)


def test_what_would_cost_more_than_is_charged_is_refused() -> None:
    for codes, cells in (([0, 2], [0, 0]), ([-1, 0], [0, 0]), ([0, 1], [0, 3])):
        refuses("codes must be whole numbers within the table", table, codes, cells)
    one, other = table([0], [0]), table([0, 1], [0, 0])
    for tables in ([], [one, other], [-one, -one]):
        refuses("over the same records", noisy_tables, tables, price=Price.of(1.0))
