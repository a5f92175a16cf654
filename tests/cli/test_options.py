"""Help texts, and what settings in texts ask for."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import pyhybrid as ph
from pyhybrid.cli.app import help_texts, run
from pyhybrid.cli.options import MODEL_NAMES, build_model, fit_options
from pyhybrid.cli.synthesize import synthesize
from pyhybrid.engines import SamplerSettings
from pyhybrid.mechanisms import MECHANISMS, MODEL_FREE
from tests.refusals import refuses


def test_synthesize_has_18_options_that_are_arguments_of_python() -> None:
    names = set(inspect.signature(synthesize).parameters) - {"data"}
    assert len(names) == 18
    arguments = [ph.synthesize_table, ph.Release.save, ph.LipschitzWeighted.release]
    known = {name for function in arguments for name in inspect.signature(function).parameters}
    assert names - known == {"out", "formula", "model", "mechanism", "fit", "read"}


def test_models_and_mechanisms_are_named_by_help() -> None:
    texts = help_texts("synthesize")
    for name, known in (("model", MODEL_NAMES), ("mechanism", [*MECHANISMS, *MODEL_FREE])):
        assert set(known) <= set(re.findall(r"\w+", texts[name]))


def test_arguments_of_a_fit_are_read_by_their_names() -> None:
    found = fit_options("engine=embedded,seed=3,chains=2,adapt_delta=0.8,refits=0", {"refits": int})
    settings = SamplerSettings(chains=2, adapt_delta=0.8)
    assert found == {"engine": "embedded", "seed": 3, "refits": 0, "settings": settings}
    assert fit_options(None) == {}
    refuses("takes no refits", fit_options, "refits=0")
    refuses("seed must be a whole number", fit_options, "seed=x")


@pytest.mark.parametrize(("command", "default"), [
    ("synthesize", "clipped-scores"), ("compare", "unweighted, lipschitz"),
    ("calibrate", "by the column's values"), ("mask", "equal"),
    ("utility", "all"), ("validate", "by the column's values"),
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
    assert "…" not in shown


def test_levels_that_are_numbers_are_numbers() -> None:
    """What is released has the type of the declared levels; 01 is a text."""
    for text, levels in (("1+2+3", (1, 2, 3)), ("0.5+1.5", (0.5, 1.5)), ("01+02", ("01", "02")),
                         ("a+1", ("a", "1"))):  # fmt: skip
        model: Any = build_model(f"ordinal:levels={text}", "y ~ 1")
        assert model.levels == levels


def test_only_the_command_line_names_its_options() -> None:
    """Messages of the library name Python's arguments; rbridge has the options of R and pip."""
    root = Path(ph.__file__).parent
    named = []
    for path in (*root.rglob("*.py"), *root.rglob("*.jinja")):
        if path.relative_to(root).parts[0] not in ("cli", "rbridge"):
            options = re.findall(r"(?<![\w<-])--[a-z][\w-]*", path.read_text())
            named += [(path, option) for option in options]
    assert named == []
