"""Options of fits that several tests use: an engine, how many draws, and a rule."""

from collections.abc import Callable
from typing import Any

import pytest

from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.fitting.session import FitSession, open_session

ANY_DRAWS = ConvergenceRule(rhat=9, ess_per_chain=1, divergent_share=1)
"""A rule that few draws meet, too."""


def fit_options(*, chains: int, warmup: int, draws: int, **more: Any) -> dict[str, Any]:
    """By the embedded engine, unless another one is given."""
    settings = SamplerSettings(chains=chains, warmup=warmup, draws=draws)
    return {"engine": "embedded", "settings": settings, **more}


def session_fixture(bound: Callable[[], Any], **options: Any) -> Any:
    """The fixture `session`: the fits of one bound model, for a module's tests."""

    @pytest.fixture(scope="module")
    def session() -> FitSession:
        return open_session(bound(), **options)

    return session
