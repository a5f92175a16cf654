r"""Any mechanism at a given epsilon: the setting that meets a target epsilon is found, or computed.

================== ============================== =============================================
mechanism          setting                        how
================== ============================== =============================================
LipschitzWeighted  scale                          search on refits, the largest that meets it
CountWeighted      scale                          search on refits
ScalarWeighted     its weight                     search on refits
Truncated          cap                            search on refits
Censored           epsilon of one draw            target over the draws: strict, no search
PerturbedHistogram epsilon of one histogram       target over the histograms: strict, no search
================== ============================== =============================================

A search looks at the confidential data, which no guarantee covers, and the charge says so. Epsilon
grows with the weights, and so with scale and cap: an interval is cut by the straight line between
its ends, or halved, in turn, on fits whose weights are taken as fixed. What refits without single
records add to the charge is then known at the value found, and the search is repeated for a target
that is smaller by their ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import check_count, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.censored.censored import Censored
from pyhybrid.mechanisms.mechanism import REFITS
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.mechanisms.weighted.weight_maps import (
    CountWeighted,
    LipschitzWeighted,
    ScalarWeighted,
    Truncated,
)
from pyhybrid.privacy.conversions import epsilon_of_bound

WITH_EPSILON = (Censored, PerturbedHistogram)
"""Mechanisms whose epsilon is given before the data are seen."""
_SETTINGS: Mapping[type, tuple[str, dict[str, None]]] = {
    LipschitzWeighted: ("scale", {}),
    CountWeighted: ("scale", {}),
    ScalarWeighted: ("target_epsilon", {"target_bound": None}),
    Truncated: ("cap", {"epsilon": None}),
}
"""What is searched for, and what is unset for it."""
_TOLERANCE = 0.05  # of the target
_MOST = 0.1  # nats
_LEAST_WEIGHT = 0.05  # below it posteriors are near the prior, and epsilon rises again
_ROUNDED = 0.01  # local epsilons are rounded up to it
_SMALLEST_BRACKET = 1e-4
_ROUNDS = 4  # of the search, for what refits add to epsilon


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """Result of `meet_epsilon`: the mechanism with the value found of its setting, and what a
    release of it costs, at most the target. Made with the session's seed: a release under another
    differs by Monte Carlo error. `tried` has the epsilon at fixed weights of all fits by value, in
    order. The session holds the fits: ``mechanism.release_from(session, ...)`` needs no new one.
    Confidential."""

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
    tolerance: float | None = None,
    n_draws_released: int = 1,
    max_fits: int = 20,
    refits: int = REFITS,
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
        The search ends at an epsilon in (target - tolerance, target], nats, or below, where epsilon
        jumps over that. 5 % of the target, at most 0.1, if omitted.
    n_draws_released : int, default 1
        Draws that the release will use.
    max_fits : int, default 20
        Of one search; what refits add takes a few.
    refits : int, default 10
        As of a release.
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
    within = min(_MOST, _TOLERANCE * target) if tolerance is None else tolerance
    check_positive(within, "tolerance")
    draws = check_count(n_draws_released, "n_draws_released")
    max_fits = check_count(max_fits, "max_fits")
    setting = _setting_of(mechanism)
    session = open_session(mechanism.bind(df), **options).by_unit(mechanism.unit)
    mechanism.check_predictors(session, refits)
    search = _Search(mechanism=mechanism, session=session, draws=draws, max_fits=max_fits)
    aim = target
    for _ in range(_ROUNDS):
        value = search.largest_within(aim, max(within * aim / target, _ROUNDED))
        epsilon = search.epsilon_at(value, refits)
        if epsilon <= target:
            return Solution(
                mechanism=search.at(value),
                value=value,
                epsilon=epsilon,
                tried=search.tried,
                session=session,
            )
        aim *= (target - within / 2) / epsilon
    raise InvalidInput(
        f"target_epsilon was not met in {_ROUNDS} rounds: refits without single records raise "
        f"epsilon at {setting} = {value:.4g} to {epsilon:g}; give a larger tolerance"
    )


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


def _setting_of(mechanism: PseudoPosteriorMechanism) -> str:
    name = type(mechanism).__name__
    if isinstance(mechanism, WITH_EPSILON):
        raise InvalidInput(
            f"target_epsilon of {name} needs no search: its epsilon is given, see with_epsilon"
        )
    if type(mechanism) not in _SETTINGS:
        raise InvalidInput(
            f"target_epsilon must be for a mechanism with a setting that lowers epsilon: {name} "
            "has none; take LipschitzWeighted, CountWeighted, ScalarWeighted or Truncated"
        )
    return _SETTINGS[type(mechanism)][0]


def _limits(mechanism: PseudoPosteriorMechanism, session: FitSession) -> tuple[float, float]:
    """Where the setting is searched for."""
    setting = _setting_of(mechanism)
    if setting == "scale":
        return 0.0, 1.0
    bounds = session.unweighted(draw_quantile=mechanism.draw_quantile).bounds
    if setting == "target_epsilon":
        highest = epsilon_of_bound(
            bounds.overall,
            relation=mechanism.relation,
            density_above_one=session.bound.density_above_one,
            safety_factor=mechanism.safety_factor,
        )
        return _LEAST_WEIGHT * highest, highest
    f = bounds.by_record
    finite = f[np.isfinite(f) & (f > 0)]
    if not finite.size:
        raise InvalidInput("target_epsilon needs finite bounds of the unweighted fit: found none")
    return 1e-3 * float(finite.min()), float(finite.max())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """Fits by value of the setting, and the epsilon of each at fixed weights. Confidential."""

    mechanism: PseudoPosteriorMechanism
    session: FitSession
    draws: int
    max_fits: int
    tried: dict[float, float] = field(default_factory=dict)

    def at(self, value: float) -> PseudoPosteriorMechanism:
        """The mechanism with its setting at `value`."""
        name, unset = _SETTINGS[type(self.mechanism)]
        return replace(self.mechanism, **{name: value, **unset})  # type: ignore[arg-type]

    def epsilon_at(self, value: float, refits: int = 0) -> float:
        """What a release at this value costs; 0 where all weights are 0."""
        if refits == 0 and value in self.tried:
            return self.tried[value]
        mechanism = self.at(value)
        epsilon = 0.0
        if mechanism.weights(self.session).any():
            path = mechanism.fit(self.session)
            epsilon = math.inf
            if np.isfinite(path.fit.bounds.overall):
                epsilon = mechanism.charge_of(
                    self.session, path, n_synthetic=1, n_draws_released=self.draws, refits=refits
                ).epsilon
        if refits == 0:
            self.tried[value] = epsilon
        return epsilon

    def largest_within(self, target: float, tolerance: float) -> float:
        """The largest value tried whose epsilon is in (target - tolerance, target], or the largest
        below where epsilon jumps over that."""
        before, (low, high) = len(self.tried), _limits(self.mechanism, self.session)
        if self.epsilon_at(high) <= target:
            return high
        if not 0 <= self.epsilon_at(low) <= target:
            raise InvalidInput(
                f"target_epsilon must be reachable by {_setting_of(self.mechanism)} in [{low:g}, "
                f"{high:g}]: epsilon goes from {self.epsilon_at(low):g} to "
                f"{self.epsilon_at(high):g} there, found {target:g}; change the other options"
            )
        narrow = _SMALLEST_BRACKET * (high - low)
        # What was tried for a larger target says where to begin.
        low = max(value for value, epsilon in self.tried.items() if epsilon <= target)
        high = min(value for value in self.tried if value > low)
        halve = False
        while len(self.tried) - before < self.max_fits and high - low > narrow:
            below, above = self.epsilon_at(low), self.epsilon_at(high)
            if target - tolerance < below:
                return low
            share = 0.5
            if not halve and math.isfinite(above):  # halving alone can jump over what is in reach
                share = (target - tolerance / 2 - below) / (above - below)
            value, halve = low + share * (high - low), not halve
            low, high = (value, high) if self.epsilon_at(value) <= target else (low, value)
        if self.epsilon_at(low) > 0:
            return low
        raise InvalidInput(
            f"target_epsilon was not met within {tolerance:g} in {self.max_fits} fits: raise "
            "tolerance or max_fits"
        )
