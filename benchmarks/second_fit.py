"""(r) The fit with weights after the one without: where it starts, and how long it warms up.

The survey of `benchmarks.regressions` under the papers' prior, 4 chains x 500 kept draws, Lipschitz
weights of the first fit. Starts of the second fit:

cold         random, the whole warm-up
carried      the last draws of the first fit, in its standardized coordinates, as releases do:
             the same coordinates are other coefficients under other weights
coefficients the same draws, as coefficients
resampled    draws of the first fit, taken by their importance weights for the second posterior, as
             coefficients

For each: effective draws of the worst parameter per CPU second (mean and standard error over the
seeds), the largest R-hat, and how far the log density of the starts is from where it settles, in
standard deviations. Results are written to benchmarks/results/second_fit.csv.

    python -m benchmarks.second_fit [MODEL ...] [n=1000] [seeds=6]
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
from benchmarks.regressions import MODELS, RIGHT, own_settings, survey, worst_ess
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines import ConvergenceRule, Draws, SamplerSettings, WarmStart, diagnose
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints

RESULTS = Path(__file__).parent / "results" / "second_fit.csv"
WARMUP = 1000
FORMS = (
    ("cold", WARMUP),
    ("carried", WARMUP // 4),
    ("carried", 75),
    ("coefficients", WARMUP // 4),
    ("resampled", WARMUP // 4),
    ("resampled", 75),
)
KEY = ["model", "n", "start", "warmup"]
SHOWN = ("negative_binomial", "poisson", "bernoulli", "normal")
"""Models of the table on the page of benchmarks."""
_SETTINGS = SamplerSettings(chains=4, warmup=WARMUP, draws=500, parallel_chains=1)


def run(names: tuple[str, ...] = tuple(MODELS), *, n: int = 1000, seeds: int = 6) -> None:
    """A line for each model, start and length of the warm-up."""
    print(f"(r) the second fit, {n} records, {seeds} seeds")
    print(
        f"  {'model':<19}{'start':<14}{'warm-up':>8}{'CPU s':>8}{'ESS/s':>14}{'R-hat':>7}{'off':>7}"
    )
    for name in names:
        make, outcome = MODELS[name]
        bound = make(f"{outcome} ~ {RIGHT}", prior="published").bind(survey(n))
        rows = [row for seed in range(1, seeds + 1) for row in _one(bound, seed)]
        for (start, warmup), part in pd.DataFrame(rows).groupby(["start", "warmup"], sort=False):
            _keep({"model": name, "n": n, "start": start, "warmup": warmup, "seeds": seeds},
                  part)  # fmt: skip


def _one(bound: Any, seed: int) -> list[dict[str, Any]]:
    """The first fit, and the second from every start."""
    settings = own_settings(bound, _SETTINGS)
    engine, ones = EmbeddedEngine(), bound.stan_data(np.ones(bound.n))
    first = engine.sample(bound.program, ones, seed=seed, settings=settings)
    terms = bound.log_lik(first)
    log_lik = np.hstack([block for _, block in terms.blocks()])[:, terms.row_of]
    alpha = ph.lipschitz_weights(log_lik)
    data = bound.stan_data(alpha)
    logs = log_lik @ (alpha - 1)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    starts = {
        "cold": None,
        "carried": first.warm_start(),
        "coefficients": _as_coefficients(first, _last(first), data),
        "resampled": _as_coefficients(
            first, np.random.default_rng(seed).choice(weights.size, 4, p=weights), data
        ),
    }
    rows = []
    for start, warmup in FORMS:
        cpu = time.process_time()
        draws = engine.sample(
            bound.program, data, seed=seed + 100, settings=replace(settings, warmup=warmup),
            warm_start=starts[start],
        )  # fmt: skip
        cpu = time.process_time() - cpu
        found = diagnose(draws, ConvergenceRule(), bound.monitored(draws))
        ess = min(worst_ess(draws.variables[p]) for p in bound.model.parameters)
        rows.append({
            "start": start, "warmup": warmup, "cpu_seconds": cpu, "rate": ess / cpu,
            "rhat": found.max_rhat, "off": _off(bound.program, data, starts[start], draws),
            "importance_ess": 1 / (weights**2).sum(),
        })  # fmt: skip
    return rows


def _last(draws: Draws) -> FloatArray:
    """Places of the chains' last draws, the chains one after the other."""
    length = draws.energy.shape[1]
    return np.arange(1, draws.n_chains + 1) * length - 1


def _as_coefficients(first: Draws, places: FloatArray, data: dict[str, Any]) -> WarmStart:
    """Draws of the first fit in the coordinates of the second: z such that beta is the same."""
    near, inits = first.warm_start(), []
    root, score = np.asarray(data["information_root"]), np.asarray(data["score"])
    for place in places:
        own = {name: first.flat(name)[place] for name in first.parameters
               if name in first.variables}  # fmt: skip
        own = {**{name: near.inits[0][name] for name in first.parameters}, **own}
        beta, freedom = first.flat("beta")[place], data["K"] + 11
        scale = np.exp(own["log_scale"] + own["z_radius"][0] / np.sqrt(2 * freedom))
        spread = np.linalg.cholesky(np.eye(beta.size) + (scale[:, None] * root) @ (
            scale[:, None] * root).T)  # fmt: skip
        z = spread.T @ (beta / scale) - np.linalg.solve(spread, scale * score)
        inits.append({**own, "z": z})
    return replace(near, inits=tuple(inits))


def _off(program: Any, data: dict[str, Any], start: WarmStart | None, draws: Draws) -> float:
    """Mean distance of the starts' log density from that of the draws, in their deviations."""
    if start is None:
        return float("nan")
    at = ProgramAtPoints(program, data)
    some = draws.part(np.arange(0, draws.n_draws, 20))
    settled = at.log_density(at.unconstrained(some))
    own = replace(
        some,
        variables={name: np.array([[values[name] for values in start.inits]])
                   for name in start.inits[0] if np.size(start.inits[0][name])},
        divergent=np.zeros((1, len(start.inits)), dtype=bool),
    )  # fmt: skip
    found = at.log_density(at.unconstrained(own))
    return float(np.abs((found - settled.mean()) / settled.std()).mean())


def _keep(row: dict[str, Any], part: pd.DataFrame) -> None:
    """Print, and replace the stored row of what was run."""
    rate, error = part["rate"].mean(), part["rate"].std() / np.sqrt(len(part))
    print(
        f"  {row['model']:<19}{row['start']:<14}{row['warmup']:>8}"
        f"{part['cpu_seconds'].mean():>8.2f}{rate:>8.0f} +- {error:<3.0f}"
        f"{part['rhat'].max():>6.3f}{part['off'].mean():>7.1f}",
        flush=True,
    )
    found = pd.DataFrame([{
        **row, "cpu_seconds": round(part["cpu_seconds"].mean(), 3), "rate": round(rate, 1),
        "error": round(error, 1), "rhat": round(part["rhat"].max(), 4),
        "off": round(part["off"].mean(), 2),
        "importance_ess": round(part["importance_ess"].mean(), 1), "version": ph.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }])  # fmt: skip
    if RESULTS.exists():
        found = pd.concat([pd.read_csv(RESULTS), found]).drop_duplicates(KEY, keep="last")
    found.to_csv(RESULTS, index=False)


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    stored = pd.read_csv(RESULTS)
    lines = []
    for start, warmup in FORMS:
        own = stored[(stored["start"] == start) & (stored["warmup"] == warmup)]
        rates = own.set_index("model")[["rate", "error"]].reindex(SHOWN)
        cells = [f"{rate:,.0f} ({error:.0f})" for rate, error in rates.to_numpy()]
        off = "–" if own["off"].isna().all() else f"{own['off'].mean():.1f}"
        lines.append(f"| {start} | {warmup} | {' | '.join(cells)} | {off} |")
    return lines


if __name__ == "__main__":
    given = sys.argv[1:]
    numbers = {k: int(v) for k, v in (word.split("=") for word in given if "=" in word)}
    run(tuple(name for name in given if name in MODELS) or tuple(MODELS), **numbers)
