"""Offsets: rates with an exposure, in Stan and numpy alike, in replicates, and refused elsewhere.

The formulas are held against R's model.offset in `test_formulas.py`, the target density with an
offset in `test_models.py` and `test_coefficients.py`.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import declared_names, load_program
from tests.models.targets import AtPoints
from tests.refusals import refuses

OFFSET = "offset(log(nights))"
MODELS: dict[str, Any] = {
    "poisson": ph.Poisson, "negative_binomial": ph.NegativeBinomial, "bernoulli": ph.Bernoulli,
    "beta_regression": ph.BetaRegression,
    "normal_regression": ph.NormalRegression,
    "normal_mixture": lambda formula: ph.MixtureRegression(formula, n_components=2),
}  # fmt: skip


TABLE = pd.DataFrame({
    "visits": [1, 2] * 50, "share": [0.25, 0.5] * 50, "member": [0, 1] * 50,
    "nights": [1.0, 2.0] * 50,
})  # fmt: skip


def _bound(name: str, terms: str) -> Any:
    outcome = {"beta_regression": "share", "bernoulli": "member"}.get(name, "visits")
    return MODELS[name](f"{outcome} ~ {terms}").bind(TABLE)


def test_rows_that_differ_in_the_offset_alone_are_not_one() -> None:
    table = pd.DataFrame({"y": [3, 3, 3, 1], "t": [1.0, 2.0, 1.0, 1.0]})
    bound = ph.Poisson("y ~ offset(log(t))").bind(table)
    np.testing.assert_array_equal(bound.row_of, [0, 1, 0, 2])
    np.testing.assert_allclose(bound.stan_data(np.ones(4))["offsets"], [0, np.log(2), 0])
    assert ph.Poisson("y ~ 1").bind(table).rows.first.size == 2


@pytest.mark.parametrize("name", MODELS)
def test_replicates_read_the_offset_of_the_table_given(name: str) -> None:
    """An exposure that is synthetic: the same random numbers, five nights for one or two."""
    bound, rng = _bound(name, OFFSET), np.random.default_rng
    program = ProgramAtPoints(bound.program, bound.stan_data(np.ones(100)))
    at = AtPoints(program.quantities(np.zeros((1, program.n_unconstrained))))
    made = bound.replicate(at, 0, rng(1), TABLE.assign(nights=5.0)).to_numpy()[:, 0]
    one = {k: at.flat(k)[0] for k in bound.model.parameters}
    expected = bound.model.draw_outcome(one, bound.design.X, np.full(100, np.log(5)), rng(1))
    np.testing.assert_allclose(made, bound.model.from_support(expected, bound.decimals))
    own = bound.model.draw_outcome(one, bound.design.X, bound.design.offset, rng(1))
    assert not np.array_equal(expected, own), "control"


def test_every_regression_takes_an_offset_and_what_is_none_refuses_it() -> None:
    """A model that is added later is found here."""
    assert _bound("poisson", "1").grid is not None
    assert _bound("poisson", OFFSET).grid is None
    refuses("Beta takes no predictors", ph.Beta(f"share ~ {OFFSET}").bind, TABLE)
    without = {"beta", "categorical", "ordinal"}
    amounts = {"gamma_regression"}  # in tests/models/test_amounts.py
    tested = {*MODELS, *without, *amounts}
    assert {p.stem for p in (Path(__file__).parents[2] / "stan").glob("*.stan")} == tested
    for name in (*MODELS, *amounts):
        assert "offsets" in declared_names(load_program(name), "data")
