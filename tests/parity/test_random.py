"""Seeded random arguments: Python and live R give the same numbers; edges are golden cases."""

from typing import Any

import numpy as np
import pytest

from pyhybrid.validation.arrays import array_rows

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_function_of_both_languages(seed: int, r: Any) -> None:
    """As `validate` holds them against each other; here by other numbers than in its report."""
    rows = list(array_rows(np.random.default_rng(seed)))
    assert [row.quantity for row in rows if not row.agrees] == []
