"""(v) Within-chain threads: one gradient by CmdStan's reduce_sum, against one pass.

The likelihood of `stan/poisson.stan` alone, n = 100,000 records and K = 20 columns, and that of
`stan/negative_binomial.stan` as CmdStan's users write it, a vectorized density. One chain without
adaptation, a tiny step and trees of 31 gradients, so that every program makes the same number of
them. Milliseconds of a gradient, wall and CPU, best of three runs; "two chains" runs two of one
pass at the same time, a core each, and its wall time is that of a gradient of either. Results are
written to benchmarks/results/reduce_sum.csv. Needs CmdStan.

    python -m benchmarks reduce_sum
"""

from __future__ import annotations

import datetime
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.engines import engine_by_name

RESULTS = Path(__file__).parent / "results" / "reduce_sum.csv"
N, K = 100_000, 20
_ITERATIONS, _DEPTH = 40, 5
_GRADIENTS = _ITERATIONS * (2**_DEPTH - 1)
_HEAD = """
data { int n; int K; array[n] int y; matrix[n, K] X; int grain; }
transformed data {
  vector[n] count = to_vector(y);
  row_vector[K] count_X = count' * X;
}
parameters { vector[K] beta; }
model { %s }
"""
_PARTIAL = """
functions {
  real part(array[] int own, int first, int last, matrix X, vector beta) { return %s; }
}
"""
_NB = "neg_binomial_2_log_lpmf(%s | %s * beta, 1.2)"
PROGRAMS = {
    ("poisson", "one pass"): _HEAD % "target += count_X * beta - sum(exp(X * beta));",
    ("poisson", "reduce_sum"): _PARTIAL % "-sum(exp(X[first:last] * beta))"
    + _HEAD % "target += count_X * beta + reduce_sum(part, y, grain, X, beta);",
    ("negative binomial", "one pass"): _HEAD % f"target += {_NB % ('y', 'X')};",
    ("negative binomial", "reduce_sum"): _PARTIAL % (_NB % ("own", "X[first:last]"))
    + _HEAD % "target += reduce_sum(part, y, grain, X, beta);",
}


def run() -> None:
    """A line for each program and number of threads."""
    print(f"(v) reduce_sum, {N:,} records, {K} columns, one gradient in milliseconds")
    missing = engine_by_name("cmdstan").status().cause
    if missing:
        print(f"  left out: {missing}")
        return
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, K))
    data = {"n": N, "K": K, "y": rng.poisson(1.0, N), "X": X, "grain": N // 2}
    rows = []
    for (model, form), text in PROGRAMS.items():
        program = _compiled(f"{model}_{form}.stan".replace(" ", "_"), text)
        kinds = [(1, 1), (1, 2)] if form == "reduce_sum" else [(1, 1), (2, 1)]
        for chains, threads in kinds:
            wall, cpu = min(_timed(program, data, chains, threads) for _ in range(3))
            rows.append({
                "model": model, "program": form, "chains": chains, "threads": threads,
                "wall_ms": round(wall, 2), "cpu_ms": round(cpu, 2),
                "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            })  # fmt: skip
            print("  " + ", ".join(f"{k} {v}" for k, v in rows[-1].items()), flush=True)
    pd.DataFrame(rows).to_csv(RESULTS, index=False)


def _compiled(name: str, text: str) -> Any:
    """The program, compiled where the next run finds it."""
    from cmdstanpy import CmdStanModel

    path = Path(tempfile.gettempdir(), "pyhybrid-reduce-sum", name)
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return CmdStanModel(stan_file=path, cpp_options={"STAN_THREADS": True})


def _timed(program: Any, data: dict[str, Any], chains: int, threads: int) -> tuple[float, float]:
    """Wall and CPU milliseconds of a gradient; data are read and checked before the first."""
    found = []
    for iterations in (1, 1 + _ITERATIONS):
        before, started = _cpu(), time.perf_counter()
        program.sample(
            data, chains=chains, parallel_chains=chains, threads_per_chain=threads, seed=1,
            iter_warmup=0, iter_sampling=iterations, adapt_engaged=False, step_size=1e-6,
            max_treedepth=_DEPTH, inits=0, show_progress=False,
        )  # fmt: skip
        found.append((time.perf_counter() - started, _cpu() - before))
    (short_wall, short_cpu), (wall, cpu) = found
    return 1e3 * (wall - short_wall) / _GRADIENTS, 1e3 * (cpu - short_cpu) / _GRADIENTS / chains


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    return [
        f"| {row.model} | {row.program} | {row.chains} | {row.threads} | {row.wall_ms:.1f} | "
        f"{row.cpu_ms:.1f} |"
        for row in pd.read_csv(RESULTS).itertuples()
    ]


if __name__ == "__main__":
    run()
