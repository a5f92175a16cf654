"""What local releases are charged: three accountings, against scipy, held weights and refits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.privacy.conversions import epsilon_of_mu
from tests.fits import fit_options, session_fixture
from tests.refusals import refuses

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
    "LW softmax": ph.LipschitzWeighted(MODEL, transform="softmax"),
    "CountWeighted": ph.CountWeighted(MODEL),
    "ScalarWeighted": ph.ScalarWeighted(MODEL, target_epsilon=8),
    "Truncated": ph.Truncated(MODEL, cap=6),
    "GivenWeights": ph.GivenWeights(MODEL, alpha=np.linspace(0.2, 1, 300)),
    "LW re-weighted": ph.LipschitzWeighted(MODEL, reweighting=True),
    "Unweighted by person": ph.Unweighted(MODEL, unit="person"),
}
RECOMPUTED = {
    "LipschitzWeighted", "LW softmax", "CountWeighted", "ScalarWeighted", "Truncated",
    "LW re-weighted",
}  # fmt: skip


def released(session: FitSession, mechanism: Any, m: int = 1) -> ph.Release:
    return mechanism.release_from(session, n_synthetic=m, n_draws_released=m)  # type: ignore[no-any-return]


def terms_of(release: ph.Release) -> np.ndarray:
    """alpha_i f_i at the draws of the released fit, by scipy, (S, n)."""
    mean = np.exp(release.fit.draws.flat("beta")[:, 0])
    log_lik = stats.poisson.logpmf(counts()["y"].to_numpy(), mean[:, None])
    return np.asarray(release.confidential.alpha * log_lik)


@pytest.mark.filterwarnings("ignore:re-weighting found no weights")
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_local_charge_carries_three_accountings(name: str, session: FitSession) -> None:
    mechanism = MECHANISMS[name]
    release = released(session, mechanism)
    charge, account = release.charge, release.confidential.account
    by_mu = account.largest_of_limit > 0
    counted = ("gaussian", 1e-6) if by_mu else ("range", 0.0)
    assert (charge.accounting, charge.delta) == counted
    assert (charge.range_failing is None) == (account.limit_holds or not by_mu)
    if name in ("Unweighted", "GivenWeights"):
        assert account.limit_holds, "of 300 records that move no weight"
    assert charge.mu is not None
    gaussian = charge.epsilon_by("gaussian", delta=1e-6)
    assert gaussian is not None
    due = max(epsilon_of_mu(charge.mu, 1e-6), charge.epsilon_failing)
    assert gaussian >= due > gaussian - 0.01 - 1e-9
    assert charge.epsilon == (gaussian if by_mu else charge.epsilon_range)
    terms = terms_of(release)
    if mechanism.unit is not None:
        codes, levels = pd.factorize(counts()[mechanism.unit])
        terms = np.stack([terms[:, codes == k].sum(axis=1) for k in range(len(levels))], axis=1)
    held_range, held = np.ptp(terms, axis=0), terms.std(axis=0)
    assert (account.draws_recounted > 0) == (name in RECOMPUTED)
    if name not in RECOMPUTED:
        refits = release.confidential.refits
        held_range[[r.record for r in refits.each] if refits else []] = 0  # larger there, or equal
        largest = np.where(held_range > 0, account.loss_ranges, 0)
        np.testing.assert_allclose(largest, held_range, rtol=1e-9)
        np.testing.assert_array_less(held, account.mu_by_record + 1e-9)
        assert charge.mu < 1.5 * held.max()
    for accounting in ("range", "lipschitz"):
        other = released(session, replace(mechanism, accounting=accounting)).charge
        assert (other.accounting, other.delta) == (accounting, 0.0)
        expected = charge.epsilon_by(accounting)
        if account.limit_holds or accounting == "lipschitz":
            assert other.epsilon == expected
        else:
            assert other.epsilon <= expected, "as a fallback, losses beyond the draws are charged"  # type: ignore[operator]
        assert other.mu == account.mu


@pytest.mark.parametrize("name", ["LipschitzWeighted", "CountWeighted", "ScalarWeighted"])
def test_weights_of_the_same_data_cost_more_than_weights_held(
    name: str, session: FitSession
) -> None:
    """The control is the same weights handed in: what they tell by themselves goes uncharged."""
    moving = released(session, MECHANISMS[name])
    held = released(session, ph.GivenWeights(MODEL, alpha=moving.confidential.alpha))
    assert moving.charge.bound == held.charge.bound
    assert moving.charge.epsilon > held.charge.epsilon
    words = "how the weights change when a record leaves"
    assert words in moving.statement
    assert words not in held.statement


@pytest.mark.filterwarnings("ignore:re-weighting found no weights")
@pytest.mark.parametrize("name", ["LipschitzWeighted", "CountWeighted", "Unweighted"])
def test_every_round_of_re_weighting_is_recomputed(name: str, session: FitSession) -> None:
    """As it was, weights re-weighted more than once were charged as if they did not change."""
    release = released(session, replace(MECHANISMS[name], reweighting=True))
    path, account = release.reweighted, release.confidential.account
    moved = path.fit is not path.start
    assert account.draws_recounted == (2400 if moved or name != "Unweighted" else 0)
    assert not moved or path.rounds[0] is path.start


def test_sets_compose_by_squares_and_replacing_doubles(session: FitSession) -> None:
    one = released(session, ph.Unweighted(MODEL)).charge
    four = released(session, ph.Unweighted(MODEL), 4).charge
    replaced = released(session, ph.Unweighted(MODEL, relation="replace")).charge
    cautious = released(session, ph.Unweighted(MODEL, safety_factor=1.1)).charge
    assert one.mu == four.mu == replaced.mu == cautious.mu
    assert one.mu is not None
    for charge, factor in ((four, 2.0), (replaced, 2.0), (cautious, 1.1)):
        assert charge.mu_of_release == pytest.approx(factor * one.mu)
        due = epsilon_of_mu(factor * one.mu, 1e-6)
        assert due - 1e-9 <= charge.epsilon < due + 0.0101
    assert four.epsilon_range == pytest.approx(4 * one.loss_range, abs=0.0101)
    assert replaced.epsilon_range == pytest.approx(2 * one.loss_range, abs=0.0101)
    assert four.epsilon < 0.6 * 4 * one.epsilon, "the control: sets do not cost their sum"


def test_a_person_is_charged_for_all_rows(session: FitSession) -> None:
    person = released(session, ph.Unweighted(MODEL, unit="person"))
    row = released(session, ph.Unweighted(MODEL))
    assert person.charge.mu > row.charge.mu  # type: ignore[operator]
    assert person.confidential.account.loss_ranges.size == counts()["person"].nunique()


def test_delta_must_be_below_one_over_the_units_before_anything_is_fitted() -> None:
    fresh = open_session(MODEL.bind(counts()), **OPTIONS)
    units = counts()["person"].nunique()
    for mechanism in (
        ph.Unweighted(MODEL, delta=1 / 300),
        ph.Unweighted(MODEL, unit="person", delta=1 / units),
    ):
        refuses("delta must be below 1 / n", released, fresh, mechanism)
    assert fresh.n_fits == 0
    assert 1 / units > 1 / 300, "the control: below one over the records is not asked of persons"
    for wrong in (0, 1, -1e-6, float("nan")):
        refuses("delta", ph.Unweighted, MODEL, delta=wrong)
    refuses("accounting", ph.Unweighted, MODEL, accounting="moments")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_record_whose_limit_fails_pays_its_loss_or_more_and_the_charge_says_so(seed: int) -> None:
    table = pd.DataFrame({"y": [*np.random.default_rng(seed).poisson(2, 4), 40]})
    release = ph.Unweighted(MODEL).release(table, **{**OPTIONS, "seed": seed})
    charge, own = release.charge, release.confidential.account.loss_ranges[4]
    none_holds = charge.accounting == "range"  # of the five
    paid = charge.loss_range if none_holds else charge.range_failing
    assert charge.epsilon >= paid >= own  # type: ignore[operator]
    assert (charge.delta, charge.epsilon_failing == charge.epsilon) == (
        (0.0, False) if none_holds else (1e-6, True)
    )
    for words in ("Gaussian accounting was asked for; the check of its limit fai",
                  "The epsilon above was counted by the range"):  # fmt: skip
        assert (words in release.statement) == none_holds
    some = "which the limit does not hold are charged by their largest loss" in release.statement
    assert some == (not none_holds)


@pytest.mark.parametrize("accounting", ["gaussian", "range", "lipschitz"])
def test_censored_is_charged_its_cap_whatever_the_accounting(
    accounting: str, session: FitSession
) -> None:
    mechanism = ph.Censored(MODEL, epsilon=40, inner=ph.Unweighted(MODEL), accounting=accounting)
    release = released(session, mechanism)
    assert (release.charge.epsilon, release.charge.mu) == (40.0, None)
    assert "accounting" not in mechanism.describe()
