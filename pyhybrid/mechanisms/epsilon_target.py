"""Any mechanism by budget: the setting that it has for that is found, or made, from a target.

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

A search looks at the confidential data, which no guarantee covers, and the charge says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_count, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.censored.censored import Censored
from pyhybrid.mechanisms.epsilon_search import Solution, solved
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.mechanisms.weighted.count_weighted import CountWeighted
from pyhybrid.mechanisms.weighted.lipschitz_weighted import LipschitzWeighted
from pyhybrid.mechanisms.weighted.scalar_weighted import ScalarWeighted
from pyhybrid.mechanisms.weighted.truncated import Truncated
from pyhybrid.privacy.conversions import epsilon_of_bound

__all__ = ["WITH_EPSILON", "meet_epsilon", "with_epsilon"]

WITH_EPSILON = (Censored, PerturbedHistogram)
"""Mechanisms whose epsilon is given before the data are seen."""

_TOLERANCE = 0.05  # of the target
_MOST = 0.1  # nats
_LEAST_WEIGHT = 0.05  # below it posteriors are near the prior, and epsilon rises again


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """What is searched for: its name, what to set with it, and where it lies."""

    name: str
    set_with: Mapping[str, Any]
    limits: Callable[[PseudoPosteriorMechanism, FitSession], tuple[float, float]]


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


_SCALE = _Setting(name="scale", set_with={}, limits=lambda mechanism, session: (0.0, 1.0))
_SETTINGS: Mapping[type, _Setting] = {
    LipschitzWeighted: _SCALE,
    CountWeighted: _SCALE,
    ScalarWeighted: _Setting(
        name="target_epsilon", set_with={"target_bound": None}, limits=_scalar_limits
    ),
    Truncated: _Setting(name="cap", set_with={"epsilon": None}, limits=_cap_limits),
}


def meet_epsilon(
    mechanism: PseudoPosteriorMechanism,
    df: pd.DataFrame,
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
        The search ends at an epsilon in (target - tolerance, target], or within two Monte Carlo
        standard errors below the target if those are more; 5 % of the target, at most 0.1, if
        omitted.
    n_draws_released : int, default 1
        Draws that the release will use.
    max_fits : int, default 20
    **options
        seed, engine, settings, rule, on_not_converged, progress of
        `pyhybrid.fitting.session.open_session`.

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
    >>> found = ph.meet_epsilon(ph.LipschitzWeighted(model), df, target_epsilon=0.5)
    >>> found.mechanism.release_from(found.session, n_synthetic=1, n_draws_released=1)
    """
    target = check_positive(target_epsilon, "target_epsilon")
    setting = _setting_of(mechanism)
    draws = check_count(n_draws_released, "n_draws_released")
    within = min(_MOST, _TOLERANCE * target) if tolerance is None else tolerance
    check_positive(within, "tolerance"), check_count(max_fits, "max_fits")
    session = open_session(mechanism.model.bind(df), **options)
    return solved(
        lambda value: replace(mechanism, **{setting.name: value, **setting.set_with}),
        session,
        draws,
        parameter=setting.name,
        limits=setting.limits(mechanism, session.by_unit(mechanism.unit)),
        target=target,
        tolerance=within,
        max_fits=max_fits,
        down_from_high=True,  # it may cost less than the target
    )


def with_epsilon(mechanism: Any, *, target_epsilon: float, n_draws_released: int = 1) -> Any:
    """A strict mechanism at the epsilon of one draw that adds up to `target_epsilon`.

    Parameters
    ----------
    mechanism : Censored or PerturbedHistogram
        What it holds of epsilon and cap is not used.
    target_epsilon : float
        For all draws, nats, above 0.
    n_draws_released : int, default 1

    Raises
    ------
    InvalidInput
        For another mechanism, or one whose cap a calibration holds.
    """
    target = check_positive(target_epsilon, "target_epsilon")
    each = target / check_count(n_draws_released, "n_draws_released")
    if not isinstance(mechanism, WITH_EPSILON):
        raise InvalidInput(
            f"{type(mechanism).__name__} has no epsilon of its own: search for it by meet_epsilon"
        )
    if isinstance(mechanism, PerturbedHistogram):
        return replace(mechanism, epsilon=each)
    if mechanism.calibration is not None:
        raise InvalidInput(
            "target_epsilon cannot be met by a calibration, which holds the cap: calibrate with "
            "epsilon=, the epsilon of one released draw"
        )
    return replace(mechanism, epsilon=each, cap=None)


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
