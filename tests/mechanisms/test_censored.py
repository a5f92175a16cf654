"""Censored releases and frozen calibrations: strict by construction, audited by enumeration."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import NotConverged
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate
from pyhybrid.mechanisms.censored.censored import chains_elsewhere, look_for_modes
from tests.fits import session_fixture
from tests.monte_carlo import assert_near
from tests.refusals import fails, refuses

pytestmark = pytest.mark.samples
MODEL = ph.Beta("y ~ 1", decimals=6)
OPTIONS: dict[str, Any] = {"engine": "embedded", "seed": 1}
FROZEN: dict[str, Any] = {"epsilon": 4, "holds_no_released_record": True, **OPTIONS}


def outcomes(seed: int, n: int = 400) -> pd.DataFrame:
    return pd.DataFrame({"y": np.random.default_rng(seed).beta(0.5, 3, n)})


session = session_fixture(lambda: MODEL.bind(outcomes(1)), **OPTIONS)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate(MODEL, outcomes(2), n_draws=200, center=False, **FROZEN)


def test_the_cap_holds_in_every_draw(session: FitSession) -> None:
    fit = ph.Censored(MODEL, epsilon=4, check_modes=False).fit(session).fit
    log_lik = np.concatenate(list(session.bound.log_lik_blocks(fit.draws)), axis=1)
    weighted = np.abs(fit.alpha * log_lik[:, session.bound.row_of]).max(axis=0)
    assert (fit.cap.below, fit.cap.above, fit.cap.reference) == (2, 2, None)
    assert fit.bounds.overall <= 2
    assert fit.censored is not None
    np.testing.assert_array_equal(fit.censored, weighted > 2)
    np.testing.assert_allclose(fit.bounds.by_record, np.minimum(weighted, 2))


def test_a_high_cap_changes_nothing(session: FitSession) -> None:
    plain = ph.LipschitzWeighted(MODEL).fit(session).fit
    capped = ph.Censored(MODEL, cap=1e6, check_modes=False).fit(session).fit
    assert not capped.censored.any()
    assert_near(capped.draws.variables["phi"], plain.draws.variables["phi"])


def test_chains_elsewhere_are_found(session: FitSession) -> None:
    fit = ph.Censored(MODEL, epsilon=4, check_modes=False).fit(session).fit
    assert look_for_modes(session, fit).tolist() == [False] * 8
    # A fit that sits in the wrong place sees them all elsewhere.
    moved = {name: v + 50 * v.std() for name, v in fit.draws.variables.items()}
    lost = replace(fit, draws=replace(fit.draws, variables=moved))
    assert look_for_modes(session, lost).all()


def test_one_draw_far_out_is_no_other_mode() -> None:
    """A 1 / phi near 0 makes phi heavy-tailed: a mean says little. Control: chains apart."""
    rng = np.random.default_rng(3)
    here, there = 1 / rng.gamma(1.0, 1.0, (4, 500)), 1 / rng.gamma(1.0, 1.0, (3, 50))
    there[1, 7] = here.max() * 1e4
    there[2] = here.max() * 10 + 50 * here.std()
    assert chains_elsewhere({"phi": here}, {"phi": there}).tolist() == [False, False, True]


def test_weights_are_functions_of_single_records(calibration: Calibration) -> None:
    whole, other = outcomes(3), outcomes(4)
    alpha = calibration.weights(MODEL.bind(whole))
    mixed = pd.concat([whole.iloc[[7, 8]], other], ignore_index=True)
    np.testing.assert_array_equal(calibration.weights(MODEL.bind(mixed))[:2], alpha[7:9])
    # In-sample weights are not: the negative control.
    sessions = (open_session(MODEL.bind(table), **OPTIONS) for table in (whole, mixed))
    in_sample = [ph.LipschitzWeighted(MODEL).weights(own) for own in sessions]
    assert (in_sample[1][:2] != in_sample[0][7:9]).any()


def frozen_f(calibration: Calibration, y: np.ndarray) -> np.ndarray:
    """f_i = max_s |log Beta(y_i | phi_s, lambda_s)| under the frozen draws, by scipy."""
    phi, total = (calibration.draws.flat(name)[:, None] for name in ("phi", "lambda"))
    return np.abs(stats.beta.logpdf(y, phi * total, (1 - phi) * total)).max(axis=0)


def test_calibrated_weights_are_the_map_at_frozen_extremes(calibration: Calibration) -> None:
    reference = frozen_f(calibration, outcomes(2)["y"].to_numpy())
    assert calibration.lowest == pytest.approx(reference.min(), rel=1e-9)
    assert calibration.highest == pytest.approx(reference.max(), rel=1e-9)
    y = np.concatenate([outcomes(3)["y"], [1e-9, 1 - 1e-9]])  # two beyond all of the reference
    bound = MODEL.bind(pd.DataFrame({"y": y}))
    f = frozen_f(calibration, y)
    r = np.clip((f - reference.min()) / (reference.max() - reference.min()), 0, 1)
    for scale, shift in ((1.0, 0.0), (0.7, -0.1), (1.5, 0.2)):
        own = replace(calibration, scale=scale, shift=shift)
        expected = np.clip(scale * (1 - r) + shift, 0, 1)
        np.testing.assert_allclose(own.weights(bound), expected, rtol=1e-8, atol=1e-12)
        found = own.drift(bound)
        assert found.censored_now == np.mean(expected * f > own.cap)
        assert found.share_outside == np.mean((f < own.lowest) | (f > own.highest))
    assert calibration.weights(bound)[-2:].tolist() == [0.0, 0.0]
    assert calibration.censored == np.mean(
        (1 - (reference - reference.min()) / np.ptp(reference)) * reference > calibration.cap
    )


def test_what_calibrate_keeps_of_a_fit() -> None:
    made = calibrate(MODEL, outcomes(1), center=False, **FROZEN)
    assert (made.scale, made.shift, made.draws.n_draws) == (1.0, 0.0, 1000)
    assert made.draws.divergent.mean() < 0.01
    every = open_session(MODEL.bind(outcomes(1)), **OPTIONS).unweighted().draws.flat("phi")
    kept = made.draws.flat("phi")
    assert (kept[0], kept[-1]) == (every[0], every[-1]), "evenly spaced, from end to end"
    assert len(np.unique(kept)) == 1000


def test_calibrations_need_record_wise_coding() -> None:
    table = outcomes(1).assign(x=lambda t: np.arange(len(t)) % 7, g=lambda t: t.index % 3)
    poly = ph.BetaRegression("y ~ poly(x, 2)")
    refuses("depends on all records", calibrate, poly, table, **FROZEN)
    model = ph.BetaRegression("y ~ g")
    named = table.head(60).assign(g=lambda t: t["g"].map({0: "a", 1: "b", 2: "c"}))
    made = calibrate(model, named, n_draws=50, **FROZEN)
    assert made.levels == {"g": ["a", "b", "c"]}
    few = model.bind(named[named["g"] != "c"])
    refuses("must have the levels of the calibration", made.weights, few)


def test_reweighted_weights_of_one_are_not_record_indexed() -> None:
    plan = ph.mechanisms.Reweighting(k=0.6, tolerance=5.0, max_refits=1)
    assert ph.Censored(MODEL, cap=2, inner=ph.Unweighted(MODEL)).record_indexed
    raised = ph.Unweighted(MODEL, reweighting=plan)
    assert not ph.Censored(MODEL, cap=2, inner=raised).record_indexed


@pytest.mark.parametrize(("term", "kind"), [
    ("x", "strict"), ("log(x + 1)", "strict"), ("I(x**2)", "strict"),
    ("scale(x)", "asymptotic local"), ("scale(x, center=4, scale=2)", "strict"),
    ("ns(x, 3)", "asymptotic local"), ("poly(x, 2)", "asymptotic local"),
])  # fmt: skip
def test_predictors_that_look_at_all_records_are_not_strict(term: str, kind: str) -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"y": rng.poisson(4, 60), "x": rng.integers(1, 9, 60)})
    model = ph.Poisson(f"y ~ {term}")
    assert (model.bind(table).data_dependent == ()) == (kind == "strict")
    if term in ("x", "scale(x)"):
        inner = ph.Unweighted(model)
        mechanism = ph.Censored(model, epsilon=9, inner=inner, check_modes=False)
        assert mechanism.release(table, **OPTIONS).charge.kind == kind
    if kind != "strict":
        refuses("depends on all records", calibrate, model, table, **FROZEN)


def test_another_coding_of_predictors_is_refused() -> None:
    model = ph.Poisson("y ~ C(g)")
    table = pd.DataFrame({"y": [1, 2, 3, 4, 0, 2] * 6, "g": [1, 2, 3] * 12})
    made = calibrate(model, table, n_draws=50, **FROZEN)
    refuses("coded as in the calibration", made.weights, model.bind(table.assign(g=table["g"] + 1)))


def test_chains_in_another_mode_have_not_converged(session: FitSession, monkeypatch: Any) -> None:
    where = "pyhybrid.mechanisms.censored.censored.look_for_modes"
    monkeypatch.setattr(where, lambda *_: np.arange(8) == 1)
    mechanism = ph.Censored(MODEL, epsilon=4)
    fails(NotConverged, "1 of 8 chains from dispersed starts", mechanism.fit, session)
    with pytest.warns(UserWarning, match="ended in another mode"):
        fit = mechanism.fit(replace(session, on_not_converged="warn")).fit
    assert (fit.diagnostics.n_elsewhere, fit.converged) == (1, False)


@pytest.mark.samples
@pytest.mark.parametrize("seed", range(3))
def test_a_cap_that_leaves_a_flat_posterior_is_refused_by_a_probe(seed: int) -> None:
    """Seen: minutes, without a result. Clipped higher, the same model is fitted."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, 200)
    table = pd.DataFrame({"visits": rng.poisson(np.exp(0.4 + 0.015 * age)), "age": age})
    model = ph.Poisson("visits ~ age")
    session = open_session(model.bind(table), seed=seed, engine="embedded")
    low, high = (ph.Censored(model, cap=cap, inner=ph.Unweighted(model)) for cap in (1, 6))
    fails(NotConverged, "would not converge: clipped at 1 nats", low.fit, session)
    assert session.n_fits == 0
    assert high.fit(session).fit.converged


@pytest.mark.parametrize(("make", "message"), [
    (lambda c: ph.Censored(MODEL, epsilon=4, inner=ph.Unweighted(ph.Beta("y ~ 1", upper=2))),
     "inner must be a mechanism over the same model"),
    (lambda c: ph.Censored(MODEL, cap=0), "cap must be above 0"),
    (lambda c: ph.Censored(MODEL, cap=1, reweighting=True), "re-weight the inner"),
    (lambda c: ph.Censored(MODEL, cap=1, draw_quantile=0.9), "draw_quantile at 1"),
    (lambda c: ph.Censored(calibration=c, cap=1), "holds weights and cap"),
    (lambda c: ph.Censored(ph.Poisson("y ~ 1"), calibration=c), "for this model"),
    (lambda c: ph.Censored(calibration=c, relation="replace"), "for this model and relation"),
    (lambda c: ph.Censored(epsilon=1), "must be a pyhybrid model"),
    (lambda c: calibrate(MODEL, outcomes(1), epsilon=-1), "epsilon must be above 0"),
])  # fmt: skip
def test_bad_arguments_are_named(make: Any, message: str, calibration: Calibration) -> None:
    refuses(message, make, calibration)
