"""Run programs on the tables, store results.

    python -m benchmarks.peers [CASE ...] [PROGRAM ...] [EPSILON ...]

One row of results.csv for each table, program, epsilon and form. Forms: "all columns" compares the
program's whole synthetic table; "outcome alone" keeps the predictors as they are, as most of ours
do: for a program of whole tables the outcome of each record is that of a random one among its five
nearest synthetic records by predictors, which costs no more epsilon but shows the predictors.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

import pyhybrid as ph
from benchmarks.peers.environments import peer_python, r_library
from benchmarks.peers.stored import store, write_page
from benchmarks.peers.tables import Case, cases
from benchmarks.peers.with_pyhybrid import BY_EPSILON, OURS, WHOLE

HERE = Path(__file__).parent
EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6
LIMIT = 600
"""CPU seconds after which a program is stopped."""
PRIVATE = ("dpmm-mst", "dpmm-aim", "smartnoise-mst", "smartnoise-aim")
WITHOUT = ("sdv-copula", "synthpop-py-cart", "synthpop-cart")
SETS = {
    **dict.fromkeys((*WHOLE, "pyhybrid-marginals", *WITHOUT[1:]), 8), "dpmm-aim": 4
}  # fmt: skip
"""Rows of these are means over so many sets; of the others one set each."""


def run(names: list[str]) -> None:
    """The programs named, or all, on the tables and at the epsilons named, or all."""
    tables = cases()
    epsilons = tuple(float(n) for n in names if n.isdigit()) or EPSILONS
    chosen = [n for n in names if n in tables] or list(tables)
    programs = [n for n in names if n in (*OURS, *PRIVATE, *WITHOUT)]
    for program in programs or (*OURS, *PRIVATE, *WITHOUT):
        for name in chosen:
            by_epsilon = program in (*PRIVATE, *BY_EPSILON)
            for epsilon in epsilons if by_epsilon else (float("nan"),):
                _one(program, tables[name], epsilon)


def _one(program: str, case: Case, epsilon: float) -> None:
    found = []
    for seed in range(1, SETS.get(program, 1) + 1):
        forms = _set(program, case, epsilon, seed)
        if forms is None:
            return
        found.append(forms)
    rows = []
    for form in found[0]:
        told = {"data": case.name, "program": program, "asked": epsilon, "form": form}
        one = pd.DataFrame([each[form] for each in found])
        means = one.mean(numeric_only=True).to_dict()
        rows.append({**told, "sets": len(found), **one.iloc[0].to_dict(), **means})
        print(" ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in rows[-1].values()))
    sys.stdout.flush()
    store(pd.DataFrame(rows))


def _set(program: str, case: Case, epsilon: float, seed: int) -> dict[str, dict[str, Any]] | None:
    """What one run told and what its table is measured at, by form; None if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "made.csv")
        done = _made(program, case, epsilon, folder, out, seed)
        if done is None:
            return None
        made = pd.read_csv(out) if out.exists() else None
    told = {
        "epsilon": epsilon,
        "delta": DELTA if program in PRIVATE else float("nan"),
        "guarantee": "strict, remove" if program in PRIVATE else "none",
    } | done
    whole = program in WHOLE or program not in OURS
    forms = {"all columns" if whole else "outcome alone": made}
    if whole and made is not None:
        forms["outcome alone"] = _outcome_alone(case, made)
    return {
        form: {**told, **({} if table is None else _measured(case, table))}
        for form, table in forms.items()
    }


def _made(
    program: str, case: Case, epsilon: float, folder: str, out: Path, seed: int
) -> dict[str, Any] | None:
    """Run the program in a process of its own; None, with the reason shown, if it fails.

    One that is stopped at the limit leaves no table.
    """
    data, environment = Path(folder, "data.csv"), os.environ.copy()
    case.released.to_csv(data, index=False)
    if program in OURS:
        command = [sys.executable, "-m", "benchmarks.peers.with_pyhybrid", program, case.name]
        command += [str(epsilon), str(seed), str(out)]
    elif program == "synthpop-cart":
        environment["R_LIBS"] = str(r_library())
        command = ["Rscript", str(HERE / "with_synthpop.R"), str(data), str(out), str(seed)]
    else:
        command = [str(peer_python(program)), str(HERE / "with_python.py"), program, str(data)]
        command += [str(epsilon), str(seed), str(out)]
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, preexec_fn=_limited
    )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"cpu_seconds": LIMIT, "version": _version(program)}
    if done.returncode:
        print(f"{program}, {case.name}, {epsilon:g}: failed: {done.stderr.strip()[-300:]}")
        return None
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def _version(program: str) -> str:
    """Of a program that was stopped before it could tell."""
    if program in OURS:
        return ph.__version__
    call = [str(peer_python(program)), str(HERE / "with_python.py"), program]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def _outcome_alone(case: Case, made: pd.DataFrame) -> pd.DataFrame:
    """The released records with outcomes of synthetic ones that are like them."""
    rng, keys = np.random.default_rng(1), list(case.predictors)
    scale = case.released[keys].std().to_numpy() + 1e-9
    near = NearestNeighbors(n_neighbors=5).fit(made[keys].to_numpy() / scale)
    places = near.kneighbors(case.released[keys].to_numpy() / scale, return_distance=False)
    chosen = places[np.arange(len(places)), rng.integers(5, size=len(places))]
    outcome = made[case.outcome].to_numpy()[chosen]
    return case.released.assign(**{case.outcome: outcome})


def _measured(case: Case, made: pd.DataFrame) -> dict[str, float]:
    real, y = case.released, case.outcome
    fit = ph.measures.model_utility(real, made, case.formula, rule="single")
    risk = ph.measures.attribute_risk(
        real, made, sensitive=y, keys=list(case.predictors), holdout=case.held_out
    )
    return {
        "overlap": fit.mean_overlap,
        "mean_error": abs(made[y].mean() / real[y].mean() - 1),
        "two_way": float(ph.measures.table_utility(real, made).two_way["total_variation"].mean()),
        "pmse_ratio": ph.measures.propensity_utility(real, made, interactions=True).ratio,
        "attribute_excess": float("nan") if risk.excess is None else risk.excess,
    }


if __name__ == "__main__":
    run(sys.argv[1:])
    write_page()
