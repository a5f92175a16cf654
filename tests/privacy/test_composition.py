"""Composed charges: bounds, kinds, sentences. Many strict draws at a public delta: enumeration with
asymmetric caps, controls, noise.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

import pyhybrid as ph
from pyhybrid.mechanisms.accounting.charge import with_bought
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose_charges, rho_of_strict
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT, epsilon_of_bound, epsilon_of_zcdp
from tests.privacy.enumerated import LOG_LIK, SUPPORT, databases, log_posterior
from tests.privacy.test_conversions import charge
from tests.refusals import refuses


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
    assert np.isfinite(whole(part()).bound)
    own = part(np.float64(0.1), safety_factor=np.float64(1.05))
    assert whole(own, own).bound == 0.2, "numbers of numpy compose as their own"


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


def test_mu_and_ranges_of_the_whole_have_the_safety_factors_of_their_parts() -> None:
    """Whatever factor the whole states: squares of factor times mu add, and factor times range."""
    own = {"accounting": "gaussian", "delta": 1e-6}
    parts = [
        part(20.0, epsilon=99.0, safety_factor=factor, mu=mu, loss_range=2 * mu, **own)
        for factor, mu in ((1.25, 0.3), (1.0, 0.4))
    ]
    found = whole(*parts)
    assert (found.safety_factor, found.accounting, found.delta) == (1.25, "gaussian", 1e-6)
    assert 1.25 * found.mu == pytest.approx(np.hypot(1.25 * 0.3, 0.4), rel=1e-12)
    assert 1.25 * found.loss_range == pytest.approx(1.25 * 0.6 + 0.8, rel=1e-12)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=4), st.sampled_from([1.0, 1.05, 1.1]))
def test_the_composed_bound_is_the_exact_one_or_next_below(bounds: list, factor: float) -> None:
    parts = [part(bounds[0], safety_factor=factor), *map(part, bounds[1:])]
    of_all = sum(Fraction(repr(c.bound)) * Fraction(repr(c.safety_factor)) for c in parts)
    exact = of_all / Fraction(repr(factor))
    found = whole(*parts).bound
    assert Fraction(repr(found)) <= exact
    assert Fraction(found) >= exact - 2 * Fraction(math.ulp(found))


def test_the_weakest_part_speaks_for_the_whole() -> None:
    weak = part(n_draws=100, draw_quantile=0.95, converged=False)
    found = whole(part(n_draws=4000, draw_quantile=0.99, converged=True), weak)
    assert (found.n_draws, found.draw_quantile, found.converged) == (100, 0.95, False)
    assert whole(part(), part()).converged is True
    # Each sentence once, in its order.
    found = whole(part(assumes=("a", "b")), part(assumes=("b", "c"), not_covered=("d",)))
    assert found.assumes == ("a", "b", "c")
    assert found.not_covered == ("the predictors", "d")


def test_strict_parts_make_a_strict_whole_and_need_no_draws() -> None:
    strict = part(kind=STRICT, n_draws=None)
    found = whole(strict, strict)
    assert (found.kind, found.n_draws, found.epsilon) == (STRICT, None, 8.0)
    assert found.assumes == strict.assumes
    # Strict and local together are local, and say so.
    refuses("of one kind", whole, strict, part())
    found = whole(strict, part(), allow_unlike=True)
    assert (found.kind, found.n_draws) == (ASYMPTOTIC_LOCAL, 4000)
    assert found.assumes[-1].startswith("Strict charges of some columns")
    assert len(found.assumes) == 2


def test_parts_that_do_not_belong_together() -> None:
    refuses("at least one charge", whole)
    for name, other in {"relation": "replace", "n_synthetic": 2, "n_draws_released": 2}.items():
        refuses(f"agree in {name}", whole, part(), part(**{"epsilon": 8.0, name: other}))


CENTER = poisson.logpmf(SUPPORT, 5.0)
ORDERS = np.array([1.0001, 1.5, 2.0, 4.0, 16.0])
STEP = 1e-3  # of losses, which are rounded up to it
DELTA = 1e-3


def neighbors(cap: Any, relation: str) -> tuple[np.ndarray, np.ndarray]:
    """Log posteriors of all neighbors of databases of two records, both ways: (grid, pairs)."""
    held = {
        rows: log_posterior(
            ph.arrays.center_and_censor(LOG_LIK[:, list(rows)], CENTER[list(rows)], cap=cap)
        )
        for n in (1, 2)
        for rows in databases(n)
    }
    pairs = []
    for rest in databases(1):
        own = [held[tuple(sorted((*rest, x)))] for x in SUPPORT]
        others = [held[rest]] if relation == "remove" else own
        pairs += [(p, q) for p in own for q in others] + [(q, p) for p in own for q in others]
    return np.array([p for p, _ in pairs]).T, np.array([q for _, q in pairs]).T


def divergences(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Renyi divergences over their order, the largest of all pairs, shape (orders,)."""
    return np.array([
        float((np.logaddexp.reduce(a * p + (1 - a) * q, axis=0) / (a - 1)).max()) / a
        for a in ORDERS
    ])  # fmt: skip


def delta_of_draws(p: np.ndarray, q: np.ndarray, m: int, epsilon: float) -> float:
    """Upper end of the delta of m independent draws at epsilon, one pair (grid,), one way."""
    steps = np.ceil((p - q) / STEP).astype(int)
    low = steps.min()
    mass = np.bincount(steps - low, weights=np.exp(p))
    size = 1 << int(m * mass.size).bit_length()
    together = np.fft.irfft(np.fft.rfft(mass, size) ** m, size)
    loss = STEP * (m * low + np.arange(size))
    above = loss > epsilon
    return float((together[above] * -np.expm1(epsilon - loss[above])).sum())


CAPS = [0.5, (0.4, 0.5), (0.2, 1.0), (1.0, 0.2), (0.0, 0.7)]


@pytest.mark.parametrize("relation", ["remove", "replace"])
@pytest.mark.parametrize("cap", CAPS)
def test_rho_of_a_cap_holds_for_every_neighbor(cap: Any, relation: str) -> None:
    rho = ph.arrays.rho_of_range(ph.arrays.range_of_censoring(cap), relation=relation)
    found = divergences(*neighbors(cap, relation))
    assert 0.3 * rho < found.max() <= rho
    if relation == "remove" and cap in (0.5, (0.4, 0.5)):  # the control
        assert found.max() > ph.arrays.rho_of_range(np.max(cap)), "one side alone is too little"


@pytest.mark.parametrize(("cap", "relation"), [((0.2, 0.4), "remove"), ((0.1, 0.2), "replace")])
def test_what_many_draws_are_charged_covers_them_together(cap: Any, relation: str) -> None:
    """The exact delta of 20 draws, of the pair of neighbors that they tell apart best."""
    m, span = 20, ph.arrays.range_of_censoring(cap)
    cost = ph.arrays.range_epsilon(span, delta=DELTA, n_draws_released=m, relation=relation)
    assert cost.epsilon < 0.6 * cost.pure
    assert cost.pure == ph.arrays.epsilon_of_censoring(cap, n_draws_released=m, relation=relation)
    p, q = neighbors(cap, relation)
    worst = int((np.exp(p) * (p - q)).sum(axis=0).argmax())
    p, q = p[:, worst], q[:, worst]
    assert 0 < delta_of_draws(p, q, m, cost.epsilon) <= DELTA
    half = ph.arrays.range_epsilon(span / 2, delta=DELTA, n_draws_released=m, relation=relation)
    assert delta_of_draws(p, q, m, half.epsilon) > DELTA  # Control


def censored(n_draws_released: int = 1, **changes: Any) -> PrivacyCharge:
    own: dict[str, Any] = {
        "mechanism": "Censored", "kind": "strict", "relation": "remove", "cap": 0.25, "bound": 0.25,
        "density_above_one": True, "n_synthetic": n_draws_released,
        "n_draws_released": n_draws_released, **changes,
    }  # fmt: skip
    return PrivacyCharge.counted(**own)


def test_draws_of_censored_posteriors_count_by_their_range() -> None:
    twenty, replaced = {"n_draws_released": 20}, censored(20, relation="replace")
    assert rho_of_strict(censored(20).public()) == 0.625 == ph.arrays.rho_of_range(0.5, **twenty)
    assert replaced.epsilon == 20
    of_range = ph.arrays.rho_of_range(0.5, **twenty, relation="replace")
    assert rho_of_strict(replaced.public()) == of_range
    assert ph.compose([censored(20)]) == 10
    cost = ph.compose([censored(20)], delta=1e-6)
    assert cost == pytest.approx(ph.arrays.epsilon_of_rho(0.625, 1e-6), abs=1e-6)
    assert cost == ph.compose([censored() for _ in range(20)], delta=1e-6)
    assert ph.compose([censored(), censored()], delta=1e-6) == 1  # few: pure epsilon is less
    assert ph.compose([], delta=1e-6) == 0


def test_noise_and_what_is_beyond_the_cap_count_by_epsilon() -> None:
    assert rho_of_strict(of_strict(0.5).public()) == ph.arrays.rho_of_epsilon(0.5) == 0.125
    bought = censored(bound=0.5)  # half a nat more, for a center
    assert bought.epsilon == 1
    assert rho_of_strict(bought.public()) == pytest.approx(0.5**2 / 8 + 0.5**2 / 2)
    # Control: the whole counted by range would be half of that.
    assert ph.arrays.rho_of_range(1.0) < rho_of_strict(bought.public())


def of_strict(epsilon: float, m: int = 1, **options: Any) -> PrivacyCharge:
    return PrivacyCharge.strict(
        mechanism="noise", relation="remove", epsilon=epsilon, n_synthetic=m, n_draws_released=m,
        **options,
    )  # fmt: skip


PARTS = {  # of m sets: the charge of a part, and its rho by its own formula
    "draws": lambda x, m: (censored(m, cap=x, bound=x), m * (2 * x) ** 2 / 8),
    "histograms": lambda x, m: (of_strict(x, m), m * x**2 / 2),
    "center": lambda x, m: (
        with_bought(censored(m, cap=0.005, bound=0.005), of_strict(x)),
        m * 0.01**2 / 8 + x**2 / 2,
    ),
    "gaussian": lambda x, m: (of_strict(x, m, rho=x**2, delta=1e-6), m * x**2),
}


@given(
    st.lists(st.tuples(st.sampled_from([*PARTS]), st.floats(1e-3, 2)), min_size=1, max_size=4),
    st.integers(1, 60),
)
def test_rho_of_a_composition_is_that_of_its_parts_or_above(parts: list, m: int) -> None:
    charges, rhos = zip(*(PARTS[name](x, m) for name, x in parts), strict=True)
    once = whole(*charges)
    for found, times in ((once, 1), (whole(once, once), 2), (whole(whole(once, once), once), 3)):
        rho = rho_of_strict(found.public())
        assert times * math.fsum(rhos) <= rho * (1 + 1e-12)
        assert rho <= times * math.fsum(rhos) * (1 + 1e-4) + 1e-5 * m, "epsilons are rounded up"
        stored = {name: value for name, value in found.public().items() if name != "rho"}
        assert rho_of_strict(stored) >= rho * (1 - 1e-9) or found.accounting == "zcdp"


def test_what_was_bought_once_is_not_divided_by_the_draws() -> None:
    """The control: as draws that are alike, as before, it would be a sixth of what it is."""
    one, rho = PARTS["center"](0.5, 50)
    assert 50 * (whole(one, one).epsilon / 50) ** 2 / 2 < 2 * rho / 6


def test_a_delta_is_for_strict_charges() -> None:
    local = censored(kind="asymptotic local", n_draws=100)
    refuses("delta is for strict charges", ph.compose, [local], delta=1e-6)
    refuses("delta must lie in", ph.compose, [censored()], delta=0)
    unlike = [censored(), censored(relation="replace")]
    refuses("of one kind, relation and unit", ph.compose, unlike, delta=1e-6)


def scores(mu: float, m: int = 1, **options: Any) -> PrivacyCharge:
    return PrivacyCharge.strict(
        mechanism="ClippedScores", mu=mu, relation="remove", n_synthetic=m, n_draws_released=m,
        **{"delta": 1e-6, **options},
    )  # fmt: skip


def test_strict_gaussian_charges_compose_by_squares_of_mu() -> None:
    mu = ph.arrays.mu_of_epsilon(1.0, 1e-6)
    found = scores(mu, m=20)
    assert (found.epsilon, found.kind, found.mu) == (1.0, STRICT, mu)
    assert found.epsilon == scores(mu).epsilon  # draws are post-processing
    assert PrivacyCharge.from_dict(found.as_dict()) == found
    three = 3 * [scores(0.3)]
    expected = ph.arrays.epsilon_of_mu(0.3 * 3**0.5, 1e-6)
    assert ph.compose(three) == ph.compose(three, delta=1e-6) == pytest.approx(expected, abs=2e-6)
    composed = compose_charges(three, mechanism="x")
    assert (composed.kind, composed.accounting) == (STRICT, "gaussian")
    assert composed.epsilon == pytest.approx(expected, abs=2e-6)
    refuses("delta", compose_charges, [*three, scores(0.3, delta=1e-7)], mechanism="x")
    refuses("delta", PrivacyCharge.strict, mechanism="x", mu=0.3, relation="remove")


def test_mu_adds_to_pure_and_to_concentrated_charges_by_rho() -> None:
    assert rho_of_strict(scores(0.3).public()) == pytest.approx(0.045)
    noisy = of_strict(0.2, rho=0.02, delta=1e-6)
    both = [scores(0.3), noisy]
    expected = epsilon_of_zcdp(0.065, 1e-6)
    assert ph.compose(both) == pytest.approx(expected, abs=2e-6)
    assert compose_charges(both, mechanism="x").epsilon == pytest.approx(expected, abs=2e-6)
    pure = [scores(0.3), of_strict(0.1)]
    added = 0.1 + scores(0.3).epsilon
    assert ph.compose(pure) <= round(added, 6)
