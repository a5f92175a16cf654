"""Formulas: the same design as R's, what is refused, and whether terms look at one record alone."""

import datetime
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.models.formula import terms
from pyhybrid.models.formula.design import read_design
from tests.golden.designs.cases import FORMULAS, table
from tests.golden.designs.make_designs import STORED, sorted_columns
from tests.refusals import refuses

STRICT_OR_NOT = {  # term: whether it takes something from all records
    "x": False, "I(x^2)": False, "log(z)": False, "g": False, "factor(k)": False,
    "scale(x)": True, "scale(x, center=40)": True, "scale(x, center=40, scale=10)": False,
    "scale(x, center=FALSE, scale=10)": False, "I(scale(x)^2)": True,
    "I(scale(x) + scale(z, center=4, scale=1))": True,
    "poly(x, 2)": True, "poly(x, 2, raw=TRUE)": False,
    "ns(x, 3)": True, "ns(x, knots=c(30, 50))": True,
    "ns(x, knots=c(30, 50), Boundary.knots=c(10, 90))": False,
    "bs(x, df=5, Boundary.knots=c(10, 90))": True,
    "bs(x, df=3, Boundary.knots=c(10, 90))": False,
    "bs(x, knots=40, Boundary.knots=c(10, 90))": False,
    "offset(log(z))": False, "x + offset(scale(z))": True,
    "days(born)": False, "I(days(born) > 5000)": False,
    "cut(x, c(0, 40, 100))": False,
}  # fmt: skip


@pytest.mark.parametrize("stored", json.loads(Path(STORED).read_text()), ids=lambda s: s["formula"])
def test_designs_are_those_that_r_made(stored: dict[str, Any]) -> None:
    """R's model.matrix, stored; `tests/parity/test_designs.py` asks R itself."""
    design = read_design(stored["formula"], table())
    X, offset = sorted_columns(design.X), design.offset
    expected = np.array(stored["columns"]).T
    assert X.shape == expected.shape
    np.testing.assert_allclose(*(own / np.abs(X).max(axis=0) for own in (X, expected)), atol=1e-10)
    np.testing.assert_allclose(offset, stored.get("offset", np.zeros(len(offset))), rtol=1e-10)
    assert offset.any() == ("offset(" in stored["formula"])


def test_integers_do_not_wrap_around() -> None:
    """Seen: I(age^2) was bitwise XOR; and 200 * 200 of 8 bits is 64 in numpy."""
    values = np.array([200, 3, 7, 90], dtype=np.uint8)
    df = pd.DataFrame({"y": [1, 2, 3, 4], "a": values, "b": values[::-1].copy()})
    X = read_design("y ~ 0 + I(a^2) + I(a - b)", df).X
    np.testing.assert_array_equal(X, [[40_000, 110], [9, -4], [49, 4], [8100, -110]])


def test_every_function_that_is_allowed_is_compared_with_r() -> None:
    text = " ".join(FORMULAS)
    assert [name for name in terms.FUNCTIONS if f"{name}(" not in text] == [
        "days", "cos", "expm1", "sin",
    ]  # fmt: skip
    df = table()
    X = read_design("y ~ cos(z) + sin(z) + expm1(z)", df).X
    z = df["z"].to_numpy()
    np.testing.assert_array_equal(X[:, 1:], np.column_stack([np.cos(z), np.sin(z), np.expm1(z)]))


@pytest.mark.parametrize(("term", "says"), [
    ("I(x / (x @ x))", "must have no '@'"),
    ("x | z", "must have no '|'"), ("(1 | g)", "must have no '|'"),
    ("I(!member)", "must have no '!'"), ("I(x - x.mean())", "x.mean() is no function of a term"),
    ("__import__('os').system('true')", "does not parse"),
    ("I((lambda: 1)())", "no function of a term"), ("I(x[0])", "x[0] is neither"),
    ("log(x.T)", "'x.T' is none"), ("x:offset(z)", "offset() as a term of its own"),
    ("(x + offset(z))^2", "offset() as a term of its own"),
    ("I(offset(z))", "offset() must be a term of its own"),
    ("x - offset(z)", "not subtract an offset: write offset(-x)"),
    ("0 + offset(z)", "a term beside offset()"), ("offset(g)", "'g' must hold numbers"),
    ("offset(log(z - 100))", "predictor 'offset(log(z - 100))' must be finite: row 0 is not"),
    ("offset(1e308 + x) + offset(1e308 + z)", "sum of the offsets must be finite"),
    ("offset(y)", "must not be among the predictors"),
    ("offset(poly(x, 2))", "poly() must be a term of its own"),
    ("offset(z, x)", "offset() takes x"),
    ("center(x)", "is no function of a term"), ("facto(k)", "did you mean 'factor'?"),
    ("x > 3", "comparisons within I()"),
    ("I(1 < x < 3)", "two sides"), ("2:x", "write I(2 * x)"),
    ("I(poly(x, 2)^2)", "poly() must be a term of its own"),
    ("poly(x, k)", "degree must be a whole number from 1 to 20, written out"),
    ("log(x, base=0)", "base must be a number above 0, not 1"),
    ("cut(x, 4)", "breaks must be c(...) of different numbers"),
    ("ns(x, 3, 4, 5, 6, 7)", "ns() takes"), ("ns(x, 3, df=3)", "each once"),
    ("bs(x, df=2)", "df of bs must be at least 3"),
    ("bs(x, knots=c(1, 2))", "between its boundary knots"), ("I(g == x)", "must hold numbers"),
    ("log(g)", "'g' must hold numbers to be computed with"), ("I(x == 'a')", "must hold text"),
    ("log(odd_name)", "did you mean 'odd name'?"),
    ("factor(g, levels=c('a', 'a'))", "levels must be c(...) of different levels"),
    ("bs(I(0 * x))", "bs() must have a column that varies"),
    ("cut(x, c(0, 40))", "must lie within its breaks: row 1 does not"),
    ("factor(g, levels=c('a', 'b'))", "must have one of its levels: row"),
])  # fmt: skip
def test_what_is_not_supported_is_one_line_that_names_it(term: str, says: str) -> None:
    assert says in refuses("", read_design, f"y ~ {term}", table(), hidden="\n")


BORN = ["2000-02-29", "1969-12-31", None, "2024-07-01"]


@pytest.mark.parametrize("values", [
    BORN,
    [f"{day}T23:30:00Z" if day else None for day in BORN],
    pd.to_datetime(pd.Series(BORN)) + pd.Timedelta(hours=23),
    pd.to_datetime(pd.Series(BORN)).dt.tz_localize("Asia/Tokyo"),
    [day and datetime.date.fromisoformat(day) for day in BORN],
], ids=["text", "times", "datetime", "with zone", "objects"])  # fmt: skip
def test_days_are_those_of_r_since_1970(values: Any) -> None:
    """R: as.numeric(as.Date(c("2000-02-29", "1969-12-31", NA, "2024-07-01")))."""
    df = pd.DataFrame({"y": [1, 2, 3, 4], "born": values})
    design = read_design("y ~ days(born)", df)
    assert design.columns == ("Intercept", "days(born)", "is.na(born)")
    assert design.X.tolist() == [[1, 11016, 0], [1, -1, 0], [1, 0, 1], [1, 19905, 0]]
    years = read_design("y ~ I((20000 - days(born)) / 365.25)", df).X[:, 1]
    assert years.tolist() == [8984 / 365.25, 20001 / 365.25, 0, 95 / 365.25]
    assert not design.data_dependent
    refuses(r"'born' must be numbers.*holds dates.*write days\(born\)", read_design, "y ~ born", df)
    refuses("'born' must", read_design, "y ~ log(born)", df)
    odd = df.assign(born=["2000-02-29", "29.2.2000", None, "x"])
    said = "days as in 2001-12-31: row 1 is not"
    refuses(said, read_design, "y ~ days(born)", odd, hidden=["29.2"])


@pytest.mark.parametrize("values", [
    pd.period_range("2020-01", periods=8, freq="M"), pd.timedelta_range("1h", periods=8),
    [f"{day + 1}.1.2020" for day in range(8)],
], ids=["period", "timedelta", "text d.m.y"])  # fmt: skip
def test_other_dates_as_predictors_are_one_clear_line(values: Any) -> None:
    df = pd.DataFrame({"y": range(8), "day": values})
    refuses("'day' must be numbers.*it holds dates", read_design, "y ~ day", df)
    if isinstance(values, list):
        assert read_design("y ~ factor(day)", df, any_rank=True).X.shape == (8, 8), "if asked for"


SECRET = "Wednesbury"


@pytest.mark.parametrize("formula", [
    "y ~ town + t2", "y ~ town:x", "y ~ factor(town, levels=c('a'))", "y ~ town + never",
    "y ~ log(x):town",
])  # fmt: skip
def test_messages_name_rows_and_terms_but_no_values(formula: str) -> None:
    """A level is a value of some record: the design's columns are named by term and place."""
    df = pd.DataFrame({"y": range(6), "town": ["a", "b", SECRET] * 2, "x": [1.0, 2, -0.123457] * 2})
    df["t2"] = df["town"]
    df["never"] = pd.Categorical(["p"] * 6, categories=["p", SECRET])
    if formula == "y ~ town:x":
        df["x"] = [1.0, 2, np.inf] * 2
    refuses("", read_design, formula, df, hidden=[SECRET, "0.1234"])
    design = read_design("y ~ town", df.assign(town=["a", "b", "c"] * 2).set_axis([*"uvwxyz"]))
    said = "'town' must have one of its levels: row 2"
    refuses(said, design.recoded, df, hidden=[SECRET])


@pytest.mark.parametrize("term", STRICT_OR_NOT)
def test_terms_that_take_from_all_records_are_known(term: str) -> None:
    """Others keep their values, coded anew without some records, or with one beyond all others."""
    df, rows = table(), np.arange(len(table()))
    df["born"] = pd.date_range("1970-01-01", periods=len(df), freq="300D").strftime("%Y-%m-%d")
    design = read_design(f"y ~ {term}", df)
    assert bool(design.data_dependent) == STRICT_OR_NOT[term]
    changed = df.assign(x=df["x"].where(rows != 4, 99.0), z=df["z"].where(rows != 4, 99.0))
    moved = []
    for other, same in ((df.iloc[7:], rows[7:]), (df.iloc[::2], rows[::2]), (changed, rows[5:])):
        again = read_design(f"y ~ {term}", other)
        parts = [(again.X[-same.size :], design.X[same])]
        parts.append((again.offset[-same.size :], design.offset[same]))
        moved.append(not all(np.allclose(a, b, rtol=1e-10) for a, b in parts))
    assert any(moved) == STRICT_OR_NOT[term]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_design_codes_parts_of_its_table_alike(formula: str) -> None:
    """With what was kept, without one row, with one row changed, and after pickling."""
    df = table()
    design = pickle.loads(pickle.dumps(read_design(formula, df)))
    np.testing.assert_allclose(design.recoded(df).X, design.X, rtol=1e-12)
    np.testing.assert_allclose(design.recoded(df.iloc[5:]).X, design.X[5:], rtol=1e-12, atol=1e-12)
    changed = df.copy()
    changed.iloc[0] = df.iloc[7]
    changed = changed.astype(df.dtypes)
    again = design.recoded(changed)
    np.testing.assert_allclose(again.X[1:], design.X[1:], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(again.offset[1:], design.offset[1:], rtol=1e-12, atol=1e-12)


MISSING = pd.DataFrame({
    "y": [1.0, 2, 3, 4, 5, 6, 7],
    "x": [1.0, None, 3, 4, None, 9, 5],
    "g": ["a", "b", None, "a", "a", "b", "b"],
})  # fmt: skip


def test_a_missing_predictor_makes_its_terms_zero_and_its_indicator_one():
    """By hand: a level of its own for levels, and for numbers 0 with an indicator."""
    coded = read_design("y ~ x + g + x:g", MISSING)
    assert coded.columns == ("Intercept", "x", "g[T.b]", "x:g[T.b]", "is.na(g)", "is.na(x)")
    assert coded.data_dependent == ()
    assert coded.X.tolist() == [
        [1, 1, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 1],
        [1, 3, 0, 0, 1, 0],
        [1, 4, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 1],
        [1, 9, 1, 9, 0, 0],
        [1, 5, 1, 5, 0, 0],
    ]


@pytest.mark.parametrize("right", ["log(x) + I(x > 2)", "g - 1", "poly(x, 2) + g", "bs(x, df=4)"])
def test_one_row_alone_is_coded_as_in_its_table(right: str) -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"y": range(40), "x": rng.gamma(2, size=40), "g": ["a", "b"] * 20})
    table.loc[5:9, "x"] = np.nan
    table.loc[8:14, "g"] = None
    coded = read_design(f"y ~ {right}", table)
    rows = [coded.recoded(table.iloc[[place]]).X for place in range(40)]
    np.testing.assert_allclose(np.vstack(rows), coded.X, rtol=1e-12)


def test_columns_that_are_missing_together_have_one_indicator() -> None:
    twice = MISSING.assign(z=[2.0, None, 5, 1, None, 3, 4])
    coded = read_design("y ~ x + z", twice)
    assert coded.columns == ("Intercept", "x", "z", "is.na(x)")
    assert coded.recoded(twice.iloc[:2]).X.tolist() == [[1, 1, 2, 0], [1, 0, 0, 1]]
    known = read_design("y ~ x", twice.dropna())
    refuses("'x' must not be missing, since it was not", known.recoded, twice)


@pytest.mark.parametrize(
    "formula", ['Q("2010") ~ z', "z ~ 2010", "z ~ Q('2010')", "z ~ mean radius + `2010`"]
)
def test_names_that_need_backticks_are_said_to(formula: str) -> None:
    columns = ["z", "2010", "mean radius"]
    refuses("backticks|2010", terms.parse_formula, formula, columns)
    assert terms.parse_formula("`2010` ~ `mean radius`", columns).predictors == ("mean radius",)
