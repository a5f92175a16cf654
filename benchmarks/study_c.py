"""(d) Study C of [V25] sec. 2, whole, against the papers' workflow in R on the same data.

Data: 0.2 NB(mean 100, phi 5) + 0.8 NB(100, 20), n = 1000. Unweighted, LW, CW and both re-weighted,
m = 20 sets each, 4 chains x (1000 + 1000) iterations.

The papers' workflow: rstan on the records one by one with log_lik in generated quantities, and the
supplement's leave-one-out loop after every fit. Its re-weighting refits once, at k = 0.95; ours
searches k, once also with one refit only, so that both make five fits.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.studies.counts import mixture_counts

ROOT = Path(__file__).resolve().parent.parent
ONE_REFIT = ph.mechanisms.Reweighting(recursive=False, tolerance=1.0)
LOOP_DRAWS = 40  # of the 4000 of a fit; the loop's time is linear in them

R_WORKFLOW = r"""
arguments <- commandArgs(trailingOnly = TRUE)
for (file in list.files("R", full.names = TRUE)) source(file)
data <- jsonlite::fromJSON(arguments[1], simplifyVector = TRUE)
vectors <- c("y", "frequency", "weights", "offsets", "reference", "unit", "prior_scale", "score")
for (name in vectors) data[[name]] <- array(data[[name]])
of_groups <- c("group_term", "apart_root", "center_tau", "spread_tau")  # there are none
for (name in of_groups) data[[name]] <- array(integer(0), 0)
data$X <- matrix(data$X, data$n, data$K)
data$information_root <- matrix(data$information_root, data$K, data$K)
cores <- as.integer(arguments[2])
loop_draws <- as.integer(arguments[3])
seconds <- c(compile = 0, fits = 0, loop = 0)
clock <- function(part, call) {
  started <- proc.time()[["elapsed"]]
  value <- force(call)
  seconds[[part]] <<- seconds[[part]] + proc.time()[["elapsed"]] - started
  value
}
require_rstan()
text <- whole_text("stan/negative_binomial.stan")
if (utils::packageVersion("rstan") < "2.26") text <- for_old_rstan(text)
model <- clock("compile", compile_rstan(text, NULL))
weighted_fit <- function(alpha) {
  data$weights <- array(alpha)
  log_lik <- clock("fits", {
    fit <- rstan::sampling(model, data = data, pars = c("beta", "phi", "log_lik"), chains = 4,
      iter = 2000, warmup = 1000, seed = 1, cores = cores, refresh = 0, open_progress = FALSE,
      control = list(adapt_delta = 0.9))
    as.matrix(fit, pars = "log_lik")
  })
  clock("loop", lipschitz_bounds_loo(log_lik[seq_len(loop_draws), ], alpha))
  lipschitz_bounds(log_lik, alpha)
}
ones <- rep(1, data$n)
unweighted <- weighted_fit(ones)
lw <- weights_from_lipschitz(unweighted$by_record)
lw_bounds <- weighted_fit(lw)
cw <- count_weights(radius_risk(data$y, radius = 0.2))
cw_bounds <- weighted_fit(cw)
lw_final <- weighted_fit(reweight(lw, lw_bounds$by_record, k = 0.95))
cw_final <- weighted_fit(reweight(cw, cw_bounds$by_record, k = 0.95))
found <- list(unweighted, lw_bounds, lw_final, cw_bounds, cw_final)
cat("\nRESULT", seconds, sapply(found, function(b) b$overall), "\n")
"""


def run() -> None:
    """Study C in Python, then the same fits in R where rstan is found, then Python again."""
    print("(d) study C, n = 1000: unweighted, LW, CW, LW_final, CW_final; m = 20 each")
    table = pd.DataFrame({"y": mixture_counts(1000, np.random.default_rng(2024)).astype(int)})
    model = ph.NegativeBinomial("y ~ 1")
    plans = {"default re-weighting": True, "one refit each, as in R": ONE_REFIT}
    before = {name: _timed(model, table, name, plan) for name, plan in plans.items()}
    in_r = _in_r(model, table)
    if in_r is None:
        return
    for name, plan in plans.items():  # a busy machine slows both sides: time ours around R's
        seconds = (before[name] + _timed(model, table, name, plan, quiet=True)) / 2
        print(f"  ratio, {name}: {in_r.fits_and_loops / seconds:,.0f} without R's compilation, "
              f"{(in_r.fits_and_loops + in_r.compilation) / seconds:,.0f} with it")  # fmt: skip


def _timed(model: Any, table: pd.DataFrame, name: str, plan: Any, *, quiet: bool = False) -> float:
    """Seconds of the whole comparison; its results are printed unless `quiet`."""
    started = time.perf_counter()
    found = _compare(model, table, plan)
    seconds = time.perf_counter() - started
    line(f"pyhybrid, {name}: {found.fits_made} fits", seconds)
    if not quiet:
        bounds = found.table.set_index("mechanism")["lipschitz_bound"]
        print("    bounds:", ", ".join(f"{key} {value:.2f}" for key, value in bounds.items()))
        for source, rows in found.estimates.groupby("source", sort=False):
            cells = (f"{r.statistic} [{r.lower:.1f}, {r.upper:.1f}]" for r in rows.itertuples())
            print(f"    {source:<12}{'  '.join(cells)}")
    return seconds


def _compare(model: Any, table: pd.DataFrame, plan: Any) -> Any:
    mechanisms = {
        "unweighted": ph.Unweighted(model),
        "LW": ph.LipschitzWeighted(model),
        "LW_final": ph.LipschitzWeighted(model, reweighting=plan),
        "CW": ph.CountWeighted(model),
        "CW_final": ph.CountWeighted(model, reweighting=plan),
    }
    return ph.compare(mechanisms, table, n_synthetic=20, seed=1, engine="embedded")


@dataclass(frozen=True, kw_only=True)
class InR:
    """Seconds of the workflow in R."""

    fits_and_loops: float
    compilation: float


def _in_r(model: Any, table: pd.DataFrame) -> InR | None:
    """The workflow in R; its loop runs on a part of the draws and is scaled up."""
    if not shutil.which("Rscript"):
        print("  the papers' workflow in R: skipped, Rscript was not found")
        return None
    cores = os.cpu_count() or 1
    bound = model.bind(table)
    data = {name: np.asarray(v).tolist() for name, v in _record_by_record(bound).items()}
    with tempfile.TemporaryDirectory() as folder:
        script, values = Path(folder) / "workflow.R", Path(folder) / "data.json"
        script.write_text(R_WORKFLOW, encoding="utf-8")
        values.write_text(json.dumps(data), encoding="utf-8")
        done = subprocess.run(
            ["Rscript", "--vanilla", script, values, str(cores), str(LOOP_DRAWS)],
            capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
    result = [text for text in done.stdout.splitlines() if text.startswith("RESULT")]
    if done.returncode or not result:
        print(f"  the papers' workflow in R failed: {done.stderr.strip().splitlines()[-1]}")
        return None
    compiling, fits, loop, *bounds = (float(part) for part in result[0].split()[1:])
    loop *= 4000 / LOOP_DRAWS
    line("R: rstan, 5 fits, record by record, compilation excluded", fits)
    line(f"R: loops after 5 fits ({LOOP_DRAWS} of 4000 draws, x {4000 // LOOP_DRAWS})", loop)
    line("R: compilation, once", compiling)
    print("    bounds in R:", ", ".join(f"{value:.2f}" for value in bounds))
    return InR(fits_and_loops=fits + loop, compilation=compiling)


def _record_by_record(bound: Any) -> dict[str, Any]:
    """The program's data with one row per record and log_lik switched on."""
    return bound.stan_data(np.ones(bound.n)) | {
        "n": bound.n,
        "y": bound.design.y.astype(int),
        "X": bound.design.X,
        "offsets": bound.design.offset,
        "frequency": np.ones(bound.n),
        "weights": np.ones(bound.n),
        "reference": np.zeros(bound.n),
        "unit": np.zeros(bound.n, dtype=int),
        "emit_log_lik": 1,
    }
