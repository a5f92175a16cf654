"""Population estimates from synthetic data of informative samples: bias and coverage.

Records with large outcomes are sampled more often. The mean of the population is estimated from
five synthetic sets, combined by [R03]: from a model that ignores the design; from models under
normalized design weights (a), without privacy weights, with them, and censored after the product;
and from sets with a synthetic weight column of their own, whose weighted mean is taken (b).

    python -m benchmarks survey                                  # 40 samples
    python -m benchmarks.survey 500 --results survey.jsonl       # a rerun skips finished samples

Ignoring the weights must fail visibly: `check` says so if it does not.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.running.resumable import fingerprint, open_parts

POPULATION, SAMPLE, SETS = 50_000, 300, 5
SHORT = SamplerSettings(chains=2, warmup=250, draws=400, parallel_chains=1)
DESIGN = ph.measures.SurveyDesign(weights="w", population=float(POPULATION))
IGNORED, DIRECT, JOINT = "weights ignored", "the data, weighted", "(b) synthetic weights"
_CENTER = {"beta": [2.0], "sigma": 1.0}  # public guess of the censored release


def population(seed: int = 1) -> np.ndarray:
    """Outcomes of all members."""
    return 2 + np.random.default_rng(seed).normal(size=POPULATION)


def sample(y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Poisson sampling with probabilities proportional to exp(0.5 y)."""
    share = np.exp(0.5 * y)
    chance = np.minimum(1, SAMPLE * share / share.sum())
    taken = rng.random(y.size) < chance
    noise = rng.lognormal(sigma=0.1, size=int(taken.sum()))
    table: pd.DataFrame = pd.DataFrame({"y": y[taken], "w": noise / chance[taken]}).round(4)
    return table


def mechanisms() -> dict[str, Any]:
    """What is compared, by name."""
    model = ph.NormalRegression("y ~ 1", prior="normal", decimals=4)
    return {
        IGNORED: ph.Unweighted(model),
        "(a) design weights": ph.Unweighted(model, design=DESIGN),
        "(a) and privacy weights": ph.LipschitzWeighted(model, design=DESIGN),
        "(a) censored, epsilon 2 a draw": ph.Censored(
            model, epsilon=2, center=_CENTER, design=DESIGN, check_modes=False,
            inner=ph.Unweighted(model, design=DESIGN),
        ),
        JOINT: ph.SequentialSynthesis(
            [
                ph.Unweighted(ph.LogNormal("w ~ 1", prior="normal", decimals=4)),
                ph.Unweighted(ph.NormalRegression("y ~ log(w)", prior="normal", decimals=4)),
            ]
        ),
    }  # fmt: skip


def estimates(table: pd.DataFrame, seed: int) -> dict[str, list[float]]:
    """Estimate, ends of the 95 % interval and epsilon (NaN of the data) by each way."""
    direct = ph.measures.survey_mean(table["y"], DESIGN.read(table))
    found = {DIRECT: [direct.estimate, direct.lower, direct.upper, float("nan")]}
    for name, mechanism in mechanisms().items():
        release = mechanism.release(
            table, n_synthetic=SETS, seed=seed, engine="embedded", settings=SHORT,
            on_not_converged="warn",
        )  # fmt: skip
        own = [
            ph.measures.survey_mean(t["y"], DESIGN.read(t if name == JOINT else t.assign(w=1.0)))
            for t in release.synthetic
        ]
        pooled = ph.measures.combine_partially_synthetic(
            [e.estimate for e in own], [e.standard_error**2 for e in own]
        )
        ends = (float(end) for end in pooled.interval())
        found[name] = [float(pooled.estimate), *ends, release.charge.epsilon]
    return found


def table_of(parts: Mapping[str, Mapping[str, list[float]]], truth: float) -> pd.DataFrame:
    """By way: samples, bias with its Monte Carlo error, deviation, coverage with its, epsilon."""
    rows = []
    for name in next(iter(parts.values())):
        at, low, high, epsilon = np.array([part[name] for part in parts.values()], dtype=float).T
        n, covered = at.size, float(np.mean((low <= truth) & (truth <= high)))
        deviation = float(at.std(ddof=1))
        rows.append(
            {"from": name, "samples": n, "bias": at.mean() - truth,
             "bias, error": deviation / n**0.5, "deviation": deviation,
             "half width": float((high - low).mean() / 2), "coverage": covered,
             "coverage, error": (covered * (1 - covered) / n) ** 0.5,
             "epsilon, median": float(np.median(epsilon))}
        )  # fmt: skip
    return pd.DataFrame(rows).set_index("from")


def check(shown: pd.DataFrame) -> None:
    """The estimator of the design is right, and ignoring the weights is visibly wrong."""
    bias, error = shown["bias"], shown["bias, error"]
    assert abs(bias[DIRECT]) < 5 * error[DIRECT] + 0.01  # of a ratio: order 1 / n
    assert abs(bias[IGNORED]) > 5 * error[IGNORED]
    assert shown["coverage"][IGNORED] < 0.5, "ignoring the weights must fail"


def run(n_samples: int = 40, results: str | None = None) -> pd.DataFrame:
    """Print bias, deviation and coverage of each way."""
    y = population()
    made = [POPULATION, SAMPLE, SETS, repr(SHORT), {n: repr(m) for n, m in mechanisms().items()}]
    with (
        warnings.catch_warnings(),
        open_parts(results, settings=fingerprint({"made": made}), seed=1) as kept,
    ):
        warnings.simplefilter("ignore")
        for seed in range(1, n_samples + 1):
            if str(seed) not in kept.parts:
                table = sample(y, np.random.default_rng(1000 + seed))
                kept.add(str(seed), estimates(table, seed))
        shown = table_of(dict(list(kept.parts.items())[:n_samples]), float(y.mean()))
    print(
        f"{n_samples} informative samples of about {SAMPLE} from {POPULATION}, mean "
        f"{y.mean():.3f}; {SETS} sets each"
    )
    print(shown.round(3).to_string())
    check(shown)
    return shown


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("samples", type=int, nargs="?", default=40)
    given.add_argument("--results", help="file of finished samples, to continue from")
    taken = given.parse_args()
    run(taken.samples, taken.results)
