"""Utility of data frames: identities, disjoint supports, nulls; statsmodels and scipy beside."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import pyhybrid as ph
from pyhybrid.measures import MEASURES
from pyhybrid.measures.models import _for_patsy
from pyhybrid.measures.propensity import logistic_propensities, null_pmse, orthonormal_design
from pyhybrid.measures.reconcile import reconcile_tables
from pyhybrid.measures.utility import table_distance
from tests.refusals import refuses


def population(n: int, seed: int) -> pd.DataFrame:
    """Numbers, a skewed one with missing values, codes, categories."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    frame = pd.DataFrame({
        "age": age, "income": np.exp(9 + age / 60 + rng.normal(0, 0.8, n)).round(),
        "sex": rng.choice(["f", "m"], n), "region": rng.choice([1, 2, 3, 4], n),
        "job": pd.Categorical(rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])),
    })  # fmt: skip
    frame.loc[rng.random(n) < 0.1, "income"] = np.nan
    return frame


@pytest.fixture(scope="module")
def real() -> pd.DataFrame:
    return population(600, 1)


pmse, overlap = ph.measures.pmse, ph.measures.interval_overlap
difference, utility = ph.measures.standardised_difference, ph.measures.propensity_utility
fitted = ph.measures.model_utility
CODES = {"categorical": ["region"]}
FORMULA = "age ~ np.log(income) + C(sex) + job"


@pytest.mark.parametrize("m", [1, 3])
def test_the_data_themselves_are_perfect(real: pd.DataFrame, m: int) -> None:
    shuffled = real[real.columns[::-1]].sample(frac=1, random_state=3)
    sets = [real] * (m - 1) + [shuffled]
    found = ph.measures.utility_summary(real, sets, formulas=[FORMULA], n_permutations=2, rng=1,
                                        **CODES)  # fmt: skip
    for name, value in found.overall().items():
        if name.startswith("pmse_standardised"):
            assert value <= 0, name  # a copy is less than chance away
        elif name.startswith("interval_overlap"):
            # b = 0, so that T of the rule is v and its t has infinite degrees of freedom.
            assert value == pytest.approx(1, abs=0.01), name
        else:
            assert value == pytest.approx(0, abs=1e-9), name
    distances = found.columns.distances
    assert distances["missing_data"].equals(distances["missing_synthetic"])


@pytest.mark.parametrize("classifier", ["logistic", "cart"])
def test_disjoint_supports_have_pmse_one_quarter(real: pd.DataFrame, classifier: str) -> None:
    moved = real.assign(age=real["age"] + 1000)
    found = utility(real, moved, classifier=classifier, rng=1, **CODES)
    assert found.pmse == pytest.approx(0.25, abs=1e-9)
    assert found.ratio > 5


@pytest.mark.parametrize("size", [300, 500])
def test_null_of_the_logistic_is_right_in_mean(size: int) -> None:
    """Ratios average to 1, and standardized values to 0, where the null's own story is true."""
    rng, found = np.random.default_rng(size), []
    label, ones = np.arange(300 + size) >= 300, np.ones(300 + size)
    for _ in range(150):
        basis = orthonormal_design(rng.normal(size=(300 + size, 4)))
        mean, sd = null_pmse(basis, label, ones, "population")
        distance = pmse(logistic_propensities(basis, label, ones), label)
        found.append((distance / mean, (distance - mean) / sd))
    ratios, standardized = np.array(found).T
    error = ratios.std() / np.sqrt(len(ratios))
    assert abs(ratios.mean() - 1) < 5 * error + 0.02  # the quadratic form is the first order
    assert abs(standardized.mean()) < 5 * standardized.std() / np.sqrt(len(ratios)) + 0.03
    assert standardized.std() == pytest.approx(1, abs=5 / np.sqrt(2 * len(ratios)) * 1.5)


@pytest.mark.parametrize("classifier", ["logistic", "cart"])
def test_null_of_partial_synthesis_is_paired(classifier: str) -> None:
    """y drawn anew given x: the kept columns must not count as freedom to differ."""
    rng = np.random.default_rng(7)
    ratios, kinds, repeats = [], set(), 24
    for _ in range(repeats):
        data = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
        synthetic = data.assign(c=rng.normal(size=200))
        found = utility(data, synthetic, classifier=classifier, rng=rng)
        ratios.append(found.ratio)
        kinds |= set(found.by_set["null"])
    assert kinds == {"paired"}
    assert abs(np.mean(ratios) - 1) < 5 * np.std(ratios) / np.sqrt(repeats) + 0.02


def test_logistic_propensities_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(200, 3)), rng.normal(0.4, 1.2, size=(300, 3))])
    label = np.arange(500) >= 200
    design = orthonormal_design(np.column_stack([X, X[:, 0] * 3 + 1]))
    own = logistic_propensities(design, label, np.ones(500))
    fit = sm.Logit(label.astype(float), sm.add_constant(X)).fit(disp=0, tol=1e-12)
    assert np.allclose(own, fit.predict(), atol=1e-7)


def test_interactions_see_what_main_effects_cannot() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=2000)
    data = pd.DataFrame({"a": a, "b": 0.8 * a + 0.6 * rng.normal(size=2000)})
    broken = data.assign(b=rng.permutation(data["b"]))
    main = utility(data, broken, null="population")
    both = utility(data, broken, null="population", interactions=True)
    tree = utility(data, broken, null="population", classifier="cart", rng=1)
    assert main.standardised < 4 < 20 < both.standardised
    assert tree.standardised > 5


def test_many_categories_do_not_fill_the_memory() -> None:
    rng = np.random.default_rng(6)
    data = pd.DataFrame({"code": [f"c{i}" for i in rng.integers(0, 900, 4000)]})
    other = data.sample(frac=1, replace=True, random_state=1)
    found = utility(data, other, null="population")
    assert found.by_set["null_mean"].iloc[0] == pytest.approx(50 * 0.5**2 / 8000)
    assert found.ratio < 2


def test_table_distances_by_hand_and_as_twice_the_chi_square_of_homogeneity() -> None:
    # Shares 1/2, 1/2 against 1/4, 3/4 of 20: a = 10, 10; b = 5, 15.
    statistic = 25 / 7.5 + 25 / 12.5
    found = table_distance(np.array([10, 10, 0]), np.array([5, 15, 0]))
    assert found.tolist() == pytest.approx([statistic, statistic / 2, 0.25, 2])
    a, b = np.array([30, 50, 20]), np.array([25, 40, 35])
    assert table_distance(a, b)[0] == pytest.approx(2 * stats.chi2_contingency([a, b])[0])


def test_tables_find_the_pair_that_is_broken(real: pd.DataFrame) -> None:
    linked = real.assign(twin=real["sex"].map({"f": "x", "m": "y"}))
    broken = linked.assign(twin=np.random.default_rng(1).permutation(linked["twin"]))
    found = ph.measures.table_utility(linked, broken, **CODES)
    assert set(found.two_way.loc[0, ["first", "second"]]) == {"sex", "twin"}
    assert found.one_way["ratio"].max() == 0
    square = found.matrix()
    assert square.loc["sex", "twin"] == square.loc["twin", "sex"] == found.two_way["ratio"].max()
    assert (np.diag(square) == found.one_way["ratio"]).all()


def test_cells_keep_heavy_values_apart_and_count_missing_ones() -> None:
    values = [0.0] * 50 + list(range(1, 46)) + [np.nan] * 5
    data = pd.DataFrame({"x": values})
    spiky = pd.DataFrame({"x": [0.0] * 45 + list(range(1, 46)) + [np.nan] * 10})
    found = ph.measures.table_utility(data, spiky).one_way.iloc[0]
    assert found["total_variation"] == pytest.approx(0.05)
    assert found["n_cells"] >= 4
    assert ph.measures.table_utility(data, spiky).two_way.empty


def test_overlap_and_difference_by_hand() -> None:
    # Overlap 1 of lengths 2 and 4; a gap of 1; equal; a point twice.
    found = overlap([[0, 0, 3, 5], [2, 2, 4, 5]], [[1, 3, 3, 5], [5, 5, 4, 5]])
    assert found == pytest.approx([0.5 * (1 / 2 + 1 / 4), 0.5 * (-1 / 2 - 1 / 2), 1, 1])
    assert difference([1.0, 2.0], [2.0, 2.0], [0.5, 1.0]).tolist() == [2, 0]


# [JC], risk subgroups: estimate and 95 % interval without masks, by DA-MI, by CART; then printed
# standardized differences and overlaps of DA-MI and of CART.
PRINTED = {
    "Diffuse": ((0.318, 0.071, 0.564), (0.311, 0.065, 0.556), (0.096, -0.138, 0.33),
                (0.058, 1.762), (0.986, 0.539)),
    "Disease duration": ((0.178, 0.061, 0.296), (0.12, -0.018, 0.257), (0.073, -0.041, 0.187),
                         (0.97, 1.75), (0.775, 0.545)),
    "FVC": ((-1.298, -2.457, -0.138), (-1.3, -2.449, -0.15), (0.174, -0.895, 1.244),
            (0.003, 2.491), (0.996, 0.34)),
    "TLC": ((0.499, -0.711, 1.708), (0.456, -0.731, 1.643), (0.001, -1.107, 1.11),
            (0.07, 0.81), (0.982, 0.787)),
    "HAQ": ((1.325, 0.965, 1.684), (1.29, 0.931, 1.649), (0.029, -0.255, 0.313),
            (0.191, 7.043), (0.952, -1.026)),
}  # fmt: skip


@pytest.mark.parametrize("coefficient", PRINTED)
def test_overlaps_and_differences_are_the_printed_ones(coefficient: str) -> None:
    """From intervals of three digits: the width of a half in the last one either way."""
    before, *released, differences, overlaps = PRINTED[coefficient]
    length = before[2] - before[1]
    error = length / 2 / 1.959964
    for after, d, share in zip(released, differences, overlaps, strict=True):
        printed = pytest.approx(share, abs=0.0005 + 0.001 / length * 2)
        assert overlap(before[1:], after[1:]) == printed
        assert overlap(before[1:], np.add(after[1:], 0.1 * length)) != printed  # the control
        found = difference(before[0], after[0], error)
        assert found == pytest.approx(d, abs=0.0005 + (0.001 + 0.001 * d) / error)


def test_model_utility_is_the_rule_over_statsmodels(real: pd.DataFrame) -> None:
    sets = [population(600, seed) for seed in (2, 3, 4)]
    found = fitted(real, sets, "age ~ income", model="glm")
    fits = [sm.OLS(d["age"], sm.add_constant(d["income"])).fit() for d in
            (t.dropna() for t in (real, *sets))]  # fmt: skip
    expected = ph.measures.combine_partially_synthetic([f.params for f in fits[1:]],
                                                       [f.bse**2 for f in fits[1:]])  # fmt: skip
    assert found.table["synthetic_estimate"].to_numpy() == pytest.approx(expected.estimate)
    assert found.table["synthetic_upper"].to_numpy() == pytest.approx(expected.interval()[1])
    half = stats.norm.ppf(0.975) * fits[0].bse.iloc[1]
    assert found.table.loc["income", "upper"] == pytest.approx(fits[0].params.iloc[1] + half)
    assert found.n_used == tuple(int(f.nobs) for f in fits)


def test_the_nested_rule_takes_the_sets_imputation_by_imputation(real: pd.DataFrame) -> None:
    sets = [population(600, seed) for seed in range(2, 8)]
    found = fitted(real, sets, "age ~ income", rule="nested", n_imputations=3)
    fits = [sm.OLS.from_formula("age ~ income", table).fit() for table in sets]
    q = np.array([f.params for f in fits]).reshape(3, 2, 2)
    v = np.array([f.bse**2 for f in fits]).reshape(3, 2, 2)
    expected = ph.measures.combine_nested(q, v)
    assert found.table["synthetic_lower"].to_numpy() == pytest.approx(expected.interval()[0])
    other = ph.measures.combine_nested(q.reshape(2, 3, 2), v.reshape(2, 3, 2))  # the control
    assert found.table["synthetic_lower"].to_numpy() != pytest.approx(other.interval()[0])


def test_reads_what_can_be_read_in_one_way() -> None:
    dates = pd.to_datetime(["2020-01-01", "2020-01-02", None])
    days = ["2020-01-02", "2020-01-05", ""]
    own = {"n": [1, 2, 3], "flag": [True, False, True], "code": ["1", "2", "2"], "when": dates}
    other = {"when": days, "code": [2.0, 1, 1], "flag": ["False", "True", "True"]}
    data = pd.DataFrame(own)
    tables = reconcile_tables(data, pd.DataFrame({**other, "n": ["3", "", "1.0"]}))
    (read,) = tables.synthetic
    assert list(read.columns) == list(data.columns)
    assert [read[name].tolist() for name in ("code", "flag")] == [["2", "1", "1"], other["flag"]]
    assert read["n"].tolist()[::2] == [3, 1]
    assert (read["when"] - tables.real["when"]).tolist()[:2] == [1, 3]
    assert read.isna().sum().to_dict() == {"n": 1, "flag": 0, "code": 0, "when": 1}


@pytest.mark.parametrize(("broken", "message"), [
    (lambda d: d.drop(columns="sex"), "column 'sex' must be in synthetic set 1, which has age"),
    (lambda d: d.assign(extra=1), "synthetic set 1 must have the columns of the data: 'extra'"),
    (lambda d: d.iloc[:1], "at least 2 rows: found 1"),
    (lambda d: d.assign(income=np.nan), "column 'income' must have values: all are missing"),
    (lambda d: d.assign(job="z"), "column 'job' must have the categories of the data: row 0"),
    (lambda d: d.assign(age="old"), "column 'age' must be numeric in synthetic set 1"),
    (lambda d: d.assign(income=np.inf), "column 'income' must be finite"),
    (lambda d: d.to_numpy(), "must be a DataFrame or a sequence"),
    (lambda d: d.set_axis(["age", "age", *d.columns[2:]], axis=1), "'age' is twice in synthetic"),
])  # fmt: skip
def test_bad_sets_are_named(real: pd.DataFrame, broken: Any, message: str) -> None:
    refuses(message, reconcile_tables, real, broken(real), **CODES)


@pytest.mark.parametrize(("call", "message"), [
    (lambda d: utility(d, d, classifier="forest"), "classifier must be one of logistic, cart"),
    (lambda d: utility(d, d, classifier="cart", interactions=True), "'cart' takes no interactions"),
    (lambda d: utility(d, d, n_permutations=1), "n_permutations must be a whole number >= 2"),
    (lambda d: utility(d, d, categorical=["town"]), "must name columns of the data: 'town'"),
    (lambda d: utility(d, d[:50], null="paired"), "null='paired' needs sets with the rows"),
    (lambda d: fitted(d, [d], "age ~ sex"), "takes one synthetic set, other rules at least 2"),
    (lambda d: fitted(d, [d] * 4, "age ~ sex", rule="nested"),
     "n_imputations must be given with the rule 'nested'"),
    (lambda d: fitted(d, [d] * 5, "age ~ sex", rule="nested", n_imputations=2),
     "must divide the number of sets"),
    (lambda d: fitted(d, [d] * 2, "age ~ sex", n_imputations=2),
     "n_imputations must be given with the rule 'nested'"),
    (lambda d: fitted(d, [d] * 2, "age ~ town"), "cannot be fitted to the data"),
    (lambda d: fitted(d, [d] * 2, "job ~ age"), r"write I\(1 \* \(job == 'x'"),
    (lambda d: fitted(d, [d] * 2, "age ~ sex", model="lasso"),
     "one of statsmodels.formula.api: found 'lasso'"),
    (lambda d: fitted(d, [d] * 2, "age ~ np.exp(age / 40) + I(2 * np.exp(age / 40))"),
     "full rank in the data"),
    (lambda d: fitted(d, [d, d[d["job"] != "c"]], "age ~ job"), "full rank in synthetic set 2"),
    (lambda d: fitted(d, [d] * 2, "I(1 * (age > 50)) ~ age", model="logit"),  # separable
     "cannot be fitted to the data|does not converge"),
    (lambda _: pmse([0.5, 1.5], [True, False]), r"propensities must lie in \[0, 1\]"),
    (lambda _: pmse([0.5, 0.5], [True, True]), "rows of both kinds"),
    (lambda _: pmse([0.5, 0.5], [True]), "is_synthetic must have 2 elements"),
    (lambda _: overlap([0, 1], [1, 1]), "length above 0"),
    (lambda _: overlap([0, 1], [1, 1, 2]), "share a shape"),
    (lambda _: overlap([0, np.nan], [1, 2]), "must be finite"),
    (lambda _: difference(1.0, 2.0, 0.0), "standard_error must be above 0"),
])  # fmt: skip
def test_bad_arguments_are_named(real: pd.DataFrame, call: Any, message: str) -> None:
    refuses(message, call, real)


def test_logical_outcomes_are_zeros_and_ones(real: pd.DataFrame) -> None:
    data = real.assign(old=real["age"] > 50)
    tables = data, data.astype({"old": "boolean"}), data.astype({"old": int})
    found = [fitted(own, own, "old ~ sex", model="logit", rule="single") for own in tables]
    for logical in found[:2]:
        pd.testing.assert_frame_equal(logical.table, found[2].table)


@pytest.mark.parametrize("value", [3.0, 0.1, 1e7 / 3, 0.0])
def test_models_that_leave_no_residual_are_refused(real: pd.DataFrame, value: float) -> None:
    """A constant outcome has residuals of 0, or of a last digit, as the processor rounds."""
    flat = real.assign(age=value)
    for formula in ("age ~ 1", "age ~ sex"):
        said = "must leave something unexplained in the data"
        refuses(said, fitted, flat, [flat, flat], formula)
    precise = real.assign(age=value * (1 + 1e-6 * real["age"]) + 1e-6 * real["age"])  # control
    fitted(precise, [precise, precise], "age ~ sex")


def test_every_reported_number_has_a_definition(real: pd.DataFrame) -> None:
    sets = [population(600, 2), population(600, 3)]
    utility = ph.measures.utility_summary(real, sets, formulas=["age ~ sex"], n_permutations=2,
                                          rng=1)  # fmt: skip
    risk = ph.measures.risk_summary(real, sets, keys=["age", "sex"], radius=1,
                                    sensitive={"income": 100}, holdout=sets[0])  # fmt: skip
    for name in (*utility.overall(), *risk.overall()):
        measure = MEASURES[name.split(",")[0]]
        assert all((measure.definition, measure.range, measure.direction))
        assert measure.at_best != measure.at_worst
    assert np.isfinite(list({**utility.overall(), **risk.overall()}.values())).all()


def test_names_with_dots_and_spaces_are_read() -> None:
    """Seen: `synthesize` took alk.phos in a formula, `utility` did not."""
    names = ["alk.phos", "own share %", "a"]
    found = _for_patsy("alk.phos ~ np.log(a) + own share % + `a b` + (a == 'alk.phos')", names)
    assert found == "Q('alk.phos') ~ np.log(a) + Q('own share %') + Q('a b') + (a == 'alk.phos')"


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"])
def test_dates_written_as_text_are_days(form: str) -> None:
    """Seen: texts of dates were categories, of which another set has others, and were refused."""
    days = pd.date_range("2001-01-01", periods=100)
    written = days.strftime(form)
    real = pd.DataFrame({"day": [*written[:90], *written[:9], None], "x": range(100)})
    synthetic = pd.DataFrame({"day": written, "x": range(100)})
    tables = reconcile_tables(real, synthetic)
    assert tables.is_number("day")
    since = (days - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_array_equal(tables.synthetic[0]["day"], since)
    np.testing.assert_array_equal(tables.real["day"], [*since[:90], *since[:9], np.nan])
    refuses("must hold dates in synthetic set 1", reconcile_tables, real,
            synthetic.assign(day="then"))  # fmt: skip
