"""Survey weights: what is sampled, bounded and clipped is the weighted term."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings, engine_by_name
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.models.composite.survey_weighted import SurveyWeighted
from pyhybrid.privacy.censoring import Cap
from tests.refusals import refuses

DESIGN = ph.measures.SurveyDesign(weights="w", population=120.0)
SHORT = SamplerSettings(chains=2, warmup=400, draws=600, parallel_chains=1)


def _table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame({
        "y": rng.poisson(3, n), "b": rng.choice(["no", "yes"], n),
        "a": rng.lognormal(size=n).round(2) + 0.01, "w": rng.choice([1.0, 2.0, 4.0], n),
        "home": np.arange(n) // 2, "region": np.arange(n) // 30,
    })  # fmt: skip


MODELS = [ph.Poisson("y ~ 1"), ph.Bernoulli("b ~ a"), ph.LogNormal("a ~ b", decimals=2)]


@pytest.mark.normal_draws
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("cap", [None, 1.5])
def test_the_program_weights_and_clips_the_weighted_term(model: Any, cap: float | None) -> None:
    """The log density less that without data is the sum of (clipped) alpha_i w_i f_i."""
    table, n = _table(), 60
    bound = SurveyWeighted(model, DESIGN).bind(table)
    alpha = np.random.default_rng(1).uniform(0.1, 1, n)
    weight = table["w"].to_numpy() * n / 120
    draws = engine_by_name("embedded").sample(bound.program, bound.stan_data(np.ones(n)), seed=1,
                                              settings=SHORT)  # fmt: skip
    own = model.bind(table).log_lik(draws)
    f = np.concatenate(list(own.make()), axis=1)[:, own.row_of]
    found = bound.log_lik(draws)
    told = np.concatenate(list(found.make()), axis=1)[:, found.row_of]
    np.testing.assert_allclose(told, f * weight, rtol=1e-12)
    data = bound.stan_data(alpha, cap=cap)
    at = ProgramAtPoints(bound.program, data)
    nothing = ProgramAtPoints(bound.program, {**data, "weights": np.zeros_like(data["weights"])})
    some = draws.part(np.arange(5))
    points = at.unconstrained(some)
    variables = {name: v[None] for name, v in at.quantities(points).items()}
    there = model.bind(table).log_lik(replace(some, variables=variables))
    terms = alpha * weight * np.concatenate(list(there.make()), axis=1)[:, there.row_of]
    if cap is not None:
        terms = np.clip(terms, -cap, cap)
    np.testing.assert_allclose(
        at.log_density(points) - nothing.log_density(points), terms.sum(axis=1), rtol=1e-8,
        atol=1e-7,
    )  # fmt: skip


def test_a_center_is_that_of_the_weighted_term() -> None:
    table, model = _table(), ph.Poisson("y ~ 1")
    bound, plain = SurveyWeighted(model, DESIGN).bind(table), model.bind(table)
    weight = DESIGN.normalized(table)
    center = np.linspace(-3, -1, 60)
    given = bound.stan_data(np.ones(60), cap=Cap(below=1, above=1, reference=center * weight))
    direct = plain.stan_data(weight, cap=Cap(below=1, above=1, reference=center))
    assert sorted(given["reference"]) == pytest.approx(sorted(direct["reference"]))
    assert sorted(given["weights"]) == pytest.approx(sorted(direct["weights"]))


@pytest.mark.normal_draws
def test_a_release_under_every_mechanism() -> None:
    table = _table()
    for mechanism in (
        ph.Unweighted(ph.Poisson("y ~ 1", prior="normal"), design=DESIGN),
        ph.LipschitzWeighted(ph.Poisson("y ~ 1", prior="normal"), design=DESIGN),
        ph.Censored(ph.Poisson("y ~ 1", prior="normal"), epsilon=4, design=DESIGN,
                    inner=ph.Unweighted(ph.Poisson("y ~ 1", prior="normal"), design=DESIGN)),
    ):  # fmt: skip
        release = mechanism.release(table, seed=1, engine="embedded", settings=SHORT)
        assert release.synthesized == ("y",)
        assert any("survey weight" in sentence for sentence in release.charge.assumes)
        assert "design" in release.settings


def _strict(design: ph.measures.SurveyDesign) -> ph.arrays.PrivacyCharge:
    model = ph.Poisson("y ~ 1")
    mechanism = ph.Censored(model, epsilon=4, inner=ph.Unweighted(model, design=design),
                            design=design)  # fmt: skip
    return mechanism.release(_table(), engine="embedded").charge


@pytest.mark.samples
def test_only_weights_of_the_own_record_are_strict() -> None:
    """The control: normalized by their sum, or calibrated, weights depend on all records."""
    assert _strict(DESIGN).kind == "strict"
    for design in (
        ph.measures.SurveyDesign(weights="w"),
        ph.measures.SurveyDesign(weights="w", population=120.0, calibrated=True),
    ):
        charge = _strict(design)
        assert charge.kind == "asymptotic local"
        assert any("survey weights w" in sentence for sentence in charge.assumes)


def test_a_model_with_survey_weights_brings_the_unit_of_its_survey() -> None:
    """However the design is given: a household's rows are never charged as one person's."""
    design = ph.measures.SurveyDesign(weights="w", unit="home", population=120.0)
    model = SurveyWeighted(ph.Poisson("y ~ 1", prior="normal"), design)
    assert ph.Unweighted(model).unit == ph.Unweighted(model.model, design=design).unit == "home"
    assert ph.Censored(model, epsilon=1).unit == "home"
    refuses("found another", ph.Unweighted, model, design=DESIGN)
    for given in ((model, None), (model.model, design)):  # it does not say what weights there are
        refuses("support= and design= do not go together", ph.Unweighted, given[0],
                design=given[1], support={"y": (0, 9)})  # fmt: skip


def test_no_record_counts_for_more_than_the_public_bound() -> None:
    """Seen: without a public sum, which moves all weights but those at the bound, 3.8 for 66."""
    design = ph.measures.SurveyDesign(weights="w", population=120.0, largest=1.25)
    assert design.normalized(_table()).max() == 1.25
    refuses(
        "largest .* must come with population", ph.measures.SurveyDesign, weights="w", largest=1.25
    )


@pytest.mark.parametrize(("design", "change", "message"), [
    ({}, {"w": -1.0}, "must be above 0 and not missing: 60 of 60"),
    ({}, {"w": np.nan}, "must be above 0 and not missing"), ({}, {"w": "many"}, "must be numbers"),
    ({"strata": "region", "clusters": "region"}, {}, "must have at least two clusters"),
    ({"strata": "home", "unit": "region"}, {}, "must be in one stratum"),
    ({"strata": "county"}, {}, "'county' must be a column"),
    ({"clusters": "home"}, {"home": np.nan}, "'home' must not be missing"),
])  # fmt: skip
def test_bad_designs_are_one_line(
    design: dict[str, str], change: dict[str, Any], message: str
) -> None:
    """No release tells of the last cluster of a stratum: what a variance needs is asked there."""
    survey, table = ph.measures.SurveyDesign(weights="w", **design), _table().assign(**change)
    model = SurveyWeighted(ph.Poisson("y ~ 1"), survey)
    refuses(message, survey.read, table, hidden="\n")
    if design and {*design.values()} <= {*table}:
        model.bind(table)
    else:
        refuses(message, model.bind, table, hidden="\n")


@pytest.mark.samples
def test_weights_that_stay_in_the_file_need_a_decision(tmp_path: Path) -> None:
    mechanism = ph.Unweighted(ph.Poisson("y ~ 1", prior="normal"), design=DESIGN)
    release = mechanism.release(_table(), seed=1, engine="embedded", settings=SHORT)
    says = "survey weights may disclose the outcome"
    refuses(says, release.save, tmp_path / "out", keep=["home", "a"])
    release.save(tmp_path / "out", drop=["w"], keep=["home", "a"], report=False)
    assert "w" not in pd.read_csv(tmp_path / "out" / "public" / "synthetic_1.csv").columns


def test_weights_cannot_be_synthesized_by_the_model_they_weight() -> None:
    model = SurveyWeighted(ph.LogNormal("w ~ 1"), ph.measures.SurveyDesign(weights="w"))
    refuses("must not be synthesized", model.bind, _table())


@pytest.mark.normal_draws
def test_normalized_weights_of_others_change_when_a_record_leaves() -> None:
    """T written out: all terms are scaled anew without the record. Held, the control, it is g_i."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"y": rng.poisson(4, 60), "w": rng.gamma(2, 1, 60)})
    design = ph.measures.SurveyDesign(weights="w")
    mechanism = ph.Unweighted(ph.Poisson("y ~ 1"), design=design)
    release = mechanism.release(table, seed=1, engine="embedded", leave_one_out=0)
    account, fit = release.confidential.account, release.fit
    y, w = table["y"].to_numpy(), table["w"].to_numpy()
    f = stats.poisson.logpmf(y, np.exp(fit.draws.flat("beta")))
    for i in (0, int(np.argmax(w))):
        kept = np.delete(np.arange(60), i)
        whole = f @ (w * 60 / w.sum()) - f[:, kept] @ (w[kept] * 59 / w[kept].sum())
        assert account.loss_ranges[i] == pytest.approx(np.ptp(whole), rel=1e-6)
        assert account.loss_ranges[i] != pytest.approx(np.ptp(f[:, i]) * w[i] * 60 / w.sum(),
                                                       rel=1e-3)  # fmt: skip
    population = ph.measures.SurveyDesign(weights="w", population=1000.0)
    np.testing.assert_array_equal(population.scale_without(table, np.arange(60)), 1.0)
