"""What changed sources of accounting, weights and risk showed to be untested.

`python -m benchmarks.mutation` makes the changes; each test here kills some that survived.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.errors import InvalidInput
from pyhybrid.privacy.bounds import bounds_of, lipschitz_bounds, quantile_type7
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.privacy.count_risk import pairwise_risk, radius_risk
from pyhybrid.privacy.epsilon import (
    ASYMPTOTIC_LOCAL,
    STRICT,
    bound_of_epsilon,
    epsilon_of_bound,
    round_up,
)
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weights import count_weights, reweight, weights_from_lipschitz
from tests.privacy.test_epsilon import charge

# --- One charge ---------------------------------------------------------------------------------


def test_the_bound_is_not_shown() -> None:
    assert "bound" not in repr(charge())
    assert "epsilon=15.0" in repr(charge())


def test_a_charge_has_converged_unless_it_says_otherwise() -> None:
    assert charge().converged is True


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "loose", "n_draws": None}, "kind must"),
        ({"relation": "swap", "draw_quantile": 2.0}, "relation must"),
        ({"draw_quantile": 0.0}, "draw_quantile must"),
        ({"n_synthetic": -1}, "n_synthetic must"),
        ({"n_draws_released": 0, "n_draws": 0}, "n_draws_released must"),
    ],
)
def test_the_first_wrong_field_is_named(changes: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        charge(**changes)


def test_rounding_needs_a_kind_it_knows() -> None:
    with pytest.raises(InvalidInput, match="kind must"):
        round_up(1.0, kind="loose")


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({}, 2.5),
        ({"relation": "replace"}, 2.5),
        ({"density_above_one": True}, 2.5),
        ({"relation": "replace", "density_above_one": True}, 1.25),
        ({"safety_factor": 1.25}, 2.0),
        ({"relation": "replace", "density_above_one": True, "safety_factor": 1.25}, 1.0),
    ],
)
def test_bound_of_epsilon_by_hand_and_back(options: dict, bound: float) -> None:
    assert bound_of_epsilon(5.0, **options) == bound
    assert epsilon_of_bound(bound, **options) == 5.0


# --- Composed charges ---------------------------------------------------------------------------


def part(bound: float = 2.0, **changes: object) -> PrivacyCharge:
    """A charge of one draw whose epsilon is what its bound costs."""
    price = {k: changes[k] for k in ("safety_factor", "density_above_one", "relation", "kind")
             if k in changes}  # fmt: skip
    epsilon = epsilon_of_bound(bound, **price)
    fields = {"bound": bound, "epsilon": epsilon, "n_draws_released": 1, "n_synthetic": 1}
    return charge(**{**fields, **changes})


def whole(*parts: PrivacyCharge, **options: object) -> PrivacyCharge:
    return compose_charges(parts, mechanism="SequentialSynthesis", **options)


def test_bounds_of_one_price_add() -> None:
    found = whole(part(1.0), part(2.0))
    assert (found.bound, found.epsilon, found.kind) == (3.0, 6.0, ASYMPTOTIC_LOCAL)
    assert found.mechanism == "SequentialSynthesis"


def test_bounds_of_unlike_prices_are_brought_to_the_largest() -> None:
    first = part(2.0, relation="replace", safety_factor=1.05)
    second = part(3.0, relation="replace", density_above_one=True)
    found = whole(first, second)
    # (2 x 1.05 x 2 + 3 x 1 x 4) / (4 x 1.05)
    assert found.bound == pytest.approx(16.2 / 4.2, rel=1e-15)
    assert (found.safety_factor, found.density_above_one) == (1.05, True)
    assert found.epsilon == 16.2
    # Under "remove" a density above 1 costs no more.
    assert whole(part(2.0), part(3.0, density_above_one=True)).bound == 5.0


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=4), st.sampled_from([1.0, 1.05, 1.1]))
def test_the_composed_bound_is_the_exact_one_or_next_below(
    bounds: list[float], factor: float
) -> None:
    parts = [part(bounds[0], safety_factor=factor), *map(part, bounds[1:])]
    exact = sum(
        Fraction(repr(c.bound)) * Fraction(repr(c.safety_factor)) for c in parts
    ) / Fraction(repr(factor))
    found = whole(*parts).bound
    assert Fraction(repr(found)) <= exact
    assert Fraction(found) >= exact - 2 * Fraction(math.ulp(found))


def test_the_weakest_part_speaks_for_the_whole() -> None:
    found = whole(
        part(n_draws=4000, draw_quantile=0.99, converged=True),
        part(n_draws=100, draw_quantile=0.95, converged=False),
    )
    assert (found.n_draws, found.draw_quantile, found.converged) == (100, 0.95, False)
    assert whole(part(), part()).converged is True


def test_each_sentence_once_in_its_order() -> None:
    found = whole(part(assumes=("a", "b")), part(assumes=("b", "c"), not_covered=("d",)))
    assert found.assumes == ("a", "b", "c")
    assert found.not_covered == ("the predictors", "d")


def test_strict_parts_make_a_strict_whole_and_need_no_draws() -> None:
    strict = part(kind=STRICT, n_draws=None)
    found = whole(strict, strict)
    assert (found.kind, found.n_draws, found.epsilon) == (STRICT, None, 8.0)
    assert found.assumes == strict.assumes


def test_strict_and_local_together_are_local_and_say_so() -> None:
    strict = part(kind=STRICT, n_draws=None)
    with pytest.raises(InvalidInput, match="of one kind"):
        whole(strict, part())
    found = whole(strict, part(), allow_unlike=True)
    assert (found.kind, found.n_draws) == (ASYMPTOTIC_LOCAL, 4000)
    assert found.assumes[-1].startswith("Strict charges of some columns")
    assert len(found.assumes) == 2


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("relation", {"relation": "replace"}),
        ("n_synthetic", {"n_synthetic": 2}),
        ("n_draws_released", {"n_draws_released": 2, "epsilon": 8.0}),
    ],
)
def test_parts_that_do_not_belong_together(name: str, changes: dict) -> None:
    with pytest.raises(InvalidInput, match=f"agree in {name}"):
        whole(part(), part(**changes))


def test_nothing_cannot_be_composed() -> None:
    with pytest.raises(InvalidInput, match="at least one charge"):
        whole()
    assert np.isfinite(whole(part()).bound)


# --- Bounds -------------------------------------------------------------------------------------


def test_efficiency_at_its_ends() -> None:
    assert lipschitz_bounds([[-1.0, -np.inf]]).efficiency == 0.0
    assert lipschitz_bounds([[0.0, 0.0]]).efficiency == 1.0
    assert lipschitz_bounds([[-1.0, -3.0]]).efficiency == pytest.approx(2 / 3)
    assert lipschitz_bounds([[-0.25, -0.5]]).efficiency == 0.75


def test_streamed_bounds_keep_all_draws_by_default() -> None:
    blocks = [np.array([[-1.0], [-9.0]]), np.array([[-2.0], [-3.0]])]
    found = bounds_of(LogLik(make=lambda: blocks, row_of=np.array([1, 0, 1])), np.ones(3))
    assert (found.draw_quantile, found.overall) == (1.0, 9.0)
    assert found.kept_draws.tolist() == [True, True]
    assert found.by_record.tolist() == [3.0, 9.0, 3.0]


@pytest.mark.parametrize("f", [0.1 * 2.0**60, 0.1 * 2.0**900])
@pytest.mark.parametrize("n", [2, 3, 6, 7, 13])
def test_softmax_of_equal_bounds_is_half_though_their_mean_is_rounded(f: float, n: int) -> None:
    assert (weights_from_lipschitz([f] * n, transform="softmax") == 0.5).all()


def test_numbers_of_numpy_compose_as_their_own() -> None:
    own = part(np.float64(0.1), safety_factor=np.float64(1.05))
    assert whole(own, own).bound == 0.2


def test_the_composed_bound_of_small_parts_is_not_above_the_exact_one() -> None:
    rng = np.random.default_rng(1)
    for a, b in rng.uniform(0, 0.4, (300, 2)).round(3).tolist():
        found = whole(part(a, safety_factor=1.05), part(b)).bound
        assert Fraction(repr(found)) <= Fraction(repr(a)) + Fraction(repr(b)) / Fraction("1.05")


def test_defaults_of_count_weights_and_risks() -> None:
    assert count_weights([0.25, 1.0]).tolist() == [0.75, 0.0]
    y = [100.0, 115.0, 130.0]  # 15 of 100 is inside 20 per cent, 30 of 130 is not
    assert radius_risk(y).tolist() == pytest.approx([1 / 3, 0, 1 / 3])
    far = [1.0, 2.0, 10.0, 100.0]
    assert pairwise_risk(far).tolist() == pairwise_risk(far, radius=0.2).tolist()
    assert pairwise_risk(far).tolist() != pairwise_risk(far, radius=1.2).tolist()


def test_one_wrong_value_among_right_ones_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"record 1 is 1\.5"):
        count_weights([0.5, 1.5])
    with pytest.raises(InvalidInput, match="record 1 has no bound"):
        reweight([1.0, 1.0], [1.0, np.inf])


def test_records_without_a_bound_to_meet_go_to_one() -> None:
    assert reweight([0.5, 0.5, 0.0], [0.0, 1.0, 0.0], k=0.9).tolist() == [1.0, 0.45, 0.0]


@given(st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=12), st.sampled_from([0.5, 0.9]))
def test_bounds_of_single_precision_are_just_above(values: list[float], q: float) -> None:
    exact = -np.array(values).reshape(2, -1) if len(values) % 2 == 0 else -np.array([values])
    alpha = np.linspace(0.3, 1, exact.shape[1])
    own = lipschitz_bounds(exact, alpha, draw_quantile=q).overall
    single = lipschitz_bounds(exact.astype(np.float32), alpha, draw_quantile=q).overall
    assert own <= single <= own * (1 + 3 * float(np.finfo(np.float32).eps))


@pytest.mark.parametrize("value", [0.1, 0.7, 1.1, 3.3])
def test_a_quantile_between_equal_values_is_that_value(value: float) -> None:
    for probability in np.linspace(0.01, 0.99, 50):
        assert quantile_type7(np.full(4, value), float(probability)) == value
