"""`python -m benchmarks cases FOLDER`: tables of the shape of public reports, by the command line.

FOLDER, or the environment variable PYHYBRID_CASES, has a folder for each case: input files, the
commands (`cmd.sh`) and what is expected (`expected.txt`). Commands run in a copy; drafts of types
are confirmed as they stand. A line for each case: ``right`` or ``WRONG`` where what comes out is
checked here, else the last thing that is said, for people to judge.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

_SECONDS = 300
_LATER = (
    "--overwrite",
    "elapsed",
    "nothing was released yet",
    "must be in a readable file",
)  # follow what was said before
_CONFIRMED = """#!/bin/sh
for draft in *.types.json; do
  [ -f "$draft" ] && sed -i -e 's/"confirmed": false/"confirmed": true/' \\
    -e "s/\\"after\\": \\[\\]/\\"after\\": $AFTER/" "$draft"
done
exec {python} -m pyhybrid "$@"
"""


def _cells(folder: Path, out: str = "out") -> pd.DataFrame:
    return pd.read_csv(folder / out / "public/synthetic_1.csv", dtype=str, keep_default_na=False)


def _numbers(folder: Path, name: str) -> pd.Series:
    return pd.to_numeric(_cells(folder)[name], errors="coerce").dropna()


def _only_levels_of_the_data(*names: str) -> Callable[[Path], bool]:
    def right(folder: Path) -> bool:
        data = pd.read_csv(folder / "input.csv", dtype=str, keep_default_na=False)
        made = _cells(folder)
        return all({*made[name]} <= {*data[name]} for name in names)

    return right


def _codes_alone(folder: Path) -> bool:
    income = _numbers(folder, "income")
    return {*income[income < 0]} <= {-7, -8, -9} and bool((income < 0).any())


def _codes_above(folder: Path) -> bool:
    numbers = (pd.to_numeric(column, errors="coerce") for _, column in _cells(folder).items())
    return all({*values[values > 90]} <= {97, 98, 99} for values in numbers if values.max() < 120)


def _codes_of_the_file(folder: Path) -> bool:
    data = pd.read_csv(folder / "codes.csv", dtype=str)
    return {*_cells(folder)["code"]} <= {*data["code"]}


def _whole_or_empty(folder: Path) -> bool:
    cells = _cells(folder).to_numpy().ravel()
    return all("." not in cell for cell in cells)


def _dates(form: str, *names: str) -> Callable[[Path], bool]:
    def right(folder: Path) -> bool:
        made = _cells(folder)
        read = [pd.to_datetime(made[name], format=form, errors="coerce") for name in names]
        return all(days.notna().all() and days.nunique() > 60 for days in read)

    return right


def _in_order(folder: Path) -> bool:
    return bool((_numbers(folder, "age_first_job") <= _numbers(folder, "age_now")).all())


def _skipped(folder: Path) -> bool:
    made = _cells(folder)
    return bool((made["industry"].eq("") == made["employed"].isin(["2", "3"])).all())


def _declared_codes(folder: Path) -> bool:
    hours = _numbers(folder, "hours")
    return {*hours[hours < 0]} == {-9, -8}


AFTER = {
    "12": '["age_first_job <= age_now"]',
    "14": '["industry exactly if employed == 2 or employed == 3"]',
}
"""By the number of a case: relations that are declared in its draft of types."""
CHECKS: dict[str, Callable[[Path], bool]] = {
    "01": _only_levels_of_the_data("zip", "fips"),
    "02": _dates("%Y%m%d", "interview"),
    "04": _dates("%Y-%m-%d", "birth"),
    "06": _whole_or_empty,
    "09": _codes_alone,
    "10": _codes_above,
    "12": _in_order,
    "14": _skipped,
    "21": _only_levels_of_the_data("smoker", "insured", "t"),
    "23": _codes_of_the_file,
    "57": _only_levels_of_the_data("race"),
    "63": _declared_codes,
}
"""By the number of a case: whether what was released is right."""


def run(folder: str | None = None) -> None:
    """Print a line for each case."""
    given = folder or os.environ.get("PYHYBRID_CASES")
    if given is None:
        print("cases: give a folder of cases, or set PYHYBRID_CASES")
        return
    for case in sorted(path for path in Path(given).iterdir() if (path / "cmd.sh").exists()):
        print(f"{case.name}: {_line(case)}", flush=True)


def _decided(shown: str) -> list[str]:
    """What the last column of `pyhybrid describe` says of columns."""
    rows = [line.split("│") for line in shown.splitlines() if line.count("│") > 5]
    return [f"{row[1].strip()}: {row[-2].strip()}" for row in rows if row[-2].strip()]


def _line(case: Path) -> str:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "case"
        shutil.copytree(case, folder)
        own = Path(temporary) / "pyhybrid"
        own.write_text(_CONFIRMED.replace("{python}", shlex.quote(sys.executable)))
        own.chmod(0o755)
        path = {"PATH": f"{temporary}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "400"}
        path["AFTER"] = AFTER.get(case.name[:2], "[]")
        try:
            done = subprocess.run(
                ["bash", "cmd.sh"], cwd=folder, env={**os.environ, **path}, text=True,
                capture_output=True, timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"WRONG: it takes more than {_SECONDS} seconds"
        if "Traceback" in done.stderr:
            return f"WRONG: {done.stderr.strip().splitlines()[-1]}"
        check = CHECKS.get(case.name[:2])
        if check is not None and (folder / "out").exists():
            return "right" if check(folder) else "WRONG: values that cannot occur come out"
        said = done.stderr.strip().splitlines() or _decided(done.stdout) or ["described"]
        useful = [line for line in said if not any(words in line for words in _LATER)] or said
        return ("released; " if (folder / "out").exists() else "") + useful[-1]
