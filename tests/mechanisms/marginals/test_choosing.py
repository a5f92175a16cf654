"""The private choice of tables: sensitivity of its scores, its price, what it finds, refusals."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms.marginals import select as choosing
from pyhybrid.mechanisms.marginals.domain import NO_PREDICTOR, ColumnDomain, Predictor
from pyhybrid.mechanisms.marginals.measurement import Measurement
from pyhybrid.mechanisms.marginals.select import ROUNDS, CountedFrame, Measured, Measuring, score
from pyhybrid.primitives.laplace import CHANGED
from pyhybrid.primitives.tables import CrossTable, Price, noisy_tables, size_of_noise

RNG = np.random.default_rng(4)
N = 1500
Z = RNG.integers(0, 3, N)
TABLE = pd.DataFrame({
    "age": RNG.integers(18, 90, N), "a": Z, "b": RNG.integers(0, 2, N),
    "c": np.where(RNG.random(N) < 0.7, Z, RNG.integers(0, 3, N)),
    "y": (20 * Z + RNG.gamma(2, 15, N)).clip(0, 199),
})  # fmt: skip
DOMAIN = {
    "a": ColumnDomain(levels=(0, 1, 2)),
    "b": ColumnDomain(levels=(0, 1)),
    "c": ColumnDomain(levels=(0, 1, 2)),
    "y": ColumnDomain(bins=tuple(range(0, 201, 8)), missing=True),
}
ORDER = {"a": ("age",), "b": ("age", "a"), "c": ("age", "a", "b"), "y": ("age", "a", "b", "c")}
pytestmark = pytest.mark.usefixtures("opendp")


def counted(table: pd.DataFrame) -> CountedFrame:
    public = {"age": Predictor.of_public(table["age"])} if "age" in table else {}
    return CountedFrame(table=table, public=public)


def measuring(**changes: Any) -> Measuring:
    own: dict[str, Any] = {
        "domain": DOMAIN, "order": ORDER, "public": {"age": Predictor.of_public(TABLE["age"])},
        "most_bins": 5, "price": Price.of(4.0), "relation": "replace",
    }  # fmt: skip
    return Measuring(**{**own, **changes})


def found(seed: int = 1, most_rounds: int = ROUNDS, **changes: Any) -> Measured:
    return measuring(**changes).chosen_tables(
        counted(TABLE), streams(seed), most_rounds=most_rounds
    )


@pytest.mark.parametrize("relation", ["remove", "replace"])
def test_scores_change_by_no_more_than_the_record(relation: str) -> None:
    """All databases of three records in a table of 2 x 2, any model: the largest change is the
    stated sensitivity, and of two scores that look as good it is more."""
    cells = list(itertools.product(range(4), repeat=3))
    counts = {own: np.bincount(own, minlength=4).astype(float) for own in cells}
    counts |= {own[:2]: np.bincount(own[:2], minlength=4).astype(float) for own in cells}

    def squared(true: Any, modeled: Any, size: float) -> float:
        return float(((true - modeled) ** 2).sum() - size * true.size)

    def relative(true: Any, modeled: Any, size: float) -> float:
        return float((np.abs(true - modeled) / (modeled + 0.1)).sum() - size * true.size)

    largest = dict.fromkeys((score, squared, relative), 0.0)
    for own in cells:
        replaced = relation == "replace"
        others = [(*own[:2], last) for last in range(4)] if replaced else [own[:2]]
        for modeled, other in itertools.product(([3, 0, 0, 0], [0.5, 1, 0.2, 1.3]), others):
            for how in largest:
                moved = how(counts[own], np.array(modeled), 0.3) - how(
                    counts[other], np.array(modeled), 0.3
                )
                largest[how] = max(largest[how], abs(moved))
    assert largest[score] == pytest.approx(CHANGED[relation])
    assert largest[squared] > 1.5 * CHANGED[relation]
    assert largest[relative] > 1.5 * CHANGED[relation]


@pytest.mark.parametrize("relation", ["remove", "replace"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_all_answers_and_choices_together_cost_the_price(
    delta: float | None, relation: str
) -> None:
    """Exactly, and nearly all of it; without the choices it would be visibly less."""
    price = Price.of(4.0, delta)
    own = found(price=price, relation=relation)
    whole = Fraction(price.epsilon if price.rho is None else price.rho)
    power, of_choice = (1, 1) if delta is None else (2, 8)
    spent = [Fraction(each.sensitivity) / Fraction(each.scale) for each in own.answers]
    tables = sum(each**power / power for each in spent)
    choices = sum(Fraction(each.cost()) ** power / of_choice for each in own.choices)
    for each in own.choices:  # what sums of floating-point numbers are rounded by is on top
        assert CHANGED[relation] < each.sensitivity <= CHANGED[relation] * (1 + 1e-5)
    assert whole * Fraction(98, 100) < tables + choices <= whole
    assert choices == pytest.approx(float(whole) * 0.8 * 0.1, rel=0.05)
    assert len(own.answers) == len(own.choices) + 1


def test_the_tables_that_matter_are_chosen_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """c and y hang on a; b hangs on nothing. A score of the wrong sign finds others. Columns alone
    are in every model, in merged bins."""
    own = found(price=Price.of(200.0), most_rounds=4)
    first = {choice.candidate for choice in own.choices[:2]}
    assert first == {("c", "a"), ("y", "a")}
    assert {"a"} <= set(own.tables["y"]) & set(own.tables["c"])
    assert all(NO_PREDICTOR in tables for tables in own.tables.values())
    alone, few = own.tables["y"][NO_PREDICTOR], own.domain["y"]
    assert len(few.bins) - 1 <= 5
    true = np.bincount(few.places(TABLE["y"]), minlength=few.n_cells)
    assert np.abs(alone.noisy[:, 0] - true).max() < 8 * alone.stddev.max() + 1
    monkeypatch.setattr(choosing, "score", lambda *parts: -score(*parts))
    wrong = found(price=Price.of(200.0), most_rounds=4)
    assert {choice.candidate for choice in wrong.choices[:2]} != first
    with pytest.raises(InvalidInput, match=r"two tables or more to choose among: found 1"):
        found(domain={"a": DOMAIN["a"]}, order={"a": ("age",)})


def test_a_table_measured_twice_counts_by_its_precision() -> None:
    clique, ones = ("y", "x"), np.ones((1, 2))
    one = Measurement(noisy=np.array([[10.0, 4.0]]), clique=clique, stddev=ones)
    two = Measurement(noisy=np.array([[20.0, 4.0]]), clique=clique, stddev=2 * ones)
    both = one.combined(two)
    np.testing.assert_allclose([both.noisy, both.stddev**2], [[[12.0, 4.0]], [[0.8, 0.8]]])


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_size_of_noise_is_that_of_a_table(delta: float | None) -> None:
    """Mean absolute noise of 4,000 empty cells, within 5 standard errors."""
    price = Price.of(1.0, delta)
    none = sparse.csr_array((0, 1), dtype=np.int64)
    empty = CrossTable(codes=np.empty(0, np.int64), n_rows=4000, cells=none)
    drawn = np.abs(noisy_tables([empty], price=price, relation="replace").value)
    error = drawn.std() / np.sqrt(drawn.size)
    assert abs(drawn.mean() - size_of_noise(price, "replace")) < 5 * error + 0.05
