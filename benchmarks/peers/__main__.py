"""`python -m benchmarks.peers [CASE ...] [PROGRAM ...]`: run programs on the tables, store results.

One row of results.csv for each table, program, epsilon and form. Forms: "all columns" compares the
program's whole synthetic table; "outcome alone" keeps the predictors as they are, as ours do: for
a peer the outcome of each record is that of a random one among its five nearest synthetic records
by predictors, which costs no more epsilon of theirs but shows the predictors.
"""

from __future__ import annotations

import datetime
import json
import os
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
from benchmarks.peers.tables import Case, cases
from benchmarks.peers.with_pyhybrid import BY_EPSILON, OURS

HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6
PRIVATE = ("dpmm-mst", "dpmm-aim", "smartnoise-mst", "smartnoise-aim")
WITHOUT = ("sdv-copula", "synthpop-cart")
_NOTES = """# Peers beside pyhybrid

Written by `python -m benchmarks.peers`; versions and dates are in the rows. One set each, seed 1.
CPU seconds with imports, without installation, and of a machine at work: compare within one
date only.

- overlap: of 95 % intervals of a linear regression on all predictors, 1 is best. mean_error:
  relative, of the outcome. two_way: mean total variation of all two-way tables. pmse_ratio: 1 is
  the null. attribute_excess: what being in the data adds to the share of an intruder's matches
  that have the target's outcome; 0 is best.
- **Not like for like.** The peers with an epsilon protect all columns, ours the outcome alone:
  predictors are published as they are, which makes two-way tables and pMSE better than a release
  that protects them can be. "outcome alone" gives a peer the same predictors; its outcomes are
  still those of a model that spent epsilon on all columns.
- Guarantees differ: theirs hold for every database at (epsilon, 1e-6). `pyhybrid-censored` is
  pure and strict, and its reference (2,000 or 1,000 records of the same survey) is not covered;
  `pyhybrid-marginals` is, too, and has no reference.
  The local charges of the others hold for these data.
- SDV's copula and synthpop have no guarantee.
- SmartNoise's MST (1.0.8 with mbi 1.1.0) keeps single columns and loses pairs at any epsilon,
  where dpmm's MST does not: a fault of that combination, or of how it is called here, rather than
  of the method. Its rows are not to be quoted before that is found.
- Rows that are missing have not been run yet.
"""
_KEY = ["data", "program", "asked", "form"]


def run(names: list[str]) -> None:
    """The programs named, or all, on the tables named, or all."""
    tables = cases()
    chosen = [n for n in names if n in tables] or list(tables)
    programs = [n for n in names if n in (*OURS, *PRIVATE, *WITHOUT)]
    for program in programs or (*OURS, *PRIVATE, *WITHOUT):
        for name in chosen:
            by_epsilon = program in (*PRIVATE, *BY_EPSILON)
            for epsilon in EPSILONS if by_epsilon else (float("nan"),):
                _one(program, tables[name], epsilon)


def _one(program: str, case: Case, epsilon: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "made.csv")
        done = _made(program, case, epsilon, folder, out)
        if done is None:
            return
        made = pd.read_csv(out)
    told = {
        "epsilon": epsilon,
        "delta": DELTA if program in PRIVATE else float("nan"),
        "guarantee": "strict, remove" if program in PRIVATE else "none",
    } | done
    forms = {"outcome alone": made if program in OURS else _outcome_alone(case, made)}
    if program not in OURS:
        forms["all columns"] = made
    rows = []
    for form, table in forms.items():
        found = {"data": case.name, "program": program, "asked": epsilon, "form": form}
        rows.append({**found, **told, **_measured(case, table)})
        print(" ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in rows[-1].values()))
    sys.stdout.flush()
    _store(pd.DataFrame(rows))


def _made(
    program: str, case: Case, epsilon: float, folder: str, out: Path
) -> dict[str, Any] | None:
    """Run the program in a process of its own; None, with the reason shown, if it fails."""
    data, environment = Path(folder, "data.csv"), os.environ.copy()
    case.released.to_csv(data, index=False)
    if program in OURS:
        command = [sys.executable, "-m", "benchmarks.peers.with_pyhybrid", program, case.name]
        command += [str(epsilon), "1", str(out)]
    elif program == "synthpop-cart":
        environment["R_LIBS"] = str(r_library())
        command = ["Rscript", str(HERE / "with_synthpop.R"), str(data), str(out), "1"]
    else:
        command = [str(peer_python(program)), str(HERE / "with_python.py"), program, str(data)]
        command += [str(epsilon), "1", str(out)]
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{program}, {case.name}, {epsilon:g}: failed: {done.stderr.strip()[-300:]}")
        return None
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


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
    fit = ph.model_utility(real, made, case.formula, rule="single")
    risk = ph.attribute_risk(
        real, made, sensitive=y, keys=list(case.predictors), holdout=case.held_out
    )
    return {
        "overlap": fit.mean_overlap,
        "mean_error": abs(made[y].mean() / real[y].mean() - 1),
        "two_way": float(ph.table_utility(real, made).two_way["total_variation"].mean()),
        "pmse_ratio": ph.propensity_utility(real, made, interactions=True).ratio,
        "attribute_excess": float("nan") if risk.excess is None else risk.excess,
    }


def _store(rows: pd.DataFrame) -> None:
    """Replace the stored rows of what was run."""
    rows = rows.assign(date=datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    if RESULTS.exists():
        rows = pd.concat([pd.read_csv(RESULTS), rows]).drop_duplicates(_KEY, keep="last")
    rows.sort_values(_KEY).to_csv(RESULTS, index=False, float_format="%.4g")


def write_page() -> None:
    """results.md: the stored rows as a table, with what is not like for like."""
    rows = pd.read_csv(RESULTS).drop(columns=["asked"]).astype(object)
    cells = rows.where(rows.notna(), "").astype(str)
    lines = [list(cells.columns), ["---"] * cells.shape[1], *cells.to_numpy().tolist()]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (HERE / "results.md").write_text(f"{_NOTES}\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    run(sys.argv[1:])
    write_page()
