"""What a charge says: every sentence where it belongs, and no other; no engine is needed."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyhybrid.core.errors import SamplingError
from pyhybrid.mechanisms.accounting.charge import charge_of_censored_fit, charge_of_fit, with_bought
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT, epsilon_of_mu
from pyhybrid.privacy.diagnostics import loss_of_expansion
from pyhybrid.privacy.local_account import LocalAccount
from tests.refusals import fails, refuses

COST = {"n_synthetic": 2, "n_draws_released": 2, "relation": "remove", "safety_factor": 1.0}


def fit(overall: float = 1.5, **given: Any) -> Any:
    """A fit as far as a charge looks at it."""
    kept, quantile = np.ones(40, dtype=bool), given.pop("draw_quantile", 1.0)
    bounds = SimpleNamespace(overall=overall, kept_draws=kept, draw_quantile=quantile)
    diagnostics = SimpleNamespace(
        converged=given.pop("converged", True), problems=("R-hat 1.5",),
        n_elsewhere=given.pop("n_elsewhere", None),
    )  # fmt: skip
    cap = given.pop("cap", None)
    return SimpleNamespace(
        bounds=bounds, diagnostics=diagnostics,
        cap=None if cap is None else Cap.of(cap),
        converged=diagnostics.converged, n_elsewhere=diagnostics.n_elsewhere or 0, exact=None,
        alpha=np.linspace(0, 1, 100), fixed_draws=given.pop("fixed_draws", False),
    )  # fmt: skip


def account(**given: Any) -> LocalAccount:
    """Of 100 records; each field as given."""
    own: dict[str, Any] = {
        "loss_ranges": np.full(100, 0.7), "mu_by_record": np.full(100, 0.1), "loss_range": 0.7,
        "mu": 0.1, "mu_standard_error": 0.001, "limit_holds": True, "n_draws": 40,
    }  # fmt: skip
    return LocalAccount(**{**own, **given})


def bound(**given: Any) -> Any:
    """A bound model likewise."""
    own = {
        "synthesized": ("visits",), "data_dependent": (), "assumptions": ("The model's own word.",),
        "density_above_one": False, "decimals": 0, "decimals_given": True,
    }  # fmt: skip
    return SimpleNamespace(**{**own, **given})


def local(
    own: Any, accounting: str = "lipschitz", *, delta: float = 1e-6, relation: str = "remove",
    of: LocalAccount | None = None, unit: str | None = None, **given: Any,
) -> PrivacyCharge:  # fmt: skip
    cost: dict[str, Any] = {**COST, "relation": relation, "unit": unit}
    return charge_of_fit(
        "LW", own, bound(**given), account=of or account(), accounting=accounting, delta=delta,
        **cost,
    )  # fmt: skip


def censored(own: Any, *, by_record: bool, calibrated: bool, **given: Any) -> PrivacyCharge:
    return charge_of_censored_fit(
        "Censored", own, bound(**given), record_indexed=by_record, calibrated=calibrated, **COST
    )  # type: ignore[arg-type]


def says(charge: PrivacyCharge, words: str) -> bool:
    return words in " ".join((*charge.assumes, *charge.not_covered))


def test_a_local_charge() -> None:
    charge = local(fit())
    assert (charge.epsilon, charge.kind, charge.bound) == (6.0, ASYMPTOTIC_LOCAL, 1.5)
    assert (charge.n_draws, charge.cap, charge.converged) == (40, None, True)
    assert (charge.support, charge.bound_present, charge.loss_range_present) == (None, None, None)
    for words in ("over 40 posterior draws", "The model's own word", "mu can be computed",
                  "There are enough records", "The sampler has converged"):  # fmt: skip
        assert says(charge, words), words
    for words in ("quantile", "computed from all records", "NOT CONVERGED", "calibration"):
        assert not says(charge, words), words
    assert len(charge.assumes) == 5
    assert len(charge.not_covered) == 6


@pytest.mark.parametrize("overall", [np.inf, np.nan])
def test_without_a_finite_bound_there_is_no_charge(overall: float) -> None:
    fails(SamplingError, "must be finite: a record with a positive weight", local, fit(overall))


def test_the_three_accountings_of_one_fit() -> None:
    """Two draws: mu sqrt(2), 2 R, 2 x 2 Delta; the fields are the same whichever is chosen."""
    charges = {name: local(fit(), name) for name in ("gaussian", "range", "lipschitz")}
    gaussian, ranged, papers = charges.values()
    assert gaussian.epsilon == pytest.approx(epsilon_of_mu(0.1 * 2**0.5, 1e-6), abs=0.01)
    assert gaussian.epsilon >= epsilon_of_mu(0.1 * 2**0.5, 1e-6)
    assert (ranged.epsilon, papers.epsilon) == (1.4, 6.0)
    assert [each.delta for each in charges.values()] == [1e-6, 0.0, 0.0]
    for name, each in charges.items():
        assert each.accounting == name
        assert (each.epsilon_range, each.epsilon_lipschitz, each.mu) == (1.4, 6.0, 0.1)
        assert each.mu_standard_error == 0.001
        assert each.epsilon_by("gaussian", delta=1e-6) == gaussian.epsilon
    assert says(gaussian, "Many records: the posteriors with and without a record are close to")
    assert says(ranged, "The range is taken over 40 posterior draws")
    assert not says(ranged, "Many records")
    assert not says(papers, "The range is taken")


def test_replacing_costs_twice_and_says_what_it_takes_for_granted() -> None:
    remove, replaced = (local(fit(), "range", relation=r) for r in ("remove", "replace"))
    assert (remove.epsilon, replaced.epsilon) == (1.4, 2.8)
    assert says(replaced, "is assumed to have no larger risk")
    assert not says(remove, "is assumed to have no larger risk")
    gaussian = local(fit(), "gaussian", relation="replace")
    assert gaussian.mu_of_release == pytest.approx(2 * 0.1 * 2**0.5)
    assert local(fit(), relation="replace").epsilon == 6.0, "of discrete outcomes, as in the papers"


@pytest.mark.parametrize(("of", "quantile", "counted", "why"), [
    ({"limit_holds": False}, 1.0, "range", "the check of its limit failed for some record"),
    ({"mu": np.inf}, 1.0, "range", "the check of its limit failed for some record"),
    ({}, 0.99, "range", "draws were dropped, with a probability above delta"),
    ({"limit_holds": False, "loss_range": np.inf}, 1.0, "lipschitz", "counted by the Lipsch"),
])  # fmt: skip
def test_where_the_limit_does_not_hold_another_accounting_is_charged(
    of: dict[str, Any], quantile: float, counted: str, why: str
) -> None:
    """As it was, draws dropped by the share 1 - q were charged at a delta of 1e-6."""
    charge = local(fit(draw_quantile=quantile), "gaussian", of=account(**of))
    assert (charge.accounting, charge.delta) == (counted, 0.0)
    untold = quantile == 1 and counted == "range"  # no terms to expand: 2 Delta for each of 2 draws
    assert charge.epsilon == {"range": 6.0 if untold else 1.4, "lipschitz": 6.0}[counted]
    assert says(charge, "cannot be estimated from these draws") == untold
    assert says(charge, "Gaussian accounting was asked for")
    assert says(charge, why)
    assert not says(local(fit(), "gaussian"), "was asked for")


def test_where_the_limit_fails_losses_beyond_the_draws_are_charged() -> None:
    """A term 0.5 z - 0.1 (z^2 - 1) of a normal z; the range of 40 draws says less."""
    expansion = np.array([[0.5], [-0.1], [0.0], [0.0]])
    beyond = float(loss_of_expansion(expansion, 1e-6, 2)[0]) / 2  # of two draws together
    charge = local(fit(), "gaussian", of=account(limit_holds=False, expansion=expansion))
    assert beyond > 0.7
    assert charge.loss_range == pytest.approx(beyond)
    assert 2 * beyond <= charge.epsilon <= 2 * beyond + 0.01
    assert says(charge, "misses losses rarer than about one in 40")
    assert says(charge, "loss of a draw at probability 1e-06 where the log-likelihoods go on")
    asked = local(fit(), "range", of=account(limit_holds=False, expansion=expansion))
    assert asked.epsilon == 1.4
    assert not says(asked, "The charge is at least")


def test_delta_is_below_one_over_the_number_of_records_or_units() -> None:
    """100 units of privacy, however many records they have."""
    refuses(r"delta must be below 1 / n = 1.0e-02", local, fit(), "gaussian", delta=0.01)
    assert local(fit(), "gaussian", delta=0.0099).delta == 0.0099
    assert local(fit(), "range", delta=0.5).delta == 0.0, "it is of Gaussian accounting"


def test_dropped_draws_coded_predictors_and_lost_chains_are_said() -> None:
    assert says(local(fit(draw_quantile=0.99)), "Draws above the 0.99 quantile")
    assert says(local(fit(), data_dependent=("poly(x, 2)",)), "from all records (poly(x, 2))")
    charge = local(fit(converged=False))
    assert says(charge, "THE SAMPLER HAS NOT CONVERGED")
    assert says(charge, "R-hat 1.5")
    assert not charge.converged


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_strict_charge(calibrated: bool) -> None:
    charge = censored(fit(0.7, cap=2.0), by_record=True, calibrated=calibrated)
    assert (charge.epsilon, charge.kind) == (8.0, STRICT), "of the cap, whatever the draws show"
    assert (charge.bound, charge.cap) == (2.0, 2.0)
    assert says(charge, "Each record's weight is a function of that record alone")
    assert not says(charge, "The epsilon stated here"), "made of a cap it tells nothing"
    assert not says(charge, "computed from the same database")
    assert says(charge, "owner states that the reference holds no record") == calibrated
    assert says(charge, "records that the calibration was made from") == calibrated
    assert len(charge.assumes) == 6 + calibrated
    assert says(charge, "Whether anything was released"), "an answer that nothing pays for"
    assert len(charge.not_covered) == 6 + calibrated


@pytest.mark.parametrize(("relation", "sides"), [("remove", 1), ("replace", 2)])
def test_a_bought_center_is_paid_for_beside_the_draws(relation: str, sides: int) -> None:
    cost: dict[str, Any] = {**COST, "relation": relation, "n_draws_released": 3}
    own = charge_of_censored_fit(
        "Censored", fit(0.7, cap=0.5), bound(density_above_one=True), record_indexed=True,
        calibrated=False, **cost,
    )  # fmt: skip
    center = PrivacyCharge.strict(mechanism="exponential", epsilon=0.5, relation=relation)
    both = with_bought(own, center)
    assert both.epsilon == own.epsilon + 0.5
    assert both.bound == pytest.approx(own.bound + 0.5 / (2 * sides * 3)), "of each of three draws"
    local_one = replace(own, kind=ASYMPTOTIC_LOCAL, n_draws=40)
    kinds = [each.kind for each in (both, with_bought(local_one, center))]
    assert kinds == [STRICT, ASYMPTOTIC_LOCAL]


def test_what_takes_strictness_away_is_said() -> None:
    own = fit(0.7, cap=2.0)
    weights = censored(own, by_record=False, calibrated=False)
    coded = censored(own, by_record=True, calibrated=False, data_dependent=("scale(x)",))
    assert weights.kind == coded.kind == ASYMPTOTIC_LOCAL
    assert says(weights, "computed from the same database")
    assert not says(weights, "function of that record alone")
    assert says(coded, "(scale(x)), assumed not to change for neighbors; constants")


@pytest.mark.parametrize(("n_elsewhere", "said"), [(None, False), (0, False), (2, True)])
def test_other_modes_and_when_chains_stop_are_said(n_elsewhere: int | None, said: bool) -> None:
    own = fit(0.7, cap=2.0, n_elsewhere=n_elsewhere, fixed_draws=said)
    charge = censored(own, by_record=True, calibrated=False)
    assert says(charge, "more than one mode") == said
    assert says(charge, "when chains stop does not depend on the data") == said
    assert says(charge, "when they stop depends on the data") == (not said)
