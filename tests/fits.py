"""Options of fits that several tests use: an engine, how many draws, and a rule."""

from typing import Any

from pyhybrid.engines import ConvergenceRule, SamplerSettings

ANY_DRAWS = ConvergenceRule(rhat=9, ess_per_chain=1, divergent_share=1)
"""A rule that few draws meet, too."""


def fit_options(*, chains: int, warmup: int, draws: int, **more: Any) -> dict[str, Any]:
    """By the embedded engine, unless another one is given."""
    settings = SamplerSettings(chains=chains, warmup=warmup, draws=draws)
    return {"engine": "embedded", "settings": settings, **more}
