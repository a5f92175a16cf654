"""Survey weights: what is sampled, bounded and clipped is the weighted term."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.models.base import with_survey_weights
from pyhybrid.privacy.censoring import Cap
from pyhybrid.releases.statement import assumptions
from tests.models.targets import AtPoints, assert_weights_alone_move_the_target, log_lik_of
from tests.refusals import refuses

SHORT = SamplerSettings(chains=2, warmup=400, draws=600, parallel_chains=1)


def _table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame({
        "y": rng.poisson(3, n), "b": rng.choice(["no", "yes"], n),
        "a": rng.lognormal(size=n).round(2) + 0.01, "w": rng.choice([0.5, 1.0, 2.0], n),
        "home": np.arange(n) // 2, "region": np.arange(n) // 30,
    })  # fmt: skip


_CENTER = np.linspace(-3, -1, 60)
MODELS = [ph.Poisson("y ~ 1"), ph.Bernoulli("b ~ a"), ph.LogNormal("a ~ b", decimals=2)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("cap", [None, 1.5, Cap(below=1, above=1, reference=_CENTER)])
def test_the_program_weights_and_clips_the_weighted_term(model: Any, cap: Any) -> None:
    """The log density moves by the sum of clipped alpha_i w_i f_i alone; a center is of w_i f_i."""
    plain = model.bind(_table())
    bound = with_survey_weights(plain, "w")
    weight = _table()["w"].to_numpy()

    def weighted(at: AtPoints) -> Any:
        terms = log_lik_of(plain, at) * weight
        np.testing.assert_allclose(log_lik_of(bound, at), terms, rtol=1e-12)
        return terms

    assert_weights_alone_move_the_target(bound, cap, log_lik=weighted, spread=1 / 3, rtol=1e-7)


def _strict(table: pd.DataFrame) -> ph.arrays.PrivacyCharge:
    model = ph.Poisson("y ~ 1")
    inner = ph.Unweighted(model, design="w")
    mechanism = ph.Censored(model, epsilon=4, inner=inner, design="w")
    return mechanism.release(table, engine="embedded").charge


@pytest.mark.samples
def test_only_weights_of_the_own_record_are_strict() -> None:
    """The control: weights that average exactly 1 were normalized, or calibrated, on the sample."""
    charge, own = _strict(_table()), "functions of these records and of public numbers alone"
    assert charge.kind == "strict"
    assert any(own in sentence for sentence in assumptions(charge))
    normalized = _table().assign(w=lambda t: t["w"] / t["w"].mean())
    charge = _strict(normalized)
    assert charge.kind == "asymptotic local"
    assert any("survey weights w, whose mean" in sentence for sentence in assumptions(charge))
    assert not any(own in sentence for sentence in assumptions(charge))
    assert _strict(_table().assign(w=1.0)).kind == "strict", "no weights"


@pytest.mark.normal_draws
def test_weights_of_one_charge_what_no_weights_do() -> None:
    """Seen: a term of the charge was left out, as the model was not known for a built-in one."""
    table = _table().assign(w=1.0)
    charges = [
        ph.Unweighted(ph.Poisson("y ~ b"), design=design).release(
            table, seed=1, engine="embedded", refits=2
        ).charge
        for design in (None, "w")
    ]  # fmt: skip
    assert charges[0].epsilon == charges[1].epsilon


@pytest.mark.parametrize(("w", "message"), [
    (-1.0, "must be above 0 and not missing: 60 of 60"), (np.nan, "must be above 0 and not mis"),
    ("many", "must be numbers"), (50.0, "must average about 1"),
])  # fmt: skip
def test_bad_weights_are_one_line(w: Any, message: str) -> None:
    mechanism = ph.Unweighted(ph.Poisson("y ~ 1"), design="w")
    refuses(message, mechanism.bind, _table().assign(w=w), hidden="\n")
    refuses("'w' must be a column of the data", mechanism.bind, _table().drop(columns="w"))
    refuses("design must be the name", ph.Unweighted, ph.Poisson("y ~ 1"), design=["w"])


@pytest.mark.samples
def test_weights_that_stay_in_the_file_need_a_decision(tmp_path: Path) -> None:
    mechanism = ph.Unweighted(ph.Poisson("y ~ 1", prior="normal"), design="w")
    release = mechanism.release(_table(), seed=1, engine="embedded", settings=SHORT)
    says = "survey weights may disclose the outcome"
    refuses(says, release.save, tmp_path / "out", keep=["home", "a"])
    release.save(tmp_path / "out", drop=["w"], keep=["home", "a"], report=False)
    assert "w" not in pd.read_csv(tmp_path / "out" / "public" / "synthetic_1.csv").columns
