"""The count models: likelihood, Stan's own log_lik, target, collapsing, formulas, replicates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine, as_json
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.models.columns.support import in_dtype_of
from pyhybrid.models.families.regression import distinct_rows, weighted_rows
from pyhybrid.models.formula.design import read_design
from pyhybrid.models.initialization import LOG_LINEAR, rough_fit
from pyhybrid.privacy.cap import Cap

MODELS = [ph.NegativeBinomial, ph.Poisson]
HINTS = {"information_root", "score", "center_rphi", "spread_rphi"}
TINY = SamplerSettings(chains=2, warmup=20, draws=20)


def test_negative_binomial_against_scipy() -> None:
    rng = np.random.default_rng(1)
    y = np.array([0.0, 1, 2, 17, 400])
    X = np.column_stack([np.ones(5), rng.normal(size=5)])
    beta, phi = rng.normal(size=(30, 2)) * 2, np.exp(rng.normal(size=30) * 3)
    ours = ph.NegativeBinomial("y ~ x").log_lik({"beta": beta, "phi": phi}, y, X)
    mu = np.exp(beta @ X.T)
    expected = stats.nbinom.logpmf(y, phi[:, None], phi[:, None] / (phi[:, None] + mu))
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-10)


def test_negative_binomial_tends_to_poisson() -> None:
    y, X = np.arange(20.0), np.ones((20, 1))
    beta = np.array([[1.0], [2.5]])
    nb = ph.NegativeBinomial("y ~ 1").log_lik({"beta": beta, "phi": np.full(2, 1e13)}, y, X)
    poisson = ph.Poisson("y ~ 1").log_lik({"beta": beta}, y, X)
    np.testing.assert_allclose(nb, poisson, atol=1e-10)
    np.testing.assert_allclose(poisson, stats.poisson.logpmf(y, np.exp(beta)), rtol=1e-12)


@pytest.mark.normal_draws
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "formula",
    ["visits ~ 1", "visits ~ age + region + score", "visits ~ age + offset(log(score + 9))"],
)
def test_numpy_log_lik_is_stans(model: Any, formula: str, visits: pd.DataFrame) -> None:
    bound = model(formula).bind(visits)
    data = bound.stan_data(np.ones(bound.n), emit_log_lik=True)
    draws = EmbeddedEngine().sample(bound.program, data, seed=4, settings=TINY)
    ours = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)
    np.testing.assert_allclose(ours, draws.flat("log_lik"), rtol=1e-10)
    first = bound.rows.first
    mu = np.exp(draws.flat("beta") @ bound.design.X[first].T + bound.design.offset[first])
    np.testing.assert_allclose(mu, draws.flat("mu"), rtol=1e-10)


def _log_density(bound: Any, data: dict[str, Any], points: np.ndarray) -> np.ndarray:
    import stanli

    model = stanli.Model(stan_code=bound.program.text, data=as_json(data))
    return np.array([model.log_prob_grad(point)[0] for point in points])


@pytest.mark.normal_draws
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("censoring", ["none", "plain", "centered", "units"])
@pytest.mark.parametrize("formula", ["visits ~ age", "visits ~ age + offset(log(age / 40))"])
def test_target_moves_with_the_weights_as_it_should(
    model: Any, censoring: str, formula: str, visits: pd.DataFrame
) -> None:
    """Between two weight vectors the target differs by the (censored) weighted log_lik alone."""
    bound = model(formula).bind(visits)
    rng = np.random.default_rng(3)
    reference = rng.normal(-2, 1, bound.rows.first.size)[bound.row_of]
    unit = rng.integers(0, 70, bound.n)
    unit[:70] = np.arange(70)
    cap: Any = {
        "none": None,
        "plain": 1.5,
        "centered": Cap(below=0.3, above=0.8, reference=reference),
        "units": Cap(below=2.0, above=2.5, reference=reference, unit=unit),
    }[censoring]
    one, two = rng.uniform(size=(2, bound.n))
    one[:5] = 0
    data = bound.stan_data(one, cap=cap, emit_log_lik=True)
    draws = EmbeddedEngine().sample(bound.program, data, seed=1, settings=TINY)
    points = ProgramAtPoints(bound.program, data).unconstrained(draws)[[0, 7, 23]]
    log_lik = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)[[0, 7, 23]]
    by_record = log_lik[:, bound.row_of]

    def term(alpha: np.ndarray) -> np.ndarray:
        if cap is None:
            return (alpha * by_record).sum(axis=1)
        own = Cap.of(cap)
        center = 0.0 if own.reference is None else own.reference
        moved = alpha * (by_record - center)
        if own.unit is not None:
            moved = np.stack([np.bincount(own.unit, row) for row in moved])
        clipped = np.clip(moved, -own.below, own.above)
        assert 0.1 < (clipped != moved).mean() < 0.99
        return clipped.sum(axis=1)

    def density(alpha: np.ndarray) -> np.ndarray:
        # The hints that the sampler starts from depend on the weights: hold them.
        own = bound.stan_data(alpha, cap=cap)
        own |= {name: data[name] for name in HINTS & set(data)}
        return _log_density(bound, own, points)

    difference = density(one) - density(two)
    np.testing.assert_allclose(difference, term(one) - term(two), rtol=1e-9)


@pytest.mark.parametrize("formula", ["visits ~ region", "visits ~ region + offset(log(nights))"])
def test_collapsed_rows_keep_the_target(formula: str, visits: pd.DataFrame) -> None:
    nights = 1.0 + np.arange(len(visits)) % 2
    bound = ph.NegativeBinomial(formula).bind(visits.assign(nights=nights))
    rng = np.random.default_rng(2)
    alpha = rng.choice([0.0, 0.25, 1.0], bound.n)
    collapsed = bound.stan_data(alpha)
    whole = collapsed | {
        "n": bound.n,
        "y": bound.design.y.astype(int),
        "frequency": np.ones(bound.n),
        "weights": alpha,
        "X": bound.design.X,
        "offsets": bound.design.offset,
        "reference": np.zeros(bound.n),
        "unit": np.zeros(bound.n, int),
    }
    assert collapsed["n"] < bound.n / 2
    points = rng.normal(size=(5, 3 + 3 + 1 + 1)) * 0.3
    np.testing.assert_allclose(
        _log_density(bound, collapsed, points), _log_density(bound, whole, points), rtol=1e-10
    )


def test_distinct_rows() -> None:
    columns = np.array([[1.0, 2], [1, 3], [1, 2], [0, 2], [1, 3]])
    rows = distinct_rows(columns)
    np.testing.assert_array_equal(rows.row_of, [0, 1, 0, 2, 1])
    np.testing.assert_array_equal(rows.first, [0, 1, 3])
    np.testing.assert_array_equal(rows.frequency, [2, 2, 1])
    same = weighted_rows(rows, np.array([0.5, 0.1, 0.5, 1, 0.1]))
    assert same is rows
    split = weighted_rows(rows, np.array([0.5, 0.1, 0.4, 1, 0.1]))
    np.testing.assert_array_equal(split.row_of, [0, 1, 2, 3, 1])


def test_rough_fit_is_a_poisson_fit(visits: pd.DataFrame) -> None:
    import statsmodels.api as sm

    X = np.column_stack([np.ones(len(visits)), visits["age"] / 50.0])
    y = visits["visits"].to_numpy(dtype=float)
    rough = rough_fit(y, X, np.ones(y.size), LOG_LINEAR)
    fit = sm.GLM(y, X, family=sm.families.Poisson()).fit()
    np.testing.assert_allclose(rough.center, fit.params, atol=0.02)
    information = (X.T * rough.variance) @ X
    np.testing.assert_allclose(np.linalg.inv(information), fit.cov_params(), rtol=0.05)


def test_the_scored_fit_is_the_maximum_likelihood_of_a_negative_binomial(
    visits: pd.DataFrame,
) -> None:
    import statsmodels.api as sm

    bound = ph.NegativeBinomial("visits ~ I(age / 50)").bind(visits)
    y, X = bound.design.y, bound.design.X
    fit = sm.NegativeBinomial(y, X).fit(disp=0)
    hints = bound.model.rough_fit(y, X, np.ones(y.size))
    root = hints["information_root"]
    center = np.linalg.solve(root @ root.T, hints["score"])
    np.testing.assert_allclose(center, fit.params[:2], atol=0.01)
    np.testing.assert_allclose(np.linalg.inv(root @ root.T), fit.cov_params()[:2, :2], rtol=0.05)
    assert abs(hints["center_rphi"] - np.log(fit.params[2])) < 0.01
    spread = np.sqrt(fit.cov_params()[2, 2]) / fit.params[2]
    assert abs(hints["spread_rphi"] / spread - 1) < 0.1


@pytest.mark.parametrize(
    ("formula", "columns"),
    [
        ("visits ~ 1", ["Intercept"]),
        ("visits ~ region", ["Intercept", "region[T.east]", "region[T.west]"]),
        ("visits ~ 0 + region", ["region[north]", "region[east]", "region[west]"]),
        (
            "visits ~ age:region",
            ["Intercept", "age:region[north]", "age:region[east]", "age:region[west]"],
        ),
    ],
)
def test_categorical_predictors_are_coded_as_r_codes_them(
    formula: str, columns: list[str], visits: pd.DataFrame
) -> None:
    levels = pd.CategoricalDtype(["north", "east", "west"])
    table = visits.assign(region=visits["region"].astype(str).astype(levels))
    design = read_design(formula, table)
    assert list(design.columns) == columns
    for place, name in enumerate(columns):
        if "region" in name:
            level = name.split("[")[1].strip("]").removeprefix("T.")
            own = (table["region"] == level) * (table["age"] if "age" in name else 1)
            np.testing.assert_array_equal(design.X[:, place], own)


def test_logicals_are_factors_as_in_r(visits: pd.DataFrame) -> None:
    table = visits.assign(member=visits["age"] > 50)
    design = read_design("visits ~ member", table)
    assert design.columns == ("Intercept", "member[T.True]")
    np.testing.assert_array_equal(design.X[:, 1], table["member"])
    # Without main effects R crosses all levels: as many columns as cells.
    crossed = read_design("visits ~ member:region", table)
    assert crossed.X.shape[1] == np.linalg.matrix_rank(crossed.X) == 6


def test_ordered_factors_get_polynomial_contrasts(visits: pd.DataFrame) -> None:
    kind = pd.CategoricalDtype(["north", "east", "west"], ordered=True)
    table = visits.assign(region=visits["region"].astype(str).astype(kind))
    design = read_design("visits ~ region", table)
    # R: contr.poly(3)
    linear, quadratic = np.array([-1, 0, 1]) / np.sqrt(2), np.array([1, -2, 1]) / np.sqrt(6)
    codes = table["region"].cat.codes.to_numpy()
    np.testing.assert_allclose(design.X[:, 1], linear[codes], atol=1e-12)
    np.testing.assert_allclose(design.X[:, 2], quadratic[codes], atol=1e-12)


@pytest.mark.parametrize(
    ("formula", "change", "message"),
    [
        ("visits", {}, "form 'outcome ~ predictors'"),
        ("nothing ~ 1", {}, "outcome 'nothing' must be a column"),
        ("visits ~ nothing", {}, "nothing"),
        ("visits ~ age +", {}, "does not parse"),
        ("visits ~~ age", {}, "form 'outcome ~ predictors'"),
        ("visits ~ visits", {}, "must not be among the predictors"),
        ("visits ~ log(visits)", {}, "must not be among the predictors"),
        ("visits ~ age | region", {}, "terms (1 | g) alone"),
        ("visits ~ 0", {}, "right-hand side with a term"),
        ("visits ~ age + I(2 * age)", {}, "rank 2 of 3 columns"),
        ("visits ~ log(age - 200)", {}, "must be finite: row 'row 0'"),
        ("visits ~ 1", {"visits": ("row 3", None)}, "must not be missing: row 'row 3'"),
        ("visits ~ 1", {"visits": ("row 5", -1)}, "row 'row 5' is negative"),
        ("visits ~ 1", {"visits": ("row 6", 1.5)}, "must be a whole number: row 'row 6'"),
        ("visits ~ 1", {"visits": ("row 7", np.inf)}, "must be finite: row 'row 7'"),
        ("visits ~ 1", {"visits": ("row 8", 2.0**31)}, "row 'row 8' is larger"),
        ("visits ~ age", {"age": ("row 9", None)}, "'age' must not be missing: row 'row 9'"),
        ("id ~ 1", {}, "'id' must be numeric"),
        ("region ~ 1", {}, "'region' must be numeric"),
    ],
)
def test_bad_formulas_and_outcomes_are_named(
    formula: str, change: dict[str, Any], message: str, visits: pd.DataFrame
) -> None:
    table = visits.copy()
    for column, (label, value) in change.items():
        table[column] = table[column].astype(float)
        table.loc[label, column] = value
    with pytest.raises(InvalidInput, match=re.escape(message)):
        ph.Poisson(formula).bind(table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame(), "rows and columns"),
        (pd.DataFrame({"y": [1]}), "at least 2 records"),
        (pd.DataFrame({"y": [2, 2, 2]}), "must vary"),
        (pd.DataFrame([[1, 2], [2, 3]], columns=["y", "y"]), "must be unique"),
        ([1, 2], "must be a pandas DataFrame"),
    ],
)
def test_bad_tables_are_refused(table: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ph.Poisson("y ~ 1").bind(table)


def test_formula_does_not_see_our_variables() -> None:
    table = pd.DataFrame({"y": [1, 2, 3]})
    local_secret = np.array([1.0, 2.0, 4.0])
    with pytest.raises(InvalidInput, match="local_secret"):
        ph.Poisson("y ~ local_secret").bind(table)
    assert ph.Poisson("y ~ x").bind(table.assign(x=local_secret)).n == 3


def test_replicates_follow_the_model() -> None:
    n = 20_000
    table = pd.DataFrame({"y": np.arange(n) % 7, "x": np.arange(n) % 2})
    bound = ph.NegativeBinomial("y ~ x").bind(table)
    parameters = {"beta": np.array([1.0, 0.5]), "phi": np.float64(2.0)}
    draw = bound.model.draw_outcome(parameters, bound.design.X, np.random.default_rng(1))
    for x in (0, 1):
        mu = np.exp(1 + 0.5 * x)
        own = draw[table["x"] == x]
        variance = mu + mu**2 / 2
        assert abs(own.mean() - mu) < 5 * np.sqrt(variance / own.size)
        expected = stats.nbinom.pmf(np.arange(8), 2, 2 / (2 + mu))
        observed = np.bincount(own.astype(int), minlength=8)[:8] / own.size
        assert (
            np.abs(observed - expected) < 5 * np.sqrt(expected * (1 - expected) / own.size)
        ).all()


def test_replicates_from_an_impossible_mean_are_refused() -> None:
    bound = ph.Poisson("y ~ 1").bind(pd.DataFrame({"y": [0, 1, 2]}))
    with pytest.raises(SamplingError, match="mean is out of range"):
        bound.model.draw_outcome(
            {"beta": np.array([50.0])}, bound.design.X, np.random.default_rng(1)
        )


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float32", "Int16", "Float64"])
def test_dtype_of_the_outcome_is_kept(dtype: str) -> None:
    like = pd.Series([1, 2, 3], dtype=dtype, index=list("abc"), name="y")
    made = in_dtype_of(np.array([5.0, 0.0, 100.0]), like)
    assert made.dtype == like.dtype
    assert made.tolist() == [5, 0, 100]
    assert list(made.index) == list("abc")


def test_a_count_too_large_for_its_dtype_widens_it() -> None:
    narrow = pd.Series([1, 2], dtype="int8")
    assert in_dtype_of(np.array([5.0, 200.0]), narrow).tolist() == [5, 200]
    nullable = pd.Series([1, 2], dtype="Int8")
    assert str(in_dtype_of(np.array([5.0, 200.0]), nullable).dtype) == "Int64"
