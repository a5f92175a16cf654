"""What the options of re-weighting ask for."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.app import run
from pyhybrid.cli.options import build_model, reweighting_of, with_program
from pyhybrid.cli.synthesize import _at_known_levels
from pyhybrid.cli.tables import SourceTable
from pyhybrid.fitting.reweighting import Reweighting
from tests.refusals import refuses


def test_a_single_step_is_the_published_one() -> None:
    assert reweighting_of(True, 0.9, True) == Reweighting.published(k=0.9)
    assert reweighting_of(True, None, True) == Reweighting.published(k=0.95)
    assert reweighting_of(True, 0.9, False) == Reweighting(k=0.9)
    assert reweighting_of(True, None, False) == Reweighting()
    assert reweighting_of(False, None, False) is None
    for k, single_step in ((0.9, False), (None, True)):
        refuses("go with --reweight", reweighting_of, False, k, single_step)


@pytest.mark.parametrize(("command", "default"), [
    ("synthesize", "lipschitz"), ("compare", "unweighted, lipschitz"),
    ("calibrate", "by the reference's column"), ("mask", "equal"),
    ("utility", "all"), ("validate", "generated"),
])  # fmt: skip
def test_help_of_80_columns_shows_defaults_and_cuts_no_text(
    command: str, default: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    assert run([command, "--help"]) == 0
    shown = capsys.readouterr().out
    words = " ".join(shown.replace("│", " ").split())
    assert f"[default: {default}" in words
    assert "…" not in re.sub(r"--\S*…", "", shown)  # names of two long flags share a column


def test_levels_that_are_numbers_are_numbers() -> None:
    """What is released has the type of the declared levels; 01 is a text."""
    for text, levels in (("1+2+3", (1, 2, 3)), ("0.5+1.5", (0.5, 1.5)), ("01+02", ("01", "02")),
                         ("a+1", ("a", "1"))):  # fmt: skip
        model: Any = build_model(f"ordinal:levels={text}", "y ~ 1")
        assert model.levels == levels


def test_numbers_that_a_reference_lacks_count_as_its_nearest_level(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Record by record, missing ones apart; text is refused by the model."""
    frame = pd.DataFrame({"self": [0.0, 4.0, 9.0, np.nan, 2.0], "g": list("abcde")})
    source = SourceTable(frame=frame, text=None, file_format="csv")
    moved = _at_known_levels(source, "self", (0, 2, 5)).frame["self"]
    assert moved.tolist()[:3] == [0, 5, 5]
    assert moved.isna().tolist() == [False, False, False, True, False]
    assert "count as the nearest" in capsys.readouterr().err
    assert _at_known_levels(source, "g", ("a", "b")) is source
    assert _at_known_levels(source, "self", None) is source
    assert frame["self"].tolist()[1:3] == [4, 9]


def test_the_published_program_is_named_by_an_option() -> None:
    model = ph.Poisson("y ~ x")
    own = with_program(ph.Truncated(model, cap=5.0, inner=ph.LipschitzWeighted(model)), "published")
    assert own.model == own.inner.model == ph.Poisson("y ~ x", program="published")
    steps = ph.SequentialSynthesis([ph.Unweighted(model), ph.Unweighted(ph.Beta("z ~ 1"))])
    several = with_program(steps, "published")
    assert [step.model.program for step in several.mechanisms] == ["published"] * 2
    assert with_program(steps, None) is steps
    refuses("must be of Poisson", with_program, ph.Unweighted(ph.Bernoulli("y ~ x")), "published")
    histogram = ph.PerturbedHistogram(column="y", epsilon=1.0, lower=0, upper=1, n_bins=2)
    refuses("--program is for poisson", with_program, histogram, "published")


def test_a_published_program_has_no_center(refused: Callable[..., str]) -> None:
    pd.DataFrame({"y": [1, 2, 3], "x": [1, 2, 3]}).to_csv("t.csv", index=False)
    asked = ["synthesize", "t.csv", "--program", "published", "--out", "out"]
    like = ["--reference", "t.csv", "--holds-no-released-record"]
    assert "leave out --program" in refused(*asked, "--formula", "y ~ x", *like)
    assert "leave out --program" in refused(*asked, "--epsilon", "1")
