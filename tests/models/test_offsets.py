"""Offsets: rates with an exposure, in Stan and numpy alike, in replicates, and refused elsewhere.

The formulas are held against R's model.offset in `test_formulas.py`, the target density with an
offset in `test_models.py` and `test_coefficients.py`, those of the programs alone in R.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.engines.programs import declared_names, load_program
from tests.models.targets import draws_of
from tests.refusals import refuses

TINY = SamplerSettings(chains=2, warmup=20, draws=20)
SHORT = SamplerSettings(chains=2, warmup=400, draws=600)
OFFSET = "offset(log(nights))"
MODELS: dict[str, Any] = {
    "poisson": ph.Poisson, "negative_binomial": ph.NegativeBinomial, "bernoulli": ph.Bernoulli,
    "beta_regression": ph.BetaRegression,
    "normal_regression": ph.NormalRegression,
    "normal_mixture": lambda formula: ph.MixtureRegression(formula, n_components=2),
}  # fmt: skip


@cache
def _rates(seed: int = 1, n: int = 300) -> pd.DataFrame:
    """Visits at a rate of exp(-1 + 0.7 x) a night, in 1 to 60 nights that x says something of."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(2)
    nights = np.clip(rng.lognormal(2 + 0.8 * x, 0.5), 1, 60).round()
    share = rng.beta(2, 3, n)
    visits = rng.poisson(nights * np.exp(-1 + 0.7 * x))
    member = (visits > np.median(visits)).astype(int)
    return pd.DataFrame(
        {"visits": visits, "share": share, "member": member, "x": x, "nights": nights}
    )


def _bound(name: str, terms: str, table: pd.DataFrame | None = None) -> Any:
    outcome = {"beta_regression": "share", "bernoulli": "member"}.get(name, "visits")
    return MODELS[name](f"{outcome} ~ {terms}").bind(_rates() if table is None else table)


def test_rows_that_differ_in_the_offset_alone_are_not_one() -> None:
    table = pd.DataFrame({"y": [3, 3, 3, 1], "t": [1.0, 2.0, 1.0, 1.0]})
    bound = ph.Poisson("y ~ offset(log(t))").bind(table)
    np.testing.assert_array_equal(bound.row_of, [0, 1, 0, 2])
    np.testing.assert_allclose(bound.stan_data(np.ones(4))["offsets"], [0, np.log(2), 0])
    assert ph.Poisson("y ~ 1").bind(table).rows.first.size == 2


@pytest.mark.normal_draws
@pytest.mark.parametrize("name", MODELS)
def test_replicates_read_the_offset_of_the_table_given(name: str) -> None:
    """Means with an exposure that is synthetic, 4 standard errors of 40,000 draws."""
    table = pd.DataFrame({"visits": [1, 2] * 20_000, "x": 0.0, "nights": [1.0, 2.0] * 20_000})
    table["share"], table["member"] = table["visits"] / 4, table["visits"] - 1
    bound = _bound(name, OFFSET, table)
    draws = draws_of(bound, warmup=20, draws=20)
    given = table.assign(nights=5.0)
    parameters = {k: draws.flat(k)[7] for k in bound.model.parameters}
    rng = np.random.default_rng
    made = bound.replicate(draws, 7, rng(1), given).to_numpy()[:, 0]
    offset = np.full(40_000, np.log(5))
    expected = bound.model.draw_outcome(parameters, bound.design.X, offset, rng(1))
    np.testing.assert_allclose(made, bound.model.from_support(expected, bound.decimals))
    own = bound.model.draw_outcome(parameters, bound.design.X, bound.design.offset, rng(1))
    assert expected.mean() > own.mean()


@pytest.mark.normal_draws
def test_a_calibration_reads_the_exposure_of_each_record() -> None:
    """f of the records released under draws frozen on a reference; another exposure, another f."""
    model = ph.Poisson(f"visits ~ x + {OFFSET}")
    frozen = ph.calibrate(
        model, _rates(7), epsilon=6, seed=1, engine="embedded", settings=SHORT,
        holds_no_released_record=True,
    )  # fmt: skip
    table = _rates(8)
    own, other = (
        frozen.lipschitz(model.bind(each))
        for each in (table, table.assign(nights=table["nights"] * 3))
    )
    draws = frozen.draws.flat("beta")
    X = np.column_stack([np.ones(len(table)), table["x"]])
    mean = np.exp(draws @ X.T + np.log(table["nights"].to_numpy()))
    expected = np.abs(stats.poisson.logpmf(table["visits"].to_numpy(), mean)).max(axis=0)
    np.testing.assert_allclose(own, expected, rtol=1e-9)
    assert (np.abs(other - own) > 0.01).mean() > 0.9


@pytest.mark.normal_draws
@pytest.mark.parametrize("name", ["normal_regression", "normal_mixture"])
def test_densities_that_are_monitored_know_the_offset(name: str) -> None:
    """An offset of an outcome on the identity scale is a shift of the outcome."""
    table = _rates().assign(moved=lambda t: t["visits"] - t["nights"])
    data, found = None, []
    for formula in ("visits ~ x + offset(nights)", "moved ~ x"):
        bound = MODELS[name](formula).bind(table)
        data = bound.stan_data(np.ones(bound.n)) if data is None else data
        program = ph.NormalRegression if name == "normal_regression" else ph.MixtureRegression
        assert isinstance(bound.model, program)
        if not found:
            draws = EmbeddedEngine().sample(bound.program, data, seed=3, settings=TINY)
        found.append(
            {**bound.monitored(draws), "log_lik": bound.log_lik(draws).total(np.ones(bound.n))}
        )
    for quantity, values in found[0].items():
        np.testing.assert_allclose(values, found[1][quantity], rtol=1e-9, atol=1e-9)


def test_every_regression_takes_an_offset_and_what_is_none_refuses_it() -> None:
    """A model that is added later is found here."""
    assert _bound("poisson", "1").grid_form is not None
    assert _bound("poisson", OFFSET).grid_form is None
    refuses("Beta takes no predictors", ph.Beta(f"share ~ {OFFSET}").bind, _rates())
    program = """data { int n; int K; array[n] int y; matrix[n, K] X; vector[n] weights; }
    parameters { vector[K] beta; } model { beta ~ normal(0, 1); }
    generated quantities { vector[n] log_lik; vector[n] y_rep; }"""
    model = ph.StanModel(
        program, outcome="visits", predict="y_rep", formula=f"visits ~ x + {OFFSET}", data={}
    )
    refuses(r"design matrix X alone: found offset\(\).*in data=", model.bind, _rates())
    without = {"beta", "categorical", "ordinal"}
    amounts = {"gamma_regression"}  # in tests/models/test_amounts.py
    tested = {*MODELS, *without, *amounts}
    assert {p.stem for p in (Path(__file__).parents[2] / "stan").glob("*.stan")} == tested
    for name in (*MODELS, *amounts):
        assert "offsets" in declared_names(load_program(name), "data")
