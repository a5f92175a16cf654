"""Masking: study I (coefficients and risk against comparators) and speed.

Study I, in the spirit of [J22]: a probit regression of a kept outcome on two keys and a kept
covariate, where the association models are wrong: the continuous key is skewed, with a spread that
varies, and enters the outcome on the probit scale. Three kept columns have nothing to do with it.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.engines import ConvergenceRule
from pyhybrid.masking.analysis import masked_utility, naming_share, release_risk
from pyhybrid.masking.chains import GibbsSettings

FORMULA = "y ~ x + b + z1"
TRUE = np.array([0.2, 0.8, -0.6, 0.3])
TERMS = ("x", "b", "z1")
KEYS = ["x", "b"]
RADIUS = {"x": 0.05}
# (copies, variance, separation): from near the data to the association model alone.
STRENGTHS: dict[str, tuple[float, float] | None] = {
    "DA-MI, s2/K = 0.03, a = 6": (0.03, 6.0),
    "DA-MI, s2/K = 0.05, a = 6": (0.05, 6.0),  # as published
    "DA-MI, s2/K = 0.1, a = 3": (0.1, 3.0),
    "DA-MI, s2/K = 0.2, a = 3": (0.2, 3.0),
    "DA-MI, s2/K = 1, a = 1.5": (1.0, 1.5),
    "DA-MI, masks off": None,
}
SHORT = GibbsSettings(
    chains=2, warmup=50, draws=60, sweeps=15, rule=ConvergenceRule(rhat=1.1, ess_per_chain=10)
)


def sample(seed: int, n: int) -> pd.DataFrame:
    """One simulated database."""
    rng = np.random.default_rng([seed, n])
    z = rng.normal(size=(n, 4))
    spread = 0.5 + 0.7 * (z[:, 1] > 0)
    x = 0.4 * z[:, 0] + spread * (rng.exponential(size=n) - 1)
    b = (0.6 * x + 0.4 * z[:, 0] + rng.normal(size=n) > 0).astype(int)
    y = np.column_stack([np.ones(n), x, b, z[:, 0]]) @ TRUE + rng.normal(size=n) > 0
    columns = {"y": y.astype(int), "x": x, "b": b}
    return pd.DataFrame(columns | {f"z{j + 1}": z[:, j] for j in range(4)})


def one(task: tuple[int, int, int]) -> list[dict[str, Any]]:
    """All methods on one database: estimates, intervals, risk."""
    seed, n, m = task
    data = sample(seed, n)
    base = ph.MaskedImputation(keys=KEYS, n_synthetic=m, settings=SHORT, on_not_converged="warn")
    fit = base.fit(data, seed=seed)
    releases = {}
    for name, strength in STRENGTHS.items():
        masks: Any = {}
        if strength is not None:
            masks = {
                "x": ph.GaussianMask(copies=20, variance=20 * strength[0]),
                "b": ph.MixtureMask(separation=strength[1]),
            }
        releases[name] = base.with_masks(masks).release_from(fit)
    releases["CART"] = ph.CartSynthesis(keys=KEYS, n_synthetic=m).release(data, seed=seed)
    releases["normal + logit"] = ph.ParametricSynthesis(keys=KEYS, n_synthetic=m).release(
        data, seed=seed
    )
    rows = []
    for name, release in releases.items():
        found = masked_utility(release, data, FORMULA, model="probit").table
        risk = release_risk(release, data, keys=KEYS, radius=RADIUS)
        rows.append(_row(name, seed, found, naming_share(risk), "synthetic_"))
    share = naming_share(release_risk(None, data, keys=KEYS, radius=RADIUS))
    rows.append(_row("the data", seed, found, share, ""))
    return rows


def _row(name: str, seed: int, table: pd.DataFrame, risk: float, prefix: str) -> dict[str, Any]:
    lower, upper = table[prefix + "lower"].to_numpy(), table[prefix + "upper"].to_numpy()
    return {
        "method": name,
        "seed": seed,
        "error": table[prefix + "estimate"].to_numpy() - TRUE,
        "covered": (lower <= TRUE) & (upper >= TRUE),
        "risk": risk,
    }


def study(n_databases: int, n: int, m: int, workers: int) -> pd.DataFrame:
    """RMSE and bias of the coefficients of x, b and z1; coverage; mean risk."""
    tasks = [(seed, n, m) for seed in range(n_databases)]
    if workers == 1:
        parts = [one(task) for task in tasks]
    else:
        with ProcessPoolExecutor(workers) as pool:
            parts = list(pool.map(one, tasks))
    frame = pd.DataFrame([row for part in parts for row in part])
    rows = []
    for name, own in frame.groupby("method", sort=False):
        errors = np.stack(own["error"].to_list())[:, 1:]
        rmse, bias = np.sqrt((errors**2).mean(axis=0)), errors.mean(axis=0)
        row: dict[str, Any] = {"method": name}
        row |= {f"rmse_{term}": value for term, value in zip(TERMS, rmse, strict=True)}
        row |= {f"bias_{term}": value for term, value in zip(TERMS, bias, strict=True)}
        row["coverage"] = np.stack(own["covered"].to_list()).mean()
        rows.append(row | {"risk": own["risk"].mean()})
    return pd.DataFrame(rows)


def mixed_keys(n: int) -> pd.DataFrame:
    """Six keys of mixed type, an outcome."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=n)
    age = 45 + 12 * (0.3 * y + rng.normal(size=n))
    weight = 70 + 8 * (0.2 * y + 0.3 * (age - 45) / 12 + rng.normal(size=n))
    pull = np.outer(y, [0, 0.2, 0.4, -0.3, 0.1, 0.3])
    return pd.DataFrame(
        {
            "age": age.round(),
            "weight": weight.round(1),
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "education": np.digitize(0.5 * y + rng.normal(size=n), [-1, -0.2, 0.5, 1.3]) + 1,
            "region": np.array(list("abcdef"))[np.argmax(rng.gumbel(size=(n, 6)) + pull, axis=1)],
            "status": np.array(list("pqrs"))[
                np.argmax(rng.gumbel(size=(n, 4)) + pull[:, :4], axis=1)
            ],
            "y": y,
        }
    )


def speed(sizes: tuple[int, ...] = (2500, 5000, 10_000)) -> None:
    """Release of five sets of six mixed keys; cost against n."""
    keys = ["age", "weight", "sex", "education", "region", "status"]
    for n in sizes:
        data = mixed_keys(n)
        masks = ph.masks_by_type(data, keys)
        started, worked = time.perf_counter(), time.process_time()
        release = ph.MaskedImputation(keys=keys, masks=masks, n_synthetic=5).release(data, seed=1)
        seconds = time.perf_counter() - started
        fit = release.diagnostics
        assert fit is not None
        worked = time.process_time() - worked
        chains = f"R-hat {fit.max_rhat:.4f}, ESS {fit.min_ess_bulk:.0f}, attempts {fit.attempts}"
        note = f"{worked:.1f} s of CPU, {chains}"
        line(f"n = {n:>6,}, six mixed keys, m = 5", seconds, note)


def run() -> None:
    """Speed, then study I at n = 1000 on 200 databases."""
    print("masking: release of six mixed keys, fit included")
    speed()
    started = time.perf_counter()
    table = study(200, 1000, 5, os.cpu_count() or 1)
    print(
        "\nstudy I: probit y ~ x + b + z1, association models wrong, n = 1000, 200 databases, m = 5"
    )
    print(table.round(4).to_string(index=False))
    line("200 databases", time.perf_counter() - started)


if __name__ == "__main__":
    print(study(int(sys.argv[1]), int(sys.argv[2]), 5, int(sys.argv[3])).round(4).to_string())
