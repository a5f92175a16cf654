"""Replicates: columns alone, and tables that are joined without copies of what stays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.replicates import joined, without_bias
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


@dataclass(frozen=True)
class _Fit:
    variables: dict[str, Any]

    def flat(self, name: str) -> Any:
        return self.variables[name][0]


def test_a_bias_is_found_wherever_a_predictor_has_its_zero() -> None:
    """Of intercepts, 50 predictors' units away, pairs say opposite things as their slopes do."""
    rng = np.random.default_rng(5)

    def fit(level: float, slope: float) -> Any:
        at_usual, slopes = level + 0.05 * rng.normal(size=500), slope + 0.01 * rng.normal(size=500)
        return _Fit({"beta": np.column_stack([at_usual - 50 * slopes, slopes])[None]})

    released = fit(0.8, 0.1)
    pairs = [(fit(0.8, 0.1 + off), fit(1.0, 0.1)) for off in (0.01, -0.01)]
    before, after = (
        own.flat("beta") for own in (released, without_bias(released, pairs, ["beta"]))
    )
    np.testing.assert_allclose((after - before) @ (1, 50), 0.2, atol=0.02)
    np.testing.assert_allclose((after - before)[:, 1], 0, atol=0.001)
