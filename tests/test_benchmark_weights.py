"""Lines of `python -m benchmarks weights`, made anew: no release is charged below exact."""

import pandas as pd
import pytest

from benchmarks import weights

CHECKED = ("lipschitz", "gaussian")


@pytest.fixture(scope="module")
def stored() -> pd.DataFrame:
    """What `python -m benchmarks weights` wrote."""
    return pd.read_csv(weights.STORED)


def test_no_stored_line_of_a_release_is_below_the_exact_epsilon(stored: pd.DataFrame) -> None:
    released = stored[stored["refused"] == 0]
    assert len(released) > 200
    for name in CHECKED:
        assert (released[f"{name} / exact"] >= 1).all(), name
    assert (released["held / exact"] < 1).any(), "the control: weights that are taken as fixed"


@pytest.mark.parametrize(("model", "n"), [
    ("Poisson with an outlier", 50), ("normal regression", 20), ("Poisson, persons of 4", 20),
])  # fmt: skip
@pytest.mark.parametrize("name", ["unweighted", "LW linear", "CW", "LW re-weighted"])
def test_a_line_is_made_as_it_is_stored(
    stored: pd.DataFrame, model: str, n: int, name: str
) -> None:
    made = weights.row(weights.MODELS[model][0](n, 1), weights.MAPS[name])
    line = stored.query("model == @model and n == @n and seed == 1 and map == @name").iloc[0]
    for key, value in made.items():
        assert value == pytest.approx(line[key], rel=1e-4)


def test_a_record_alone_at_a_level_is_always_refused(stored: pd.DataFrame) -> None:
    assert weights.singletons()["refused"].all()
    assert (stored[stored["model"] == "Poisson, a level of 1"]["refused"] == 1).all()
