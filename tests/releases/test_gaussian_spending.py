"""Ledgers of Gaussian charges: squares add, at one delta; statements and public files say so."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.primitives import NoisyCounts
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose
from pyhybrid.privacy.conversions import delta_of_mu, epsilon_of_mu
from tests.fits import fit_options
from tests.refusals import fails, refuses

TERMS: dict[str, Any] = {"kind": "asymptotic local", "relation": "remove"}


def charge(mu: float = 0.2, delta: float = 1e-6, **fields: Any) -> PrivacyCharge:
    """A local charge counted by the Gaussian limit, or as `fields` say."""
    own: dict[str, Any] = {
        "mechanism": "Unweighted", "kind": "asymptotic local",
        "relation": "remove", "n_synthetic": 1, "n_draws_released": 1, "bound": 20.0,
        "n_draws": 4000, "accounting": "gaussian", "delta": delta, "loss_range": 1.5, "mu": mu,
        "mu_standard_error": 0.001,
    }  # fmt: skip
    return PrivacyCharge.counted(**{**own, **fields})


def answer(of: PrivacyCharge) -> NoisyCounts:
    """Something released with this charge: the ledger asks no more of it."""
    return NoisyCounts(charge=of, value=np.array([3]), sensitivity=1.0, scale=1e6)


@pytest.fixture
def ledger(tmp_path: Path) -> ph.Ledger:
    return ph.Ledger(tmp_path / "l", budget=5, **TERMS)


def test_twenty_releases_cost_the_root_of_their_squares(
    ledger: ph.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Controls: sums of epsilon are above 16; a ledger of the last mu is caught by its deltas."""
    for _ in range(20):
        ledger.add(answer(charge()))
    due = epsilon_of_mu(0.2 * 20**0.5, 1e-6)
    assert due <= ledger.spent < due + 0.0101
    one = charge().epsilon
    assert ledger.spent < 0.3 * 20 * one
    assert delta_of_mu(0.2 * 20**0.5, ledger.spent) <= 1e-6
    assert ledger.label == "asymptotic local at delta = 1e-06, remove one record"
    assert compose([charge()] * 20) == ledger.spent
    fails(BudgetExceeded, "", ledger.add, answer(charge(mu=0.8)))
    monkeypatch.setattr(
        "pyhybrid.releases.ledger.spent",
        lambda gaussian, plain, delta: epsilon_of_mu(gaussian[-1][0], delta),
    )
    assert delta_of_mu(0.2 * 20**0.5, ledger.spent) > 1e-3, "the control: it says too little"


def test_other_accountings_add_to_what_the_squares_cost(ledger: ph.Ledger) -> None:
    ledger.add(answer(charge()))
    gaussian = ledger.spent
    ledger.add(answer(charge(accounting="range", delta=0.0)))
    assert ledger.spent == pytest.approx(gaussian + 1.5)
    assert compose([charge(), charge(accounting="range", delta=0.0)]) == ledger.spent


def test_records_whose_limit_fails_pay_in_every_sum(ledger: ph.Ledger) -> None:
    """In one release the larger of both counts; a record that fails in one may not in the next."""
    failing = charge(range_failing=0.9)
    assert failing.epsilon == max(charge().epsilon, failing.epsilon_failing) == 0.9
    assert failing.public()["epsilon_failing"] == 0.9
    assert "range_failing" not in failing.public()
    ledger.add(answer(failing))
    assert ledger.spent == 0.9
    ledger.add(answer(charge()))
    assert ledger.spent == pytest.approx(compose([charge(), charge()]) + 0.9, abs=1e-9)
    assert compose([failing, charge()]) == ledger.spent
    assert charge(range_failing=0.1).epsilon == charge().epsilon


def test_another_delta_is_refused(ledger: ph.Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be counted at its delta, 1e-06: found 1e-08"):
        ledger.add(answer(charge(delta=1e-8)))
    other = ph.Ledger(tmp_path / "other", budget=5, delta=1e-8, **TERMS)
    other.add(answer(charge(delta=1e-8)))
    refuses("has delta 1e-08, fixed when it was created", ph.Ledger, tmp_path / "other", delta=1e-6)
    refuses("at one delta: found 1e-08, 1e-06", compose, [charge(), charge(delta=1e-8)])


def test_strict_ledgers_take_no_local_charge(tmp_path: Path) -> None:
    strict = ph.Ledger(tmp_path / "s", budget=5, kind="strict", relation="remove")
    assert strict.delta is None
    at_delta = ph.Ledger(tmp_path / "t", budget=5, kind="strict", relation="remove", delta=1e-6)
    for ledger in (strict, at_delta):
        refuses("found asymptotic local", ledger.add, answer(charge()))


def test_a_ledger_of_an_earlier_version_has_no_delta_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyhybrid.releases import ledger as module

    monkeypatch.setattr(module, "_DELTA", None)
    ph.Ledger(tmp_path / "old", budget=50, **TERMS)
    monkeypatch.undo()
    old = ph.Ledger(tmp_path / "old")
    assert old.delta is None
    old.add(answer(charge(accounting="lipschitz", delta=0.0)))
    assert old.spent == 40.0
    refuses("accounting='range' where the ledger has none", old.add, answer(charge()))


@pytest.mark.parametrize("field", ["mu", "loss_range", "mu_standard_error"])
@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan"), "0.2"])
def test_accounts_are_finite_numbers(field: str, value: Any) -> None:
    refuses(field, PrivacyCharge.from_dict, {**charge().as_dict(), field: value})


def test_charges_round_trip_and_those_of_earlier_versions_are_stored_as_they_were() -> None:
    for each in (charge(), charge(accounting="range", delta=0.0)):
        assert PrivacyCharge.from_dict(json.loads(json.dumps(each.as_dict()))) == each
    plain = charge(accounting="lipschitz", delta=0.0, mu=None, loss_range=None,
                   mu_standard_error=None)  # fmt: skip
    assert not {"accounting", "delta", "mu", "loss_range"} & set(plain.as_dict())
    assert PrivacyCharge.from_dict(plain.as_dict()) == plain


def test_statement_and_public_charge(tmp_path: Path) -> None:
    """All three numbers in words; range and bound stay with the owner."""
    df = pd.DataFrame({"y": np.random.default_rng(2).poisson(20, 300)})
    few = fit_options(chains=4, warmup=300, draws=400, leave_one_out=0)
    release = ph.Unweighted(ph.Poisson("y ~ 1")).release(df, n_synthetic=2, seed=4, **few)
    of, text = release.charge, release.statement
    assert of.accounting == "gaussian"
    for said in (
        f"**epsilon = {of.epsilon:g} at delta = 1e-06** for 2 synthetic data sets",
        "the probability of any set of outcomes differs by a factor of at most exp(epsilon) and, "
        "beyond that, by at most delta = 1e-06",
        "The guarantee is per instance: it covers the records in these data",
        "local and asymptotic",
        f"without a delta: {of.epsilon_range:g} by the range",
        "Where one is smaller than epsilon, it is no guarantee",
        f"{of.epsilon_lipschitz:g} by the Lipschitz bound of the papers",
        "mu grows with the square root of their number",
    ):
        assert said in text, said
    release.save(tmp_path / "out", keep=list(release.exposed))
    public = json.loads((tmp_path / "out/public/charge.json").read_text())
    assert not {"bound", "loss_range"} & set(public)
    assert (public["mu"], public["delta"]) == (of.mu, 1e-6)
    assert public["epsilon_range"] == of.epsilon_range
    loaded = ph.Release.load(tmp_path / "out")
    assert loaded.charge == of


def strict_answer() -> NoisyCounts:
    """One draw of a censored posterior of M = 0.25, and no more of it."""
    own = charge(
        kind="strict", mechanism="Censored", cap=0.25, bound=0.25, density_above_one=True,
        accounting="lipschitz", delta=0.0, loss_range=None, mu=None, mu_standard_error=None,
    )  # fmt: skip
    return answer(own)


def test_a_strict_ledger_with_a_delta_adds_rho_where_that_is_less(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"budget": 7, "kind": "strict", "relation": "remove"}
    at_delta = ph.Ledger(tmp_path / "a", delta=1e-6, **terms)
    pure = ph.Ledger(tmp_path / "b", **terms)
    spent = []
    for _ in range(20):
        at_delta.add(strict_answer())
        spent.append(at_delta.spent)
    assert spent[:2] == [0.5, 1.0]
    assert spent[-1] == compose([strict_answer().charge] * 20, delta=1e-6) < 6.6
    assert at_delta.label == "strict at delta = 1e-06, remove one record"
    assert ph.Ledger(tmp_path / "a").spent == spent[-1]
    for _ in range(14):
        pure.add(strict_answer())
    fails(BudgetExceeded, "", pure.add, strict_answer())
    for _ in range(2):
        at_delta.add(strict_answer())
    assert 6.8 < at_delta.spent <= 7
    fails(BudgetExceeded, "", at_delta.add, strict_answer())
