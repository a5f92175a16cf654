"""Any mechanism at a given epsilon: what is found costs at most the target, and near it."""

from typing import Any

import pytest

import pyhybrid as ph
from tests.fits import fit_options
from tests.fitting.test_reweighting import MODEL as OVERDISPERSED
from tests.fitting.test_reweighting import mixture
from tests.mechanisms.test_accounting import MODEL, counts
from tests.refusals import refuses

pytestmark = pytest.mark.samples
OPTIONS = fit_options(chains=4, warmup=300, draws=400, seed=5)


def _released(found: Any, m: int = 1, refits: int = 0) -> ph.Release:
    own = {"n_synthetic": m, "n_draws_released": 1, "refits": refits}
    return found.mechanism.release_from(found.session, **own)


@pytest.mark.parametrize(("mechanism", "target", "searched"), [
    (ph.LipschitzWeighted(MODEL, transform="reciprocal"), 0.2, None),
    (ph.LipschitzWeighted(MODEL, scale=0.8), 2.0, "shift"),
    (ph.ScalarWeighted(MODEL, target_epsilon=9.0), 2.0, None),
    (ph.Truncated(MODEL, cap=1.0, inner=ph.Unweighted(MODEL)), 9.0, "cap"),
])  # fmt: skip
def test_the_target_is_met_from_below(mechanism: Any, target: float, searched: Any) -> None:
    found = ph.mechanisms.meet_epsilon(
        mechanism, counts(), target_epsilon=target, searched=searched, refits=0, **OPTIONS
    )
    assert getattr(found.mechanism, searched or mechanism.searched[0]) == found.value
    assert _near(found, target, 0.05 * target + 0.01)
    assert found.session.n_fits <= len(found.tried) + 1
    assert found.value in found.tried
    release = _released(found, m=2)
    assert release.charge.epsilon == found.epsilon
    assert type(found.mechanism) is type(mechanism)


def test_a_target_above_what_the_largest_setting_costs_is_met_by_it() -> None:
    mechanism = ph.LipschitzWeighted(MODEL, scale=0.1, transform="logistic")
    found = ph.mechanisms.meet_epsilon(mechanism, counts(), target_epsilon=50, **OPTIONS)
    assert (found.value, len(found.tried)) == (1.0, 1)


def test_where_it_makes_no_sense() -> None:
    for mechanism, said in (
        (ph.Unweighted(MODEL), "Unweighted has none; take LipschitzWeighted"),
        (ph.GivenWeights(MODEL, alpha=[1.0] * 300), "GivenWeights has none"),
        (ph.Censored(MODEL, epsilon=1), "or give a strict mechanism its epsilon"),
    ):
        refuses(said, ph.mechanisms.meet_epsilon, mechanism, counts(), target_epsilon=1, **OPTIONS)
    scalar, low = ph.ScalarWeighted(MODEL, target_epsilon=9), ph.LipschitzWeighted(MODEL, shift=0.5)
    for mechanism, said, how in (
        (scalar, "searched must be", {"target_epsilon": 1, "searched": "shift"}),
        (low, "target_epsilon must be reachable by scale", {"target_epsilon": 1e-3}),
    ):
        refuses(said, ph.mechanisms.meet_epsilon, mechanism, counts(), **how, **OPTIONS)


def _near(found: Any, target: float, tolerance: float) -> bool:
    """Within the tolerance, or beside a value of the setting at which epsilon jumps over that."""
    if target - tolerance < found.epsilon <= target:
        return True
    beyond = min(value for value in found.tried if value > found.value)
    return found.epsilon <= target < found.tried[beyond] and beyond - found.value < 0.02


def test_what_refits_add_is_in_the_target() -> None:
    fits = fit_options(chains=4, warmup=400, draws=500, seed=1, refits=2)
    start = ph.LipschitzWeighted(OVERDISPERSED, accounting="range")
    found = ph.mechanisms.meet_epsilon(start, mixture(200), target_epsilon=2.0, **fits)
    assert 1.5 < found.epsilon <= 2, "refits raise it to twice the target at first"
    release, held = (_released(found, refits=refits) for refits in (2, 0))
    assert release.charge.epsilon == found.epsilon
    assert held.charge.epsilon < found.epsilon, "the control: at fixed weights it costs less"
