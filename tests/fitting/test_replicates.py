"""Replicates: columns alone, and tables that are joined without copies of what stays."""

import numpy as np
import pandas as pd

from pyhybrid.fitting.replicates import joined


def test_joined_tables_share_what_stays_and_change_alone() -> None:
    """m sets used to hold m copies of every column; and no set may write into another."""
    table = pd.DataFrame({"a": np.arange(50.0), "y": 20, "text": ["x", "z"] * 25})
    table.attrs["note"] = "secret"
    sets = [joined(table, pd.DataFrame({"y": np.full(50, k)})) for k in range(3)]
    assert [list(each.columns) for each in sets] == [["a", "y", "text"]] * 3
    assert all(each.attrs == {} for each in sets)
    assert table.attrs
    if int(pd.__version__.split(".")[0]) >= 3:
        assert all(np.shares_memory(each["a"], table["a"]) for each in sets)
    before = table["a"].iloc[0]
    sets[0].loc[0, "a"] = 99.0
    assert table["a"].iloc[0] == before == sets[1]["a"].iloc[0]
    assert (sets[2]["y"] == 2).all()
