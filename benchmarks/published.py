"""(p) The papers' program run by CmdStan, beside ours: effective draws per CPU second.

Four tables: the survey of `benchmarks.regressions` (4,406 records, K = 9), the same with 20,190
records and K = 10 ("larger") or with 100,000 and K = 20 ("largest": hours, ask for few iterations)
and, for counts, the RAND visits (20,190 records, K = 10). The papers' prior on every side, so that
the posterior is the same; `apart` holds the means against ours, in posterior standard deviations. 2
chains with 150 warm-up and 150 kept iterations, or as many as a number among the arguments says.

pyhybrid    the built-in model, embedded engine, metric and adapt_delta as by default;
            "pyhybrid-cmdstan": the same by CmdStan
published   CmdStan, its own adapt_delta of 0.8: a weighted term for each record in a loop, with the
            linear predictor and log_lik as output, as in [V25] supplement 2
vectorized  the same in one vectorized statement without weights and log_lik: the most that one who
            writes the program anew gets from CmdStan without another parametrization

CmdStan's seconds are those of its chains alone, without compiling and without reading its output.
Results are written to benchmarks/results/published.csv.

    python -m benchmarks.published [PROGRAM ...] [MODEL ...] [TABLE ...] [ITERATIONS]
"""

from __future__ import annotations

import datetime
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import pyhybrid as ph
from benchmarks.measure import at_least, two_digits
from benchmarks.regressions import (
    MODELS,
    RIGHT,
    columns,
    looped,
    own_settings,
    plain,
    plain_data,
    sampled_by,
    survey,
    worst_ess,
)
from pyhybrid.engines import Draws, SamplerSettings, engine_by_name

RESULTS = Path(__file__).parent / "results" / "published.csv"
OURS = {"pyhybrid": "embedded", "pyhybrid-cmdstan": "cmdstan"}
PROGRAMS = (*OURS, "published", "vectorized")
SIZES = {"larger": (20_190, 10), "largest": (100_000, 20)}
TABLES = ("survey", *SIZES, "visits")
KEY = ["table", "model", "program"]
PROGRAM_OF = {"published": looped, "vectorized": plain}


def run(
    programs: tuple[str, ...] = PROGRAMS,
    models: tuple[str, ...] = tuple(MODELS),
    tables: tuple[str, ...] = TABLES,
    iterations: int = 150,
) -> None:
    """A line for each table, model and program; CmdStan's are left out where it is missing."""
    settings = SamplerSettings(chains=2, warmup=iterations, draws=iterations, parallel_chains=1)
    missing = engine_by_name("cmdstan").status().cause
    print("(p) the papers' prior, effective draws of the worst parameter per CPU second")
    print(
        f"  {'table':<9}{'model':<19}{'program':<12}{'CPU s':>8}{'ESS':>7}{'ESS/s':>9}{'apart':>7}"
    )
    for name in tables:
        for model in models:
            if name == "visits" and MODELS[model][1] != "visits":
                continue
            bound, ours = _bound(name, model), None
            for program in programs:
                if program != "pyhybrid" and missing:
                    print(f"  {name:<9}{model:<19}{program:<12}left out: {missing}")
                    continue
                draws, seconds = _sampled(program, model, bound, settings)
                ours = draws if program == "pyhybrid" else ours
                _keep(_row(name, model, program, bound, draws, seconds, ours))


def _bound(table: str, model: str) -> Any:
    make, outcome = MODELS[model]
    if table != "visits":
        own, right = (survey(), RIGHT) if table == "survey" else columns(*SIZES[table])
        return make(f"{outcome} ~ {right}", prior="published").bind(own)
    data = randhie.load_pandas().data
    right = " + ".join(name for name in data.columns if name != "mdvis")
    return make(f"mdvis ~ {right}", prior="published").bind(data)


def _sampled(
    program: str, model: str, bound: Any, settings: SamplerSettings
) -> tuple[Draws, float]:
    """Draws and CPU seconds, of this process or of CmdStan's chains."""
    if program in OURS:
        own = own_settings(bound, settings)
        return sampled_by(OURS[program], bound.program, bound.stan_data(np.ones(bound.n)), own)
    data = plain_data(bound)
    if program == "published":
        data |= {"weights": np.ones(bound.n)}
    asked = replace(settings, adapt_delta=0.8)
    return sampled_by("cmdstan", PROGRAM_OF[program](model), data, asked)


def _row(
    table: str,
    model: str,
    program: str,
    bound: Any,
    draws: Draws,
    seconds: float,
    ours: Draws | None,
) -> dict[str, Any]:
    names = [n for n in (*bound.model.parameters, "reciprocal_phi") if n in draws.variables]
    worst = min(worst_ess(draws.variables[name]) for name in names)
    apart = float("nan")
    if ours is not None:
        one, two = ours.flat("beta"), draws.flat("beta")
        apart = float((np.abs(one.mean(axis=0) - two.mean(axis=0)) / one.std(axis=0)).max())
    settings, version = draws.provenance.settings, draws.provenance.engine_version
    if program in OURS:
        engine = "stanli " if program == "pyhybrid" else ""
        version = f"pyhybrid {ph.__version__}, {engine}{version}"
    print(f"  {table:<9}{model:<19}{program:<12}{seconds:>8.1f}{worst:>7.0f}"
          f"{worst / seconds:>9.2f}{apart:>7.2f}", flush=True)  # fmt: skip
    return {
        "table": table, "model": model, "program": program, "n": bound.n,
        "K": bound.design.X.shape[1], "chains": settings.chains, "warmup": settings.warmup,
        "draws": settings.draws, "cpu_seconds": round(seconds, 2), "ess": round(worst),
        "divergent": int(draws.divergent.sum()), "treedepth": round(draws.treedepth.mean(), 2),
        "apart": round(apart, 2), "version": version,
        "date": datetime.datetime.now(datetime.timezone.utc).date(),
    }  # fmt: skip


def _keep(row: dict[str, Any]) -> None:
    """Replace the stored row of what was run."""
    found = pd.DataFrame([row]).astype({"date": str})
    if RESULTS.exists():
        found = pd.concat([pd.read_csv(RESULTS), found]).drop_duplicates(KEY, keep="last")
    found.to_csv(RESULTS, index=False)


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    stored = pd.read_csv(RESULTS)
    stored["rate"] = stored["ess"] / stored["cpu_seconds"]
    ours = {
        program: stored[stored["program"] == program].set_index(["table", "model"])["rate"]
        for program in OURS
    }
    lines = []
    for row in stored[stored["program"] == "published"].itertuples():
        mine, by_cmdstan = (rates.get((row.table, row.model)) for rates in ours.values())
        times = mine / row.rate
        ratio = f"{float(f'{times:.2g}'):,.0f}" if row.apart < 1 else at_least(times)
        shown = ["–" if rate is None else two_digits(rate) for rate in (mine, by_cmdstan, row.rate)]
        lines.append(
            f"| {row.n:,}, {row.K} | {row.model.replace('_', ' ')} | {row.warmup} + {row.draws} | "
            f"{' | '.join(shown)} | {ratio} | {row.treedepth:.1f} | {row.divergent} |"
        )
    return lines


if __name__ == "__main__":
    numbers = [int(name) for name in sys.argv[1:] if name.isdigit()]
    given = [name for name in sys.argv[1:] if not name.isdigit()]
    unknown = [name for name in given if name not in (*PROGRAMS, *MODELS, *TABLES)]
    if unknown:
        sys.exit(f"names are {', '.join((*PROGRAMS, *MODELS, *TABLES))}: found {unknown[0]}")
    chosen = [tuple(n for n in given if n in known) or tuple(known)
              for known in (PROGRAMS, MODELS, TABLES)]  # fmt: skip
    run(*chosen, *numbers[:1])
