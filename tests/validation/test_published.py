"""`validate --published`: the papers' programs against ours; wrong programs are caught."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid import validation
from pyhybrid.core.errors import EngineUnavailable, NotConverged, SamplingError
from pyhybrid.core.randomness import streams
from pyhybrid.engines import EngineStatus, SamplerSettings, StanProgram
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.models.families.regression import PUBLISHED
from pyhybrid.validation import published
from tests.refusals import fails, refuses

QUICK = SamplerSettings(warmup=300, draws=300)


@pytest.fixture(autouse=True)
def _embedded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    unseen = type("R", (), {"available": False})()
    monkeypatch.setattr(validation, "r_status", lambda: unseen)


def _beta(**how: Any) -> Any:
    return validation.validate_published("beta", quick=True, records=40, settings=QUICK, **how)


def test_each_published_program_has_data_of_a_study() -> None:
    cases = published.study_cases(np.random.default_rng(1), records=30)
    assert set(cases) == set(PUBLISHED)
    for name, (model, table) in cases.items():
        assert len(table) == 30
        bound = replace(model, program="published").bind(table)
        assert bound.program.name == f"published/{name}"


@pytest.mark.samples
def test_the_printed_beta_agrees_and_is_saved_in_two_forms(tmp_path: Path) -> None:
    found = _beta(progress=lambda *_: None)
    assert found.agrees, found.table[~found.table["agrees"]].to_string()
    quantities = [row.quantity for row in found.rows]
    assert quantities[:2] == ["2 Delta, unweighted", "2 Delta, weighted"]
    assert {"sum of alpha f, weighted", "mean of predictions, weighted"} <= set(quantities)
    exact = [row for row in found.rows if row.quantity.startswith("log_lik of the same theta")]
    assert [row.unit for row in exact] == ["relative"] * 2
    assert {"stan/beta.stan", "stan/published/beta.stan"} == set(found.programs)
    assert not found.own_data
    for name in ("v.html", "v.csv"):
        found.save(tmp_path / name)
    assert "2 Delta, weighted" in (tmp_path / "v.html").read_text()
    assert len(found.rows) == len(pd.read_csv(tmp_path / "v.csv"))


@pytest.mark.samples
@pytest.mark.parametrize("program", [name for name in PUBLISHED if name != "beta"])
def test_posteriors_of_published_programs_are_ours(program: str) -> None:
    found = validation.validate_published(program, quick=True, records=40, settings=QUICK)
    assert found.agrees, found.table[~found.table["agrees"]].to_string()


@pytest.mark.samples
@pytest.mark.parametrize(("old", "new", "wrong"), [
    ("lambda ~ pareto(0.1, 1.5)", "lambda ~ pareto(0.1, 60)", "lambda, unweighted"),
    ("fmin(M, alpha[i] *", "fmin(M, 0.2 * alpha[i] *", "sum of alpha f, weighted"),
    ("log_lik_noM[i] = alpha[i] *", "log_lik_noM[i] = (1 + 1e-9) * alpha[i] *", "log_lik of"),
    ("y_rep[i] = beta_rng(beta1", "y_rep[i] = beta_rng(2 * beta1", "mean of predictions"),
])  # fmt: skip
def test_a_wrong_program_is_caught(
    old: str, new: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(EmbeddedEngine):
        def sample(self, program: StanProgram, data: Any, **how: Any) -> Any:
            if program.name == "published/beta":
                assert old in program.text
                program = replace(program, text=program.text.replace(old, new))
            return super().sample(program, data, **how)

    monkeypatch.setattr(validation, "engine_by_name", lambda name: Broken())
    monkeypatch.setattr(validation, "_IN_PYTHON", ("embedded",))
    found = _beta()
    assert any(row.quantity.startswith(wrong) for row in found.disagreements)


@pytest.mark.parametrize("failure", [NotConverged, SamplingError])
def test_chains_that_fail_disagree_and_name_the_way_out(
    failure: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def side(bound: Any, **_: Any) -> Any:
        if bound.program.name.startswith("published/"):
            raise failure("R-hat of beta is 1.8")
        ours = type("Ours", (), {"fits": [None] * 2})()
        ours.fits[1] = type("Fit", (), {"alpha": np.ones(3)})()
        return ours

    monkeypatch.setattr(published, "side_of", side)
    cases = published.study_cases(np.random.default_rng(1), records=30)
    only = {"poisson": cases["poisson"]}
    engine = EmbeddedEngine()
    rows, _ = published.published_rows(only, (engine,), streams(1), None, None)
    assert "the default program has the same posterior: R-hat of beta is 1.8" in rows[0].quantity
    assert not rows[0].agrees


def test_too_few_records_and_no_engine_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses("records must be a whole number >= 20", validation.validate_published, records=3)
    missing = EngineStatus(name="embedded", cause="stanli is gone")
    monkeypatch.setattr(EmbeddedEngine, "status", lambda self: missing)
    fails(EngineUnavailable, "stanli is gone", validation.validate_published, quick=True)
