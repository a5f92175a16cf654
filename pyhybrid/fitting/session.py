"""Fits of one bound model under one set of choices, made once and shared.

A `FitSession` holds what all fits of a release have in common: data, engine, sampler settings,
random streams and the policy for chains that do not converge. Fits are kept by their weights, so
that mechanisms that start from the unweighted fit share it. All fits of a session use one engine
seed, so that a bound changes smoothly with the weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_alpha, check_choice
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.engines import (
    ConvergenceRule,
    Diagnostics,
    Draws,
    Engine,
    SamplerSettings,
    WarmStart,
    resolve_engine,
)
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.exact import ExactPosterior, exact_posterior
from pyhybrid.fitting.sampling import Sampling
from pyhybrid.fitting.units import read_units
from pyhybrid.models.base import BoundModel
from pyhybrid.models.composite.survey_weighted import weights_told
from pyhybrid.models.grid import GridForm, ParameterGrid
from pyhybrid.privacy.bounds import LipschitzBounds, bounds_by_unit, bounds_of
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.log_lik import LogLik, Units
from pyhybrid.running.tasks import Progress

__all__ = ["FitProgress", "FitSession", "PosteriorFit", "open_session"]

_Key = tuple[bytes, "tuple[object, ...] | None"]  # weights, cap with its center and units
FitProgress = Progress

_SUMS_AT_ONCE = 4_000_000  # draws times units
_OWNERS_DRAWS = 1000  # of an exact posterior, for bounds and the owner's report
_SHORTEST_WARMUP = 150  # below this Stan does not adapt the metric
ON_NOT_CONVERGED = ("raise", "warn")


@dataclass(frozen=True, kw_only=True, eq=False)
class PosteriorFit:
    """Draws from a weighted posterior with their bounds. Confidential, but for the draws.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
        Record weights of the fit.
    cap : Cap or None
        What terms are clipped to if the likelihood was censored.
    draws : Draws
    bounds : LipschitzBounds
        Of the alpha-weighted log-likelihood (of the unweighted one if alpha is 1); no larger than
        the cap if there is one, and of the term less its center if that has one. With units,
        `by_record` holds the bound of each record's unit.
    diagnostics : Diagnostics or None
        None of an exact posterior.
    censored : ndarray of bool, shape (n,), or None
        Records whose weighted term, or that of their unit, met an end of the cap in some draw; None
        without a cap.
    exact : ExactPosterior or None
        The posterior on its grid, if it was not sampled by chains: `draws` are the owner's, and
        released ones are drawn anew.
    fixed_draws : bool
        True if the number of draws was fixed before the fit, whatever it went through.
    """

    alpha: FloatArray
    cap: Cap | None
    draws: Draws
    bounds: LipschitzBounds
    diagnostics: Diagnostics | None
    censored: npt.NDArray[np.bool_] | None = None
    exact: ExactPosterior | None = None
    fixed_draws: bool = False

    @property
    def converged(self) -> bool:
        """True of an exact posterior, and of chains that nothing fails the rule in."""
        return self.diagnostics is None or self.diagnostics.converged

    @property
    def n_elsewhere(self) -> int:
        """Chains from dispersed starts that ended in another mode; 0 if not looked for."""
        return 0 if self.diagnostics is None else self.diagnostics.n_elsewhere or 0

    def __repr__(self) -> str:
        return f"<PosteriorFit of {self.alpha.size} records, {self.draws.n_draws} draws>"


@dataclass(frozen=True, kw_only=True, eq=False)
class FitSession:
    """What the fits of a release share; see `open_session`."""

    bound: BoundModel
    engine: Engine
    settings: SamplerSettings
    streams: Streams
    rule: ConvergenceRule
    on_not_converged: str
    progress: FitProgress | None
    units: Units | None = None
    _kept: dict[_Key, tuple[Draws, Diagnostics]] = field(default_factory=dict, repr=False)
    _bounds: dict[tuple[_Key, float, str | None], LipschitzBounds] = field(
        default_factory=dict, repr=False
    )
    _exact: dict[tuple[object, ...], ExactPosterior] = field(default_factory=dict, repr=False)
    _released: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def fit(
        self,
        alpha: FloatArray,
        *,
        label: str,
        cap: float | Cap | None = None,
        draw_quantile: float = 1.0,
        warm_start: WarmStart | None = None,
    ) -> PosteriorFit:
        """Sample the posterior under `alpha` (n,) and bound it, or return the fit made before.

        A number stands for the `cap` [-M, M] without a center.

        Raises
        ------
        NotConverged
            If the chains have not converged, also not with more draws and after one retry with a
            longer warm-up and a higher adapt_delta, and the policy is "raise".
        """
        alpha = check_alpha(alpha, self.bound.n)
        if not alpha.any():
            raise InvalidInput(
                f"weights must not all be 0: {label} would learn nothing from the data; raise "
                "scale or shift"
            )
        clip = self.cap_of(cap)
        key = (alpha.tobytes(), None if clip is None else clip.key)
        if key not in self._kept:
            self._kept[key] = self._sample(alpha, clip, label, warm_start)
        draws, diagnostics = self._kept[key]
        unit = None if self.units is None else self.units.column
        if (key, draw_quantile, unit) not in self._bounds:
            center = None if clip is None else clip.reference
            found = self.bounds_of(draws, alpha, draw_quantile=draw_quantile, center=center)
            self._bounds[key, draw_quantile, unit] = found
        bounds, censored = self._clipped(self._bounds[key, draw_quantile, unit], clip)
        return PosteriorFit(
            alpha=alpha,
            cap=clip,
            draws=draws,
            bounds=bounds,
            diagnostics=diagnostics,
            censored=censored,
            fixed_draws=self.has_fixed_draws,
        )

    def exact_fit(
        self,
        alpha: FloatArray,
        *,
        cap: Cap,
        form: GridForm,
        grid: ParameterGrid,
        excess: FloatArray | None = None,
    ) -> PosteriorFit:
        """The censored posterior on a public grid, with draws for the owner's eyes."""
        alpha = check_alpha(alpha, self.bound.n)
        key = (alpha.tobytes(), *cap.key, grid, None if excess is None else excess.tobytes())
        if key not in self._exact:
            self._exact[key] = exact_posterior(self.bound, form, grid, alpha, cap, excess)
        exact = self._exact[key]
        draws = exact.confidential_draws(
            _OWNERS_DRAWS, self.streams.generator("exact posterior, the owner's draws")
        )
        found = self.bounds_of(draws, alpha, center=cap.reference)
        bounds, censored = self._clipped(found, cap)
        return PosteriorFit(
            alpha=alpha,
            cap=cap,
            draws=draws,
            bounds=bounds,
            diagnostics=None,
            censored=censored,
            exact=exact,
        )

    def _clipped(
        self, bounds: LipschitzBounds, cap: Cap | None
    ) -> tuple[LipschitzBounds, npt.NDArray[np.bool_] | None]:
        """Bounds no larger than the cap, and the records whose term met it."""
        if cap is None:
            return bounds, None
        if cap.below != cap.above:
            raise InvalidInput(
                f"cap must have equal ends: found {cap.below:g} below and {cap.above:g} above"
            )
        clipped = replace(
            bounds,
            by_record=np.minimum(bounds.by_record, cap.above),
            overall=min(bounds.overall, cap.above),
        )
        return clipped, bounds.by_record > cap.above

    def unweighted(self, *, draw_quantile: float = 1.0) -> PosteriorFit:
        """The fit with all weights 1."""
        ones = np.ones(self.bound.n)
        return self.fit(ones, label="unweighted fit", draw_quantile=draw_quantile)

    @property
    def has_fixed_draws(self) -> bool:
        """True if chains make the draws that were asked for, and no second try."""
        return self.settings.max_draws == self.settings.draws

    def by_unit(self, column: str | None) -> FitSession:
        """This session, or one over the same fits, with the rows that share `column` as a unit."""
        if column == (None if self.units is None else self.units.column):
            return self
        table, own = self.bound.table, self.bound.synthesized
        return replace(self, units=None if column is None else read_units(table, column, own))

    def bounds_of(
        self,
        draws: Draws,
        alpha: FloatArray,
        *,
        draw_quantile: float = 1.0,
        chosen: npt.NDArray[np.intp] | None = None,
        center: FloatArray | None = None,
    ) -> LipschitzBounds:
        """Bounds of records, or of units, at `draws`, or at those at the positions `chosen`.

        With a `center` (n,), of the log-likelihood less that of the record's own.
        """

        def terms(part: Draws) -> LogLik:
            own = self.bound.log_lik(part)
            return own if center is None else own.less(center)

        if self.units is None:
            log_lik = terms(draws)
            return bounds_of(
                log_lik if chosen is None else log_lik.at(chosen),
                alpha,
                draw_quantile=draw_quantile,
            )
        places = np.arange(draws.n_draws) if chosen is None else chosen
        size = max(1, _SUMS_AT_ONCE // self.units.n)

        def slices() -> Iterator[LogLik]:
            for start in range(0, places.size, size):
                yield terms(draws.part(places[start : start + size]))

        return bounds_by_unit(slices, alpha, self.units, draw_quantile=draw_quantile)

    def cap_of(self, cap: float | Cap | None) -> Cap | None:
        """`cap` as a model takes it: acting on the sum of a unit's terms, if there are units."""
        if cap is None:
            return None
        return replace(Cap.of(cap), unit=None if self.units is None else self.units.of)

    def take_fits(self, other: FitSession) -> None:
        """Take over the fits that a copy of this session has made, in another process perhaps."""
        self._kept.update(other._kept)
        self._bounds.update(other._bounds)
        self._exact.update(other._exact)
        for stream, draws in other._released.items():
            self._released[stream] = max(draws, self.releases_of(stream), key=len)

    def releases_of(self, stream: str) -> tuple[int, ...]:
        """Draws of each release made from this session under one name of streams, in order.

        The next one takes other draws and other random numbers: two releases that are the same
        would tell no more than one and cost as two.
        """
        return self._released.get(stream, ())

    def note_release(self, stream: str, n_draws: int) -> None:
        """Count a release of `n_draws` draws."""
        self._released[stream] = (*self.releases_of(stream), n_draws)

    @property
    def holds_unweighted(self) -> bool:
        """True if the unweighted fit was made."""
        return (np.ones(self.bound.n).tobytes(), None) in self._kept

    def for_report(self) -> FitSession:
        """A silent copy that holds no fit but the unweighted one, if that was made."""
        ones: _Key = (np.ones(self.bound.n).tobytes(), None)
        kept = {key: found for key, found in self._kept.items() if key == ones}
        bounds = {key: found for key, found in self._bounds.items() if key[0] == ones}
        return replace(self, progress=None, _kept=kept, _bounds=bounds, _exact={}, _released={})

    @cached_property
    def exposed(self) -> dict[str, str]:
        """Columns that a release of this table should not publish without a decision."""
        own = self.bound.synthesized
        told = weights_told(getattr(self.bound, "model", None))
        return {**exposed_columns(self.bound.table, own), **told}

    @property
    def n_fits(self) -> int:
        """Distinct fits made so far."""
        return len(self._kept) + len(self._exact)

    def _sample(
        self, alpha: FloatArray, cap: Cap | None, label: str, warm_start: WarmStart | None
    ) -> tuple[Draws, Diagnostics]:
        data = self.bound.stan_data(alpha, cap=cap)
        centered = cap is not None and cap.reference is not None  # else long tails: short steps
        settings = self.settings.clipped() if centered else self.settings
        again = settings.longer(clipped=centered)
        if warm_start is not None:  # metric and step size are nearly right already
            settings = replace(settings, warmup=max(_SHORTEST_WARMUP, settings.warmup // 4))
        sampling = Sampling(
            bound=self.bound,
            engine=self.engine,
            streams=self.streams,
            rule=self.rule,
            steps=self.steps_of,
        )
        # Clipped terms bend posteriors, and draws fixed beforehand allow one try.
        first = self.bound.first_try if cap is None and not self.has_fixed_draws else None
        made = sampling.converged(data, settings, again, warm_start, label, first=first)
        if not made[1].converged:
            self._report_not_converged(label, made[1])
        return made

    def _report_not_converged(self, label: str, diagnostics: Diagnostics) -> None:
        tried, more = "also not with more draws and a longer warm-up", ""
        if self.has_fixed_draws:
            tried = "within draws whose number was fixed beforehand"
            more = ", max_draws above draws to let chains go on"
        message = f"{label} did not converge, {tried}: {'; '.join(diagnostics.problems)}"
        if self.on_not_converged == "raise":
            raise NotConverged(
                f"{message}. Give more warm-up and draws{more}, or on_not_converged='warn' to "
                "release anyway, with that stated in the charge"
            )
        warnings.warn(message, stacklevel=2)

    def steps_of(self, label: str) -> Callable[[int, int], None] | None:
        """Where the progress of what has this label is reported, if anywhere."""
        report = self.progress
        if report is None:
            return None
        return lambda done, total: report(label, done, total)


def open_session(
    bound: BoundModel,
    *,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
    rule: ConvergenceRule | None = None,
    on_not_converged: str = "raise",
    progress: FitProgress | None = None,
) -> FitSession:
    """Choose the engine and the random streams for the fits of `bound`.

    Parameters
    ----------
    bound : BoundModel
        A model bound to confidential data.
    seed : int, optional
        For tests and papers. Without it the operating system's entropy is used.
    engine : str or Engine, default "auto"
        See `pyhybrid.engines.resolve_engine`.
    settings : SamplerSettings, optional
    rule : ConvergenceRule, optional
    on_not_converged : {"raise", "warn"}
        After more draws and one retry with a longer warm-up. "warn" goes on and is recorded in
        the charge.
    progress : callable, optional
        Called with (label, done, total).
    """
    check_choice(on_not_converged, "on_not_converged", ON_NOT_CONVERGED)
    return FitSession(
        bound=bound,
        streams=streams(seed),
        engine=resolve_engine(engine),
        settings=SamplerSettings.of(settings),
        rule=rule or ConvergenceRule(),
        on_not_converged=on_not_converged,
        progress=progress,
    )
