"""One charge: what it shows, and the first wrong field."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhybrid.privacy.charge import Gaussian, Lipschitz, Range, Spent
from pyhybrid.privacy.conversions import (
    STRICT,
    bound_of_epsilon,
    epsilon_of_bound,
    epsilon_of_mu,
    epsilon_of_rho,
    epsilon_of_zcdp,
    round_up,
)
from tests.privacy.test_conversions import charge
from tests.refusals import refuses


@pytest.mark.parametrize(("changes", "message"), [
    ({"kind": "loose", "n_draws": None}, "kind must"),
    ({"relation": "swap", "draw_quantile": 2.0}, "relation must"),
    ({"draw_quantile": 0.0}, "draw_quantile must"), ({"n_synthetic": -1}, "n_synthetic must"),
    ({"n_draws_released": 0, "n_draws": 0}, "n_draws_released must"),
    ({"unit": 7}, "unit must be the name of a column or None: found 7"),
    ({"accounting": "renyi"}, "accounting must"),
    ({"accounts": {"lipschitz": Lipschitz(bound=-1.0)}}, "bound must"),
    ({"accounts": {"lipschitz": Lipschitz(bound=float("inf"))}}, "bound must"),
    ({"kind": STRICT}, "must be of noise or a cap"),
    ({"delta": 1e-6}, "delta must be 0 for accounting='lipschitz'"),
    ({"accounting": "gaussian", "accounts": {"gaussian": Gaussian(mu=1.0)}, "delta": 2.0},
     "delta must"),
])  # fmt: skip
def test_the_first_wrong_field_is_named(changes: dict, message: str) -> None:
    refuses(message, charge, **changes)
    assert charge(unit="home").unit == "home"
    refuses("kind must", round_up, 1.0, kind="loose")


@pytest.mark.parametrize(("options", "bound"), [
    ({}, 2.5), ({"relation": "replace"}, 2.5), ({"density_above_one": True}, 2.5),
    ({"relation": "replace", "density_above_one": True}, 1.25), ({"safety_factor": 1.25}, 2.0),
    ({"relation": "replace", "density_above_one": True, "safety_factor": 1.25}, 1.0),
])  # fmt: skip
def test_bound_of_epsilon_by_hand_and_back(options: dict, bound: float) -> None:
    assert bound_of_epsilon(5.0, **options) == bound
    assert epsilon_of_bound(bound, **options) == 5.0


def test_accounts_by_hand() -> None:
    """Three draws; a constant in what changes cancels, so that its size is half its range."""
    papers = Lipschitz(bound=2.0, change=3.0)
    assert (papers.epsilon(3, "remove", 0.0), papers.epsilon(3, "replace", 0.0)) == (12.0, 18.0)
    assert Lipschitz(bound=2.0, change=5.0).epsilon(3, "remove", 0.0) == 15.0
    assert Lipschitz(bound=2.0, either_sign=True).epsilon(1, "replace", 0.0) == 8.0
    assert Range(loss_range=0.7).epsilon(3, "replace", 0.0) == 4.2
    assert Gaussian(mu=0.2).of_release(4, "replace") == 0.8
    assert Gaussian(mu=0.2).epsilon(4, "remove", 1e-6) == epsilon_of_mu(0.4, 1e-6)


@settings(max_examples=40)
@given(st.floats(0, 5), st.one_of(st.none(), st.floats(0, 5)), st.floats(0, 3), st.floats(0, 3))
def test_what_was_spent_is_the_least_of_what_composition_gives(
    pure: float, rho_of_pure: float | None, rho: float, mu: float
) -> None:
    """Each way by its own formula; none is below what it is made of alone."""
    spent = Spent(pure=pure, rho_of_pure=rho_of_pure, rho=rho, mu=mu)
    assert spent.epsilon() == pure
    found = spent.epsilon(delta=1e-6)
    noise = rho + mu**2 / 2
    ways = [pure + (epsilon_of_zcdp(noise, 1e-6) if noise else 0.0)]
    if not rho:
        ways.append(pure + epsilon_of_mu(mu, 1e-6))
    if rho_of_pure is not None:
        of_all = epsilon_of_zcdp if noise else epsilon_of_rho
        ways.append(of_all(rho_of_pure + noise, 1e-6))
    assert found == pytest.approx(min(ways), rel=1e-9, abs=1e-9)
    twice = Spent.of([spent, spent])
    assert twice.pure == pytest.approx(2 * pure)
    assert twice.mu == pytest.approx(2**0.5 * mu)
    assert twice.rho == pytest.approx(2 * rho)
    known = None if rho_of_pure is None else pytest.approx(2 * rho_of_pure)
    assert twice.rho_of_pure == known
    assert Spent.of([]).epsilon(delta=1e-6) == 0
