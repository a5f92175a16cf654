"""What a charge says: every sentence where it belongs, and no other; no engine is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyhybrid.errors import SamplingError
from pyhybrid.mechanisms.charge_of_censoring import charge_of_censored_fit
from pyhybrid.mechanisms.charge_of_fit import charge_of_fit
from pyhybrid.privacy.cap import Cap
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import ASYMPTOTIC_LOCAL, STRICT

COST = {"n_synthetic": 2, "n_draws_released": 2, "relation": "remove", "safety_factor": 1.0}


def fit(overall: float = 1.5, **given: Any) -> Any:
    """A fit as far as a charge looks at it."""
    bounds = SimpleNamespace(
        overall=overall,
        kept_draws=np.ones(40, dtype=bool),
        draw_quantile=given.pop("draw_quantile", 1.0),
    )
    diagnostics = SimpleNamespace(
        converged=given.pop("converged", True), problems=("R-hat 1.5",),
        n_elsewhere=given.pop("n_elsewhere", None),
    )  # fmt: skip
    cap = given.pop("cap", None)
    return SimpleNamespace(
        alpha=np.array([1.0, 0.5]), bounds=bounds, diagnostics=diagnostics,
        cap=None if cap is None else Cap.of(cap),
        converged=diagnostics.converged, n_elsewhere=diagnostics.n_elsewhere or 0, exact=None,
    )  # fmt: skip


def bound(**given: Any) -> Any:
    """A bound model likewise."""
    own = {
        "synthesized": ("visits",), "data_dependent": (), "assumptions": ("The model's own word.",),
        "density_above_one": False, "decimals": 0, "decimals_given": True,
    }  # fmt: skip
    return SimpleNamespace(**{**own, **given})


def local(own: Any, **given: Any) -> PrivacyCharge:
    account: Any = SimpleNamespace(
        loss_range=np.inf, mu=np.inf, mu_standard_error=np.inf, limit_holds=False, n_draws=40,
        draws_recounted=0,
    )  # fmt: skip
    return charge_of_fit(
        "LW", own, bound(**given), account=account, accounting="lipschitz", delta=1e-6, **COST
    )  # type: ignore[arg-type]


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
    for words in ("over 40 posterior draws", "The model's own word", "bound can be worked out",
                  "records are many enough", "The sampler has converged"):  # fmt: skip
        assert says(charge, words), words
    for words in ("quantile", "computed from all records", "NOT CONVERGED", "calibration"):
        assert not says(charge, words), words
    assert len(charge.assumes) == 5
    assert len(charge.not_covered) == 6


@pytest.mark.parametrize("overall", [np.inf, np.nan])
def test_without_a_finite_bound_there_is_no_charge(overall: float) -> None:
    with pytest.raises(SamplingError, match="must be finite: a record with a positive weight"):
        local(fit(overall))


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
    assert says(charge, "calibration was made from other records") == calibrated
    assert says(charge, "records that the calibration was made from") == calibrated
    assert says(charge, "terms lie between -M and 0"), "M would do; the outcome is discrete"
    assert len(charge.assumes) == 6 + calibrated
    assert says(charge, "Whether anything was released"), "an answer that nothing pays for"
    assert len(charge.not_covered) == 6 + calibrated


def test_what_takes_strictness_away_is_said() -> None:
    own = fit(0.7, cap=2.0)
    weights = censored(own, by_record=False, calibrated=False)
    coded = censored(own, by_record=True, calibrated=False, data_dependent=("scale(x)",))
    assert weights.kind == coded.kind == ASYMPTOTIC_LOCAL
    assert says(weights, "computed from the same database")
    assert not says(weights, "function of that record alone")
    assert says(coded, "(scale(x)), assumed not to change for neighbours; constants")


@pytest.mark.parametrize(("n_elsewhere", "said"), [(None, False), (0, False), (2, True)])
def test_other_modes_are_said(n_elsewhere: int | None, said: bool) -> None:
    own = fit(0.7, cap=2.0, n_elsewhere=n_elsewhere)
    charge = censored(own, by_record=True, calibrated=False)
    assert says(charge, "more than one mode") == said
