"""Composed charges: bounds, kinds, sentences."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT, epsilon_of_bound
from tests.privacy.test_epsilon import charge


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


def test_numbers_of_numpy_compose_as_their_own() -> None:
    own = part(np.float64(0.1), safety_factor=np.float64(1.05))
    assert whole(own, own).bound == 0.2


def test_the_composed_bound_of_small_parts_is_not_above_the_exact_one() -> None:
    rng = np.random.default_rng(1)
    for a, b in rng.uniform(0, 0.4, (300, 2)).round(3).tolist():
        found = whole(part(a, safety_factor=1.05), part(b)).bound
        assert Fraction(repr(found)) <= Fraction(repr(a)) + Fraction(repr(b)) / Fraction("1.05")
