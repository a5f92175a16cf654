"""Factors with many levels: chains start, and find the effects."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from tests.models.targets import draws_of

pytestmark = pytest.mark.samples


def _surveyed() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    effects = rng.normal(0, 0.4, 61)
    level = np.arange(61 * 20) % 61
    y = rng.poisson(np.exp(1.3 + effects[level]))
    return pd.DataFrame({"y": y, "g": [f"level {k:03d}" for k in level]}), effects


@pytest.mark.parametrize("model", [ph.Poisson, ph.NegativeBinomial])
def test_factors_of_61_levels_start_and_find_the_effects(model: Any) -> None:
    """Seen: no chain started, as lkj_corr_cholesky of 61 dimensions was not finite at any start.

    The effects are judged by least squares of their estimates on the truth: the slope is 1 but for
    shrinkage and noise.
    """
    df, effects = _surveyed()
    bound = model("y ~ g").bind(df)
    found = draws_of(bound, draws=50, seed=1).flat("beta")[:, 1:].mean(axis=0)
    slope, _ = np.polyfit(effects[1:] - effects[0], found, 1)
    assert 0.7 < slope < 1.3
