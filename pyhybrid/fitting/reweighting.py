r"""Re-weighting: raise weights where a record's bound leaves slack, at the same overall bound.

The step is :math:`\alpha_i^w = clip(k \alpha_i \Delta / \Delta_i, 0, 1)`; a refit under the new
weights has a bound :math:`\Delta^w` that grows with k. The search looks for the largest k whose
refitted bound stays at or below the starting one. The papers' studies make one step at a fixed k
instead: `Reweighting.published`.

References
----------
[V25] eq. 2.1 and alg. 1.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from pyhybrid.core.checks import check_count, check_flag, check_fraction, check_positive
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.privacy.weights import reweight

_SMALLEST_BRACKET = 1e-3
_LEAST_GAIN = 0.005  # of efficiency, for another round
_RISE_ALLOWED = 0.25  # nats; over 68 databases of Beta(0.5, 3) the bound rose by at most 0.10


@dataclass(frozen=True, kw_only=True)
class Reweighting:
    """How to re-weight: by a search on k, or with `published` by the papers' step at a fixed k.

    Attributes
    ----------
    k : float, default 0.95
        First constant tried, in (0, 1]; the papers' value is near right. The only one without
        `search`.
    tolerance : float, default 0.05
        The search ends when the refitted bound is below the starting one by less than this, nats.
        Without `search`, how far the bound may rise.
    max_refits : int, default 8
        Refits at most, over all rounds.
    recursive : bool, default True
        Repeat the step from its own result while that raises the efficiency by 0.005 or more.
        False is one round, in which k is still searched for.
    search : bool, default True
        Look for the largest k whose bound does not rise. False takes `k` as it is, in one round.
    """

    k: float = 0.95
    tolerance: float = 0.05
    max_refits: int = 8
    recursive: bool = True
    search: bool = True

    def __post_init__(self) -> None:
        check_fraction(self.k, "k")
        check_positive(self.tolerance, "tolerance")
        check_count(self.max_refits, "max_refits")
        check_flag(self.recursive, "recursive")
        check_flag(self.search, "search")
        if self.recursive and not self.search:
            raise InvalidInput("a step at a fixed k is made once: give recursive=False with it")

    @classmethod
    def published(cls, k: float = 0.95, *, tolerance: float = _RISE_ALLOWED) -> Reweighting:
        """The step of the papers' studies [V25 eq. 2.1 and sec. 2]: one refit at this k, no search.

        It is accepted if the bound falls, or rises by at most `tolerance` nats; else the weights it
        started from are kept, with a warning. What is charged is the bound of the fit that is
        released from, so that a rise is paid for.
        """
        return cls(k=k, tolerance=tolerance, max_refits=1, recursive=False, search=False)


@dataclass(frozen=True, kw_only=True)
class ReweightingStep:
    """One refit: its round, k, bound (nats), efficiency (mean of the bounds by record over the
    largest), and whether it is within the bound; NaN if it did not converge. Confidential."""

    round: int
    k: float
    bound: float
    efficiency: float
    accepted: bool

    @property
    def converged(self) -> bool:
        """True if the refit converged, so that it has a bound."""
        return not np.isnan(self.bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reweighted:
    """Fits before (`start`) and after (`fit`) a re-weighting, the same if no safe step was found;
    all `steps`, and the `constants` k of the rounds that lead from one to the other.
    Confidential."""

    start: PosteriorFit
    fit: PosteriorFit
    steps: tuple[ReweightingStep, ...] = ()
    constants: tuple[float, ...] = ()


def reweighted_fit(session: FitSession, start: PosteriorFit, plan: Reweighting) -> Reweighted:
    """Re-weight `start` by `plan`. The bound of the result is never above the starting one, at a
    fixed k by no more than the tolerance; else the starting fit is returned with a warning."""
    limit = start.bounds.overall
    if not (np.isfinite(limit) and limit > 0):
        raise InvalidInput(f"re-weighting needs a finite bound above 0: found {limit:g}")
    if not plan.search:
        limit += plan.tolerance
    best = start
    steps: list[ReweightingStep] = []
    constants: list[float] = []
    while len(steps) < plan.max_refits:
        refit, k = _largest_within(session, best, limit, plan, steps, len(constants) + 1)
        if refit is None:
            break
        gain = refit.bounds.efficiency - best.bounds.efficiency
        if best is start or gain > 0:
            best = refit
            constants.append(k)
        if not plan.recursive or gain < _LEAST_GAIN:
            break
    if best is start and (plan.search or steps[-1].converged):
        why = (
            f"re-weighting found no weights within the bound in {len(steps)} refits"
            if plan.search
            else f"re-weighting at k = {plan.k:.4g} raised the bound by more than the tolerance of "
            f"{plan.tolerance:g}"
        )
        warnings.warn(f"{why}: the weights it started from are released", stacklevel=2)
    return Reweighted(start=start, fit=best, steps=tuple(steps), constants=tuple(constants))


def reweighted_alike(session: FitSession, start: PosteriorFit, path: Reweighted) -> PosteriorFit:
    """`start` re-weighted by the constants of `path`. A search would find others by its own Monte
    Carlo error, which is no effect of a record."""
    fit = start
    for k in path.constants:
        fit = _refit(session, fit, k)
    return fit


def _largest_within(
    session: FitSession,
    base: PosteriorFit,
    limit: float,
    plan: Reweighting,
    steps: list[ReweightingStep],
    number: int,
) -> tuple[PosteriorFit | None, float]:
    """The refit of `base` with the largest bound within `limit`, None if there is none, and its k:
    as the bound is about proportional to k, k is scaled, or its bracket halved. Appends to `steps`.

    All refits start from `base`: then k -> bound is as smooth as the draws allow.
    """
    low, high, k = 0.0, 1.0, plan.k
    best: tuple[PosteriorFit | None, float] = (None, k)
    while len(steps) < plan.max_refits and (high - low > _SMALLEST_BRACKET or best[0] is None):
        bound = efficiency = float("nan")
        try:
            fit = _refit(session, base, k)
            bound, efficiency = fit.bounds.overall, fit.bounds.efficiency
        except NotConverged as error:
            warnings.warn(f"the search ends here: {error}", stacklevel=4)
        within = bool(bound <= limit)
        steps.append(
            ReweightingStep(round=number, k=k, bound=bound, efficiency=efficiency, accepted=within)
        )
        if not steps[-1].converged:
            break
        if within:
            if best[0] is None or bound > best[0].bounds.overall:
                best = fit, k
            if k >= 1 or limit - bound < plan.tolerance:
                break
        low, high = (k, high) if within else (low, k)
        # Scaled if that is well within the bracket, or 1 where that is its end; else the middle.
        scaled, margin = k * limit / bound if bound > 0 else 1.0, 0.1 * (high - low)
        if high == 1.0 and scaled >= 1.0:
            k = 1.0
        else:
            k = scaled if low + margin < scaled < high - margin else (low + high) / 2
    return best


def _refit(session: FitSession, base: PosteriorFit, k: float) -> PosteriorFit:
    """One step of the formula from the bounds of `base`, and the fit under these weights."""
    levels = base.bounds
    return session.fit(
        reweight(base.alpha, levels.by_record, k=k, bound=levels.overall),
        label=f"re-weighting, k = {k:.4g}",
        draw_quantile=levels.draw_quantile,
        warm_start=base.draws.warm_start(),
    )
