"""Lipschitz weights by size, range and deviation: what a budget leaves of the data.

RAND outpatient visits, negative binomial without predictors; each kind of risk at the largest scale
whose charge of one draw is within the target, by Gaussian accounting at delta 1e-6, weights
recomputed without each record and all. Means over 20 released sets, each from a draw of its own.

    python -m benchmarks risks
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from statsmodels.datasets import randhie

import pyhybrid as ph
from pyhybrid.errors import InvalidInput

TARGETS = (0.25, 0.5, 1.0)
_SETS = 20
_OPTIONS: dict[str, Any] = {
    "seed": 1,
    "engine": "embedded",
    "settings": ph.SamplerSettings(chains=4, warmup=500, draws=1000),
}


def run(targets: tuple[float, ...] = TARGETS) -> None:
    """A line for each target and risk."""
    visits = randhie.load_pandas().data[["mdvis"]].astype("int64")
    y = visits["mdvis"].to_numpy()
    print(f"{'target':>6} {'risk':<10} {'epsilon':>7} {'scale':>6} {'mean weight':>11} "
          f"{'mean':>7} {'variance':>9} {'99 %':>6} {'max-ECDF':>9} {'CPU s':>6}")  # fmt: skip
    print(f"{'-':>6} {'data':<10} {'-':>7} {'-':>6} {'-':>11} "
          f"{y.mean():7.3f} {y.var():9.2f} {np.quantile(y, 0.99):6.1f}")  # fmt: skip
    for target in targets:
        for risk in ("size", "range", "deviation"):
            mechanism = ph.LipschitzWeighted(ph.NegativeBinomial("mdvis ~ 1"), risk=risk)
            started = time.process_time()
            try:
                found = ph.meet_epsilon(mechanism, visits, target_epsilon=target, **_OPTIONS)
            except InvalidInput as error:
                print(f"{target:6g} {risk:<10} out of reach: {error}")
                continue
            release = found.mechanism.release_from(
                found.session, n_synthetic=_SETS, n_draws_released=_SETS
            )
            sets = [table["mdvis"].to_numpy() for table in release.synthetic]
            ecdf = [ph.max_ecdf(visits["mdvis"], own) for own in sets]
            shown = np.mean([[own.mean(), own.var(), np.quantile(own, 0.99)] for own in sets], 0)
            alpha = found.mechanism.fit(found.session).fit.alpha
            print(f"{target:6g} {risk:<10} {found.epsilon:7.3f} {found.value:6.3f} "
                  f"{alpha.mean():11.3f} {shown[0]:7.3f} {shown[1]:9.2f} {shown[2]:6.1f} "
                  f"{np.mean(ecdf):9.4f} {time.process_time() - started:6.1f}")  # fmt: skip
