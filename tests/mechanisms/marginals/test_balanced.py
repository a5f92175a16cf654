"""Even sets: tables are the model's, and on average over draws nothing is moved."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.mechanisms import ColumnDomain
from pyhybrid.mechanisms.marginals.domain import Predictor
from pyhybrid.mechanisms.marginals.log_linear import Rows, probabilities
from pyhybrid.mechanisms.marginals.sample import balanced, drawn, drawn_alone, spread

_WIDTHS = (4, 3)
_K = 6


def _model(n: int, rng: np.random.Generator) -> tuple[Any, Rows, list[int]]:
    """Probabilities by distinct row, of two columns of cells and one of a public number."""
    predictors = [
        Predictor(
            cells=rng.choice(width, n, p=np.arange(width, 0, -1) / sum(range(width + 1))),
            positions=np.full(width, np.nan),
        )
        for width in _WIDTHS
    ]
    predictors.append(Predictor.of_public(pd.Series(rng.normal(size=n), name="z")))
    rows = Rows.of(predictors)
    effects = rng.normal(size=(rows.cells.shape[1], _K)) / 2
    p = np.exp(rows.cells @ effects + np.linspace(1, -2, _K))
    return p / p.sum(axis=1, keepdims=True), rows, [each.positions.size for each in predictors]


def _off(cells: Any, p: Any, rows: Rows) -> Any:
    """Tables of cells with all predictors, less those that the model says."""
    return rows.cells[rows.of_record].T @ (np.eye(_K)[cells] - p[rows.of_record])


@pytest.mark.parametrize(("seed", "n"), [(0, 3000), (1, 3000), (2, 3000), (5, 200_000)])
def test_tables_are_the_models_where_independent_draws_have_noise(seed: int, n: int) -> None:
    """What is left does not grow with the records."""
    rng = np.random.default_rng(seed)
    p, rows, widths = _model(n, rng)
    even = np.sqrt((_off(balanced(p, rows, widths, rng), p, rows) ** 2).mean())
    alone = np.sqrt((_off(drawn(p[rows.of_record], rng), p, rows) ** 2).mean())
    assert even < 2
    assert alone > 4 * even


@pytest.mark.long
def test_on_average_tables_with_predictors_and_of_three_columns_are_the_models() -> None:
    """Of two predictors and the outcome at once no table is raked."""
    rng, times = np.random.default_rng(7), 60
    p, rows, widths = _model(400, rng)
    own = rows.cells[rows.of_record].toarray()
    pairs = (own[:, :4, None] * own[:, None, 4:7]).reshape(400, -1)
    due = pairs.T @ p[rows.of_record]
    off, three = [], []
    for _ in range(times):
        cells = balanced(p, rows, widths, rng)
        off.append(_off(cells, p, rows))
        three.append(pairs.T @ np.eye(_K)[cells] - due)
    for found in (np.array(off), np.array(three)):
        error = found.std(axis=0) / np.sqrt(times)
        assert (np.abs(found.mean(axis=0)) < 0.33 + 5 * error).all()


@pytest.mark.parametrize("seed", range(2))
def test_two_columns_of_the_same_predictors_do_not_move_together(seed: int) -> None:
    """As they would if records were filled in one order; the control does so."""
    rng, n = np.random.default_rng(seed), 4000
    p, rows, widths = _model(n, rng)
    mean = (p @ np.arange(_K))[rows.of_record]
    one, two = (balanced(p, rows, widths, rng) - mean for _ in range(2))
    assert abs(np.corrcoef(one, two)[0, 1]) < 5 / np.sqrt(n)
    same = [balanced(p, rows, widths, np.random.default_rng(9)) - mean for _ in range(2)]
    assert np.corrcoef(*same)[0, 1] > 0.99


@pytest.mark.parametrize("seed", range(2))
def test_numbers_are_spread_over_each_group_and_say_nothing_of_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, 900)
    found = spread(groups, rng)
    for group in range(3):
        own = np.sort(found[groups == group])
        places = np.arange(own.size) / own.size
        assert ((places <= own) & (own < places + 1 / own.size)).all()
        first, second = found[groups == group][:-1], found[groups == group][1:]
        assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(own.size)


def test_a_single_set_is_even_and_several_are_not() -> None:
    """At an epsilon where noise is nothing; several draw effects anew, too."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, 2000)
    df = pd.DataFrame({"x": x, "y": np.minimum(rng.poisson(1 + x), 9)})
    mechanism = ph.NoisyMarginals(
        domain={"y": ColumnDomain(bins=tuple(range(11)), step=1)}, given=["x"], epsilon=500.0,
    )  # fmt: skip

    def means(m: int) -> Any:
        made = mechanism.release(df, n_synthetic=m).synthetic
        return np.array([one.groupby("x")["y"].mean() for one in made])

    several, single = means(20), np.vstack([means(1) for _ in range(6)])
    middle = several.mean(axis=0)
    assert np.sqrt(((single - middle) ** 2).mean()) < several.std(axis=0).mean() / 2


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("m", [1, 2])
def test_numbers_within_bins_keep_slopes(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(50, 12, 4000)
    df = pd.DataFrame({"x": x, "y": 0.7 * x + rng.normal(15, 8, 4000)}).clip(0, 99)
    domain = {name: ColumnDomain(bins=tuple(range(101))) for name in df}
    told: Any = {"reference": df[:2000], "holds_no_released_record": True} if m > 1 else {}
    own = ph.NoisyMarginals(domain=domain, epsilon=1e4, most_bins=4, **told)
    one = own.release(df[2000:], n_synthetic=m).synthetic[0]
    assert abs(one.corr() - df.corr()).max().max() < 0.1  # .13 to .17 if drawn at random there
    assert abs(one.mean() - df[2000:].mean()).max() < 2  # 5 times .4, of 12 sets


def test_records_drawn_alone_are_those_of_the_probabilities_of_their_rows() -> None:
    """By effects of cells, in blocks, or by distinct rows: the same, of the same random numbers."""
    rng, sizes = np.random.default_rng(3), (4, 3, 1)
    predictors = [
        Predictor(cells=rng.integers(0, size, 20_000), positions=np.full(size, np.nan))
        for size in sizes
    ]
    effects = rng.normal(size=(5, 1 + sum(sizes)))
    rows = Rows.of(predictors)
    p = probabilities(effects, rows.cells)
    of_rows = drawn(p[rows.of_record], np.random.default_rng(1))
    alone = drawn_alone(effects, predictors, np.random.default_rng(1))
    np.testing.assert_array_equal(alone, of_rows)
    other = drawn_alone(np.roll(effects, 1, axis=0), predictors, np.random.default_rng(1))
    assert (other != of_rows).mean() > 0.1
