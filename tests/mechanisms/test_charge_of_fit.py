"""What a charge says: every sentence where it belongs, and no other; no engine is needed."""

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import SamplingError
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT
from pyhybrid.privacy.refits import LocalLoss, Refit
from pyhybrid.releases.statement import assumptions, not_covered
from tests.refusals import fails

MODEL = ph.Poisson("visits ~ 1")


def fit(
    overall: float = 1.5, *, cap: float | None = None, converged: bool = True,
    draw_quantile: float = 1.0, fixed_draws: bool = False,
) -> Any:  # fmt: skip
    """A fit as far as a charge looks at it."""
    kept = np.ones(40, dtype=bool)
    return SimpleNamespace(
        bounds=SimpleNamespace(overall=overall, kept_draws=kept, draw_quantile=draw_quantile),
        diagnostics=SimpleNamespace(problems=() if converged else ("R-hat 1.5",)),
        cap=None if cap is None else Cap.of(cap), converged=converged, exact=None,
        alpha=np.linspace(0, 1, 100), fixed_draws=fixed_draws,
    )  # fmt: skip


def loss(*refits: Refit) -> LocalLoss:
    """Of 100 records."""
    return LocalLoss(
        lipschitz=np.full(100, 1.5), ranges=np.full(100, 0.7), deviations=np.full(100, 0.1),
        refits=refits,
    )  # fmt: skip


def session(*, data_dependent: tuple[str, ...] = ()) -> Any:
    """A session over 100 records likewise."""
    bound = SimpleNamespace(
        matrix=None, table=SimpleNamespace(index=range(100)), synthesized=("visits",),
        data_dependent=data_dependent, assumptions=("The model's own word.",),
        density_above_one=False, decimals=0, decimals_given=True,
    )  # fmt: skip
    return SimpleNamespace(bound=bound, unit=None, units=None, n_units=100)


def local(
    own: Any, accounting: str = "lipschitz", *, relation: str = "remove",
    of: LocalLoss | None = None, **given: Any,
) -> PrivacyCharge:  # fmt: skip
    mechanism = ph.Unweighted(MODEL, accounting=accounting, delta=1e-6, relation=relation)
    path: Any = SimpleNamespace(fit=own)
    return mechanism.charge(session(**given), path, of or loss(), 2, 2)


def censored(own: Any, *, by_record: bool, calibrated: bool = False, **given: Any) -> PrivacyCharge:
    inner = ph.Unweighted(MODEL) if by_record else ph.LipschitzWeighted(MODEL)
    mechanism = ph.Censored(MODEL, cap=2.0, inner=inner)
    if calibrated:
        of_reference = dict.fromkeys(f.name for f in fields(Calibration)) | {
            "model": MODEL, "relation": "remove", "holds_no_released_record": True,
        }  # fmt: skip
        mechanism = ph.Censored(calibration=Calibration(**of_reference))
    path: Any = SimpleNamespace(fit=own)
    return mechanism.charge(session(**given), path, None, 2, 2)


def says(charge: PrivacyCharge, words: str) -> bool:
    return words in " ".join((*assumptions(charge), *not_covered(charge)))


def test_a_local_charge() -> None:
    charge = local(fit())
    assert (charge.epsilon, charge.kind, charge.bound) == (6.0, ASYMPTOTIC_LOCAL, 1.5)
    assert (charge.n_draws, charge.cap, charge.converged) == (40, None, True)
    for words in ("over 40 posterior draws", "The model's own word", "mu can be computed",
                  "There are enough records", "The sampler has converged"):  # fmt: skip
        assert says(charge, words), words
    for words in ("quantile", "computed from all records", "NOT CONVERGED", "calibration"):
        assert not says(charge, words), words
    assert len(assumptions(charge)) == 5
    assert len(not_covered(charge)) == 6


@pytest.mark.parametrize("overall", [np.inf, np.nan])
def test_without_a_finite_bound_there_is_no_charge(overall: float) -> None:
    fails(SamplingError, "must be finite: a record with a positive weight", local, fit(overall))


def test_what_refits_lose_is_charged_where_it_is_more() -> None:
    more = loss(Refit(record=3, loss=6.4))
    papers, ranged = local(fit(), of=more), local(fit(), "range", of=more)
    assert (papers.epsilon, papers.epsilon_published, ranged.epsilon) == (16.0, 6.0, 16.0)
    assert local(fit(), "gaussian", of=more).mu == more.mu > 1
    assert local(fit(), of=more, relation="replace").epsilon == 32.0
    less = loss(Refit(record=3, loss=1.6))
    assert (local(fit(), of=less).epsilon, local(fit(), "range", of=less).epsilon) == (6.0, 4.0)
    assert says(papers, "computed anew, weights too, without each of 1 records")
    assert not says(papers, "As published")
    assert says(local(fit()), "As published: the weights are taken as fixed")
    endless = loss(Refit(record=3, loss=np.inf))
    fails(SamplingError, "must be finite at every draw", local, fit(), of=endless)


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
    assert len(assumptions(charge)) == 6 + calibrated
    assert says(charge, "Whether anything was released"), "an answer that nothing pays for"
    assert len(not_covered(charge)) == 6 + calibrated


def test_what_takes_strictness_away_is_said() -> None:
    own = fit(0.7, cap=2.0)
    weights = censored(own, by_record=False)
    coded = censored(own, by_record=True, data_dependent=("scale(x)",))
    assert weights.kind == coded.kind == ASYMPTOTIC_LOCAL
    assert says(weights, "computed from the same database")
    assert not says(weights, "function of that record alone")
    assert says(coded, "(scale(x)), assumed not to change for neighbors; constants")


@pytest.mark.parametrize("said", [False, True])
def test_when_chains_stop_is_said(said: bool) -> None:
    charge = censored(fit(0.7, cap=2.0, fixed_draws=said), by_record=True)
    assert says(charge, "when chains stop does not depend on the data") == said
    assert says(charge, "when they stop depends on the data") == (not said)
