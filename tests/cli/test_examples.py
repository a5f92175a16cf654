"""The call that `--help` ends with runs as it stands, on a table that has its columns."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyhybrid.cli.app import COMMANDS, help_texts
from tests.conftest import command

# Each has tests of its own: here its options are read. `open` needs a browser.
_ELSEWHERE = {"compare", "curve", "validate", "study", "notebook", "demo", "doctor", "open"}


@pytest.mark.long
@pytest.mark.samples
def test_examples_of_help_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, n in (("survey", 600), ("earlier", 500)):
        age = rng.integers(18, 90, n)
        columns = {
            "visits": rng.poisson(np.exp(0.3 + 0.012 * age)), "age": age,
            "sex": rng.choice(["f", "m"], n), "income": np.round(rng.lognormal(10, 0.6, n)),
            "voted": rng.random(n) < 0.6,
        }  # fmt: skip
        pd.DataFrame(columns).to_csv(f"{name}.csv", index=False)
    for name in ("ledger create", "ledger show", *COMMANDS):
        if name in {*_ELSEWHERE, "ledger"}:
            continue
        words = [*name.split(), *shlex.split(help_texts(name)["example"])]
        assert command(*words) == 0, name
