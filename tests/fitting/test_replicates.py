"""Replicates: columns alone, and tables that are joined without copies of what stays."""

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import open_session

FAST = SamplerSettings(chains=4, warmup=300, draws=200)


def _table(n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {"a": rng.normal(size=n), "y": rng.poisson(20, n), "text": ["x", "z"] * (n // 2)}
    )


@pytest.mark.samples
def test_a_replicate_is_the_synthesized_columns_alone() -> None:
    table = _table()
    session = open_session(
        ph.Poisson("y ~ 1").bind(table), seed=1, engine="embedded", settings=FAST
    )
    draws = session.unweighted().draws
    made = session.bound.replicate(draws, 0, np.random.default_rng(1))
    assert list(made.columns) == ["y"]
    pd.testing.assert_index_equal(made.index, table.index)


def test_joined_tables_share_what_stays_and_change_alone() -> None:
    """m sets used to hold m copies of every column; and no set may write into another."""
    table = _table()
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
