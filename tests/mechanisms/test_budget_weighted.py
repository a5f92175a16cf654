"""Weights by budget: what they cost and touch, and what is said where they are not enough."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded
from pyhybrid.core.randomness import streams
from pyhybrid.engines import Draws, SamplerSettings
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.weighted import weight_maps
from pyhybrid.privacy.weights import budget_mu, budget_power
from tests.fits import session_fixture
from tests.refusals import fails, refuses

pytestmark = pytest.mark.normal_draws
MODEL = ph.NegativeBinomial("visits ~ age")
OPTIONS: dict[str, Any] = {"seed": 1, "engine": "embedded"}
OPTIONS["settings"] = SamplerSettings(chains=4, warmup=200, draws=300)
ONE: dict[str, Any] = {"n_synthetic": 1, "n_draws_released": 1}


def heavy(n: int) -> pd.DataFrame:
    """Counts with a few that tell much."""
    rng = np.random.default_rng(3)
    age = rng.integers(18, 90, n)
    visits = rng.negative_binomial(1, 1 / (1 + np.exp(0.2 + 0.01 * age)))
    visits[:5] = (90, 80, 70, 60, 50)
    return pd.DataFrame({"visits": visits, "age": age, "person": np.arange(n) // 2})


session = session_fixture(lambda: MODEL.bind(heavy(2000)), **OPTIONS)


def test_the_charge_keeps_to_epsilon_and_few_records_lose_weight(session: FitSession) -> None:
    budget, plain = ph.BudgetWeighted(MODEL), ph.Unweighted(MODEL)
    release = budget.release_from(session, **ONE)
    assert release.charge.epsilon <= 1.0
    assert release.charge.accounting == "gaussian"
    control = plain.charge_of(session, plain.fit(session), **ONE)
    assert control.epsilon > 2, "without weights the same records cost more than was given"
    alpha = release.confidential.alpha
    X = np.column_stack([np.ones(2000), heavy(2000)["age"]])
    mu = budget_mu(ph.arrays.mu_of_epsilon(1, 1e-6), n=2000, n_parameters=3)
    lowered = alpha < budget_power(ph.arrays.budget_leverage(X, mu=mu), mu=mu) * (1 - 1e-9)
    assert 0 < lowered.mean() < 0.05
    assert lowered[:5].all()
    assert release.settings["epsilon"] == 1.0
    other = open_session(MODEL.bind(heavy(2000)), **OPTIONS)
    other.fit(budget._public(other, 3)[2].alpha, label="made before, with all draws")
    assert (budget.fit(other).fit.alpha == alpha).all()


def test_draws_share_mu(session: FitSession) -> None:
    split = [ph.BudgetWeighted(MODEL, epsilon=2, n_draws=m) for m in (1, 4)]
    one, four = (mechanism.fit(session).fit.alpha for mechanism in split)
    assert (four[:5] < 0.8 * one[:5]).all()
    assert (four <= one).all()
    calm = MODEL.bind(heavy(2000).iloc[5:])
    sets = ph.BudgetWeighted(MODEL, epsilon=4).release_from(
        open_session(calm, **OPTIONS), n_synthetic=3, n_draws_released=3
    )
    assert sets.charge.epsilon <= 4
    assert sets.settings["n_draws"] == 3


def _corrected(of: FitSession, released: Draws, given: Any = None) -> Any:
    correct = ph.BudgetWeighted(MODEL, epsilon=0.5).correction(of, given)
    assert correct is not None
    return correct(released, streams(1))


def test_released_draws_lose_the_bias_of_their_weights() -> None:
    """Large counts lose weight, and phi seems larger; of rare events one estimate went beyond."""
    calm = open_session(MODEL.bind(heavy(2000).iloc[5:]), **OPTIONS)
    budget = ph.BudgetWeighted(MODEL, epsilon=0.5)
    plain, weighted = budget.unweighted(calm).draws, budget.fit(calm).fit.draws
    logs = [np.log(d.flat("phi")) for d in (plain, weighted, _corrected(calm, weighted))]
    before, after = ((own.mean() - logs[0].mean()) / logs[0].std() for own in logs[1:])
    assert before > max(0.9, abs(after) + 0.3)
    rare = ph.BudgetWeighted(ph.Bernoulli("rare ~ age"))
    few = open_session(rare.bind(heavy(2000).assign(rare=np.arange(2000) % 50 == 0)), **OPTIONS)
    draws = rare.fit(few).fit.draws.part(np.array([7]))
    corrected = rare.correction(few, None)(draws, streams(1))  # type: ignore[misc]
    eta: Any = few.bound.design.X @ corrected.flat("beta")[0]  # type: ignore[attr-defined]
    assert (1 / (1 + np.exp(-eta))).mean() < 0.035, "of .02; by one estimate up to .08"
    design = {"design": "w"}
    mixture = {"model": ph.MixtureRegression("visits ~ 1", n_components=2)}
    for how, n in ((design, 2000), (mixture, 2000), ({}, 900)):
        own: Any = replace(budget, **how)
        assert (
            own.correction(open_session(own.bind(heavy(n).assign(w=1.0)), **OPTIONS), None) is None
        )


def test_a_correction_reads_what_is_released_and_nothing_else(
    session: FitSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a session with other outcomes, and of a sequence with other predictors, it is the same."""
    monkeypatch.setattr(weight_maps, "_SIMULATED", 1)
    released = ph.BudgetWeighted(MODEL).unweighted(session).draws.part(np.array([7, 70]))
    other = heavy(2000).assign(visits=heavy(2000)["visits"].to_numpy()[::-1] + 3)
    another = open_session(MODEL.bind(other), **OPTIONS)
    same = [_corrected(of, released) for of in (session, another)]
    moved = open_session(MODEL.bind(other.assign(age=other["age"].to_numpy() // 2)), **OPTIONS)
    tables = [heavy(2000)[["age", "person"]].iloc[::-1].reset_index(drop=True)] * 2
    drawn = [_corrected(of, released, tables) for of in (session, moved)]
    for one, two in (same, drawn):
        assert all((one.flat(n) == two.flat(n)).all() for n in MODEL.parameters)
    assert (same[0].flat("phi") != drawn[0].flat("phi")).all()
    assert (same[0].flat("phi") != released.flat("phi")).all()
    monkeypatch.setattr(weight_maps, "simulated", lambda bound, *_: bound.table)  # which leaks
    leaked = [_corrected(of, released).flat("phi") for of in (session, another)]
    assert (leaked[0] != leaked[1]).all()
    monkeypatch.setattr(weight_maps, "simulated", lambda bound, *_: bound.table.assign(visits=1.5))
    with pytest.warns(UserWarning, match="released draws keep the bias of their weights: "):
        assert _corrected(session, released) is released


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_steps_of_a_sequence_have_the_budget_of_all_draws(workers: int) -> None:
    table = heavy(2000).iloc[5:]
    own = {"visits": MODEL, "age": ph.NormalRegression("age ~ 1", unit=10, prior="normal")}
    steps = [ph.BudgetWeighted(own["age"], epsilon=3), ph.BudgetWeighted(MODEL, epsilon=3)]
    whole = ph.SequentialSynthesis(steps)
    release = whole.release(table, n_synthetic=2, workers=workers, **OPTIONS)
    for part in release.parts:
        assert part.settings["n_draws"] == 2
        assert part.charge.epsilon <= 3
    assert release.charge.epsilon < 6  # mu adds by squares


def test_budgets_of_columns_cost_no_more_together_than_they_were_split_from() -> None:
    """Seen: where the limit fails for a record of one column, --epsilon 12 was charged 15 to 19."""
    own = {"a": np.append(np.arange(59) % 5, 60), "b": np.arange(60) % 7}
    steps = [ph.BudgetWeighted(ph.Poisson(f"{n} ~ 1", prior="normal"), epsilon=8) for n in own]
    said, whole = r"epsilon = 12.1\d*: its columns would cost 1", ph.SequentialSynthesis(steps)
    fails(BudgetExceeded, said, whole.release, pd.DataFrame(own), n_synthetic=6, **OPTIONS)


def test_replacing_halves_the_budget_and_persons_have_one_weight(session: FitSession) -> None:
    both = ph.BudgetWeighted(MODEL, epsilon=2, relation="replace")
    assert both.charge_of(session, both.fit(session), **ONE).epsilon <= 2
    whole = ph.BudgetWeighted(MODEL, unit="person", epsilon=2)
    alpha = whole.fit(session).fit.alpha
    assert (alpha[::2] == alpha[1::2]).all()
    assert whole.release_from(session, **ONE).charge.unit == "person"


def test_nothing_is_drawn_where_it_would_cost_more(
    session: FitSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that were made, by mistake, for three times the budget."""
    once = ph.arrays.mu_of_epsilon
    monkeypatch.setattr(weight_maps, "mu_of_epsilon", lambda *of: 3 * once(*of))
    monkeypatch.setattr(ph.BudgetWeighted, "_enough", lambda *_: "")
    monkeypatch.setattr(type(session.bound), "replicate", None)  # a TypeError, if it is called
    with pytest.raises(BudgetExceeded, match=r"epsilon = 0\.5: with these 2,000 records"):
        ph.BudgetWeighted(MODEL, epsilon=0.5).release_from(session, **ONE)
    monkeypatch.undo()
    assert ph.BudgetWeighted(MODEL, epsilon=0.5).release_from(session, **ONE).charge.epsilon <= 0.5


def test_too_few_records_are_told_what_is_enough(session: FitSession, monkeypatch: Any) -> None:
    """Of a charge above the budget; what the message names is then enough, or what it costs. Seen:
    an epsilon of 1.38273e+24 is enough."""
    small = ph.BudgetWeighted(MODEL, epsilon=0.1)
    dear = replace(small.charge_of(session, small.fit(session), **ONE), epsilon=0.3)
    with pytest.raises(BudgetExceeded, match=r"epsilon = 0\.1: with these 2,000 records") as told:
        small._check_charge(session, dear)
    enough = float(re.findall(r"epsilon of ([\d.]+) is enough", str(told.value))[0])
    wider = ph.BudgetWeighted(MODEL, epsilon=enough)
    assert wider.charge_of(session, wider.fit(session), **ONE).epsilon <= wider.epsilon
    none = ph.Unweighted(MODEL)
    cost = none.charge_of(session, none.fit(session), **ONE).epsilon
    over, most = rf"without weights it would cost {cost:.3g}\)$", replace(dear, epsilon=1e24)
    for sure, said in ((1, "an epsilon of 2"), (0, over)):
        monkeypatch.setattr(weight_maps, "_SURE", sure)
        with pytest.raises(BudgetExceeded, match=said):
            small._check_charge(session, most)
    with pytest.raises(BudgetExceeded, match=rf"without weights it costs {cost:.3g}: take Unwei"):
        ph.BudgetWeighted(MODEL, epsilon=50)._check_charge(session, replace(dear, epsilon=60))


def test_a_rare_level_keeps_its_share() -> None:
    """Its records are alike: all of them lost weight and moved the weights of the others, so that
    1.1 to 1.5 were charged for a budget of 1. Without weights it costs .6."""
    table = pd.DataFrame({"y": (np.arange(2000) % 50 < 4).astype(int), "x": np.arange(2000) % 2})
    held = open_session(ph.Bernoulli("y ~ x", levels=(0, 1)).bind(table), **OPTIONS)
    rare = ph.BudgetWeighted(ph.Bernoulli("y ~ x", levels=(0, 1)))
    assert rare.weights(held).min() > 0.95
    assert rare.charge_of(held, rare.fit(held), **ONE).epsilon < 1


def test_amounts_have_weights_of_a_larger_mu_with_zeros_and_missing_values_too() -> None:
    """A release of them cost two thirds of its budget. Counts and levels keep the smaller one."""
    age = np.arange(2000.0) % 60
    table = pd.DataFrame({"age": age, "kind": age % 2 > 0, "count": age // 2})
    table = table.assign(amount=np.where(age > 5, age / 3, 0.0), some=table["count"].where(age > 1))
    some = ph.NormalRegression("some ~ kind", missing=True)
    two = ph.LogNormal("amount ~ kind", zeros=True)
    models = {"amounts": (ph.NormalRegression("age ~ kind"), two, some),
              "counts": (ph.NegativeBinomial("count ~ kind"),),
              "levels": (ph.Bernoulli("kind ~ age"),)}  # fmt: skip
    mu = ph.arrays.mu_of_epsilon(1, 1e-6)
    for outcomes, of in models.items():
        for model in of:
            session = open_session(model.bind(table), **OPTIONS)  # type: ignore[attr-defined]
            (here, _), leverage, _ = ph.BudgetWeighted(model)._public(session, 4)
            own = budget_mu(mu, n=2000, n_parameters=4, outcomes=outcomes)
            risks = np.full(2000, mu)
            expected = ph.arrays.budget_weights(
                risks, mu=own, leverage=leverage.alpha, outcomes=outcomes
            )
            assert (here(leverage.alpha, risks) == expected).all()
            assert (own > mu) == (outcomes == "amounts")


@pytest.mark.parametrize("kind", ["may be missing", "levels"])
def test_rare_predictors_have_low_weights_under_models_of_several_regressions(kind: str) -> None:
    """All records had the same: epsilon 1 was refused (1.32) for the few that tell most. Each level
    but one has a regression of its own."""
    table = heavy(2000).assign(rare=np.where(np.arange(2000) % 100, "no", "yes"))
    table["visits"] = table["visits"].where(np.arange(2000) % 7 > 0)
    model: Any = ph.NegativeBinomial("visits ~ age + rare", missing=True)
    if kind == "levels":
        table, model = table.assign(visits=np.arange(2000) % 5), ph.Categorical("visits ~ rare")
    bound = model.bind(table)
    public = ph.BudgetWeighted(model)._public(open_session(bound, **OPTIONS), 8)[2].alpha
    assert public[::100].max() < 0.3 * np.delete(public, np.s_[::100]).min()
    assert weight_maps._regressions(bound) == (4 if kind == "levels" else 2)


def test_too_few_records_for_their_predictors_are_told_by_public_numbers() -> None:
    said, counts = [], heavy(60)
    for table in (counts, counts.assign(visits=counts["age"])):
        few = open_session(MODEL.bind(table), **OPTIONS)
        with pytest.raises(BudgetExceeded, match="too few records for epsilon = 1: ") as told:
            ph.BudgetWeighted(MODEL).release_from(few, **ONE)
        said.append(str(told.value))
        assert not few.store.sampled, "nothing was fitted"
    assert said[0] == said[1], "the outcome decides nothing"
    enough = float(re.findall(r"an epsilon of ([\d.]+), or", said[0])[0])
    ph.BudgetWeighted(MODEL, epsilon=enough).check_records(few)


@pytest.mark.parametrize(("settings", "message"), [
    ({"epsilon": 0}, "epsilon must be above 0"), ({"n_draws": 0}, "n_draws must be a whole number"),
    ({"accounting": "range"}, "no accounting"), ({"support": {"visits": (0, 9)}}, "no support"),
    ({"reweighting": True}, "takes no reweighting"), ({"draw_quantile": 0.9}, "no draw_quantile"),
])  # fmt: skip
def test_other_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    refuses(message, ph.BudgetWeighted, MODEL, **settings)


def test_columns_in_sequence_share_the_budget_of_the_command() -> None:
    from pyhybrid.cli.options import with_target

    options = dict.fromkeys(("delta", "scale", "shift", "transform", "threshold"))
    texts = with_target([], 2.0, 4, options)
    shares = [float(text.partition("epsilon=")[2]) for text in texts] * 4
    mus = [ph.arrays.mu_of_epsilon(share, 1e-6) for share in shares]
    assert ph.arrays.epsilon_of_mu(ph.arrays.compose_mu(mus), 1e-6) == pytest.approx(2, abs=0.05)
