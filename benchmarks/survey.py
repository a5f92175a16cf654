"""Population estimates from synthetic data of an informative sample: bias and coverage.

Records with large outcomes are sampled more often. The mean of the population is estimated from
five synthetic sets, combined by [R03]: from a model that ignores the design; from one under
normalized design weights (a); and from sets with a synthetic weight column of their own, whose
weighted mean is taken (b). `python -m benchmarks.survey [SAMPLES]`; ignoring the weights must fail
visibly.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings

POPULATION, SAMPLE, SETS = 50_000, 300, 5
SHORT = SamplerSettings(chains=2, warmup=250, draws=400, parallel_chains=1)
DESIGN = ph.SurveyDesign(weights="w", population=float(POPULATION))


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


def estimates(table: pd.DataFrame, seed: int) -> dict[str, tuple[float, float, float]]:
    """Estimate and ends of the 95 % interval by each way."""
    model = ph.NormalRegression("y ~ 1", prior="normal", decimals=4)
    given = {"accounting": "lipschitz"}
    settings = {"n_synthetic": SETS, "seed": seed, "engine": "embedded", "settings": SHORT,
                "on_not_converged": "warn"}  # fmt: skip
    joint = ph.SequentialSynthesis(
        [
            ph.Unweighted(ph.LogNormal("w ~ 1", prior="normal", decimals=4), **given),
            ph.Unweighted(ph.NormalRegression("y ~ log(w)", prior="normal", decimals=4), **given),
        ]
    )
    sets = {
        "weights ignored": ph.Unweighted(model, **given).release(table, **settings),
        "(a) design weights": ph.Unweighted(model, design=DESIGN, **given).release(
            table, **settings
        ),
        "(b) synthetic weights": joint.release(table, **settings),
    }
    found = {}
    direct = ph.survey_mean(table["y"], DESIGN.read(table))
    found["the data, weighted"] = (direct.estimate, direct.lower, direct.upper)
    for name, release in sets.items():
        own = [
            ph.survey_mean(t["y"], DESIGN.read(t if name.startswith("(b)") else t.assign(w=1.0)))
            for t in release.synthetic
        ]
        pooled = ph.combine_partially_synthetic(
            [e.estimate for e in own], [e.standard_error**2 for e in own]
        )
        found[name] = (float(pooled.estimate), *(float(end) for end in pooled.interval()))
    return found


def run(n_samples: int = 40) -> pd.DataFrame:
    """Print bias, deviation and coverage of each way."""
    y = population()
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(1, n_samples + 1):
            table = sample(y, np.random.default_rng(1000 + seed))
            for name, (estimate, lower, upper) in estimates(table, seed).items():
                covered = lower <= y.mean() <= upper
                rows.append({"from": name, "error": estimate - y.mean(), "covered": covered})
    shown = pd.DataFrame(rows).groupby("from", sort=False).agg(
        bias=("error", "mean"), deviation=("error", "std"), coverage=("covered", "mean")
    )  # fmt: skip
    print(
        f"{n_samples} informative samples of about {SAMPLE} from {POPULATION}, mean {y.mean():.3f}"
    )
    print(shown.round(3).to_string())
    return shown


if __name__ == "__main__":
    run(*(int(value) for value in sys.argv[1:2]))
