"""Shares of levels: of the data and of every set, in the order of the data or of the levels."""

import numpy as np
import pandas as pd

from pyhybrid.reports.levels import level_table, shares_of
from pyhybrid.reports.masking import _in_order


def test_shares_by_set_and_their_means() -> None:
    data = pd.Series(["a", "b", "b", "b"])
    sets = [pd.Series(["b", "b", "c", "a"]), pd.Series(["b", "b", "b", "b"])]
    found = shares_of(data, {"one": sets})
    assert found.levels == ("b", "a", "c")
    np.testing.assert_allclose(found.data, [0.75, 0.25, 0])
    np.testing.assert_allclose(found.synthetic["one"], [[0.5, 0.25, 0.25], [1, 0, 0]])
    rows = level_table("way", data, {"one": sets}).rows
    assert rows == [["b", "0.750", "0.750"], ["a", "0.250", "0.125"], ["c", "0.000", "0.125"]]


def test_ordered_categories_keep_their_order_and_thirty_levels_are_shown() -> None:
    kind = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    data = pd.Series(["high", "high", "low", "middle"], dtype=kind)
    assert shares_of(data, {"one": [data]}).levels == ("low", "middle", "high")
    many = pd.Series([f"level {k}" for k in range(40) for _ in range(k + 1)])
    found = shares_of(many, {"one": [many]})
    assert found.levels[0] == "level 39"
    assert len(found.levels) == 30


def test_ordered_keys_of_a_mask_stand_in_their_order_not_by_frequency() -> None:
    school = pd.Series([12, 12, 12, 9, 9, 10, None], dtype="Int64")
    assert shares_of(school, {}).levels[0] == "12"
    assert shares_of(_in_order(school), {}).levels == ("9", "10", "12", "missing")
