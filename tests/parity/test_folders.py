"""Release folders are read by both languages, whoever wrote them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.rbridge import session as session_in_r

TABLE = pd.DataFrame(
    {
        "y": np.random.default_rng(1).poisson(5, 40),
        "x": np.resize([0.1, 1 / 3, 1e-7, 2.5], 40),
        "g": pd.Categorical(np.resize(["b", "a"], 40), ["b", "a"]),
    }
)
SHORT = SamplerSettings(chains=2, warmup=300, draws=200, max_draws=200)

_READ = Path(__file__).with_name("read_from.R").read_text("utf-8")


@pytest.mark.normal_draws
@pytest.mark.filterwarnings("ignore::UserWarning")  # of R-hat: draws are few
def test_r_reads_what_python_wrote(tmp_path: Path, r: Callable[..., Any]) -> None:
    import rpy2.rinterface as ri

    release = ph.LipschitzWeighted(ph.Poisson("y ~ x + g"), delta=1e-5).release(
        TABLE, n_synthetic=2, refits=4, seed=1, engine="embedded", settings=SHORT,
        on_not_converged="warn",
    )  # fmt: skip
    release.save(tmp_path / "out", report=False)
    package = session_in_r._package()
    package["read_from"] = ri.evalr(_READ)(package["from_release"])
    found = r("read_from", path=str(tmp_path / "out"))
    for table, own in zip(found["synthetic"], release.synthetic, strict=True):
        assert list(table["y"]) == own["y"].tolist()
        np.testing.assert_array_equal(table["x"], own["x"])
        assert list(table["g"]) == own["g"].tolist()
    charge = release.charge
    assert found["charge"]["epsilon"] == charge.epsilon
    assert found["charge"]["epsilon_published"] == charge.epsilon_published
    assert found["charge"]["epsilon_gaussian"] == charge.epsilon_by("gaussian", delta=1e-5)
    assert found["charge"]["refits"] == charge.facts["refits"]
    np.testing.assert_array_equal(found["alpha"], release.confidential.alpha)
    np.testing.assert_array_equal(found["by_record"], release.confidential.lipschitz)
    assert found["outcome"] == "y"
    assert "asymptotic local" in found["shown"]


def test_python_reads_what_r_wrote(tmp_path: Path) -> None:
    """The release of R's examples, with its statement, its ledger and a copy."""
    folder = Path(__file__).resolve().parents[2] / "inst" / "extdata" / "release"
    release = ph.Release.load(folder)
    assert [len(table) for table in release.synthetic] == [100] * 3
    assert release.charge.epsilon >= release.charge.epsilon_published
    stated = pd.read_json(folder / "public" / "charge.json", typ="series")
    assert stated["epsilon"] == release.charge.epsilon
    assert stated["epsilon_range"] == release.charge.epsilon_range
    assert release.diagnostics is not None
    assert release.diagnostics.converged
    assert "made_by = the R package pyhybrid" in release.statement
    ledger = ph.Ledger(
        tmp_path / "ledger.json", budget=30, kind="asymptotic local", relation="remove"
    )
    ledger.add(release)
    release.save(tmp_path / "copy", report=False)
    assert ph.Release.load(tmp_path / "copy").charge == release.charge
