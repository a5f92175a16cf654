r"""Re-weighting: raise weights where a record's bound leaves slack, at the same overall bound.

The step is :math:`\alpha_i^w = clip(k \alpha_i \Delta / \Delta_i, 0, 1)`; a refit under the new
weights has a bound :math:`\Delta^w` that grows with k. The search looks for the largest k whose
refitted bound stays at or below the starting one. Before each refit the bound is estimated from
the draws at hand by Pareto-smoothed importance sampling, and candidates without a gain are not
fitted. The papers' studies make one step at a fixed k instead: `Reweighting.published`.

Under another `risk` the same is done with the range or the deviation of the weighted log-likelihood
in place of its bound: with what accounting by range or mu charges where weights do not move.

References
----------
[V25] eq. 2.1 and alg. 1; Vehtari, Simpson, Gelman, Yao, Gabry (2024), Pareto smoothed importance
sampling, JMLR 25:72.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_flag,
    check_fraction,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.privacy.bounds import LipschitzBounds
from pyhybrid.privacy.weights import RISKS, reweight

_TRUSTED_PARETO_K = 0.7
_SMALLEST_BRACKET = 1e-3
_MOST_CANDIDATES = 60
_LEAST_GAIN = 0.005
_NEAR, _SHARE_NEAR = 0.9, 0.95
_RISE_ALLOWED = 0.25  # nats; over 68 databases of Beta(0.5, 3) the bound rose by at most 0.10


@dataclass(frozen=True, kw_only=True)
class Reweighting:
    """How to re-weight: by a search on k, or with `published` by the papers' step at a fixed k.

    The search is the better one for a release: its bound never rises, and it leaves less slack. A
    fixed k does neither: how far the bound moves is only seen after the refit, and it may rise.

    Attributes
    ----------
    k : float, default 0.95
        First constant tried, in (0, 1]; the papers' value is near right. The only one without
        `search`.
    tolerance : float, default 0.05
        The search ends when the refitted bound is below the starting one by less than this, nats.
        Without `search`, how far the bound may rise. Of a range or deviation, a share of it.
    max_refits : int, default 8
        Refits at most, over all rounds.
    recursive : bool, default True
        Repeat the step from its own result until no slack is left: 95 % of the records with a
        weight strictly between 0 and 1 within 10 % of the bound, or efficiency gains under 0.005.
        False is one round, in which k is still searched for.
    search : bool, default True
        Look for the largest k whose bound does not rise. False takes `k` as it is, in one round.
    risk : {"size", "range", "deviation"}, default "size"
        What is leveled and must not rise: the bound, as in the papers, or the range or deviation of
        the weighted log-likelihood over the posterior. The charge by range or mu, which counts how
        weights move when a record leaves, can rise all the same: see it before and after.
    """

    k: float = 0.95
    tolerance: float = 0.05
    max_refits: int = 8
    recursive: bool = True
    search: bool = True
    risk: str = "size"

    def __post_init__(self) -> None:
        check_choice(self.risk, "risk", RISKS)
        check_fraction(self.k, "k")
        check_positive(self.tolerance, "tolerance")
        check_count(self.max_refits, "max_refits")
        for name in ("recursive", "search"):
            check_flag(getattr(self, name), name)
        if self.recursive and not self.search:
            raise InvalidInput("a step at a fixed k is made once: give recursive=False with it")

    @classmethod
    def published(cls, k: float = 0.95, *, tolerance: float = _RISE_ALLOWED) -> Reweighting:
        """The step of the papers' studies: one refit at this k, and no search.

        It is accepted if the bound falls, or rises by at most `tolerance`; else the weights it
        started from are kept, with a warning. What is charged is the bound of the fit that is
        released from, so that a rise is paid for. For studies that repeat the papers; for a
        release `Reweighting()` gives more utility at a bound that does not rise.

        Parameters
        ----------
        k : float, default 0.95
            In (0, 1].
        tolerance : float, default 0.25
            Nats.

        References
        ----------
        [V25] eq. 2.1 and sec. 2.
        """
        return cls(k=k, tolerance=tolerance, max_refits=1, recursive=False, search=False)


@dataclass(frozen=True, kw_only=True)
class ReweightingStep:
    """One candidate: `estimated_bound` (nats) from importance sampling, NaN where not trusted;
    `bound` and `efficiency`, mean(D_i)/D, of the refit, NaN where it was saved. Confidential."""

    round: int
    k: float
    estimated_bound: float
    bound: float
    efficiency: float
    accepted: bool

    @property
    def refitted(self) -> bool:
        """False if the estimate saved the refit."""
        return not np.isnan(self.bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reweighted:
    """Fits before (`start`) and after (`fit`) a re-weighting, the same if no safe step was found,
    all candidates and the fits each round started from. Confidential."""

    start: PosteriorFit
    fit: PosteriorFit
    steps: tuple[ReweightingStep, ...]
    rounds: tuple[PosteriorFit, ...] = ()
    risk: str = "size"

    @property
    def constants(self) -> tuple[float, ...]:
        """The k of each round that was taken."""
        taken = []
        for number in range(1, len(self.rounds) + 1):
            found = [s for s in self.steps if s.round == number and s.accepted]
            taken.append(max(found, key=lambda step: step.bound).k)
        return tuple(taken)

    @property
    def refits_saved(self) -> int:
        """Candidates that the importance estimate ruled out without a refit."""
        return sum(not step.refitted for step in self.steps)


def reweighted_fit(session: FitSession, start: PosteriorFit, plan: Reweighting) -> Reweighted:
    """Re-weight `start` by `plan`. The bound of the result is never above the starting one, at a
    fixed k by no more than the tolerance; else the starting fit is returned with a warning."""
    limit = session.leveled(start, plan.risk).overall
    if not (np.isfinite(limit) and limit > 0):
        raise InvalidInput(f"re-weighting needs a finite bound above 0: found {limit:g}")
    search = _Search(session=session, plan=plan, limit=limit)
    if not plan.search:
        return search.published(start)
    best, number, bases = start, 1, []
    while True:
        refit = search.round(best, number)
        if refit is None:
            break
        gain = search.leveled(refit).efficiency - search.leveled(best).efficiency
        if best is start or gain > 0:
            bases.append(best)
            best, number = refit, number + 1
        spent = search.refits >= plan.max_refits
        if not plan.recursive or spent or gain < _LEAST_GAIN or search.no_slack_left(best):
            break
    if best is start:
        warnings.warn(
            f"re-weighting found no weights within the bound in {search.refits} refits: the "
            "weights it started from are released",
            stacklevel=2,
        )
    return Reweighted(
        start=start, fit=best, steps=tuple(search.steps), rounds=tuple(bases), risk=plan.risk
    )


def reweighted_alike(session: FitSession, start: PosteriorFit, path: Reweighted) -> PosteriorFit:
    """`start` re-weighted by the constants of `path`. A search would find others by its own Monte
    Carlo error, which is no effect of a record."""
    fit = start
    for k in path.constants:
        levels = session.leveled(fit, path.risk)
        alpha = reweight(fit.alpha, levels.by_record, k=k, bound=levels.overall)
        fit = session.fit(
            alpha,
            label=f"re-weighting, k = {k:.4g}",
            draw_quantile=fit.bounds.draw_quantile,
            warm_start=fit.draws.warm_start(),
        )
    return fit


class _Search:
    """State of the search on k: what was tried, and how many refits were spent."""

    def __init__(self, *, session: FitSession, plan: Reweighting, limit: float) -> None:
        self.session, self.plan, self.limit = session, plan, limit
        self.tolerance = plan.tolerance * (1.0 if plan.risk == "size" else limit)
        self.steps: list[ReweightingStep] = []
        self.refits = 0
        self._leveled: dict[PosteriorFit, LipschitzBounds] = {}

    def leveled(self, fit: PosteriorFit) -> LipschitzBounds:
        """The sizes, ranges or deviations of this fit that are leveled."""
        if fit not in self._leveled:
            self._leveled[fit] = self.session.leveled(fit, self.plan.risk)
        return self._leveled[fit]

    def no_slack_left(self, fit: PosteriorFit) -> bool:
        """True if nearly all records whose weight could rise are near the overall bound."""
        free, levels = (fit.alpha > 0) & (fit.alpha < 1), self.leveled(fit)
        near = levels.by_record[free] >= _NEAR * levels.overall
        return not free.any() or bool(near.mean() >= _SHARE_NEAR)

    def published(self, start: PosteriorFit) -> Reweighted:
        """One step at the k of the plan, accepted unless the bound rises beyond the tolerance."""
        k, levels, risk = self.plan.k, self.leveled(start), self.plan.risk
        self.limit += self.tolerance
        alpha = reweight(start.alpha, levels.by_record, k=k, bound=levels.overall)
        fit = self._refit(alpha, start, f"re-weighting, k = {k:.4g}")
        self._note(1, k, float("nan"), fit)
        if fit is not None and self.leveled(fit).overall <= self.limit:
            return Reweighted(
                start=start, fit=fit, steps=tuple(self.steps), rounds=(start,), risk=risk
            )
        if fit is not None:
            warnings.warn(
                f"re-weighting at k = {k:.4g} raised the bound by more than the tolerance of "
                f"{self.plan.tolerance:g}: the weights it started from are released; lower k, or "
                "search for it with Reweighting()",
                stacklevel=3,
            )
        return Reweighted(start=start, fit=start, steps=tuple(self.steps), risk=risk)

    def round(self, base: PosteriorFit, number: int) -> PosteriorFit | None:
        """Best safe refit of one application of the formula to `base`, or None."""
        low, high, safe = 0.0, 1.0, 0.0
        k, best, nearest, levels = self.plan.k, None, base, self.leveled(base)
        for _ in range(_MOST_CANDIDATES):
            if self.refits >= self.plan.max_refits:
                break
            alpha = reweight(base.alpha, levels.by_record, k=k, bound=levels.overall)
            estimate = estimated_bound(self.session, nearest, alpha, self.plan.risk)
            last = high - low < _SMALLEST_BRACKET
            if not last and self._promises_nothing(k, estimate):
                self._note(number, k, estimate, None)
                bound = estimate
            else:
                # Always from the same start: then k -> bound is as smooth as the draws allow.
                fit = self._refit(alpha, base, f"re-weighting, k = {k:.4g}")
                self._note(number, k, estimate, fit)
                if fit is None:
                    break
                nearest, bound = fit, self.leveled(fit).overall
                if bound <= self.limit:
                    best = fit if best is None or bound > self.leveled(best).overall else best
                    if last or self.limit - bound < self.tolerance or k >= 1:
                        break
                    safe = k
                elif last and best is not None:
                    break
                else:  # what the draws before this refit said of smaller k no longer holds
                    low = safe
            low, high = (k, high) if bound <= self.limit else (low, k)
            k = _next_k(k, bound, self.limit, low, high)
        return best

    def _promises_nothing(self, k: float, estimate: float) -> bool:
        """True if a trusted estimate says that the refit would be above the limit, or so far
        below it that a larger k would do better."""
        if np.isnan(estimate) or (k >= 1 and estimate <= self.limit):
            return False
        return not self.limit - self.tolerance < estimate <= self.limit

    def _refit(self, alpha: FloatArray, base: PosteriorFit, label: str) -> PosteriorFit | None:
        """The refit, or None with a warning if it does not converge."""
        self.refits += 1
        try:
            return self.session.fit(
                alpha,
                label=label,
                draw_quantile=base.bounds.draw_quantile,
                warm_start=base.draws.warm_start(),
            )
        except NotConverged as error:
            warnings.warn(f"the search ends here: {error}", stacklevel=2)
            return None

    def _note(self, number: int, k: float, estimate: float, fit: PosteriorFit | None) -> None:
        levels = None if fit is None else self.leveled(fit)
        bound = np.nan if levels is None else levels.overall
        self.steps.append(
            ReweightingStep(
                round=number,
                k=k,
                estimated_bound=estimate,
                bound=bound,
                efficiency=np.nan if levels is None else levels.efficiency,
                accepted=bool(bound <= self.limit),
            )
        )


def _next_k(k: float, bound: float, limit: float, low: float, high: float) -> float:
    """Next candidate: the bound is about proportional to k, so scale; bisect if that leaves."""
    if low >= 1:
        return 1.0
    scaled = k * limit / bound if bound > 0 else 1.0
    if high == 1.0 and scaled >= 1.0:
        return 1.0
    margin = 0.1 * (high - low)
    return scaled if low + margin < scaled < high - margin else (low + high) / 2


def estimated_bound(
    session: FitSession, fit: PosteriorFit, alpha: FloatArray, risk: str = "size"
) -> float:
    """Overall bound by `risk`, nats, of a refit under `alpha` (n,), from the draws of `fit` with
    Pareto-smoothed weights exp(sum_i (alpha_i - fit.alpha_i) f_si); NaN if k > 0.7."""
    log_lik = session.bound.log_lik(fit.draws)
    chosen = _resampled(
        log_lik.total(alpha - fit.alpha), session.streams.generator("re-weighting estimates")
    )
    if chosen is None:
        return float("nan")
    if risk != "size":
        return float(session.risks_at(fit.draws, alpha, risk, chosen).max())
    quantile = fit.bounds.draw_quantile
    return session.bounds_of(fit.draws, alpha, draw_quantile=quantile, chosen=chosen).overall


def _resampled(log_ratio: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp] | None:
    """Positions of S draws, resampled by smoothed weights; None if those are unreliable."""
    if not np.isfinite(log_ratio).all():
        return None
    if np.ptp(log_ratio) == 0:
        return np.arange(log_ratio.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        log_weight, pareto_k = arviz.psislw(log_ratio)
    if not float(pareto_k) <= _TRUSTED_PARETO_K:
        return None
    cumulated = np.cumsum(np.exp(log_weight - np.max(log_weight)))
    points = (np.arange(log_ratio.size) + rng.uniform()) / log_ratio.size * cumulated[-1]
    chosen: npt.NDArray[np.intp] = np.searchsorted(cumulated, points)
    return np.minimum(chosen, log_ratio.size - 1)
