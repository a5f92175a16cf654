"""One fit, until its chains have converged.

A fit that lacks nothing but draws goes on from where its chains are, in blocks that double what
there is, up to a public limit (`SamplerSettings.max_draws`). One whose chains diverge or stay
apart, or for which that was not enough, is made anew, once, with a longer warm-up and a higher
adapt_delta. Where the limit is the first number of draws, neither is done.

Where what is sampled has about the same scale in the posterior, long steps under the unit metric
are tried first. If more than draws is lacking then, a careful fit takes their place, and all goes
on as above.

A chain whose warm-up ends with a larger step than its siblings' can still diverge, by chance. Then
all chains draw once more from where they are, with half of the smallest step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyhybrid.core.randomness import Streams
from pyhybrid.engines import (
    ContinuingEngine,
    ConvergenceRule,
    Diagnostics,
    Draws,
    Engine,
    FirstTry,
    SamplerSettings,
    WarmStart,
    diagnose,
)
from pyhybrid.engines.programs import block_text
from pyhybrid.models.base import BoundModel

__all__ = ["Sampling"]

_APART = 1.1  # R-hat of chains that more draws will not bring together
_BLOCKS = 4  # times the first number of draws, where the settings set no limit
_Steps = Callable[[str], "Callable[[int, int], None] | None"]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How fits are made: engine, program, rule, random streams.

    Attributes
    ----------
    bound : BoundModel
    engine : Engine
    streams : Streams
    rule : ConvergenceRule
    steps : callable
        From what is being done to where its progress is reported.
    """

    bound: BoundModel
    engine: Engine
    streams: Streams
    rule: ConvergenceRule
    steps: _Steps

    def converged(
        self,
        data: dict[str, Any],
        settings: SamplerSettings,
        second: SamplerSettings,
        warm_start: WarmStart | None,
        label: str,
        *,
        first: FirstTry | None = None,
    ) -> tuple[Draws, Diagnostics]:
        """Draws and their diagnostics, converged or not; `second` are a second try's settings.

        `first`: see `BoundModel.first_try`.
        """
        fast = settings if first is None else settings.standardized(first)
        draws, found = self._once(data, fast, warm_start, label)
        if fast != settings and not (found.converged or self._lacks_only_draws(found)):
            draws, found = self._once(data, settings, warm_start, label)
        if found.converged or settings.max_draws == settings.draws:
            return draws, found
        draws, found = self._sampled(data, second, None, f"{label}, again")
        if self._can_go_on and self._diverges_alone(found):
            steps = np.full_like(draws.step_size, draws.step_size.min() / 2)
            draws, stream = replace(draws, step_size=steps), "posterior, smaller steps"
            draws = self._more(
                data, draws, draws.energy.shape[1], stream, f"{label}, smaller steps"
            )
            found = self._judged(draws)
        return draws, replace(found, attempts=2)

    def _once(
        self,
        data: dict[str, Any],
        settings: SamplerSettings,
        warm_start: WarmStart | None,
        label: str,
    ) -> tuple[Draws, Diagnostics]:
        """Draws of one try, as many as the rule asks for and the settings allow."""
        draws, found = self._sampled(data, settings, warm_start, label)
        most = _BLOCKS * settings.draws if settings.max_draws is None else settings.max_draws
        part = 1
        while self._can_go_on and self._lacks_only_draws(found):
            more = min(draws.energy.shape[1], most - draws.energy.shape[1])
            if more <= 0:
                break
            part += 1
            stream = f"posterior, part {part}"
            draws = draws.followed_by(self._more(data, draws, more, stream, f"{label}, more draws"))
            found = self._judged(draws)
        return draws, found

    def _sampled(
        self,
        data: dict[str, Any],
        settings: SamplerSettings,
        warm_start: WarmStart | None,
        label: str,
    ) -> tuple[Draws, Diagnostics]:
        draws = self.engine.sample(
            self.bound.program,
            data,
            seed=self.streams.engine_seed("posterior"),
            settings=settings,
            warm_start=warm_start,
            progress=self.steps(label),
        )
        return draws, self._judged(draws)

    def _more(
        self, data: dict[str, Any], draws: Draws, n_draws: int, stream: str, label: str
    ) -> Draws:
        assert isinstance(self.engine, ContinuingEngine)
        seed = self.streams.engine_seed(stream)
        return self.engine.more(
            self.bound.program, data, draws, seed=seed, n_draws=n_draws, progress=self.steps(label)
        )

    def _judged(self, draws: Draws) -> Diagnostics:
        return diagnose(draws, self.rule, self.bound.monitored(draws))

    @property
    def _can_go_on(self) -> bool:
        """Whether the engine can; and not where another seed would change the program's data."""
        own_data = block_text(self.bound.program, "transformed data")
        return isinstance(self.engine, ContinuingEngine) and "_rng" not in own_data

    def _lacks_only_draws(self, found: Diagnostics) -> bool:
        allowed = self.rule.divergent_share * found.n_draws
        return not found.converged and found.n_divergent <= allowed and found.max_rhat < _APART

    def _diverges_alone(self, found: Diagnostics) -> bool:
        """Too many transitions diverged, and the chains are not apart."""
        allowed = self.rule.divergent_share * found.n_draws
        return found.n_divergent > allowed and found.max_rhat < _APART
