"""Choosing scale or shift by budget: the largest value whose fitted bound meets a target epsilon.

The bound grows with the weights, and so with scale and with shift: a monotone search on refits
finds the value. Every fit is on the confidential data, so that the choice itself is not covered by
the guarantee; the charge of the release says so.

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

from pyhybrid.checks import check_count, check_finite, check_positive
from pyhybrid.errors import InvalidInput
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.base import PseudoPosteriorMechanism
from pyhybrid.privacy.epsilon import epsilon_text
from pyhybrid.privacy.shown import html_rows

__all__ = [
    "Solution",
    "SolutionStep",
    "epsilon_of_fit",
    "largest_within",
    "solve_scale",
    "solve_shift",
]

_SCALES = (0.0, 1.0)
_SHIFTS = (-1.0, 1.0)
_SMALLEST_BRACKET = 1e-4


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
    session : FitSession
        Holds the fits, so that ``mechanism.release_from(session, ...)`` needs no new one.
    """

    mechanism: PseudoPosteriorMechanism
    value: float
    epsilon: float
    steps: tuple[SolutionStep, ...]
    session: FitSession

    def _repr_html_(self) -> str:
        rows = {
            "mechanism": self.mechanism.name,
            "value found": f"{self.value:.4g}",
            "epsilon of a release": epsilon_text(self.epsilon),
            "fits made": len(self.steps),
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
        The search ends at an epsilon in (target - tolerance, target], nats; or below, where epsilon
        jumps over that as the Gaussian limit gives way to the range.
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
    steps: list[SolutionStep] = []

    def epsilon_at(value: float) -> float:
        epsilon = epsilon_of_fit(_with(mechanism, parameter, value), session, draws)
        steps.append(SolutionStep(value=value, epsilon=epsilon))
        return epsilon

    value = largest_within(
        epsilon_at, parameter, low, high, target, tolerance, check_count(max_fits, "max_fits")
    )
    epsilon = next(step.epsilon for step in reversed(steps) if step.value == value)
    return Solution(
        mechanism=_with(mechanism, parameter, value),
        value=value,
        epsilon=epsilon,
        steps=tuple(steps),
        session=session,
    )


def _with(
    mechanism: PseudoPosteriorMechanism, parameter: str, value: float
) -> PseudoPosteriorMechanism:
    change: dict[str, Any] = {parameter: value}
    return replace(mechanism, **change)


def epsilon_of_fit(mechanism: PseudoPosteriorMechanism, session: FitSession, draws: int) -> float:
    """Epsilon of the mechanism's fit; 0 where all weights are 0 and nothing is learnt."""
    if not mechanism.weights(session.by_unit(mechanism.unit)).any():
        return 0.0
    session = session.by_unit(mechanism.unit)
    path = mechanism.fit(session)
    if not np.isfinite(path.fit.bounds.overall):
        return np.inf
    return mechanism.charge_of(session, path, n_synthetic=1, n_draws_released=draws).epsilon


def largest_within(
    epsilon_at: Callable[[float], float],
    parameter: str,
    low: float,
    high: float,
    target: float,
    tolerance: float,
    max_fits: int,
) -> float:
    """Largest value tried whose epsilon is in (target - tolerance, target]; regula falsi with
    bisection (Illinois), which needs few fits on a curve that is nearly straight."""
    top = epsilon_at(high)
    if target - tolerance < top <= target:
        return high
    bottom = epsilon_at(low)
    if not bottom <= target <= top:
        raise InvalidInput(
            f"target_epsilon must be reachable by {parameter} in [{low:g}, {high:g}]: epsilon "
            f"goes from {bottom:g} to {top:g} there, found {target:g}; change the other options"
        )
    aim = target - tolerance / 2
    best, below, above, side = None, bottom - aim, top - aim, 0
    narrow = _SMALLEST_BRACKET * (high - low)
    if bottom > target - tolerance and bottom > 0:
        return low
    for _ in range(max_fits):
        straight = low + (high - low) * below / (below - above) if np.isfinite(above) else np.nan
        inside = np.isfinite(straight) and low < straight < high
        value = float(straight) if inside else (low + high) / 2
        epsilon = epsilon_at(value)
        if target - tolerance < epsilon <= target:
            return value
        if epsilon <= target:
            best, low, below = value, value, epsilon - aim
            above, side = (above / 2, -1) if side == -1 else (above, -1)
        else:
            high, above = value, epsilon - aim
            below, side = (below / 2, 1) if side == 1 else (below, 1)
        if best is not None and high - low < narrow:  # epsilon jumps: another accounting holds
            return best
    raise InvalidInput(
        f"target_epsilon was not met within {tolerance:g} in {max_fits} fits; the nearest below is "
        f"{parameter} = {best}: raise tolerance or max_fits"
    )
