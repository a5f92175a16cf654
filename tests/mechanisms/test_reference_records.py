"""A calibration is strict once its owner has confirmed that it has other records."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.reports.checklist import review_checklist
from tests.fits import ANY_DRAWS, fit_options
from tests.refusals import refuses

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
    frozen = {"n_draws": 50, "holds_no_released_record": True, **OPTIONS}
    return ph.calibrate(MODEL, survey(1), epsilon=6, **frozen)


@pytest.mark.samples
def test_on_other_records_it_is_strict(calibration: Calibration, tmp_path: Path) -> None:
    mechanism = ph.Censored(calibration=calibration, check_modes=False)
    release = mechanism.release(survey(2), **OPTIONS)
    assert (release.charge.kind, release.charge.epsilon) == ("strict", 6)
    assert "calibration" not in repr(mechanism)
    assert OWNERS_WORD in release.statement
    assert OWNERS_WORD in review_checklist(release)
    ledger = ph.Ledger(tmp_path / "l", budget=100, kind="strict", relation="remove")
    release.save(tmp_path / "out", ledger=ledger, report=False)


@pytest.mark.normal_draws
def test_without_the_owners_word_nothing_is_strict(calibration: Any, tmp_path: Path) -> None:
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


@pytest.mark.normal_draws
def test_a_calibration_is_read_whole_or_not(calibration: Calibration, tmp_path: Path) -> None:
    made, folder = dataclasses.replace(calibration, scale=0.7, shift=0.1), tmp_path / "c"
    made.save(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    loaded, bound = Calibration.load(folder), MODEL.bind(survey(2))
    assert (loaded.model, loaded.cap, loaded.epsilon) == (MODEL, made.cap, 6)
    assert loaded.center.as_dict() == made.center.as_dict()
    for name, values in vars(made.center.frozen).items():
        np.testing.assert_array_equal(values, getattr(loaded.center.frozen, name))
    np.testing.assert_array_equal(loaded.weights(bound), made.weights(bound))
    assert len({ph.Censored(calibration=each).stream() for each in (loaded, made)}) == 1
    refuses("must be empty or new", made.save, folder)
    content = json.loads((folder / "calibration.json").read_text())
    short = {**content["frozen"], "y": content["frozen"]["y"][1:]}
    for change, message in (
        ({"program_sha256": "0" * 64}, "has another hash"), ({"format": 9}, "format 2: found 9"),
        ({"model": {"model": "Weibull"}}, "must be built in"), ({"frozen": short}, "of one length"),
        ({"frozen": {"y": [1.0]}}, "calibration, whole"), ({"cap": float("nan")}, "cap must be"),
        ({"draws": {"beta": [[float("inf")]]}}, "whole"), ({"draws": {}}, "whole"),
    ):  # fmt: skip
        (folder / "calibration.json").write_text(json.dumps(content | change))
        refuses(message, lambda: Calibration.load(folder).weights(bound))
    (folder / "calibration.json").unlink()
    refuses("must hold a calibration", Calibration.load, folder)


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore:the owner has not confirmed")
def test_from_the_command_line(tmp_path: Path, run: Any, refused: Any) -> None:
    survey(1).to_csv("f.csv", index=False)
    survey(2).to_csv("other.csv", index=False)
    fit = "engine=embedded,warmup=300,draws=500"
    code, _, error = run("calibrate", "f.csv", "--formula", "y ~ x + g", "--model", "poisson",
                         "--epsilon", "6", "--out", "c", "--fit", fit)  # fmt: skip
    assert code == 0
    assert "--holds-no-released-record" in error
    asked = ("synthesize", "other.csv", "--mechanism", "censored:calibration=c", "--out", "out",
             "--fit", fit)  # fmt: skip
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
    said = "must be strict: this one is asymptotic local"
    refuses(said, ph.calibrate, MODEL, local, epsilon=1, **OPTIONS)
