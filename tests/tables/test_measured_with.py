"""Columns that noisy marginals measure a column with: few, and chosen without the data."""

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.models.columns.form import Kind
from pyhybrid.tables.domains import MOST_EFFECTS_OF_A_COLUMN, association, few_predictors
from pyhybrid.tables.synthesis import table_mechanism
from tests.refusals import refuses


def test_kept_columns_come_first_then_those_of_a_reference_or_the_nearest() -> None:
    kinds: dict[str, Kind] = {name: ph.Nominal(levels=(0, 1)) for name in "abcdy"}
    rest = {name: kind for name, kind in kinds.items() if name != "a"}
    assert few_predictors(rest, {"a": kinds["a"]}, most=2)["y"] == ("a", "d")
    assert few_predictors(kinds, {}, most=3)["y"] == ("b", "c", "d")
    rng = np.random.default_rng(1)
    reference = pd.DataFrame({name: rng.integers(0, 2, 400) for name in "abcd"})
    reference["y"] = np.where(rng.random(400) < 0.9, reference["b"], 1 - reference["b"])
    assert few_predictors(rest, {"a": kinds["a"]}, reference, most=1)["y"] == ("b",)


def test_association_is_mutual_information() -> None:
    """ln 2 for a fair coin and itself; near 0 for independent numbers, whose bias is 81 / 2n."""
    coin = pd.Series([0, 1] * 5000)
    assert association(coin, coin) == pytest.approx(np.log(2) - 1 / 20_000)
    rng = np.random.default_rng(2)
    one, other = pd.Series(rng.normal(size=10_000)), pd.Series(rng.normal(size=10_000))
    assert abs(association(one, other)) < 5 * np.sqrt(2 * 81) / 20_000  # 2n I is chi-squared(81)


def kinds(n: int, n_levels: int) -> dict[str, Kind]:
    return {f"c{k}": ph.Nominal(levels=tuple(range(n_levels))) for k in range(n)}


def test_few_tables_are_of_the_nearest_columns_and_keep_models_small() -> None:
    """Of thirty columns of 300 levels each pair would have 90,000 effects: none is measured."""
    many = table_mechanism(kinds(30, 300), {}, epsilon=4.0)
    assert set(many.order.values()) == {()}
    mechanism = table_mechanism(kinds(10, 9), {}, epsilon=1.0)
    assert mechanism.order["c9"] == ("c6", "c7", "c8")
    assert mechanism.n_tables == 1 + 1 + 2 + 7 * 3, "45 pairs in all"
    cells = {name: own.n_cells for name, own in mechanism.domain.items()}
    for name, reads in mechanism.order.items():
        assert cells[name] * (1 + sum(cells[own] for own in reads)) <= MOST_EFFECTS_OF_A_COLUMN


def test_a_delta_has_all_pairs_measured_where_models_stay_small() -> None:
    """Else, and without a delta, they are few, or what is named."""
    small = kinds(12, 4)
    own = table_mechanism(small, {}, epsilon=2.0, delta=1e-6)
    assert own.n_tables == 1 + 12 * 11 // 2
    few = table_mechanism(small, {}, epsilon=2.0)
    assert few.n_tables < own.n_tables
    assert table_mechanism(small, {}, epsilon=2.0, select="all").order == own.order
    assert table_mechanism(small, {}, epsilon=2.0, delta=1e-6, select="few").order == few.order
    large = kinds(12, 20)
    assert table_mechanism(large, {}, epsilon=2.0, delta=1e-6).n_tables < own.n_tables
    refuses("select must be", table_mechanism, small, {}, epsilon=2.0, select="some")
