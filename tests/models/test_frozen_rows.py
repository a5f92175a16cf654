"""Frozen rows, also of many levels: clipped as arrays are."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.privacy.censoring import Cap
from tests.models.targets import AtPoints, log_lik_of
from tests.models.test_contract import CASES, Case


def bound_to(case: Case, n: int, rng: np.random.Generator) -> Any:
    table = pd.DataFrame({"x": rng.integers(0, 4, n) / 2 - 1.0, "y": rng.choice(case.y[:12], n)})
    return case.model.bind(table)


@pytest.mark.parametrize(
    "name", ["poisson", "negative binomial", "bernoulli", "beta", "categorical", "ordinal"]
)
def test_the_programs_clip_as_the_arrays_do(name: str) -> None:
    """Excess and region: Stan's log density under one cap less that under another, in numpy."""
    rng = np.random.default_rng(5)
    new, old = (bound_to(CASES[name], n, rng) for n in (40, 20))
    weight = rng.uniform(0.5, 1, 20)
    one = ProgramAtPoints(new.program, new.stan_data(np.ones(40), cap=1.0))
    points = 1.0 * rng.normal(size=(30, one.n_unconstrained))
    at = one.quantities(points)
    draws = AtPoints(at)
    best = int(log_lik_of(old, draws).sum(axis=1).argmax())
    middle = AtPoints({k: v[best : best + 1] for k, v in at.items()})
    center, before = (log_lik_of(bound, middle)[0] for bound in (new, old))
    frozen = old.frozen(weight, before, np.arange(20))
    assert frozen.n == 20
    caps = [Cap(below=0.2 * k, above=0.1 * k, reference=center, frozen=frozen, region=1.0 * k)
            for k in (1, 2)]  # fmt: skip
    density = [
        ProgramAtPoints(new.program, new.stan_data(np.ones(40), cap=cap)).log_density(points)
        for cap in caps
    ]
    f, moved = log_lik_of(new, draws), weight * (log_lik_of(old, draws) - before)
    before_draws = old.frozen_log_lik(frozen, draws)
    expected, beyond = [], []
    for cap in caps:
        excess = (moved - np.clip(moved, -cap.below, cap.above)).mean(axis=1)
        np.testing.assert_allclose(cap.excess(before_draws), excess, rtol=1e-9, atol=1e-12)
        terms = np.clip(f - center + excess[:, None], -cap.below, cap.above)
        clipped = new.log_lik(draws).clipped_total(
            np.ones(40), cap.below, cap.above, center, excess
        )
        np.testing.assert_allclose(clipped, terms.sum(axis=1), rtol=1e-9, atol=1e-9)
        beyond.append(np.maximum(-moved.mean(axis=1) - cap.farthest, 0))
        expected.append(terms.sum(axis=1) - cap.steep * beyond[-1])
    found, wanted = density[0] - density[1], expected[0] - expected[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
    assert {bool(own) for own in beyond[0] > 0} == {True, False}, "within the region and beyond"
    assert np.abs(excess).max() > 0.01
