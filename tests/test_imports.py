"""Importing does no work: what a command or a refusal does not use is not loaded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SLOW = ("scipy.optimize", "scipy.stats", "sklearn", "statsmodels", "matplotlib", "arviz", "stanli")


def _run(code: str, others: tuple[str, ...], where: Path) -> Any:
    """What a process says that runs `code`; last, which of `others` it imported."""
    code += f"\nimport sys; print([name for name in sys.modules if name.startswith({others})])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=where
    )
    assert done.stdout.splitlines()[-1] == "[]"
    return done


def test_importing_imports_nothing_unasked() -> None:
    _run("import pyhybrid", ("numpy", "pandas", "scipy", "stanli", "arviz"), Path.cwd())
    _run("import pyhybrid.releases.release", ("pyhybrid.reports",), Path.cwd())


@pytest.mark.parametrize(("command", "slow"), [
    ("--help", ("numpy", "pyhybrid.cli.validation")),
    ("synthesize survey.csv --formula nope~x --out out", SLOW),
    pytest.param("utility --help", SLOW, marks=pytest.mark.long),
    pytest.param("validate survey.csv --formula nope~x", SLOW, marks=pytest.mark.long),
])  # fmt: skip
def test_help_and_refusals_wait_for_no_library_that_they_do_not_use(
    command: str, slow: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "survey.csv").write_text("x,y\n1,2\n2,3\n")
    code = (
        f"import runpy, sys; sys.argv = ['pyhybrid', *{command.split()}]\n"
        "try: runpy.run_module('pyhybrid', run_name='__main__')\nexcept SystemExit: pass"
    )
    done = _run(code, slow, tmp_path)
    assert "a column of the data" in done.stderr or "--help" in done.stdout
    assert command != "--help" or "doctor" in done.stdout
