"""`pyhybrid synthesize --formula`: the draft of a declaration, and strict releases by it."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph

pytestmark = pytest.mark.usefixtures("opendp")


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    n = 2000
    table = pd.DataFrame({"age": rng.integers(20, 80, n), "sex": rng.choice(["f", "m"], n)})
    table["visits"] = rng.negative_binomial(2, 0.3, n)
    table["voted"] = np.where(rng.random(n) < 0.4, "yes", "no")
    table["income"] = np.round(rng.lognormal(10, 0.6, n), 2)
    table.to_csv("survey.csv", index=False)
    return table


@pytest.fixture
def ask(run, survey):
    """`synthesize` of a formula of the survey: its exit code, what it shows, its notes."""
    asked = ("synthesize", "survey.csv", "--out", "o", "--formula")
    return lambda formula, *words: run(*asked, formula, *words)


def again(shown):
    """The options that a draft ends with."""
    return shlex.split(next(line for line in shown.splitlines() if line.startswith("--model ")))


def test_without_a_model_the_options_are_shown_and_work(ask):
    code, out, err = ask("voted ~ age + sex")
    assert code == 2
    assert "at epsilon 1 intervals will be" in err, "known before anything is spent"
    assert not Path("o").exists()
    assert "voted seems to hold two levels" in out
    code, _, err = ask("voted ~ age + sex", *again(out), "--drop", "age")
    assert (code, Path("o").exists()) == (2, False)
    assert "'age' must be published as it is" in err.splitlines()[-1]
    code, out, err = ask("voted ~ age + sex", *again(out))
    assert code == 0, err
    assert "at epsilon 1 intervals will be" in err
    charge = json.loads(Path("o/public/charge.json").read_text())
    assert (charge["epsilon"], charge["kind"], charge["delta"]) == (1.0, "strict", 1e-6)


def test_numbers_of_persons_and_columns_that_tell_an_outcome_are_not_published(ask, survey):
    """Seen: a panel's numbers of persons, and all parts of a total, left with one note, or none."""
    k = np.arange(400)
    table = survey[["visits"]][:400].assign(Fallnr=[f"F{7 * (i // 2):05d}" for i in k], welle=k % 2)
    other = survey["age"][:400]
    table.assign(other=other, total=other + table["visits"]).to_csv("survey.csv", index=False)
    asked = "visits ~ total", "--model", "negative_binomial"
    code, _, err = ask(*asked)
    assert (code, Path("o").exists()) == (2, False)
    assert "'Fallnr': it may identify persons with several rows each" in err
    _, out, _ = ask("visits ~ total")
    assert again(out)[-1] == "Fallnr,other", "no predictor, if another one will do"
    code, out, err = ask(*asked, "--unit", "Fallnr", "--drop", "Fallnr")
    assert code == 0, err
    told = "Published columns give synthesized values of the records away"
    assert told in out
    assert told in Path("o/confidential/report.html").read_text()


def test_the_command_shown_leaves_out_what_needs_a_decision(ask, survey):
    """It works as it stands; what is read or was decided is not named again."""
    table = survey[["age", "sex", "visits"]].assign(person_id=np.arange(2000) * 7, note="a b c")
    table.assign(name=[f"Ann {k}" for k in range(2000)]).to_csv("survey.csv", index=False)
    code, out, _ = ask("visits ~ age", "--drop", "name")
    assert code == 2
    assert "person_id: not safe to publish as is" in out
    code, out, err = ask("visits ~ age", "--drop", "name", *again(out))
    assert code == 0, err
    assert not {"person_id", "name"} & set(pd.read_csv("o/public/synthetic_1.csv").columns)


@pytest.mark.parametrize(("formula", "said"), [
    ("pension ~ age", "and zeros: --model lognormal:decimals=2,unit=20000,zeros=true"),
    ("seen ~ age + sex", "and missing values: --model negative_binomial:missing=true"),
    ("vote ~ age", "and missing values: --model bernoulli:levels=no+yes,missing=true"),
])  # fmt: skip
def test_zeros_and_missing_values_are_declared_by_the_command_shown(ask, survey, formula, said):
    outcome = formula.split(" ")[0]
    gone = np.random.default_rng(2).random(len(survey)) < 0.2
    survey["pension"] = np.where(gone, 0, survey["income"])
    survey["seen"] = survey["visits"].astype("Int64").mask(gone)
    survey["vote"] = survey["voted"].mask(gone)
    survey[["age", "sex", outcome]].to_csv("survey.csv", index=False)
    code, out, _ = ask(formula, "--epsilon", "2")
    assert code == 2
    assert said in " ".join(out.split())
    code, _, err = ask(formula, "--epsilon", "2", *again(out))
    assert code == 0, err
    release = ph.Release.load("o")
    assert release.charge.kind == "strict"
    values = release.synthetic[0][outcome]
    assert abs((values.isna() | (values == 0)).mean() - 0.25) < 0.15


def test_several_formulas_share_epsilon_and_read_synthetic_columns(ask):
    models = ["--model", "bernoulli:levels=no+yes", "--model", "negative_binomial"]
    asked = ("--formula", "visits ~ voted + age", *models, "--epsilon", "2")
    code, _, err = ask("voted ~ age", *asked)
    assert code == 0, err
    release = ph.Release.load("o")
    assert release.charge.kind == "strict"
    assert 1.99 < release.charge.epsilon <= 2.000001
    assert release.synthesized == ("voted", "visits")


def test_a_ledger_without_a_delta_is_refused_before_any_noise_is_drawn(run, survey):
    """By --delta, too, in both commands that draw Gaussian noise."""
    ph.Ledger("pure.jsonl", budget=4, kind="strict", relation="remove")
    asked = ("synthesize", "survey.csv", "--ledger", "pure.jsonl", "--out", "o")
    by_formula = ("--formula", "visits ~ age", "--model", "poisson")
    assert "ledger create --delta 1e-6" in run(*asked, *by_formula)[2]
    for words in (by_formula, ("--epsilon", "1")):  # the table's types would be drafted after it
        code, _, err = run(*asked, *words, "--delta", "1e-6")
        assert (code, "must be counted at its delta, none: found 1e-06" in err) == (2, True), err
    assert not Path("survey.types.json").exists()


def test_a_reference_chooses_the_model_and_the_start(ask, survey):
    asked = ("income ~ age", "--reference", "last_year.csv", "--holds-no-released-record")
    survey.to_csv("last_year.csv", index=False)
    code, _, err = ask(*asked)
    assert code == 2
    assert "2,000 rows are in both tables" in err
    survey[:1000].to_csv("last_year.csv", index=False)
    survey[1000:].to_csv("survey.csv", index=False)
    code, _, err = ask(*asked)
    assert code == 0, err
    assert "model of income by the reference: lognormal:decimals=2" in err
    assert "start" in ph.Release.load("o").settings


def test_one_cell_changes_nothing_that_is_shown_or_asked(ask, survey):
    """The same exit code, notes and files by name, whatever one cell of the outcome holds."""
    words, notes = ("visits ~ age + sex", "--model", "negative_binomial", "--overwrite"), set()
    for cell in ("3", "x", "", "1e400"):
        table = survey[:300].astype({"visits": object})
        table.loc[5, "visits"] = cell
        table.to_csv("survey.csv", index=False)
        code, _, err = ask(*words)
        notes.add((code, err))
    assert len(notes) == 1
