"""What a terminal of 80 columns shows: no line is longer, no word is broken, errors show a call;
lines of progress for logs: often enough, with times, and without values."""

import shlex
import threading
import time
from typing import Any

import pandas as pd
import pytest

from pyhybrid.cli.app import COMMANDS, PARTS, command_of, help_texts
from pyhybrid.cli.console import frame_table, progress_line, progress_lines, show


@pytest.mark.parametrize("columns", [2, 9])
def test_tables_break_no_word(columns: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Wider than 80 columns only where the longest words need more."""
    frame = pd.DataFrame({f"a_name{k}": [f"household income {k}"] for k in range(columns)})
    show(frame_table("Title", frame))
    shown = capsys.readouterr().out
    assert shown.count("household") == shown.count("income") == columns
    assert (max(map(len, shown.splitlines())) <= 80) == (columns < 5)


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
def test_usage_errors_show_right_calls(refused: Any, arguments: tuple[str, ...], said: str) -> None:
    error = refused(*arguments)
    assert said in error
    assert f"a right call: pyhybrid {arguments[0]} {help_texts(arguments[0])['example']}" in error


def test_numbers_in_the_name_of_a_step_are_left_out() -> None:
    """A scalar weight is a function of the data: bars for the owner show it, a log must not."""
    assert progress_line(31, "starting", 0, 0) == "pyhybrid: 0:31 elapsed; starting"
    expected = "pyhybrid: 1:30 elapsed; Unweighted fit: 2000 of 8000 (25%)"
    assert progress_line(90, "Unweighted fit", 2000, 8000) == expected
    for label in ("scalar weight 0.4735", "scalar weight 1e-05", "re-weighting, k = 0.9512"):
        line = progress_line(1, label, 1, 2)
        assert not any(text in line for text in ("4735", "1e-05", "9512")), line


def test_a_long_step_without_a_report_of_its_own_still_writes_lines() -> None:
    """As it was, 67 minutes went by without a line in a log."""
    lines: list[str] = []
    with progress_lines(lines.append, every=0.05) as report:
        report("NormalMixture fit", 10, 100)
        deadline = time.monotonic() + 20
        while len(lines) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
    assert len(lines) >= 3
    assert all("NormalMixture fit: 10 of 100 (10%)" in line for line in lines[1:])
    assert not [t for t in threading.enumerate() if t.name == "pyhybrid progress"]


def test_a_closed_log_stops_nothing() -> None:
    def closed(line: str) -> None:
        raise ValueError("I/O operation on closed file")

    with progress_lines(closed, every=0.01) as report:
        report("fit", 1, 2)
        time.sleep(0.05)
