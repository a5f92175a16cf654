"""(t) The sampler's metric and acceptance rate, one by one, over many seeds.

500 records of the survey of `benchmarks.regressions` (K = 9), or n with as many columns of location
50 and scale 10 as K says; 2 chains x (300 + 300), embedded engine, effective draws of the
worst parameter of the likelihood per CPU second. Each line is the geometric mean, over the seeds,
of the ratio to the adapted metric at the acceptance rate 0.9, with its standard error as a factor;
the forms take turns within each seed. `fewest` are the fewest effective draws in any seed, scales
of the papers' prior included. Results are written to benchmarks/results/metrics.csv.

    python -m benchmarks.metrics [MODEL ...] [prior=published] [K=9] [n=1000] [seeds=20]
"""

from __future__ import annotations

import datetime
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.regressions import MODELS, RIGHT, SETTINGS, survey, wide, worst_ess
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.models.families.coefficients import PRIORS

RESULTS = Path(__file__).parent / "results" / "metrics.csv"
FORMS = {
    f"{metric}, {rate}": replace(SETTINGS, metric=metric, adapt_delta=rate)
    for metric, rate in (("adapted", 0.9), ("adapted", 0.8), ("unit", 0.8), ("unit", 0.7))
}
KEY = ["model", "prior", "K", "n", "form"]


def run(
    models: tuple[str, ...] = tuple(MODELS),
    priors: tuple[str, ...] = PRIORS,
    *,
    K: int = 9,
    n: int = 1000,
    seeds: int = 20,
) -> None:
    """A line for each model, prior and form."""
    print(f"(t) effective draws per CPU second against the adapted metric at 0.9, {seeds} seeds")
    head = f"  {'model':<19}{'prior':<11}{'form':<14}{'ESS/s':>8}{'ratio':>14}{'depth':>7}"
    print(f"{head}{'fewest':>8}")
    for name in models:
        table, right = (survey(500), RIGHT) if K == 9 else wide(n, K)
        for prior in priors:
            make, outcome = MODELS[name]
            bound = make(f"{outcome} ~ {right}", prior=prior).bind(table)
            rows = [row for seed in range(1, seeds + 1) for row in _one(bound, seed)]
            _keep(
                {"model": name, "prior": prior, "K": K, "n": bound.n, "seeds": seeds},
                pd.DataFrame(rows),
            )


def _one(bound: Any, seed: int) -> list[dict[str, Any]]:
    """The forms under one seed."""
    rows, data = [], bound.stan_data(np.ones(bound.n))
    for form, settings in FORMS.items():
        cpu = time.process_time()
        draws = EmbeddedEngine().sample(bound.program, data, seed=seed, settings=settings)
        cpu = time.process_time() - cpu
        ess = min(worst_ess(draws.variables[p]) for p in bound.model.parameters)
        fewest = min(worst_ess(draws.variables[p]) for p in bound.model.monitored_parameters)
        rows.append({
            "seed": seed, "form": form, "rate": ess / cpu, "depth": draws.treedepth.mean(),
            "fewest": fewest, "divergent": int(draws.divergent.sum()),
        })  # fmt: skip
    return rows


def _keep(row: dict[str, Any], found: pd.DataFrame) -> None:
    """Print, and replace the stored rows of what was run."""
    rates = np.log(found.pivot(index="seed", columns="form", values="rate"))
    lines = []
    for form in FORMS:
        own = found[found["form"] == form]
        ratio = rates[form] - rates[next(iter(FORMS))]
        error = 0.0 if len(ratio) < 2 else ratio.std() / np.sqrt(len(ratio))
        lines.append({
            **row, "form": form, "rate": round(np.exp(rates[form].mean()), 1),
            "ratio": round(np.exp(ratio.mean()), 3), "error": round(float(np.expm1(error)), 3),
            "depth": round(own["depth"].mean(), 2), "fewest": round(own["fewest"].min()),
            "divergent": int(own["divergent"].sum()), "version": ph.__version__,
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        })  # fmt: skip
        last = lines[-1]
        print(f"  {row['model']:<19}{row['prior']:<11}{form:<14}{last['rate']:>8.0f}"
              f"{last['ratio']:>8.2f} +-{last['error']:>4.0%}{last['depth']:>7.2f}"
              f"{last['fewest']:>8}", flush=True)  # fmt: skip
    stored = pd.DataFrame(lines)
    if RESULTS.exists():
        stored = pd.concat([pd.read_csv(RESULTS), stored]).drop_duplicates(KEY, keep="last")
    stored.to_csv(RESULTS, index=False)


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    stored = pd.read_csv(RESULTS)
    lines = []
    places = ["K", "n", "prior", "model"]
    for (K, n, prior, name), own in stored.groupby(places):
        cells = [f"{row.ratio:.2f} ({row.error:.2f})" for row in own.iloc[1:].itertuples()]
        lines.append(
            f"| {name.replace('_', ' ')} | {n:,}, {K} | {prior} | {own['rate'].iloc[0]:,.0f} | "
            f"{' | '.join(cells)} | {own['seeds'].iloc[0]} |"
        )
    return lines


if __name__ == "__main__":
    given = sys.argv[1:]
    options = dict(word.split("=") for word in given if "=" in word)
    priors = (options.pop("prior"),) if "prior" in options else PRIORS
    chosen = tuple(name for name in given if name in MODELS) or tuple(MODELS)
    run(chosen, priors, **{name: int(value) for name, value in options.items()})
