"""The support of an outcome and its decimals: what never leaves, what a charge rests on."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.cli.options import build_model, model_for
from pyhybrid.models.columns.form import places_of_levels
from pyhybrid.models.columns.support import (
    draw_within,
    in_form_of,
    limits_of_dtype,
    on_grid,
    shortest,
)
from pyhybrid.models.default_model import described_model
from tests.fits import fit_options
from tests.models.targets import AtPoints
from tests.refusals import refuses

RNG = np.random.default_rng(4)
N = 300
COUNTS = RNG.negative_binomial(2, 0.2, N)
RATING = RNG.integers(1, 6, N)


def test_a_strict_local_mechanism_needs_a_model() -> None:
    table = pd.DataFrame({"y": COUNTS, "x": 1.0})
    refuses("censored needs --model", model_for, None, "y ~ x", table,
            mechanism="censored")  # fmt: skip
    assert model_for("poisson", "y ~ x", table, mechanism="censored") == ph.Poisson("y ~ x")


@pytest.mark.parametrize("model", [ph.Poisson, ph.NegativeBinomial])
@pytest.mark.parametrize(("lower", "upper"), [(0, 1), (1, 5), (3, None)])
def test_nothing_outside_the_support_leaves(model: Any, lower: int, upper: int | None) -> None:
    """The engine draws any parameters at all: means far outside the support among them."""
    declared = model("y ~ 1", lower=lower, upper=upper)
    assert described_model(declared.describe()) == declared
    table = pd.DataFrame({"y": np.clip(RATING - 1, lower, upper)})
    at = AtPoints({"beta": np.array([[1.4]]), "phi": np.array([0.8])})
    made, free = (
        model("y ~ 1", **own).bind(table).replicate(at, 0, np.random.default_rng(1))["y"]
        for own in ({"lower": lower, "upper": upper}, {})
    )
    assert made.min() == lower
    assert made.max() == (upper or made.max())
    assert not free.between(lower, upper or np.inf).all(), "control"


def test_redrawn_values_follow_the_model_given_the_support() -> None:
    """Chi-square of 40,000 draws against the truncated Poisson probabilities."""
    n = 40_000
    table = pd.DataFrame({"y": np.resize(RATING, n)})
    bound = ph.Poisson("y ~ 1", lower=1, upper=5).bind(table)
    at = AtPoints({"beta": np.array([[1.0]])})
    observed = np.bincount(bound.replicate(at, 0, np.random.default_rng(2))["y"], minlength=6)[1:6]
    expected = stats.poisson.pmf(np.arange(1, 6), np.e)
    expected *= n / expected.sum()
    assert ((observed - expected) ** 2 / expected).sum() < stats.chi2.ppf(1 - 1e-6, 4)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "UInt8", "uint8[pyarrow]"])
def test_values_that_a_dtype_cannot_hold_never_leave(dtype: str) -> None:
    """Seen: the column was widened, values wrapped, and unsigned columns got negative ones."""
    table = pd.DataFrame({"y": pd.Series(np.clip(RNG.poisson(100, N), 0, 127)).astype(dtype)})
    draws = {"beta": np.array([[np.log(120.0)]]), "phi": np.array([1.0])}
    bound = ph.NegativeBinomial("y ~ 1").bind(table)
    made = bound.replicate(AtPoints(draws), 0, np.random.default_rng(1))
    assert made["y"].dtype == table["y"].dtype
    normal = ph.NormalRegression("y ~ 1", unit=100.0).bind(table)
    about_0 = AtPoints({"beta": np.zeros((1, 1)), "sigma": np.full(1, 0.4)})
    values = normal.replicate(about_0, 0, np.random.default_rng(1))["y"]
    assert values.dtype == table["y"].dtype
    assert (values.astype(float) >= limits_of_dtype(table["y"].dtype)[0]).all()
    assert (values.astype(float) < 100).mean() > 0.9, "not wrapped around"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "Int64"])
def test_limits_of_a_dtype_are_floats_that_it_can_hold(dtype: str) -> None:
    ends, plain = limits_of_dtype(pd.Series([1], dtype=dtype).dtype), np.dtype(dtype.lower())
    assert np.array(ends).astype(plain).astype(float).tolist() == [*ends]
    assert np.iinfo(plain).max - int(ends[1]) < 2**12
    assert limits_of_dtype(np.dtype(float)) == (-np.inf, np.inf)


def test_values_without_probability_in_the_support_are_at_its_end() -> None:
    rng = np.random.default_rng(3)
    far = np.where(np.arange(200) < 2, 50.0, 0.5)
    with pytest.warns(UserWarning, match="2 of 200 synthetic values are at an end"):
        made = draw_within(lambda rows: rng.normal(far[rows], 0.05), 200, (0, 1))
    assert np.flatnonzero(made >= 1).tolist() == [0, 1]
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    kept = draw_within(lambda rows: two.poisson(3.0, np.arange(8)[rows].size) * 1.0, 8, (0, 99))
    np.testing.assert_array_equal(kept, one.poisson(3.0, 8), "draws inside are left alone")


@pytest.mark.parametrize(("given", "message"), [
    ({"lower": -1}, "lower must be a whole number >= 0"), ({"lower": 1.5}, "lower must be"),
    ({"upper": 0}, "upper must be a whole number >= 1"),
    ({"lower": 5, "upper": 5}, "upper must be above lower"),
    ({"upper": 4}, "at most 4: row .* is larger"), ({"lower": 2}, "at least 2: row .* is smaller"),
])  # fmt: skip
def test_other_supports_and_data_outside_are_refused(given: dict[str, Any], message: str) -> None:
    table = pd.DataFrame({"y": RATING})
    refuses(message, lambda: ph.Poisson("y ~ 1", **given).bind(table))


@pytest.mark.parametrize("entry", [np.inf, -np.inf, np.nan, 3e38])
def test_floats_of_four_bytes_are_read_alike_whatever_stands_beside_them(entry: float) -> None:
    column = pd.Series([0.1, 0.7, 123456792, entry], dtype="float32")
    assert shortest(column).tolist()[:3] == [0.1, 0.7, 123456792.0]
    assert places_of_levels(column, (0.1, 0.7)).tolist()[:2] == [0, 1]


@pytest.mark.parametrize("entry", [pd.NaT, 10**5000, np.iinfo(np.int64).min, [1], None],
                         ids=["no date", "long", "least", "list", "none"])  # fmt: skip
def test_an_entry_that_is_no_level_changes_no_other(entry: object) -> None:
    column = pd.Series(["a", "b", entry], dtype=object)
    assert places_of_levels(column, ("a", "b")).tolist() == [0, 1, -1]


FAST = fit_options(chains=4, warmup=400, draws=150, seed=2)


def _neighbors() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two databases that differ in one record: two decimals, and five."""
    first = pd.DataFrame({"y": np.random.default_rng(3).uniform(0.1, 0.9, 60).round(2)})
    second = first.copy()
    second.loc[7, "y"] = 0.12345
    return first, second


def _decimals(values: pd.Series) -> int:
    return int(values.astype(str).str.partition(".")[2].str.len().max())


def _released(model: Any, table: pd.DataFrame) -> ph.Release:
    mechanism = ph.Censored(model, epsilon=6, inner=ph.Unweighted(model), check_modes=False)
    return mechanism.release(table, **FAST)


@pytest.mark.normal_draws
def test_decimals_read_from_the_data_tell_neighbors_apart_and_are_not_strict() -> None:
    """The attack, as it was: neighbors published 2 and 5 decimals. Given ones are the same."""
    first, second = (_released(ph.Beta("y ~ 1"), table) for table in _neighbors())
    assert (_decimals(first.synthetic[0]["y"]), _decimals(second.synthetic[0]["y"])) == (2, 5)
    assert first.charge.kind == second.charge.kind == "asymptotic local"
    for release, shown in ((first, "2"), (second, "5")):
        assert f"of the released values of y, {shown}: it was read from" in release.statement
        assert "decimals=, an option of the model, fixes it" in release.statement
    for table in _neighbors():
        release = _released(ph.Beta("y ~ 1", decimals=3), table)
        assert release.charge.kind == "strict"
        assert _decimals(release.synthetic[0]["y"]) == release.settings["decimals"] == 3
        assert "have 3 decimals, a number fixed without looking" in release.statement


@pytest.mark.parametrize(("dtype", "largest", "decimals", "released"), [
    *((own, 100, None, own) for own in ("int8", "int64", "uint8", "float32", "Int16", "Float64")),
    ("int8", 200, None, "int64"), ("Int8", 200, None, "Int64"),
    *((own, 4, 0, "int64") for own in ("int64", "float64")),
    *((own, 4, 2, "float64") for own in ("int64", "float64")), ("Int64", 4, 2, "Float64"),
])  # fmt: skip
def test_the_dtype_is_kept_unless_values_are_too_large_or_decimals_are_given(
    dtype: str, largest: float, decimals: int | None, released: str
) -> None:
    """Read from text, a column is of whole numbers until one record has a decimal."""
    like = pd.Series([1, 2, 3], dtype=dtype, index=list("abc"), name="y")
    made = in_form_of(np.array([5.0, 0.0, largest]), like, decimals)
    assert (str(made.dtype), made.tolist()) == (released, [5, 0, largest])
    assert list(made.index) == list("abc")


def test_rounded_values_stay_between_the_bounds() -> None:
    assert on_grid(np.array([0.1, 0.96, 5.0]), 1, 0.25, 0.98).tolist() == [0.3, 0.9, 0.9]
    for wrong in (-1, 16, 1.5, "3"):
        refuses("decimals must", ph.NormalRegression, "y ~ 1", decimals=wrong)
    refuses("must leave values between", ph.Beta, "y ~ 1", lower=0.2, upper=0.8, decimals=0)
    model: Any = build_model("beta:lower=0,upper=1,decimals=3", "y ~ 1")
    assert model.decimals == 3
    refuses("decimals must be a whole number", build_model, "beta:decimals=three", "y ~ 1")
