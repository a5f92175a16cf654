"""Outcomes with levels: dtypes that come back, declared levels, targets; laws: test_contract.py."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.releases.statement import assumptions
from tests.models.targets import AtPoints, beyond_density, draws_of
from tests.normal_draws import FEW_DRAWS
from tests.refusals import refuses

N = 300
RNG = np.random.default_rng(11)
X = RNG.normal(size=N).round(1)
DESIGN = np.column_stack([np.ones(N), X])
FROZEN: dict[str, Any] = {"epsilon": 1.0, "holds_no_released_record": True, **FEW_DRAWS}


@dataclass(frozen=True)
class Leveled:
    """A model, coefficients (2, C - 1) of its levels after the first, and the levels' names."""

    model: Any
    beta: FloatArray
    names: Any

    @property
    def codes(self) -> Any:
        utility = np.column_stack([np.zeros(N), DESIGN @ self.beta])
        return (utility + np.random.default_rng(5).gumbel(size=utility.shape)).argmax(axis=1)

    def flat(self, name: str) -> Any:
        """One draw of beta, as a replicate reads it."""
        assert name == "beta"
        return self.beta.T if self.model is ph.Bernoulli else self.beta[None]


MODELS = {
    "bernoulli": Leveled(ph.Bernoulli, np.array([[0.4], [0.8]]), np.array(["no", "yes"])),
    "categorical": Leveled(
        ph.Categorical, np.array([[0.4, -0.3], [0.8, -0.5]]), np.array(["bus", "car", "walk"])
    ),
    "categorical of two": Leveled(
        ph.Categorical, np.array([[0.4], [0.8]]), np.array(["no", "yes"])
    ),
}


def _kinds(case: Leveled) -> dict[str, pd.Series]:
    """The outcome in every dtype; its levels in order are the codes'."""
    codes, names = case.codes, case.names
    step = 1 if names.size == 2 else 2  # Bernoulli's numbers are 0 and 1
    kinds: dict[str, Any] = {
        "int64": codes * step, "uint8": codes.astype("uint8"),
        "float": codes * step / 2 if step == 2 else codes.astype(float),
        "Int8": pd.array(codes, "Int8"), "object of numbers": pd.Series(codes).astype(object),
        "text": names[codes], "object of texts": names[codes].astype(object),
        "string": pd.array(names[codes], "string"), "category": pd.Categorical(names[codes], names),
        "category in another order": pd.Categorical.from_codes(codes, list(names[::-1])),
        "ordered category": pd.Categorical(names[codes], names, ordered=True),
        "category of numbers": pd.Categorical.from_codes(codes, list(range(names.size))[::-1]),
    }  # fmt: skip
    if names.size == 2:
        logical = pd.Series(codes == 1)
        kinds |= {own: logical.astype(own) for own in ("bool", "boolean", "bool[pyarrow]")}
        kinds["object of logicals"] = logical.astype(object)
    return {kind: pd.Series(values) for kind, values in kinds.items()}


def _table(y: Any) -> pd.DataFrame:
    return pd.DataFrame({"y": y, "x": X})


OF_KINDS = pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, case in MODELS.items() for kind in _kinds(case)]
)


@OF_KINDS
def test_released_values_have_the_dtype_and_the_levels_of_the_data(name: str, kind: str) -> None:
    case = MODELS[name]
    labels = pd.Index([f"row {i}" for i in range(N)])
    table = _table(_kinds(case)[kind]).set_axis(labels)
    before = table.copy()
    bound = case.model("y ~ x").bind(table)
    np.testing.assert_array_equal(bound.outcome, case.codes.astype(float))
    made = bound.replicate(case, 0, np.random.default_rng(5))["y"]
    pd.testing.assert_frame_equal(table, before)
    assert made.dtype == table["y"].dtype
    assert made.index.equals(labels)
    assert {type(v) for v in made} == {type(v) for v in table["y"]}
    assert set(made) == set(table["y"])
    eta = np.column_stack([np.zeros(N), DESIGN @ case.beta])
    shares = np.bincount(bound.numbers_of(made).astype(int)) / N
    expected = special.softmax(eta, axis=1).mean(axis=0)
    np.testing.assert_allclose(shares, expected, atol=5 * 0.5 / np.sqrt(N))


@OF_KINDS
def test_only_levels_that_are_read_make_a_charge_depend_on_the_data(name: str, kind: str) -> None:
    case = MODELS[name]
    table = _table(_kinds(case)[kind])
    numbers = "category" not in kind and kind not in ("text", "object of texts", "string")
    logical = "bool" in kind or "logicals" in kind
    read = not (numbers if case.model is ph.Bernoulli else logical)
    bound = case.model("y ~ x").bind(table)
    assert bound.data_dependent == (("levels of y; levels= declares them",) if read else ())
    levels = tuple(v.item() if isinstance(v, np.generic) else v for v in table["y"].unique())
    assert case.model("y ~ x", levels=levels).bind(table).data_dependent == ()


@pytest.mark.parametrize("model", [ph.Bernoulli, ph.Categorical, ph.Ordinal])
def test_the_last_record_of_a_declared_level_is_not_told_by_a_refusal(model: Any) -> None:
    """The controls: without declared levels, or the normal prior, one value is refused."""
    levels = ("no", "yes") if model is ph.Bernoulli else ("no", "perhaps", "yes")
    df = pd.DataFrame({"y": ["no"] * 40, "x": np.arange(40) % 7})
    data = model("y ~ x", levels=levels).bind(df).stan_data(np.ones(40))
    assert all(np.isfinite(np.asarray(own, dtype=float)).all() for own in data.values())
    refuses("must vary|must have an order|2 to 1000 different", model("y ~ x").bind, df)
    for counts in (ph.Poisson, ph.NegativeBinomial):
        counts("y ~ x", prior="normal").bind(df.assign(y=3)).stan_data(np.ones(40))
        refuses("must vary", counts("y ~ x").bind, df.assign(y=3))


@pytest.mark.parametrize("dtype", ["object", "category", "another order"])
@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_a_strict_charge_needs_declared_levels(name: str, dtype: str) -> None:
    """Categories are none: `astype("category")` takes them from the records, as Table has it."""
    case = MODELS[name]
    own = pd.CategoricalDtype(case.names[::-1]) if dtype == "another order" else dtype
    table = _table(pd.Series(case.names[case.codes]).astype(own))  # type: ignore[call-overload]
    for levels, kind in ((None, "asymptotic local"), (tuple(case.names), "strict")):
        model = case.model("y ~ x", levels=levels)
        mechanism = ph.Censored(model, epsilon=2.0, inner=ph.Unweighted(model), check_modes=False)
        charge = mechanism.release(table, n_synthetic=1, **FEW_DRAWS).charge
        assert charge.kind == kind
        assert any("levels of y" in each for each in assumptions(charge)) == (levels is None)
    said = "coded record by record: levels of y; levels= declares"
    refuses(said, ph.calibrate, case.model("y ~ x"), table, **FROZEN)


@pytest.mark.parametrize(("model", "at", "expected"), [
    (ph.Bernoulli, {"beta": [[800.0], [-800.0]]}, [[-800, 0], [0, -800]]),
    (ph.Categorical, {"beta": [[[800.0, 0.0]]]}, [[-800, 0, -800]]),
    (ph.Ordinal, {"beta": [[800.0]], "threshold": [[-800.0, -799.0]]},
     [[-800, -799 + np.log(-np.expm1(-1)), 0]]),
])  # fmt: skip
def test_log_likelihood_far_out(model: Any, at: dict[str, Any], expected: Any) -> None:
    """Of one record at each level."""
    at = {name: np.array(values) for name, values in at.items()}
    n = len(expected[0])
    found = model("y ~ 1").log_lik(at, np.arange(float(n)), np.ones((n, 1)), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-12)


@pytest.mark.parametrize("model", [ph.Categorical, ph.Ordinal])
def test_two_levels_are_the_bernoulli_model(model: Any) -> None:
    """Posterior densities over beta differ by one constant, and so do not differ."""
    table = _table(MODELS["bernoulli"].codes == 1)
    many, two = (m("y ~ x").bind(table) for m in (model, ph.Bernoulli))
    points = np.random.default_rng(3).normal(size=(6, 2))
    one = ProgramAtPoints(many.program, many.stan_data(np.ones(N)))
    beta = one.quantities(points)["beta"].reshape(6, 2)
    hints = {"information_root": np.zeros((2, 2)), "score": np.zeros(2)}  # beta = scale z
    other = ProgramAtPoints(two.program, two.stan_data(np.ones(N)) | hints)
    apart = one.log_density(points) - other.log_density(beta / [10, 2.5])
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)


CODES, NAMES = MODELS["categorical"].codes, MODELS["categorical"].names
THREE = _table(NAMES[CODES])


@pytest.mark.normal_draws
def test_blocks_of_the_log_likelihood_keep_equal_predictors_together(monkeypatch: Any) -> None:
    bound = ph.Categorical("y ~ x").bind(THREE)
    draws = draws_of(bound, draws=4, warmup=1)
    whole = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)
    for room in ("levels", "regression"):
        monkeypatch.setattr(f"pyhybrid.models.families.{room}.BLOCK_ELEMENTS", 8 * 3 * 2)
    blocks = list(bound.log_lik_blocks(draws))
    assert len(blocks) > 10
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), whole, rtol=1e-10)
    by_record = bound.model.log_lik({"beta": draws.flat("beta")}, bound.design.y, bound.design.X, 0)
    np.testing.assert_allclose(by_record, whole[:, bound.row_of], rtol=1e-10)
    made = bound.replicate(draws, 0, np.random.default_rng(1))
    monkeypatch.undo()
    pd.testing.assert_frame_equal(bound.replicate(draws, 0, np.random.default_rng(1)), made)


def _log_prior(beta: Any) -> Any:
    """Of contrasts of three levels with independent coefficients, by scipy."""
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    return sum(
        stats.multivariate_normal.logpdf(beta[:, k], cov=covariance * scale**2)
        for k, scale in enumerate((10.0, 2.5))
    )


NO_HINTS = {
    "center_beta": np.zeros((2, 2)), "spread_beta": np.ones((2, 2)),
    "column_basis": np.eye(2), "level_basis": np.eye(2),
}  # fmt: skip


@pytest.mark.parametrize("hints", ["the data's", "none"])
def test_the_target_is_the_documented_posterior(hints: str) -> None:
    bound = ph.Categorical("y ~ x").bind(THREE)
    alpha = np.linspace(0.2, 1, N)
    data = bound.stan_data(alpha)
    if hints == "none":
        data |= NO_HINTS
    at = ProgramAtPoints(bound.program, data)
    points = np.random.default_rng(3).normal(size=(6, 4))
    beta = at.quantities(points)["beta"]
    f = bound.model.log_lik({"beta": beta}, bound.design.y, bound.design.X, 0)
    expected = (alpha * f).sum(axis=1) + _log_prior(beta)
    apart = at.log_density(points) - expected
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)
    assert np.ptp(apart + 0.1 * _log_prior(beta)) > 0.01, "control"


def test_the_order_of_the_levels_does_not_move_the_posterior() -> None:
    """Densities at the same probabilities, whichever level is the first."""
    found = []
    for levels in (("bus", "car", "walk"), ("walk", "bus", "car")):
        bound = ph.Categorical("y ~ x", levels=levels).bind(THREE)
        data = bound.stan_data(np.ones(N)) | NO_HINTS
        full = np.random.default_rng(4).normal(size=(5, 2, 3))[..., np.argsort(levels)]
        own = np.empty_like(full)
        own[..., np.argsort(levels)] = np.random.default_rng(4).normal(size=(5, 2, 3))
        beta = own[..., 1:] - own[..., :1]
        points = beta.transpose(0, 2, 1).reshape(5, 4)  # Stan's matrices are by columns
        found.append(ProgramAtPoints(bound.program, data).log_density(points))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)


def test_a_declared_level_that_no_category_has_can_be_released() -> None:
    table = _table(pd.Series(NAMES[CODES]).astype("category"))
    bound = ph.Categorical("y ~ x", levels=(*NAMES, "nowhere")).bind(table)
    made = bound.released(np.full(N, float(len(NAMES))), table["y"])
    assert set(made) == {"nowhere"}
    assert list(made.cat.categories) == [*NAMES, "nowhere"]


def test_the_target_of_ordered_levels_has_the_documented_prior() -> None:
    """At weights of 0: log density less that of normals, Jacobian of the coordinates included."""
    bound = ph.Ordinal("y ~ x").bind(_table(RNG.integers(0, 4, N)))
    program = ProgramAtPoints(bound.program, bound.stan_data(np.zeros(N)))

    def coordinates(at: Any) -> Any:
        np.testing.assert_allclose(at["beta"][:, 0], -at["threshold"][:, 0])
        return np.column_stack([at["threshold"], at["beta"][:, 1]])

    def prior(at: Any, mean: float = 0.0) -> Any:
        return stats.norm.logpdf(coordinates(at), mean, [10, 10, 10, 2.5]).sum(axis=1)

    apart = beyond_density(program, prior, coordinates)
    np.testing.assert_allclose(apart, apart[0], atol=2e-5)
    wrong = beyond_density(program, lambda at: prior(at, 0.1), coordinates)
    assert np.ptp(wrong) > 0.01, "control"


TRUE = MODELS["bernoulli"].codes == 1
YES = np.where(TRUE, "yes", "no")


def test_the_categories_own_order_says_which_level_is_second() -> None:
    one = ph.Bernoulli("y ~ x").bind(_table(pd.Categorical(YES, ["no", "yes"])))
    two = ph.Bernoulli("y ~ x").bind(_table(pd.Categorical(YES, ["yes", "no"])))
    np.testing.assert_array_equal(one.outcome, 1 - two.outcome)
    three = pd.Categorical(YES, ["maybe", "no", "yes"])
    declared = ph.Bernoulli("y ~ x", levels=("no", "yes")).bind(_table(three))
    np.testing.assert_array_equal(declared.outcome, one.outcome)
    made = declared.replicate(AtPoints({"beta": np.zeros((1, 2))}), 0, np.random.default_rng(1))
    assert list(made["y"].cat.categories) == ["maybe", "no", "yes"]


@pytest.mark.parametrize(("values", "levels", "second"), [
    (YES, ("no", "yes"), "yes"),
    (YES, ("yes", "no"), "no"), (np.where(TRUE, 2, 1), (1, 2), 2),
    (np.where(TRUE, 2, 1), ("1", "2"), 2), (np.where(TRUE, 0.5, 1.5), (1.5, 0.5), 0.5),
    (TRUE, ("False", "True"), True), (TRUE, (True, False), False),
    (pd.Categorical(np.where(TRUE, 2, 1)), ("1", "2"), 2),
])  # fmt: skip
def test_declared_levels(values: Any, levels: Any, second: Any) -> None:
    table = _table(values)
    bound = ph.Bernoulli("y ~ x", levels=levels).bind(table)
    np.testing.assert_array_equal(bound.outcome == 1, table["y"] == second)
    assert bound.data_dependent == ()


def test_a_calibration_is_for_one_order_of_the_categories() -> None:
    """Of a predictor; those of the outcome are declared, in whatever order the column has them."""
    model = ph.Bernoulli("y ~ g", levels=("no", "yes"))
    groups = np.resize(["a", "b"], N)
    known = _table(pd.Categorical(YES, ["no", "yes"])).assign(g=pd.Categorical(groups))
    made = ph.calibrate(model, known, **FROZEN)
    other = _table(pd.Categorical(YES, ["yes", "no"])).assign(g=pd.Categorical(groups))
    made.check_fits(model.bind(other))
    turned = other.assign(g=pd.Categorical(groups, ["b", "a"]))
    mechanism = ph.Censored(made.model, calibration=made, check_modes=False)
    more = other.assign(g=["z", *groups[1:]])
    for own, said in ((turned, "another order"), (more, "found 3, others")):
        said = f"column 'g' must have the levels of .*{said}"
        refuses(said, mechanism.release, own, n_synthetic=1, **FEW_DRAWS)


def test_log_density_where_probabilities_round_to_0_and_1() -> None:
    """Predictors of any size, also of records without weight, whose probability may be 0."""
    y, x = np.array([0, 1, 1, 0, 1]), np.array([-3.0, 2e5, 4.0, 3e3, -1e6])
    alpha = np.array([1.0, 1.0, 0.5, 1e-3, 0.0])
    model = ph.Bernoulli("y ~ x", prior="normal", prior_scale=1.0)
    bound = model.bind(pd.DataFrame({"y": y, "x": x}))
    data = bound.stan_data(alpha)
    K = data["K"]
    data |= {"information_root": np.zeros((K, K)), "score": np.zeros(K)}  # beta = scale * z
    points = np.array([[0.0, 0.0], [0.1, 0.5], [-0.2, 1.5], [0.0, 1e-7]])
    found = ProgramAtPoints(bound.program, data).log_density(points)
    eta = points * np.asarray(data["prior_scale"]) @ np.column_stack([np.ones(5), x]).T
    right = -np.logaddexp(0, (1 - 2 * y) * eta) @ alpha - (points**2).sum(axis=1) / 2
    np.testing.assert_allclose(found, right, rtol=1e-10)


_DATES = pd.date_range("2020", periods=4)


@pytest.mark.parametrize(("model", "values", "options", "message"), [
    (ph.Bernoulli, [1, 2, 2, 1], {}, "outcome 'y' must be 0 or 1: row 1 is not; declare levels="),
    (ph.Bernoulli, list("abca"), {}, "must have 2 levels for Bernoulli: found 3"),
    (ph.Bernoulli, list("abca"), {"levels": ("a", "b")}, "one of its levels: row 2 is not"),
    (ph.Bernoulli, [0, 1, 1, 0], {"levels": ("no", "yes")}, "its levels: row 0 is not; declare"),
    (ph.Bernoulli, [1, 1, 1, 1], {}, "outcome 'y' must vary: all 4 records have the same value"),
    (ph.Bernoulli, pd.Categorical(list("aaaa"), ["a", "b"]), {}, "outcome 'y' must vary"),
    (ph.Bernoulli, [0, 1, None, 1], {}, "outcome 'y' must not be missing: row 2 is"),
    (ph.Bernoulli, [0, 1, np.inf, 1], {}, "outcome 'y' must be 0 or 1: row 2 is not"),
    (ph.Bernoulli, pd.Series([0, "a", 1, 0], dtype=object), {}, "must be numbers, text, logicals"),
    (ph.Categorical, pd.Categorical(list("abca")), {"levels": ("a", "z", "b")},
     "its levels: row 2 is not"),
    (ph.Categorical, ["a"] * 4, {}, "levels must be 2 to 1000 different values: found 1"),
    (ph.Categorical, pd.Categorical(["a", "b", None, "a"]), {}, "must not be missing: row 2 is"),
    (ph.Categorical, [0, 1, np.inf, 2], {}, "outcome 'y' must be one of its levels: row 2 is not"),
    (ph.Categorical, _DATES, {}, "must be numbers, text, logicals or categories"),
    (ph.Categorical, list("abca"), {"formula": "y ~ offset(z)"}, "Categorical takes no offset"),
    (ph.Ordinal, list("abca"), {}, "must have an order: give levels="),
    (ph.Ordinal, pd.Categorical(list("abca")), {}, "must have an order: give levels="),
    (ph.Ordinal, [1, 2, 3, 1], {"formula": "y ~ 0 + z"}, "must have an intercept"),
])  # fmt: skip
def test_outcomes_that_a_model_cannot_take_are_refused_by_row(
    model: Any, values: Any, options: Any, message: str
) -> None:
    table = pd.DataFrame({"y": values, "z": [1.0, 2.0, 3.0, 4.0]})
    refuses(message, model(**{"formula": "y ~ 1", **options}).bind, table)


@pytest.mark.parametrize(("model", "options", "message"), [
    (ph.Bernoulli, {"levels": ("a", "a")}, "2 different values: found 2, 1 of them different"),
    (ph.Bernoulli, {"levels": ("a", "b", "c")}, "2 different values: found 3"),
    (ph.Bernoulli, {"levels": (None, "a")}, "texts, numbers or logicals"),
    (ph.Categorical, {"levels": ("a",)}, "2 to 1000 different values: found 1"),
    (ph.Categorical, {"levels": tuple(range(1001))}, "found 1001"),
    (ph.Categorical, {"levels": "ab"}, "levels must be a tuple: found str"),
    (ph.Categorical, {"prior_scale": 0}, "prior_scale must be"),
    (ph.Categorical, {"prior_scale_intercept": -1}, "prior_scale_intercept must be"),
])  # fmt: skip
def test_settings_that_are_none_are_refused(model: Any, options: Any, message: str) -> None:
    refuses(message, model, "y ~ 1", **options)
