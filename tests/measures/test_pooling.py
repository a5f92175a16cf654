"""`pool` on statsmodels results and arrays, against rules worked out by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import pyhybrid as ph
from tests.refusals import refuses


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


def test_by_hand_partially_synthetic() -> None:
    # q = 1, 2, 3; v = .5, .7, .6: T = 1/3 + .6, nu = 2 (1 + .6 * 3)^2 = 15.68.
    row = ph.measures.pool([(1.0, 0.5), (2.0, 0.7), (3.0, 0.6)]).table().iloc[0]
    assert row["standard_error"] == pytest.approx((14 / 15) ** 0.5, rel=1e-14)
    assert row["df"] == pytest.approx(15.68, rel=1e-14)
    # R: 2 * pt(-2 / sqrt(14 / 15), 15.68)
    assert row["p_value"] == pytest.approx(0.0553217771211, rel=1e-10)


def test_by_hand_nested() -> None:
    # Nest means 2, 5: B = 4.5; within-nest variances 2, 0: bbar = 1; v = .5.
    # T = 1.5 * 4.5 - 1/2 + .5 = 6.75; 1/nu = 6.75^2 / (1 * 6.75^2) + .5^2 / (2 * 1 * 6.75^2).
    pairs = [[(1.0, 0.5), (3.0, 0.5)], [(5.0, 0.5), (5.0, 0.5)]]
    pooled = ph.measures.pool(pairs, rule="nested")
    assert pooled.variance == pytest.approx([6.75])
    assert pooled.df == pytest.approx([1 / (1 + 0.25 / (2 * 6.75**2))])


def test_without_error_there_is_a_p_value() -> None:
    table = ph.measures.pool([([0.0, 1.0], [0.0, 0.0])] * 2).table()
    assert table["p_value"].tolist() == [1, 0]


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
