"""Outcomes with any number of levels: likelihood, target, replicates, posterior, levels, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints
from pyhybrid.models.initialization import rough_levels
from tests.fuzzing.engine import RandomDraws
from tests.monte_carlo import assert_near

N = 240
RNG = np.random.default_rng(11)
X = RNG.normal(size=N).round(1)
BETA = np.array([[0.4, -0.3], [0.8, -0.5]])  # (K, C - 1)
NAMES = np.array(["bus", "car", "walk"])
PLACES = (
    np.column_stack([np.zeros(N), np.column_stack([np.ones(N), X]) @ BETA])
    + RNG.gumbel(size=(N, 3))
).argmax(axis=1)
OPTIONS: dict[str, Any] = {
    "engine": RandomDraws(),
    "settings": SamplerSettings(chains=2, warmup=1, draws=8),
    "rule": ConvergenceRule(rhat=10.0, ess_per_chain=0.1, divergent_share=1.0),
}
KINDS: dict[str, Any] = {
    "int64": pd.Series(PLACES * 2),
    "uint8": pd.Series(PLACES.astype("uint8")),
    "float": pd.Series(PLACES / 2),
    "Int8": pd.Series(PLACES).astype("Int8"),
    "object of numbers": pd.Series(PLACES).astype(object),
    "text": pd.Series(NAMES[PLACES]),
    "object of texts": pd.Series(NAMES[PLACES]).astype(object),
    "string": pd.Series(NAMES[PLACES]).astype("string"),
    "category": pd.Series(pd.Categorical(NAMES[PLACES], NAMES)),
    "category in another order": pd.Series(pd.Categorical(NAMES[PLACES], NAMES[::-1])),
    "ordered category": pd.Series(pd.Categorical(NAMES[PLACES], NAMES, ordered=True)),
    "category of numbers": pd.Series(pd.Categorical(PLACES, [2, 1, 0])),
    "bool": pd.Series(PLACES > 0),
    "boolean": pd.Series(PLACES > 0).astype("boolean"),
}


def _table(y: Any = None) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame({"y": NAMES[PLACES] if y is None else y, "x": X})
    return table


class _Draws:
    """One draw of beta, as a replicate reads it."""

    def __init__(self, beta: Any) -> None:
        self.beta = np.asarray(beta, dtype=float)[None]

    def flat(self, name: str) -> Any:
        return {"beta": self.beta}[name]


def _probabilities(beta: Any, design: Any) -> Any:
    eta = np.column_stack([np.zeros(len(design)), design @ beta])
    return special.softmax(eta, axis=1)


# --- Likelihood, target, posterior, replicates ----------------------------------------------------


def test_log_likelihood_far_out() -> None:
    far = ph.Categorical("y ~ 1").log_lik(
        {"beta": np.array([[[800.0, 0.0]]])}, np.array([0.0, 1.0, 2.0]), np.ones((1, 1))
    )
    np.testing.assert_allclose(far, [[-800, 0, -800]])


def test_two_levels_are_the_bernoulli_model() -> None:
    """Posterior densities over beta differ by one constant, and so do not differ."""
    table = _table(PLACES > 0)
    many, two = (m("y ~ x").bind(table) for m in (ph.Categorical, ph.Bernoulli))
    points = np.random.default_rng(3).normal(size=(6, 2))
    one = ProgramAtPoints(many.program, many.stan_data(np.ones(N)))
    beta = one.quantities(points)["beta"][:, :, 0]
    hints = {"information_root": np.zeros((2, 2)), "score": np.zeros(2)}  # beta = scale z
    other = ProgramAtPoints(two.program, two.stan_data(np.ones(N)) | hints)
    apart = one.log_density(points) - other.log_density(beta / [10, 2.5])
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)


def _draws(bound: Any, *, chains: int = 2, draws: int = 40, warmup: int = 100, **data: Any) -> Any:
    settings = SamplerSettings(chains=chains, warmup=warmup, draws=draws, parallel_chains=1)
    stan_data = bound.stan_data(np.ones(bound.n), **data)
    return EmbeddedEngine().sample(bound.program, stan_data, seed=3, settings=settings)


@pytest.mark.samples
def test_blocks_of_the_log_likelihood_keep_rows_of_the_same_predictors_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound = ph.Categorical("y ~ x").bind(_table())
    draws = _draws(bound, draws=4, warmup=1)
    whole = np.concatenate(list(bound.log_lik_blocks(draws)), axis=1)
    monkeypatch.setattr("pyhybrid.models.families.levels._BLOCK_ELEMENTS", 8 * 3 * 2)
    blocks = list(bound.log_lik_blocks(draws))
    assert len(blocks) > 10
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), whole, rtol=1e-10)
    by_record = bound.model.log_lik({"beta": draws.flat("beta")}, bound.design.y, bound.design.X)
    np.testing.assert_allclose(by_record, whole[:, bound.row_of], rtol=1e-10)


def _log_prior(beta: Any) -> Any:
    """Of contrasts of three levels with independent coefficients, by scipy."""
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    return sum(
        stats.multivariate_normal.logpdf(beta[:, k], cov=covariance * scale**2)
        for k, scale in enumerate((10.0, 2.5))
    )


@pytest.mark.parametrize("hints", ["the data's", "none"])
def test_the_target_is_the_documented_posterior(hints: str) -> None:
    bound = ph.Categorical("y ~ x").bind(_table())
    alpha = np.linspace(0.2, 1, N)
    data = bound.stan_data(alpha)
    if hints == "none":
        data |= {
            "center_beta": np.zeros((2, 2)), "spread_beta": np.ones((2, 2)),
            "column_basis": np.eye(2), "level_basis": np.eye(2),
        }  # fmt: skip
    at = ProgramAtPoints(bound.program, data)
    points = np.random.default_rng(3).normal(size=(6, 4))
    beta = at.quantities(points)["beta"]
    f = bound.model.log_lik({"beta": beta}, bound.design.y, bound.design.X)
    expected = (alpha * f).sum(axis=1) + _log_prior(beta)
    apart = at.log_density(points) - expected
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)
    assert np.ptp(apart + 0.1 * _log_prior(beta)) > 0.01, "control"


def test_records_collapse_to_distinct_rows_in_order_of_their_predictors() -> None:
    bound = ph.Categorical("y ~ x").bind(_table())
    alpha = np.random.default_rng(2).choice([0.0, 0.25, 1.0], N)
    collapsed = bound.stan_data(alpha)
    assert collapsed["n"] < N
    changes = (collapsed["X"][1:] != collapsed["X"][:-1]).any(axis=1).sum()
    assert changes + 1 == np.unique(X).size
    whole = collapsed | {
        "n": N, "y": PLACES + 1, "frequency": np.ones(N), "weights": alpha,
        "X": bound.design.X, "reference": np.zeros(N), "unit": np.zeros(N, int),
    }  # fmt: skip
    points = np.random.default_rng(1).normal(size=(4, 4))
    densities = [ProgramAtPoints(bound.program, d).log_density(points) for d in (collapsed, whole)]
    np.testing.assert_allclose(densities[0], densities[1], rtol=1e-11)
    assert ph.Categorical("y ~ 1").bind(_table()).stan_data(np.ones(N))["n"] == 3


def test_the_order_of_the_levels_does_not_move_the_posterior() -> None:
    """Densities at the same probabilities, whichever level is the first."""
    found = []
    for levels in (("bus", "car", "walk"), ("walk", "bus", "car")):
        bound = ph.Categorical("y ~ x", levels=levels).bind(_table())
        data = bound.stan_data(np.ones(N)) | {
            "center_beta": np.zeros((2, 2)), "spread_beta": np.ones((2, 2)),
            "column_basis": np.eye(2), "level_basis": np.eye(2),
        }  # fmt: skip
        full = np.random.default_rng(4).normal(size=(5, 2, 3))[..., np.argsort(levels)]
        own = np.empty_like(full)
        own[..., np.argsort(levels)] = np.random.default_rng(4).normal(size=(5, 2, 3))
        beta = own[..., 1:] - own[..., :1]
        points = beta.transpose(0, 2, 1).reshape(5, 4)  # Stan's matrices are by columns
        found.append(ProgramAtPoints(bound.program, data).log_density(points))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)


@pytest.mark.samples
def test_the_posterior_is_near_maximum_likelihood_under_a_wide_prior() -> None:
    """Means and deviations against statsmodels' MNLogit: n = 3000, prior scales of 100."""
    import statsmodels.api as sm

    n, rng = 3000, np.random.default_rng(8)
    x, z = rng.normal(size=n).round(1), rng.integers(0, 2, n)
    design = np.column_stack([np.ones(n), x, z])
    utility = np.column_stack([np.zeros(n), design @ [[0.3, -0.2], [0.6, 0.1], [0.5, -0.4]]])
    y = (utility + rng.gumbel(size=utility.shape)).argmax(axis=1)
    bound = ph.Categorical("y ~ x + z", prior_scale=100, prior_scale_intercept=100).bind(
        pd.DataFrame({"y": y, "x": x, "z": z})
    )
    draws = _draws(bound, chains=4, warmup=300, draws=600)
    fit = sm.MNLogit(y, bound.design.X).fit(disp=0)
    for k in range(3):
        for c in range(2):
            own, slack = draws.variables["beta"][..., k, c], 0.05 * fit.bse[k, c]
            assert_near(own, fit.params[k, c], apart=slack)
            assert_near(own, fit.bse[k, c], method="sd", apart=slack)
    assert draws.treedepth.mean() < 4.5
    assert draws.divergent.mean() < 0.01


def test_replicates_have_the_models_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square by value of the predictor over 60,000 draws; another coefficient is caught."""
    monkeypatch.setattr("pyhybrid.models.families.levels._BLOCK_ELEMENTS", 30_000)
    n = 60_000
    x = np.resize([-1.0, 0.0, 2.0], n)
    table = pd.DataFrame({"y": np.resize([0, 1, 2, 2], n), "x": x})
    bound = ph.Categorical("y ~ x").bind(table)
    made = bound.replicate(_Draws(BETA), 0, np.random.default_rng(5))["y"].to_numpy()

    def chi_square(beta: Any) -> float:
        total = 0.0
        for value in np.unique(x):
            own = made[x == value]
            expected = own.size * _probabilities(beta, np.array([[1.0, value]]))[0]
            total += ((np.bincount(own, minlength=3) - expected) ** 2 / expected).sum()
        return float(total)

    assert chi_square(BETA) < stats.chi2.ppf(1 - 1e-6, 6)
    assert chi_square(BETA * [[1, 1], [1.15, 1]]) > stats.chi2.ppf(1 - 1e-6, 6)


@pytest.mark.samples
def test_three_hundred_levels_are_sampled_and_come_back() -> None:
    """Trees stay shallow though most levels are rare; empty ones stay next to empty."""
    rng = np.random.default_rng(3)
    n, names = 4000, np.array([f"town {k:03d}" for k in range(300)])
    share = rng.dirichlet(np.full(280, 0.5))
    places = rng.choice(280, n, p=share)
    table = pd.DataFrame({"y": names[places], "sex": rng.choice(["f", "m"], n)})
    bound = ph.Categorical("y ~ sex", levels=tuple(names)).bind(table)
    settings = SamplerSettings(chains=2, warmup=100, draws=60, parallel_chains=1)
    data = bound.stan_data(np.ones(n))
    draws = EmbeddedEngine().sample(bound.program, data, seed=1, settings=settings)
    assert draws.treedepth.mean() < 5.5
    assert draws.divergent.mean() < 0.05
    made = bound.replicate(draws, 7, rng)["y"]
    assert set(made) <= set(names)
    counts = bound.numbers_of(made).astype(int)
    assert (counts >= 280).mean() < 0.02
    common = int(share.argmax())
    apart = abs((counts == common).mean() - (places == common).mean())
    assert apart < 5 * np.sqrt(2 * share[common] / n)


def test_the_rough_fit_ends_whatever_the_weights() -> None:
    X = np.column_stack([np.ones(6), np.arange(6.0)])
    for counts in (np.zeros((6, 3)), np.eye(6)[:, :3] * 50, np.full((6, 3), 1e6)):
        found = rough_levels(counts, X, np.array([10.0, 2.5]))
        assert all(np.isfinite(own).all() for own in found.values())
    prior = rough_levels(np.zeros((6, 3)), X, np.array([10.0, 2.5]))
    beta = prior["column_basis"] @ np.ones((2, 2)) @ prior["level_basis"].T
    quadratic = beta**2 / np.array([[100.0], [6.25]])
    cross = beta.prod(axis=1) / np.array([100.0, 6.25])
    np.testing.assert_allclose((quadratic.sum() - cross.sum()) * 4 / 3, 4, rtol=1e-9)


@pytest.mark.samples
def test_separated_levels_have_a_proper_posterior_and_end() -> None:
    x = np.linspace(-2, 2, 60)
    table = pd.DataFrame({"y": np.digitize(x, [-0.7, 0.7]), "x": x})
    bound = ph.Categorical("y ~ x").bind(table)
    draws = _draws(bound, warmup=300, draws=200)
    assert np.isfinite(draws.flat("beta")).all()
    assert np.median(draws.flat("beta")[:, 1, 1]) > 2
    assert draws.divergent.mean() < 0.1


# --- Levels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_released_values_have_the_dtype_and_the_levels_of_the_data(kind: str) -> None:
    table = _table(KINDS[kind])
    table.index = pd.Index([f"row {i}" for i in range(N)])
    table["y"] = pd.Series(KINDS[kind].array, table.index)
    bound = ph.Categorical("y ~ x").bind(table)
    logical = "bool" in kind
    beta = BETA[:, :1] if logical else BETA
    made = bound.replicate(_Draws(beta), 0, np.random.default_rng(5))["y"]
    assert made.dtype == table["y"].dtype
    assert made.index.equals(table.index)
    assert {type(v) for v in made} == {type(v) for v in table["y"]}
    assert set(made) == set(table["y"])
    expected = _probabilities(beta, bound.design.X).mean(axis=0)
    shares = np.bincount(bound.numbers_of(made).astype(int)) / N
    np.testing.assert_allclose(shares, expected, atol=5 * 0.5 / np.sqrt(N))


@pytest.mark.parametrize("kind", KINDS)
def test_only_levels_that_are_read_make_a_charge_depend_on_the_data(kind: str) -> None:
    read = "bool" not in kind
    bound = ph.Categorical("y ~ x").bind(_table(KINDS[kind]))
    assert bound.data_dependent == (("levels of y; levels= declares them",) if read else ())
    declared = tuple(v.item() if isinstance(v, np.generic) else v for v in KINDS[kind].unique())
    bound = ph.Categorical("y ~ x", levels=(*declared,)).bind(_table(KINDS[kind]))
    assert bound.data_dependent == ()


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_a_strict_charge_needs_declared_levels(dtype: str) -> None:
    """Categories are no declaration: `astype("category")` takes them from the records."""
    table = _table()
    table["y"] = table["y"].astype(dtype)
    for levels, kind in ((None, "asymptotic local"), (tuple(NAMES), "strict")):
        model = ph.Categorical("y ~ x", levels=levels)
        mechanism = ph.Censored(model, epsilon=2.0, inner=ph.Unweighted(model), check_modes=False)
        charge = mechanism.release(table, n_synthetic=1, **OPTIONS).charge
        assert charge.kind == kind
    with pytest.raises(InvalidInput, match="coded record by record: levels of y; levels= declares"):
        ph.calibrate(
            ph.Categorical("y ~ x"), table, epsilon=1.0, holds_no_released_record=True, **OPTIONS
        )


def test_a_declared_level_that_no_category_has_can_be_released() -> None:
    table = _table(pd.Series(NAMES[PLACES]).astype("category"))
    bound = ph.Categorical("y ~ x", levels=(*NAMES, "nowhere")).bind(table)
    made = bound.released(np.full(N, float(len(NAMES))), table["y"])
    assert set(made) == {"nowhere"}
    assert list(made.cat.categories) == [*NAMES, "nowhere"]


def test_a_center_from_a_reference_table() -> None:
    model = ph.Categorical("y ~ x", levels=tuple(NAMES))
    made = ph.calibrate(
        model, _table().head(120), epsilon=2.0, holds_no_released_record=True, **OPTIONS
    )
    mechanism = ph.Censored(model, calibration=made, check_modes=False)
    release = mechanism.release(_table().tail(120), n_synthetic=1, **OPTIONS)
    assert release.charge.kind == "strict"
    assert set(release.synthetic[0]["y"]) <= set(NAMES)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (["a", "b", "c", "a"], {"levels": ("a", "b")}, "one of its levels: row 2 is not"),
        (pd.Categorical(list("abca")), {"levels": ("a", "z", "b")}, "its levels: row 2 is not"),
        (["a"] * 4, {}, "levels must be 2 to 1000 different values: found 1"),
        (["a", None, "b", "a"], {}, "outcome 'y' must not be missing: row 1 is"),
        (pd.Categorical(["a", "b", None, "a"]), {}, "must not be missing: row 2 is"),
        ([0, 1, np.inf, 2], {}, "outcome 'y' must be one of its levels: row 2 is not"),
        (pd.date_range("2020", periods=4), {}, "must be text, logicals, categories or numbers"),
        (pd.Categorical(list("aaaa"), ["a", "b"]), {}, "outcome 'y' must vary"),
        (pd.Series(list("abca")), {"formula": "y ~ offset(z)"}, "Categorical takes no offset"),
    ],
)
def test_outcomes_that_are_none_are_refused_by_row(values: Any, options: Any, message: str) -> None:
    table = pd.DataFrame({"y": values, "z": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(InvalidInput, match=message):
        ph.Categorical(**{"formula": "y ~ 1", **options}).bind(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": ("a",)}, "2 to 1000 different values: found 1"),
        ({"levels": ("a", "b", "a")}, "2 to 1000 different values: found 3, 2 of them different"),
        ({"levels": tuple(range(1001))}, "found 1001"),
        ({"levels": "ab"}, "levels must be a tuple: found str"),
        ({"prior_scale": 0}, "prior_scale must be"),
        ({"prior_scale_intercept": -1}, "prior_scale_intercept must be"),
    ],
)
def test_settings_that_are_none_are_refused(options: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ph.Categorical("y ~ 1", **options)


# --- As users meet it -----------------------------------------------------------------------------


def test_a_synthesized_level_is_a_predictor_of_the_next_column() -> None:
    table = _table()
    table["visits"] = RNG.poisson(np.where(PLACES > 0, 6, 2))
    steps = [
        ph.Unweighted(ph.Categorical("y ~ x", levels=tuple(NAMES))),
        ph.Unweighted(ph.Poisson("visits ~ y")),
    ]
    release = ph.SequentialSynthesis(steps).release(table, n_synthetic=1, seed=1, **OPTIONS)
    (made,) = release.synthetic
    assert set(made["y"]) <= set(NAMES)
    assert not made["y"].equals(table["y"])
