"""Epsilon is rounded up exactly, charges cannot understate it, unlike kinds do not add. Delta and
epsilon of mu: against 60-digit arithmetic, inverses, monotone, composition. Epsilon of ranges:
rounding up, zCDP against exact losses of the exponential mechanism. zCDP to (epsilon, delta):
against OpenDP, the exact Gaussian mechanism, and its own inverse.
"""

import dataclasses
import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import pyhybrid as ph
from pyhybrid.privacy import conversions
from pyhybrid.privacy.charge import Gaussian, Lipschitz, PrivacyCharge, Range
from pyhybrid.privacy.composition import compose, compose_charges
from tests.golden import gaussian_formulas as precise  # nothing but the standard library
from tests.refusals import fails, refuses

UNIT = {conversions.ASYMPTOTIC_LOCAL: Fraction(1, 100), conversions.STRICT: Fraction(1, 1_000_000)}
KIND = st.sampled_from(sorted(UNIT))
BOUND = st.one_of(st.floats(0, 1e5), st.integers(0, 10**6).map(lambda k: k / 1000),
                  st.sampled_from([0.15, 1.1]))  # fmt: skip


def exact(number: float) -> Fraction:
    """The number a reader sees: its shortest decimal form."""
    return Fraction(repr(number))


def charge(bound: float = 2.5, **changes: Any) -> PrivacyCharge:
    """A local charge by the papers' accounting."""
    account = Lipschitz(bound=bound, either_sign=changes.get("density_above_one", False))
    fields: dict[str, Any] = {
        "mechanism": "LipschitzWeighted", "kind": conversions.ASYMPTOTIC_LOCAL,
        "relation": "remove", "n_synthetic": 3, "n_draws_released": 3, "bound": bound,
        "n_draws": 4000, "accounts": {"lipschitz": account}, "accounting": "lipschitz",
        "facts": {"columns": ["y"], "refits": 0},
    }  # fmt: skip
    return PrivacyCharge(**{**fields, **changes})


@given(
    BOUND, st.integers(1, 100), st.sampled_from(["remove", "replace"]), st.booleans(),
    st.one_of(st.just(1.0), st.floats(1, 1.1)), KIND,
)  # fmt: skip
def test_epsilon_is_the_least_charge_above_the_exact_cost(
    bound: float, draws: int, relation: str, dense: bool, factor: float, kind: str
) -> None:
    epsilon = conversions.epsilon_of_bound(
        bound, n_draws_released=draws, relation=relation, density_above_one=dense,
        safety_factor=factor, kind=kind,
    )  # fmt: skip
    sides = 4 if (relation, dense) == ("replace", True) else 2
    cost = sides * draws * exact(factor) * exact(bound)
    assert cost <= exact(epsilon) < cost + UNIT[kind]
    assert (exact(epsilon) / UNIT[kind]).denominator == 1


def test_the_check_catches_rounding_to_nearest_and_binary_arithmetic() -> None:
    assert exact(round(2 * 0.1505, 2)) < 2 * exact(0.1505)
    assert exact(3 * (2 * 0.35)) < 6 * exact(0.35)


@given(st.floats(0, 1e6), KIND)
def test_round_up(value: float, kind: str) -> None:
    rounded = conversions.round_up(value, kind=kind)
    assert exact(value) <= exact(rounded) < exact(value) + UNIT[kind]
    assert conversions.round_up(rounded, kind=kind) == rounded


def test_epsilon_follows_from_the_account_and_cannot_be_edited() -> None:
    assert charge().epsilon == 15.0
    assert charge(n_synthetic=20, n_draws_released=1).epsilon == 5.0
    assert charge(relation="replace").epsilon == 15.0
    assert charge(relation="replace", density_above_one=True).epsilon == 30.0
    fails(dataclasses.FrozenInstanceError, "", setattr, charge(), "kind", "strict")
    fails(TypeError, "epsilon", charge, epsilon=0.1)


def test_public_part_lacks_what_the_owner_keeps() -> None:
    secret = 2.4375
    accounts = {
        "lipschitz": Lipschitz(bound=secret), "range": Range(loss_range=1.3125),
        "gaussian": Gaussian(mu=0.25),
    }  # fmt: skip
    own = charge(bound=secret, accounts=accounts)
    public, hidden = own.public(), {f.name for f in dataclasses.fields(own) if not f.repr}
    assert hidden == {"accounts", "bound", "facts", "parts"}
    assert not hidden & set(public)
    assert "epsilon = 14.63 (" in repr(own)
    assert (public["epsilon_published"], public["epsilon_range"]) == (14.63, 3.94)
    assert (public["mu"], public["spent"]["pure"]) == (0.25, 14.63)
    for number in (str(secret), "1.3125"):
        assert number not in json.dumps(public) + repr(own)
        assert number in json.dumps(own.as_dict())


def test_dict_round_trip_through_json_and_what_is_no_charge_is_refused() -> None:
    for original in (
        charge(cap=2.5, draw_quantile=0.99, converged=False, unit="person"),
        compose_charges([charge(), charge()], mechanism="x"),
        PrivacyCharge.strict(mechanism="x", mu=0.2, delta=1e-6, relation="replace"),
    ):
        again = PrivacyCharge.from_dict(json.loads(json.dumps(original.as_dict())))
        assert again == original
    fields = charge().as_dict()
    missing = {name: value for name, value in fields.items() if name != "accounts"}
    for wrong in (missing, {**fields, "share": 0.1}, {}, charge().public()):
        refuses("not a privacy charge", PrivacyCharge.from_dict, wrong)


@given(st.floats(1e-6, 1e3))
def test_a_strict_charge_is_epsilon_rounded_up(epsilon: float) -> None:
    stated = PrivacyCharge.strict(mechanism="laplace_sum", epsilon=epsilon, relation="remove")
    assert exact(epsilon) * (1 - Fraction(1, 10**15)) <= exact(stated.epsilon)
    assert exact(stated.epsilon) <= exact(epsilon) + 2 * UNIT[conversions.STRICT]


def of_strict(epsilon: float | None, m: int = 1, **options: Any) -> PrivacyCharge:
    return PrivacyCharge.strict(
        mechanism="noise", relation="remove", epsilon=epsilon, n_synthetic=m, n_draws_released=m,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    "other", [of_strict(15.0), charge(relation="replace"), charge(unit="person")]
)
def test_unlike_charges_do_not_add(other: PrivacyCharge) -> None:
    pair = [charge(), other]
    refuses("one kind, relation and unit", compose, pair)
    assert compose([pair[1]] * 2) == 30.0


@given(st.lists(st.integers(0, 10**5), max_size=12))
def test_composition_equals_the_exact_sum(cents: list[int]) -> None:
    charges = [charge(bound=c / 200, n_draws_released=1) for c in cents if c % 4 == 0]
    total = sum((Fraction(c, 100) for c in cents if c % 4 == 0), Fraction(0))
    assert exact(compose(charges)) == total


def test_numbers_that_no_float_holds_are_refused() -> None:
    for call in (
        lambda: conversions.epsilon_of_bound(1e308),
        lambda: ph.arrays.rho_of_range(1e300),
        lambda: ph.epsilon_of_mu(1e200, 1e-6),
    ):
        refuses("that floats can hold", call)
    factor = {"safety_factor": math.nan}
    refuses("safety_factor must be a finite number", conversions.epsilon_of_bound, 1.0, **factor)


GRID = [0.0, 1e-9, 1e-3, 0.05, 0.207, 0.26, 1.0, 1.146, 4.0, 15.0, 60.0]


def test_the_naive_difference_fails_where_ours_holds() -> None:
    """Control: the formula as it is written loses every digit at a small mu."""
    mu, epsilon = 1e-9, 4e-9
    exact = float(precise.delta_of_mu(mu, epsilon))
    a, b = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    naive = norm.cdf(a) - math.exp(epsilon) * norm.cdf(b)
    assert abs(naive / exact - 1) > 1e-9
    assert ph.arrays.delta_of_mu(mu, epsilon) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-300, 1e-15, 1e-6, 1e-3, 0.1, 0.7, 0.999])
def test_inverses_meet_and_round_to_the_safe_side(delta: float) -> None:
    for mu in GRID[1:]:
        epsilon = ph.epsilon_of_mu(mu, delta)
        assert ph.arrays.delta_of_mu(mu, epsilon) <= delta
        if epsilon == 0:
            assert ph.arrays.delta_of_mu(mu, 0) <= delta
            continue
        assert ph.arrays.delta_of_mu(mu, epsilon * (1 - 1e-11)) > delta
        back = ph.arrays.mu_of_epsilon(epsilon, delta)
        assert ph.arrays.delta_of_mu(back, epsilon) <= delta
        assert back == pytest.approx(mu, rel=1e-9)


def test_the_figures_of_guarantees() -> None:
    found = [ph.arrays.delta_of_mu(0.207, k * 0.207) for k in (1, 2, 3)]
    np.testing.assert_allclose(found, [1.91e-2, 2.15e-3, 1.07e-4], rtol=0.01)
    assert round(ph.epsilon_of_mu(0.207, 1e-6), 2) == 0.87
    assert round(ph.epsilon_of_mu(1.146, 1e-6), 1) == 5.7
    assert round(ph.epsilon_of_mu(0.93, 1e-6), 1) == 4.5  # mu rounded; 4.4 there


def test_composition_by_squares_never_rounds_down() -> None:
    mus = np.random.default_rng(1).gamma(1, 1, 50)
    exact = sum(Decimal(float(mu)) ** 2 for mu in mus).sqrt()
    assert exact <= Decimal(ph.arrays.compose_mu(mus)) <= exact * (1 + Decimal("1e-15"))
    assert ph.arrays.compose_mu([]) == 0
    assert ph.arrays.compose_mu([0.3]) == 0.3
    due = pytest.approx(ph.arrays.compose_mu([0.3] * 20))
    assert ph.arrays.mu_of_release(0.3, n_draws_released=20) == due
    assert ph.arrays.mu_of_release(0.3, relation="replace") == 0.6


@pytest.mark.parametrize("delta", [0, 1, -1e-6, math.nan, 2])
def test_delta_must_be_a_probability(delta: float) -> None:
    refuses("delta must", ph.epsilon_of_mu, 1.0, delta)
    refuses("delta must", ph.arrays.mu_of_epsilon, 1.0, delta)


def test_a_bounded_range_is_concentrated() -> None:
    """[CR21]: exact Renyi divergences of two distributions whose ratio has range eta."""
    for eta in (0.1, 1.0, 4.0):
        rho, tightest = ph.arrays.rho_of_range(eta), 0.0
        for p in np.linspace(0.001, 0.999, 300):  # the extreme pairs have two points
            q = p * math.exp(eta) / (1 - p + p * math.exp(eta))
            for order in (1.0001, 1.5, 2.0, 8.0, 64.0):
                pairs = np.log([(p, q), (1 - p, 1 - q)])
                terms = pairs @ [order, 1 - order]
                divergence = np.logaddexp(*terms) / (order - 1)
                assert divergence <= order * rho * (1 + 1e-9)
                tightest = max(tightest, divergence / (order * rho))
        assert tightest > 0.6
        assert tightest > 0.9 or eta > 0.5


def test_a_range_of_half_is_caught() -> None:
    """Control: rho of half the range is exceeded by the pair above."""
    p, eta = 0.3775, 1.0
    q = p * math.exp(eta) / (1 - p + p * math.exp(eta))
    divergence = sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)))
    assert ph.arrays.rho_of_range(eta / 2) < divergence <= ph.arrays.rho_of_range(eta)


def test_rho_is_not_rounded_down() -> None:
    for loss_range, draws, sides in itertools.product((0.1, 0.15, 1 / 3, 1e-9), (1, 3, 20), (1, 2)):
        relation = ("remove", "replace")[sides - 1]
        rho = ph.arrays.rho_of_range(loss_range, n_draws_released=draws, relation=relation)
        assert Fraction(repr(rho)) >= draws * (sides * Fraction(repr(loss_range))) ** 2 / 8


CASES = [(rho, delta) for rho in (1e-6, 1e-3, 0.02, 0.3, 5.0, 80.0) for delta in (1e-10, 1e-6, 0.1)]


@pytest.mark.parametrize(("rho", "delta"), CASES)
def test_epsilon_covers_the_gaussian_mechanism_and_is_below_the_simple_bound(
    rho: float, delta: float
) -> None:
    """A real Gaussian mechanism of this rho is mu-GDP exactly, mu = sqrt(2 rho)."""
    found = conversions.epsilon_of_zcdp(rho, delta)
    assert 0 <= found <= conversions.epsilon_of_rho(rho, delta)
    assert conversions.delta_of_mu(math.sqrt(2 * rho), found) <= delta
    orders = [1 + math.exp(k / 200) for k in range(-2000, 4000)]
    by_hand = min(a * rho - math.log(a * delta) / (a - 1) + math.log(1 - 1 / a) for a in orders)
    assert found == pytest.approx(max(by_hand, 0.0), rel=1e-4, abs=1e-6)


@pytest.mark.usefixtures("opendp")
@pytest.mark.parametrize(("rho", "delta"), CASES[3:])
def test_opendp_says_the_same(rho: float, delta: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    made = space >> dp.m.then_gaussian(scale=math.sqrt(1 / (2 * rho)))
    own = dp.c.make_zCDP_to_approxDP(made).map(1.0).epsilon(delta)
    assert conversions.epsilon_of_zcdp(rho, delta) == pytest.approx(own, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.1])
def test_rho_is_the_largest_that_is_allowed(epsilon: float, delta: float) -> None:
    rho = conversions.rho_of_zcdp(epsilon, delta)
    assert conversions.epsilon_of_zcdp(0, delta) == 0
    assert conversions.epsilon_of_zcdp(rho, delta) <= epsilon
    assert conversions.epsilon_of_zcdp(rho * 1.0001, delta) > epsilon


def test_charges_of_gaussian_noise_add_by_rho() -> None:
    rho = conversions.rho_of_zcdp(1.0, 1e-6)
    one = of_strict(1.0, rho=rho, delta=1e-6)
    assert (one.epsilon, one.delta, one.accounting, one.kind) == (1.0, 1e-6, "zcdp", "strict")
    assert one.public()["spent"]["rho"] == rho
    assert "bound" not in one.public()
    assert PrivacyCharge.from_dict(one.as_dict()) == one
    both = compose_charges([one, one], mechanism="both")
    due = conversions.epsilon_of_zcdp(2 * rho, 1e-6)
    assert both.epsilon == compose([one, one]) == pytest.approx(due, abs=1e-6)
    assert both.epsilon < 1.5
    of_three = of_strict(1.0, m=3, rho=rho, delta=1e-6)
    assert compose_charges([of_three] * 2, mechanism="both").rho == pytest.approx(6 * rho)
    # A pure charge adds its epsilon, or, in one charge, the rho that it is worth.
    pure = of_strict(0.1)
    assert compose([one, pure]) == pytest.approx(1.1)
    mixed = compose_charges([one, pure], mechanism="mixed")
    assert mixed.spent.rho == pytest.approx(rho)
    assert mixed.spent.rho_of_pure == pytest.approx(0.1**2 / 2)
    assert mixed.delta == 1e-6


def test_what_is_stated_covers_draws_together() -> None:
    """Exact delta of m draws of a two-point mechanism of range eta, at the stated epsilon."""
    eta, m, delta = 1.0, 8, 0.05
    p = 1 / (1 + math.exp(eta / 2))
    epsilon = ph.arrays.epsilon_of_rho(ph.arrays.rho_of_range(eta, n_draws_released=m), delta)
    assert epsilon < ph.arrays.epsilon_of_range(eta, n_draws_released=m)
    exact = 0.0
    for hits in range(m + 1):
        one, other = (math.comb(m, hits) * r**hits * (1 - r) ** (m - hits) for r in (p, 1 - p))
        exact += max(one - math.exp(epsilon) * other, 0.0)
    assert exact <= delta
