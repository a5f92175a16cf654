"""Ledgers of Gaussian charges: squares add, at one delta; statements and public files say so."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.primitives import LaplaceAnswer
from pyhybrid.privacy.charge import Gaussian, Lipschitz, PrivacyCharge, Range
from pyhybrid.privacy.composition import compose
from pyhybrid.privacy.conversions import delta_of_mu, epsilon_of_mu
from tests.fits import fit_options
from tests.refusals import fails, refuses

TERMS: dict[str, Any] = {"kind": "asymptotic local", "relation": "remove"}


def charge(
    mu: float = 0.2, delta: float = 1e-6, accounting: str = "gaussian", **fields: Any
) -> PrivacyCharge:
    """A local charge counted by the Gaussian limit, or as `accounting` says."""
    own: dict[str, Any] = {
        "mechanism": "Unweighted", "kind": "asymptotic local",
        "relation": "remove", "n_synthetic": 1, "n_draws_released": 1, "bound": 20.0,
        "n_draws": 4000, "accounting": accounting,
        "delta": delta if accounting == "gaussian" else 0.0,
        "accounts": {"lipschitz": Lipschitz(bound=20.0), "range": Range(loss_range=1.5),
                     "gaussian": Gaussian(mu=mu)},
    }  # fmt: skip
    return PrivacyCharge(**{**own, **fields})


def answer(of: PrivacyCharge) -> LaplaceAnswer:
    """Something released with this charge: the ledger asks no more of it."""
    return LaplaceAnswer(charge=of, value=np.array([3]), sensitivity=1.0, scale=1e6)


@pytest.fixture
def ledger(tmp_path: Path) -> ph.Ledger:
    return ph.Ledger(tmp_path / "l", budget=5, **TERMS)


def test_twenty_releases_cost_the_root_of_their_squares(ledger: ph.Ledger) -> None:
    """Controls: sums of epsilon are above 16; the last mu alone says too little."""
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
    assert delta_of_mu(0.2 * 20**0.5, one) > 1e-3, "the control: it says too little"


def test_another_delta_is_refused(ledger: ph.Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be counted at its delta, 1e-06: found 1e-08"):
        ledger.add(answer(charge(delta=1e-8)))
    other = ph.Ledger(tmp_path / "other", budget=5, delta=1e-8, **TERMS)
    other.add(answer(charge(delta=1e-8)))
    refuses("has delta 1e-08, fixed when it was created", ph.Ledger, tmp_path / "other", delta=1e-6)
    refuses("at one delta: found 1e-08, 1e-06", compose, [charge(), charge(delta=1e-8)])


def test_statement_and_public_charge(tmp_path: Path) -> None:
    """All three numbers in words; range and bound stay with the owner."""
    df = pd.DataFrame({"y": np.random.default_rng(2).poisson(20, 300)})
    few = fit_options(chains=4, warmup=300, draws=400, refits=0)
    mechanism = ph.Unweighted(ph.Poisson("y ~ 1"), accounting="gaussian")
    release = mechanism.release(df, n_synthetic=2, seed=4, **few)
    of, text = release.charge, release.statement
    for said in (
        f"**epsilon = {of.epsilon:g} at delta = 1e-06** for 2 synthetic data sets",
        "by at most delta = 1e-06", "The guarantee is per instance", "local and asymptotic",
        f"{of.epsilon_range:g} by the range of what changes when a record leaves",
        f"the weights taken as fixed, epsilon would be {of.epsilon_published:g}",
        "mu grows with the square root of their number",
    ):  # fmt: skip
        assert said in text, said
    release.save(tmp_path / "out", keep=list(release.exposed))
    public = json.loads((tmp_path / "out/public/charge.json").read_text())
    assert not {"bound", "loss_range"} & set(public)
    assert (public["mu"], public["delta"]) == (of.mu, 1e-6)
    assert ph.Release.load(tmp_path / "out").charge == of


def strict_answer() -> LaplaceAnswer:
    """One draw of a censored posterior of M = 0.25, and no more of it."""
    return answer(
        PrivacyCharge.strict(
            mechanism="Censored", epsilon=0.5, loss_range=0.5, relation="remove", cap=0.25
        )
    )


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
