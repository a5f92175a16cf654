"""What local releases are charged: three accountings, held against what is left out by hand."""

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import SamplingError
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.privacy.conversions import epsilon_of_bound, epsilon_of_mu, epsilon_of_range
from pyhybrid.privacy.refits import refit_of
from tests.fits import fit_options, session_fixture
from tests.refusals import fails, refuses

pytestmark = pytest.mark.samples
OPTIONS = fit_options(chains=4, warmup=500, draws=600, seed=5)
MODEL = ph.Poisson("y ~ 1")


def counts(n: int = 300, seed: int = 8) -> pd.DataFrame:
    """Counts with one that alone is the largest and riskiest; 2 to 8 rows a person."""
    rng = np.random.default_rng(seed)
    y = rng.poisson(20, n)
    y[0] = y.max() + 6
    person = np.concatenate([np.full(8, 3), rng.integers(4, n // 3, n - 8)])
    return pd.DataFrame({"y": y, "person": [f"id {p}" for p in person]})


session = session_fixture(lambda: MODEL.bind(counts()), **OPTIONS)
MECHANISMS: dict[str, Any] = {
    "Unweighted": ph.Unweighted(MODEL),
    "LipschitzWeighted": ph.LipschitzWeighted(MODEL),
    "CountWeighted": ph.CountWeighted(MODEL),
    "ScalarWeighted": ph.ScalarWeighted(MODEL, target_epsilon=8),
    "Truncated": ph.Truncated(MODEL, cap=6),
    "GivenWeights": ph.GivenWeights(MODEL, alpha=np.linspace(0.2, 1, 300)),
    "LW re-weighted": ph.LipschitzWeighted(MODEL, reweighting=True),
    "Unweighted by person": ph.Unweighted(MODEL, unit="person"),
    "LW by person": ph.LipschitzWeighted(MODEL, unit="person"),
    "CW by person": ph.CountWeighted(MODEL, unit="person"),
    "Truncated by person": ph.Truncated(MODEL, cap=9, unit="person"),
}


def released(session: FitSession, mechanism: Any, m: int = 1, refits: int = 2) -> ph.Release:
    return mechanism.release_from(  # type: ignore[no-any-return]
        session, n_synthetic=m, n_draws_released=m, refits=refits
    )


def log_lik_of(draws: Any) -> np.ndarray:
    """Log-likelihood of the records at draws, by scipy, (S, n)."""
    mean = np.exp(draws.flat("beta")[:, 0])
    return np.asarray(stats.poisson.logpmf(counts()["y"].to_numpy(), mean[:, None]))


@pytest.mark.filterwarnings("ignore:re-weighting found no weights")
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_local_charge_carries_three_accountings(name: str, session: FitSession) -> None:
    mechanism = MECHANISMS[name]
    release = released(session, mechanism)
    charge, loss = release.charge, release.confidential.loss
    assert (charge.accounting, charge.delta) == ("lipschitz", 0.0)
    assert 1 <= len(loss.refits) <= 2
    terms = release.confidential.alpha * log_lik_of(release.fit.draws)
    if mechanism.unit is not None:
        codes, levels = pd.factorize(counts()[mechanism.unit])
        weights = pd.Series(release.confidential.alpha).groupby(codes)
        assert (weights.nunique() == 1).all(), "one weight for all rows of a person"
        terms = np.stack([terms[:, codes == k].sum(axis=1) for k in range(len(levels))], axis=1)
    np.testing.assert_allclose(loss.lipschitz, np.abs(terms).max(axis=0), rtol=1e-9)
    np.testing.assert_allclose(loss.ranges, np.ptp(terms, axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(loss.deviations, terms.std(axis=0, ddof=1), rtol=1e-9, atol=1e-9)
    published = epsilon_of_bound(loss.lipschitz.max())
    assert charge.epsilon_published == published
    assert charge.epsilon == max(published, epsilon_of_range(loss.change))
    for accounting, due in (
        ("range", epsilon_of_range(max(loss.ranges.max(), loss.change))),
        ("gaussian", epsilon_of_mu(loss.mu, 1e-6)),
    ):
        path = Reweighted(start=release.fit, fit=release.fit)
        own = session.by_unit(mechanism.unit)
        other = replace(mechanism, accounting=accounting).charge(own, path, loss, 1, 1)
        assert (other.accounting, other.delta > 0) == (accounting, accounting == "gaussian")
        assert other.epsilon == pytest.approx(due, abs=0.0101)
        assert other.epsilon == charge.epsilon_by(accounting, delta=1e-6)
        assert other.epsilon_published == published


@pytest.mark.filterwarnings("ignore:re-weighting found no weights")
@pytest.mark.parametrize("name", ["LipschitzWeighted", "LW re-weighted", "Truncated"])
def test_a_refit_is_the_mechanism_without_the_record(name: str, session: FitSession) -> None:
    mechanism = MECHANISMS[name]
    path = mechanism.fit(session)
    (first, *_) = mechanism.loss(session, path, 4).refits
    other = session.without(first.record, session.unweighted().draws.warm_start())
    again = mechanism.fit(other, like=path).fit
    assert again.alpha[first.record] == 0
    change = path.fit.alpha - again.alpha
    both = [log_lik_of(fit.draws) @ change for fit in (path.fit, again)]
    assert first.loss == pytest.approx(refit_of(*both, delta=mechanism.delta).loss, rel=1e-9)


RISKS = {
    "size": lambda log_lik: np.abs(log_lik).max(axis=0),
    "range": lambda log_lik: np.ptp(log_lik, axis=0),
    "deviation": lambda log_lik: log_lik.std(axis=0, ddof=1),
}


@pytest.mark.parametrize("risk", RISKS)
def test_lipschitz_weights_are_the_map_of_unweighted_draws(risk: str, session: FitSession) -> None:
    own: dict[str, Any] = {"scale": 0.8, "shift": -0.05}
    alpha = {name: ph.LipschitzWeighted(MODEL, risk=name, **own).weights(session) for name in RISKS}
    log_lik = log_lik_of(session.unweighted().draws)
    f = RISKS[risk](log_lik)
    expected = (0.8 * (1 - (f - f.min()) / (f.max() - f.min())) - 0.05).clip(0, 1)
    for weights in (expected, ph.lipschitz_weights(log_lik, risk=risk, **own)):
        np.testing.assert_allclose(alpha[risk], weights, rtol=1e-9, atol=1e-12)
    assert alpha[risk][0] == 0
    other = "size" if risk != "size" else "range"
    assert np.abs(alpha[other] - alpha[risk]).max() > 0.01, "the control: by another risk"


@pytest.mark.parametrize("weights_over", ["kept", "all"])
def test_both_readings_of_the_printed_thresh(weights_over: str, session: FitSession) -> None:
    """The bound is a quantile in both; the script's weights are over all draws."""
    mechanism = ph.LipschitzWeighted(MODEL, draw_quantile=0.9, weights_over=weights_over)
    log_lik = log_lik_of(session.unweighted().draws)
    kept = session.unweighted(draw_quantile=0.9).bounds.kept_draws
    expected = ph.lipschitz_weights(log_lik[kept] if weights_over == "kept" else log_lik)
    np.testing.assert_allclose(mechanism.weights(session), expected, rtol=1e-9, atol=1e-12)
    assert mechanism.fit(session).fit.bounds.kept_draws.mean() == pytest.approx(0.9, abs=1e-3)
    assert np.abs(ph.lipschitz_weights(log_lik[kept]) - ph.lipschitz_weights(log_lik)).max() > 1e-3


@pytest.mark.parametrize("unit", [None, "person"])
def test_weights_without_a_unit_are_those_of_the_others(unit: Any, session: FitSession) -> None:
    """By the table that lacks it, whose coding is the same; controls with the unit differ."""
    own, start = session.by_unit(unit), session.unweighted().draws.warm_start()
    of = counts().index.to_numpy() if unit is None else counts()[unit].to_numpy()
    other, gone = own.without(0 if unit is None else int(own.units.of[0]), start), of == of[0]
    np.testing.assert_array_equal(other.present, ~gone)
    assert other.n_units == len(set(of)) - 1
    rest = open_session(MODEL.bind(counts()[~gone]), **OPTIONS)
    counted = ph.CountWeighted(MODEL, unit=unit)
    of_rest = counted.weights(rest.by_unit(unit))
    np.testing.assert_array_equal(counted.weights(other)[~gone], of_rest)
    terms = pd.DataFrame(log_lik_of(other.unweighted().draws).T[~gone])
    risk = terms.groupby(of[~gone], sort=False).sum().abs().max(axis=1)
    expected = pd.Series(ph.arrays.weights_from_lipschitz(risk.to_numpy()), index=risk.index)
    weighted = ph.LipschitzWeighted(MODEL, unit=unit)
    found = weighted.weights(other)
    np.testing.assert_allclose(found[~gone], expected[of[~gone]], rtol=1e-9, atol=1e-12)
    assert not found[gone].any()
    assert np.abs(weighted.weights(own) - found)[~gone].max() > (0.1 if unit is None else 5e-3)
    means = [np.exp(each.unweighted().draws.flat("beta").mean()) for each in (other, rest)]
    assert means[0] == pytest.approx(means[1], abs=0.05)


def test_weights_of_the_same_data_cost_more_than_weights_held(session: FitSession) -> None:
    """The control is the same weights handed in: what they tell by themselves goes uncharged."""
    moving = released(session, ph.LipschitzWeighted(MODEL, accounting="gaussian"))
    same = ph.GivenWeights(MODEL, alpha=moving.confidential.alpha, accounting="gaussian")
    held = released(session, same)
    assert moving.charge.epsilon_published == held.charge.epsilon_published
    assert moving.charge.epsilon > 2 * held.charge.epsilon
    fixed = released(session, ph.LipschitzWeighted(MODEL), refits=0)
    assert fixed.charge.epsilon == fixed.charge.epsilon_published
    assert "As published: the weights are taken as fixed" in fixed.statement
    assert "As published: the weights are taken as fixed" not in moving.statement
    assert "computed anew, weights too, without each of 2 records" in moving.statement


def test_delta_must_be_below_one_over_the_units_before_anything_is_fitted() -> None:
    fresh, own = open_session(MODEL.bind(counts()), **OPTIONS), {"accounting": "gaussian"}
    units = counts()["person"].nunique()
    for mechanism in (
        ph.Unweighted(MODEL, delta=1 / 300, **own),
        ph.Unweighted(MODEL, unit="person", delta=1 / units, **own),
    ):
        refuses("delta must be below 1 / n", released, fresh, mechanism)
    assert fresh.n_fits == 0
    for wrong in (0, 1, -1e-6, float("nan")):
        refuses("delta", ph.Unweighted, MODEL, delta=wrong)
    refuses("accounting", ph.Unweighted, MODEL, accounting="moments")
    refuses("needs all draws", ph.Unweighted, MODEL, draw_quantile=0.9, **own)


LONELY = pd.DataFrame({
    "y": np.random.default_rng(2).poisson(3, 40), "x": np.linspace(0, 1, 40),
    "g": ["only"] + ["a", "b", "b"] * 13,
})  # fmt: skip


def test_a_record_that_alone_informs_a_coefficient_is_refused_before_any_fit() -> None:
    model = ph.Poisson("y ~ x + g")
    fresh = open_session(model.bind(LONELY), **OPTIONS)
    for mechanism in (ph.Unweighted(model), ph.LipschitzWeighted(model)):
        said = refuses("record 0 nearly alone informs a coefficient", released, fresh, mechanism)
        assert "'g'" in said
        assert "only" not in said.replace("record 0", "")
    assert fresh.n_fits == 0
    release = released(fresh, ph.Unweighted(model), refits=0)
    assert "1 record nearly alone informs a coefficient" in release.statement
    merged = LONELY.assign(g=LONELY["g"].replace("only", "a"))
    ph.Unweighted(model).refuse(open_session(model.bind(merged), **OPTIONS), 10)


def test_numbers_of_refits_are_even() -> None:
    for made in (ph.Unweighted.release, ph.Unweighted.release_from, ph.mechanisms.meet_epsilon):
        assert inspect.signature(made).parameters["refits"].default == 10
    fresh = open_session(MODEL.bind(counts()), **OPTIONS)
    refuses("refits must be even", released, fresh, ph.Unweighted(MODEL), refits=3)
    refuses("refits must be", released, fresh, ph.Unweighted(MODEL), refits=-2)


def test_a_refit_that_is_impossible_releases_nothing() -> None:
    """Of four records one has weight 1: without it nothing is left to learn from."""
    table = pd.DataFrame({"y": [3, 4, 5, 6]})
    mechanism = ph.GivenWeights(MODEL, alpha=[0.0, 0.0, 0.0, 1.0])
    said = "a refit without record 3 must be possible"
    fails(SamplingError, said, mechanism.release, table, **OPTIONS)


def test_a_ball_about_a_level_is_the_level_itself() -> None:
    """Not its neighbors among the codes, whatever the radius says."""
    levels = [f"l{k}" for k in range(8)]
    table = pd.DataFrame({"y": np.repeat(levels, [1, 2, 3, 4, 5, 6, 7, 8])})
    mechanism = ph.CountWeighted(ph.Categorical("y ~ 1", levels=levels))
    weights = mechanism.weights(open_session(mechanism.bind(table), seed=1))
    held = table["y"].map(table["y"].value_counts()).to_numpy()
    np.testing.assert_allclose(weights, held / len(table), rtol=1e-12)
