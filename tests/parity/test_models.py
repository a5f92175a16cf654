"""Every model on every engine against numpy and R; posterior means between engines."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from pyhybrid.engines import ConvergenceRule, SamplerSettings, engine_by_name
from pyhybrid.fitting.session import FitSession, PosteriorFit, open_session
from pyhybrid.models import MODELS
from pyhybrid.validation import posterior
from pyhybrid.validation.comparison import ARITHMETIC, MONTE_CARLO, Row
from pyhybrid.validation.posterior import GENERATED
from tests.conftest import require

pytestmark = [pytest.mark.samples, pytest.mark.needs_r]
ENGINES = ("embedded", "rstan", "cmdstan")
SETTINGS = SamplerSettings(chains=2, warmup=200, draws=300, parallel_chains=1)
RULE = ConvergenceRule(rhat=1.05, ess_per_chain=50.0, divergent_share=0.01)


@cache
def _bound(model: str) -> Any:
    table, made = posterior.generated_table(model, np.random.default_rng(8))
    return made.bind(table)


@cache
def _session(model: str, engine: str) -> FitSession:
    # embedded and cmdstan share Stan's random numbers: under one seed their draws are the same.
    seed = 21 + ENGINES.index(engine)
    return open_session(
        _bound(model), seed=seed, engine=engine_by_name(engine), settings=SETTINGS, rule=RULE
    )


def _weighted(model: str, engine: str) -> PosteriorFit:
    alpha = np.linspace(0.2, 1, _bound(model).n)
    return _session(model, engine).fit(alpha, label="weighted fit")


def _require(engine: str, request: pytest.FixtureRequest) -> None:
    if engine == "cmdstan":
        request.getfixturevalue("cmdstan")
    status = engine_by_name(engine).status()
    require(status.available, f"{engine} cannot be used: {status.cause}")


def _assert_agree(rows: list[Row], tolerance: float) -> None:
    assert {row.quantity: row.difference for row in rows if not row.agrees} == {}
    assert {row.tolerance for row in rows} == {tolerance}


def test_generated_models_are_models() -> None:
    assert set(GENERATED) == set(MODELS)
    assert {"negative_binomial", "poisson", "beta", "beta_regression"} <= set(GENERATED)


@pytest.mark.parametrize("model", GENERATED)
def test_r_reads_the_same_table(model: str, r: Callable[..., Any]) -> None:
    assert all(row.agrees for row in posterior.table_rows(_bound(model)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", GENERATED)
def test_bounds_and_weights_from_each_others_draws(
    model: str, engine: str, r: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    """numpy at an engine's parameters, R at the log_lik that Stan wrote: 1e-10."""
    _require(engine, request)
    bound = _bound(model)
    data = bound.stan_data(np.ones(bound.n), emit_log_lik=True)
    draws = engine_by_name(engine).sample(
        bound.program, data, seed=5, settings=posterior.short_settings(bound.n)
    )
    rows = list(posterior.same_draws_rows(bound, draws, np.random.default_rng(0)))
    assert len(rows) == 6
    assert rows[0].numbers == draws.n_draws * (int(bound.log_lik(draws).row_of.max()) + 1)
    _assert_agree(rows, ARITHMETIC)


@pytest.mark.parametrize("engine", ENGINES[1:])
@pytest.mark.parametrize("model", GENERATED)
def test_posterior_means_agree_within_5_standard_errors(
    model: str, engine: str, request: pytest.FixtureRequest
) -> None:
    _require(engine, request)
    fits = [_weighted(model, each) for each in ("embedded", engine)]
    rows = list(posterior.mean_rows(_bound(model), "weighted", *fits))
    assert len(rows) >= 4
    assert all(row.difference > 0 for row in rows)
    _assert_agree(rows, MONTE_CARLO)
