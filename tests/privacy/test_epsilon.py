"""Epsilon is rounded up exactly, charges cannot understate it, unlike kinds do not add."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT, epsilon_of_bound, round_up

UNIT = {ASYMPTOTIC_LOCAL: Fraction(1, 100), STRICT: Fraction(1, 1_000_000)}
KIND = st.sampled_from(sorted(UNIT))
BOUND = st.one_of(
    st.floats(0, 1e5), st.integers(0, 10**6).map(lambda k: k / 1000), st.sampled_from([0.15, 1.1])
)


def exact(number: float) -> Fraction:
    """The number a reader sees: its shortest decimal form."""
    return Fraction(repr(number))


def charge(**changes: object) -> PrivacyCharge:
    fields = {
        "mechanism": "LipschitzWeighted",
        "epsilon": 15.0,
        "kind": ASYMPTOTIC_LOCAL,
        "relation": "remove",
        "n_synthetic": 3,
        "n_draws_released": 3,
        "bound": 2.5,
        "n_draws": 4000,
        "assumes": ("the sampler has converged",),
        "not_covered": ("the predictors",),
    }
    return PrivacyCharge(**{**fields, **changes})


# --- Rounding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "options", "expected"),
    [
        (0.15, {}, 0.3),  # in binary 2 x 0.15 is above 0.3 by nothing, 6 x 0.15 is not
        (0.15, {"n_draws_released": 3}, 0.9),  # 3 * 0.3 is 0.8999... in binary
        (0.35, {"n_draws_released": 3}, 2.1),  # 6 * 0.35 is 2.0999999999999996
        (1.1, {"n_draws_released": 3}, 6.6),  # 3 * 2.2 is 6.6000000000000005
        (0.1505, {}, 0.31),  # 0.301
        (0.150000001, {}, 0.31),
        (0.150000001, {"kind": STRICT}, 0.300001),  # 0.300000002
        (0.1505, {"kind": STRICT}, 0.301),
        (1e-300, {}, 0.01),
        (0.0, {}, 0.0),
        (2.5, {"n_draws_released": 20}, 100.0),
        (2.5, {"relation": "replace"}, 5.0),
        (2.5, {"relation": "replace", "density_above_one": True}, 10.0),
        (2.5, {"relation": "remove", "density_above_one": True}, 5.0),
        (2.5, {"safety_factor": 1.05}, 5.25),
        (2.0, {"safety_factor": 1.1, "n_draws_released": 3}, 13.2),
        (1e27, {}, 2e27),
    ],
)
def test_epsilon_worked_out_by_hand(bound: float, options: dict, expected: float) -> None:
    assert epsilon_of_bound(bound, **options) == expected


@given(
    BOUND,
    st.integers(1, 100),
    st.sampled_from(["remove", "replace"]),
    st.booleans(),
    st.one_of(st.just(1.0), st.floats(1, 1.1)),
    KIND,
)
def test_epsilon_is_the_least_charge_above_the_exact_cost(
    bound: float, draws: int, relation: str, dense: bool, factor: float, kind: str
) -> None:
    epsilon = epsilon_of_bound(
        bound,
        n_draws_released=draws,
        relation=relation,
        density_above_one=dense,
        safety_factor=factor,
        kind=kind,
    )
    sides = 4 if (relation, dense) == ("replace", True) else 2
    cost = sides * draws * exact(factor) * exact(bound)
    assert cost <= exact(epsilon) < cost + UNIT[kind]
    assert (exact(epsilon) / UNIT[kind]).denominator == 1


def test_the_check_catches_rounding_to_nearest_and_binary_arithmetic() -> None:
    assert exact(round(2 * 0.1505, 2)) < 2 * exact(0.1505)
    assert exact(3 * (2 * 0.35)) < 6 * exact(0.35)


@given(st.floats(0, 1e6), KIND)
def test_round_up(value: float, kind: str) -> None:
    assert exact(value) <= exact(round_up(value, kind=kind)) < exact(value) + UNIT[kind]


@given(st.integers(0, 10**6))
def test_rounding_is_idempotent(cents: int) -> None:
    assert round_up(cents / 100) == cents / 100
    assert round_up(cents / 100, kind=STRICT) == cents / 100


@pytest.mark.parametrize(
    ("bound", "options", "message"),
    [
        (-0.1, {}, "bound must be >= 0"),
        (float("inf"), {}, "bound"),
        (float("nan"), {}, "bound"),
        ("1", {}, "bound"),
        (1.0, {"n_draws_released": 0}, "n_draws_released"),
        (1.0, {"n_draws_released": 1.5}, "n_draws_released"),
        (1.0, {"relation": "add"}, "remove, replace"),
        (1.0, {"kind": "exact"}, "asymptotic local, strict"),
        (1.0, {"safety_factor": 0.99}, "safety_factor"),
        (1.0, {"safety_factor": float("nan")}, "safety_factor"),
    ],
)
def test_bad_input_of_epsilon(bound: object, options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        epsilon_of_bound(bound, **options)


# --- Charges ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 14.99},
        {"n_draws_released": 4},
        {"bound": 2.501},
        {"safety_factor": 1.01},
        {"relation": "replace", "density_above_one": True},
    ],
)
def test_a_charge_refuses_to_understate_epsilon(changes: dict) -> None:
    assert charge().epsilon == 15.0, "the same charge without the change is accepted"
    with pytest.raises(InvalidInput, match="epsilon must be at least"):
        charge(**changes)


@pytest.mark.parametrize("epsilon", [float("nan"), float("inf"), None, "15"])
def test_a_charge_needs_a_finite_epsilon(epsilon: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be a finite number"):
        charge(epsilon=epsilon)


def test_a_charge_may_overstate() -> None:
    assert charge(epsilon=20.0).epsilon == 20.0
    assert charge(n_synthetic=20, n_draws_released=1, epsilon=5.0).n_synthetic == 20


@pytest.mark.parametrize("changes", [{"kind": "local"}, {"relation": "swap"}, {"bound": -1.0}])
def test_a_charge_checks_its_words(changes: dict) -> None:
    with pytest.raises(InvalidInput):
        charge(**changes)


def test_a_charge_cannot_be_edited() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        charge().epsilon = 0.1


def test_public_part_lacks_the_bound_and_nothing_else() -> None:
    names = {field.name for field in dataclasses.fields(PrivacyCharge)}
    secret = 2.4375
    public = charge(bound=secret, mu=0.25, mu_standard_error=0.01, loss_range=1.5).public()
    of_a_support = {"support", "bound_present", "loss_range_present", "mu_present"}
    # no unit, no support, no Gaussian noise
    without = {"bound", "loss_range", "range_failing", "seal", "unit", "rho", *of_a_support}
    assert names - set(public) == without
    assert set(public) - names == {"epsilon_lipschitz", "epsilon_range"}
    of_old = {"accounting", "delta", "mu", "mu_standard_error", "loss_range", "range_failing",
              "rho"}  # fmt: skip
    assert names - set(charge().public()) == {"bound", "seal", "unit", *of_old, *of_a_support}
    assert str(secret) not in json.dumps(public)
    assert str(secret) in json.dumps(charge(bound=secret).as_dict())


def test_dict_round_trip_through_json() -> None:
    original = charge(cap=2.5, draw_quantile=0.99, converged=False)
    again = PrivacyCharge.from_dict(json.loads(json.dumps(original.as_dict())))
    assert again == original
    assert again.assumes == ("the sampler has converged",)


def test_from_dict_refuses_what_is_no_charge() -> None:
    fields = charge().as_dict()
    missing = {name: value for name, value in fields.items() if name != "epsilon"}
    for wrong in (missing, {**fields, "share": 0.1}, {}, charge().public()):
        with pytest.raises(InvalidInput, match="not a privacy charge"):
            PrivacyCharge.from_dict(wrong)
    with pytest.raises(InvalidInput, match="epsilon must be at least"):
        PrivacyCharge.from_dict({**fields, "epsilon": 1.0})


# --- Noise calibrated to epsilon ------------------------------------------------------------------


def test_a_strict_charge_states_what_its_draws_cost() -> None:
    stated = PrivacyCharge.strict(
        mechanism="PerturbedHistogram", epsilon=0.35, relation="replace", n_synthetic=3
    )
    assert (stated.epsilon, stated.bound, stated.kind) == (0.35, 0.175, STRICT)
    assert stated.n_draws is None
    each = PrivacyCharge.strict(
        mechanism="PerturbedHistogram", epsilon=0.35, relation="replace", n_draws_released=3
    )
    assert each.epsilon == 1.05
    assert each.n_synthetic == 0
    with pytest.raises(InvalidInput, match="epsilon must be at least"):
        dataclasses.replace(each, epsilon=1.0)
    assert PrivacyCharge.from_dict(json.loads(json.dumps(each.as_dict()))) == each


@pytest.mark.parametrize("epsilon", [0, -1.0, float("inf"), "1", None])
def test_a_strict_charge_needs_an_epsilon_above_zero(epsilon: Any) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be"):
        PrivacyCharge.strict(mechanism="laplace_sum", epsilon=epsilon, relation="remove")


@given(st.floats(1e-6, 1e3))
def test_a_strict_charge_is_epsilon_rounded_up(epsilon: float) -> None:
    stated = PrivacyCharge.strict(mechanism="laplace_sum", epsilon=epsilon, relation="remove")
    assert exact(epsilon) * (1 - Fraction(1, 10**15)) <= exact(stated.epsilon)
    assert exact(stated.epsilon) <= exact(epsilon) + 2 * UNIT[STRICT]


def test_only_a_strict_charge_goes_without_posterior_draws() -> None:
    assert charge(kind=STRICT, n_draws=None).n_draws is None
    with pytest.raises(InvalidInput, match="n_draws"):
        charge(n_draws=None)


# --- Composition --------------------------------------------------------------------------------


def test_like_charges_add_exactly() -> None:
    tenth = charge(bound=0.05, n_draws_released=1, epsilon=0.1)
    assert sum([0.1] * 3) != 0.3
    assert compose([tenth] * 3) == 0.3
    assert compose([charge(), tenth]) == 15.1
    assert compose([charge()]) == 15.0
    assert compose([]) == 0.0


@pytest.mark.parametrize("changes", [{"kind": STRICT}, {"relation": "replace"}])
def test_unlike_charges_add_only_when_told(changes: dict) -> None:
    pair = [charge(), charge(**changes)]
    with pytest.raises(InvalidInput, match=r"one kind, relation and unit.*allow_unlike"):
        compose(pair)
    assert compose(pair, allow_unlike=True) == 30.0
    assert compose([pair[1]] * 2) == 30.0


@given(st.lists(st.integers(0, 10**5), max_size=12))
def test_composition_equals_the_exact_sum(cents: list[int]) -> None:
    charges = [
        charge(bound=c / 400, n_draws_released=1, epsilon=c / 100) for c in cents if c % 4 == 0
    ]
    total = sum((Fraction(c, 100) for c in cents if c % 4 == 0), Fraction(0))
    assert exact(compose(charges)) == total


@pytest.mark.parametrize("flag", [1, 0, "True", None, np.float64(1)])
def test_a_flag_is_true_or_false(flag: Any) -> None:
    with pytest.raises(InvalidInput, match="density_above_one must be True or False"):
        epsilon_of_bound(1.0, relation="replace", density_above_one=flag)
    assert epsilon_of_bound(1.0, relation="replace", density_above_one=np.True_) == 4.0


def test_a_negative_epsilon_is_not_rounded() -> None:
    with pytest.raises(InvalidInput, match=r"epsilon must be >= 0: found -0\.001"):
        round_up(-0.001)
    assert round_up(0.0) == 0.0


def test_an_epsilon_beyond_any_float_is_refused() -> None:
    with pytest.raises(InvalidInput, match="epsilon must be a number that floats can hold"):
        epsilon_of_bound(1e308)
