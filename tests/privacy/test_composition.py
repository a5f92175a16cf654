"""Composed charges: bounds, kinds, sentences. Many strict draws at a public delta: enumeration with
asymmetric caps, controls, noise.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyhybrid as ph
from pyhybrid.privacy.charge import Gaussian, Lipschitz, PrivacyCharge, Range
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT, epsilon_of_zcdp
from pyhybrid.releases.statement import assumptions, not_covered
from tests.audits.enumeration import log_posterior
from tests.privacy.enumerated import SUPPORT, databases
from tests.privacy.test_censoring import centered
from tests.privacy.test_conversions import charge, of_strict
from tests.refusals import refuses


def part(bound: float = 2.0, **changes: Any) -> PrivacyCharge:
    """A charge of one draw."""
    return charge(bound, **{"n_draws_released": 1, "n_synthetic": 1, **changes})


def whole(*parts: PrivacyCharge, **options: Any) -> PrivacyCharge:
    return compose_charges(parts, mechanism="SequentialSynthesis", **options)


def gaussian(mu: float, delta: float = 1e-6, **changes: Any) -> PrivacyCharge:
    """A local charge that is counted by mu; 2 Delta is 40, the range 4 mu."""
    accounts = {
        "lipschitz": Lipschitz(bound=20.0), "range": Range(loss_range=4 * mu),
        "gaussian": Gaussian(mu=mu),
    }  # fmt: skip
    own = {"accounts": accounts, "accounting": "gaussian", "delta": delta, **changes}
    return part(20.0, **own)


def test_epsilons_of_one_accounting_add() -> None:
    found = whole(part(1.0), part(2.0))
    assert (found.epsilon, found.kind, found.delta) == (6.0, ASYMPTOTIC_LOCAL, 0.0)
    assert found.mechanism == "SequentialSynthesis"
    assert found.epsilon_published == 6.0
    assert whole(found, part(3.0)).epsilon == 12.0
    assert len(whole(found, part(3.0)).parts) == 3


def test_mu_adds_by_squares_and_ranges_add() -> None:
    found = whole(gaussian(0.3), gaussian(0.4))
    assert (found.accounting, found.delta) == ("gaussian", 1e-6)
    assert found.mu == pytest.approx(0.5, rel=1e-12)
    due = ph.arrays.epsilon_of_mu(0.5, 1e-6)
    assert due <= found.epsilon < due + 0.0101
    assert (found.epsilon_range, found.epsilon_published) == (2.8, 80.0)
    assert found.epsilon == ph.compose([gaussian(0.3), gaussian(0.4)])


def test_a_delta_stays_where_one_part_has_it() -> None:
    """As it was, parts at a delta made a whole whose delta was 0."""
    found = whole(gaussian(0.3), part(1.0))
    assert (found.accounting, found.delta) == ("composed", 1e-6)
    due = ph.arrays.epsilon_of_mu(0.3, 1e-6) + 2.0
    assert due <= found.epsilon < due + 0.0101
    assert found.epsilon == ph.compose([gaussian(0.3), part(1.0)])
    assert found.epsilon_lipschitz == 42.0
    refuses("must be at one delta: found 1e-07, 1e-06", whole, gaussian(0.3), gaussian(0.3, 1e-7))


def test_the_weakest_part_speaks_for_the_whole() -> None:
    weak = part(n_draws=100, draw_quantile=0.95, converged=False)
    found = whole(part(n_draws=4000, draw_quantile=0.99, converged=True), weak)
    assert (found.n_draws, found.draw_quantile, found.converged) == (100, 0.95, False)
    assert whole(part(), part()).converged is True


def test_each_sentence_is_said_once_in_its_order() -> None:
    one = part(facts={"columns": ["a"], "assumes": ["a", "b"]})
    other = part(facts={"columns": ["b"], "assumes": ["b", "c"], "not_covered": ["d"]})
    found = whole(one, other)
    assert assumptions(found) == ["a", "b", "c"]
    first, *rest = not_covered(found)
    assert first == "Columns other than a, b, if there are any, are published unchanged."
    assert rest == ["d"]


def test_strict_parts_make_a_strict_whole_and_need_no_draws() -> None:
    strict = of_strict(4.0)
    found = whole(strict, strict)
    assert (found.kind, found.n_draws, found.epsilon) == (STRICT, None, 8.0)
    refuses("agree in kind", whole, strict, part())


def test_parts_that_do_not_belong_together() -> None:
    refuses("at least one charge", whole)
    unlike = {"relation": "replace", "n_synthetic": 2, "n_draws_released": 2, "unit": "person"}
    for name, other in unlike.items():
        refuses(f"agree in {name}", whole, part(), part(**{name: other}))
    person = part(unit="person")
    assert whole(person, person).unit == "person"


ORDERS = np.array([1.0001, 1.5, 2.0, 4.0, 16.0])
STEP = 1e-3  # of losses, which are rounded up to it
DELTA = 1e-3


def neighbors(cap: Any, relation: str) -> tuple[np.ndarray, np.ndarray]:
    """Log posteriors of all neighbors of databases of two records, both ways: (grid, pairs)."""
    every = (rows for n in (1, 2) for rows in databases(n))
    held = {rows: log_posterior(centered(np.array(rows), cap)) for rows in every}
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
    how: Any = {"n_draws_released": m, "relation": relation}
    rhos = (ph.arrays.rho_of_range(reach, **how) for reach in (span, span / 2))
    epsilon, half = (ph.arrays.epsilon_of_rho(rho, DELTA) for rho in rhos)
    assert epsilon < 0.6 * ph.arrays.epsilon_of_censoring(cap, **how)
    p, q = neighbors(cap, relation)
    worst = int((np.exp(p) * (p - q)).sum(axis=0).argmax())
    p, q = p[:, worst], q[:, worst]
    assert 0 < delta_of_draws(p, q, m, epsilon) <= DELTA
    assert delta_of_draws(p, q, m, half) > DELTA  # Control


def censored(m: int = 1, cap: float = 0.25, **changes: Any) -> PrivacyCharge:
    """m draws of a posterior whose terms lie in [-M, M]."""
    sides = 2 if changes.get("relation") == "replace" else 1
    span = sides * 2 * cap
    return PrivacyCharge.strict(
        **{"mechanism": "Censored", "relation": "remove", "cap": cap, "epsilon": span,
           "loss_range": span, "n_synthetic": m, "n_draws_released": m, **changes},
    )  # fmt: skip


def test_draws_of_censored_posteriors_count_by_their_range() -> None:
    twenty, replaced = {"n_draws_released": 20}, censored(20, relation="replace")
    assert censored(20).spent.rho_of_pure == 0.625 == ph.arrays.rho_of_range(0.5, **twenty)
    assert replaced.epsilon == 20
    of_range = ph.arrays.rho_of_range(0.5, **twenty, relation="replace")
    assert replaced.spent.rho_of_pure == of_range
    assert ph.compose([censored(20)]) == 10
    cost = ph.compose([censored(20)], delta=1e-6)
    assert cost == pytest.approx(ph.arrays.epsilon_of_rho(0.625, 1e-6), abs=1e-6)
    assert cost == ph.compose([censored() for _ in range(20)], delta=1e-6)
    assert ph.compose([censored(), censored()], delta=1e-6) == 1  # few: pure epsilon is less
    assert ph.compose([], delta=1e-6) == 0


PARTS = {  # of m sets: the charge of a part, and its rho by its own formula
    "draws": lambda x, m: (censored(m, x), m * (2 * x) ** 2 / 8),
    "histograms": lambda x, m: (of_strict(x, m), m * x**2 / 2),
    "gaussian": lambda x, m: (of_strict(x, m, rho=x**2, delta=1e-6), m * x**2),
    "scores": lambda x, m: (scores(x, m), x**2 / 2),
}


@given(
    st.lists(st.tuples(st.sampled_from([*PARTS]), st.floats(1e-3, 2)), min_size=1, max_size=4),
    st.integers(1, 60),
)
def test_rho_of_a_composition_is_that_of_its_parts(parts: list, m: int) -> None:
    charges, rhos = zip(*(PARTS[name](x, m) for name, x in parts), strict=True)
    once = whole(*charges)
    for found, times in ((once, 1), (whole(once, once), 2), (whole(whole(once, once), once), 3)):
        spent = found.spent
        rho = (spent.rho_of_pure or 0.0) + spent.rho + spent.mu**2 / 2
        assert rho == pytest.approx(times * math.fsum(rhos), rel=1e-9)
        assert found.kind == STRICT
        if spent.needs_delta:
            assert found.epsilon <= ph.arrays.epsilon_of_rho(rho, 1e-6) + 1e-6


def test_a_delta_is_for_strict_charges() -> None:
    local = part()
    refuses("delta is for strict charges", ph.compose, [local], delta=1e-6)
    refuses("delta must lie in", ph.compose, [censored()], delta=0)
    unlike = [censored(), censored(relation="replace")]
    refuses("of one kind, relation and unit", ph.compose, unlike, delta=1e-6)


def scores(mu: float, m: int = 1, delta: float = 1e-6) -> PrivacyCharge:
    return of_strict(None, m, mu=mu, delta=delta)


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
    noisy = of_strict(0.2, rho=0.02, delta=1e-6)
    both = [scores(0.3), noisy]
    expected = epsilon_of_zcdp(0.065, 1e-6)
    assert ph.compose(both) == pytest.approx(expected, abs=2e-6)
    assert compose_charges(both, mechanism="x").epsilon == pytest.approx(expected, abs=2e-6)
    pure = [scores(0.3), of_strict(0.1)]
    added = 0.1 + scores(0.3).epsilon
    assert ph.compose(pure) <= round(added, 6)
    assert compose_charges(pure, mechanism="x").epsilon <= round(added, 6)
