"""A user's own Stan program from the command line: the formula's design goes into it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.app import run
from tests.models.test_stan_model import BY_DESIGN
from tests.refusals import refuses

FORMULA = ["--formula", "visits ~ age + region"]
OWN = "stan:program=own.stan,predict=y_rep,density_above_one=false"
FAST = ["--fit", "engine=embedded,seed=1,draws=300,refits=0"]


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
    Path("own.stan").write_text(BY_DESIGN)
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
@pytest.mark.parametrize(("model", "message"), [
    ("stan", "--model stan needs program"), ("stan:program=own.stan", "--model stan needs predict"),
    ("stan:program=own.stan,predict=y_rep,data=x", "takes no data"),
    ("stan:program=none.stan,predict=y_rep", "must be a readable Stan file"),
    ("stan:program=own.stan,predict=y_rop", "must be a variable of program 'own'"),
])  # fmt: skip
def test_bad_options_are_named_and_nothing_written(folder: Path, model: str, message: str) -> None:
    asked = ["synthesize", "data.csv", *FORMULA, "--model", model, "--mechanism", "unweighted"]
    refuses(message, run, [*asked, *FAST, "--out", "out"])
    assert not Path("out").exists()


def test_validate_and_calibrations_refuse_what_they_cannot_follow(folder: Path) -> None:
    own = ["data.csv", *FORMULA, "--model", OWN]
    refuses("must be built in, ", run, ["validate", *own, "--quick"])
    refuses("the data of the Stan program depends on all records", run,
            ["calibrate", *own, "--epsilon", "6", "--out", "x"])  # fmt: skip
