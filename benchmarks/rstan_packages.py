"""(m) Ours beside rstanarm of R, on the same records: effective draws per CPU second.

The survey of `benchmarks.regressions`, default priors on either side (ours: the papers', and the
normal one), 2 chains x (300 + 300) on one core, embedded engine. R's packages are not tested
against: where they are missing their rows are left out.
Results are written to rstan_packages.csv.

    python -m benchmarks.rstan_packages [PROGRAM ...] [MODEL ...]
"""

from __future__ import annotations

import datetime
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.regressions import MODELS, RIGHT, SETTINGS, survey, worst_ess
from pyhybrid.engines.embedded import EmbeddedEngine

HERE = Path(__file__).parent
PROGRAMS = ("pyhybrid-published", "pyhybrid-normal", "rstanarm")


def run(programs: tuple[str, ...] = PROGRAMS, models: tuple[str, ...] = tuple(MODELS)) -> None:
    """A line for each program and model, and the table of them."""
    table = survey()
    print(f"(m) {len(table)} records, {RIGHT}")
    print(f"  {'model':<20}{'program':<20}{'CPU s':>8}{'ESS':>7}{'ESS/s':>8}")
    lines = []
    for model in models:
        for program in programs:
            found = _measured(program, model, table)
            if found is None:
                print(f"  {model:<20}{program:<20}   left out: R or the package is missing")
                continue
            lines.append({"model": model, "program": program, "n": len(table), "K": 9, **found})
            print(f"  {model:<20}{program:<20}{found['cpu_seconds']:>8.2f}{found['ess']:>7.0f}"
                  f"{found['ess'] / found['cpu_seconds']:>8.1f}", flush=True)  # fmt: skip
    _store(pd.DataFrame(lines))


def _measured(program: str, model: str, table: pd.DataFrame) -> dict[str, Any] | None:
    if program == "rstanarm":
        return _in_r(program, model, table)
    make, outcome = MODELS[model]
    bound = make(f"{outcome} ~ {RIGHT}", prior=program.removeprefix("pyhybrid-")).bind(table)
    cpu = time.process_time()
    draws = EmbeddedEngine().sample(
        bound.program, bound.stan_data(np.ones(bound.n)), seed=1, settings=SETTINGS
    )
    cpu = time.process_time() - cpu
    worst = min(worst_ess(draws.variables[n]) for n in bound.model.parameters)
    version = f"pyhybrid {ph.__version__}, stanli {draws.provenance.engine_version}"
    return {"cpu_seconds": round(cpu, 2), "ess": round(worst), "version": version}


def _in_r(program: str, model: str, table: pd.DataFrame) -> dict[str, Any] | None:
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        data, draws = Path(folder, "data.csv"), Path(folder, "draws.csv")
        table.to_csv(data, index=False)
        sizes = [str(v) for v in (SETTINGS.chains, SETTINGS.warmup, SETTINGS.draws)]
        formula = f"{MODELS[model][1]} ~ {RIGHT}"
        command = ["Rscript", str(HERE / "rstan_packages.R"), program, model, formula, str(data)]
        done = subprocess.run([*command, str(draws), *sizes], capture_output=True, text=True)
        if done.returncode:
            return None
        seconds, version = done.stdout.split()[-2:]
        values = pd.read_csv(draws).to_numpy()
    worst = worst_ess(values.reshape(SETTINGS.chains, SETTINGS.draws, -1))
    return {
        "cpu_seconds": float(seconds), "ess": round(worst), "version": f"{program} {version}"
    }  # fmt: skip


def _store(found: pd.DataFrame) -> None:
    """Replace the stored rows of what was run."""
    path, key = HERE / "rstan_packages.csv", ["model", "program", "n", "K"]
    found = found.assign(date=datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    if path.exists():
        found = pd.concat([pd.read_csv(path), found]).drop_duplicates(key, keep="last")
    found.to_csv(path, index=False)


if __name__ == "__main__":
    given = sys.argv[1:]
    run(
        tuple(n for n in given if n in PROGRAMS) or PROGRAMS,
        tuple(n for n in given if n in MODELS) or tuple(MODELS),
    )
