"""A user's own Stan program from the command line: the formula's design goes into it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.app import run
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session
from tests.models.test_composed_model import POISSON
from tests.refusals import refuses

PROGRAM = """
data {
  int<lower=1> n;
  int<lower=1> K;
  matrix[n, K] X;
  array[n] int<lower=0> y;
  vector<lower=0, upper=1>[n] weights;
  int<lower=0, upper=1> use_cap;
  real<lower=0> cap;
}
parameters { vector[K] beta; }
model {
  beta ~ normal(0, 2);
  for (i in 1:n) {
    real term = weights[i] * poisson_log_lpmf(y[i] | X[i] * beta);
    target += use_cap ? fmax(-cap, fmin(cap, term)) : term;
  }
}
generated quantities {
  vector[n] log_lik;
  array[n] int y_rep;
  for (i in 1:n) {
    log_lik[i] = poisson_log_lpmf(y[i] | X[i] * beta);
    y_rep[i] = poisson_log_rng(X[i] * beta);
  }
}
"""
BY_AREA = """
data { int<lower=1> n_regions; real<lower=0> spread; }
record { int<lower=0> visits; int<lower=1, upper=n_regions> place; }
parameters { vector[n_regions] level; }
prior { level ~ normal(0, spread); }
log_lik { return poisson_log_lpmf(visits | level[place]); }
replicate { return poisson_log_rng(level[place]); }
"""
FORMULA = ["--formula", "visits ~ age + region"]
OWN = "stan:program=own.stan,predict=y_rep,density_above_one=false"
STRICT = "composed:program=composed.stan,density_above_one=false,decimals=0"
SEEDED = ["--engine", "embedded", "--seed", "1"]
FAST = [*SEEDED, "--draws", "300"]
SHORT = SamplerSettings(draws=300)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table and a program."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    n = 120
    table = pd.DataFrame({
        "id": [f"{i % 5:03d}" for i in range(n)],
        "region": rng.choice(["a", "b", "c"], n),
        "age": rng.integers(-3, 4, n) / 2,
    })  # fmt: skip
    table["visits"] = rng.poisson(np.exp(0.5 + 0.2 * table["age"]))
    table.to_csv("data.csv", index=False)
    Path("own.stan").write_text(PROGRAM)
    Path("composed.stan").write_text(POISSON)
    Path("by_area.stan").write_text(BY_AREA)
    return tmp_path


@pytest.mark.long
def test_a_release_from_the_formula_and_the_program(folder: Path) -> None:
    asked = ["synthesize", "data.csv", *FORMULA, "--model", OWN, "--mechanism", "lipschitz"]
    assert run([*asked, *FAST, "--out", "out"]) == 0
    release = ph.Release.load("out")
    assert release.predictors == ("age", "region")
    assert release.settings["formula"] == FORMULA[1]
    assert not release.synthetic[0]["visits"].equals(pd.read_csv("data.csv")["visits"])
    assert Path("out/public/synthetic_1.csv").read_text().splitlines()[1].startswith("000,")


@pytest.mark.long
def test_the_design_is_that_of_the_built_in_models(folder: Path) -> None:
    table = pd.read_csv("data.csv")
    options = {"outcome": "visits", "predict": "y_rep", "formula": FORMULA[1]}
    own = ph.StanModel("own.stan", **options).bind(table)
    built_in = ph.Poisson(FORMULA[1]).bind(table)
    np.testing.assert_array_equal(own.stan_data(np.ones(own.n))["X"], built_in.design.X)
    assert own.design_columns == built_in.design.columns
    session = open_session(own, seed=1, engine="embedded", settings=SHORT)
    draws = session.unweighted().draws
    ours = np.concatenate(list(own.log_lik_blocks(draws)), axis=1)
    theirs = np.concatenate(list(built_in.log_lik_blocks(draws)), axis=1)
    np.testing.assert_allclose(ours, theirs[:, built_in.row_of], rtol=1e-10)


@pytest.mark.long
def test_a_later_step_codes_earlier_columns_as_the_data_were(folder: Path) -> None:
    table = pd.read_csv("data.csv")
    model = ph.StanModel("own.stan", outcome="visits", predict="y_rep", formula=FORMULA[1])
    bound = model.bind(table)
    draws = open_session(bound, seed=1, engine="embedded", settings=SHORT).unweighted().draws
    given = table.assign(region="b")  # one level only: coded by itself it would lose columns
    made = bound.replicate(draws, 0, np.random.default_rng(1), given)
    assert list(made.columns) == ["visits"]
    with pytest.raises(InvalidInput, match="must have one of its levels: row 0"):
        bound.replicate(draws, 0, np.random.default_rng(1), table.assign(region="z"))


@pytest.mark.long
def test_a_calibration_is_used_with_its_program_given_again(folder: Path) -> None:
    own = ["--model", STRICT, *FORMULA]
    table = pd.read_csv("data.csv", dtype={"id": str})
    ages = np.random.default_rng(2).permutation(table["age"])  # other records than those released
    table.assign(age=ages, visits=table["visits"].to_numpy()[::-1]).to_csv("last.csv", index=False)
    assert run(["calibrate", "last.csv", *own, *FAST, "--epsilon", "6", "--out", "reference",
                "--holds-no-released-record"]) == 0  # fmt: skip
    frozen = ["synthesize", "data.csv", "--calibration", "reference", *FAST, "--out", "out"]
    refuses("--formula and --model composed", run, frozen)
    assert run([*frozen, *own]) == 0
    charge = json.loads(Path("out/public/charge.json").read_text())
    assert (charge["kind"], charge["epsilon"], charge["cap"]) == ("strict", 6.0, 3.0)
    with pytest.raises(InvalidInput, match="model was 'ComposedModel', found 'StanModel'"):
        run([*frozen[:-1], "other", "--model", OWN, *FORMULA])
    with pytest.raises(InvalidInput, match="the data of the Stan program depends on all records"):
        run(["calibrate", "last.csv", "--model", OWN, *FORMULA, "--epsilon", "6", "--out", "x"])
    refuses("give no --formula", run, [*frozen[:-1], "other", "--model", "poisson", *FORMULA])


@pytest.mark.long
def test_a_composed_program_is_strict(folder: Path) -> None:
    """With the formula's design, and with columns, constants and declared levels instead."""
    Path("levels.json").write_text(json.dumps({"region": ["a", "b", "c"]}))
    by_area = (
        "composed:program=by_area.stan,columns=place=region,data=n_regions=3+spread=2.5,"
        "levels=levels.json,density_above_one=false,decimals=0"
    )
    for name, given in (
        ("design", ["--model", STRICT, *FORMULA]),
        ("area", ["--model", by_area, "--formula", "visits ~ 1"]),
    ):
        mechanism = ["--mechanism", "censored:epsilon=40,inner=unweighted,check_modes=false"]
        assert run(["synthesize", "data.csv", *given, *mechanism, *FAST, "--out", name]) == 0
        charge = json.loads(Path(f"{name}/public/charge.json").read_text())
        assert (charge["kind"], charge["epsilon"]) == ("strict", 40.0)
    assert ph.Release.load("area").predictors == ("region",)


@pytest.mark.long
@pytest.mark.parametrize(("model", "message"), [
    ("composed", "--model composed needs program"),
    ("composed:program=own.stan", "must hold the blocks functions, data, record"),
    ("composed:program=by_area.stan", "'n_regions' is missing"),
    ("composed:program=composed.stan,levels=none.json", "levels must be in a readable file"),
    ("stan:program=own.stan,predict=y_rep,by_record=true", "log_lik {\n  return poisson_log_l"),
    ("stan", "--model stan needs program"), ("stan:program=own.stan", "--model stan needs predict"),
    ("stan:program=own.stan,predict=y_rep,data=x", "takes no --data"),
    ("stan:program=none.stan,predict=y_rep", "must be a readable Stan file"),
    ("stan:program=own.stan,predict=y_rop", "must be a variable of program 'own'"),
])  # fmt: skip
def test_bad_options_are_named_and_nothing_written(folder: Path, model: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run(["synthesize", "data.csv", *FORMULA, "--model", model, "--mechanism", "unweighted",
             *FAST, "--out", "out"])  # fmt: skip
    assert not Path("out").exists()


def test_formulas_that_do_not_fit_the_model_are_refused(folder: Path) -> None:
    table = pd.read_csv("data.csv")
    options = {"predict": "y_rep", "formula": "visits ~ age"}
    with pytest.raises(InvalidInput, match="must have the outcome 'age' on its left"):
        ph.StanModel("own.stan", outcome="age", **options).bind(table)
    beside = ph.StanModel("own.stan", outcome="visits", predictors=("region",), **options)
    assert beside.bind(table).predictors == ("age", "region")
    with pytest.raises(InvalidInput, match="predictors must be a tuple of names"):
        ph.StanModel("own.stan", outcome="visits", predictors="region", **options)
    bound = ph.StanModel(
        "own.stan", outcome="visits", predict="y_rep", formula="visits ~ poly(age, 2)",
    ).bind(table)  # fmt: skip
    assert "poly(age, 2)" in bound.data_dependent
    composed = {"outcome": "visits", "decimals": 0}
    for formula, found in (("visits ~ poly(age, 2)", ("poly(age, 2)",)), ("visits ~ age", ())):
        bound = ph.ComposedModel("composed.stan", formula=formula, **composed).bind(table)
        assert bound.data_dependent == found
    with pytest.raises(InvalidInput, match="predictors, age, which block 'record' must read"):
        ph.ComposedModel(
            "by_area.stan", formula="visits ~ age", columns={"place": "region"},
            data={"n_regions": 3, "spread": 1}, levels={"region": ("a", "b", "c")}, **composed,
        ).bind(table)  # fmt: skip


def test_validate_refuses_what_r_cannot_follow(folder: Path) -> None:
    for model in (OWN, STRICT):
        with pytest.raises(InvalidInput, match="must be built in to be held against R"):
            run(["validate", "data.csv", *FORMULA, "--model", model, "--quick"])
