"""The papers' own programs beside the built-in ones: same log-likelihood, weighted; releases.

That their posteriors are ours is in tests/validation/test_published.py.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import load_program
from pyhybrid.models.families.regression import PUBLISHED
from pyhybrid.privacy.censoring import Cap
from tests.models.targets import AtPoints, log_lik_of
from tests.refusals import refuses

N = 150
RNG = np.random.default_rng(5)
Z = np.resize([0.0, 1.0, 2.0], N)
TABLE = pd.DataFrame({
    "y": RNG.negative_binomial(4, 4 / (4 + np.exp(2 + 0.3 * Z))),
    "share": RNG.beta(0.5, 3, N).clip(1e-6, 1 - 1e-6), "income": RNG.normal(1 + Z, 1.0).round(3),
    "z": Z,
})  # fmt: skip
MODELS: dict[str, Any] = {
    "poisson": ph.Poisson("y ~ z", program="published"),
    "negative_binomial": ph.NegativeBinomial("y ~ z", program="published"),
    "beta": ph.Beta("share ~ 1", program="published"),
    "beta_regression": ph.BetaRegression("share ~ z", program="published"),
    "normal_mixture": ph.MixtureRegression("income ~ z", n_components=2, program="published"),
}
ALPHA = np.random.default_rng(1).uniform(0.2, 1, N)


def test_every_published_program_is_of_a_model() -> None:
    assert set(MODELS) == set(PUBLISHED)
    for name, model in MODELS.items():
        assert model.bind(TABLE).program == load_program(f"published/{name}")


@pytest.mark.parametrize(("name", "cap"), [*((name, None) for name in MODELS), ("beta", 0.4)])
def test_its_log_lik_is_weighted_pythons_and_alone_moves_the_target(name: str, cap: Any) -> None:
    bound = MODELS[name].bind(TABLE)
    other = np.random.default_rng(2).uniform(size=N)
    data = [bound.stan_data(alpha, cap=cap) for alpha in (ALPHA, other)]
    programs = [ProgramAtPoints(bound.program, own) for own in data]
    points = np.random.default_rng(3).normal(size=(8, programs[0].n_unconstrained)) / 3
    if name == "negative_binomial":  # its 1/phi is unbounded, as published
        points[:, -1] = np.abs(points[:, -1]) + 0.1
    values = programs[0].quantities(points)
    f, made = log_lik_of(bound, AtPoints(values)), values["y_rep"]
    assert made.shape == (8, N)
    if "beta" in name:
        assert ((made >= 0) & (made <= 1)).all()

    def terms(alpha: Any) -> Any:
        return np.clip(alpha * f, -(cap or np.inf), cap or np.inf)

    np.testing.assert_allclose(values["log_lik"], terms(ALPHA), rtol=1e-10, atol=1e-10)
    moved = np.subtract(*(program.log_density(points) for program in programs))
    right, wrong = ((terms(ALPHA) - terms(alpha)).sum(axis=1) for alpha in (other, 0.8 * other))
    np.testing.assert_allclose(moved, right, rtol=1e-8, atol=1e-7)
    assert np.abs(moved - wrong).max() > 0.05, "control"


@pytest.mark.parametrize("name", [name for name in MODELS if name != "beta"])
def test_a_cap_is_taken_by_the_program_that_is_printed_with_one(name: str) -> None:
    refuses("takes no cap", MODELS[name].bind(TABLE).stan_data, ALPHA, cap=0.4)
    assert MODELS["beta"].bind(TABLE).stan_data(ALPHA, cap=0.4)["M"] == 0.4


@pytest.mark.parametrize(("make", "words"), [
    (lambda: ph.Bernoulli("y ~ z", program="published"), "Poisson, NegativeBinomial, Beta"),
    (lambda: ph.Poisson("y ~ z", program="paper"), "program must be one of"),
    (lambda: ph.Poisson("y ~ z", program="published", prior="normal"), "leave prior= out"),
    (lambda: ph.Poisson("y ~ offset(z)", program="published").bind(TABLE).stan_data(ALPHA),
        "samples the same posterior"),
    (lambda: MODELS["beta"].bind(TABLE).stan_data(
        ALPHA, cap=Cap(below=1.0, above=1.0, reference=np.zeros(N))
    ), "leave center, calibration and unit out"),
])  # fmt: skip
def test_what_it_cannot_be_is_named(make: Any, words: str) -> None:
    refuses(words, make)
