"""Choosing scale and shift by budget."""

from __future__ import annotations

from typing import Any

import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.errors import InvalidInput
from pyhybrid.mechanisms.budget import largest_within
from tests.fitting.test_reweighting import MODEL, mixture

pytestmark = pytest.mark.samples

TABLE = mixture(400)
SETTINGS = SamplerSettings(warmup=400, draws=500)
OPTIONS: dict[str, Any] = {"seed": 1, "engine": "embedded", "settings": SETTINGS}
PAPERS = ph.LipschitzWeighted(MODEL, accounting="lipschitz")


@pytest.mark.parametrize(
    ("solve", "start"),
    [
        (ph.solve_scale, PAPERS),
        (ph.solve_shift, PAPERS),
        (ph.solve_scale, ph.CountWeighted(MODEL, radius=0.3, accounting="lipschitz")),
    ],
)
def test_the_target_is_met_from_below(solve: Any, start: Any) -> None:
    target = 3.0 if isinstance(start, ph.CountWeighted) else 8.0
    found = solve(start, TABLE, target_epsilon=target, **OPTIONS)
    assert target - 0.1 < found.epsilon <= target
    release = found.mechanism.release_from(found.session, n_synthetic=1, n_draws_released=1)
    assert release.charge.epsilon == found.epsilon
    fits = found.session.n_fits
    assert fits <= len(found.steps) + 1
    assert found.steps[-1].value == found.value


@pytest.mark.parametrize("accounting", ["gaussian", "range"])
def test_a_target_by_another_accounting_is_met_from_below(accounting: str) -> None:
    """Where the Gaussian limit gives way to the range epsilon jumps: at most the target then."""
    start = ph.CountWeighted(MODEL, radius=0.3, accounting=accounting)
    most = ph.solve_scale(start, TABLE, target_epsilon=0.3, **OPTIONS)
    assert 0 < most.epsilon <= 0.3
    release = most.mechanism.release_from(most.session, n_synthetic=1, n_draws_released=1)
    assert release.charge.epsilon == most.epsilon
    control = release.charge.epsilon_lipschitz
    assert control > max(0.3, 1.5 * most.epsilon), "by the papers' accounting it is not met"


def test_several_draws_share_the_budget() -> None:
    one = ph.solve_scale(PAPERS, TABLE, target_epsilon=5.0, **OPTIONS)
    three = ph.solve_scale(
        PAPERS, TABLE, target_epsilon=15.0, n_draws_released=3,
        tolerance=0.3, **OPTIONS,
    )  # fmt: skip
    assert abs(one.value - three.value) < 0.05


def test_an_unreachable_target_gives_the_range() -> None:
    with pytest.raises(InvalidInput, match=r"epsilon goes from 0 to 1\d\.\d+ there, found 500"):
        ph.solve_scale(PAPERS, TABLE, target_epsilon=500, **OPTIONS)
    with pytest.raises(InvalidInput, match="reachable by shift"):
        ph.solve_shift(PAPERS, TABLE, target_epsilon=1, limits=(0, 0.5), **OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_epsilon": 0}, "target_epsilon must be above 0"),
        ({"target_epsilon": 5, "tolerance": 0}, "tolerance must be above 0"),
        ({"target_epsilon": 5, "limits": (1, 0)}, "ascending order"),
        ({"target_epsilon": 5, "n_draws_released": 0}, "n_draws_released"),
        ({"target_epsilon": 5, "max_fits": 1, "tolerance": 1e-9}, "not met within"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ph.solve_scale(ph.LipschitzWeighted(MODEL), TABLE, **OPTIONS, **options)


def test_a_mechanism_without_the_parameter_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Unweighted has none"):
        ph.solve_scale(ph.Unweighted(MODEL), TABLE, target_epsilon=5, **OPTIONS)


@pytest.mark.parametrize("curve", [lambda v: v**4 * 20, lambda v: 20 * v**0.2, lambda v: 20 * v])
def test_the_search_is_monotone_and_short(curve: Any) -> None:
    tried: list[float] = []

    def epsilon_at(value: float) -> float:
        tried.append(value)
        return float(curve(value))

    value = largest_within(epsilon_at, "scale", 0.0, 1.0, 7.0, 0.1, 20)
    assert 6.9 < curve(value) <= 7.0
    assert len(tried) < 15
