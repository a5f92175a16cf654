"""Cells of a CSV file: codes stay codes; what is missing, or a number written as text, is said."""

from datetime import date, datetime, time
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from pyhybrid.cli.options import read_table
from pyhybrid.models.columns.kinds import Counts, Leveled, Nominal, kind_of
from pyhybrid.sources.opening import open_source
from pyhybrid.tables.read import SourceTable, read_file, typed_texts
from tests.conftest import require
from tests.refusals import refuses


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """A table of one column of these cells, beside one of texts."""

    def read(cells: list[str], **how: Any) -> SourceTable:
        path = tmp_path / "t.csv"
        pd.DataFrame({"c": cells, "g": ["a"] * len(cells)}).to_csv(path, index=False)
        return read_file(path, **how)

    return read


@pytest.mark.parametrize("cells", [
    ["06.10", "12.5"], ["00123", "60614"], ["6.1", "6.10"], ["6.10", "7.2", "8.35"],
    ["9007199254740993", "9007199254740995"], ["+5", "6"], ["1", "1.0"], ["1E10", "2E05"],
    ["1,2,3", "4"], ["1,23", "4,567"], ["E11.9", "I10", "J45", "Z00", "123", "45"] * 9,
])  # fmt: skip
def test_what_would_not_write_back_stays_text(read: Any, cells: list[str]) -> None:
    for how in ({}, {"thousands": ","}):
        if cells != ["6.10", "7.2", "8.35"] or not how:
            assert read(cells, **how).frame["c"].tolist() == cells


@pytest.mark.parametrize("cells", [
    ["1.50", "2.00", "10.25"], ["1.5", "2", "10.25"], ["10913.0", "35296.6", "2.25"],
    ["-3", "0", "7"], ["1e-05", "0.5", "3.0"], ["1e+10", "1.5e-05", "2.0"],
    ["0.10", "0.25"], ["-0.0", "0.0", "0.5"],
])  # fmt: skip
def test_what_a_program_writes_is_numbers(read: Any, cells: list[str]) -> None:
    assert read([*cells, "", "NA"]).frame["c"].dropna().tolist() == [float(c) for c in cells]


@pytest.mark.parametrize("mark", [".", "NULL", "N/A", "-", "None"])
def test_marks_of_other_programs_are_missing_numbers_and_said(read: Any, mark: str) -> None:
    table = read([mark, "1.5", "2.5", mark, "7"])
    np.testing.assert_equal(table.frame["c"].to_numpy(), [np.nan, 1.5, 2.5, np.nan, 7])
    assert table.remarks["c"] == f"{mark!r} is taken for a missing number"
    assert read([mark, "a", "b"]).frame["c"].tolist() == [mark, "a", "b"], "a level among texts"


def test_a_level_that_is_written_as_missing_values_are_is_named(read: Any) -> None:
    """Seen: Namibia vanished without a word."""
    table = read(["NA", "ZA", "BW", "-"])
    assert table.frame["c"].isna().tolist() == [True, False, False, False]
    assert table.remarks["c"].startswith("'NA' is taken for a missing value")
    declared = table.read_as({"c": Nominal(levels=("NA", "ZA", "BW", "-"))})
    assert declared.frame["c"].tolist() == ["NA", "ZA", "BW", "-"]


@pytest.mark.parametrize(("cells", "said"), [
    (["$1,234.50", "$20.00", "$3,000.10"], "thousands=, and signs=$ read them"),
    (["10,200", "9,100", "870"], "thousands=, reads them"), (["2.7%", "0.5%"], "signs=% reads"),
    (["171,2", "180,05", "99,9"], "decimal=, reads them"),
    (["12,5 %", "3,25 %"], "decimal=, and signs=% read them"),
    (["10'200", "9'100", "870"], "thousands=' reads them"),
    (["10\u00a0200 €", "870 €"], "thousands=' ' and signs=€ read them"),
    (["10 200", "9 100", "870"], "thousands=' ' reads"),
    (["1.200,50", "99,90", "7,25"], "decimal=, and thousands=. read them"),
    (["(1,234)", "870", "5-"], "numbers below 0 as (5), 5-"),
    ([f"{k}.50-" if k % 5 else f"{k}.50" for k in range(40)], "write them as -5"),
    ([f"−{k}.5" for k in range(40)], "numbers=c reads"),
    ([f"{k - 20:+d}" for k in range(40)], "numbers=c reads"),
    ([f"\u00a0{k}" for k in range(40)], "numbers=c reads"),
    ([f"- {k}" if k % 2 else f"{k}" for k in range(40)], "numbers=c reads"),
    ([f"{k}E{k % 3}" for k in range(1, 40)], "numbers=c reads"),
    ([f"{k / 4:.{k % 3}f}" for k in range(40)], "numbers=c reads"),
    ([f"{k}".translate({48 + d: 0xFF10 + d for d in range(10)}) for k in range(40)], "numbers=c"),
    ([f"{k}{['', 'e', 'p', 'b'][k % 4]}" for k in range(5, 90)], "write them in one way"),
    ([*map(str, range(60)), *(f"note {'abcdefghij'[k % 10]}" for k in range(20))], "row 60"),
    ([*map(str, range(50)), *["90+"] * 9], "types declare as codes"),
    ([f"{k}’050" for k in range(100, 140)], "thousands=’ reads them"),
    ([f"1,{k},500" for k in range(10, 40)], "write them in one way and one unit"),
    ([f"{k}.1 kg" for k in range(40, 90)], "signs=kg reads"),
    ([f"{k}cm" for k in range(150, 190)], "signs=cm reads"),
    ([f"CHF {k}.6k" for k in range(40)], "signs=CHF+k reads"),
    ([f"{k} {'cm' if k % 2 else 'm'}" for k in range(150, 190)], "in one way and one unit"),
    ([f"$({k}.50)" if k % 5 else f"${k}.50" for k in range(20)], "write them as -5"),
    ([f"{k - 20:+.1f}" for k in range(40)], "numbers=c reads"),
    ([f"{k}.5{'Mk'[k % 2]}" for k in range(40)], "in one way"), ([f"{k}.50 Fr." for k in range(20)],
     "signs=Fr reads"), ([f"{k}.5{'*' * (k % 2)}" for k in range(20)], "in one way"),
    ([f"{k}.--" for k in range(20)], "write them in one way"), (["1,5E+03", ",5"], "in one way"),
    ([*(f"{k}.5" for k in range(90)), *map("why {}".format, range(8))] * 2, "text in row 90"),
    ([*(f"${k}" for k in range(20)), *["?!"] * 40], "signs=$ reads them; it has text in row 20"),
    ([*(f"{k}.25" for k in range(20)), *["k.A."] * 900], "text in row 20"),
    ([*["none"] * 1050, *(f"{k}.25" for k in range(850))], "text in row 0"),
    *(([way.format(k) if k % 2 else f"{k}" for k in range(40)], "write them in one way")
      for way in ("~{}", ">{}", "<{}.5", "[{}]", "ca. {}", "{}+")),
    ([f"1,{k}" for k in range(200, 240)], "thousands=, reads them; decimal=, if commas are"),
    ([f"{k}·5" for k in range(40)], "decimal=· reads"), ([*map(str, range(40)), f"1{'0' * 20}"],
     "numbers=c reads"), ([f"{k}.500" for k in range(100, 120)], "points are taken as decimal"),
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


@pytest.mark.parametrize("cells", [
    [f"{k}{letter}" for k in range(1, 14) for letter in "abcd"], ["Ward 1", "Ward 2", "12"] * 9,
    [f"ZH {k}" for k in range(90)], [f"{k // 10 * 10}-{k}" for k in range(40)],
    [*(f"{k}th" for k in range(4, 13)), "1st", "2nd", "3rd"], [f"12{k} 000{k} 4" for k in range(9)],
    [f"+{k}" for k in range(1, 60)], [f"{k:04d}" if k % 3 else f"{k:02d}" for k in range(60)],
    [f"{10**17 + 10**k}" for k in range(16)], [*(f"A{k}" for k in range(9)), *map(str, range(20))],
    [f"c{k}" for k in range(60)], [f"({k}, {k + 1}]" for k in range(40)], ["1+", "1", "1-"] * 9,
    [f"0{k} 123 45 67" for k in range(44, 90)], ["010 00", "010 01"] * 9, ["1 2", "1 1", "12"] * 9,
])  # fmt: skip
def test_codes_with_letters_and_blanks_are_no_amounts(read: Any, cells: list[str]) -> None:
    for how in ({}, {"decimal": ","}, {"thousands": " "}, {"signs": "abcd"}):
        table = read(cells, **how)
        assert (table.frame["c"].tolist(), table.remarks) == (cells, {})


@pytest.mark.parametrize("how", [
    {"decimal": ","}, {"thousands": " "}, {"thousands": ","}, {"signs": "$%"}, {"missing": ["N"]},
])  # fmt: skip
def test_what_is_said_of_some_columns_changes_no_codes_of_others(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    """Seen: '010 01' became 1001, '1 2' and '12' one level, card numbers equal floats."""
    own = pd.DataFrame({
        "code": ["010 01", "010 02", "001"], "class": ["1 2", "12", "1 1"], "yes": ["Y", "N", "Y"],
        "card": ["9102 0000 0000 0002", "9102000000000002", "9102000000000003"],
        "dial": ["+41", "+1 234", "+44"], "zip": ["00123", "60614", "01945"],
    })  # fmt: skip
    own.to_csv(tmp_path / "t.csv", index=False)
    pd.testing.assert_frame_equal(
        read_file(tmp_path / "t.csv", **how).frame, own, check_dtype=False
    )


@pytest.mark.parametrize(("cells", "how", "numbers"), [
    (["171,2", "180,05", "99,9"], {"decimal": ","}, [171.2, 180.05, 99.9]),
    (["1.171,20", "180,05", "9"], {"decimal": ",", "thousands": "."}, [1171.2, 180.05, 9]),
    (["$1,234.50", "$20.00", "-$3,000.10"], {"thousands": ",", "signs": "$"},
     [1234.5, 20, -3000.1]),
    (["2.7%", "0.5 %"], {"signs": "%"}, [2.7, 0.5]),
    (["7", "N", ".", "-5"], {"missing": ["N", "."]}, [7, np.nan, np.nan, -5]),
    (["1 234 567", "870"], {"thousands": " "}, [1234567, 870]),
    ([",5", "-,25", "1,75"], {"decimal": ","}, [0.5, -0.25, 1.75]),
    (["+5", "- 12", "12.50", "1E2", "−3", "NA", "٣"], {"numbers": ["c"]},
     [5, -12, 12.5, 100, -3, np.nan, 3]),
    (["99", "7", "x"], {"missing": ["c:99", "x"]}, [np.nan, 7, np.nan]),
    (["12.5 kg", "3.125kg."], {"signs": "CHF+kg"}, [12.5, 3.125]),
])  # fmt: skip
def test_the_owner_says_how_numbers_are_written(
    read: Any, cells: list[str], how: dict[str, Any], numbers: list[float]
) -> None:
    table = read(cells, **how)
    np.testing.assert_equal(table.frame["c"].to_numpy(), numbers)
    assert table.remarks == {}
    assert table.frame["g"].eq("a").all()
    mixed = read([f"{k} {'cm' if k % 2 else 'm'}" for k in range(150, 190)], signs="cm+m")
    assert (mixed.frame["c"][0], "in one way and one unit" in mixed.remarks["c"]) == ("150 m", True)


def test_marks_of_the_command_line_are_taken_whole(read: Any, tmp_path: Path) -> None:
    """Seen: --read missing=90+ made missing values of each 90 of other columns."""
    read(["90", "90+", "7+", ".", "x"])
    how = ["missing=90+", "missing=.+x", "missing=7+"]
    numbers = read_table(tmp_path / "t.csv", read=how).frame["c"]
    np.testing.assert_equal(numbers.to_numpy(), [90, np.nan, np.nan, np.nan, np.nan])
    refuses("must name its column, as missing=COLUMN:99", read, ["99"], missing=["99"])
    refuses("numbers must name columns of texts", read, ["99"], numbers=["nope"])


def test_a_declared_column_is_read_cell_by_cell(read: Any) -> None:
    """Whether one record's cell is a number must not change how another's is read."""
    for last in ("9", "x"):
        table = read(["1,200", "870", last], thousands=",")
        numbers = table.read_as({"c": Counts(upper=9000)}).frame["c"]
        levels = table.read_as({"c": Nominal(levels=("1,200", "870", "9", "x"))}).frame["c"]
        assert numbers.tolist() == ([1200, 870, 9] if last == "9" else ["1200", "870", "x"])
        assert levels.tolist() == ["1,200", "870", last]


def test_points_are_not_decimal_where_commas_are(read: Any) -> None:
    """1.500 would be 1.5 in silence."""
    table = read(["1.500", "2.750"], decimal=",")
    assert table.frame["c"].tolist() == ["1.500", "2.750"]
    assert "points, which are not decimal here" in table.remarks["c"]
    refuses("decimal must be one character", read, ["1"], decimal=",", thousands=",")


@pytest.mark.parametrize(("name", "mark", "said"), [
    ("t.csv", ";", ("its cells are taken as separated by ';'",)),
    ("t.tsv", "\t", ("its cells are taken as separated by tabs",)), ("t.csv.gz", ",", ()),
    ("t.txt", "|", ("its cells are taken as separated by '|'",)),
])  # fmt: skip
def test_dialects_are_taken_and_said(
    tmp_path: Path, name: str, mark: str, said: tuple[str, ...]
) -> None:
    own = pd.DataFrame({"height": ["171,2", "180,1"] * 9, "zip": ["00123", "60614"] * 9})
    own.to_csv(tmp_path / name, index=False, sep=mark)
    table = read_file(tmp_path / name, decimal=",")
    assert table.of_file == said
    assert table.frame["height"].tolist() == [171.2, 180.1] * 9
    assert table.frame["zip"].tolist() == own["zip"].tolist()


@pytest.mark.parametrize(("text", "columns", "said"), [
    ("a;b;wage (EUR, net)\n1;x;5,25\n2;y;6,75\n", ["a", "b", "wage (EUR, net)"], "';'"),
    ('a;"wage, net"\n1;x\n2;y\n', ["a", "wage, net"], "';'"),
    ("a^b\n1^x\n2^y\n", ["a", "b"], "'^'"),
    ("sep=;\na;b\n1;x,y\n2;y,z\n", ["a", "b"], "';'"), ("'a','b'\n'1','x'\n", ["a", "b"], "quoted"),
    ("a, b\n1, x\n2, y\n", ["a", "b"], "blanks after"), ("a,b\n1,x;y\n2,z\n", ["a", "b"], None),
    ('full name\n"Anna Mo"\nBob\n', ["full name"], None), ("id\n7\n8\n", ["id"], None),
])  # fmt: skip
def test_lines_tell_what_is_between_cells(
    tmp_path: Path, text: str, columns: list[str], said: str | None
) -> None:
    """Seen: whole records as the levels of one column, which a strict release published."""
    (tmp_path / "t.csv").write_text(text)
    table = read_file(tmp_path / "t.csv")
    assert [*table.frame] == columns
    assert len(table.frame) == text.count("\n") - 1 - text.startswith("sep")
    assert (said or "") in "".join(table.of_file)
    assert said is not None or not table.of_file
    if said != "blanks after":  # a folder is read as a file is
        folder = open_source(f"{tmp_path}/*.csv")
        seen = folder.sample(folder.columns).reset_index(drop=True)
        assert seen.astype(str).equals(table.text.astype(str))


@pytest.mark.parametrize(("header", "lines"), [
    ("yes,g", "no,a\n" * 9 + "yes,b\n"), ("2020-01-01,g", "2020-02-02,a\n" * 9),
    ("a;b,c", "1;2,3\n" * 9 + "12,3\n"), ("a;b,c", "1;2,3\n" * 10),
])  # fmt: skip
def test_with_declared_names_no_record_tells_how_a_file_is_read(
    tmp_path: Path, header: str, lines: str
) -> None:
    """Seen: one record's cell refused a strict release, or made other columns of the table."""
    (tmp_path / "t.csv").write_text(f"{header}\n{lines}")
    names = header.split(",")
    assert [*read_file(tmp_path / "t.csv", declared={names[0]: Counts()}).frame] == names
    assert [*open_source(str(tmp_path), names).columns] == names


@pytest.mark.parametrize("text", [
    "age sex n\n18 f 1\n19 m 2\n", "a:b\n1:2\n3:4\n", "a,b;c\n1,5;2\n2,5;3\n", "a#b\n1#2\n3#4\n",
    "a\x01b\n1\x012\n3\x014\n", "a   b\n1  2\n3 4\n",
])  # fmt: skip
def test_lines_that_fit_several_marks_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    refuses("must say what is between its cells", read_file, tmp_path / "t.csv")
    assert read_file(tmp_path / "t.csv", separator="|").frame.shape == (2, 1)


@pytest.mark.parametrize(("text", "said"), [
    ("a,b\n1,2,\n3,4,\n", "line 2 has 3, the first one 2"),
    ("# made\na,b\n1,2\n", "line 2 has 2, the first one 1; a title"),
    ("Survey\n\na,b\n1,2\n", "line 3 has 2, the first one 1; a title"),
    ("a,b\n1," + "x" * 200_000, "more than 131,072 characters"),
    ('a,b\n1,"he said \\"ok\\""\n', "quotation marks within cells doubled"),
    (",b,\n1,2,3\n", "both are empty; a title"),
    ("a,b\n1,\0\n" + "1,2\n" * 9, "bytes of 0: mend"), ("a,a\nx,y\n", "columns 1 and 2 of data"),
])  # fmt: skip
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    refuses(said, read_file, tmp_path / "t.csv")
    (tmp_path / "t.duckdb").write_text("")
    refuses("named, as in duckdb://", read_file, tmp_path / "t.duckdb")


def test_an_encoding_is_named_rightly(tmp_path: Path) -> None:
    """Seen: UTF-16 was to be made of latin1, which gives garbage."""
    path = tmp_path / "t.csv"
    for encoding in ("utf-16", "cp1252"):
        path.write_text("größe,x\n1,2\n", encoding=encoding)
        refuses(f"encoding='{encoding}' reads", read_file, path)
        assert [*read_file(path, encoding=encoding).frame] == ["größe", "x"]
    path.write_bytes("a,b\n1,2\n".encode("utf-16-le"))
    refuses("encoding='utf-16-le' reads", read_file, path)
    refuses("encoding must be one that Python knows", read_file, path, encoding="nope")


LARGE = [9007199254740993, None, 9007199254740995, 9007199254740997] * 4
DAYS = [date(2021, 3, 1), date(2021, 4, 1), None, date(1999, 12, 31)] * 4
TYPED = {
    "large": (pa.array(LARGE), [None if v is None else str(v) for v in LARGE]),
    "whole": (pa.array([5, None, 7, 8] * 4), [5, None, 7, 8] * 4),
    "digits": (pa.array([Decimal(12345678901234567890 + k) for k in range(16)], pa.decimal128(20)),
               [str(12345678901234567890 + k) for k in range(16)]),
    "short": (pa.array([709.8, 0.1, None, 3.5] * 4, pa.float32()), [709.8, 0.1, None, 3.5] * 4),
    "texts": (pa.array(["60", "", "7", None] * 4), [60, None, 7, None] * 4),
    "codes": (pa.array([*map(str, range(16))]).dictionary_encode(), [*range(16)]),
    "names": (pa.array(["x", "y"] * 8).dictionary_encode(), ["x", "y"] * 8),
    "day": (pa.array(DAYS), DAYS), "at": (pa.array([time(8), time(9, 30)] * 8),
                                          ["08:00:00", "09:30:00"] * 8),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("stored", ["t.parquet", "folder", "t.duckdb"])
def test_typed_columns_are_read_as_those_of_a_csv_file(
    tmp_path: Path, name: str, stored: str
) -> None:
    """Seen: three identifiers became two; each person's age was a level; 709.81140047."""
    table, (held, expected) = pa.table({"g": ["a"] * 16, name: TYPED[name][0]}), TYPED[name]
    parquet.write_table(table, tmp_path / "t.parquet")
    if stored == "t.parquet":
        source = read_file(tmp_path / stored)
        frame = source.frame
        kept = source.text.get(name, frame[name])
        written = pa.Table.from_pandas(kept.to_frame())[name].combine_chunks()
        assert written.cast(held.type).to_pylist() == held.to_pylist(), "as it was"
    else:
        with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
            connection.execute(f"create table t as from '{tmp_path / 't.parquet'}'")
        of = (
            str(tmp_path / "*.parquet")
            if stored == "folder"
            else f"duckdb://{tmp_path / stored}::t"
        )
        frame, _ = typed_texts(open_source(of).sample(["g", name]))
    column = frame[name].astype(object)
    assert column.where(column.notna(), None).tolist() == expected
    levels = [level for level in dict.fromkeys(expected) if level is not None]
    kind = kind_of(frame[name])
    if isinstance(kind, Leveled) and name != "names":
        assert {*kind.levels} == {str(v) if isinstance(v, date) else v for v in levels}


def test_excel_is_read_as_texts(tmp_path: Path) -> None:
    require(find_spec("openpyxl") is not None, "openpyxl is not installed")
    own = pd.DataFrame({"zip": ["00123", "60614"], "n": [7, 8], "wage": [2.5, None]})
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        days = pd.to_datetime(["2021-03-01", "2021-04-01"])
        own.assign(day=days, at=[time(8, 30), time(9)], plz=[4109, 1067]).to_excel(
            book, index=False
        )
        book.book.active.cell(2, 6).number_format = "00000"  # of one cell: others have no say
        own[["n"]].to_excel(book, sheet_name="other", index=False)
        book.sheets["other"]["B2"] = "=1+1"
    table = read_file(tmp_path / "t.xlsx")
    pd.testing.assert_frame_equal(table.frame[[*own]], own)
    assert table.frame["day"].tolist() == ["2021-03-01", "2021-04-01"]
    assert table.frame["at"].tolist() == ["08:30:00", "09:00:00"]
    assert table.frame["plz"].tolist() == ["04109", "1067"]
    assert "its first sheet of 2" in table.of_file[0]
    assert "formulas without stored values are empty" in table.of_file[1]
    assert read_file(tmp_path / "t.xlsx", sheet="other").frame["n"].tolist() == [7, 8]
    refuses("sheet must be one of", read_file, tmp_path / "t.xlsx", sheet="none")


@pytest.mark.parametrize("name", ["t.sav", "t.dta"])
def test_labels_and_declared_codes_of_spss_and_stata_are_kept(tmp_path: Path, name: str) -> None:
    require(find_spec("pyreadstat") is not None, "pyreadstat is not installed")
    import pyreadstat

    own = pd.DataFrame(
        {"sat": [1.0, 2, 9, 1], "wage": [1200.0, -9, np.nan, 3100.5], "s": [*"abca"]}
    )
    own["day"] = [date(2021, 3, 1), date(2021, 4, 1), None, date(1999, 12, 31)]
    own["at"] = pd.to_datetime([datetime(2021, 3, 1, 8, 30, place) for place in range(4)])
    labels = {"sat": {1: "low", 2: "high", 9: "refused"}, "wage": {-9: "not asked"}}
    if name == "t.sav":
        ranges = {"wage": [{"lo": -9, "hi": -7}]}
        pyreadstat.write_sav(own, tmp_path / name, variable_value_labels=labels,
                             missing_ranges=ranges)  # fmt: skip
    else:
        stata = own.astype({"sat": int, "day": "datetime64[ns]"})
        labels_of = {"sat": labels["sat"]}
        stata.to_stata(tmp_path / name, write_index=False, value_labels=labels_of)
    table = read_file(tmp_path / name)
    assert table.frame["sat"].tolist() == ["low", "high", "refused", "low"]
    np.testing.assert_equal(table.frame["wage"].to_numpy(), own["wage"].to_numpy())
    assert table.text["day"].tolist() == ["2021-03-01", "2021-04-01", "", "1999-12-31"]
    assert table.text["at"].iloc[1] == "2021-03-01 08:30:01"
    assert table.codes == ({"wage": (-9,)} if name == "t.sav" else {})
    declared = {"sat": Nominal(levels=("low", "high", "9"))}  # each cell by itself
    levels = read_file(tmp_path / name, declared=declared).frame["sat"]
    assert levels.tolist() == ["low", "high", "9", "low"]


def test_values_with_one_label_stay_apart_and_short_floats_are_as_written(tmp_path: Path) -> None:
    """Seen: two municipalities became one; 709.81140047."""
    import pyreadstat

    own = pd.DataFrame({"gem": [1.0, 2, 3], "wage": np.array([709.8, 0.1, np.nan], np.float32)})
    own["hours"], own["age"] = [98.0, 7, 9], [95.0, 94, 60]
    labels = {"gem": {1: "Other", 2: "Bern", 3: "Other"}, "hours": {98: "do not know"},
              "age": {95: "or more"}}  # fmt: skip
    pyreadstat.write_sav(own, tmp_path / "t.sav", variable_value_labels=labels)
    assert read_file(tmp_path / "t.sav").frame["gem"].tolist() == [1, 2, 3]
    assert read_file(tmp_path / "t.sav").codes == {"hours": (98,)}
    own[["wage"]].astype(np.float16).to_parquet(tmp_path / "t.parquet")
    assert read_file(tmp_path / "t.parquet").frame["wage"].tolist()[:2] == [710, 0.1]
    own.assign(rent=[1048576.25, 0.1, 1 / 3]).to_stata(tmp_path / "t.dta", write_index=False)
    table = read_file(tmp_path / "t.dta").frame  # by the type that the file declares
    assert table["wage"].tolist()[:2] == [709.8, 0.1]
    assert table["rent"].tolist() == [1048576.25, 0.1, 1 / 3]


@pytest.mark.parametrize(("header", "rows", "fine"), [
    *((header, "", False) for header in ("59,low,-0.69", "59,12,low", "1,2", "1,1,0,3")),
    *((header, "", True) for header in (
        "2010,2011,region", "age,low,visits", "x1,2nd,y", "id,1/22/20,1/23/20", "x,y,z,1.1",
        "v1.5,w,x")),
    *((header, "7.25,7.25,7.25,7.25\n", header == "x,y,2.5-3,z") for header in (
        "x,70.5%,y,z", "x,y,$2065.40,z", 'x,y,"2,065.40",z', "x,y,2.5-3,z")),
    ("2001-05-06,m,south", "2002-07-08,f,north\n2003-01-01,m,north\n", False),
    ("01.02.1999,x,south", "03.04.1999,x,south\n05.06.2001,y,north\n", False),
    ("Apple,Pear,sex", "Apple,,f\nApple,Pear,m\n", True),
    ("Ann,a@b.ch,x,y", "Bo,c@d.org,,\nCy,,,z\n", False),
    ("756.1234.5678.97,Mo,Mo,x", "756.9876.5432.10,Li,Ba,x\n", False),
    ("x,y,30 Apr 1978", "a,b,1 May 2001\n", False), ("x,y,08:30", "a,b,11:45\n", False),
    ("x,y,30.4.1978 10:00", "a,b,1.5.2001 11:30\n", False),
    ("Huber,Huber,1978-05-14,x,y", "Meier,Li,1965-12-31,a,b\n", False),
])  # fmt: skip
def test_a_first_line_that_looks_like_a_record_is_refused(
    tmp_path: Path, header: str, rows: str, fine: bool
) -> None:
    """Seen: the first person's record was published as the names of the columns."""
    path = tmp_path / "t.csv"
    sevens = ",".join("7" * (header.count(",") + 1)) + "\n"
    path.write_text(f"{header}\n" + (rows or sevens))
    if fine:
        assert ",".join(read_file(path).frame) == header
    else:
        refuses("must have the names of its columns in its first line", read_file, path)
        (tmp_path / "folder").mkdir()
        path.rename(tmp_path / "folder" / "t.csv")
        refuses("must have the names of its columns", open_source, str(tmp_path / "folder"))


@pytest.mark.parametrize(("text", "missing"), [
    ("a,b\n1,2\n\n3,4\n", [0, 0]), ("a,b\r\n1,2\r\n\r\n3,4\r\n", [0, 0]), ("a,b\n1,2", [0]),
    ("a,b\n1,2\n3\n", None), ("a,b\n1,2\n3", None), ("a,b\r\n1,2\r\n3\r\n", None),
    ('a,b\n"1,5",2\n', [0]), ('a,b\n"1,5"\n', None), ("a,b\n1,2,3\n", None),
    ("a,b\n,\n1,2\n", [1, 0]), ("a\n1\n\n2\n", [0, 1, 0]),
])  # fmt: skip
def test_lines_that_end_early_are_refused_and_an_empty_cell_is_a_record(
    tmp_path: Path, text: str, missing: list[int] | None
) -> None:
    """pandas fills lines in silence. Seen: an empty one was skipped, and the number told."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    if missing:
        assert read_file(path).frame["a"].isna().tolist() == missing
    else:
        refuses("as many cells as the first one", read_file, path)
