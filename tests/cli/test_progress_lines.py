"""Lines of progress for logs: often enough, with times, and without values."""

import threading
import time

from pyhybrid.cli.console import progress_line, progress_lines


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
