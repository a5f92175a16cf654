"""What a terminal of 80 columns shows: no line is longer, no word is broken, errors show a call."""

import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from rich.table import Table

from pyhybrid.cli import validation
from pyhybrid.cli.app import COMMANDS, PARTS, command_of, help_texts
from pyhybrid.cli.console import fitted
from pyhybrid.cli.validation import show_agreement
from pyhybrid.validation import Validation
from pyhybrid.validation.comparison import Row


def _table(n_columns: int, n_rows: int, *, text: str = "household income") -> Table:
    table = Table(title="A title of the table")
    for k in range(n_columns):
        table.add_column(f"column_number_{k}" if k else "", justify="right" if k else "left")
    for row in range(n_rows):
        table.add_row(f"row{row}", *(f"{text} {row}.{k}" for k in range(1, n_columns)))
    return table


def _shown(table: Table, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(fitted(table, width))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def _words(lines: list[str]) -> list[str]:
    return re.findall(r"[\w.]+", "\n".join(lines))


@pytest.mark.parametrize("n_columns", [2, 4, 6, 9, 14])
@pytest.mark.parametrize("n_rows", [1, 3, 12])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_tables_fit_and_hold_every_word_whole(n_columns: int, n_rows: int, width: int) -> None:
    lines = _shown(_table(n_columns, n_rows), width)
    assert max(map(len, lines)) <= width
    words = _words(lines)
    for row in range(n_rows):
        for k in range(1, n_columns):
            assert f"{row}.{k}" in words
    assert words.count("household") == n_rows * (n_columns - 1)
    assert {f"column_number_{k}" for k in range(1, n_columns)} <= set(words)


def test_doctor_says_each_repair_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = "pip install 'pyhybrid[r]'"
    broken = ("rstan", "missing", "no rpy2", repair)
    monkeypatch.setattr(validation, "ENGINES", {"rstan": ""})
    monkeypatch.setattr(validation, "_examined", lambda *_, **__: broken)
    monkeypatch.setattr(validation, "_r_rows", lambda: [("R through rpy2", *broken[1:])])
    assert validation.doctor() == 1
    said = capsys.readouterr().out
    assert said.count(repair) == 1
    assert f"fix rstan, R through rpy2: {repair}" in said


def test_validate_ends_with_what_disagrees(capsys: pytest.CaptureFixture[str]) -> None:
    def row(name: str, r: float) -> Row:
        off = abs(r - 1.0)
        return Row(part="array functions", quantity=name, python=1.0, r=r, difference=off,
                   tolerance=1e-9)  # fmt: skip

    rows = (row("epsilon_of_bound", 1.0), row("gaussian_mu", 1.5), row("count_weights", 1.0))
    found = Validation(rows=rows, versions={}, programs={}, settings={}, seed=1, own_data=False)
    show_agreement(found, None)
    last = capsys.readouterr().out.split("disagree on")[1]
    assert last.startswith(" 1 of 3 quantities:")
    assert "gaussian_mu: Python 1, R 1.5" in last
    assert "epsilon_of_bound" not in last


NAMES = [f"{name} {part}".strip() for name in COMMANDS for part in PARTS.get(name, ("",))]


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_right_calls(name: str) -> None:
    """Parsed by the command itself, which then is not run."""
    first, _, part = name.partition(" ")
    command = command_of(first)
    command = command.commands[part] if part else command
    command.make_context(name, shlex.split(help_texts(name)["example"]))


@pytest.mark.parametrize(("arguments", "said"), [
    (("risk", "a.csv", "b.csv", "--kex", "age"), "No such option"),
    (("compare", "a.csv", "--n-synthetic", "many"), "--n-synthetic"),
    (("mask", "a b.csv", "--out", "x"), "Missing option '--key'"),
])  # fmt: skip
def test_usage_errors_show_a_right_call(
    refused: Callable[..., str], arguments: tuple[str, ...], said: str
) -> None:
    error = refused(*arguments)
    assert said in error
    assert f"a right call: pyhybrid {arguments[0]} {help_texts(arguments[0])['example']}" in error


def test_an_unknown_name(refused: Callable[..., str]) -> None:
    assert re.search("did you mean 'synthesize'?.*pyhybrid --help", refused("synthesise"), re.S)


@pytest.mark.parametrize(("arguments", "meant"), [
    (("--model", "poison"), "did you mean 'poisson'?"),
    (("--model", "poisson:priors=normal"), "did you mean 'prior'?"),
    (("--mechanism", "lipshitz"), "did you mean 'lipschitz'?"),
    (("--fit", "chain=2"), "did you mean 'chains'?"),
])  # fmt: skip
def test_slips_in_names_are_told_what_was_meant(
    refused: Callable[..., str], tmp_path: Path, arguments: tuple[str, ...], meant: str
) -> None:
    pd.DataFrame({"visits": [1, 2, 3, 4] * 5}).to_csv(tmp_path / "data.csv", index=False)
    assert meant in refused("synthesize", "data.csv", "--formula=visits ~ 1", *arguments, "--out=o")
