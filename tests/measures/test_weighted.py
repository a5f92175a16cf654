"""Weights of 1 change nothing to the last digit; whole weights are repeated records."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.measures import model_utility, propensity_utility, table_utility, utility_summary
from pyhybrid.measures.estimates import avg_ecdf, estimates, max_ecdf, summaries
from tests.refusals import refuses

HOW: Any = {"formulas": ["y ~ x + job"], "n_permutations": 2, "rng": 1}
STATISTICS = ["mean", "median", "q15", "q90", "q33.3"]
PAIRS = st.lists(st.tuples(st.integers(-5, 20), st.integers(1, 6)), min_size=1, max_size=25)


def sample(n: int, seed: int) -> pd.DataFrame:
    """Persons in clusters, with missing values and whole weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    table = pd.DataFrame({
        "x": x, "y": 1 + x + rng.normal(size=n), "job": rng.choice(["a", "b", "c"], n),
        "voted": (x + rng.logistic(size=n) > 0).astype(int),
        "w": rng.permutation(np.resize([1, 2, 3, 6], n)), "c": np.arange(n) // 4,
    })  # fmt: skip
    table.loc[rng.random(n) < 0.1, "x"] = np.nan
    return table


def repeated(table: pd.DataFrame) -> pd.DataFrame:
    return table.loc[table.index.repeat(table["w"])].reset_index(drop=True)


@given(PAIRS, PAIRS)
def test_whole_weights_are_repeated_records(first: Any, second: Any) -> None:
    (a, w), (b, v) = (np.array(pairs, dtype=float).T for pairs in (first, second))
    long, other = np.repeat(a, w.astype(int)), np.repeat(b, v.astype(int))
    found = summaries(a, statistics=STATISTICS, weights=w)
    np.testing.assert_allclose(found, summaries(long, statistics=STATISTICS), atol=1e-9)
    given_weights = {"weights": w, "synthetic_weights": v}
    assert max_ecdf(a, b, **given_weights) == pytest.approx(max_ecdf(long, other), abs=1e-12)
    assert avg_ecdf(a, b, **given_weights) == pytest.approx(avg_ecdf(long, other), abs=1e-12)


def test_weighted_intervals_cover_the_population() -> None:
    """Large values are sampled more often; weights put it right, and leaving them out does not."""
    rng = np.random.default_rng(3)
    inside = {True: 0, False: 0}
    for _ in range(200):
        y = rng.gamma(4, size=2000)
        drawn = rng.random(2000) < 0.02 * y
        for weighted in inside:
            w = 1 / (0.02 * y[drawn]) if weighted else None
            found = estimates(y[drawn], statistics=["mean"], weights=w, n_resamples=200, rng=rng,
                              level=0.95)  # fmt: skip
            inside[weighted] += bool(found.lower[0] <= 4 <= found.upper[0])
    assert inside[True] > 200 * 0.95 - 5 * np.sqrt(200 * 0.95 * 0.05) - 6  # percentile intervals
    assert inside[False] < 20


def test_a_column_of_ones_changes_no_number() -> None:
    real, other = sample(300, 1).assign(w=1), sample(300, 2).assign(w=1)
    plain = real.drop(columns="w"), other.drop(columns="w")
    ways = (plain, None), ((real, other), "w"), ((real, plain[1]), "w")
    one, *others = (utility_summary(*tables, **HOW, weights=w) for tables, w in ways)
    for summary in others:
        assert summary.overall() == one.overall()
        pd.testing.assert_frame_equal(summary.columns.estimates, one.columns.estimates)
        pd.testing.assert_frame_equal(summary.models[0].table, one.models[0].table)


def test_whole_weights_of_tables_are_repeated_records() -> None:
    """But for standard errors and what chance explains, which repeated records would understate."""
    real, other = sample(400, 3), sample(400, 4)
    weighted = utility_summary(real, other, **HOW, weights="w")
    long = utility_summary(*(repeated(own).drop(columns="w") for own in (real, other)), **HOW)
    # Missing numbers are set to means of the rows: the span of the design is the same.
    assert weighted.logistic.pmse == pytest.approx(long.logistic.pmse, rel=1e-6)
    assert weighted.logistic.by_set["null_mean"][1] > long.logistic.by_set["null_mean"][1]
    columns = ["max_ecdf", "avg_ecdf", "missing_data", "missing_synthetic"]
    np.testing.assert_allclose(weighted.columns.distances[columns], long.columns.distances[columns],
                               rtol=1e-9)  # fmt: skip
    np.testing.assert_allclose(weighted.columns.estimates["estimate"],
                               long.columns.estimates["estimate"], rtol=1e-9)  # fmt: skip
    ways = [found.one_and_two_way.one_way.set_index("column") for found in (weighted, long)]
    one, two = (way.loc["job", "total_variation"] for way in ways)
    assert one == pytest.approx(two)
    terms = [found.models[0].table for found in (weighted, long)]
    for name in ("estimate", "synthetic_estimate"):
        np.testing.assert_allclose(terms[0][name], terms[1][name], rtol=1e-9)


def test_ratios_under_weights_are_near_one_for_a_second_sample() -> None:
    rng = np.random.default_rng(1)
    pmse_ratios, table_ratios = [], []
    columns = {"a": lambda: rng.normal(size=200), "b": lambda: rng.choice(list("pqr"), 200),
               "w": lambda: rng.gamma(1.5, size=200) + 0.1}  # fmt: skip
    for _ in range(40):
        first, second = (pd.DataFrame({k: draw() for k, draw in columns.items()}) for _ in "ab")
        pmse_ratios.append(propensity_utility(first, second, weights="w").ratio)
        found = table_utility(first[["b", "w"]], second[["b", "w"]], weights="w")
        table_ratios.append(found.one_way["ratio"][0])
    for ratios in (pmse_ratios, table_ratios):
        error = np.std(ratios) / np.sqrt(len(ratios))
        assert abs(np.mean(ratios) - 1) < 5 * error + 0.02


def test_models_are_statsmodels_by_the_weights() -> None:
    real = sample(400, 8)
    present = real.dropna()
    own = (present["w"] / present["w"].mean()).to_numpy()
    found = model_utility(real, real, "voted ~ x", model="logit", rule="single", weights="w")
    fit = smf.glm("voted ~ x", present, family=sm.families.Binomial(), var_weights=own).fit()
    np.testing.assert_allclose(found.table["estimate"], fit.params, rtol=1e-9)
    np.testing.assert_allclose(found.table["lower"], fit.conf_int()[0], rtol=1e-9)
    assert found.n_used == (len(present), len(present))


def test_models_without_weights_and_bad_columns_are_named() -> None:
    real = sample(80, 9)

    def fitted(table: pd.DataFrame, weights: Any, model: str = "ols") -> Any:
        return model_utility(table, real, "y ~ job", model=model, rule="single", weights=weights)

    refuses("with weights must be one of ols", fitted, real, "w", "quantreg")
    refuses("'v' is not one", fitted, real, "v")
    refuses("weights must name a column: found Series", fitted, real, real["w"])
    one = real.assign(w=[0.0, *real["w"][1:]])
    refuses("above 0 and not missing: 1 of 80 .*in the data", fitted, one, "w")
    refuses(r"must be numbers \(in the data\)", fitted, real, "job")
