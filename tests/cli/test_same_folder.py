"""Python and the command line leave the same folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from tests.conftest import Run

SETTINGS = ph.engines.SamplerSettings(chains=2, warmup=600, draws=600)
OPTIONS: dict[str, Any] = {"seed": 1, "engine": "embedded", "settings": SETTINGS, "refits": 0}
CHAINS = ["--fit", "seed=1,engine=embedded,chains=2,warmup=600,draws=600,refits=0"]
HISTOGRAM: dict[str, Any] = {"lower": 0, "upper": 40, "n_bins": 8, "epsilon": 1}


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({
        "visits": rng.poisson(3, 80), "doctor": rng.poisson(2, 80),
        "sex": rng.choice(["f", "m"], 80),
    })  # fmt: skip


def _sequence(df: pd.DataFrame) -> Any:
    steps = [ph.LipschitzWeighted(ph.Poisson(text)) for text in ("doctor ~ 1", "visits ~ doctor")]
    return ph.SequentialSynthesis(steps).release(df, n_synthetic=2, **OPTIONS)


def _histogram(df: pd.DataFrame) -> Any:
    return ph.PerturbedHistogram(column="visits", **HISTOGRAM).release(df, n_synthetic=2)


def _mask(df: pd.DataFrame) -> Any:
    masks = ph.masking.masks_by_type(df, ["sex"])
    return ph.masking.MaskedImputation(keys=["sex"], masks=masks, n_synthetic=2).release(df, seed=1)


_BINS = ",".join(f"{key}={value}" for key, value in HISTOGRAM.items())
CASES: dict[str, tuple[Callable[[pd.DataFrame], Any], list[str]]] = {
    "sequence": (_sequence, [
        "synthesize", "data.csv", "--formula", "doctor ~ 1", "--formula", "visits ~ doctor",
        "--model", "poisson", "--mechanism", "lipschitz", *CHAINS]),
    "histogram": (_histogram, ["synthesize", "data.csv", "--formula", "visits ~ 1", "--mechanism",
                               f"perturbed_histogram:{_BINS}"]),
    "mask": (_mask, ["mask", "data.csv", "--key", "sex", "--seed", "1"]),
}  # fmt: skip


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES)
def test_python_and_the_command_line_leave_one_folder(kind: str, run: Run, tmp_path: Path) -> None:
    release_of, arguments = CASES[kind]
    df = _table()
    df.to_csv(tmp_path / "data.csv", index=False)
    release = release_of(df)
    release.save(tmp_path / "python")
    code, _, err = run(*arguments, "--n-synthetic", "2", "--out", "line")
    assert code == 0, err
    found = _files(tmp_path / "python")
    assert found == _files(tmp_path / "line")
    assert "confidential/report.html" in found
    assert "CONFIDENTIAL" in (tmp_path / "python/confidential/report.html").read_text()
    if kind != "histogram":  # its noise cannot be seeded
        for place in (1, 2):
            name = f"public/synthetic_{place}.csv"
            files = (tmp_path / made / name for made in ("python", "line"))
            pd.testing.assert_frame_equal(*(pd.read_csv(path, dtype=str) for path in files))


def test_a_release_without_its_data_or_by_choice_has_no_report(tmp_path: Path) -> None:
    for place, release in enumerate((_histogram(_table()), _mask(_table()))):
        release.save(tmp_path / f"{place}", report=False)
        assert "confidential/report.html" not in _files(tmp_path / f"{place}")
    ph.Release.load(tmp_path / "0").save(tmp_path / "again")
    assert "confidential/report.html" not in _files(tmp_path / "again")
