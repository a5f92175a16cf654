"""A ledger has one unit of privacy: what a person's rows tell is not added to what a row tells."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.releases.release import Release

SETTINGS = ph.engines.SamplerSettings(chains=2, warmup=200, draws=200)


@pytest.fixture(scope="module")
def releases() -> dict[str, Release]:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"person": np.repeat(np.arange(60), 2), "y": rng.poisson(4, 120)})
    made = {}
    for name, unit in (("row", None), ("person", "person")):
        mechanism = ph.Unweighted(ph.Poisson("y ~ 1"), unit=unit, accounting="range")
        made[name] = mechanism.release(table, engine="embedded", settings=SETTINGS)
    return made


def test_charges_of_another_unit_are_refused(releases: dict[str, Release], tmp_path: Path) -> None:
    ledger = ph.Ledger(tmp_path / "l", budget=1e3, kind="asymptotic local", relation="remove")
    ledger.add(releases["person"])
    assert ledger.label == "asymptotic local, remove one person"
    with pytest.raises(InvalidInput, match="one unit of privacy, person: found single rows"):
        ledger.add(releases["row"])
    spent = ledger.spent
    both = ph.Ledger(tmp_path / "l", allow_unlike=True)
    both.add(releases["row"])
    assert both.label.startswith("sum of unlike charges, no guarantee of any kind")
    assert both.spent > spent
