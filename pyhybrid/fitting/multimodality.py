"""Looking for other modes of a censored posterior.

Where many terms are clipped the censored log-likelihood is flat, and a chain that starts there may
stay: a posterior of one good mode can hold chains elsewhere. Chains from dispersed starts show it.

References
----------
[C25] sec. 4: published counts of censored records spread widely between single-chain runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pyhybrid.engines import Draws
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.models.composite.steps import BoundParts
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.privacy.units import unit_terms

__all__ = ["ModeCheck", "look_for_modes"]

_DISPERSION = 25.0
_CHAINS, _WARMUP, _DRAWS = 8, 250, 50
_DEPTH = 5  # far out nothing but a wide prior pulls: trajectories of 1,023 steps took minutes
_FAR = 10.0
_COMPARED = 40


@dataclass(frozen=True, kw_only=True)
class ModeCheck:
    """What chains from dispersed starts found. Confidential.

    Attributes
    ----------
    n_chains, n_elsewhere : int
        Chains started, and those that ended away from the fit.
    log_density_gap : float
        Mean censored log-likelihood of the fit minus that of the chains elsewhere, nats: above 0
        the others are in a lesser mode. NaN if there are none.
    """

    n_chains: int
    n_elsewhere: int
    log_density_gap: float


def look_for_modes(session: FitSession, fit: PosteriorFit) -> ModeCheck:
    """Run 8 short chains from starts 25 times as dispersed and see where they end.

    A chain is elsewhere if the mean of some monitored quantity is more than 10 posterior standard
    deviations from the fit's. Trajectories have 31 steps at most: a chain that needs longer ones to
    come near counts as elsewhere, at a log-likelihood that tells.
    """
    bound = session.bound
    settings = replace(
        session.settings,
        chains=_CHAINS,
        warmup=_WARMUP,
        draws=_DRAWS,
        max_treedepth=min(_DEPTH, session.settings.max_treedepth),
    )
    draws = session.engine.sample(
        bound.program,
        bound.stan_data(fit.alpha, cap=fit.cap, dispersion=_DISPERSION),
        seed=session.streams.engine_seed("modes"),
        settings=settings,
        progress=session.steps_of("search for other modes"),
    )
    here, there = bound.monitored(fit.draws), bound.monitored(draws)
    elsewhere = np.zeros(draws.n_chains, dtype=bool)
    for name, values in here.items():
        mean, spread = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
        distance = np.abs(there[name].mean(axis=1) - mean)
        elsewhere |= (distance > _FAR * spread).reshape(draws.n_chains, -1).any(axis=1)
    gap = float("nan")
    if elsewhere.any():
        place = np.flatnonzero(np.repeat(elsewhere, _DRAWS))
        gap = _log_lik(session, fit, fit.draws, np.arange(fit.draws.n_draws)) - _log_lik(
            session, fit, draws, place
        )
    return ModeCheck(n_chains=draws.n_chains, n_elsewhere=int(elsewhere.sum()), log_density_gap=gap)


def _log_lik(
    session: FitSession, fit: PosteriorFit, draws: Draws, positions: npt.NDArray[np.intp]
) -> float:
    """Censored log-likelihood of all records, with the excess and the region of a frozen reference,
    averaged over some of the draws at `positions`."""
    chosen = positions[
        np.linspace(0, positions.size - 1, min(_COMPARED, positions.size)).astype(int)
    ]
    below, above, center = np.inf, np.inf, None
    if fit.cap is not None:
        below, above, center = fit.cap.below, fit.cap.above, fit.cap.reference
    log_lik = session.bound.log_lik(draws).at(chosen)
    if session.units is None:
        excess, beyond = None, np.zeros(chosen.size)
        if fit.cap is not None and fit.cap.frozen is not None:
            assert isinstance(session.bound, BoundRegression | BoundParts)
            frozen = session.bound.frozen_log_lik(fit.cap.frozen, draws).at(chosen)
            excess, beyond = fit.cap.excess(frozen), fit.cap.beyond(frozen)
        total = log_lik.clipped_total(fit.alpha, below, above, center, excess)
        return float((total - beyond).mean())
    terms = log_lik if center is None else log_lik.less(center)
    by_unit = unit_terms(terms, fit.alpha, session.units.of)
    return float(np.clip(by_unit, -below, above).sum(axis=1).mean())
