"""Lipschitz weights by size, range and deviation: what a budget leaves of the data.

RAND outpatient visits, negative binomial without predictors; each kind of risk at the largest scale
whose charge of one draw is within the target, by Gaussian accounting at delta 1e-6, weights
recomputed without each record and all. Means over 20 released sets, each from a draw of its own.
Then where the mean is lost: weights by visits at scale 1, and the posterior mean if the records
above 20 visits, or those up to 20, had weights of 1 instead.

    python -m benchmarks risks
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.session import open_session

RISKS = ("size", "range", "deviation")
_MANY = 20
TARGETS = (0.25, 0.5, 1.0)
_SETS = 20
_OPTIONS: dict[str, Any] = {
    "seed": 1,
    "engine": "embedded",
    "settings": ph.engines.SamplerSettings(chains=4, warmup=500, draws=1000),
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
        for risk in RISKS:
            mechanism = ph.LipschitzWeighted(ph.NegativeBinomial("mdvis ~ 1"), risk=risk)
            started = time.process_time()
            try:
                found = ph.mechanisms.meet_epsilon(
                    mechanism, visits, target_epsilon=target, **_OPTIONS
                )
            except InvalidInput as error:
                print(f"{target:6g} {risk:<10} out of reach: {error}")
                continue
            release = found.mechanism.release_from(
                found.session, n_synthetic=_SETS, n_draws_released=_SETS
            )
            sets = [table["mdvis"].to_numpy() for table in release.synthetic]
            ecdf = [ph.measures.max_ecdf(visits["mdvis"], own) for own in sets]
            shown = np.mean([[own.mean(), own.var(), np.quantile(own, 0.99)] for own in sets], 0)
            alpha = found.mechanism.fit(found.session).fit.alpha
            print(f"{target:6g} {risk:<10} {found.epsilon:7.3f} {found.value:6.3f} "
                  f"{alpha.mean():11.3f} {shown[0]:7.3f} {shown[1]:9.2f} {shown[2]:6.1f} "
                  f"{np.mean(ecdf):9.4f} {time.process_time() - started:6.1f}")  # fmt: skip
    _where_it_is_lost(visits)


def _where_it_is_lost(visits: pd.DataFrame) -> None:
    model, y = ph.NegativeBinomial("mdvis ~ 1"), visits["mdvis"].to_numpy()
    session = open_session(model.bind(visits), **_OPTIONS)

    def mean_under(alpha: np.ndarray) -> float:
        fit = ph.GivenWeights(model, alpha=alpha).fit(session).fit
        return float(np.exp(fit.draws.flat("beta")).mean())

    shown = (0, 1, 2, 5, 10, 20, 30, 40, 77)
    print(f"\nposterior mean, weights 1: {mean_under(np.ones(y.size)):.3f}")
    for risk in RISKS:
        alpha = ph.LipschitzWeighted(model, risk=risk).fit(session).fit.alpha
        weights = ", ".join(f"{k}: {alpha[y == k][0]:.2f}" for k in shown)
        above, below = np.where(y > _MANY, 1.0, alpha), np.where(y > _MANY, alpha, 1.0)
        print(f"{risk:<10} weight by visits {weights}")
        print(
            f"{'':<10} posterior mean {mean_under(alpha):.3f}; weights 1 above {_MANY} visits "
            f"{mean_under(above):.3f}; weights 1 up to {_MANY} {mean_under(below):.3f}"
        )
