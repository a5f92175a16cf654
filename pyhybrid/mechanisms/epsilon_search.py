r"""Any mechanism by budget: the setting that meets a target epsilon is found, or computed.

================== ============================== =============================================
mechanism          setting                        how
================== ============================== =============================================
LipschitzWeighted  scale, shift                   search on refits, the largest that meets it
CountWeighted      scale, shift                   search on refits
ScalarWeighted     its weight                     search on refits
Truncated          cap                            search on refits
Censored           epsilon of one draw            target over the draws: strict, no search
PerturbedHistogram epsilon of one histogram       target over the histograms: strict, no search
================== ============================== =============================================

A search looks at the confidential data, which no guarantee covers, and the charge says so.

Epsilon grows with the weights, and so with scale and with shift. Its value under a fit is a Monte
Carlo estimate, so that a search on refits alone would be one on a function that is not monotone.
The draws of the nearest fit therefore estimate where the target is met, by a smooth function. A
refit there confirms the estimate, or is the start of the next step. Draws of the posterior under
weights alpha represent those under alpha' by the importance weights [V17]
:math:`w_s \propto \exp(\sum_i (\alpha'_i - \alpha_i) f_{si})`, Pareto-smoothed. The quantity that
is charged is then the deviation of a record's term, or the expected maximum and minimum of as many
draws, :math:`E \max = \sum_k T_{(k)} (F_k^S - F_{k-1}^S)`, F the cumulated weights in the order of
T. Only its ratio to the same at alpha is used: times the epsilon that the fit has, however that was
accounted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_count, check_finite, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks, html_rows
from pyhybrid.fitting.session import FitSession, PosteriorFit, open_session
from pyhybrid.mechanisms.censored.censored import Censored
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.mechanisms.weighted.weight_maps import (
    CountWeighted,
    LipschitzWeighted,
    ScalarWeighted,
    Truncated,
)
from pyhybrid.privacy.conversions import epsilon_of_bound, epsilon_text
from pyhybrid.privacy.diagnostics import RELIABLE_K, smoothed_log_weights
from pyhybrid.privacy.log_lik import LogLik

WITH_EPSILON = (Censored, PerturbedHistogram)
"""Mechanisms whose epsilon is given before the data are seen."""
_TOLERANCE = 0.05  # of the target
_MOST = 0.1  # nats
_LEAST_WEIGHT = 0.05  # below it posteriors are near the prior, and epsilon rises again
_SCALES = (0.0, 1.0)
_SHIFTS = (-1.0, 1.0)
_SMALLEST_BRACKET = 1e-4
_ERRORS = 2.0  # standard errors of epsilon that the search cannot do better than
_HALVINGS = 25
_DRAWS, _ELEMENTS = 1000, 20_000_000
_PARTS = 4  # of the draws, for the Monte Carlo error


@dataclass(frozen=True, kw_only=True)
class SolutionStep:
    """One fit of the search: the value tried and the epsilon it has. Confidential."""

    value: float
    epsilon: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """Result of `solve_scale` or `solve_shift`.

    Attributes
    ----------
    mechanism : PseudoPosteriorMechanism
        The one given, with the value found.
    value : float
        Scale or shift.
    epsilon : float
        What a release of it costs; at most the target. Made with the session's seed: a release
        under another seed differs by Monte Carlo error.
    steps : tuple of SolutionStep
        All fits, in order.
    tolerance : float
        How near to the target the search aimed, nats: what was asked, or two Monte Carlo standard
        errors of epsilon, if those are more.
    stopped : str
        Why the search stopped.
    session : FitSession
        Holds the fits, so that ``mechanism.release_from(session, ...)`` needs no new one.
    """

    mechanism: PseudoPosteriorMechanism
    value: float
    epsilon: float
    steps: tuple[SolutionStep, ...]
    tolerance: float
    stopped: str
    session: FitSession

    def _repr_html_(self) -> str:
        rows = {
            "mechanism": self.mechanism.name,
            "value found": f"{self.value:.4g}",
            "epsilon of a release": epsilon_text(self.epsilon),
            "fits made": len(self.steps),
            "stopped": self.stopped,
        }
        return html_rows("Solution", rows)


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """What is searched for: its name, what to set with it, and where it lies."""

    name: str
    set_with: Mapping[str, Any]
    limits: Callable[[PseudoPosteriorMechanism, FitSession], tuple[float, float]]

    def at(self, mechanism: PseudoPosteriorMechanism, value: float) -> PseudoPosteriorMechanism:
        """The mechanism with the setting at `value`."""
        return replace(mechanism, **{self.name: value, **self.set_with})


def _scalar_limits(mechanism: PseudoPosteriorMechanism, session: FitSession) -> tuple[float, float]:
    highest = epsilon_of_bound(
        session.unweighted(draw_quantile=mechanism.draw_quantile).bounds.overall,
        relation=mechanism.relation,
        density_above_one=session.bound.density_above_one,
        safety_factor=mechanism.safety_factor,
    )
    return _LEAST_WEIGHT * highest, highest


def _cap_limits(mechanism: PseudoPosteriorMechanism, session: FitSession) -> tuple[float, float]:
    f = session.unweighted(draw_quantile=mechanism.draw_quantile).bounds.by_record
    finite = f[np.isfinite(f) & (f > 0)]
    if not finite.size:
        raise InvalidInput("target_epsilon needs finite bounds of the unweighted fit: found none")
    return 1e-3 * float(finite.min()), float(finite.max())


_SCALE = _Setting(name="scale", set_with={}, limits=lambda mechanism, session: _SCALES)
_SETTINGS: Mapping[type, _Setting] = {
    LipschitzWeighted: _SCALE,
    CountWeighted: _SCALE,
    ScalarWeighted: _Setting(
        name="target_epsilon", set_with={"target_bound": None}, limits=_scalar_limits
    ),
    Truncated: _Setting(name="cap", set_with={"epsilon": None}, limits=_cap_limits),
}


@bar_in_notebooks
def meet_epsilon(
    mechanism: PseudoPosteriorMechanism,
    df: Any,
    *,
    target_epsilon: float,
    tolerance: float | None = None,
    n_draws_released: int = 1,
    max_fits: int = 20,
    **options: Any,
) -> Solution:
    """The largest setting of a local mechanism for which a release costs at most `target_epsilon`.

    Parameters
    ----------
    mechanism : PseudoPosteriorMechanism
        `LipschitzWeighted`, `CountWeighted`, `ScalarWeighted` or `Truncated`; what they hold of the
        setting that is looked for (scale, the target of the scalar weight, the cap) is not used.
    df : DataFrame
        Confidential records.
    target_epsilon : float
        For all `n_draws_released` draws, by the mechanism's accounting, nats, above 0.
    tolerance : float, optional
        The search ends at an epsilon in (target - tolerance, target], nats, or within two Monte
        Carlo standard errors of epsilon below the target, if those are more; or below, where
        epsilon jumps over that as the Gaussian limit gives way to the range. `Solution.stopped`
        says which. 5 % of the target, at most 0.1, if omitted.
    n_draws_released : int, default 1
        Draws that the release will use.
    max_fits : int, default 20
    **options
        seed, engine, settings, rule, on_not_converged, progress of
        `pyhybrid.fitting.session.FitOptions`.

    Returns
    -------
    Solution
        ``found.mechanism.release_from(found.session, n_synthetic=..., n_draws_released=...)``
        releases from the fit that was found, at the epsilon stated.

    Raises
    ------
    InvalidInput
        For a mechanism without such a setting (weights of 1, or given ones), one whose epsilon is
        given and not searched for, or a target that is out of reach; gives what can be reached.

    Examples
    --------
    >>> found = ph.mechanisms.meet_epsilon(ph.LipschitzWeighted(model), df, target_epsilon=0.5)
    >>> found.mechanism.release_from(found.session, n_synthetic=1, n_draws_released=1)
    """
    target = check_positive(target_epsilon, "target_epsilon")
    setting = _setting_of(mechanism)
    within = min(_MOST, _TOLERANCE * target) if tolerance is None else tolerance
    # From the upper limit down: it may cost less than the target.
    return _solved(
        setting, mechanism, df, target, within, n_draws_released, max_fits, down=True, **options
    )


@bar_in_notebooks
def solve_scale(
    mechanism: PseudoPosteriorMechanism,
    df: Any,
    *,
    target_epsilon: float,
    tolerance: float = 0.1,
    limits: tuple[float, float] = _SCALES,
    **options: Any,
) -> Solution:
    """Largest scale for which a release costs at most `target_epsilon`, within `tolerance`.

    For a mechanism with a `scale`, e.g. ``LipschitzWeighted(model)``; `limits` say where to search.
    Other parameters, and those in `options`, as in `meet_epsilon`.

    Raises
    ------
    InvalidInput
        If the target cannot be met within `limits`; gives the reachable range.
    """
    setting = _given("scale", mechanism, limits)
    return _solved(setting, mechanism, df, target_epsilon, tolerance, **options)


@bar_in_notebooks
def solve_shift(
    mechanism: PseudoPosteriorMechanism,
    df: Any,
    *,
    target_epsilon: float,
    tolerance: float = 0.1,
    limits: tuple[float, float] = _SHIFTS,
    **options: Any,
) -> Solution:
    """Largest shift for which a release costs at most `target_epsilon`; see `solve_scale`."""
    setting = _given("shift", mechanism, limits)
    return _solved(setting, mechanism, df, target_epsilon, tolerance, **options)


def with_epsilon(mechanism: Any, *, target_epsilon: float, n_draws_released: int = 1) -> Any:
    """A strict mechanism (`WITH_EPSILON`) at the epsilon of one draw that adds up to
    `target_epsilon`; what it holds of epsilon and cap is not used.
    """
    target = check_positive(target_epsilon, "target_epsilon")
    of_one_draw = target / check_count(n_draws_released, "n_draws_released")
    if not isinstance(mechanism, WITH_EPSILON):
        raise InvalidInput(
            f"{type(mechanism).__name__} has no epsilon of its own: search for it by meet_epsilon"
        )
    if isinstance(mechanism, PerturbedHistogram):
        return replace(mechanism, epsilon=of_one_draw)
    if mechanism.calibration is not None:
        raise InvalidInput(
            "target_epsilon cannot be met by a calibration, which holds the cap: calibrate with "
            "epsilon=, the epsilon of one released draw"
        )
    return replace(mechanism, epsilon=of_one_draw, cap=None)


def _setting_of(mechanism: PseudoPosteriorMechanism) -> _Setting:
    if type(mechanism) in _SETTINGS:
        return _SETTINGS[type(mechanism)]
    name = type(mechanism).__name__
    if isinstance(mechanism, WITH_EPSILON):
        raise InvalidInput(
            f"target_epsilon of {name} needs no search: its epsilon is given, see with_epsilon"
        )
    raise InvalidInput(
        f"target_epsilon must be for a mechanism with a setting that lowers epsilon: {name} has "
        "none; take LipschitzWeighted, CountWeighted, ScalarWeighted or Truncated"
    )


def _given(name: str, mechanism: PseudoPosteriorMechanism, limits: tuple[float, float]) -> _Setting:
    if name not in {field.name for field in fields(mechanism)}:
        raise InvalidInput(f"mechanism must have a {name}: {mechanism.name} has none")
    low, high = (check_finite(limit, "limits") for limit in limits)
    if not low < high:
        raise InvalidInput(f"limits must be in ascending order: found {limits}")
    return _Setting(name=name, set_with={}, limits=lambda mechanism, session: (low, high))


def _solved(
    setting: _Setting,
    mechanism: PseudoPosteriorMechanism,
    df: Any,
    target_epsilon: float,
    tolerance: float,
    n_draws_released: int = 1,
    max_fits: int = 20,
    *,
    down: bool = False,
    **options: Any,
) -> Solution:
    """The mechanism at the largest value of the setting that meets the target; going `down`, the
    upper limit is taken where it costs less than the target, too."""
    target = check_positive(target_epsilon, "target_epsilon")
    tolerance = check_positive(tolerance, "tolerance")
    draws = check_count(n_draws_released, "n_draws_released")
    max_fits = check_count(max_fits, "max_fits")
    session = open_session(mechanism.model.bind(df), **options)
    low, high = setting.limits(mechanism, session.by_unit(mechanism.unit))
    fits: dict[float, Fitted] = {}

    def fit_at(value: float) -> Fitted:
        if value not in fits:
            fits[value] = fitted_at(partial(setting.at, mechanism), value, session, draws)
        return fits[value]

    if down and fit_at(high).epsilon <= target:
        found = Found(value=high, tolerance=tolerance, stopped="the largest value costs less")
    else:
        found = largest_within(fit_at, setting.name, low, high, target, tolerance, max_fits)
    return Solution(
        mechanism=setting.at(mechanism, found.value),
        value=found.value,
        epsilon=fits[found.value].epsilon,
        steps=tuple(SolutionStep(value=fit.value, epsilon=fit.epsilon) for fit in fits.values()),
        tolerance=found.tolerance,
        stopped=found.stopped,
        session=session,
    )


# --- Search --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A fit of the search. Confidential.

    `error` is the Monte Carlo standard error of epsilon, nats; `nearby` epsilon at another value,
    as the draws of this fit have it, NaN where they do not tell."""

    value: float
    epsilon: float
    error: float = 0.0
    nearby: Callable[[float], float] = lambda value: float("nan")


@dataclass(frozen=True, kw_only=True)
class Found:
    """The value that a search ended at, how near it aimed, and why it stopped."""

    value: float
    tolerance: float
    stopped: str


def fitted_at(
    with_value: Callable[[float], PseudoPosteriorMechanism],
    value: float,
    session: FitSession,
    draws: int,
) -> Fitted:
    """The fit of the mechanism at `value`; epsilon is 0 where all weights are."""
    mechanism = with_value(value)
    session = session.by_unit(mechanism.unit)
    base = mechanism.weights(session)
    if not base.any():
        return Fitted(value=value, epsilon=0.0)
    path = mechanism.fit(session)
    if not np.isfinite(path.fit.bounds.overall):
        return Fitted(value=value, epsilon=np.inf)
    epsilon = mechanism.charge_of(session, path, n_synthetic=1, n_draws_released=draws).epsilon
    near = Nearby(session, path.fit, mechanism.accounting)

    def nearby(other: float) -> float:
        alpha = with_value(other).weights(session)
        # Weights that were re-weighted move as those that they started from do.
        moved = np.divide(alpha, base, out=np.ones(alpha.size), where=base > 0)
        again = np.where(base > 0, np.minimum(path.fit.alpha * moved, 1.0), alpha)
        return epsilon * near.ratio(again)

    return Fitted(
        value=value, epsilon=epsilon, error=epsilon * near.relative_error(), nearby=nearby
    )


def largest_within(
    fit_at: Callable[[float], Fitted],
    parameter: str,
    low: float,
    high: float,
    target: float,
    tolerance: float,
    max_fits: int,
) -> Found:
    """The largest value tried whose epsilon is below the target by less than the tolerance, or by
    less than two standard errors. InvalidInput if the target does not lie between the epsilons at
    both ends, or is not met in `max_fits`."""
    above = fit_at(high)
    if target - tolerance < above.epsilon <= target:
        return _found(above, target, tolerance)
    below = fit_at(low)
    if not below.epsilon <= target <= above.epsilon:
        raise InvalidInput(
            f"target_epsilon must be reachable by {parameter} in [{low:g}, {high:g}]: epsilon "
            f"goes from {below.epsilon:g} to {above.epsilon:g} there, found {target:g}; change the "
            "other options"
        )
    narrow, within, sides = _SMALLEST_BRACKET * (high - low), tolerance, [0, 0]
    if below.epsilon > target - tolerance and below.epsilon > 0:
        return _found(below, target, tolerance)
    for _ in range(max_fits):
        value = _proposed(below, above, target - within / 2, halve=max(sides) > 1)
        point = fit_at(value)
        within = max(within, _ERRORS * target * point.error / (point.epsilon or 1.0))
        if target - within < point.epsilon <= target:
            return _found(point, target, within)
        lower = point.epsilon <= target
        below, above = (point, above) if lower else (below, point)
        sides = [sides[0] + 1, 0] if lower else [0, sides[1] + 1]
        jumps = above.epsilon - below.epsilon > 2 * within
        if below.value > low and above.value - below.value < narrow:
            why = "another accounting or record counts" if jumps else "Monte Carlo error"
            return Found(
                value=below.value,
                tolerance=within,
                stopped=f"epsilon jumps from {below.epsilon:.4g} to {above.epsilon:.4g} between "
                f"{parameter} = {below.value:.8g} and {above.value:.8g}: {why}",
            )
    nearest = f"{below.value:g}" if below.epsilon > 0 else "none"
    raise InvalidInput(
        f"target_epsilon was not met within {within:g} in {max_fits} fits; the nearest below is "
        f"{parameter} = {nearest}: raise tolerance or max_fits"
    )


def _found(point: Fitted, target: float, within: float) -> Found:
    """The target is met."""
    why = f"epsilon is below the target of {target:g} by less than {within:.3g}"
    return Found(value=point.value, tolerance=within, stopped=why)


def _proposed(below: Fitted, above: Fitted, aim: float, *, halve: bool) -> float:
    """Where epsilon would be `aim`: by the draws of the fit that is nearer to it, else on the
    straight line between both fits, or half way."""
    low, high = below.value, above.value
    near, other = sorted((below, above), key=lambda fit: abs(fit.epsilon - aim))
    inner, outer, crossed = near.value, other.value, False
    for _ in range(_HALVINGS if not halve and np.isfinite(near.epsilon) else 0):
        middle = (inner + outer) / 2
        epsilon = near.nearby(middle)
        if np.isnan(epsilon) or (epsilon > aim) == (near.epsilon < aim):
            outer, crossed = middle, crossed or not np.isnan(epsilon)
        else:
            inner = middle
    lower = min(inner, outer)  # of a jump the side that meets the target
    if crossed and low < lower < high:
        return lower
    straight = low + (high - low) * (aim - below.epsilon) / (above.epsilon - below.epsilon)
    usable = not halve and np.isfinite(above.epsilon) and low < straight < high
    return float(straight) if usable else (low + high) / 2


RISK_OF: Mapping[str, str] = {"gaussian": "deviation", "range": "range", "lipschitz": "size"}
"""What an accounting grows with."""


class Nearby:
    """A fit, its draws thinned to 1,000 at most, and what they say of others near it.
    Confidential."""

    def __init__(self, session: FitSession, fit: PosteriorFit, accounting: str) -> None:
        whole = session.bound.log_lik(fit.draws)
        most = min(_DRAWS, fit.draws.n_draws, max(_PARTS, _ELEMENTS // whole.n_rows))
        places = np.linspace(0, fit.draws.n_draws - 1, most).astype(np.intp)
        thinned = session.bound.log_lik(fit.draws.part(places))
        matrix = np.concatenate(list(thinned.make()), axis=1).astype(np.float64)
        self._log_lik = LogLik(make=lambda: (matrix,), row_of=thinned.row_of)
        self._matrix, self._session, self.alpha = matrix, session, fit.alpha
        self._risk, self._even = RISK_OF.get(accounting, "deviation"), np.full(most, 1 / most)
        self._here = self._told(fit.alpha, self._even)

    def ratio(self, alpha: FloatArray) -> float:
        """Of epsilon under `alpha` (n,) to that of the fit; NaN where the draws do not tell."""
        log_ratio = self._log_lik.total(alpha - self.alpha)
        if not (np.isfinite(log_ratio).all() and 0 < self._here < np.inf):
            return float("nan")
        smoothed, k = smoothed_log_weights(log_ratio[:, None])
        if not k[0] <= RELIABLE_K:
            return float("nan")
        weights = np.exp(smoothed[:, 0] - smoothed.max())
        return self._told(alpha, weights / weights.sum()) / self._here

    def relative_error(self) -> float:
        """Monte Carlo standard error of epsilon, as a share of it, from the spread between parts of
        the draws; that of a maximum is hardly less for more draws."""
        parts = [self._told(self.alpha, own) for own in _parts(self._even.size)]
        spread = float(np.std(parts, ddof=1) / np.mean(parts)) if np.all(np.isfinite(parts)) else 0
        return spread / np.sqrt(_PARTS) if self._risk == "deviation" else spread

    def _told(self, alpha: FloatArray, weights: FloatArray) -> float:
        """The largest risk of the weighted terms under weights of the draws (S,)."""
        if self._session.units is not None:
            summed = self._session.terms(self._log_lik, alpha)[0]
            terms = np.concatenate(list(summed.make()), axis=1)
        else:
            top = np.zeros(self._matrix.shape[1])
            np.maximum.at(top, self._log_lik.row_of, alpha)
            terms = self._matrix[:, top > 0] * top[top > 0]
        if not (terms.size and np.isfinite(terms).all()):
            return float("inf") if terms.size else 0.0
        if self._risk == "deviation":
            moved = terms - weights @ terms
            return float(np.sqrt((weights @ moved**2).max()))
        if self._risk == "size":
            return float(_largest(np.abs(terms).max(axis=1)[:, None], weights)[0])
        return float((_largest(terms, weights) + _largest(-terms, weights)).max())


def _parts(n: int) -> list[FloatArray]:
    """Even weights of one part of n draws after the other."""
    part = np.arange(n) * _PARTS // n
    return [np.where(part == own, 1.0, 0.0) / (part == own).sum() for own in range(_PARTS)]


def _largest(terms: FloatArray, weights: FloatArray) -> FloatArray:
    """Expected maximum of S draws by `weights` (S,) from the terms (S, b), shape (b,)."""
    order = np.argsort(terms, axis=0)
    below = np.minimum(np.cumsum(weights[order], axis=0), 1.0) ** weights.size
    return np.asarray(
        (np.take_along_axis(terms, order, axis=0) * np.diff(below, axis=0, prepend=0)).sum(axis=0)
    )
