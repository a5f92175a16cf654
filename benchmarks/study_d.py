"""Why re-weighting takes the mean of CW further down on visits (study D): the weights of zeros.

1,000 RAND visits, negative binomial; posterior means exp(beta) under count weights, under them
re-weighted in one step at k = 0.95, and under mixed ones: the zeros' or the others' weights after
the step, the rest before it. Weights of records of equal value are equal.

    python -m benchmarks study_d
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session

_SAMPLES = 3


def run(samples: int = _SAMPLES) -> None:
    """For each sample the mean weights of zeros and others, and four posterior means."""
    visits = randhie.load_pandas().data["mdvis"].to_numpy(dtype=np.int64)
    settings = SamplerSettings(chains=4, warmup=500, draws=1000, parallel_chains=1)
    for seed in range(1, samples + 1):
        y = np.random.default_rng(seed).choice(visits, 1000, replace=False)
        model, zero = ph.NegativeBinomial("y ~ 1"), y == 0
        bound = model.bind(pd.DataFrame({"y": y}))
        session = open_session(bound, seed=seed, engine="embedded", settings=settings)
        step = ph.mechanisms.Reweighting.published(k=0.95)
        before, after = (
            ph.CountWeighted(model, reweighting=each).final_weights(session)
            for each in (False, step)
        )
        weights = {
            "CW": before,
            "CW_final": after,
            "zeros' weights alone raised": np.where(zero, after, before),
            "others' weights alone raised": np.where(zero, before, after),
        }
        means = {
            name: float(np.exp(session.fit(alpha, label=name).draws.flat("beta")).mean())
            for name, alpha in weights.items()
        }
        moved = "; ".join(
            f"{name} {before[rows].mean():.2f} to {after[rows].mean():.2f}"
            for name, rows in (("zeros", zero), ("others", ~zero))
        )
        shown = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
        print(
            f"sample {seed}: data {y.mean():.2f}; mean weights: {moved}; means: {shown}", flush=True
        )


if __name__ == "__main__":
    run()
