"""`validate`: Python against live R; broken functions, wrong models, biased means are caught."""

import os
import re
import stat
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.engines import EngineStatus, SamplerSettings
from pyhybrid.engines.rstan import RStanEngine
from pyhybrid.fitting.session import open_session
from pyhybrid.models import NegativeBinomial, Poisson
from pyhybrid.validation import posterior
from pyhybrid.validation.comparison import compare
from tests.conftest import Run
from tests.refusals import fails

SHORT = SamplerSettings(chains=4, warmup=500, draws=500)


@pytest.fixture
def own() -> pd.DataFrame:
    rng = np.random.default_rng(6)
    n = 150
    table = pd.DataFrame({
        "visits": rng.negative_binomial(2, 0.3, n), "age": rng.integers(18, 80, n),
        "sex": rng.choice(["f", "m"], n),
        "income": pd.Categorical(
            rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
        ),
        "insured": rng.random(n) < 0.5,
    })  # fmt: skip
    return table.set_axis(table.index * 3 + 7)


@pytest.mark.parametrize(("python", "other", "difference"), [
    (2.0, 2.0, 0.0),
    ([1.0, 4.0], [1.0, 5.0], 0.2),
    (0.0, 1e-9, 1e-6),  # relative to 0.001 at least
    ([np.inf, -np.inf, np.nan], [np.inf, -np.inf, np.nan], 0.0),
    ([np.inf], [-np.inf], np.inf),
    ([1.0, np.nan], [1.0, 1.0], np.inf),
    ([1.0, np.inf], [1.0, 3.0], np.inf),
    ([1.0, 2.0], [1.0], np.inf),
    ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 3.0], [2.0, 4.0]], 1 / 3),
    (True, True, 0.0),
])  # fmt: skip
def test_differences(python: Any, other: Any, difference: float) -> None:
    row = compare("p", "q", python, other)
    assert row.difference == pytest.approx(difference, rel=1e-12)
    assert row.agrees == (difference == 0)


def test_the_pair_that_is_furthest_apart_is_shown() -> None:
    row = compare("p", "q", [1.0, 5.0, 2.0], [1.0, 5.0, 2.0 + 2e-12])
    assert (row.python, row.r, row.numbers) == (2.0, 2.0 + 2e-12, 3)
    assert row.difference == pytest.approx(1e-12, rel=1e-3)
    assert compare("p", "q", [1.0, -5.0, np.inf], [1.0, -5.0, np.inf]).python == -5.0
    loose = compare("p", "q", [1e-6, 10.0], [2e-6, 10.0], to_largest=True, tolerance=1e-6)
    assert loose.difference == pytest.approx(1e-7)
    assert not replace(row, difference=np.nan).agrees


@pytest.mark.samples
def test_generated_data_agree(r: None) -> None:
    found = ph.validation.validate(quick=True)
    assert found.agrees, found.table[~found.table["agrees"]].to_string()
    assert "agree on all" in found.verdict
    assert {row.part for row in found.rows} == {"table", "same draws: embedded"}
    assert any(cause.startswith("rstan") for cause in found.left_out)
    assert not found.own_data
    assert found.table.shape == (len(found.rows), 9)
    fails(FrozenInstanceError, "", setattr, found, "seed", 2)


@pytest.mark.samples
def test_rstan_agrees_with_the_embedded_engine(rstan: None) -> None:
    seen = set()
    found = ph.validation.validate(
        model="poisson", settings=SHORT, progress=lambda label, done, total: seen.add(label)
    )
    assert found.agrees, found.table[~found.table["agrees"]].to_string()
    both = (f"posterior means: {k}, embedded and rstan" for k in ("unweighted", "weighted"))
    assert {"same draws: rstan", *both} <= {row.part for row in found.rows}
    means = {row.quantity for row in found.rows if "means: weighted" in row.part}
    assert {"beta[age]", "largest |alpha f|", "sum of alpha f"} <= means
    fits = {"poisson by rstan: weighted fit", "poisson by embedded: unweighted fit"}
    assert {"log_lik by rstan", *fits} <= seen
    assert found.versions["rstan"].startswith(("2.", "3."))
    assert re.fullmatch(r"[0-9a-f]{64}", found.programs["stan/poisson.stan"])
    old = tuple(int(part) for part in found.versions["rstan"].split(".")[:2]) < (2, 26)
    assert any("rewritten for rstan" in note for note in found.notes) == old


@pytest.mark.samples
def test_a_broken_function_is_caught(run: Run, r: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: exit code 1 and the quantity by name."""
    sound = ph.reweight
    monkeypatch.setattr(ph, "reweight", lambda *a, **k: sound(*a, **k) * (1 - 1e-9))
    code, out, err = run("validate", "--quick", "--out", "report.html")
    assert (code, err) == (1, "")
    wrong = [line for line in out.splitlines() if "DISAGREES" in line]
    assert wrong
    assert all("reweight" in line for line in wrong)
    assert "<li>Disagrees: reweight" in Path("report.html").read_text()


@pytest.mark.samples
def test_a_wrong_log_likelihood_is_caught(r: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = NegativeBinomial.log_lik
    monkeypatch.setattr(NegativeBinomial, "log_lik", lambda *a: sound(*a) * (1 + 1e-9))
    found = ph.validation.validate(quick=True)
    wrong = {row.quantity for row in found.rows if not row.agrees}
    assert {"log_lik: numpy and Stan", "lipschitz_bounds, draw_quantile 1"} <= wrong
    assert {row.part for row in found.rows if not row.agrees} == {"same draws: embedded"}
    assert not found.agrees


def test_a_wrong_design_is_caught(own: pd.DataFrame, r: None) -> None:
    bound = Poisson("visits ~ age + income").bind(own)
    assert all(row.agrees for row in posterior.table_rows(bound))
    other = own.assign(age=own["age"].where(own["age"] > own["age"].min(), 99))
    wrong = replace(bound, table=other)
    assert [row.agrees for row in posterior.table_rows(wrong)] == [True, False]


@pytest.mark.samples
def test_a_posterior_of_other_data_is_caught(own: pd.DataFrame) -> None:
    bound = Poisson("visits ~ age").bind(own)
    shifted = Poisson("visits ~ age").bind(own.assign(visits=own["visits"] + 1))
    one, two, other = (
        open_session(of, seed=seed, engine="embedded", settings=SHORT).unweighted()
        for of, seed in ((bound, 1), (bound, 2), (shifted, 1))
    )
    rows = list(posterior.mean_rows(bound, "p", one, two))
    assert len(rows) == 6
    assert all(row.agrees and 0 < row.difference < 5 for row in rows)
    rows = list(posterior.mean_rows(bound, "p", one, other))
    wrong = {row.quantity for row in rows if not row.agrees}
    assert {"beta[Intercept]", "sum of alpha f"} <= wrong


@pytest.mark.samples
def test_own_data_give_a_confidential_report(
    own: pd.DataFrame, run: Run, r: None, tmp_path: Path
) -> None:
    own.to_parquet(tmp_path / "own.parquet")
    formula = ["--formula", "visits ~ sex * income + age + insured"]
    arguments = ["validate", "own.parquet", *formula, "--quick", "--out", "new/report.html"]
    code, out, err = run(*arguments, "--seed", "5")
    assert (code, err) == (0, "")
    assert "confidential: has bounds and weights" in out
    path = tmp_path / "new" / "report.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["report.html"]
    text = path.read_text()
    assert "CONFIDENTIAL" in text
    assert not re.search(r'<script|<link|src=|href="(?!#)|url\(|@import|https?:', text)
    for needed in (
        "sha256 of stan/negative_binomial.stan",
        "matrixStats", "numpy", "own.parquet: 150 records, 5 columns",
        '<td data-label="Value">5</td>',
    ):  # fmt: skip
        assert needed in text
    assert "must be a new file" in run(*arguments)[2]
    assert path.read_text() == text


@pytest.mark.parametrize(("arguments", "message"), [
    (["own.csv"], "DATA and --formula must be given together"),
    (["missing.csv", "--formula", "y ~ 1"], "missing.csv must exist"),
    (["--model", "nothing"], "model must be one of negative_binomial, poisson"),
    (["--engine", "rstan"], "engine must be one of all, auto, cmdstan, embedded"),
    (["--out", "."], "must be a file: it is a folder"),
    (["--engine", "cmdstan"], "engine 'cmdstan' cannot run here"),
    (["--published", "own.csv"], "the papers' programs have data of their own"),
    (["--published", "--supplement", "missing.R"], "must be your copy of the printed R script"),
    (["--published", "--program", "x.stan"], "--program goes with --supplement FILE.R"),
])  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, refused: Any, r: None
) -> None:
    assert message in refused("validate", *arguments)


@pytest.mark.needs_r
def test_without_r_nothing_is_faked(refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("R_HOME", raising=False)
    error = refused("validate", "--quick", "--out", "report.html")
    assert "R must be installed: no R is on the path" in error


def test_without_rstan_the_message_names_the_way_out(
    r: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = EngineStatus(name="rstan", cause="rstan is gone", remedy="get it")
    monkeypatch.setattr(RStanEngine, "status", lambda self: missing)
    fails(EngineUnavailable, "rstan is gone; get it; quick=True", ph.validation.validate)
