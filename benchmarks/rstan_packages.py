"""(m) Ours beside rstanarm and brms of R, on the same records: effective draws per CPU second.

The survey of `benchmarks.regressions`, of any number of records, with further normal columns where
more are asked for; 2 chains x (300 + 300) on one core, embedded engine. Ours under the papers'
prior and under `prior="normal"`; rstanarm under its default prior and under nearly that of
ours, brms under ours. R's programs are compiled before the clock starts. Effective draws are
those of the worst parameter of the likelihood, bulk or tail, and the figure stored is the mean over
the seeds. R's packages are not tested against: where they are missing their rows are left out.
A program of R that has not ended after `limit` CPU seconds is stopped, and its line has no draws.
Results are written to results/rstan_packages.csv, line by line.

    python -m benchmarks.rstan_packages [PROGRAM ...] [MODEL ...] [n=20190] [K=10] [seeds=3]
                                        [draws=300] [limit=600]
"""

from __future__ import annotations

import datetime
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.measure import at_least, two_digits
from benchmarks.regressions import MODELS, SETTINGS, columns, own_settings, worst_ess
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine

HERE = Path(__file__).parent
PROGRAMS = (
    "pyhybrid-published", "pyhybrid-normal", "rstanarm-default", "rstanarm-normal", "brms-normal",
)  # fmt: skip
KEY = ["model", "program", "n", "K"]
_FEWEST = 10  # effective draws below which chains are not said to have found the posterior


def run(
    programs: tuple[str, ...] = PROGRAMS,
    models: tuple[str, ...] = tuple(MODELS),
    *,
    n: int = 4406,
    K: int = 9,
    seeds: int = 3,
    draws: int = 300,
    limit: int = 600,
) -> None:
    """A line for each program and model, and the table of them."""
    table, right = columns(n, K)
    settings = replace(SETTINGS, warmup=draws, draws=draws)
    print(f"(m) {n} records, K = {K}, {right}")
    print(f"  {'model':<20}{'program':<20}{'CPU s':>8}{'ESS':>7}{'ESS/s':>8}")
    for model in models:
        for program in programs:
            formula = f"{MODELS[model][1]} ~ {right}"
            if program.startswith("pyhybrid"):
                found = _ours(program, model, formula, table, seeds, settings)
            else:
                found = _in_r(program, model, formula, table, seeds, settings, limit)
            if found is None:
                print(f"  {model:<20}{program:<20}   left out: R or the package cannot")
                continue
            seconds, ess, version = found
            print(f"  {model:<20}{program:<20}{seconds:>8.2f}{ess:>7.0f}{ess / seconds:>8.1f}",
                  flush=True)  # fmt: skip
            _store({
                "model": model, "program": program, "n": n, "K": K, "draws": draws, "seeds": seeds,
                "cpu_seconds": round(seconds, 3), "ess": round(ess, 1), "version": version,
            })  # fmt: skip


def _ours(
    program: str, model: str, formula: str, table: pd.DataFrame, seeds: int, asked: SamplerSettings
) -> tuple[float, float, str]:
    """CPU seconds and effective draws of a fit, means over the seeds, and the version."""
    bound = MODELS[model][0](formula, prior=program.removeprefix("pyhybrid-")).bind(table)
    settings = own_settings(bound, asked)
    found = []
    for seed in range(1, seeds + 1):
        cpu = time.process_time()
        draws = EmbeddedEngine().sample(
            bound.program, bound.stan_data(np.ones(bound.n)), seed=seed, settings=settings
        )
        cpu = time.process_time() - cpu
        found.append((cpu, min(worst_ess(draws.variables[n]) for n in bound.model.parameters)))
    seconds, ess = np.mean(found, axis=0)
    version = f"pyhybrid {ph.__version__}, stanli {draws.provenance.engine_version}"
    return float(seconds), float(ess), version


def _in_r(
    program: str,
    model: str,
    formula: str,
    table: pd.DataFrame,
    seeds: int,
    asked: SamplerSettings,
    limit: int,
) -> tuple[float, float, str] | None:
    """The same in R; None if it cannot, no effective draws if it was stopped."""
    if shutil.which("Rscript") is None:
        return None
    package, prior = program.split("-")
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder, "data.csv"), Path(folder, "draws")
        table.to_csv(data, index=False)
        sizes = [str(v) for v in (asked.chains, asked.warmup, asked.draws, seeds)]
        command = ["Rscript", str(HERE / "rstan_packages.R"), package, prior, model, formula]
        command += [str(data), str(out), *sizes]
        done = subprocess.run(
            command, capture_output=True, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )  # fmt: skip
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return float(limit), 0.0, package
        if done.returncode:
            print(done.stderr.strip()[-300:])
            return None
        *seconds, version = done.stdout.split()[-seeds - 1 :]
        shape = (asked.chains, asked.draws, -1)
        ess = [
            worst_ess(pd.read_csv(f"{out}{seed}.csv").to_numpy().reshape(shape))
            for seed in range(1, seeds + 1)
        ]
    return float(np.mean([float(v) for v in seconds])), float(np.mean(ess)), f"{package} {version}"


def _store(line: dict[str, Any]) -> None:
    """Replace the stored row of what was run."""
    path = HERE / "results" / "rstan_packages.csv"
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    found = pd.DataFrame([{**line, "date": today}])
    if path.exists():
        found = pd.concat([pd.read_csv(path), found]).drop_duplicates(KEY, keep="last")
    found.to_csv(path, index=False)


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    stored = pd.read_csv(HERE / "results" / "rstan_packages.csv")
    lines = []
    for n, K in sorted(set(zip(stored["n"], stored["K"], strict=True))):
        for model in MODELS:
            own = stored.query("n == @n and K == @K and model == @model").set_index("program")
            rates = {p: _rate(own.loc[p]) if p in own.index else None for p in PROGRAMS}
            if not any(rates.values()):
                continue
            ratio = _ratio(own, rates)
            shown = [_shown(own, p, rates[p]) for p in PROGRAMS]
            cells = [f"{n:,}, {K}", model.replace("_", " "), *shown[:2], shown[3], shown[4], ratio]
            lines.append("| " + " | ".join([*cells, shown[2]]) + " |")
    return lines


def _ratio(own: pd.DataFrame, rates: dict[str, float | None]) -> str:
    """Ours to the fastest under nearly the same prior; where none has found the posterior, at least
    what the effective draws come to that their chains seem to have."""
    same = ("rstanarm-normal", "brms-normal")
    mine, others = rates["pyhybrid-normal"], [rate for p in same if (rate := rates[p])]
    if not mine:
        return "–"
    if others:
        return two_digits(mine / max(others))
    seeming = [own.loc[p, "ess"] / own.loc[p, "cpu_seconds"] for p in same if p in own.index]
    return at_least(mine / max(seeming)) if any(seeming) else "–"


def _rate(row: Any) -> float | None:
    """Effective draws per second; None where there are too few to tell."""
    return float(row["ess"] / row["cpu_seconds"]) if row["ess"] >= _FEWEST else None


def _shown(own: pd.DataFrame, program: str, rate: float | None) -> str:
    if program not in own.index:
        return "–"
    if rate is None:
        row = own.loc[program]
        return f"{row['ess']:.0f} draws in {row['cpu_seconds']:.0f} s"
    return two_digits(rate)


if __name__ == "__main__":
    given = sys.argv[1:]
    numbers = {k: int(v) for k, v in (word.split("=") for word in given if "=" in word)}
    run(
        tuple(n for n in given if n in PROGRAMS) or PROGRAMS,
        tuple(n for n in given if n in MODELS) or tuple(MODELS),
        **numbers,
    )
