"""Cells of a CSV file: codes stay codes; what is missing, or a number written as text, is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.tables.read import SourceTable, read_file
from tests.refusals import refuses


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """A table of one column of these cells, beside one of texts."""

    def read(cells: list[str]) -> SourceTable:
        path = tmp_path / "t.csv"
        pd.DataFrame({"c": cells, "g": ["a"] * len(cells)}).to_csv(path, index=False)
        return read_file(path)

    return read


@pytest.mark.parametrize("cells", [
    ["06.10", "12.5"], ["00123", "60614"], ["6.1", "6.10"], ["6.10", "7.2", "8.35"],
    ["9007199254740993", "9007199254740995"], ["+5", "6"], ["1", "1.0"],
])  # fmt: skip
def test_what_would_not_write_back_stays_text(read: Any, cells: list[str]) -> None:
    assert read(cells).frame["c"].tolist() == cells


@pytest.mark.parametrize("cells", [
    ["1.50", "2.00", "10.25"], ["1.5", "2", "10.25"], ["10913.0", "35296.6", "2.25"],
    ["-3", "0", "7"], ["1e-05", "0.5", "3.0"], ["0.10", "0.25"], ["-0.0", "0.0", "0.5"],
])  # fmt: skip
def test_what_a_program_writes_is_numbers(read: Any, cells: list[str]) -> None:
    assert read([*cells, "", "NA"]).frame["c"].dropna().tolist() == [float(c) for c in cells]


@pytest.mark.parametrize("mark", [".", "NULL", "N/A", "-", "None"])
def test_marks_of_other_programs_are_missing_numbers_and_said(read: Any, mark: str) -> None:
    table = read([mark, "1.5", "2.5", mark, "7"])
    np.testing.assert_equal(table.frame["c"].to_numpy(), [np.nan, 1.5, 2.5, np.nan, 7])
    assert table.remarks["c"] == f"{mark!r} is taken for a missing number"
    assert read([mark, "a", "b"]).frame["c"].tolist() == [mark, "a", "b"], "a level among texts"


@pytest.mark.parametrize(("cells", "said"), [
    (["$1,234.50", "$20.00", "$3,000.10"], "with signs or separators"),
    (["10,200", "9,100", "870"], "with signs or separators"), (["2.7%", "0.5%"], "with signs"),
    (["171,2", "180,05", "99,9"], "with decimal commas"),
    ([*map(str, range(50)), *["N"] * 9], "text in row 50, 51, 52 and 6 more"),
    ([*map(str, range(50)), *["refused", "not asked"] * 20], "text in row 50"),
])  # fmt: skip
def test_numbers_that_are_written_as_text_are_said_and_not_shown(
    read: Any, cells: list[str], said: str
) -> None:
    """Seen: each person's income was a "level" in the public schema of a strict release."""
    table = read(cells)
    assert said in table.remarks["c"]
    assert not any(cell in table.remarks["c"] for cell in cells if len(cell) > 4)


def test_codes_of_letters_and_numbers_are_codes(read: Any) -> None:
    assert "c" not in read(["E11.9", "I10", "J45", "Z00", "123", "45"] * 9).remarks


@pytest.mark.parametrize(("header", "fine"), [
    ("59,low,-0.69", False), ("59,12,low", False), ("1,2", False),
    ("2010,2011,region", True), ("age,low,visits", True), ("x1,2nd,y", True),
])  # fmt: skip
def test_a_first_line_that_looks_like_a_record_is_refused(
    tmp_path: Path, header: str, fine: bool
) -> None:
    """Seen: the first person's record was published as the names of the columns."""
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n" + ",".join("7" * len(header.split(","))) + "\n")
    if fine:
        assert ",".join(read_file(path).frame) == header
    else:
        refuses("must have the names of its columns in its first line", read_file, path)
