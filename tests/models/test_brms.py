"""brms models as synthesizers: programs that brms 2.18.0 wrote (tests/stored/brms)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.models import from_brms
from tests.fits import fit_options
from tests.refusals import refuses

STORED = Path(__file__).parents[1] / "stored" / "brms"
SHORT = fit_options(chains=2, warmup=200, draws=250, on_not_converged="warn")


def standata(name: str) -> dict[str, Any]:
    given = json.loads((STORED / f"{name}.json").read_text())
    return {k: np.array(v) if isinstance(v, list) else v for k, v in given.items()}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    frame: pd.DataFrame = pd.read_csv(STORED / "data.csv")
    return frame


def counts(**options: Any) -> ph.ComposedModel:
    made = from_brms(STORED / "counts.stan", standata("counts"), outcome="visits", **options)
    assert isinstance(made, ph.ComposedModel)
    return made


def uncentered() -> str:
    """What brms writes for ``bf(..., center = FALSE)``: X as it is, b with its intercept."""
    text = (STORED / "counts.stan").read_text()
    start, end = text.index("transformed data {"), text.index("parameters {\n")
    text = text[:start] + "transformed data {\n}\n" + text[end:]
    text = text.replace("vector[Kc] b;", "vector[K] b;").replace("Intercept + Xc * b", "X * b")
    text = text.replace("  real Intercept;  // temporary intercept for centered predictors\n", "")
    text = text.replace("  lprior += normal_lpdf(Intercept | 0, 10);\n", "")
    return text[: text.index("  // actual population-level")] + "}\n"


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_log_lik_is_the_density_without_the_weight(table: pd.DataFrame) -> None:
    """Held against scipy at the draws, under weights that are not 1: never weighted twice."""
    bound = counts().bind(table)
    release = ph.GivenWeights(counts(), alpha=np.linspace(0.2, 1, 60)).release(table, seed=2,
                                                                               **SHORT)  # fmt: skip
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


def test_the_program_is_taken_apart_and_says_the_same(table: pd.DataFrame) -> None:
    """The whole program's log density, at weights that are not 1; the control: other weights."""
    text = (STORED / "counts.stan").read_text()
    given = {k: v for k, v in standata("counts").items() if k not in ("Y", "weights")}
    whole = ph.StanModel(
        str(from_brms(text, standata("counts"), outcome="visits", predict="y_rep").program),
        outcome="visits", predict="y_rep", data=given, public=tuple(given), density_above_one=False,
    ).bind(table)  # fmt: skip
    composed = counts().bind(table)
    alpha = np.linspace(0.2, 1, 60)
    points = np.random.default_rng(1).uniform(-1, 1, (5, 4))
    found = [
        ProgramAtPoints(own.program, own.stan_data(weights)).log_density(points)
        for own, weights in ((whole, alpha), (composed, alpha), (composed, alpha / 2))
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    assert np.abs(found[2] - found[0]).min() > 1


def test_a_design_that_is_not_centered_can_be_strict(table: pd.DataFrame) -> None:
    """By the user's word on it; centered by the means of all records it cannot be."""
    own = from_brms(uncentered(), standata("counts"), outcome="visits", by_record=True)
    assert isinstance(own, ph.ComposedModel)
    bound = own.bind(table)
    assert (bound.never_strict, bound.data_dependent, bound.decimals_given) == ((), (), True)
    assert counts().bind(table).data_dependent
    refuses("centers its columns by their means", counts, by_record=True)


def test_what_cannot_be_taken_apart_stays_whole_and_says_why(table: pd.DataFrame) -> None:
    text = (STORED / "counts.stan").read_text()
    for change, why in (
        (("mean(X[, i])", "max(X[, i])"), "other than the centering of X"),
        (("lprior += gamma_lpdf", "lprior += N * 0 + gamma_lpdf"), "not in scope"),
        (("    }\n  }\n  // priors", "    }\n    target += 0;\n  }\n  // priors"), "goes on after"),
    ):
        assert change[0] in text
        with pytest.warns(UserWarning, match=f"stays whole, and its charges local: .*{why}"):
            own = from_brms(text.replace(*change), standata("counts"), outcome="visits")
        assert isinstance(own, ph.StanModel)
        assert own.bind(table).data_dependent


def test_a_weight_acts_once(table: pd.DataFrame) -> None:
    """A program whose terms are weighted once more is caught: the control."""
    text = (STORED / "counts.stan").read_text()
    twice = text.replace("target += weights[n] * (", "target += weights[n] * (weights[n] * ")
    refuses("one term for each record", from_brms, twice, standata("counts"), outcome="visits")
    model = from_brms(text, standata("counts"), outcome="visits", predict="y_rep")
    assert isinstance(model, ph.StanModel)
    program = str(model.program).replace("target += weights[n] * (",
                                         "target += weights[n] * weights[n] * (")  # fmt: skip
    assert program != str(model.program)
    with pytest.raises(InvalidInput, match="weight"):
        ph.StanModel(
            program, outcome="visits", predict="y_rep", data=model.data, public=model.public,
            density_above_one=False, decimals=0,
        ).bind(table)  # fmt: skip


def test_group_intercepts_and_old_arrays_are_taken(table: pd.DataFrame) -> None:
    model = from_brms(STORED / "groups.stan", standata("groups"), outcome="score", decimals=2,
                      predictors=("g",))  # fmt: skip
    assert isinstance(model, ph.ComposedModel)
    assert "array[pyhybrid_n] int<lower=1> pyhybrid_J_1;" in model.text.program().text
    assert model.density_above_one
    assert model.bind(table).n == 60
    assert model.bind(table).predictors == ("g",)


@pytest.mark.parametrize(("name", "changes", "message"), [
    ("plain", {}, "must have weights: this one has none; make it with brms"),
    ("counts", {"weights": np.full(60, 0.5)}, "must all be 1: .* not be weighted twice"),
    ("counts", {"Y": None}, "it has no Y"),
])  # fmt: skip
def test_what_is_no_such_model_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    given = {k: v for k, v in (standata(name) | changes).items() if v is not None}
    refuses(message, from_brms, STORED / f"{name}.stan", given, outcome="visits")
