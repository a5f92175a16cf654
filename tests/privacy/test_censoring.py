"""Re-centered censoring: strict for all databases of a grid, both relations; controls exceed. What
a cap is: its ends, its key, what it refuses. The clipping itself: tests/models.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson

import pyhybrid as ph
from pyhybrid.privacy.censoring import Cap
from tests.audits.enumeration import RELATIONS, largest_loss
from tests.privacy.enumerated import LOG_LIK, RATES, SUPPORT
from tests.refusals import refuses

CENTER = poisson.logpmf(SUPPORT, 5.0)
CAPS = [0.25, 0.5, 1.0, 2.0, (0.5, 0.0), (0.0, 0.5), (0.2, 1.0)]


def centered(x: np.ndarray, cap: Any) -> Any:
    """Clipped terms (grid, n) of a database of counts, about the frozen center."""
    return ph.arrays.center_and_censor(LOG_LIK[:, x], CENTER[x], cap=cap)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("cap", CAPS)
def test_the_charge_holds_for_every_neighbor_and_is_tight(cap: Any, relation: str) -> None:
    epsilon = ph.arrays.epsilon_of_censoring(cap, relation=relation)
    assert 0.75 * epsilon < largest_loss(lambda x: centered(x, cap), SUPPORT, relation) <= epsilon


@pytest.mark.parametrize("cap", [0.25, 1.0])
def test_without_a_center_a_discrete_outcome_costs_half(cap: float) -> None:
    def charged(relation: str) -> float:
        how: Any = {"relation": relation, "discrete_uncentered": True}
        return ph.arrays.epsilon_of_censoring(cap, **how)

    for relation in RELATIONS:
        found = largest_loss(lambda x: ph.arrays.censor(LOG_LIK[:, x], cap=cap), SUPPORT, relation)
        assert found <= charged(relation)
    # Control: the same charge for terms that have a center is exceeded.
    assert charged("remove") == cap < largest_loss(lambda x: centered(x, cap), SUPPORT, "remove")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("control", ["center", "region", "cap"])
def test_what_depends_on_all_records_is_caught(control: str, relation: str) -> None:
    """Controls: center, region of theta, or cap computed from the database itself."""
    cap = 0.25

    def terms(x: np.ndarray) -> Any:
        mean = max(float(x.mean()), 0.1)
        if control == "center":
            center = poisson.logpmf(x, x.max() + 0.1)
            return ph.arrays.center_and_censor(LOG_LIK[:, x], center, cap=cap)
        if control == "cap":
            return centered(x, cap * (1 + mean))
        return centered(x, cap) - np.where(np.abs(np.log(RATES / mean)) > 1.5, 50, 0)[:, None]

    charged = ph.arrays.epsilon_of_censoring(cap, relation=relation)
    assert largest_loss(terms, SUPPORT, relation) > charged


def test_nothing_that_comes_in_leaves_the_caps() -> None:
    log_lik = np.array([[np.nan, np.inf, -np.inf, 3.0, 1e308], [-1.0, -2.0, -3.0, np.nan, -1e308]])
    terms = ph.arrays.center_and_censor(log_lik, [1.0, -1e308, 1e308, 0.0, -1e308], cap=(0.5, 0.25))
    assert terms.min() == -0.5
    assert terms.max() == 0.25
    np.testing.assert_array_equal(terms[0, :3], [-0.5, 0.25, -0.5])
    assert not ph.arrays.center_and_censor(log_lik, alpha=np.zeros(5), cap=1.0).any()


def test_epsilon_of_a_cap_by_hand() -> None:
    for halves, relation, discrete in (
        (2, "remove", False), (1, "remove", True), (4, "replace", False), (2, "replace", True),
    ):  # fmt: skip
        how = {"relation": relation, "discrete_uncentered": discrete}
        assert ph.arrays.epsilon_of_censoring(1 / halves, **how) == 1.0
    assert ph.arrays.epsilon_of_censoring((0.1, 0.2), n_draws_released=3) == 0.9


@pytest.mark.parametrize("cap", [0, -1, (0, 0), (1, -1), (1, 2, 3), (1, np.inf), np.nan])
def test_wrong_caps(cap: Any) -> None:
    refuses("cap must be", ph.arrays.center_and_censor, [[1.0]], cap=cap)


def test_a_number_is_the_symmetric_cap_and_a_cap_is_itself() -> None:
    plain = Cap.of(1.5)
    assert (plain.below, plain.above, plain.span) == (1.5, 1.5, 3.0)
    assert plain.n_units == 0
    assert Cap.of(plain) is plain


def test_what_is_more_than_one_number_has_a_key_of_its_own() -> None:
    caps = [
        Cap.of(1.0), Cap(below=0.5, above=1.0), Cap(below=1.0, above=1.0, reference=np.zeros(3)),
        Cap(below=1.0, above=1.0, reference=np.array([0.0, 0.0, 1.0])),
        Cap(below=1.0, above=1.0, unit=np.array([0, 1, 1])),
        Cap(below=1.0, above=1.0, unit=np.array([0, 0, 1])),
    ]  # fmt: skip
    assert len({cap.key for cap in caps}) == len(caps)
    assert caps[4].n_units == 2
    assert "reference" not in repr(caps[3]), "it may be confidential"


def test_ends_must_be_finite_and_centers_have_a_likelihood() -> None:
    for below in (0.0, -1.0, np.nan, np.inf):
        refuses("below must be", Cap, below=below, above=1.0)
    never = np.array([0.0, -1.0, -np.inf])
    refuses("record 2 has a likelihood of 0 at the", Cap, below=1.0, above=1.0, reference=never)
