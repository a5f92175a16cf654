"""Refits without the records that most is told about: against the exact posterior, and shown."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import brentq

import pyhybrid as ph
from pyhybrid.fitting.session import FitSession
from pyhybrid.privacy.leave_one_out import with_refits
from pyhybrid.reports.release import release_report
from tests.conftest import Run
from tests.fits import session_fixture
from tests.mechanisms.test_accounting import MODEL, OPTIONS, counts
from tests.refusals import refuses

pytestmark = pytest.mark.samples
session = session_fixture(lambda: MODEL.bind(counts()), **OPTIONS)


def released(session: FitSession, mechanism: Any, k: int | None = None) -> ph.Release:
    return mechanism.release_from(  # type: ignore[no-any-return]
        session, n_synthetic=1, n_draws_released=1, leave_one_out=k
    )


def test_refits_agree_with_what_was_said_before(session: FitSession) -> None:
    """The record with the largest count moves the posterior as far as mu says, and no farther than
    its range; the mean of the loss without it is its known normal distance."""
    release = released(session, ph.Unweighted(MODEL), 2)
    refits = release.confidential.refits
    first = refits.each[0]
    y = counts()["y"].to_numpy()
    assert (y[first.record], len(refits.each)) == (y.max(), 2)
    exact = (y.max() - y.mean()) / np.sqrt(y.sum())  # the normal limit, a flat prior
    for found, error in (
        (first.loss.mu, first.loss.standard_error),
        (first.loss.mu_without, first.loss.standard_error_without),
    ):
        assert found == pytest.approx(exact, abs=5 * error + 0.05 * exact)
    assert first.loss.moved == pytest.approx(exact, rel=0.35)  # its error is that of two means
    assert first.loss.largest <= first.loss_range * 1.5


def test_the_larger_number_is_charged(session: FitSession) -> None:
    plain = released(session, ph.Unweighted(MODEL), 0)
    checked = released(session, ph.Unweighted(MODEL), 1)
    refits, before = checked.confidential.refits, plain.confidential.account
    assert plain.confidential.refits is None
    assert refits.each[0].mu == before.mu
    account = with_refits(before, refits)
    assert checked.charge.mu == account.mu >= before.mu
    assert checked.charge.loss_range == account.loss_range >= before.loss_range
    assert account.mu_by_record[refits.each[0].record] == max(before.mu, refits.each[0].mu_upper)
    said = "also fitted without the record of largest risk"
    assert said in checked.statement
    assert said not in plain.statement


def test_refits_are_charged_unasked_where_weights_depend_on_few_records(
    session: FitSession,
) -> None:
    """Weights made anew without the record; asked for none, the charge rests on one posterior."""
    mechanism = ph.LipschitzWeighted(MODEL, transform="logistic")
    release = released(session, mechanism)
    refits, account = release.confidential.refits, release.confidential.account
    assert len(refits.each) in (2, 3, 4), "two, the costliest, the one that moves the draws most"
    assert refits.failed == 0
    for refit in refits.each:
        assert account.mu_by_record[refit.record] >= refit.mu_upper
    none = released(session, mechanism, 0)
    assert none.confidential.refits is None
    assert release.charge.epsilon >= none.charge.epsilon
    assert "fitted without each of the " in release.statement
    assert "Refits without single records" in release_report(release, counts())
    plain = released(session, ph.Unweighted(MODEL)).confidential.refits
    assert plain is None, "weights that do not depend on the data"


@pytest.mark.parametrize("formula", ["y ~ g", "y ~ scale(x)"])
def test_a_record_that_alone_has_a_level_is_left_out_under_the_same_coding(formula: str) -> None:
    """Its coefficient has the prior then, far from where the record held it."""
    df = counts(60).assign(g=["b", *["a"] * 59], x=np.arange(60.0))
    release = ph.LipschitzWeighted(ph.Poisson(formula)).release(df, leave_one_out=1, **OPTIONS)
    assert "No fit could be made without " not in release.statement
    assert all(refit.converged for refit in release.confidential.refits.each)


def test_what_lies_beyond_the_draws_without_a_record_is_charged() -> None:
    """It alone informs a coefficient, N(0, 2.5^2) without it: by quadrature. By the draws a fifth
    was charged, of some seeds, as few of them show where its term falls off. Of no weights, too."""
    z = np.linspace(-9, 9, 90_001)
    eta, prior = np.log(2) + 0.6 * 2.5 * z, stats.norm.pdf(z) * (z[1] - z[0])
    term = 0.05 * (20 * eta - np.exp(eta))
    loss = np.log(prior @ np.exp(term)) - term
    exact = brentq(lambda e: prior @ -np.expm1(np.minimum(e - loss, 0)) - 1e-6, 0, 1e4)
    df = pd.DataFrame({"y": np.random.default_rng(0).poisson(2, 300), "g": 0.0})
    df.loc[299] = [20, 0.6]
    own = ph.GivenWeights(ph.Poisson("y ~ g", prior="normal"), alpha=np.r_[np.ones(299), 0.05])
    for seed in (1, 2):
        assert own.release(df, **{**OPTIONS, "seed": seed}).charge.epsilon > 0.9 * exact


def test_held_weights_are_a_control_that_is_caught(session: FitSession) -> None:
    """Charged as if weights were held, LW is below what the refit without the record shows."""
    moving = ph.LipschitzWeighted(MODEL)
    alpha = moving.weights(session)
    held = released(session, ph.GivenWeights(MODEL, alpha=alpha))
    refit = moving.leave_one_out(session, k=1).each[0]
    assert held.confidential.account.mu_by_record[refit.record] < 0.5 * refit.loss.mu_without
    assert refit.mu > 0.9 * refit.loss.mu_without, "charged as it moves, it is not"


def test_units_are_left_out_whole(session: FitSession) -> None:
    mechanism = ph.Unweighted(MODEL, unit="person")
    refit = mechanism.leave_one_out(session, k=1).each[0]
    assert refit.record < counts()["person"].nunique()
    assert refit.loss.mu == pytest.approx(refit.loss.mu_without, rel=0.25)
    html = release_report(released(session, mechanism, 1), counts())
    assert f"person number {refit.record + 1}" in html


def test_where_it_makes_no_sense(session: FitSession) -> None:
    strict = ph.Censored(MODEL, epsilon=4)
    refuses("a censored release is charged its cap", released, session, strict, 1)
    refuses("leave_one_out must be a whole num", released, session, ph.Unweighted(MODEL), -1)


def test_nothing_of_it_is_public(run: Run, tmp_path: Path) -> None:
    counts()[["y"]].to_csv(tmp_path / "data.csv", index=False)
    code, _, problem = run(
        "synthesize", "data.csv", "--formula", "y ~ 1", "--mechanism", "unweighted", "--out", "out",
        "--leave-one-out", "1", "--engine", "embedded", "--seed", "3",
    )  # fmt: skip
    assert code == 0, problem
    kept = tmp_path / "out" / "confidential"
    table = pd.read_csv(kept / "leave_one_out.csv")
    assert table["record"].tolist() == [0]
    assert "Refits without single records" in (kept / "report.html").read_text(encoding="utf-8")
    # Five digits: three of one number stand in another by chance.
    numbers = [f"{value:.5g}" for value in table[["refit_largest_loss", "refit_moved"]].iloc[0]]
    for path in (tmp_path / "out" / "public").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not any(number in text for number in [*numbers, "refit"]), path.name
    code, _, problem = run(
        "synthesize", "data.csv", "--formula", "y ~ 1", "--out", "other", "--leave-one-out", "1",
        "--mechanism", "perturbed_histogram:lower=0,upper=60,n_bins=30,epsilon=1",
    )  # fmt: skip
    assert code != 0
    assert "fits no model: give no " in problem
    assert "--leave-one-out" in problem
