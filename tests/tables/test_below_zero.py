"""Amounts below zero in plans: by the predictors where a reference has enough of them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.registry import PREDICTED, build_model
from pyhybrid.tables.domains import FEWEST_BELOW_ZERO


def profits(n: int, below: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    sign = np.repeat([-1, 0, 1], [below, n // 10, n - below - n // 10])
    return pd.DataFrame(
        {"age": rng.integers(20, 60, n), "profit": sign * rng.lognormal(8, 1, n).round(2)}
    )


def planned(reference: pd.DataFrame | None) -> Any:
    types = {"profit": ph.SemiContinuous(unit=1000.0), "age": ph.Counts(lower=0, upper=120)}
    table = ph.Table(profits(800, 300), sensitive=["profit"], keep=["age"], types=types)
    if reference is not None:
        table = ph.Table(
            profits(800, 300), sensitive=["profit"], keep=["age"], reference=reference,
            holds_no_released_record=True,
        )  # fmt: skip
    return table.plan()


@pytest.mark.parametrize("below", [FEWEST_BELOW_ZERO - 1, FEWEST_BELOW_ZERO])
def test_the_reference_decides(below: int) -> None:
    """The confidential column, of which 300 are below zero, does not."""
    plan = planned(profits(600, below))
    model = plan["profit"].model_of(plan.kinds)
    right = model.negative.formula.partition("~")[2].strip()
    noted = any("below zero is modeled without predictors" in note for note in plan.notes)
    if below < FEWEST_BELOW_ZERO:
        assert (right, noted) == ("1", True)
    else:
        assert "age" in right
        assert "age" in model.sign.formula
        assert model.negative.min_sd == 0.1, "chains must not follow sigma to 0 here, either"
        assert not noted


def test_without_a_reference_they_are_modeled_alone_until_asked_for() -> None:
    plan = planned(None)
    assert any("below zero is modeled without predictors" in note for note in plan.notes)
    own = {**plan["profit"].options, "negative": PREDICTED}
    asked = plan.with_column("profit", options=own)
    assert "age" in asked["profit"].model_of(asked.kinds).negative.formula


def test_other_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="negative must be True, False or 'predicted'"):
        build_model("two_part", "y ~ x", {"negative": "yes"})
