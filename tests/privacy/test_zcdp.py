"""zCDP to (epsilon, delta): against OpenDP, the exact Gaussian mechanism, and its own inverse."""

from __future__ import annotations

import math

import pytest

from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose, compose_charges
from pyhybrid.privacy.conversions import delta_of_mu, epsilon_of_rho, epsilon_of_zcdp, rho_of_zcdp
from tests.conftest import require

CASES = [(rho, delta) for rho in (1e-6, 1e-3, 0.02, 0.3, 5.0, 80.0) for delta in (1e-10, 1e-6, 0.1)]


@pytest.mark.parametrize(("rho", "delta"), CASES)
def test_epsilon_covers_the_gaussian_mechanism_and_is_below_the_simple_bound(
    rho: float, delta: float
) -> None:
    """A real Gaussian mechanism of this rho is mu-GDP exactly, mu = sqrt(2 rho)."""
    found = epsilon_of_zcdp(rho, delta)
    assert 0 <= found <= epsilon_of_rho(rho, delta)
    assert delta_of_mu(math.sqrt(2 * rho), found) <= delta
    orders = [1 + math.exp(k / 200) for k in range(-2000, 4000)]
    by_hand = min(
        a * rho + math.log(1 / (a * delta)) / (a - 1) + math.log(1 - 1 / a) for a in orders
    )
    assert found == pytest.approx(max(by_hand, 0.0), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("rho", "delta"), CASES[3:])
def test_opendp_says_the_same(rho: float, delta: float) -> None:
    try:
        import opendp.prelude as dp
    except ImportError:
        dp = None
    require(dp is not None, "opendp must be installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    made = space >> dp.m.then_gaussian(scale=math.sqrt(1 / (2 * rho)))
    own = dp.c.make_zCDP_to_approxDP(made).map(1.0).epsilon(delta)
    assert epsilon_of_zcdp(rho, delta) == pytest.approx(own, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.1])
def test_rho_is_the_largest_that_is_allowed(epsilon: float, delta: float) -> None:
    rho = rho_of_zcdp(epsilon, delta)
    assert epsilon_of_zcdp(rho, delta) <= epsilon
    assert epsilon_of_zcdp(rho * 1.0001, delta) > epsilon


def charge(epsilon: float, rho: float | None = None, delta: float = 0.0) -> PrivacyCharge:
    return PrivacyCharge.strict(
        mechanism="m", epsilon=epsilon, rho=rho, delta=delta, relation="remove"
    )


def test_charges_of_gaussian_noise_add_by_rho() -> None:
    rho = rho_of_zcdp(1.0, 1e-6)
    one = charge(1.0, rho, 1e-6)
    assert (one.epsilon, one.delta, one.accounting, one.kind) == (1.0, 1e-6, "zcdp", "strict")
    assert one.is_sealed
    assert one.public()["rho"] == rho
    assert "bound" not in one.public()
    assert PrivacyCharge.from_dict(one.as_dict()) == one
    both = compose_charges([one, one], mechanism="both")
    assert (
        both.epsilon
        == compose([one, one])
        == pytest.approx(epsilon_of_zcdp(2 * rho, 1e-6), abs=1e-6)
    )
    assert both.epsilon < 1.5
    # A pure charge adds its epsilon, or, in one charge, the rho that it is worth.
    pure = charge(0.1)
    assert compose([one, pure]) == pytest.approx(1.1)
    mixed = compose_charges([one, pure], mechanism="mixed")
    assert mixed.rho == pytest.approx(rho + 0.1**2 / 2)
    assert mixed.delta == 1e-6


def test_what_is_no_charge_is_refused() -> None:
    with pytest.raises(InvalidInput, match="rho must be given for accounting='zcdp'"):
        PrivacyCharge(
            mechanism="m", epsilon=1.0, kind="strict", relation="remove", n_synthetic=1,
            n_draws_released=1, bound=0.5, accounting="zcdp", delta=1e-6,
        )  # fmt: skip
    with pytest.raises(InvalidInput, match="delta must lie in"):
        charge(1.0, 0.02)
    with pytest.raises(InvalidInput, match="charges counted at a delta must be at one delta"):
        compose([charge(1.0, 0.02, 1e-6), charge(1.0, 0.02, 1e-5)])
    with pytest.raises(InvalidInput, match="rho must be >= 0"):
        epsilon_of_zcdp(-1.0, 1e-6)
