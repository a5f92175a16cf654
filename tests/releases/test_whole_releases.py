"""A sequence is released as a whole, at the charge of all its columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded
from tests.fits import ANY_DRAWS, fit_options
from tests.refusals import fails, refuses
from tests.releases.test_ledger import local_ledger

OPTIONS = fit_options(chains=2, warmup=150, draws=100, rule=ANY_DRAWS)


def people(seed: int = 1, n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"visits": rng.poisson(4, n), "age": rng.integers(18, 90, n)})
    table["income"] = rng.normal(30, 9, n).round(2)
    return table.assign(region=pd.Categorical(rng.choice(["a", "b", "c"], n)))


@pytest.fixture(scope="module")
def sequence() -> ph.Release:
    steps = [ph.Unweighted(ph.Poisson("visits ~ 1")), ph.Unweighted(ph.Poisson("age ~ visits"))]
    return ph.SequentialSynthesis(steps).release(people(), n_synthetic=2, **OPTIONS)


def test_a_step_of_a_sequence_is_not_saved(sequence: ph.Release, tmp_path: Path) -> None:
    ledger = local_ledger(tmp_path / "l", sequence.charge.epsilon - 0.01)
    fails(BudgetExceeded, "", sequence.save, tmp_path / "out", ledger=ledger, report=False)
    for part in sequence.parts:
        assert part.charge.epsilon < sequence.charge.epsilon
        assert not hasattr(part, "synthetic")
        assert not hasattr(part, "save")
        refuses("charges from releases only: give the whole", ledger.add, part)
    assert ledger.entries == ()
    assert [path.name for path in tmp_path.iterdir()] == ["l"]
