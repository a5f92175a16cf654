"""Outcomes of levels are compared by shares; missing values have a share of their own."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.studies.comparing.comparison import compare, shown_levels
from tests.normal_draws import FEW_DRAWS

OPTIONS: dict[str, Any] = {**FEW_DRAWS, "seed": 3}
N = 90
TABLE = pd.DataFrame({
    "way": ["walk", "bus", "bus"] * 30, "voted": [True, False, False] * 30,
    "visits": pd.array([0, 3, None, 5, 1, 2] * 15, dtype="Int64"), "x": np.arange(N) / N,
    "asked": ["no", "yes", None] * 30,
})  # fmt: skip


@pytest.mark.parametrize(("model", "names"), [
    (ph.Categorical("way ~ 1"), ["share of bus", "share of walk"]),
    (ph.Bernoulli("voted ~ 1"), ["share of False", "share of True"]),
    (ph.Bernoulli("asked ~ 1", missing=True), ["share of no", "share of yes", "share missing"]),
    (ph.Poisson("visits ~ 1", missing=True), ["mean", "median", "q15", "q90", "share missing"]),
])  # fmt: skip
def test_what_is_compared_of_an_outcome(model: Any, names: list[str]) -> None:
    found = compare(
        {"plain": ph.Unweighted(model), "CW": ph.CountWeighted(model, kind="absolute")},
        TABLE, n_synthetic=3, **OPTIONS,
    )  # fmt: skip
    estimates = found.estimates.set_index(["source", "statistic"])["estimate"]
    assert list(estimates["data"].index) == names
    outcome = found.outcome
    sets = [each[outcome] for each in found.releases["plain"].synthetic]
    for name in names:
        assert estimates["data", name] == pytest.approx(_expected(name, TABLE[outcome]))
        means = np.mean([_expected(name, y) for y in sets])
        assert estimates["plain", name] == pytest.approx(means)


def _expected(name: str, y: pd.Series) -> float:
    if name.startswith("share"):
        found = y.isna() if name == "share missing" else y.astype(str) == name[len("share of ") :]
        return float(found.mean())
    present = y.dropna().astype(float)
    of = {"median": 0.5, "q15": 0.15, "q90": 0.9}
    return float(present.quantile(of[name]) if name in of else present.mean())


def test_only_the_most_frequent_levels_are_shown() -> None:
    levels = np.repeat(list("abcdefgh"), np.arange(1, 9))
    bound = ph.Categorical("y ~ 1").bind(pd.DataFrame({"y": levels}))
    assert list(shown_levels(bound)) == [f"share of {level}" for level in "cdefgh"]


def test_a_curve_refuses_levels_and_leaves_missing_values_out() -> None:
    with pytest.raises(InvalidInput, match="'way' has levels; take compare, which shows their"):
        ph.studies.risk_utility_curve(ph.Categorical("way ~ 1"), TABLE, scales=[1.0], **OPTIONS)
    found = ph.studies.risk_utility_curve(
        ph.Poisson("visits ~ 1", missing=True), TABLE, scales=[1.0], n_synthetic=2, **OPTIONS
    )
    assert np.isfinite(found.table[["max_ecdf", "error_mean"]].to_numpy(dtype=float)).all()
