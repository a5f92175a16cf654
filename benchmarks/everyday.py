"""(q) What people wait for: releases, commands and the import, CPU seconds of a process each.

The tasks are those whose times were complained of; what each took before stands beside it on the
page of benchmarks. Every task runs in a process of its own, imports and compilation by the embedded
engine included. Results are written to benchmarks/results/everyday.csv, line by line.

    python -m benchmarks.everyday [TASK ...]
"""

from __future__ import annotations

import datetime
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from statsmodels.datasets import randhie

import pyhybrid as ph

RESULTS = Path(__file__).parent / "results" / "everyday.csv"
_SURVEY = """
import pyhybrid as ph
from benchmarks.regressions import RIGHT, survey
"""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is run, and what it took before.

    Attributes
    ----------
    what : str
        For the page.
    before : str
        As it was reported, on two idle cores.
    code, command : str
        Python code, or arguments of ``pyhybrid``.
    """

    what: str
    before: str
    code: str = ""
    command: str = ""


TASKS = {
    "release": Task(
        what="default release of a negative binomial, 4,406 records, 9 columns",
        before="about 15 min",
        code=_SURVEY
        + """
model = ph.NegativeBinomial(f"visits ~ {RIGHT}")
ph.BudgetWeighted(model).release(survey(), seed=1, engine="embedded")
""",
    ),
    "sequence": Task(
        what="three sequential columns of the same records: counts, a score, a share",
        before="no end in 13 min",
        code=_SURVEY
        + """
models = (
    ph.NegativeBinomial(f"visits ~ {RIGHT}"),
    ph.NormalRegression(f"score ~ visits + {RIGHT}", decimals=2),
    ph.BetaRegression(f"share ~ visits + score + {RIGHT}", decimals=3),
)
steps = [ph.LipschitzWeighted(model) for model in models]
ph.SequentialSynthesis(steps).release(survey(), n_synthetic=3, seed=1, engine="embedded")
""",
    ),
    "mixture": Task(
        what="fit of a mixture of 3 regressions, 4,469 incomes, 27 columns",
        before="24 min",
        code="""
import numpy as np
from dataclasses import replace
from benchmarks.mixture import MODEL, incomes
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session
bound = replace(MODEL, n_components=3).bind(incomes())
session = open_session(bound, seed=1, engine="embedded",
                       settings=SamplerSettings(chains=2, warmup=300, draws=300))
session.unweighted()
""",
    ),
    "beta": Task(
        what="release by Lipschitz weights, beta regression, 700 records, 9 columns",
        before="92 s",
        code=_SURVEY
        + """
model = ph.BetaRegression(f"share ~ {RIGHT}", decimals=3)
ph.LipschitzWeighted(model).release(survey(700), n_synthetic=3, seed=1, engine="embedded")
""",
    ),
    "masking": Task(
        what="masking, 700 records, six keys of mixed type, five sets",
        before="61 to 139 s",
        code="""
import pyhybrid as ph
from benchmarks.masking import mixed_keys
data, keys = mixed_keys(700), ["age", "weight", "sex", "education", "region", "status"]
masks = ph.masking.masks_by_type(data, keys)
ph.masking.MaskedImputation(keys=keys, masks=masks, n_synthetic=5).release(data, seed=1)
""",
    ),
    "audit": Task(what="`pyhybrid audit`", before="3 min", command="audit"),
    "validate": Task(
        what="`pyhybrid validate --quick`", before="36 s", command="validate --quick --out {out}"
    ),
    "utility": Task(
        what="`pyhybrid utility` of 20,190 records, ten columns, one model",
        before="56 s",
        command="utility {data} {data} --formula 'mdvis ~ lncoins + disea' --html {out}.html",
    ),
    "import": Task(what="`import pyhybrid`", before="0.03 s", code="import pyhybrid"),
    "help": Task(what="`pyhybrid --help`", before="1.3 s", command="--help"),
}


def run(names: tuple[str, ...] = tuple(TASKS)) -> None:
    """Each task once; a line for each."""
    print("(q) what people wait for: CPU seconds and MB of a process")
    for name in names:
        _keep(name, *_measured(TASKS[name]))


def _measured(task: Task) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak MB of a process and its children."""
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder, "data.csv"), Path(folder, "out")
        if "{data}" in task.command:
            randhie.load_pandas().data.to_csv(data, index=False)
        arguments = [word.format(data=data, out=out) for word in shlex.split(task.command)]
        command = [sys.executable, *(["-c", task.code] if task.code else ["-m", "pyhybrid"])]
        before, started = _children(), time.perf_counter()
        done = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert done.stderr is not None
        said = done.stderr.read()
        _, done.returncode, used = os.wait4(done.pid, 0)  # peak memory of this child alone
        if done.returncode:
            raise SystemExit(said.decode()[-500:])
        wall = time.perf_counter() - started
    return _children() - before, wall, used.ru_maxrss / 1024


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _keep(name: str, seconds: float, wall: float, megabytes: float) -> None:
    """Print, and replace the stored row of what was run."""
    print(f"  {name:<10}{seconds:>9.2f} CPU s{wall:>9.1f} s{megabytes:>8,.0f} MB", flush=True)
    found = pd.DataFrame([{
        "task": name, "cpu_seconds": float(f"{seconds:.3g}"), "megabytes": round(megabytes),
        "version": ph.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }])  # fmt: skip
    if RESULTS.exists():
        found = pd.concat([pd.read_csv(RESULTS), found]).drop_duplicates("task", keep="last")
    found.to_csv(RESULTS, index=False)


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    stored = pd.read_csv(RESULTS).set_index("task")
    return [
        f"| {task.what} | {task.before or '–'} | {stored.cpu_seconds[name]:.3g} | `{name}` |"
        for name, task in TASKS.items()
        if name in stored.index
    ]


if __name__ == "__main__":
    wrong = [name for name in sys.argv[1:] if name not in TASKS]
    if wrong:
        sys.exit(f"tasks are {', '.join(TASKS)}: found {wrong[0]}")
    run(tuple(sys.argv[1:]) or tuple(TASKS))
