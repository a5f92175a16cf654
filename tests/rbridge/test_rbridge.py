"""R from Python: values both ways, R's errors and warnings, and R that is not there."""

import datetime
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid import rbridge
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.rbridge import session as status_module
from tests.conftest import require
from tests.refusals import fails, refuses

pytestmark = pytest.mark.needs_r
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def r() -> Any:
    """rpy2's low-level interface, with R running."""
    found = rbridge.r_status()
    require(found.available, f"R cannot be used: {found}")
    return rbridge.start_r()


@pytest.fixture
def no_memory_of_status() -> Iterator[None]:
    status_module._look.cache_clear()
    yield
    status_module._look.cache_clear()


@pytest.fixture
def stand_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_memory_of_status: None
) -> Callable[[str], None]:
    """Puts a shell script at the place of R."""
    monkeypatch.delenv("R_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def put(script: str) -> None:
        program = tmp_path / "R"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return put


def _back(value: Any) -> Any:
    return rbridge.from_r(rbridge.to_r(value))


@pytest.mark.parametrize("value", [None, True, 3, 2**40, -7.25, np.inf, "naïve ∆", ""])
def test_scalars_come_back(value: Any, r: Any) -> None:
    back = _back(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("value", [
    np.array([1.5, -np.inf, np.nan]), np.array([1]), np.array([], dtype=float),
    np.array([True, False]), np.array([2**31 - 1, -(2**31) + 1]), np.array([2**31, -5]),
    np.array([2**63 - 1, -(2**63) + 1]), np.arange(6.0).reshape(2, 3),
    np.arange(24).reshape(2, 3, 4), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([["a", "b"], ["c", None]], dtype=object),
])  # fmt: skip
def test_arrays_come_back_in_shape(value: Any, r: Any) -> None:
    back = _back(value)
    assert back.shape == value.shape
    np.testing.assert_array_equal(back, value)


def test_a_matrix_has_its_rows_in_r_and_lists_and_dicts_come_back(r: Any) -> None:
    matrix = rbridge.to_r(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert list(r.evalr("function(m) c(dim(m), m[2, 1], m[1, 3])")(matrix)) == [2, 3, 4, 3]
    value = {"a": 1, "b": [True, "x", {"c": 2.5}], "nothing": None}
    assert _back(value) == value


def _table() -> pd.DataFrame:
    return pd.DataFrame({
        "real": [1.5, np.nan, -np.inf],
        "nullable": pd.array([1.5, pd.NA, 3.0], dtype="Float64"), "whole": [1, 2, 3],
        "small": np.array([1, 2, 3], dtype=np.uint8), "big": [2**40, -(2**62), 0],
        "missing": pd.array([1, None, 3], dtype="Int64"),
        "big_missing": pd.array([2**40, None, 3], dtype="Int64"), "truth": [True, False, True],
        "truth_missing": pd.array([True, None, False], dtype="boolean"), "text": ["a", "", "é"],
        "text_missing": pd.array(["a", None, "c"], dtype="string"),
        "objects": pd.Series(["a", None, "c"], dtype=object),
        "factor": pd.Categorical(["b", None, "a"], categories=["c", "b", "a"]),
        "ordered": pd.Categorical(["lo", "hi", "lo"], categories=["lo", "hi"], ordered=True),
        "numbered": pd.Categorical([3, 1, 3], categories=[3, 1]),
        "day": pd.Series([datetime.date(2024, 2, 29), None, datetime.date(1900, 1, 1)]),
        "instant": pd.to_datetime(
            ["2024-02-29 12:34:56.789123", None, "1950-01-01 00:00:00.000001"]
        ),
        "zoned": pd.to_datetime(["2024-07-01 12:00", None, "2024-01-01 00:00"]).tz_localize(
            "Europe/Paris"
        ),
    })  # fmt: skip


@pytest.mark.parametrize("column", list(_table().columns))
def test_a_column_comes_back_with_dtype_levels_and_gaps(column: str, r: Any) -> None:
    table = _table()[[column]]
    pd.testing.assert_frame_equal(_back(table), table)


def test_a_table_comes_back_with_its_index(r: Any) -> None:
    table = _table()
    table.index = pd.Index(["x", "y", "z"], name="label")
    back = _back(table)
    pd.testing.assert_frame_equal(back, table)
    pd.testing.assert_frame_equal(_back(table.iloc[:0]), table.iloc[:0], check_index_type=False)


def test_r_sees_gaps_levels_and_large_integers(r: Any) -> None:
    table = rbridge.to_r(_table())

    def in_r(code: str) -> list[Any]:
        return list(r.evalr(f"function(d) {code}")(table))

    assert in_r("is.na(d$real) & !is.nan(d$real)") == [False, False, False]  # NaN, not NA
    assert in_r("is.na(d$nullable) & !is.nan(d$nullable)") == [False, True, False]
    assert in_r("is.na(d$missing)") == [False, True, False]
    assert in_r("levels(d$factor)") == ["c", "b", "a"]
    assert in_r("c(is.ordered(d$ordered), is.ordered(d$factor))") == [True, False]
    assert in_r("class(d$big)") == ["integer64"]
    assert in_r("format(d$day[1])") == ["2024-02-29"]
    assert in_r("format(d$zoned[1], '%H:%M %Z')") == ["12:00 CEST"]
    assert in_r("dim(d)") == [3, 18]


def test_integer64_means_the_same_number_in_bit64(r: Any) -> None:
    found = bool(r.evalr('nzchar(system.file(package = "bit64"))')[0])
    require(found, "R package bit64 is missing: apt-get install r-cran-bit64")
    show = r.evalr("function(x) { loadNamespace('bit64'); format(x) }")
    shown = [s.strip() for s in show(rbridge.to_r(np.array([2**62, -(2**40)])))]
    assert shown == ["4611686018427387904", "-1099511627776"]
    made = rbridge.from_r(r.evalr("bit64::as.integer64(c('9007199254740993', NA))"))
    assert made[0] == 2**53 + 1
    assert made[1] is pd.NA


def test_what_r_made_comes_back_as_the_nearest_dtype(r: Any) -> None:
    made = rbridge.from_r(
        r.evalr(
            "data.frame(i = c(1L, NA), x = c(1, NA), n = c(NaN, 2), s = c('a', NA), "
            "b = c(TRUE, NA), f = factor(c('u', NA)), d = as.Date(c('2024-01-02', NA)), "
            "row.names = c('r1', 'r2'))"
        )
    )
    assert made["i"].tolist() == [1, pd.NA]
    assert made["x"].iloc[1] is pd.NA
    assert np.isnan(made["n"].iloc[0])
    assert made["s"].isna().tolist() == [False, True]
    assert made["b"].tolist() == [True, pd.NA]
    assert made["f"].cat.categories.tolist() == ["u"]
    assert made["d"].tolist() == [datetime.date(2024, 1, 2), None]
    assert made.index.tolist() == ["r1", "r2"]


@pytest.mark.parametrize(("values", "found"), [
    ([{"a": 1}, {"b": 2}], "found dict"), ([[1], [2]], "found list"), ([1, "a"], "found int, str"),
    (np.array([2**64 - 1, 1], dtype=np.uint64), "signed 64-bit"),
    (pd.to_timedelta([1, 2], unit="s"), "timedelta64"), (np.array([1j, 2]), "complex128"),
    (pd.period_range("2024-01", periods=2, freq="M"), "period"),
    (pd.to_datetime(["2024-01-01 00:00:00.000000001"] * 2), "whole microseconds"),
    ([b"a", b"b"], "found bytes"), (pd.Categorical([1, "1"]), "differ as text"),
])  # fmt: skip
def test_a_column_that_r_has_no_type_for_is_named(values: Any, found: str, r: Any) -> None:
    table = pd.DataFrame({"fine": [1.0, 2.0], "odd one": values})
    assert found in refuses("column 'odd one'", rbridge.to_r, table)


def test_tables_without_r_names_and_what_is_no_data_are_refused(r: Any) -> None:
    for names in ([0], ["a", "a"]):
        table = pd.DataFrame([[1.0] * len(names)], columns=names)
        refuses("column names must be strings, each once", rbridge.to_r, table)
    table = pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)]))
    refuses("the index must have one level", rbridge.to_r, table)
    refuses("found set", rbridge.to_r, {1})
    fails(rbridge.RError, "found an object of class function", rbridge.from_r, r.evalr("mean"))


@pytest.fixture
def probe(r: Any) -> Any:
    """Puts a function into the R package's environment for one test."""
    home = rbridge.session._package()

    def define(code: str) -> str:
        home["probe_of_a_test"] = r.evalr(code)
        return "probe_of_a_test"

    yield define
    del home["probe_of_a_test"]


def test_an_r_error_has_rs_text_and_the_right_type(probe: Any) -> None:
    unavailable = (
        "stop(structure(class = c('pyhybrid_engine_unavailable', 'error', 'condition'), "
        "list(message = 'not here', call = NULL)))"
    )
    for error, said, body in (
        (rbridge.RError, r"^the sky is 3$", "stop('the sky is ', 3)"),
        (rbridge.RError, "non-numeric argument", "1 + 'a'"),
        (EngineUnavailable, "not here", unavailable),
    ):
        fails(error, said, rbridge.call_r, probe(f"function() {body}"))
    wrong = {"lipschitz": np.ones(2), "transform": "cubic"}
    refuses("found 'cubic'", rbridge.call_r, "weights_from_lipschitz", **wrong)
    said = "must have a function 'no_such_function'"
    fails(EngineUnavailable, said, rbridge.call_r, "no_such_function")


def test_an_r_warning_is_passed_on_and_the_value_kept(probe: Any) -> None:
    name = probe("function(x) { warning('careful'); warning('very'); x + 1 }")
    with pytest.warns(UserWarning, match=r"^R: ") as caught:
        assert rbridge.call_r(name, x=1.0) == 2.0
    assert [str(w.message) for w in caught] == ["R: careful", "R: very"]


def test_r_prints_nowhere_but_to_its_listener(
    probe: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []
    name = probe("function() { cat('out\\n'); message('err'); print(1); invisible(7) }")
    assert rbridge.call_r(name, output=heard.append) == 7
    assert rbridge.call_r(name) == 7
    assert rbridge.call_r(probe("function() readline('who? ')")) == ""
    assert capfd.readouterr() == ("", "")
    assert {"out", "err"} <= set("".join(heard).split())


def test_ctrl_c_ends_a_call_that_prints(probe: Any) -> None:
    name = probe("function() for (i in 1:1e6) { cat(i, '\\n'); Sys.sleep(0.001) }")

    def press(text: str) -> None:
        raise KeyboardInterrupt

    fails(KeyboardInterrupt, "", rbridge.call_r, name, output=press)
    assert rbridge.call_r("round_up", epsilon=0.3) == 0.3


def test_nothing_is_left_in_rs_global_environment(r: Any) -> None:
    before = list(r.evalr("ls(globalenv(), all.names = TRUE)"))
    rbridge.call_r("lipschitz_bounds", log_lik=np.ones((3, 3)))
    assert list(r.evalr("ls(globalenv(), all.names = TRUE)")) == before


_IN_A_NEW_PROCESS = """
import locale, os, signal, sys, logging
def mine(*_): pass
signal.signal(signal.SIGINT, mine)
before = locale.setlocale(locale.LC_ALL)
from pyhybrid import rbridge
assert "rpy2" not in sys.modules
assert rbridge.call_r("epsilon_of_bound", bound=0.15) == 0.3
assert locale.setlocale(locale.LC_ALL) == before, locale.setlocale(locale.LC_ALL)
assert signal.getsignal(signal.SIGINT) is mine
folder = rbridge.start_r().evalr("tempdir()")[0]
assert os.path.isdir(folder)
sys.stdout.write("FOLDER" + folder)
"""


def test_starting_r_leaves_locale_signals_console_and_disk_alone(r: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _IN_A_NEW_PROCESS], capture_output=True, text=True,
        cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("FOLDER")
    assert not Path(done.stdout.removeprefix("FOLDER")).exists()


def _refusal() -> str:
    return fails(EngineUnavailable, "", rbridge.start_r)


@pytest.mark.usefixtures("no_memory_of_status")
@pytest.mark.parametrize(("variable", "says", "remedy"), [
    ("PATH", "no R is on the path", "apt-get install r-base-core"),
    ("R_HOME", "no R is at {}", "unset R_HOME"),
])  # fmt: skip
def test_no_r(
    variable: str, says: str, remedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("R_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert says.format(tmp_path) in _refusal()
    assert remedy in _refusal()


def test_r_that_does_not_start(stand_in: Callable[[str], None]) -> None:
    stand_in("exit 3")
    assert "R must start" in _refusal()


@pytest.mark.parametrize(("printed", "rpy2", "cause"), [
    ("R:4.2.2", "3.6.6", "R is too old for the installed rpy2: found R 4.2.2"),
    ("R:4.2.2", "", "rpy2 must be installed"),
    ("R:4.5.1\\nmatrixStats:", "3.6.6", "matrixStats must be installed"),
])  # fmt: skip
def test_what_does_not_fit_is_named(
    printed: str, rpy2: str, cause: str, monkeypatch: pytest.MonkeyPatch,
    stand_in: Callable[[str], None],
) -> None:  # fmt: skip
    monkeypatch.setattr(status_module, "_version", lambda name: rpy2)
    stand_in(f"printf '{printed}\\n'")
    assert cause in _refusal()
    assert "install" in rbridge.r_status().remedy


def test_an_rpy2_that_crashes_is_found_out_elsewhere(
    monkeypatch: pytest.MonkeyPatch, stand_in: Callable[[str], None]
) -> None:
    monkeypatch.setattr(status_module, "_version", lambda name: "3.6.5")
    monkeypatch.setattr(status_module, "_TRIAL", "import os; os.abort()")
    stand_in("printf 'R:4.2.2\\nmatrixStats:1\\n'")
    assert "fails in a trial process" in _refusal()


def test_the_status_says_what_was_found(r: Any) -> None:
    found = rbridge.r_status()
    assert found.available
    assert found.cause == found.remedy == ""
    assert found.r_version in str(found)
    assert Path(found.r_home).is_dir()


def test_importing_the_bridge_needs_no_rpy2() -> None:
    code = "import sys; sys.modules['rpy2'] = None; import pyhybrid.rbridge as b; b.r_status"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_children_of_python_do_not_inherit_rs_library_path(r: Any) -> None:
    """Another libpython may lie there: worker processes died of it."""
    code = (
        "import os, subprocess, sys; os.environ.pop('LD_LIBRARY_PATH', None);"
        "from pyhybrid.rbridge import call_r; call_r('round_up', epsilon=1.0);"
        "assert 'LD_LIBRARY_PATH' not in os.environ;"
        "subprocess.run([sys.executable, '-c', 'import os; "
        'assert not os.environ.get("LD_LIBRARY_PATH")\'], check=True)'
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
