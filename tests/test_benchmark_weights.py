"""Lines of `python -m benchmarks weights`, made anew, and how few are below exact."""

import re
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import weights

CHECKED = ("lipschitz", "gaussian")


@pytest.fixture(scope="module")
def stored() -> pd.DataFrame:
    """What `python -m benchmarks weights` wrote."""
    return pd.read_csv(weights.STORED)


def test_few_stored_lines_of_a_release_are_below_the_exact_epsilon(stored: pd.DataFrame) -> None:
    """As the page says; the control, weights that are taken as fixed, nearly always is."""
    ratios = weights.counted(stored)
    for apart, most in ((False, 0.03), (True, 0.04)):
        for name in CHECKED:
            assert (ratios[apart, name] < 1).mean() < most, (apart, name)
        assert (ratios[apart, "held"] < 1).mean() > 0.9
    large = stored[(stored["refused"] == 0) & (stored["n"] >= 400)]
    assert all((large[f"{name} / exact"] >= 1).all() for name in CHECKED)


def test_the_page_counts_the_lines_as_they_are_stored(stored: pd.DataFrame) -> None:
    page = (Path(__file__).parents[1] / "docs/pages/benchmarks.md").read_text("utf-8")
    cell = r"(\d+) of (\d+), (\S+), (\S+)"
    rows = re.findall(rf"^\| .*? \| {cell} \| {cell} \|$", page, re.M)
    ratios = weights.counted(stored)
    for name, row in zip(("lipschitz", "gaussian", "published", "held"), rows, strict=True):
        for apart, (below, lines, least, median) in ((False, row[:4]), (True, row[4:])):
            ratio = ratios[apart, name]
            assert (int(below), int(lines)) == (int((ratio < 1).sum()), len(ratio)), (name, apart)
            assert float(least) == pytest.approx(ratio.min(), abs=0.006)
            assert float(median) == pytest.approx(ratio.median(), abs=0.06)


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
    for few in (1, 3):
        assert (stored[stored["model"] == f"Poisson, a level of {few}"]["refused"] == few).all()
