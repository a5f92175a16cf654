"""Missing values: shares, markers and dtypes that come back; predictors completed; one charge."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

import pyhybrid as ph
from pyhybrid.cli.options import build_model
from pyhybrid.models.registry import chosen_model, described_model
from tests.fuzzing.engine import RANDOM_DRAWS
from tests.models.targets import assert_log_lik_is_stans, draws_of
from tests.refusals import refuses

N = 300
RNG = np.random.default_rng(3)
X = RNG.normal(size=N).round(1)
GONE = RNG.random(N) < special.expit(-1 + X)
COUNT = RNG.poisson(np.exp(1 + 0.3 * X)).astype(float)
TEXT = RNG.choice(["a", "b", "c"], N)


def _objects(values: Any, mark: Any) -> pd.Series:
    made: pd.Series = pd.Series(values, dtype=object)
    made[GONE] = mark
    return made


COLUMNS: dict[str, tuple[Any, Any]] = {
    "float": (ph.Poisson("y ~ x"), pd.Series(np.where(GONE, np.nan, COUNT))),
    "Int64": (ph.Poisson("y ~ x"), pd.Series(COUNT).astype("Int64").mask(GONE)),
    "Float64": (ph.Poisson("y ~ x"), pd.Series(COUNT).astype("Float64").mask(GONE)),
    "text, None": (ph.Categorical("y ~ x"), _objects(TEXT, None)),
    "text, NaN": (ph.Categorical("y ~ x"), _objects(TEXT, np.nan)),
    "text, NA": (ph.Categorical("y ~ x"), _objects(TEXT, pd.NA)),
    "string": (ph.Categorical("y ~ x"), pd.Series(TEXT).astype("string").mask(GONE)),
    "category": (ph.Categorical("y ~ x"), pd.Series(TEXT).astype("category").mask(GONE)),
    "boolean": (ph.Bernoulli("y ~ x"), pd.Series(COUNT > 2).astype("boolean").mask(GONE)),
    "logicals, None": (ph.Bernoulli("y ~ x"), _objects(COUNT > 2, None)),
    "amounts": (
        ph.TwoPart(zero=ph.Bernoulli("y ~ x"), positive=ph.LogNormal("y ~ x", decimals=1)),
        pd.Series(np.where(GONE, np.nan, COUNT * 1.5)),
    ),
}


@pytest.mark.normal_draws
@pytest.mark.parametrize("kind", COLUMNS)
def test_missing_stays_missing_with_its_marker_and_dtype(kind: str) -> None:
    model, y = COLUMNS[kind]
    table = pd.DataFrame({"y": y, "x": X}, index=pd.Index([f"r{i}" for i in range(N)]))
    table["y"] = pd.Series(y.array, table.index, dtype=y.dtype)
    before = table.copy()
    bound = ph.WithMissing(model).bind(table)
    draws = draws_of(bound, warmup=150, draws=60, emit_log_lik=True)
    assert_log_lik_is_stans(bound, draws, rtol=1e-8, atol=1e-10)
    made = bound.replicate(draws, 7, np.random.default_rng(1))["y"]
    pd.testing.assert_frame_equal(table, before)
    assert made.dtype == table["y"].dtype
    assert made.index.equals(table.index)
    assert {repr(v) for v in made[made.isna()]} == {repr(v) for v in table["y"][table["y"].isna()]}
    assert {type(v) for v in made.dropna()} == {type(v) for v in table["y"].dropna()}
    chance = special.expit(bound.parts[0].bound.design.X @ draws.flat("beta_missing")[7])
    error = np.sqrt((chance * (1 - chance)).sum())
    assert abs(made.isna().sum() - chance.sum()) < 5 * error
    assert np.isnan(bound.outcome).sum() == GONE.sum()


@pytest.mark.samples
def test_missingness_follows_its_predictors() -> None:
    """Another formula, of a constant, spreads missing values evenly: the control."""
    table = pd.DataFrame({"y": COLUMNS["float"][1], "x": X})
    apart = {}
    for how in (None, ph.Bernoulli("y ~ 1")):
        bound = ph.WithMissing(ph.Poisson("y ~ x"), missing=how).bind(table)
        draws = draws_of(bound, warmup=150, draws=60)
        made = np.stack([
            bound.replicate(draws, k, np.random.default_rng(k))["y"].isna() for k in range(40)
        ])  # fmt: skip
        apart[how is None] = made[:, X > 0].mean() - made[:, X < 0].mean()
    assert apart[True] > 0.2
    assert abs(apart[False]) < 0.1


def _predictors() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    age = np.where(rng.random(N) < 0.2, np.nan, 40 + 10 * X)
    group = pd.Series(rng.choice(["a", "b"], N), dtype=object)
    group[rng.random(N) < 0.1] = None
    return pd.DataFrame({
        "y": RNG.poisson(3, N), "age": age, "size": np.where(np.isnan(age), np.nan, 2.0 + X**2),
        "group": group, "x": X,
    })  # fmt: skip


@pytest.mark.samples
def test_missing_predictors_count_as_a_level_or_get_an_indicator() -> None:
    table = _predictors()
    model = ph.WithMissing(ph.Poisson("y ~ age + size + group + x"), fill={"age": 45})
    bound = model.bind(table)
    value = bound.parts[0].bound
    assert bound.predictors == ("age", "group", "size", "x")
    names = value.design.columns
    # One indicator for two numbers that are missing in the same records.
    assert [name for name in names if "missing_" in name] == ["missing_age[T.True]"]
    assert "group[T.(missing)]" in names
    X_ = dict(zip(names, value.design.X.T, strict=True))
    gone = table["age"].isna().to_numpy()
    assert set(X_["age"][gone]) == {45.0}
    assert set(X_["size"][gone]) == {table["size"].median()}
    np.testing.assert_array_equal(X_["missing_age[T.True]"], gone)
    np.testing.assert_array_equal(X_["group[T.(missing)]"], table["group"].isna())
    assert bound.data_dependent == (
        "median of size in the place of its missing values; fill= declares a number",
    )
    assert any("age" in text and "public" in text for text in bound.assumptions)
    draws = draws_of(bound, warmup=150, draws=60)
    one = bound.replicate(draws, 0, np.random.default_rng(1))
    two = bound.replicate(draws, 0, np.random.default_rng(1), given=table)
    pd.testing.assert_frame_equal(one, two)


def test_strict_where_numbers_are_declared_and_refused_where_the_model_takes_none() -> None:
    table = _predictors()
    for fill, kind in (({"age": 45}, "strict"), (None, "asymptotic local")):
        model = ph.WithMissing(ph.Poisson("y ~ age"), fill=fill)
        mechanism = ph.Censored(model, epsilon=2.0, inner=ph.Unweighted(model), center=None,
                                check_modes=False)  # fmt: skip
        release = mechanism.release(table, seed=1, **RANDOM_DRAWS)
        assert release.charge.kind == kind
        assert "was modeled, too" in release.statement
        assert release.synthetic[0]["age"].isna().equals(table["age"].isna())
    refuses("'age' must not be missing", ph.Poisson("y ~ age").bind, table)


@pytest.mark.samples
def test_a_column_that_holds_no_missing_value_gets_none() -> None:
    table = pd.DataFrame({"y": COUNT.astype(int), "x": X})
    bound = ph.WithMissing(ph.Poisson("y ~ x")).bind(table)
    assert [part.name for part in bound.parts] == ["value"]
    draws = draws_of(bound, warmup=150, draws=60)
    assert bound.replicate(draws, 0, np.random.default_rng(1))["y"].dtype == "int64"


@pytest.mark.parametrize("model", [
    ph.Poisson("y ~ x"), ph.NegativeBinomial("y ~ x"), ph.ZeroInflated(ph.Poisson("y ~ x")),
    ph.TwoPart(zero=ph.Bernoulli("y ~ x"), positive=ph.Gamma("y ~ x", decimals=1)),
    ph.Categorical("y ~ x", levels=(1, 2, 3)), ph.Ordinal("y ~ x", levels=(1, 2, 3)),
    ph.Bernoulli("y ~ x", levels=("3", "a")), ph.LogNormal("y ~ x", decimals=1),
    ph.Poisson("y ~ x", upper=9), ph.BetaRegression("y ~ x", lower=0, upper=9, decimals=1),
], ids=lambda model: model.name)  # fmt: skip
def test_the_last_value_that_is_there_is_not_told_by_a_refusal(model: Any) -> None:
    """Seen: a release was refused without it. The control: where it is declared never missing."""
    own = ph.WithMissing(model)
    mechanism = ph.Censored(own, epsilon=2.0, inner=ph.Unweighted(own), check_modes=False)
    for last, dtype in ((3.0, float), (3.0, object), (None, float), (None, object)):
        y = pd.Series([None] * 59 + [last], dtype=dtype)  # objects: as files of null type are read
        table = pd.DataFrame({"y": y, "x": X[:60]})
        assert mechanism.release(table, **RANDOM_DRAWS).charge.kind == "strict"
    refuses("must not be missing", replace(own, complete=True).bind, table)


def test_a_later_column_reads_missing_values_of_an_earlier_one() -> None:
    rng = np.random.default_rng(8)
    table = pd.DataFrame({
        "a": np.where(GONE, np.nan, COUNT), "b": rng.poisson(2 + GONE), "x": X,
    })  # fmt: skip
    steps = [
        ph.Unweighted(ph.WithMissing(ph.Poisson("a ~ x"))),
        ph.Unweighted(ph.WithMissing(ph.Poisson("b ~ a + x"), fill={"a": 3})),
    ]
    release = ph.SequentialSynthesis(steps).release(table, seed=4, **RANDOM_DRAWS)
    made = release.synthetic[0]
    assert 0 < made["a"].isna().sum() < N
    assert not made["a"].isna().equals(table["a"].isna())
    assert made["b"].notna().all()


def test_descriptions_and_what_the_command_line_refuses() -> None:
    import json

    for model in (
        ph.WithMissing(ph.Poisson("y ~ x"), fill={"x": 1.0}),
        ph.WithMissing(COLUMNS["amounts"][0], missing=ph.Bernoulli("y ~ 1")),
        ph.TwoPart(zero=ph.Bernoulli("y ~ 1"), positive=ph.LogNormal("y ~ x"),
                   negative=ph.LogNormal("y ~ 1")),
    ):  # fmt: skip
        again: Any = described_model(json.loads(json.dumps(model.describe())))
        assert again.describe() == model.describe()
    text = "poisson:missing=predictors,fill=x=1,marked="
    for names in ((), ("x",), ("x", "z")):
        declared = ph.WithMissing(ph.Poisson("y ~ x"), fill={"x": 1.0}, marked=names, complete=True)
        assert build_model(text + "+".join(names), "y ~ x") == declared
    for own in ("fill=x=1", "marked=x"):
        refuses("fill and marked go with", build_model, f"poisson:{own}", "y ~ x")
    refuses("missing must be", build_model, "poisson:missing=drop", "y ~ x")


@pytest.mark.parametrize(("make", "says"), [
    (lambda: ph.WithMissing(ph.Poisson("y ~ x"), missing=ph.Bernoulli("z ~ x")), "outcome 'y'"),
    (lambda: ph.WithMissing(ph.Poisson("y ~ x"), fill={"x": np.nan}), "fill of 'x' must be"),
    (lambda: ph.WithMissing("poisson"), "must be a model of this package"),  # type: ignore[arg-type]
    (lambda: ph.WithMissing(ph.Poisson("y ~ x")).bind(
        pd.DataFrame({"y": [1.0, np.nan, 2, 3], "x": [np.nan] * 4})
    ), "'x' must have a value"),
    (lambda: ph.WithMissing(ph.Poisson("y ~ group"), fill={"group": 1}).bind(_predictors()),
     "'group' has levels"),
])  # fmt: skip
def test_what_cannot_be_is_named(make: Any, says: str) -> None:
    refuses(says, make)


def test_levels_of_a_completed_predictor_are_those_declared() -> None:
    """Those that some record has would be read from the data, and of a column that is synthesized
    before from its true values: a level that is drawn and was not there must be coded."""
    levels = pd.CategoricalDtype(["a", "b", "c"])
    own = pd.DataFrame({"y": COUNT, "g": pd.Series(np.where(X > 0, "a", "b")).astype(levels)})
    own.loc[:9, "g"] = np.nan
    bound = ph.WithMissing(ph.Poisson("y ~ g", prior="normal")).bind(own)
    one = [name for name in bound.design_columns if name.startswith("value: ")]
    assert len(one) == 4  # intercept, b, c, missing


def test_declared_predictors_are_coded_alike_whether_or_not_a_value_is_missing() -> None:
    """So that one record with the only missing value does not change the design; a reference
    declares those that it lacks. Without `marked` the columns tell, as the control shows."""
    whole = pd.DataFrame({"y": COUNT, "x": X, "z": X**2, "g": TEXT})
    lacking = whole.assign(x=whole["x"].mask(whole.index == 5), g=whole["g"].mask(whole.index == 9))
    chosen = chosen_model("y ~ x + z + g", lacking, of_reference=True)
    assert isinstance(chosen, ph.WithMissing)
    assert set(chosen.marked or ()) == {"x", "g"}
    assert set(chosen.fill or ()) == {"x", "z"}
    model = ph.WithMissing(
        ph.Poisson("y ~ x + z + g", prior="normal"), fill=chosen.fill, marked=chosen.marked
    )
    coded = {own.bind(df).design_columns for df in (whole, lacking) for own in (model,)}
    assert len(coded) == 1
    more = lacking.assign(z=lacking["z"].mask(lacking.index == 7))
    assert model.bind(more).design_columns in coded, "filled, and no indicator"
    told = replace(model, marked=None)
    assert told.bind(whole).design_columns != told.bind(lacking).design_columns
    assert described_model(model.describe()).describe() == model.describe()
