"""R from Python: values both ways, R's errors and warnings, and R that is not there."""

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


@pytest.mark.parametrize("value", [
    None, True, 3, -7.25, np.inf, "naïve ∆", "", {"a": 1, "b": [True, "x", {"c": 2.5}], "no": None},
    np.array([1.5, -np.inf, np.nan]), np.array([1]), np.array([], dtype=float),
    np.array([True, False]), np.array([2**31 - 1, -(2**31) + 1]), np.array([2**31, -5]),
    np.array([2**53, -(2**53)]), np.arange(6.0).reshape(2, 3),
    np.arange(24).reshape(2, 3, 4), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([["a", "b"], ["c", None]], dtype=object),
])  # fmt: skip
def test_values_come_back_in_type_and_shape(value: Any, r: Any) -> None:
    back = rbridge.from_r(rbridge.to_r(value))
    assert type(back) is type(value)
    assert np.shape(back) == np.shape(value)
    np.testing.assert_array_equal(back, value)


def test_a_matrix_has_its_rows_in_r(r: Any) -> None:
    matrix = rbridge.to_r(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert list(r.evalr("function(m) c(dim(m), m[2, 1], m[1, 3])")(matrix)) == [2, 3, 4, 3]


def test_r_sees_the_columns_of_a_table_with_gaps_and_levels(r: Any) -> None:
    table = rbridge.to_r(
        pd.DataFrame({
            "real": [1.5, np.nan, -np.inf], "whole": [1, 2, 3], "big": [2**40, -(2**52), 0],
            "small": np.array([1, 2, 3], dtype=np.uint8),
            "nullable": pd.array([1.5, pd.NA, 3.0], dtype="Float64"),
            "missing": pd.array([1, None, 3], dtype="Int64"), "truth": [True, False, True],
            "truth_missing": pd.array([True, None, False], dtype="boolean"),
            "text": ["a", "", "é"], "text_missing": pd.array(["a", None, "c"], dtype="string"),
            "factor": pd.Categorical(["b", None, "a"], categories=["c", "b", "a"]),
            "ordered": pd.Categorical(["lo", "hi", "lo"], categories=["lo", "hi"], ordered=True),
        })
    )  # fmt: skip

    def in_r(code: str) -> list[Any]:
        return list(r.evalr(f"function(d) {code}")(table))

    for name in ("real", "nullable", "missing", "truth_missing", "text_missing", "factor"):
        assert in_r(f"is.na(d${name})") == [False, True, False]
    assert in_r("vapply(d, function(x) class(x)[1], '')") == [
        *["numeric"] * 6, "logical", "logical",
        "character", "character", "factor", "ordered",
    ]  # fmt: skip
    assert in_r("d$big") == [2**40, -(2**52), 0]
    assert in_r("d$text") == ["a", "", "é"]
    assert in_r("levels(d$factor)") == ["c", "b", "a"]
    assert in_r("dim(d)") == [3, 12]


def test_missing_values_of_r_are_nan_and_none(r: Any) -> None:
    numbers, logicals, texts = rbridge.from_r(r.evalr("list(c(1L, NA), c(TRUE, NA), c('a', NA))"))
    np.testing.assert_array_equal(numbers, [1, np.nan])
    np.testing.assert_array_equal(logicals, [1, np.nan])
    assert texts.tolist() == ["a", None]


@pytest.mark.parametrize("values", [
    [{"a": 1}, {"b": 2}], [1, "a"],
    pd.to_timedelta([1, 2], unit="s"), np.array([1j, 2]), pd.to_datetime(["2024-01-01"] * 2),
    pd.Categorical([1, "1"]),
])  # fmt: skip
def test_a_column_that_r_has_no_type_for_is_named(values: Any, r: Any) -> None:
    table = pd.DataFrame({"fine": [1.0, 2.0], "odd one": values})
    refuses("column 'odd one'", rbridge.to_r, table)


def test_tables_without_r_names_and_what_is_no_data_are_refused(r: Any) -> None:
    for names in ([0], ["a", "a"]):
        table = pd.DataFrame([[1.0] * len(names)], columns=names)
        refuses("column names must be strings, each once", rbridge.to_r, table)
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


_IN_A_NEW_PROCESS = """
import locale, os, signal, subprocess, sys
os.environ.pop("LD_LIBRARY_PATH", None)
def mine(*_): pass
signal.signal(signal.SIGINT, mine)
before = locale.setlocale(locale.LC_ALL)
from pyhybrid import rbridge
assert "rpy2" not in sys.modules
assert rbridge.call_r("epsilon_of_bound", bound=0.15) == 0.3
assert list(rbridge.start_r().evalr("ls(globalenv(), all.names = TRUE)")) == []
assert locale.setlocale(locale.LC_ALL) == before, locale.setlocale(locale.LC_ALL)
assert signal.getsignal(signal.SIGINT) is mine
# R's library path may hold another libpython: worker processes died of it.
child = 'import os; assert not os.environ.get("LD_LIBRARY_PATH")'
subprocess.run([sys.executable, "-c", child], check=True)
assert "LD_LIBRARY_PATH" not in os.environ
folder = rbridge.start_r().evalr("tempdir()")[0]
assert os.path.isdir(folder)
sys.stdout.write("FOLDER" + folder)
"""


def test_starting_r_leaves_locale_signals_console_disk_and_rs_globals_alone(r: Any) -> None:
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


@pytest.mark.parametrize(("printed", "rpy2", "cause"), [
    ("R:4.2.2", "3.6.6", "R is too old for the installed rpy2: found R 4.2.2"),
    ("R:4.2.2", "", "rpy2 must be installed"),
    ("R:4.2.2\\nmatrixStats:1", "3.6.5", "fails in a trial process"),
    ("R:4.5.1\\nmatrixStats:", "3.6.6", "matrixStats must be installed"),
    ("nothing of a version", "3.6.6", "R must start"),
])  # fmt: skip
def test_what_does_not_fit_is_named(
    printed: str, rpy2: str, cause: str, monkeypatch: pytest.MonkeyPatch,
    stand_in: Callable[[str], None],
) -> None:  # fmt: skip
    """An rpy2 that crashes does so in a process of its own."""
    monkeypatch.setattr(status_module, "version_of", lambda name: rpy2)
    monkeypatch.setattr(status_module, "_TRIAL", "import os; os.abort()")
    stand_in(f"printf '{printed}\\n'")
    assert cause in _refusal()
    assert "install" in rbridge.r_status().remedy
