"""What the studies share: a session over one database, and bounds of a mechanism on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.fitting.session import FitSession, PosteriorFit, open_session
from pyhybrid.measures.arrays.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.mechanisms import PseudoPosteriorMechanism
from pyhybrid.models.base import Model
from pyhybrid.studies.study import Measured

__all__ = ["ACCOUNTING", "bound_row", "fitted", "session_over", "utility_rows"]

ACCOUNTING = "lipschitz"
"""The papers' own: epsilon is twice the Lipschitz bound. Every mechanism of a study counts so."""


def session_over(
    model: Model, df: pd.DataFrame, streams: Streams, options: Mapping[str, Any]
) -> FitSession:
    """A session on one core, unless told; whether chains converged is in its diagnostics."""
    rule = ConvergenceRule(
        rhat=options.get("rhat", 1.01), ess_per_chain=options.get("ess_per_chain", 100)
    )
    return open_session(
        model.bind(df),
        seed=streams.entropy,
        engine=options["engine"],
        settings=SamplerSettings(
            chains=options.get("chains", 4),
            warmup=options.get("warmup", 1000),
            draws=options.get("draws", 1000),
            max_draws=options.get("max_draws"),
            adapt_delta=options.get("adapt_delta"),
            parallel_chains=options.get("parallel_chains", 1),
        ),
        rule=rule,
        on_not_converged="warn",
    )


def fitted(mechanism: PseudoPosteriorMechanism, session: FitSession) -> PosteriorFit:
    """The fit that `mechanism` would release from."""
    return mechanism.fit(session).fit


def bound_row(synthesizer: str, fit: PosteriorFit) -> Measured:
    """The Lipschitz bound of a fit, nats."""
    return Measured(synthesizer, "Lipschitz bound", fit.bounds.overall)


def utility_rows(name: str, data: pd.Series, synthetic: pd.Series) -> list[Measured]:
    """Distances of distribution functions [C25] sec. 4.3, and the papers' estimands."""
    real, made = data.to_numpy(), synthetic.to_numpy()
    return [
        Measured(name, "max-ECDF", max_ecdf(real, made)),
        Measured(name, "avg-ECDF", avg_ecdf(real, made)),
        *(Measured(name, s, float(v)) for s, v in zip(STATISTICS, summaries(made), strict=True)),
    ]
