"""Frozen rows as a table: the same numbers back, and nothing read that is not whole."""

import io

import numpy as np
import pandas as pd
import pytest

from pyhybrid.mechanisms.censored.calibration import frozen_table, read_frozen
from tests.models.test_frozen_rows import MODELS, bound_to


@pytest.mark.parametrize("name", MODELS)
def test_frozen_rows_come_back(name: str) -> None:
    model, values = MODELS[name]
    rng = np.random.default_rng(3)
    bound = bound_to(model, values, 30, rng)
    frozen = bound.frozen(rng.uniform(size=30), rng.normal(size=30), np.arange(25))
    text = frozen_table(frozen).to_csv(index=False)
    table = pd.read_csv(io.StringIO(text), dtype=str)
    again = read_frozen(table, bound.design_columns)
    assert type(again) is type(frozen)
    assert again.key == frozen.key
    for wrong in (table.drop(columns=table.columns[-1]), table.assign(more="1")):
        with pytest.raises((ValueError, KeyError)):
            read_frozen(wrong, bound.design_columns)
