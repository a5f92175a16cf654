"""The scale that meets a target epsilon."""

from typing import Any

import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.mechanisms import meet_epsilon
from tests.fitting.test_reweighting import MODEL, mixture

pytestmark = pytest.mark.samples
TABLE = mixture(200)
SETTINGS = SamplerSettings(warmup=400, draws=500)
OPTIONS: dict[str, Any] = {"seed": 1, "engine": "embedded", "settings": SETTINGS, "refits": 0}
PAPERS = ph.LipschitzWeighted(MODEL)
RELEASED: dict[str, int] = {"n_synthetic": 1, "n_draws_released": 1}


def _near(found: Any, target: float, tolerance: float) -> bool:
    """Within the tolerance, or beside a value of the setting at which epsilon jumps over that: the
    largest of few draws jumps by several per cent."""
    if target - tolerance < found.epsilon <= target:
        return True
    beyond = min(value for value in found.tried if value > found.value)
    return found.epsilon <= target < found.tried[beyond] and beyond - found.value < 0.02


def test_the_target_is_met_from_below() -> None:
    found = meet_epsilon(PAPERS, TABLE, target_epsilon=8.0, **OPTIONS)
    assert _near(found, 8, 0.1)
    release = found.mechanism.release_from(found.session, **RELEASED, refits=0)
    assert release.charge.epsilon == found.epsilon
    assert found.session.n_fits <= len(found.tried) + 1
    assert found.value in found.tried


def test_several_draws_share_the_target() -> None:
    found = meet_epsilon(
        PAPERS, TABLE, target_epsilon=24.0, tolerance=0.5, n_draws_released=3, **OPTIONS
    )
    release = found.mechanism.release_from(
        found.session, n_synthetic=3, n_draws_released=3, refits=0
    )
    assert release.charge.epsilon == found.epsilon
    assert _near(found, 24, 0.5)


def test_what_refits_add_is_in_the_target() -> None:
    own = {**OPTIONS, "refits": 2}
    start = ph.LipschitzWeighted(MODEL, accounting="range")
    found = meet_epsilon(start, TABLE, target_epsilon=8.0, tolerance=1.0, **own)
    assert found.epsilon <= 8
    release = found.mechanism.release_from(found.session, **RELEASED, refits=2)
    assert release.charge.epsilon == found.epsilon
    held = found.mechanism.release_from(found.session, **RELEASED, refits=0)
    assert held.charge.epsilon < found.epsilon, "the control: at fixed weights it costs less"


@pytest.mark.parametrize(("options", "message"), [
    ({"target_epsilon": 0}, "target_epsilon must be above 0"),
    ({"tolerance": 0}, "tolerance must be above 0"),
    ({"n_draws_released": 0}, "n_draws_released"), ({"max_fits": 0}, "max_fits"),
    ({"tolerance": 1e-9, "max_fits": 2}, "not met within 0.01 in 2 fits"),
])  # fmt: skip
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        meet_epsilon(PAPERS, TABLE, **{"target_epsilon": 5, **OPTIONS, **options})
