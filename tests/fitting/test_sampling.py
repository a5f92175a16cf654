"""A fit goes on until it has converged: more draws where they are short, a second try else."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import NotConverged
from pyhybrid.engines import ContinuingEngine, ConvergenceRule, Draws, SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import open_session
from tests.monte_carlo import assert_draws_near
from tests.refusals import fails, refuses

pytestmark = pytest.mark.samples
SHORT = SamplerSettings(chains=2, warmup=200, draws=100, parallel_chains=1)
MANY = ConvergenceRule(rhat=1.2, ess_per_chain=150)  # more than the first draws can give


@pytest.fixture(scope="module")
def bound() -> Any:
    table = pd.DataFrame({"y": np.random.default_rng(1).poisson(4, 60), "x": [0, 1, 2] * 20})
    return ph.Poisson("y ~ x").bind(table)


class Recording(EmbeddedEngine):
    """The embedded engine, and what was asked of it; all diverges under the metric `diverges`."""

    def __init__(self, diverges: str = "") -> None:
        self.asked: list[tuple[str, int, int]] = []
        self.settings: list[SamplerSettings] = []
        self.diverges = diverges

    def sample(self, *args: Any, **kwargs: Any) -> Draws:
        self.asked.append(("sample", kwargs["seed"], kwargs["settings"].draws))
        self.settings.append(kwargs["settings"])
        draws = super().sample(*args, **kwargs)
        wrong = kwargs["settings"].metric == self.diverges
        return replace(draws, divergent=draws.divergent | wrong)

    def more(self, *args: Any, **kwargs: Any) -> Draws:
        self.asked.append(("more", kwargs["seed"], kwargs["n_draws"]))
        return super().more(*args, **kwargs)


def test_short_chains_go_on_and_are_not_started_anew(bound: Any) -> None:
    engine = Recording()
    assert isinstance(engine, ContinuingEngine)
    settings = replace(SHORT, max_draws=3200)
    fit = open_session(bound, seed=1, engine=engine, settings=settings, rule=MANY).unweighted()
    assert [kind for kind, *_ in engine.asked][:2] == ["sample", "more"]
    assert all(kind == "more" for kind, *_ in engine.asked[1:])
    assert len({seed for _, seed, _ in engine.asked}) == len(engine.asked)
    assert fit.diagnostics.attempts == 1
    assert fit.diagnostics.converged
    assert fit.draws.n_draws == 2 * sum(n for *_, n in engine.asked) > 200
    assert fit.draws.provenance.settings.draws == fit.draws.n_draws / 2
    assert fit.draws.treedepth.shape == fit.draws.divergent.shape


def test_the_chains_that_go_on_are_one_chain(bound: Any) -> None:
    """Same posterior, and the first new draw is as near to the last as neighbors are."""
    engine = EmbeddedEngine()
    data = bound.stan_data(np.ones(bound.n))
    settings = replace(SHORT, chains=4, draws=500)
    first = engine.sample(bound.program, data, seed=1, settings=settings)
    more = engine.more(bound.program, data, first, seed=2, n_draws=500)
    whole = first.followed_by(more)
    np.testing.assert_array_equal(whole.variables["beta"][:, 500:], more.variables["beta"])
    assert np.ptp(more.step_size) == 0
    assert_draws_near(first.variables, more.variables, ["beta"])
    # The same seed again would repeat the random numbers of the first draws.
    again = engine.more(bound.program, data, first, seed=2, n_draws=500)
    np.testing.assert_array_equal(again.variables["beta"], more.variables["beta"])


@pytest.mark.parametrize(("most", "rule", "asked"), [
    (SHORT.draws, MANY, [("sample", 100)]),
    (250, replace(MANY, ess_per_chain=1e6),
     [("sample", 100), ("more", 100), ("more", 50), ("sample", 200)]),
])  # fmt: skip
def test_a_fixed_number_or_limit_is_kept_to_and_after_a_limit_comes_a_second_try(
    most: int, rule: Any, asked: list[Any], bound: Any
) -> None:
    engine, settings = Recording(), replace(SHORT, max_draws=most)
    own = open_session(bound, seed=1, engine=engine, settings=settings, rule=rule)
    fails(NotConverged, "effective sample size", own.unweighted)
    assert [(kind, n) for kind, _, n in engine.asked] == asked


def test_an_engine_that_cannot_go_on_starts_anew(bound: Any) -> None:
    own = Recording()
    plain: Any = SimpleNamespace(name="plain", status=own.status, sample=own.sample)
    hard = replace(MANY, ess_per_chain=1e6)  # more than any chains reach
    session = open_session(
        bound, seed=1, engine=plain, settings=SHORT, rule=hard, on_not_converged="warn"
    )
    with pytest.warns(UserWarning, match="effective sample size"):
        fit = session.unweighted()
    assert (
        [kind for kind, *_ in own.asked] == ["sample"] * fit.diagnostics.attempts == ["sample"] * 2
    )


def test_settings_of_second_tries_and_of_fits_that_are_not_asked() -> None:
    asked, usual = SamplerSettings(adapt_delta=0.6), SamplerSettings()
    assert asked.unless_asked(0.6) == asked
    assert asked.longer().adapt_delta == usual.longer().adapt_delta == 0.99
    assert usual.unless_asked(0.6).adapt_delta == 0.6
    assert usual.unless_asked(0.6).longer(clipped=True).adapt_delta == 0.8
    assert SamplerSettings(adapt_delta=0.95).longer(clipped=True).adapt_delta == 0.95
    assert usual.unless_asked(0.8).metric == "adapted"
    assert SamplerSettings(metric="unit").unless_asked(0.8).metric == "unit"
    refuses("max_draws", SamplerSettings, draws=100, max_draws=99)
    assert SamplerSettings(draws=100, max_draws=150).longer().max_draws == 200


def test_a_weighted_fit_starts_from_the_unweighted_one(bound: Any) -> None:
    """Less warm-up; the same posterior as from anywhere."""
    engine = Recording()
    settings = SamplerSettings(chains=4, warmup=800, draws=500, parallel_chains=1)
    session = open_session(bound, seed=4, engine=engine, settings=settings)
    mechanism = ph.LipschitzWeighted(bound.model, scale=0.6, shift=0.2)
    fit = mechanism.fit(session).fit
    assert fit.draws.provenance.settings.warmup == 200
    assert session.unweighted().draws.provenance.settings.warmup == 800
    cold = open_session(bound, seed=5, engine=engine, settings=settings).fit(
        fit.alpha, label="cold"
    )
    assert_draws_near(fit.draws.variables, cold.draws.variables, ["beta"], powers=(1, 2))
    alone = ph.CountWeighted(bound.model, radius=0.3).fit(
        open_session(bound, seed=4, engine=engine, settings=settings)
    )
    assert alone.fit.draws.provenance.settings.warmup == 800


def _asked(
    model: Any, table: pd.DataFrame, diverges: str = "", **options: Any
) -> tuple[list[SamplerSettings], Any]:
    """Settings of a session's fits, all divergent under the metric `diverges`, and the last."""
    engine, rule = Recording(diverges), ConvergenceRule(rhat=1.2, ess_per_chain=5)
    given = {"settings": replace(SHORT, warmup=300, draws=400), **options}
    session = open_session(model.bind(table), seed=1, engine=engine, rule=rule, **given)
    return engine.settings, session.unweighted()


def test_standardized_parameters_are_sampled_with_long_steps() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"y": rng.poisson(4, 300), "x": rng.normal(40, 9, 300)})
    model = ph.Poisson("y ~ x", prior="normal")
    asked, fit = _asked(model, table)
    assert [(own.acceptance, own.metric) for own in asked] == [(0.7, "unit")]
    assert fit.converged
    assert fit.draws.inv_metric is None
    assert fit.draws.treedepth.mean() < 2.5
    asked, _ = _asked(ph.Poisson("y ~ x"), table)
    assert [(own.acceptance, own.metric) for own in asked] == [(0.8, "unit")]
    careful = replace(SHORT, adapt_delta=0.9)
    for other, options in (
        (ph.Poisson("y ~ 1"), {}),  # a lone intercept and the scale of its prior
        (model, {"settings": careful}),
        (model, {"settings": replace(SHORT, max_draws=SHORT.draws)}),
    ):
        asked, _ = _asked(other, table, **options)
        assert {(own.acceptance >= 0.9, own.metric) for own in asked} == {(True, "adapted")}


def test_long_steps_that_diverge_are_followed_by_careful_ones() -> None:
    table = pd.DataFrame({"y": [3, 1, 4, 1, 5, 9, 2, 6] * 20})
    asked, fit = _asked(ph.Poisson("y ~ 1", prior="normal"), table, diverges="unit")
    assert [(own.acceptance, own.metric) for own in asked] == [(0.7, "unit"), (0.99, "adapted")]
    assert fit.converged
    assert fit.draws.inv_metric is not None


def test_joined_tables_share_what_stays_and_change_alone() -> None:
    """m sets used to hold m copies of every column; and no set may write into another."""
    table = pd.DataFrame({"a": np.arange(50.0), "y": 20, "text": ["x", "z"] * 25})
    table.attrs["note"] = "secret"
    sets = [joined(table, pd.DataFrame({"y": np.full(50, k)})) for k in range(3)]
    assert [list(each.columns) for each in sets] == [["a", "y", "text"]] * 3
    assert all(each.attrs == {} for each in sets)
    assert table.attrs
    if int(pd.__version__.split(".")[0]) >= 3:
        assert all(np.shares_memory(each["a"], table["a"]) for each in sets)
    before = table["a"].iloc[0]
    sets[0].loc[0, "a"] = 99.0
    assert table["a"].iloc[0] == before == sets[1]["a"].iloc[0]
    assert (sets[2]["y"] == 2).all()
