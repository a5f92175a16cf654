"""brms models as synthesizers: programs that brms 2.18.0 wrote (tests/stored/brms)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.errors import InvalidInput

STORED = Path(__file__).parents[1] / "stored" / "brms"
SHORT: dict[str, Any] = {
    "engine": "embedded",
    "settings": SamplerSettings(chains=2, warmup=200, draws=250),
    "on_not_converged": "warn",
}


def standata(name: str) -> dict[str, Any]:
    given = json.loads((STORED / f"{name}.json").read_text())
    return {k: np.array(v) if isinstance(v, list) else v for k, v in given.items()}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    frame: pd.DataFrame = pd.read_csv(STORED / "data.csv")
    return frame


def counts(**options: Any) -> ph.StanModel:
    return ph.from_brms(STORED / "counts.stan", standata("counts"), outcome="visits", **options)


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_log_lik_is_the_density_without_the_weight(table: pd.DataFrame) -> None:
    """Held against scipy at the draws, under weights that are not 1: never weighted twice."""
    bound = counts().bind(table)
    release = ph.GivenWeights(counts(), alpha=np.linspace(0.2, 1, 60)).release(
        table, seed=2, **SHORT
    )
    draws = release.fit.draws
    X = standata("counts")["X"]
    X = X - np.append(0, X[:, 1:].mean(axis=0))
    beta = np.column_stack([draws.flat("Intercept"), draws.flat("b")])
    mu, shape = np.exp(beta @ X.T), draws.flat("shape").reshape(-1, 1)
    expected = stats.nbinom.logpmf(table["visits"].to_numpy(), shape, shape / (shape + mu))
    found = np.concatenate(list(bound.log_lik(draws).make()), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert release.charge.kind == "asymptotic local"
    assert release.synthetic[0]["visits"].dtype == "int64"
    assert (release.synthetic[0]["visits"] >= 0).all()


def test_a_weight_acts_once(table: pd.DataFrame) -> None:
    """A program whose terms are weighted once more is caught when it is bound: the control."""
    counts().bind(table)
    text = (STORED / "counts.stan").read_text()
    twice = text.replace("target += weights[n] * (", "target += weights[n] * (weights[n] * ")
    with pytest.raises(InvalidInput, match="one term for each record"):
        ph.from_brms(twice, standata("counts"), outcome="visits")
    model = counts()
    program = str(model.program).replace(
        "target += weights[n] * (", "target += weights[n] * weights[n] * ("
    )
    with pytest.raises(InvalidInput, match="weight"):
        ph.StanModel(
            program, outcome="visits", predict="y_rep", data=model.data, public=model.public,
            density_above_one=False, decimals=0,
        ).bind(table)  # fmt: skip


def test_group_intercepts_and_old_arrays_are_taken(table: pd.DataFrame) -> None:
    model = ph.from_brms(STORED / "groups.stan", standata("groups"), outcome="score", decimals=2)
    assert "array[N] int<lower=1> J_1;" in str(model.program)
    assert model.density_above_one
    assert model.bind(table).n == 60


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("plain", {}, "must have weights: this one has none; make it with brms"),
        ("counts", {"weights": np.full(60, 0.5)}, "must all be 1: .* not be weighted twice"),
        ("counts", {"Y": None}, "it has no Y"),
    ],
)
def test_what_is_no_such_model_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    given = {k: v for k, v in (standata(name) | changes).items() if v is not None}
    with pytest.raises(InvalidInput, match=message):
        ph.from_brms(STORED / f"{name}.stan", given, outcome="visits")
