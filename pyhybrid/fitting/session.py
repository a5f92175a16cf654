"""Fits of one bound model under one set of choices, made once and shared.

Fits are kept by their weights, so that mechanisms that start from the unweighted fit share it. All
fits of a session use one engine seed, so that a bound changes smoothly with the weights.

**Until chains have converged.** There are two tries: with long steps under the unit metric where
what is sampled has about the same scale in the posterior, and a careful one with a longer warm-up.
A fit that needs nothing but more draws continues its chains, in blocks that double what there is,
up to a public limit (`SamplerSettings.max_draws`); where that is the first number of draws, there
is one try.

**Units of privacy.** Rows that share a value of a column can be one unit: their terms are summed,
and bounds, risks and accounts are then those of whole units. `FitSession.without` is the session
in which one record, or unit, has weight 0 in every fit, on the same coding of the predictors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_alpha, check_choice, did_you_mean
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.engines import (
    ContinuingEngine,
    ConvergenceRule,
    Diagnostics,
    Draws,
    Engine,
    SamplerSettings,
    WarmStart,
    diagnose,
    resolve_engine,
)
from pyhybrid.engines.base import CLIPPED
from pyhybrid.engines.convergence import worst_of
from pyhybrid.engines.programs import block_text
from pyhybrid.fitting.exact import ExactPosterior, exact_posterior
from pyhybrid.models.base import BoundModel
from pyhybrid.models.families.two_block import check_one_block
from pyhybrid.models.formula.values import first_row
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.privacy.bounds import LipschitzBounds, bounds_of, scaled_maxima
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.log_lik import LogLik, Units, unit_terms
from pyhybrid.privacy.weights import risk_of
from pyhybrid.running.tasks import Progress

FitProgress = Progress
_Key = tuple[bytes, "tuple[object, ...] | None", int]  # weights, cap of center and units, draws
_OWNERS_DRAWS = 1000  # of an exact posterior, for bounds and the owner's report
_SLOW = 10_000  # records from which on a warm-up takes seconds
_SHORTEST_WARMUP = 150  # below this Stan does not adapt the metric
_APART = 1.1  # R-hat of chains that more draws will not bring together
_PROBE: dict[str, Any] = {"warmup": 200, "draws": 100, "max_treedepth": 6}
_WANDERS = 0.2  # of a probe's transitions that end at the largest depth: trajectories of minutes
_WANDERED = 0.005  # of those of a first try: a second one would take longer
_FLAT_DEPTH = 8  # of trees over clipped terms without a center, so that this is seen in seconds
_BLOCKS = 4  # times the first number of draws, where the settings set no limit
ON_NOT_CONVERGED = ("raise", "warn")


@dataclass(frozen=True, kw_only=True, eq=False)
class PosteriorFit:
    """Draws from a weighted posterior; `bounds` of the alpha-weighted log-likelihood less a cap's
    center. `exact` is a posterior on its grid, whose released draws are drawn anew; `censored` (n,)
    met an end of the cap. Confidential, but for the draws."""

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
        """True of an exact posterior, and of chains that meet the rule."""
        return self.diagnostics is None or self.diagnostics.converged

    def __repr__(self) -> str:
        return f"<PosteriorFit of {self.alpha.size} records, {self.draws.n_draws} draws>"


@dataclass(frozen=True, kw_only=True, eq=False)
class FitStore:
    """Fits that a session has made, their bounds, and positions of the draws that releases took by
    the name of their streams, in order: no draw is released twice."""

    sampled: dict[_Key, tuple[Draws, Diagnostics]] = field(default_factory=dict)
    bounds: dict[tuple[_Key, float, str | None], LipschitzBounds] = field(default_factory=dict)
    exact: dict[tuple[object, ...], ExactPosterior] = field(default_factory=dict)
    released: dict[str, list[npt.NDArray[np.intp]]] = field(default_factory=dict)


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
    left_out: int | None = None
    near: WarmStart | None = None
    store: FitStore = field(default_factory=FitStore, repr=False)

    def fit(
        self,
        alpha: FloatArray,
        *,
        label: str,
        cap: float | Cap | None = None,
        draw_quantile: float = 1.0,
        warm_start: WarmStart | None = None,
    ) -> PosteriorFit:
        """Sample the posterior under `alpha` (n,) and bound it, or return the fit made before. A
        number stands for the `cap` [-M, M] without a center."""
        alpha = np.where(self.present, check_alpha(alpha, self.bound.n), 0.0)
        if not alpha.any():
            raise InvalidInput(
                f"weights must not all be 0: {label} would learn nothing from the data; raise "
                "scale or shift"
            )
        clip = self.cap_of(cap)
        key = alpha.tobytes(), None if clip is None else clip.key, self.settings.draws
        if key not in self.store.sampled:
            near = self.near if warm_start is None else warm_start
            self.store.sampled[key] = self._sample(alpha, clip, label, near)
        draws, diagnostics = self.store.sampled[key]
        bounds_key = (key, draw_quantile, self.unit)
        if bounds_key not in self.store.bounds:
            center = None if clip is None else clip.reference
            self.store.bounds[bounds_key] = self.bounds_of(
                draws, alpha, draw_quantile=draw_quantile, center=center
            )
        fit = {"draws": draws, "diagnostics": diagnostics, "fixed_draws": self.has_fixed_draws}
        return _bounded(self.store.bounds[bounds_key], clip, alpha=alpha, **fit)

    def exact_fit(
        self, alpha: FloatArray, *, cap: Cap, grid: ParameterGrid, excess: FloatArray | None = None
    ) -> PosteriorFit:
        """The censored posterior on a public grid, with draws for the owner's report."""
        alpha = check_alpha(alpha, self.bound.n)
        key = (alpha.tobytes(), *cap.key, grid, None if excess is None else excess.tobytes())
        if key not in self.store.exact:
            self.store.exact[key] = exact_posterior(self.bound, grid, alpha, cap, excess)
        exact = self.store.exact[key]
        draws = exact.confidential_draws(
            _OWNERS_DRAWS, self.streams.generator("exact posterior, the owner's draws")
        )
        bounds = self.bounds_of(draws, alpha, center=cap.reference)
        return _bounded(bounds, cap, alpha=alpha, draws=draws, diagnostics=None, exact=exact)

    def unweighted(self, *, draw_quantile: float = 1.0) -> PosteriorFit:
        """The fit with all weights 1."""
        ones = np.where(self.present, 1.0, 0.0)
        return self.fit(ones, label="unweighted fit", draw_quantile=draw_quantile)

    def log_lik(self, fit: PosteriorFit) -> FloatArray:
        """Log-likelihood of each record, unweighted, in each draw of a fit, shape (S, n), as the
        papers' programs give it under weights of 1. Confidential."""
        blocks = [*self.bound.log_lik_blocks(fit.draws)]
        return np.concatenate(blocks, axis=1)[:, self.bound.row_of]

    @property
    def has_fixed_draws(self) -> bool:
        """True if chains make the draws that were asked for, and no second try."""
        return self.settings.max_draws == self.settings.draws

    # --- Units of privacy ------------------------------------------------------------------------

    def by_unit(self, column: str | None) -> FitSession:
        """This session, or one over the same fits, with the rows that share `column` as a unit."""
        if column == self.unit:
            return self
        table, synthesized = self.bound.table, self.bound.synthesized
        units = None if column is None else read_units(table, column, synthesized)
        return replace(self, units=units)

    @property
    def unit(self) -> str | None:
        """The column whose rows are a unit; None if each record is one."""
        return None if self.units is None else self.units.column

    def without(self, unit: int, near: WarmStart) -> FitSession:
        """This session without one record, or unit, by its position, for fits of its own that start
        from where those with it are."""
        return replace(self, left_out=unit, near=near, store=FitStore())

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """False for the records that were left out, shape (n,)."""
        return np.full(self.bound.n, True) if self.left_out is None else self.owner != self.left_out

    @property
    def n_units(self) -> int:
        """Number of units of privacy, records if there are none."""
        n = self.bound.n if self.units is None else self.units.n
        return n if self.left_out is None else n - 1

    @property
    def owner(self) -> npt.NDArray[np.intp]:
        """Unit of each record, from 0, shape (n,)."""
        return np.arange(self.bound.n) if self.units is None else self.units.of

    def once(self, values: FloatArray) -> FloatArray:
        """Values of the units present, each once, from values (n,) that a unit's records share."""
        by_unit = values if self.units is None else values[self.units.first]
        return by_unit if self.left_out is None else np.delete(by_unit, self.left_out)

    def by_record(self, values: FloatArray) -> FloatArray:
        """The inverse of `once`: the value of its unit for each record, (n,), 0 if left out."""
        whole = values if self.left_out is None else np.insert(values, self.left_out, 0.0)
        return whole[self.owner]

    def bounds_of(
        self,
        draws: Draws,
        alpha: FloatArray,
        *,
        draw_quantile: float = 1.0,
        center: FloatArray | None = None,
    ) -> LipschitzBounds:
        """Bounds of records, or of units, at `draws`; with a `center` (n,), of the log-likelihood
        less that of the record's own."""

        log_lik = self.bound.log_lik(draws)
        terms, weights = self._of_units(log_lik if center is None else log_lik.less(center), alpha)
        bounds = bounds_of(terms, weights, draw_quantile=draw_quantile)
        return replace(bounds, by_record=bounds.by_record[self.owner])

    def risks(self, fit: PosteriorFit, risk: str) -> FloatArray:
        """Risk of alpha_i f_i, or of the sum over a record's unit, at the kept draws, (n,), nats;
        infinite where a record of positive weight is unbounded."""
        log_lik = self.bound.log_lik(fit.draws).at(np.flatnonzero(fit.bounds.kept_draws))
        terms, weights = self._of_units(log_lik, fit.alpha)
        return scaled_maxima(risk_of(terms, risk), weights)[self.owner]

    def _of_units(self, log_lik: LogLik, alpha: FloatArray) -> tuple[LogLik, FloatArray]:
        """Terms of the units and weights of 1, or, if each record is one, what was given."""
        if self.units is None:
            return log_lik, alpha
        with np.errstate(invalid="ignore"):  # inf - inf in a unit: NaN, an unbounded one
            terms = unit_terms(log_lik, alpha, self.units.of)
        return LogLik.of(terms), np.ones(self.units.n)

    def cap_of(self, cap: float | Cap | None) -> Cap | None:
        """`cap` as a model takes it: acting on the sum of a unit's terms, if there are units."""
        if cap is None:
            return None
        return replace(Cap.of(cap), unit=None if self.units is None else self.units.of)

    @property
    def n_fits(self) -> int:
        """Distinct fits made so far."""
        return len(self.store.sampled) + len(self.store.exact)

    # --- Sampling --------------------------------------------------------------------------------

    def _sample(
        self, alpha: FloatArray, cap: Cap | None, label: str, warm_start: WarmStart | None
    ) -> tuple[Draws, Diagnostics]:
        if not self.bound.blocks:
            return self._sample_one(alpha, cap, label, warm_start)
        if cap is not None:
            check_one_block(self.bound)
        fits = {}
        for block in self.bound.blocks:
            alone = replace(self, bound=block.bound, streams=self.streams.child(block.name))
            start = None if warm_start is None else warm_start.of_block(block.name)
            fits[block.name] = alone._sample_one(
                alpha[block.at], None, f"{label}, {block.name}", start
            )
        draws = Draws.of_blocks({name: fit[0] for name, fit in fits.items()})
        return draws, worst_of({name: fit[1] for name, fit in fits.items()})

    def _sample_one(
        self, alpha: FloatArray, cap: Cap | None, label: str, warm_start: WarmStart | None
    ) -> tuple[Draws, Diagnostics]:
        data = self.bound.stan_data(alpha, cap=cap)
        if self._may_be_flat(cap) and self._wanders(data, label):
            raise self._too_flat(cap, label)
        draws, diagnostics = self._chains(data, cap, warm_start, label)
        if not diagnostics.converged:
            tried = "also not with more draws and a longer warm-up"
            if self.has_fixed_draws:
                tried = "within draws whose number was fixed beforehand (max_draws)"
            whose = f"{', '.join(self.bound.synthesized)}: {label}"
            message = f"{whose} did not converge, {tried}: {'; '.join(diagnostics.problems)}"
            if self.on_not_converged == "raise":
                other = ", or the default program, which samples the same posterior"
                raise NotConverged(
                    f"{message}. Give more warm-up and draws, an adapt_delta nearer to 1"
                    f"{other if self.bound.program.name.startswith('published/') else ''}, or "
                    "on_not_converged='warn' to release anyway, with that stated in the charge"
                )
            warnings.warn(message, stacklevel=2)
        return draws, diagnostics

    def _may_be_flat(self, cap: Cap | None) -> bool:
        return cap is not None and cap.reference is None and self.on_not_converged == "raise"

    def _wanders(self, data: dict[str, Any], label: str) -> bool:
        """Whether a posterior is so flat that chains wander for minutes and do not converge."""
        draws = self.engine.sample(
            self.bound.program,
            data,
            seed=self.streams.engine_seed("probe"),
            settings=replace(self.settings, max_draws=None, **_PROBE),
            progress=self.steps_of(f"{label}, a probe"),
        )
        return bool(np.mean(draws.treedepth >= _PROBE["max_treedepth"]) > _WANDERS)

    def _too_flat(self, cap: Any, label: str) -> NotConverged:
        return NotConverged(
            f"{', '.join(self.bound.synthesized)}: {label} would not converge: clipped at "
            f"{cap.below:g} nats, its terms say next to nothing, and chains wander; raise "
            "epsilon, give a center (a calibration, or center=), or a model with prior='normal'"
        )

    def _tries(self, cap: Cap | None, warm_start: WarmStart | None) -> list[SamplerSettings]:
        """Settings of the first try, and of one that follows unless chains have converged."""
        centered = cap is not None and cap.reference is not None  # else long tails: short steps
        settings = self.settings.unless_asked(CLIPPED) if centered else self.settings
        first = self.bound.first_try
        near = warm_start is not None or (
            centered and first is not None and not self.has_fixed_draws
        )
        shorter = replace(settings, warmup=max(_SHORTEST_WARMUP, self.settings.warmup // 4))
        if near:  # the metric is nearly right
            settings = shorter
        if self._may_be_flat(cap):
            settings = replace(settings, max_treedepth=min(settings.max_treedepth, _FLAT_DEPTH))
        if self.has_fixed_draws:
            return [settings]
        last = self.settings.longer(clipped=centered)
        if first is not None and cap is None:  # clipped terms bend posteriors
            settings = settings.unless_asked(**first)
            if settings.metric == "unit" and self.bound.n >= _SLOW:  # a step alone is to be found
                settings = replace(settings, warmup=shorter.warmup)
        return [settings, replace(last, max_draws=last.draws)]

    def _chains(
        self, data: dict[str, Any], cap: Cap | None, warm_start: WarmStart | None, label: str
    ) -> tuple[Draws, Diagnostics]:
        """Draws of the first of the tries that converges, or of the last, and their diagnostics:
        as many draws as the rule asks for and the settings allow, where nothing else lacks."""
        program, part = self.bound.program, 1
        # not where another seed would change the program's data
        can_go_on = "_rng" not in block_text(program, "transformed data")
        for number, settings in enumerate(self._tries(cap, warm_start)):
            name = f"{label}, again" if number else label
            draws = self.engine.sample(
                program,
                data,
                seed=self.streams.engine_seed("posterior"),
                settings=settings,
                warm_start=None if number else warm_start,
                progress=self.steps_of(name),
            )
            diagnostics = diagnose(draws, self.rule, self.bound.monitored(draws))
            most = _BLOCKS * settings.draws if settings.max_draws is None else settings.max_draws
            while can_go_on and isinstance(self.engine, ContinuingEngine):
                done = draws.energy.shape[1]
                diverges = diagnostics.n_divergent > self.rule.divergent_share * draws.n_draws
                apart = diverges or diagnostics.max_rhat >= _APART
                if diagnostics.converged or apart or done >= most:
                    break
                part += 1
                following = self.engine.more(
                    program,
                    data,
                    draws,
                    seed=self.streams.engine_seed(f"posterior, part {part}"),
                    n_draws=min(done, most - done),
                    progress=self.steps_of(f"{name}, more draws"),
                )
                draws = draws.followed_by(following)
                diagnostics = diagnose(draws, self.rule, self.bound.monitored(draws))
            if diagnostics.converged:
                break
            wandered = diagnostics.n_max_treedepth > _WANDERED * draws.n_draws
            if wandered and not number and self._may_be_flat(cap):
                raise self._too_flat(cap, label)
        return draws, replace(diagnostics, attempts=number + 1)

    def steps_of(self, label: str) -> Callable[[int, int], None] | None:
        """Where the progress of what has this label is reported, if anywhere."""
        report = self.progress
        if report is None:
            return None
        report(f"{label}: {self.engine.name} reads the program, or compiles it", 0, 0)
        return lambda done, total: report(label, done, total)


def _bounded(bounds: LipschitzBounds, cap: Cap | None, **fit: Any) -> PosteriorFit:
    """A fit with bounds no larger than the cap, and the records whose term met it."""
    if cap is None:
        return PosteriorFit(cap=None, bounds=bounds, **fit)
    if cap.below != cap.above:
        raise InvalidInput(
            f"cap must have equal ends: found {cap.below:g} below and {cap.above:g} above"
        )
    by_record, overall = np.minimum(bounds.by_record, cap.above), min(bounds.overall, cap.above)
    clipped = replace(bounds, by_record=by_record, overall=overall)
    return PosteriorFit(cap=cap, bounds=clipped, censored=bounds.by_record > cap.above, **fit)


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How fits are made, as every `release` takes it by these names.

    Attributes
    ----------
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
        Called with (label, done, total). Omitted in a notebook: a bar below the cell.
    """

    seed: int | None = None
    engine: str | Engine = "auto"
    settings: SamplerSettings | None = None
    rule: ConvergenceRule | None = None
    on_not_converged: str = "raise"
    progress: FitProgress | None = None

    def session(self, bound: BoundModel, random: Streams | None = None) -> FitSession:
        """Choose the engine for fits of `bound`, and random streams if none are given."""
        check_choice(self.on_not_converged, "on_not_converged", ON_NOT_CONVERGED)
        return FitSession(
            bound=bound,
            streams=streams(self.seed) if random is None else random,
            engine=resolve_engine(self.engine),
            settings=SamplerSettings.of(self.settings),
            rule=self.rule or ConvergenceRule(),
            on_not_converged=self.on_not_converged,
            progress=self.progress,
        )


def open_session(bound: BoundModel, **options: Any) -> FitSession:
    """Choose the engine and the random streams for the fits of `bound`, a model bound to
    confidential data; seed, engine, settings, rule, on_not_converged, progress: `FitOptions`."""
    return FitOptions(**options).session(bound)


def read_units(table: pd.DataFrame, column: str, synthesized: Sequence[str]) -> Units:
    """The units that `column`, kept and without missing values, names."""
    if not isinstance(column, str) or column not in table.columns:
        known = ", ".join(str(name) for name in table.columns[:20])
        raise InvalidInput(
            f"unit must be a column of the data: {column!r} is not among {known}"
            f"{did_you_mean(column, table.columns)}"
        )
    if column in synthesized:
        raise InvalidInput(
            f"unit must be a column that is not synthesized: {column!r} is; give the column that "
            "says which rows belong together"
        )
    try:
        codes = pd.factorize(table[column])[0]
    except TypeError:  # lists
        raise InvalidInput(f"unit {column!r} must hold numbers, text or dates") from None
    missing = codes < 0
    if missing.any():
        raise InvalidInput(
            f"unit {column!r} must not be missing: {first_row(table.index, missing)} is; "
            "whose row it is must be known"
        )
    return Units(column=column, of=codes.astype(np.intp))


def check_rows_per_unit(
    table: pd.DataFrame, column: str | None, rows: int | None, synthesized: Sequence[str]
) -> None:
    """Raise InvalidInput if a unit has more rows than the noise is made for; `rows` is public."""
    if column is None or rows is None:
        return
    units = read_units(table, column, synthesized)
    beyond = pd.Series(units.of).groupby(units.of).cumcount() >= rows
    if beyond.any():
        raise InvalidInput(
            f"units must have at most rows_per_unit={rows} rows: "
            f"{first_row(table.index, beyond.to_numpy())} is one more of its {column!r}; keep as "
            "many by a rule that looks at one unit alone"
        )
