"""What noisy marginals count: sizes, prices of the two steps, a reference beside them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms.marginals.domain import ColumnDomain, Predictor
from pyhybrid.mechanisms.marginals.log_linear import Measurement
from pyhybrid.mechanisms.marginals.measure import Measuring, of_reference
from pyhybrid.mechanisms.marginals.noisy_marginals import public_predictors
from pyhybrid.mechanisms.marginals.one_way import smooth
from pyhybrid.mechanisms.marginals.sample import Records, simulated
from pyhybrid.primitives.tables import Price

pytestmark = pytest.mark.usefixtures("opendp")
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


PUBLIC = {"age": Predictor.of_public(TABLE["age"])}


def measuring(**changes: Any) -> Measuring:
    own: dict[str, Any] = {
        "data": Records.of(TABLE, DOMAIN, PUBLIC), "order": ORDER,
        "most_bins": 6, "price": Price.of(1e6), "relation": "replace",
    }  # fmt: skip
    return Measuring(**{**own, **changes})


def drawn(own: Measuring, found: Any, *, even: bool = False) -> Records:
    models = own.models(found, streams(1))
    predictors = {name: model.predictors for name, model in models.items()}
    modes = {name: model.mode for name, model in models.items()}
    records = Records(domain=found.domain, public=PUBLIC, n=N)
    return simulated(predictors, records, modes, streams(2), "", even=even)


@pytest.mark.parametrize(
    ("epsilon", "delta", "of_income"), [(2.0, None, 1), (2.0, 1e-6, 2), (40.0, 1e-6, 2)]
)
def test_both_steps_cost_no_more_than_the_price(
    epsilon: float, delta: float | None, of_income: int
) -> None:
    """What noise was added to: shares of the price, whose sum is below it by rounding alone."""
    price = Price.of(epsilon, delta)
    found = measuring(price=price).all_tables()
    first, *others = found.answers
    power, whole = (1, price.epsilon) if price.rho is None else (2, price.rho)
    spent = [(each.sensitivity / each.scale) ** power / power for each in found.answers]
    assert 0.99 * whole < sum(spent) <= whole
    assert spent[0] == pytest.approx(0.2 * whole, rel=0.02)
    assert len(first.tables()) == 1 + of_income, "bins, and blocks of them"
    assert sum(len(own.tables()) for own in others) == 3
    assert others[0].scale >= others[-1].scale, "of fewer cells, and of more"


def test_nothing_is_merged_where_bins_are_few_or_not_to_be() -> None:
    """Without a number of bins nothing is measured alone either."""
    for bins in (None, 40, 60):
        own = measuring(most_bins=bins)
        found = own.all_tables()
        assert sum(len(own.tables()) for own in found.answers) == (3 if bins is None else 5)
        assert found.domain == DOMAIN
        income = found.tables["income", "sex"].noisy
        np.testing.assert_allclose(income.sum(axis=1), TRUE, atol=0.5)  # epsilon 1e6
    men, wide = TABLE["age"] < 30, np.full((2, 1), 1e5)
    other = Records.of(TABLE.assign(sex=np.where(men, "m", "f")), DOMAIN, PUBLIC)
    free = measuring(data=other, order={"sex": (), "income": ("sex",)})
    found = free.all_tables()
    nothing = Measurement(noisy=np.zeros((2, 1)), clique=("sex", ""), stddev=wide)
    found.tables["sex", ""] = nothing
    made = drawn(free, found, even=True)
    assert abs(made.places["sex"].sum() - men.sum()) <= 4, "the table of incomes tells of it"


def test_merged_cells_hold_the_fine_ones_where_only_merged_edges_are_whole() -> None:
    """Edges 0, 0.5, 5 ... are of real numbers; 0, 5 ..., read anew, of whole ones: the control."""
    own = ColumnDomain(bins=(0, 0.5, *range(5, 201, 5)), missing=True)
    domain = {**DOMAIN, "income": own}
    found = measuring(data=Records.of(TABLE, domain, PUBLIC), most_bins=12).all_tables()
    few = found.domain["income"]
    assert all(edge % 1 == 0 for edge in few.bins)
    true = np.histogram(TABLE["income"], few.bins)[0]
    held = found.tables["income", "sex"].noisy.sum(axis=1)[:-1]
    np.testing.assert_allclose(held, true, atol=0.5)  # epsilon 1e6
    anew = np.bincount(few.places(TABLE["income"]), minlength=few.n_cells)[:-1]
    assert np.abs(anew - true).max() > 0.5


def test_the_reference_counts_beside_the_noise() -> None:
    """Under much noise the shares are the reference's; under little they are the data's."""
    other = TABLE.assign(income=RNG.gamma(2, 20, N).clip(0, 200))
    public, of_other = public_predictors(TABLE, other, DOMAIN, ["age"])
    assert public["age"].positions.size == of_other["age"].positions.size
    known = Records.of(other, DOMAIN, of_other)
    off, true = [], TRUE / N
    free = measuring(reference=known, order={**ORDER, "sex": ()})
    models = free.models(free.all_tables(), streams(1))
    assert models["sex"].predictors == ("", "age"), "by it alone"
    for reference in (known, None):
        own = measuring(price=Price.of(0.01), reference=reference)
        modes = [own.all_tables().alone["income"].shares for _ in range(4)]
        off.append(float(np.mean([np.abs(mode - true).sum() / 2 for mode in modes])))
    assert off[0] < 0.25 < off[1]
    wrong = other.assign(income=0.0, sex="f")  # says nothing where hardly any noise is
    for reference in (Records.of(wrong, DOMAIN, of_other), None):
        own = measuring(reference=reference)
        found = own.all_tables()
        assert np.abs(found.alone["income"].shares - true).max() < 0.03
        made = drawn(own, found)
        assert abs(made.places["sex"].mean() - (TABLE["sex"] == "m").mean()) < 5 * 0.5 / np.sqrt(N)


def test_a_reference_is_a_measurement_whose_error_is_sampling_and_drift() -> None:
    """Of 200 samples of 400 from one law, counts deviate from those of 100 others, scaled, by no
    more than is stated, and by about half of it at least, as nothing drifts; raked, by less."""
    p, rng, tables = np.outer([0.5, 0.3, 0.2], [0.7, 0.3]).ravel(), np.random.default_rng(3), []
    off, stated, raked = [], 0.0, []
    for _ in range(200):
        data, other = rng.multinomial(400, p).reshape(3, 2), rng.multinomial(100, p).reshape(3, 2)
        found = of_reference(("y", "x"), other * 1.0, 400)
        margins = (data.sum(axis=1) * 1.0, data.sum(axis=0) * 1.0)
        tables = of_reference(("y", "x"), other * 1.0, 400, margins).noisy
        np.testing.assert_allclose(tables.sum(axis=0), margins[1], rtol=1e-2)
        off.append((found.noisy - data) ** 2)
        raked.append((tables - data) ** 2)
        stated = stated + found.stddev**2 / 200
    ratio = np.mean(off, axis=0) / stated
    assert (ratio > 0.25).all()  # 0.51 expected of the largest cell, with an error of 0.05
    assert (ratio < 1.2).all()
    assert np.mean(raked) < np.mean(off)


def test_sets_to_be_pooled_take_nothing_from_noisy_quartiles_and_one_set_does() -> None:
    """Where noise hides all, a column is flat for several sets, and about its quartiles for one."""
    price, noisy = Price.of(1.0, 1e-6), np.zeros((41, 1))
    noisy[8:14] = 100
    shares = []
    for several in (True, False):
        own = measuring(price=price, for_intervals=several)
        assert (own._blocks() == {}) == several
        table = Measurement(noisy=noisy, clique=("income", ""), stddev=np.full((41, 1), 1e6))
        found = smooth([table], DOMAIN["income"], N, informed=not several).shares[:-1]
        shares.append(found.max() / found.min())
    assert shares[0] < 1.01
    assert shares[1] > 100


def test_a_table_measured_twice_counts_by_its_precision() -> None:
    clique, ones = ("y", "x"), np.ones((1, 2))
    one = Measurement(noisy=np.array([[10.0, 4.0]]), clique=clique, stddev=ones)
    two = Measurement(noisy=np.array([[20.0, 4.0]]), clique=clique, stddev=2 * ones)
    both = one.combined(two)
    np.testing.assert_allclose([both.noisy, both.stddev**2], [[[12.0, 4.0]], [[0.8, 0.8]]])
