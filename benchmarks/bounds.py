"""(a) Bounds and weights from a log_lik matrix, against the supplement's leave-one-out loop."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np

import pyhybrid as ph
from benchmarks.measure import best_of, line

ROOT = Path(__file__).resolve().parent.parent


def leave_one_out_loop(log_lik: np.ndarray) -> np.ndarray:
    """[V25] supplement, literally: |sum_j f_sj - sum_{j != i} f_sj|, largest over s."""
    everything = log_lik.sum(axis=1)
    bounds = np.empty(log_lik.shape[1])
    for i in range(log_lik.shape[1]):
        bounds[i] = np.abs(everything - np.delete(log_lik, i, axis=1).sum(axis=1)).max()
    return bounds


def run() -> None:
    """S = 4000 draws, n = 1000 records."""
    print("(a) Lipschitz bounds and weights, S = 4000, n = 1000")
    log_lik = np.random.default_rng(1).normal(-5, 2, size=(4000, 1000))
    plain = best_of(lambda: np.abs(log_lik).max(axis=0), 9)
    ours = best_of(lambda: ph.lipschitz_bounds(log_lik), 9)
    weights = best_of(lambda: ph.lipschitz_weights(log_lik), 9)
    loop = best_of(lambda: leave_one_out_loop(log_lik), 1)
    difference = np.abs(
        leave_one_out_loop(log_lik[:50]) - ph.lipschitz_bounds(log_lik[:50]).by_record
    )
    line("np.abs(x).max(axis=0)", plain)
    line("lipschitz_bounds", ours, f"{ours / plain:.2f} x the plain pass")
    line("lipschitz_weights", weights, f"{weights / plain:.2f} x the plain pass")
    line("leave-one-out loop, numpy", loop, f"ratio {loop / ours:,.0f}")
    print(f"  largest difference between loop and lipschitz_bounds: {difference.max():.1e}")
    if shutil.which("Rscript"):
        _in_r(ours)
    else:
        print("  leave-one-out loop in R: skipped, Rscript was not found")


def _in_r(ours: float) -> None:
    """R's loop on 100 of the 4000 draws, scaled: it is linear in S (43 s for all of them)."""
    code = """
    for (file in list.files("R", full.names = TRUE)) source(file)
    set.seed(1)
    x <- matrix(rnorm(4000 * 1000, -5, 2), 4000, 1000)
    loop <- system.time(lipschitz_bounds_loo(x[1:100, ]))[["elapsed"]] * 40
    ours <- min(replicate(5, system.time(lipschitz_bounds(x))[["elapsed"]]))
    cat(loop, ours)
    """
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", code], capture_output=True, text=True, cwd=ROOT
    )
    if done.returncode:
        print(f"  leave-one-out loop in R failed: {done.stderr.strip().splitlines()[-1]}")
        return
    loop, in_r = (float(part) for part in done.stdout.split()[-2:])
    line("lipschitz_bounds in R", in_r)
    line("leave-one-out loop, R (100 draws measured, x 40)", loop, f"ratio {loop / ours:,.0f}")
