"""What noisy marginals count: sizes, prices of the two steps, refusals, a reference beside them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms.marginals.domain import ColumnDomain, of_public
from pyhybrid.mechanisms.marginals.log_linear import Measurement
from pyhybrid.mechanisms.marginals.measurement import Measuring
from pyhybrid.mechanisms.marginals.noisy_marginals import reference_of
from pyhybrid.primitives.tables import Price
from tests.conftest import require_opendp

RNG = np.random.default_rng(8)
N = 400
TABLE = pd.DataFrame({
    "age": RNG.integers(18, 90, N), "sex": RNG.choice(["f", "m"], N),
    "income": RNG.gamma(2, 20, N).clip(0, 200),
})  # fmt: skip
DOMAIN = {
    "sex": ColumnDomain(levels=("f", "m")),
    "income": ColumnDomain(bins=tuple(range(0, 201, 5)), missing=True),
}
ORDER = {"sex": ("age",), "income": ("age", "sex")}
TRUE = np.bincount(DOMAIN["income"].places(TABLE["income"]), minlength=41)


def measuring(**changes: Any) -> Measuring:
    own: dict[str, Any] = {
        "domain": DOMAIN, "order": ORDER, "public": {"age": of_public(TABLE["age"])},
        "most_bins": 6, "share": 0.2, "price": Price.of(1e6), "relation": "replace",
    }  # fmt: skip
    return Measuring(**{**own, **changes})


@pytest.mark.parametrize(
    ("epsilon", "delta", "of_income"), [(2.0, None, 1), (2.0, 1e-6, 2), (40.0, 1e-6, 3)]
)
def test_both_steps_cost_no_more_than_the_price(
    epsilon: float, delta: float | None, of_income: int
) -> None:
    """What noise was added to: shares of the price, whose sum is below it by rounding alone."""
    require_opendp()
    price = Price.of(epsilon, delta)
    found = measuring(price=price).of(TABLE)
    first, *others = found.answers
    power, whole = (1, price.epsilon) if price.rho is None else (2, price.rho)
    spent = [(each.sensitivity / each.scale) ** power / power for each in found.answers]
    assert 0.99 * whole < sum(spent) <= whole
    assert spent[0] == pytest.approx(0.2 * whole, rel=0.02)
    assert len(first.tables()) == 1 + of_income, "bins, blocks of them, single numbers"
    assert sum(len(own.tables()) for own in others) == 3
    assert others[0].scale >= others[-1].scale, "of fewer cells, and of more"


def test_nothing_is_merged_where_bins_are_few_or_not_to_be() -> None:
    """Without a number of bins nothing is measured alone either."""
    require_opendp()
    for bins in (None, 40, 60):
        own = measuring(most_bins=bins)
        found = own.of(TABLE)
        assert sum(len(own.tables()) for own in found.answers) == (3 if bins is None else 5)
        assert (own.binned, found.merged) == ((), ())
        assert dict(found.domain) == DOMAIN
        income = found.noisy["income"][-1].counts
        np.testing.assert_allclose(income.sum(axis=1), TRUE, atol=0.5)  # epsilon 1e6
    free = measuring(order={"sex": (), "income": ("sex",)})
    men, untold = TABLE["age"] < 30, Measurement(counts=np.zeros((2, 1)), variance=1e9)
    found = free.of(TABLE.assign(sex=np.where(men, "m", "f")))
    found = replace(found, noisy={**found.noisy, "sex": (untold,)})
    made = free.chain(found, N, streams(1)).simulate(streams(2), "", even=True)
    assert abs(made["sex"].sum() - men.sum()) <= 4, "the table of incomes tells of it"
    domain = {
        name: ColumnDomain(bins=tuple(range(9)), step=1) for name in "abc"
    }  # seen: private: two were left
    table = pd.DataFrame({name: np.arange(400) % 8 for name in domain})
    mechanism = ph.NoisyMarginals(domain=domain, epsilon=1, select="private")
    few = mechanism._measuring(table).first(table).domain
    assert [own.bins for own in few.values()] == [own.bins for own in mechanism.domain.values()]


def test_the_reference_counts_beside_the_noise() -> None:
    """Under much noise the shares are the reference's, counted in cells, by weight."""
    require_opendp()
    other = TABLE.assign(income=RNG.gamma(2, 20, N).clip(0, 200))
    told, public = reference_of(other, 0.5, TABLE, DOMAIN, ["age"])
    assert public["age"].cells.shape == told.public["age"].cells.shape
    np.testing.assert_allclose(told.counts("sex", DOMAIN["sex"]).sum(), N / 2)
    known = told.known("income", ORDER["income"], DOMAIN)
    np.testing.assert_array_equal(known.outcome, DOMAIN["income"].places(other["income"]))
    np.testing.assert_allclose(np.asarray(known.cells.sum(axis=1)).ravel(), 2.0)
    free, off, true = measuring(reference=told, order={**ORDER, "sex": ()}), [], TRUE / N
    assert free.chain(free.of(TABLE), N, streams(1)).links[0].reads == ("", "age"), "by it alone"
    for reference in (told, None):
        plan = measuring(price=Price.of(0.01), reference=reference)
        modes = [plan.of(TABLE).modes["income"] for _ in range(4)]
        off.append(float(np.mean([np.abs(mode - true).sum() / 2 for mode in modes])))
    assert off[0] < 0.25 < off[1]  # 0.066 (deviates by 0.006) and 0.59 (by 0.07)
    wrong = other.assign(income=0.0, sex="f")  # says nothing where hardly any noise is
    off_by, _ = reference_of(wrong, 1.0, TABLE, DOMAIN, ["age"])
    for reference in (off_by, None):
        found = measuring(reference=reference).of(TABLE)
        assert np.abs(found.modes["income"] - true).max() < 0.03
        made = measuring(reference=reference).chain(found, N, streams(1)).simulate(streams(2), "")
        assert abs(made["sex"].mean() - (TABLE["sex"] == "m").mean()) < 5 * 0.5 / np.sqrt(N)
    alone = measuring(order={"sex": (), "income": ()}, reference=told)  # but for the reference
    assert alone.chain(alone.of(TABLE), N, streams(1)).links[1].reads == ("", "sex", "age")


def test_sets_to_be_pooled_take_nothing_from_noisy_quartiles_and_one_set_does() -> None:
    """Where noise hides all, a column is flat for several sets, and about its quartiles for one."""
    price, noisy = Price.of(1.0, 1e-6), np.zeros((41, 1))
    noisy[8:14] = 100
    shares = []
    for several in (True, False):
        own = measuring(price=price, for_intervals=several)
        assert (own.blocks() == {}) == several
        found = own.alone({"income": noisy}, 1e12, N, {})["income"].shares[:-1]
        shares.append(found.max() / found.min())
    assert shares[0] < 1.01
    assert shares[1] > 100
