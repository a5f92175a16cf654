r"""The local mechanisms at a given epsilon: the largest setting that meets it is searched for.

The setting is the scale or shift (LipschitzWeighted, CountWeighted), the weight (ScalarWeighted) or
the cap (Truncated). Strict mechanisms are given their epsilon, and need no search.

A search looks at the confidential data, which no guarantee covers, and the charge says so. It is on
fits whose weights are taken as fixed. What refits without single records add to the charge is then
known at the value that meets the target, and the search is repeated for smaller epsilons, until the
charge is below the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyhybrid.core.checks import check_choice, check_count, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.mechanism import REFITS
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism

_TOLERANCE, _MOST = 0.05, 0.1  # of the target; nats
_ROUNDED = 0.01  # local epsilons are rounded up to it
_SMALLEST_BRACKET = 1e-4
_FITS, _ROUNDS = 20, 8  # of one search; of searches, for what refits add to epsilon
_STEP, _CLEAR_STEP = 1.5, 0.9  # power of target over charge that epsilon falls by; at least so far,
_LONGEST_STEP = 0.1  # and at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """A mechanism with the value of its setting that meets a target, and what a release of it costs
    under the session's seed, which holds the fits. `tried` has the epsilon at fixed weights by
    value. Confidential."""

    mechanism: PseudoPosteriorMechanism
    value: float
    epsilon: float
    tried: Mapping[float, float]
    session: FitSession = field(repr=False)


@bar_in_notebooks
def meet_epsilon(
    mechanism: PseudoPosteriorMechanism,
    df: Any,
    *,
    target_epsilon: float,
    searched: str | None = None,
    n_draws_released: int = 1,
    refits: int = REFITS,
    **options: Any,
) -> Solution:
    """The largest setting of a local mechanism for which a release costs at most `target_epsilon`.

    Parameters
    ----------
    mechanism : PseudoPosteriorMechanism
        `LipschitzWeighted`, `CountWeighted`, `ScalarWeighted` or `Truncated`.
    df : DataFrame
        Confidential records.
    target_epsilon : float
        For all `n_draws_released` draws, by the mechanism's accounting, nats, above 0. The charge
        is at most that, and with refits it can be well below.
    searched : {"scale", "shift"}, optional
        Of Lipschitz and count weights: c, by default, or g ([S22] sec. 3).
    n_draws_released : int, default 1
        Draws that the release will use.
    refits : int, default 10
        As of a release.
    **options
        seed, engine, settings, rule, on_not_converged, progress of
        `pyhybrid.fitting.session.FitOptions`.

    Raises
    ------
    InvalidInput
        For a mechanism without such a setting, or a target that is out of reach.

    Examples
    --------
    >>> found = ph.mechanisms.meet_epsilon(ph.LipschitzWeighted(model), df, target_epsilon=8)
    >>> found.mechanism.release_from(found.session, n_synthetic=1, n_draws_released=1)
    """
    target = check_positive(target_epsilon, "target_epsilon")
    within = min(_MOST, _TOLERANCE * target)
    draws = check_count(n_draws_released, "n_draws_released")
    if not mechanism.searched:
        raise InvalidInput(
            "target_epsilon must be for a mechanism with a setting that is searched for: "
            f"{mechanism.name} has none; take LipschitzWeighted, CountWeighted, ScalarWeighted or "
            "Truncated, or give a strict mechanism its epsilon"
        )
    name = mechanism.searched[0] if searched is None else searched
    check_choice(name, "searched", mechanism.searched)
    session = open_session(mechanism.bind(df), **options).by_unit(mechanism.unit)
    mechanism.refuse(session, refits)

    def cost(value: float, refits: int = 0) -> float:
        """Epsilon of a release at this value; 0 where all weights are 0."""
        candidate = replace(mechanism, **{name: value})  # type: ignore[arg-type]
        if not candidate.weights(session).any():
            return 0.0
        path = candidate.fit(session)
        if not math.isfinite(path.fit.bounds.overall):
            return math.inf
        loss = candidate.loss(session, path, refits)
        return candidate.charge(session, path, loss, 1, draws).epsilon

    search = Search(cost, mechanism.limits(session, name), name, _FITS)
    aim = target
    for _ in range(_ROUNDS):
        value = search.largest_within(aim, max(within * aim / target, _ROUNDED))
        charged = cost(value, refits)
        if charged <= target:
            break
        aim = search.tried[value] * min(
            max((target / charged) ** _STEP, _LONGEST_STEP), _CLEAR_STEP
        )
    else:
        raise InvalidInput(
            f"target_epsilon was not met in {_ROUNDS} rounds: refits without single records raise "
            f"epsilon at {name} = {value:.4g} to {charged:g}; change the other options"
        )
    at = replace(mechanism, **{name: value})  # type: ignore[arg-type]
    return Solution(mechanism=at, value=value, epsilon=charged, tried=search.tried, session=session)


class Search:
    """Epsilon at fixed weights, or a bound, by value of the setting. Confidential."""

    def __init__(
        self, cost: Callable[[float], float], limits: tuple[float, float], setting: str, most: int
    ) -> None:
        self.cost, self.limits, self.setting, self.most = cost, limits, setting, most
        self.tried: dict[float, float] = {}

    def epsilon_at(self, value: float) -> float:
        if value not in self.tried:
            self.tried[value] = self.cost(value)
        return self.tried[value]

    def largest_within(self, target: float, tolerance: float) -> float:
        """The largest value tried whose epsilon is in (target - tolerance, target], or the largest
        below where epsilon jumps over that."""
        low, high = self.limits
        if self.epsilon_at(high) <= target:
            return high
        if not 0 <= self.epsilon_at(low) <= target:
            raise InvalidInput(
                f"target_epsilon must be reachable by {self.setting} in [{low:g}, {high:g}]: "
                f"epsilon goes from {self.epsilon_at(low):g} to {self.epsilon_at(high):g} there, "
                f"found {target:g}; change the other options"
            )
        narrow = _SMALLEST_BRACKET * (high - low)
        # What was tried for a larger target says where to begin.
        low = max(value for value, epsilon in self.tried.items() if epsilon <= target)
        high = min(value for value in self.tried if value > low)
        for number in range(self.most):
            below, above = self.epsilon_at(low), self.epsilon_at(high)
            if target - tolerance < below or high - low <= narrow:
                break
            share = 0.5
            if number % 2 == 0 and math.isfinite(above):  # halving alone jumps over what is near
                share = (target - tolerance / 2 - below) / (above - below)
            value = low + share * (high - low)
            low, high = (value, high) if self.epsilon_at(value) <= target else (low, value)
        if self.epsilon_at(low) > 0:
            return low
        raise InvalidInput(
            f"target_epsilon was not met within {tolerance:g} in {self.most} fits: change the "
            "other options"
        )
