"""Choosing scale or shift by budget: the largest value whose fitted bound meets a target epsilon.

Epsilon grows with the weights, and so with scale and with shift. Its value under a fit is a Monte
Carlo estimate, so that a search on refits alone is one on a function that is not monotone. So the
draws of the nearest fit say, by importance weights, where the target would be met; that is a smooth
function. A refit there confirms it, or is what the next step starts from. Every fit is on the
confidential data, so that the choice itself is not covered by the guarantee; the charge of the
release says so.

References
----------
[S22] sec. 3 (choice of c and g); [C25] sec. 4.4 (down-scaling).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_count, check_finite, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import html_rows
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.mechanisms.weighted.nearby import Nearby
from pyhybrid.privacy.conversions import epsilon_text

__all__ = [
    "Fitted",
    "Found",
    "Solution",
    "SolutionStep",
    "fitted_at",
    "largest_within",
    "solve_scale",
    "solve_shift",
    "solved",
]

_SCALES = (0.0, 1.0)
_SHIFTS = (-1.0, 1.0)
_SMALLEST_BRACKET = 1e-4
_ERRORS = 2.0  # standard errors of epsilon that the search cannot do better than
_HALVINGS = 25


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


def solve_scale(
    mechanism: PseudoPosteriorMechanism,
    df: pd.DataFrame,
    *,
    target_epsilon: float,
    tolerance: float = 0.1,
    n_draws_released: int = 1,
    limits: tuple[float, float] = _SCALES,
    max_fits: int = 20,
    **options: Any,
) -> Solution:
    """Largest scale for which a release costs at most `target_epsilon`, within `tolerance`.

    Parameters
    ----------
    mechanism : PseudoPosteriorMechanism
        One with a `scale`, e.g. ``LipschitzWeighted(model)``.
    df : DataFrame
        Confidential records.
    target_epsilon : float
        For all `n_draws_released` draws, nats, above 0.
    tolerance : float, default 0.1
        The search ends at an epsilon in (target - tolerance, target], nats, or within two Monte
        Carlo standard errors of epsilon below the target, if those are more; or below, where
        epsilon jumps over that as the Gaussian limit gives way to the range. `Solution.stopped`
        says which.
    n_draws_released : int, default 1
        Draws that the release will use.
    limits : (float, float), default (0, 1)
        Where to search.
    max_fits : int, default 20
    **options
        seed, engine, settings, rule, on_not_converged, progress of
        `pyhybrid.fitting.session.open_session`.

    Raises
    ------
    InvalidInput
        If the target cannot be met within `limits`; gives the reachable range.
    """
    return _solve("scale", mechanism, df, target_epsilon, tolerance, n_draws_released, limits,
                  max_fits, options)  # fmt: skip


def solve_shift(
    mechanism: PseudoPosteriorMechanism,
    df: pd.DataFrame,
    *,
    target_epsilon: float,
    tolerance: float = 0.1,
    n_draws_released: int = 1,
    limits: tuple[float, float] = _SHIFTS,
    max_fits: int = 20,
    **options: Any,
) -> Solution:
    """Largest shift for which a release costs at most `target_epsilon`; see `solve_scale`.

    The default `limits` are (-1, 1).
    """
    return _solve("shift", mechanism, df, target_epsilon, tolerance, n_draws_released, limits,
                  max_fits, options)  # fmt: skip


def _solve(
    parameter: str,
    mechanism: PseudoPosteriorMechanism,
    df: pd.DataFrame,
    target_epsilon: float,
    tolerance: float,
    n_draws_released: int,
    limits: tuple[float, float],
    max_fits: int,
    options: dict[str, Any],
) -> Solution:
    if parameter not in {f.name for f in fields(mechanism)}:
        raise InvalidInput(f"mechanism must have a {parameter}: {mechanism.name} has none")
    target = check_positive(target_epsilon, "target_epsilon")
    tolerance = check_positive(tolerance, "tolerance")
    draws = check_count(n_draws_released, "n_draws_released")
    low, high = (check_finite(limit, "limits") for limit in limits)
    if not low < high:
        raise InvalidInput(f"limits must be in ascending order: found {limits}")
    session = open_session(mechanism.model.bind(df), **options)
    return solved(
        lambda value: _with(mechanism, parameter, value),
        session,
        draws,
        parameter=parameter,
        limits=(low, high),
        target=target,
        tolerance=tolerance,
        max_fits=check_count(max_fits, "max_fits"),
    )


def _with(
    mechanism: PseudoPosteriorMechanism, parameter: str, value: float
) -> PseudoPosteriorMechanism:
    change: dict[str, Any] = {parameter: value}
    return replace(mechanism, **change)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A fit of the search. Confidential.

    Attributes
    ----------
    value, epsilon : float
    error : float
        Monte Carlo standard error of epsilon, nats.
    nearby : callable
        Epsilon at another value, as the draws of this fit have it; NaN where they do not tell.
    """

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


def solved(
    with_value: Callable[[float], PseudoPosteriorMechanism],
    session: FitSession,
    draws: int,
    *,
    parameter: str,
    limits: tuple[float, float],
    target: float,
    tolerance: float,
    max_fits: int,
    down_from_high: bool = False,
) -> Solution:
    """The mechanism at the largest value of `parameter` that meets the target; see `solve_scale`.

    With `down_from_high` the upper limit is taken where it costs less than the target, too.
    """
    made: dict[float, Fitted] = {}

    def fit_at(value: float) -> Fitted:
        if value not in made:
            made[value] = fitted_at(with_value, value, session, draws)
        return made[value]

    low, high = limits
    if down_from_high and fit_at(high).epsilon <= target:
        found = Found(value=high, tolerance=tolerance, stopped="the largest value costs less")
    else:
        found = largest_within(fit_at, parameter, low, high, target, tolerance, max_fits)
    return Solution(
        mechanism=with_value(found.value),
        value=found.value,
        epsilon=made[found.value].epsilon,
        steps=tuple(SolutionStep(value=f.value, epsilon=f.epsilon) for f in made.values()),
        tolerance=found.tolerance,
        stopped=found.stopped,
        session=session,
    )


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
    less than two standard errors.

    Raises
    ------
    InvalidInput
        If the target does not lie between the epsilons at both ends, or is not met in `max_fits`.
    """
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
    near, other = sorted((below, above), key=lambda own: abs(own.epsilon - aim))
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
