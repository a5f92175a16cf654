"""Combining rules and `pool`: coverage, and what the exact numbers of `tests/golden` leave."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import pyhybrid as ph
from pyhybrid.measures.combining import (
    Combined,
    combine_fully_synthetic,
    combine_multiple_imputation,
    combine_noise_aware,
    combine_partially_synthetic,
)
from tests.refusals import refuses


def check(result: Combined, **expected: Any) -> None:
    for name, value in expected.items():
        assert getattr(result, name) == pytest.approx(value, rel=1e-12), name


def test_where_noise_aware_and_fully_synthetic_variances_are_fixed() -> None:
    # q = 1, 2, 3: m = 3, mean 2, b = 1. As fully synthetic where b is at least 2 v: v = .3,
    # T = 4/3 - .3, nu = 2 (1 - .225)^2. Else, v = .6 > b / 2, as if b were 1.2: T = 4/3 * .6 and
    # nu = 2 (1 - .6 / 1.6)^2. No variance at all: a point.
    q, v = [[1, 2, 3], [1, 2, 3], [1, 1, 1]], [[0.25, 0.35, 0.3], [0.5, 0.7, 0.6], [0, 0, 0]]
    result = combine_noise_aware(np.transpose(q), np.transpose(v))
    check(result, estimate=[2, 2, 1], between=[1, 1, 0], within=[0.3, 0.6, 0],
          variance=[4 / 3 - 0.3, 0.8, 0], df=[2 * 0.775**2, 2 * 0.625**2, 2])  # fmt: skip
    assert result.adjusted.tolist() == [False, True, False]
    # Of fully synthetic sets: q = -1.5, 0, 1.5 has b = 2.25, and 4/3 * 2.25 = 3 = v: T is 0.
    result = combine_fully_synthetic([-1.5, 0.0, 1.5], [3.0, 3.0, 3.0])
    check(result, between=2.25, variance=3, df=2)
    assert result.adjusted


def test_interval_from_the_t_table() -> None:
    # v = 0, m = 5: nu = 4, t_.975 = 2.7764451; q = 1..5, b = 2.5, T = .5.
    result = combine_partially_synthetic([1.0, 2, 3, 4, 5], np.zeros(5))
    half = 2.7764451051977987 * np.sqrt(0.5)
    np.testing.assert_allclose(result.interval(), [3 - half, 3 + half], rtol=1e-9)
    # t_.95 on 4 degrees of freedom is 2.1318468.
    np.testing.assert_allclose(result.interval(0.9)[1] - 3, 2.1318467863266 * np.sqrt(0.5))


REPLICATES = 20_000


def synthetic_means(m: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Means and their variances from m partially synthetic sets of n normals around 0. Sufficient
    statistics only: data mean and variance, posterior draw of (mu, sigma2) under the flat prior,
    mean and variance of the synthetic set; shape (m, REPLICATES)."""
    rng = np.random.default_rng(2003)
    mean = rng.normal(0, np.sqrt(1 / n), REPLICATES)
    s2 = rng.chisquare(n - 1, REPLICATES) / (n - 1)
    sigma2 = s2 * (n - 1) / rng.chisquare(n - 1, (m, REPLICATES))
    mu = rng.normal(mean, np.sqrt(sigma2 / n))
    q = rng.normal(mu, np.sqrt(sigma2 / n))
    v = sigma2 * rng.chisquare(n - 1, (m, REPLICATES)) / (n - 1) / n
    return q, v


def coverage(result: Combined) -> float:
    lower, upper = result.interval()
    return float(((lower <= 0) & (upper >= 0)).mean())


FIVE_SE = 5 * np.sqrt(0.95 * 0.05 / REPLICATES)


@pytest.mark.parametrize("m", [5, 10, 20])
def test_partially_synthetic_interval_covers(m: int) -> None:
    q, v = synthetic_means(m)
    assert abs(coverage(combine_partially_synthetic(q, v)) - 0.95) < FIVE_SE


def test_coverage_catches_the_wrong_rules() -> None:
    q, v = synthetic_means(2)
    naive = combine_partially_synthetic(np.stack([q[0], q[0]]), np.stack([v[0], v[0]]))
    assert coverage(naive) < 0.95 - FIVE_SE, "one set taken for the data undercovers"
    q, v = synthetic_means(5)
    assert coverage(combine_multiple_imputation(q, v)) > 0.95 + FIVE_SE, "Rubin's T is too large"


def regressions(m: int, n: int = 80) -> list[Any]:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(m):
        frame = pd.DataFrame({"x": rng.normal(size=n)})
        frame["y"] = 1 + 2 * frame["x"] + rng.normal(size=n)
        found.append(smf.ols("y ~ x", frame).fit())
    return found


@pytest.mark.parametrize("rule", ["partially_synthetic", "fully_synthetic", "multiple_imputation"])
def test_statsmodels_results_are_combined_as_their_arrays(rule: str) -> None:
    models = regressions(4)
    pooled = ph.measures.pool(models, rule=rule)
    combine = getattr(ph.measures, f"combine_{rule}")
    expected = combine([fit.params for fit in models], [fit.bse**2 for fit in models])
    assert pooled.names == ("Intercept", "x")
    assert pooled.rule == rule.replace("_", " ")
    for part in ("estimate", "variance", "df", "adjusted"):
        assert (getattr(pooled, part) == getattr(expected, part)).all()
    table = pooled.table()
    assert table.loc["x", "lower"] == expected.interval()[0, 1]
    assert list(table.columns)[-2:] == ["p_value", "adjusted"]
    assert not table.isna().any().any()


def test_pooled_by_hand() -> None:
    # q = 1, 2, 3; v = .5, .7, .6: T = 1/3 + .6, nu = 2 (1 + .6 * 3)^2 = 15.68.
    row = ph.measures.pool([(1.0, 0.5), (2.0, 0.7), (3.0, 0.6)]).table().iloc[0]
    assert row["standard_error"] == pytest.approx((14 / 15) ** 0.5, rel=1e-14)
    assert row["df"] == pytest.approx(15.68, rel=1e-14)
    # R: 2 * pt(-2 / sqrt(14 / 15), 15.68)
    assert row["p_value"] == pytest.approx(0.0553217771211, rel=1e-10)
    # Without error there is a p-value, too.
    table = ph.measures.pool([([0.0, 1.0], [0.0, 0.0])] * 2).table()
    assert table["p_value"].tolist() == [1, 0]
    # Nest means 2, 5: B = 4.5; within-nest variances 2, 0: bbar = 1; v = .5.
    # T = 1.5 * 4.5 - 1/2 + .5 = 6.75; 1/nu = 6.75^2 / (1 * 6.75^2) + .5^2 / (2 * 1 * 6.75^2).
    pairs = [[(1.0, 0.5), (3.0, 0.5)], [(5.0, 0.5), (5.0, 0.5)]]
    pooled = ph.measures.pool(pairs, rule="nested")
    assert pooled.variance == pytest.approx([6.75])
    assert pooled.df == pytest.approx([1 / (1 + 0.25 / (2 * 6.75**2))])


@pytest.mark.parametrize(("models", "options", "message"), [
    ([(1.0, 0.5)], {}, "rule 'partially synthetic' needs at least 2 sets"),
    ([[(1.0, 1)], [(1.0, 1)] * 2], {"rule": "nested"}, "as many syntheses of each"),
    ([(1.0, 0.5)] * 2, {"rule": "rubin"}, "rule must be one of"),
    ([1, 2], {}, "model 1 must be a fitted model with params and bse"),
    ([(1.0, 0.5), (np.nan, 0.5)], {}, "model 2 must have finite estimates"),
    ([(1.0, 0.5), ([1.0, 2.0], [1.0, 1.0])], {}, "same terms in one order: model 2"),
    ([([1.0, 2.0], [0.5])] * 2, {}, "as many variances as estimates"),
    ([(1.0, -0.5)] * 2, {}, "variances finite and >= 0"),
])  # fmt: skip
def test_bad_input_is_named(models: Any, options: Any, message: str) -> None:
    refuses(message, ph.measures.pool, models, **options)
