"""A calibration is strict once its owner has confirmed that it has other records."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.reports.checklist import review_checklist
from tests.fits import ANY_DRAWS, fit_options

OWNERS_WORD = "The owner states that the reference holds no record that is released here."

MODEL = ph.Poisson("y ~ x + g")
OPTIONS = fit_options(chains=2, warmup=150, draws=100, rule=ANY_DRAWS)


def survey(seed: int, n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "y": rng.poisson(4, n), "x": rng.normal(size=n).round(2),
        "g": rng.choice(["a", "b"], n), "pay": rng.normal(30, 9, n).round(1),
    })  # fmt: skip


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return ph.calibrate(
        MODEL, survey(1), epsilon=6, n_draws=50, holds_no_released_record=True, **OPTIONS
    )


@pytest.mark.samples
def test_on_other_records_it_is_strict(calibration: Calibration, tmp_path: Path) -> None:
    mechanism = ph.Censored(calibration=calibration, check_modes=False)
    release = mechanism.release(survey(2), **OPTIONS)
    assert release.charge.kind == "strict"
    assert OWNERS_WORD in release.statement
    assert OWNERS_WORD in review_checklist(release)
    ledger = ph.Ledger(tmp_path / "l", budget=100, kind="strict", relation="remove")
    release.save(tmp_path / "out", ledger=ledger, report=False)


@pytest.mark.normal_draws
def test_without_the_owners_word_nothing_is_strict(
    calibration: Calibration, tmp_path: Path
) -> None:
    """Also of a stored calibration; the message says what to write."""
    unsaid = dataclasses.replace(calibration, holds_no_released_record=False)
    mechanism = ph.Censored(calibration=unsaid, check_modes=False)
    assert mechanism.why_local(MODEL.bind(survey(2))) is not None
    with pytest.warns(UserWarning, match="holds_no_released_record=True of"):
        release = mechanism.release(survey(2), **OPTIONS)
    assert release.charge.kind == "asymptotic local"
    assert "The owner has not confirmed" in release.statement
    calibration.save(tmp_path / "c")
    file = tmp_path / "c" / "calibration.json"
    content = json.loads(file.read_text())
    assert content.pop("holds_no_released_record") is True
    assert Calibration.load(tmp_path / "c").holds_no_released_record
    file.write_text(json.dumps(content))
    assert not Calibration.load(tmp_path / "c").holds_no_released_record


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore:the owner has not confirmed")
def test_from_the_command_line(tmp_path: Path, run: Any, refused: Any) -> None:
    survey(1).to_csv("f.csv", index=False)
    survey(2).to_csv("other.csv", index=False)
    code, _, error = run("calibrate", "f.csv", "--formula", "y ~ x + g", "--model", "poisson",
                         "--epsilon", "6", "--out", "c", "--fit", "engine=embedded")  # fmt: skip
    assert code == 0
    assert "--holds-no-released-record" in error
    asked = ("synthesize", "other.csv", "--mechanism", "censored:calibration=c", "--out", "out",
             "--fit", "engine=embedded,draws=500")  # fmt: skip
    assert "a strict release lacks" in refused(*asked)
    assert run(*asked, "--holds-no-released-record")[0] == 0
    charge = json.loads((tmp_path / "out/public/charge.json").read_text())
    assert charge["kind"] == "strict"


@pytest.mark.normal_draws
def test_a_strict_release_gives_the_center(calibration: Calibration) -> None:
    """Of the same records: what was released is public, and the charges add."""
    scores = ph.ClippedScores(MODEL, epsilon=4, delta=1e-3)
    first = scores.release(survey(2))
    made = ph.calibrate(MODEL, first, epsilon=1, **OPTIONS)
    assert made.holds_no_released_record
    assert made.center is not None
    assert made.center.public
    second = ph.Censored(calibration=made, check_modes=False).release(survey(2), **OPTIONS)
    assert second.charge.kind == "strict"
    assert 4.5 < ph.arrays.compose([first.charge, second.charge]) <= 5
    local = ph.Unweighted(MODEL).release(survey(2), refits=0, **OPTIONS)
    with pytest.raises(InvalidInput, match="must be strict: this one is asymptotic local"):
        ph.calibrate(MODEL, local, epsilon=1, **OPTIONS)
